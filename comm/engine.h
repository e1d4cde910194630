/* SPDX-License-Identifier: MIT
 * What all communicators of a process share: the transport, the failure that ends them all, the
 * requests under way and how long they have waited, their callbacks, the connection to the launcher.
 * One per world; freed with it. It calls nothing of those that are made on it but by tables of
 * functions, which are here.
 *
 * A message's key names its communicator and, in `seq`, its operation and window; or, with
 * GCI_SEQ_MESSAGE, a message of gcoll_send (comm/message.c). */
#ifndef GCI_COMM_ENGINE_H
#define GCI_COMM_ENGINE_H

#include "base/hash.h"
#include "comm/calls.h"
#include "comm/gate.h"
#include "comm/kept.h"
#include "comm/recording.h"
#include "comm/run.h"
#include "comm/spin.h"
#include "shaping/ladder.h"
#include "transport/control.h"
#include "transport/secret.h"
#include "transport/transport.h"

#include <pthread.h>

#define GCI_WINDOW_BITS      24 /* of seq: the window; above it the operation's number */
#define GCI_SEQ_MESSAGE      (1ull << 63)
#define GCI_EARLY_OPS        64 /* remembered of communicators that are not made here yet */
#define GCI_FREED_COMMS      64 /* remembered */
#define GCI_SIGNATURE_NBYTES 200

struct gcoll_comm;
struct gci_control;
struct gci_decider;
struct gci_loop;
struct gci_op;
struct gci_pacing;
struct gci_run_trace;
struct gci_taps;
struct gci_table;
struct gci_thread;
struct gci_warm;
struct gci_world;

/* ---- settings */

/* Whether payload has checksums. AUTO: unless all ranks are at one machine's loopback addresses,
 * where its bytes go from memory to memory, and pass no card, cable or switch. */
enum gci_checksum { GCI_CHECKSUM_AUTO, GCI_CHECKSUM_ON, GCI_CHECKSUM_OFF };

/* On which links the loss of a connection is made up for. Within a cluster there is one to each
 * rank, and what ends it is the host's or the program's end; acknowledgements would only cost. */
enum gci_replay_where { GCI_REPLAY_AUTO, GCI_REPLAY_WAN, GCI_REPLAY_ALWAYS, GCI_REPLAY_OFF };

/* When connections between clusters are opened and filled ahead (flow/warm.h). */
enum gci_warm_when { GCI_WARM_OFF, GCI_WARM_ON, GCI_WARM_NOW };

/* "off", "on" or "now"; -1: none of these. */
int gci_warm_parse(const char *text);

/* What the program set (comm/comm.c), or the environment: a world that was shrunk goes on with
 * it. */
struct gci_settings {
	uint32_t streams;        /* per WAN peer; 0: by the grid file, or GCI_DEFAULT_STREAMS */
	uint64_t sockbuf_nbytes; /* 0: as the link needs */
	char congestion[16];     /* of connections between clusters; "": the kernel's */
	enum gci_checksum checksum;
	enum gci_data_path data_path;
	enum gci_security security;
	enum gci_replay_where replay;
	enum gci_warm_when warm;
	enum gci_pace_how pace;
	uint64_t op_timeout_ns; /* waiting without any message for so long fails; GCI_NEVER */
	uint64_t floor_ns; /* and with a message under way, no less than that; 0: not watched */
	uint32_t window_nbytes; /* GCI_WINDOW_NBYTES; tests make it small, on all ranks */
	const struct gci_run_trace *trace; /* of all steps, comm/run.h; NULL: none */
	struct gci_spin spin;
};

/* ---- requests: what is common to all that gcoll_wait() may wait for. Each sort is a struct that
 * begins with a gcoll_req and has a table of functions; its file makes it (comm/request.h). */

struct gci_req_ops {
	/* Begins. gci_req_end is called when it is over, from progress or from here. 0, or an error
	 * (with gcoll_last_error() set, or the engine failed): then it is not called. */
	int (*start)(gcoll_req *r);
	/* Frees what the request owns; it may be under way if the transport is gone. */
	void (*drop)(gcoll_req *r);
	/* In words, for those who wait for it. */
	void (*name)(const gcoll_req *r, char out[GCI_SIGNATURE_NBYTES]);
	/* It has been waited for in vain for a while: may its peer have left? Or NULL. */
	void (*ask)(const gcoll_req *r);
};

