/* SPDX-License-Identifier: MIT
 * The communicator: operations in flight over one transport. gcoll_init() (comm/world.c) makes one
 * from the launcher's environment; tests make one over any transport:
 *
 *	gci_comm_create(&c, rank, &topo, hosts, &e);
 *	config = gci_comm_tp_config(c);
 *	gci_mem_create(&tp, net, &config);
 *	gci_comm_attach(c, tp);
 *	gcoll_bcast(buf, n, GCOLL_BYTE, 0, c);
 *	gci_comm_free(c);				// frees tp too
 */
#ifndef GCI_COMM_COMM_H
#define GCI_COMM_COMM_H

#include "collectives/coll.h"
#include "comm/control_client.h"
#include "comm/run.h"
#include "comm/scratch.h"

#define GCI_WINDOW_NBYTES (32u << 20) /* of a message, that one schedule covers */
#define GCI_MAX_INSTANCES 3           /* of a schedule, at once, for a longer message */
#define GCI_CACHED_SCHEDS 8
#define GCI_SEEN_OPS      64 /* a peer's message is compared with so many operations back */
#define GCI_LAN_EAGER     (64u << 10)
#define GCI_WAN_EAGER     (1u << 20)

/* What gcoll_comm_set() chose for one kind of operation. */
struct gci_choice {
	const struct gci_algorithm *algorithm;
	uint32_t senders;
	uint64_t segment_nbytes;
};

struct gci_cached_sched {
	const struct gci_algorithm *algorithm;
	struct gci_coll coll;
	struct gci_sched sched;
	uint64_t used; /* when last; 0: the slot is empty */
	uint32_t users;
	int temporary; /* not in the cache */
};

/* The signature of one operation: as this rank called it, or as a peer did who was here first. */
struct gci_seen_op {
	uint64_t op, digest;
	int peer, set;
};

struct gcoll_comm {
	int rank, size;
	struct gci_topo topo;
	const char **hosts; /* [rank], owned by whoever made the communicator */
	struct gci_tp *tp;
	struct gci_choice choice[GCI_NKINDS];
	uint32_t streams;        /* per WAN peer; 0: by the grid file, or GCI_DEFAULT_STREAMS */
	uint64_t sockbuf_nbytes; /* 0: the kernel's autotuning */
	uint64_t op_timeout_ns;  /* waiting without any message for so long fails; GCI_NEVER */
	uint64_t dead_ns;        /* silence of a connection; 0: never */

	uint64_t next_op;
	struct gci_list ops; /* in flight, gcoll_req.link */
	struct gci_cached_sched cache[GCI_CACHED_SCHEDS];
	uint64_t cache_clock;
	struct gci_scratch scratch;
	struct gci_seen_op seen[GCI_SEEN_OPS]; /* [operation's number modulo] */
	uint64_t activity;                     /* grows with every message that comes or goes */
	uint64_t seen_activity;                /* when waited_ns was last counted */
	uint64_t waited_ns;                    /* in progress, without activity */
	int finalizing;

	struct gci_ctl_failure failure; /* status 0: none yet */
	struct gci_control *ctl;        /* NULL without a launcher */
	struct gci_world *world;        /* comm/world.c */
};

struct gcoll_req {
	gcoll_comm *comm;
	struct gci_list link;
	struct gci_coll coll; /* of the whole message */
	struct gci_choice choice;
	enum gcoll_type type;
	enum gcoll_op op;
	uint64_t number, digest;
	char *in, *out;
	uint64_t window; /* elements */
	uint64_t nwindows, started, ended;
	int status, over, filling;
	struct gci_run runs[GCI_MAX_INSTANCES];
	struct gci_cached_sched *scheds[GCI_MAX_INSTANCES]; /* of each run; NULL: the run is idle */
};

/* Takes over *topo. hosts[rank] must live as long as the communicator. */
int gci_comm_create(gcoll_comm **c, int rank, struct gci_topo *topo, const char **hosts);

/* The transport's configuration for this communicator; epoch 1. */
struct gci_tp_config gci_comm_tp_config(gcoll_comm *c);

void gci_comm_attach(gcoll_comm *c, struct gci_tp *tp);
void gci_comm_free(gcoll_comm *c);

/* Starts an operation; `coll` lacks algorithm parameters and topology. `in` and `out` are what the
 * schedule's IN and OUT stand for. On failure *req is NULL and the status is returned. */
int gci_comm_start(gcoll_comm *c, const struct gci_coll *coll, enum gcoll_type type,
	enum gcoll_op op, void *in, void *out, gcoll_req **req);

/* Makes progress for up to timeout_ns; the communicator's failure status, or 0. */
int gci_comm_progress(gcoll_comm *c, uint64_t timeout_ns);

/* This rank cannot go on: tells the launcher, ends all operations. The first call counts. `rank`
 * is the one to blame, -1 for none. */
void gci_comm_fail(gcoll_comm *c, int status, int rank, const char *text);

/* After a failure: waits a moment for the launcher's word on who failed first. */
void gci_comm_await_verdict(gcoll_comm *c);

/* Sets the calling thread's gcoll_last_error(); returns status. */
int gci_comm_error(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The bytes that one operation moves between clusters, summed over all ranks' schedules; and the
 * largest number of bytes that any one rank puts out or takes in. For benchmarks: O(P steps). */
int gci_comm_traffic(gcoll_comm *c, enum gci_kind kind, uint64_t count, uint32_t esize, int root,
	uint64_t *wan_nbytes, uint64_t *nic_nbytes);

#endif
