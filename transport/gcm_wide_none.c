/* SPDX-License-Identifier: MIT
 * In place of gcm_wide.c where gridcoll is built without that library. */
#include "transport/gcm.h"

const struct gci_gcm_ops *gci_gcm_wide(void)
{
	return NULL;
}
