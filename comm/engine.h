/* SPDX-License-Identifier: MIT
 * What all communicators of a process share: the transport, the failure that ends them all, memory
 * kept between operations, the connection to the launcher. One per world; freed with it.
 *
 * A message's key names its communicator and, in `seq`, its operation and window; or, with
 * GCI_SEQ_MESSAGE, a message of gcoll_send (comm/message.c). */
#ifndef GCI_COMM_ENGINE_H
#define GCI_COMM_ENGINE_H

#include "comm/calls.h"
#include "comm/comms.h"
#include "comm/control_client.h"
#include "comm/recording.h"
#include "comm/sched_cache.h"
#include "comm/scratch.h"
#include "comm/spin.h"
#include "transport/secret.h"
#include "transport/transport.h"

#include <pthread.h>

#define GCI_WINDOW_BITS 24 /* of seq: the window; above it the operation's number */
#define GCI_SEQ_MESSAGE (1ull << 63)
#define GCI_EARLY_OPS   64 /* remembered of communicators that are not made here yet */
#define GCI_FREED_COMMS 64 /* remembered */

struct gcoll_comm;
struct gci_loop;
struct gci_pacing;
struct gci_run_trace;
struct gci_taps;
struct gci_table;
struct gci_thread;

struct gci_early_op {
	uint32_t comm; /* 0: none; the world's is made before any message comes */
	int peer;
	uint64_t seq, digest;
};

struct gci_freed_comm {
	uint32_t id;
	uint64_t next_op;
};

/* Whether payload has checksums. AUTO: unless all ranks are at one machine's loopback addresses,
 * where its bytes go from memory to memory, and pass no card, cable or switch. */
enum gci_checksum { GCI_CHECKSUM_AUTO, GCI_CHECKSUM_ON, GCI_CHECKSUM_OFF };

/* On which links the loss of a connection is made up for. Within a cluster there is one to each
 * rank, and what ends it is the host's or the program's end; acknowledgements would only cost. */
enum gci_replay_where { GCI_REPLAY_AUTO, GCI_REPLAY_WAN, GCI_REPLAY_ALWAYS, GCI_REPLAY_OFF };

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
	int warm;               /* enum gci_warm_when */
	int pace;               /* enum gci_pace_how */
	uint64_t op_timeout_ns; /* waiting without any message for so long fails; GCI_NEVER */
	uint64_t floor_ns; /* and with a message under way, no less than that; 0: not watched */
	uint32_t window_nbytes; /* GCI_WINDOW_NBYTES; tests make it small, on all ranks */
	const struct gci_run_trace *trace; /* of all steps, comm/run.h; NULL: none */
	struct gci_spin spin;
};

struct gci_engine {
	int rank, size;     /* in the world */
	const char **hosts; /* [rank], owned by whoever made the engine */
	struct gci_tp *tp;
	struct gci_taps *taps; /* the transport's connections */
	struct gci_list comms; /* gcoll_comm.link */
	struct gci_comms by_id;
	struct gci_calls calls;
	struct gcoll_comm *world;
	uint32_t next_id; /* no communicator known here has this one, or a higher one */
	struct gci_early_op early[GCI_EARLY_OPS];
	struct gci_freed_comm freed[GCI_FREED_COMMS];
	uint32_t nearly, nfreed; /* so far: rings */

	const struct gci_table *table; /* of decisions, owned by the job; NULL: none */
	struct gci_settings settings;
	uint64_t dead_ns; /* silence of a connection; 0: never */
	int started;      /* some operation: connections may be open */

	struct gci_list requests; /* all that are not freed, gcoll_req.link */
	struct gcoll_req *spare;  /* freed ones of messages, the next one in `link.next` */
	unsigned nspare;
	uint32_t active;        /* of them under way */
	uint64_t nended;        /* so far */
	struct gci_list untold; /* over, but their callback was not called: gcoll_req.untold */
	int telling;            /* a callback is being called, by this thread: */
	pthread_t teller;