struct gcoll_req {
	const struct gci_req_ops *ops;
	struct gcoll_comm *comm;
	size_t size;
	struct gci_list link; /* reqs.all, in the order they were begun */
	int persistent, blocking;
	int active; /* begun and not waited for */
	int over;   /* read by threads that are not inside the gate, too */
	int status;
	int awaited;            /* by a thread, since it was begun */
	gcoll_done_fn *fn;      /* called instead of being waited for; or NULL */
	void *ctx;              /* its */
	struct gci_list untold; /* reqs.untold */
	uint64_t asked_ns;      /* wait.total_ns when `ask` was last called */
};

/* ---- the engine's parts */

/* The requests of all communicators. */
struct gci_reqs {
	struct gci_list all;     /* that are not freed, gcoll_req.link */
	struct gcoll_req *spare; /* freed ones of messages, the next one in `link.next` */
	unsigned nspare;
	uint32_t active;        /* of them under way */
	uint64_t nended;        /* so far */
	struct gci_list untold; /* over, but their callback was not called: gcoll_req.untold */
	int telling;            /* a callback is being called, by this thread: */
	pthread_t teller;
};

/* Which threads may be in a call, and which one makes progress. */
struct gci_callers {
	struct gci_gate gate;      /* of a world with a progress thread */
	struct gci_thread *thread; /* comm/progress.h; NULL: the program's calls make progress */
	struct gci_loop *loop;     /* comm/progress.h: the program's own; NULL: none */
	void (*close_loop)(struct gci_engine *e); /* after the transport was freed; NULL: none */
	int any_thread;     /* there is a thread, or was: calls may come from any */
	const void *caller; /* atomic: the thread that is in a call; NULL: none is */
	unsigned ncalls;    /* of it, one in the other, by way of callbacks */
	/* Without a progress thread: a thread of the library's makes progress between calls (flow/warm.h),
	 * and this is held in each. Recursive, since callbacks call what they want. */
	int shared;
	pthread_mutex_t lock;
};

/* Waiting: counted in progress, while no byte comes or goes. */
struct gci_waited {
	uint64_t activity;      /* grows whenever bytes come or go */
	uint64_t seen_activity; /* when total_ns was last counted */
	int quiet;              /* nothing has come or gone in the last wait */
	uint64_t total_ns;      /* without activity */
	uint64_t looked_ns;     /* total_ns when deadlines were last looked at closer */
	uint64_t asked_ns;      /* total_ns when `ask` of all that may be was last called */
	uint64_t asleep_ns;     /* since when the caller waits elsewhere; 0: it does not */
};

/* What peers said, and what was freed here, of communicators that are not here. */
struct gci_absent_comms {
	struct gci_early_op {
		uint32_t comm; /* 0: none; the world's is made before any message comes */
		int peer;
		uint64_t seq, digest;
	} early[GCI_EARLY_OPS];
	struct gci_freed_comm {
		uint32_t id;
		uint64_t next_op;
	} freed[GCI_FREED_COMMS];
	uint32_t nearly, nfreed; /* so far: rings */
};

/* The communicators, and what they are asked for: comm/comm.c fills it in. */
struct gci_comms {
	struct gci_list all;   /* gcoll_comm.link */
	struct gci_hash by_id; /* gcoll_comm.by_id */
	uint32_t next_id;      /* none that is known here has this number, or a higher one */
	int splitting;         /* in gcoll_comm_split or gcoll_comm_dup */
	struct gci_absent_comms absent;

	/* Frees one, whatever uses it. */
	void (*drop)(struct gcoll_comm *c);
	/* After a failure, again and again: ends those requests that no transport ends. */
	void (*fail)(struct gci_engine *e);
	/* How long an operation under way should take at most; 0: there is none. */
	uint64_t (*expected_ns)(const struct gci_engine *e);
};

/* The job that the world is in, and its launcher: job/world.c fills it in. Without one all is NULL or 0. The functions
 * are those of job/control_client.h; none of them waits. */
struct gci_engine_job {
	struct gci_world *world;
	const struct gci_grid *grid;   /* owned by the job */
	const struct gci_table *table; /* of decisions, the same; NULL: none */
	uint64_t dead_ns;              /* silence of a connection; 0: never */
	/* Connections that two ranks of a cluster need to use all their cards; NULL: 1. */
	unsigned (*lanes)(const struct gci_world *world, int a, int b);
	struct gci_control *ctl; /* NULL without a launcher, and after its epoch */
	const struct gci_launcher_ops {
		void (*fail)(struct gci_control *ctl, const struct gci_ctl_failure *f);
		void (*ask_call)(struct gci_control *ctl, const struct gci_ctl_call *m);
		int (*verdict)(struct gci_control *ctl, struct gci_ctl_failure *f);
		uint64_t (*looked_ns)(const struct gci_control *ctl);
		int (*all_gone)(struct gci_control *ctl);
		int (*budget)(struct gci_control *ctl, struct gci_ctl_budget *b);
		int (*survives)(const struct gci_control *ctl);
		void (*wait)(struct gci_control *ctl, const struct gci_ctl_wait *w);
		void (*report)(struct gci_control *ctl, const struct gci_ctl_report *m);
		void (*flows)(struct gci_control *ctl, const struct gci_ctl_flows *m);
	} * launcher;
};

