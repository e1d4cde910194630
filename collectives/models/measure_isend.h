/* SPDX-License-Identifier: MIT
 * The pattern that isends in a row follow (Vadhiyar 2004, 4.3), out of a list of how long each of
 * them took:
 *
 *	for (n = 16;; n *= 2) {
 *		... n isends of nbytes in a row, each timed ...
 *		if (gci_isend_pattern(ns, n, &pattern) >= 10 || n == most)
 *			break;
 *	}
 *
 * Pure. */
#ifndef GCI_COLLECTIVES_MODELS_MEASURE_ISEND_H
#define GCI_COLLECTIVES_MODELS_MEASURE_ISEND_H

#include "collectives/models/params.h"

#define GCI_ISEND_FIRST  16
#define GCI_ISEND_MOST   1024
#define GCI_ISEND_SPIKES 10 /* so many are enough */

/* How many spikes there are; sets all of `out` but nbytes and immediate. Spikes take at least three
 * times as long as the others; fewer than three are taken for accidents, and so are short ones that
 * are rare after a long first one. Without spikes `initial` is n, and the three times are the
 * median. n is 1 to GCI_ISEND_MOST. */
uint32_t gci_isend_pattern(const uint64_t *ns, uint32_t n, struct gci_params_isend *out);

/* Did the isend return before the message was there? `whole_ns` is from the start of an isend to
 * the end of the receive, recv_ns what the receive takes if it comes late (or(m)). */
int gci_isend_is_immediate(uint64_t whole_ns, uint64_t recv_ns);

#endif
