/* SPDX-License-Identifier: MIT
 * The libraries that sleep while they wait, and so can share a program. */
#include "bench/peers/rank.h"

const struct gcb_lib *const gcb_libs[] = {&gcb_lib_gridcoll,
#ifdef GCB_HAVE_GLOO
	&gcb_lib_gloo,
#endif
	&gcb_lib_bare, NULL};
