/* SPDX-License-Identifier: MIT
 * The executor: runs one instance of a schedule over a transport. The only place where the two
 * meet.
 *
 *	struct gci_run run = {.sched = s, .tp = tp, .comm = 0, .seq = 7, .digest = d,
 *		.esize = 4, .kernel = k, .buf = {in, out, tmp}, .done = on_done, .user = me};
 *	gci_run_start(&run);
 *	while (!me->done)
 *		gci_tp_progress(tp, GCI_NEVER);
 *	gci_run_free(&run);
 *
 * One thread. done is called from progress, once, also on failure; from start if nothing had to
 * wait. A run may be freed from its own done. */
#ifndef GCI_COMM_RUN_H
#define GCI_COMM_RUN_H

#include "collectives/kernels/kernels.h"
#include "collectives/schedule/ready.h"
#include "transport/sums.h"
#include "transport/transport.h"

struct gci_run;
struct gci_run_message;

/* Called at the beginning and the end of each step. The run is whole then, and run->user is the
 * caller's. */
struct gci_run_trace {
	void (*step)(void *ctx, const struct gci_run *run, uint32_t step, int ended);
	void *ctx;
};

/* How reducing steps combine elements: by a kernel, or by a function of the user's. */
struct gci_reducer {
	gci_kernel kernel;
	gcoll_op_fn *fn; /* when there is no kernel */
	void *ctx;
	enum gcoll_type type;
};

/* SENDs of all of a process's runs that wait for their time, or for their host's NIC. Those that are due go in the
 * order of their times, and no faster than the NIC takes them: connections share it evenly, and what is wanted
 * last would delay what others wait for. */
struct gci_held {
	struct gci_list sends; /* the next one first */
	uint64_t given_ns;     /* until then the NIC has what it was given */
};

struct gci_run {
	/* Set by the caller. */
	const struct gci_sched *sched; /* must outlive the run */
	struct gci_tp *tp;
	uint32_t comm;
	uint64_t seq;    /* names this instance; the same on all ranks */
	uint64_t digest; /* of the operation */
	uint32_t esize;
	uint32_t share;   /* as in gci_tp_req */
	const int *ranks; /* the transport's, by the schedule's; NULL: the same */
	struct gci_reducer reducer;
	char *buf[GCI_NBUFFERS]; /* IN (never written), OUT, and TMP of sched->tmp_len elements */
	const struct gci_run_trace *trace; /* may be NULL */
	uint64_t *activity;    /* counts messages that have ended, and pieces; may be NULL */
	struct gci_held *held; /* outlives the run. NULL: no SEND waits */
	uint64_t nic_bps;      /* of this host, for these; 0: not known */
	uint64_t began_ns;     /* that due times count from */
	void (*done)(struct gci_run *run, int status);
	/* Bytes have changed in this rank's memory since they came; the transport is to be failed.
	 */
	void (*damaged)(struct gci_run *run);
	void *user;

	/* The run's. */
	struct gci_ready ready;
	struct gci_sums sums; /* of what came and may be sent on */
	struct gci_run_message *messages;
	uint32_t nunsent;           /* SENDs that are still to begin */
	uint32_t nmessages, nsends; /* under way or held; of those under way, SENDs */
	struct gci_list sends;      /* of these, not detached */
	int last;
	int starting; /* inside gci_run_start: done waits for its end */
	int status, over;
};

/* Starts what can start. GCOLL_ERR_NOMEM (then done is not called and nothing is to be freed), or
 * 0. */
int gci_run_start(struct gci_run *run);

/* No window of the operation follows this run: as soon as there are only SENDs left, they are over
 * when the network has them (gci_tp_detach), not when the peers do. Else they wait for those: they
 * are many bytes of a long message, and other instances keep the pipe full meanwhile. */
void gci_run_last(struct gci_run *run);

void gci_held_init(struct gci_held *held);

/* When the next one may go; GCI_NEVER: there is none. */
uint64_t gci_held_due_ns(const struct gci_held *held);

/* Starts those that may go, or `all` of them. */
void gci_held_release(struct gci_held *held, uint64_t now_ns, int all);

/* Only when done has been called, or after the transport was stopped or freed. */
void gci_run_free(struct gci_run *run);

#endif
