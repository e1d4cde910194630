/* SPDX-License-Identifier: MIT
 * Ways to run an operation that are worth simulating: algorithms with segments, degrees and numbers
 * of WAN senders, the most promising first by closed formulas (collectives/tuner/estimate.h).
 *
 *	struct gci_candidate *list;
 *	size_t i, n;
 *
 *	rc = gci_candidates(&net, &coll, 5, &list, &n);
 *	for (i = 0; !rc && i < n; i++)
 *		rc = gci_predict(&net, &coll, &list[i], &limits, &ns[i]);
 *	gci_free(list);
 */
#ifndef GCI_COLLECTIVES_TUNER_CANDIDATES_H
#define GCI_COLLECTIVES_TUNER_CANDIDATES_H

#include "collectives/tuner/candidate.h"

#define GCI_LEAST_SEGMENT 4096 /* bytes: below, a message's own cost is most of it */

/* Lists shorter than this leave out algorithms whose schedules take a search over the whole grid:
 * who wants few wants them fast; and, where the grid's file says how many ranks may send at once,
 * what does not keep to that. */
#define GCI_SHORT_LIST 8

/* At most `most` (at least 1) ways to run `c`, which has no parameters. Only what can run it. Of those
 * with the same formula the best comes first, and of equals that of more senders; others come later
 * than their estimates alone would have it, as formulas err less between segments than between algorithms.
 * *list is the caller's to gci_free; n is 0 when nothing can run it. 0 or GCOLL_ERR_NOMEM. Equal on
 * all ranks. */
int gci_candidates(const struct gci_simnet *net, const struct gci_coll *c, size_t most,
	struct gci_candidate **list, size_t *n);

/* The first of a short list, but for packings: what runs where nothing is simulated. Between clusters few bytes go by
 * few pairs of ranks, whose connections take long to open. 0, GCOLL_ERR_NOMEM, or
 * GCOLL_ERR_INVAL when nothing can run it. */
int gci_candidate_rough(
	const struct gci_simnet *net, const struct gci_coll *c, struct gci_candidate *how);

/* The row with GCI_PACKS that short lists have for `c`; NULL: none. For more ranks it has no timetable
 * (collectives/planner/timetable.h), and at will it is no better than others. */
#define GCI_PACKED_RANKS 1024
const struct gci_algorithm *gci_candidate_packs(const struct gci_coll *c);

/* The numbers of WAN senders per pair of clusters that are worth a try, rising, into out[]: powers
 * of two up to the largest pair's number of ranks; of each pair of clusters, while there is room,
 * the grid's own number, and as many as fill the link by what a pair of ranks gets. Returns how
 * many; 0 in a single cluster. */
#define GCI_MOST_SENDER_COUNTS 20
size_t gci_sender_counts(const struct gci_simnet *net, uint32_t out[GCI_MOST_SENDER_COUNTS]);

/* Segments, in bytes, rising powers of two from `least` (at least an element) up to the message:
 * what `c` cuts, that is the vector or each block. The last is the whole of that. */
#define GCI_MOST_SEGMENTS 64
size_t gci_segment_sizes(const struct gci_coll *c, uint64_t least, uint64_t out[GCI_MOST_SEGMENTS]);

#endif
