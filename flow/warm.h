/* SPDX-License-Identifier: MIT
 * Warming up: the connections that long operations of the world will want between clusters are
 * opened ahead, and their windows by padding (gci_tp_warm), so that the first such operation takes
 * hardly longer than later ones.
 *
 *	gci_warm_open(e);		// when the transport is there
 *	gci_warm_begin(e);		// before the first operation, which does so itself
 *	gci_enter(e); ... gci_leave(e);	// as with a progress thread (comm/progress.h)
 *	gci_warm_close(e);		// before anything is freed, or earlier
 *
 * A thread finds out how bcast, allreduce and allgather would run (or those of them that
 * gcoll_comm.warms names), each rank for itself and only for what it would send, and makes progress while the program has no operation under way: the
 * program may read its files meanwhile. It calls nothing of the program's. It ends with the first
 * bulk data, or after some round trips. Programs with a loop or a progress thread make the progress
 * themselves, and have none of this: they are not told what to do when they are busy. */
#ifndef GCI_FLOW_WARM_H
#define GCI_FLOW_WARM_H

#include "comm/comm.h"

/* What to send a rank ahead: bytes per stream, by rank of the world. 0: nothing, and no need to
 * connect. A function of the world's topology and settings; cut short when another thread sets
 * *quit, which may be NULL. 0 or GCOLL_ERR_NOMEM. */
int gci_warm_plan(gcoll_comm *world, uint64_t *stream_nbytes, const int *quit);

/* Whether any clusters are so far apart that a cold start is worth the trouble. */
int gci_warm_pays(const struct gci_topo *t);

/* Nothing is made where it does not pay. 0 or GCOLL_ERR_NOMEM. */
int gci_warm_open(struct gci_engine *e);

/* Once. Without a thread for it (out of memory) nothing is warmed. */
void gci_warm_begin(struct gci_engine *e);

/* Ends it for good, at gcoll_finalize or before: who uses the transport beside the library's own
 * calls has to, since the thread would make progress at the same time; and who counts bytes. */
void gci_warm_close(struct gci_engine *e);

#endif