	struct gci_thread *thread; /* comm/thread.h; NULL: the program's calls make progress */
	int any_thread;            /* there is one, or was: calls may come from any thread */
	const void *caller;        /* atomic: the thread that is in a call; NULL: none is */
	unsigned ncalls;           /* of it, one in the other, by way of callbacks */
	struct gci_warm *warm;     /* comm/warm.h; NULL: nothing to warm up */
	struct gci_pacing *pacing; /* comm/pacing.h; NULL: nothing is paced */
	struct gci_loop *loop;     /* comm/loop.h: the program's own; NULL: none */
	struct gci_sched_cache cache;
	struct gci_scratch scratch;
	struct gci_recording recording;
	uint64_t activity;      /* grows whenever bytes come or go */
	uint64_t seen_activity; /* when waited_ns was last counted */
	int quiet;              /* nothing has come or gone in the last wait */
	uint64_t waited_ns;     /* in progress, without activity */
	uint64_t looked_ns;     /* waited_ns when comm/deadline.c last looked closer */
	uint64_t asked_ns;      /* waited_ns when comm/request.c last asked for all that it may */
	uint64_t asleep_ns;     /* since when the caller waits elsewhere; 0: it does not */
	int finalizing;
	int splitting; /* in gcoll_comm_split or gcoll_comm_dup */

	struct gci_ctl_failure failure; /* status 0: none yet */
	int has_verdict;                /* the failure is the launcher's word */
	uint64_t failed_ns;             /* when this rank found one itself */
	/* What the transport said while this rank waited for the others to leave. */
	struct gci_tp_failure parting;
	struct gci_control *ctl;     /* NULL without a launcher */
	struct gci_world *job;       /* comm/world.c */
	const struct gci_grid *grid; /* owned by the job; NULL without one */
	/* Connections that two ranks of a cluster need to use all their cards; NULL: 1. */
	unsigned (*lanes)(const struct gci_world *job, int a, int b);
};

/* NULL: out of memory. */
struct gci_engine *gci_engine_create(int rank, int size, const char **hosts);

/* The transport first; then all communicators and requests. NULL is legal. */
void gci_engine_free(struct gci_engine *e);

struct gci_tp_config gci_engine_tp_config(struct gci_engine *e);

/* How long to wait for other hosts that answer within `ns`, where the grid's links hold nothing up.
 * (dead_ns is the launcher's, which does the same.) */
uint64_t gci_engine_patience(const struct gci_engine *e, uint64_t ns);

/* Makes progress for up to timeout_ns; the failure's status, or 0. */
int gci_engine_progress(struct gci_engine *e, uint64_t timeout_ns);

/* This rank cannot go on: tells the launcher, ends all operations. The first call counts. `rank`
 * is the one to blame, -1 for none. */
void gci_engine_fail(struct gci_engine *e, int status, int rank, const char *fmt, ...)
	__attribute__((cold, format(printf, 4, 5)));

/* Before a failure that ends in GCI_CTL_SOMETHING_ELSE: the peer's own words for its operation may
 * come in time for the launcher's verdict. */
void gci_engine_ask_call(struct gci_engine *e, int peer, uint32_t comm, uint64_t op);

/* Out of memory in what other ranks take part in. Returns GCOLL_ERR_NOMEM. */
int gci_engine_nomem(struct gci_engine *e) __attribute__((cold));

/* Learns of the launcher's word, if there is one; the failure's status, or 0. */
int gci_engine_hear(struct gci_engine *e);
static inline int gci_engine_check(struct gci_engine *e)
{
	return e->ctl ? gci_engine_hear(e) : e->failure.status;
}

/* The communicator with this number; NULL: it is not here. */
struct gcoll_comm *gci_engine_comm(const struct gci_engine *e, uint32_t id);

/* What is to be done after each look at the network. The caller has waited since `since_ns`; 0: not
 * worth counting. */
void gci_engine_after(struct gci_engine *e, uint64_t since_ns);

/* How long the caller may wait elsewhere, at most, before it calls gci_engine_progress again. If
 * not 0, the time from now until then counts as waiting. */
uint64_t gci_engine_sleep_ns(struct gci_engine *e);

/* False for a moment after a failure: until the launcher's word on who failed first is here, or is
 * not to be waited for any longer. True without a failure. */
int gci_engine_settled(const struct gci_engine *e);

/* For a rank that waits for the others to leave: whom the transport has lost has left or died, and
 * the launcher's word on it is due; else whoever still needs this rank must know. */
void gci_engine_check_parting(struct gci_engine *e);

/* Waits for that, `timeout_ns` at most. */
void gci_engine_await_verdict(struct gci_engine *e, uint64_t timeout_ns);

#endif
