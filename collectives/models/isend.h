/* SPDX-License-Identifier: MIT
 * What the next of several isends in a row takes its sender: short while the buffers below have
 * room, a long one when they are full, then short ones again while the room that was made lasts
 * (Vadhiyar 2004, 4.3, equation 1).
 *
 *	struct gci_isends row = {0};		// of one connection
 *	const struct gci_params_isend *p = gci_isend_at(link, nbytes);
 *
 *	ns = p ? gci_isend_next(p, gap_ns, &row, now_ns) : at.os_ns;
 *
 * Pure: counts and times in, a time out. */
#ifndef GCI_COLLECTIVES_MODELS_ISEND_H
#define GCI_COLLECTIVES_MODELS_ISEND_H

#include "collectives/models/params.h"

/* How many of the `previous` isends, each of which keeps the link for gap_ns, it has not carried
 * yet since_first_ns after the first of them began: pending_g_count, rounded up, for a part of a
 * message keeps its buffer. 0 when gap_ns is 0. */
uint64_t gci_isend_pending(uint64_t gap_ns, uint64_t previous, uint64_t since_first_ns);

/* What the next isend takes: os_start, os_spike or os_mid, by where the pending ones stand in the
 * pattern. Where isends are not immediate there is no pattern: os_start. */
uint64_t gci_isend_ns(const struct gci_params_isend *p, uint64_t gap_ns, uint64_t previous,
	uint64_t since_first_ns);

/* Isends of one connection since it last had none pending: what came before does not count, nor
 * does time in which there was nothing to send. */
struct gci_isends {
	uint64_t n, first_ns;
};

/* What an isend that begins now takes; `row` counts it. now_ns never goes back. */
uint64_t gci_isend_next(
	const struct gci_params_isend *p, uint64_t gap_ns, struct gci_isends *row, uint64_t now_ns);

/* The pattern of messages of nbytes: that of the nearest size measured which is no larger, else of
 * the smallest; NULL: none was measured. Belongs to `l`. */
const struct gci_params_isend *gci_isend_at(const struct gci_params_link *l, uint64_t nbytes);

#endif