/* Hooks of flow/ (warming up, pacing, budgets): begins, first_window and learn are set by
 * gci_warm_open, the others by gci_pacing_open. Each may be NULL, and begins no operation itself.
 * Who makes progress, or begins an operation, calls changed, first_window and budget, within the gate;
 * likewise the program's own thread, in a call of the library, begins and set_pace. learn is called by
 * whoever chooses an algorithm, also outside of the gate; close when nobody else is in the engine. */
struct gci_engine_flow {
	struct gci_warm *warm;     /* NULL: nothing to warm up */
	struct gci_pacing *pacing; /* NULL: nothing is paced */

	/* A request is about to begin. */
	void (*begins)(struct gci_engine *e);
	/* From how many ranks traffic goes where has changed, perhaps: `op` has begun or ended. */
	void (*changed)(const struct gci_op *op);
	/* A long operation begins with this schedule of the rank's, whose peers are ranks[peer] of the
	 * world, or, where ranks is NULL, peer. */
	void (*first_window)(struct gci_engine *e, const int *ranks, const struct gci_sched *s);
	/* The world's decider learns what was found out elsewhere. */
	void (*learn)(struct gci_engine *e, struct gci_decider *d);
	/* The launcher has a budget for what goes from one cluster of the grid to another. */
	void (*budget)(struct gci_engine *e, uint32_t from, uint32_t to, uint64_t bps);
	/* The setting "pace": 0, or why not. */
	int (*set_pace)(struct gci_engine *e, enum gci_pace_how how, struct gci_error *why);
	/* The engine is freed; the transport is gone. */
	void (*close)(struct gci_engine *e);
};

struct gci_engine {
	int rank, size;     /* in the world */
	const char **hosts; /* [rank], owned by the engine's creator */
	struct gci_tp *tp;
	struct gci_taps *taps; /* the transport's connections */
	struct gcoll_comm *world;
	struct gci_settings settings;
	struct gci_comms comms;
	struct gci_reqs reqs;
	struct gci_calls calls;
	struct gci_callers callers;
	struct gci_waited wait;
	struct gci_engine_job job;
	struct gci_engine_flow flow;
	struct gci_sched_cache cache;
	struct gci_scratch scratch;
	struct gci_recording recording;
	struct gci_held held;
	int at_will; /* none waits any more: budgets are others than times were made for */

	int started; /* some operation: connections may be open */
	int finalizing;
	struct gci_ctl_failure failure; /* status 0: none yet */
	struct {
		int has_verdict; /* the failure is the launcher's word */
		uint64_t at_ns;  /* when this rank found one itself */
		/* What the transport said while this rank waited for the others to leave. */
		struct gci_tp_failure parting;
	} failed;
};

/* NULL: out of memory. */
struct gci_engine *gci_engine_create(int rank, int size, const char **hosts);

/* The transport first; then all communicators and requests. NULL is legal. */
void gci_engine_free(struct gci_engine *e);

/* How long to wait for other hosts that answer within `ns`, where the grid's links hold nothing up.
 * (dead_ns is the launcher's, which does the same.) */
uint64_t gci_engine_patience(const struct gci_engine *e, uint64_t ns);

/* Sets the calling thread's gcoll_last_error(); returns status. */
int gci_comm_error(int status, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* ---- progress */

/* Makes progress for up to timeout_ns; the failure's status, or 0. */
int gci_engine_progress(struct gci_engine *e, uint64_t timeout_ns);

/* What is to be done after each look at the network. The caller has waited since `since_ns`; 0: not
 * worth counting. */
void gci_engine_after(struct gci_engine *e, uint64_t since_ns);

/* Starts the SENDs that are due: who begins an operation, and computes meanwhile, has its first ones under way. */
void gci_engine_release(struct gci_engine *e);

/* How long the caller may wait elsewhere, at most, before it calls gci_engine_progress again. If
 * not 0, the time from now until then counts as waiting. */
uint64_t gci_engine_sleep_ns(struct gci_engine *e);

/* ---- deadlines: how long a call may wait.
 *
 * Only time that was spent waiting in this rank's calls counts, and only while no byte comes or
 * goes; so neither a rank that computes nor an operation that is slow but moves runs into it.
 *
 * A plain time-out ends whatever has waited for so long, be the other rank stuck or late: nobody
 * here can tell. Automatic deadlines spare the late ones. They look at messages that were taken up
 * alone: the receiver gave its credit, or the sender has begun. Nothing but the network and the two
 * ranks' progress stands between such a message and its end, whatever ranks have not come yet. How
 * long it may stand still follows from the prediction of its operation, of as much of that as is
 * under way at once. */

#define GCI_DEADLINE_FLOOR_NS (10 * GCI_NS_PER_S) /* of "auto" */
#define GCI_DEADLINE_SLACK    8 /* predictions err by a few percent; cross traffic does not */

/* ---- failures */

/* This rank cannot go on: tells the launcher, ends all operations. The first call counts. `rank`
 * is the one to blame, -1 for none. */
void gci_engine_fail(struct gci_engine *e, int status, int rank, const char *fmt, ...)
	__attribute__((cold, format(printf, 4, 5)));

/* Out of memory in what other ranks take part in. Returns GCOLL_ERR_NOMEM. */
int gci_engine_nomem(struct gci_engine *e) __attribute__((cold));

/* The transport has failed. */
void gci_engine_lost(struct gci_engine *e, const struct gci_tp_failure *f);

/* Before a failure that ends in GCI_CTL_SOMETHING_ELSE: the peer's own words for its operation may
 * come in time for the launcher's verdict. */
void gci_engine_ask_call(struct gci_engine *e, int peer, uint32_t comm, uint64_t op);

/* Takes the launcher's verdict, if it has come; the failure's status, or 0. */
int gci_engine_hear(struct gci_engine *e);
static inline int gci_engine_check(struct gci_engine *e)
{
	return e->job.ctl ? gci_engine_hear(e) : e->failure.status;
}

/* False for a moment after a failure: until the launcher's verdict (the rank that failed first) is
 * here, or the wait for it is over. True without a failure. */
int gci_engine_settled(const struct gci_engine *e);

/* Waits for that, `timeout_ns` at most. */
void gci_engine_await_verdict(struct gci_engine *e, uint64_t timeout_ns);

/* For a rank that waits for the others to leave: a peer that the transport has lost has left or died,
 * and the launcher's verdict is due; else peers that still need this rank must learn that it left. */
void gci_engine_check_parting(struct gci_engine *e);

/* ---- requests, from within */

/* Memory for one, zeroed; NULL: out of memory. gci_req_drop gives it back. */
gcoll_req *gci_req_alloc(struct gci_engine *e, size_t size);

/* It is over. */
void gci_req_end(gcoll_req *r, int status);

/* Frees it whatever its state. */
void gci_req_drop(gcoll_req *r);

/* The engine's failure as this call's error; without one, `status` and what was said of it. */
int gci_req_error(struct gci_engine *e, int status) __attribute__((cold));

/* Calls its `ask` if that is due: somebody waits for it in vain. */
void gci_req_ask(gcoll_req *r);

/* Callbacks (gcoll_on_done) are called outside of the transport, one after the other, and outside of
 * the gate, so that they may call gridcoll. This one is over and has one. */
void gci_done_add(gcoll_req *r);

/* Calls what is due, unless it is a callback that is asking. After a failure, not before all is
 * known about it (gci_engine_settled). */
void gci_done_tell(struct gci_engine *e);

/* True in a callback. */
int gci_done_is_telling(const struct gci_engine *e);

/* ---- within the gate */

/* Around what looks at more than constants. */
static inline void gci_lock(struct gci_engine *e)
{
	if (e->callers.thread)
		gci_gate_enter(&e->callers.gate);
	else if (e->callers.shared)
		pthread_mutex_lock(&e->callers.lock);
}

static inline void gci_unlock(struct gci_engine *e)
{
	if (e->callers.thread)
		gci_gate_leave(&e->callers.gate);
	else if (e->callers.shared)
		pthread_mutex_unlock(&e->callers.lock);
}

/* The number by which the transport knows the connections to a cluster of the grid. */
static inline uint32_t gci_engine_pace_group(int in_grid)
{
	return (uint32_t)in_grid + 1;
}

#endif
