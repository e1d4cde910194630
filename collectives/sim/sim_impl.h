/* SPDX-License-Identifier: MIT
 * The simulator's parts: wire.c (how long bytes take), and sim.c (which SEND goes with which RECV,
 * what each rank may do next, who talks to whom, and the whole). */
#ifndef GCI_COLLECTIVES_SIM_SIM_IMPL_H
#define GCI_COLLECTIVES_SIM_SIM_IMPL_H

#include "base/hash.h"
#include "collectives/blocks/windows.h"
#include "collectives/models/isend.h"
#include "collectives/schedule/ready.h"
#include "collectives/sim/events.h"
#include "collectives/sim/sim.h"

/* Schedules of all ranks for windows of one shape. */
struct gci_shape {
	struct gci_sched *sched; /* [rank] */
	uint32_t **match;        /* [rank][step]: of a message, the peer's step */
	uint32_t **number;       /* [rank][step]: of a message, its number among the receiver's */
	uint32_t *nmessages;     /* [rank]: that it receives */
	uint64_t nsteps;
};

/* A message under way; kept by its receiver. */
struct gci_sim_message {
	uint64_t credit_ns; /* when the sender knows of the receiver; GCI_NEVER: not asked for */
	uint64_t nbytes, unsent, unarrived;
	uint64_t end_ns; /* of what has arrived so far */
	struct gci_pair *pair;
	struct gci_sim_message *next; /* of the same pair, after it */
	uint32_t window, send_step, recv_step;
	unsigned offered : 1, asked : 1, queued : 1, handed : 1, owes : 1, arrived : 1;
};

/* For those who trace: when its two steps could start, when it was allowed to go, when its first bytes left
 * and came, and its last. */
struct gci_sim_times {
	uint64_t offered_ns, asked_ns, queued_ns, tx_ns, rx_ns, came_ns;
};

/* One rank's messages to another. */
struct gci_pair {
	struct gci_hash_node node;
	int src, dst;
	const struct gci_simnet_link *link;
	int link_no;            /* of the tables by pair of clusters */
	const int *legs, *back; /* there and back: the topology's wires that the bytes pass */
	int nlegs, nback;
	uint64_t back_ns;    /* the way back */
	uint64_t byte_time;  /* of its connections together: in 2^-20 ns */
	uint64_t free_ns;    /* its connections can take more from then on */
	uint64_t eager_left; /* allowance */
	uint64_t sent;       /* bytes, ever */
	uint64_t queued;     /* bytes that may be sent and have not been */
	uint64_t open_ns;    /* cold: when its connections are there */
	uint64_t window;     /* cold: bytes that they send in a round trip */
	uint64_t
		round_ns; /* cold: the end of the one under way; then until the next SEND none is */
	uint64_t round_nbytes;  /* cold: sent in it */
	uint64_t unsent_handed; /* bytes that the kernel has, not the NIC */
	struct gci_isends isends;
	struct gci_sim_message *head, *tail, *next_handed;
	struct gci_pair *next_active; /* with messages to send: a ring per rank */
	int active, weight;
};

#define GCI_SLAB_PAIRS 64

struct gci_pair_slab {
	struct gci_pair_slab *next;
	int n;
	struct gci_pair pairs[GCI_SLAB_PAIRS];
};

/* One instance of a schedule. */
struct gci_sim_instance {
	struct gci_ready ready;
	uint32_t window;
	int busy;
};

/* A SEND that waits for its time. */
struct gci_sim_held {
	uint64_t due_ns;
	uint32_t window, step;
};

struct gci_sim_rank {
	struct gci_sim_times **times;      /* [window][number]; NULL without a trace */
	struct gci_sim_message **messages; /* [window][number]; NULL: none yet */
	uint32_t started, ended;           /* windows */
	uint64_t cpu_ns;                   /* free from then on */
	uint64_t tx_ns, rx_ns;             /* so are the NIC's directions */
	uint64_t byte_time;                /* of the NIC: in 2^-20 ns */
	uint64_t port_ns;                  /* what the buffer in front of it holds */
	uint64_t tx_nbytes, rx_nbytes;     /* in all */
	struct gci_pair *ring, *ring_last; /* connections that want to send; the next one first */
	uint32_t wan_peers;                /* that its schedule sends to; 0: not counted */
	int nic_waits;                     /* an event is on its way */
	uint64_t nic_at;                   /* for when */
	struct gci_sim_held *held;         /* those from held_at on wait, the next one first */
	size_t held_at, nheld, held_cap;
	uint64_t wakes_ns; /* an event for them is on its way for then */
	uint64_t given_ns; /* until then the NIC has what it was given */
	struct gci_sim_instance *instances;
	int ninstances; /* windows that are under way at once */
};

struct gci_sim {
	const struct gci_simnet *net;
	const struct gci_sim_op *op;
	struct gci_coll coll; /* with stride or parts */
	struct gci_windows windows;
	uint32_t nwindows;  /* simulated; more are like those in the middle */
	uint32_t at_once;   /* on the rank that has the fewest */
	uint64_t window_ns; /* from when one is due to when the next is; 0: SENDs are not timed */
	struct gci_shape *shapes;
	int *shape_of; /* [window] */
	int nshapes;
	struct gci_sim_rank *ranks;
	struct gci_events events;
	struct gci_hash pairs;       /* by (src, dst) */
	struct gci_pair_slab *slabs; /* where they live */
	uint64_t *wire_free_ns;      /* [wire] */
	uint64_t *wire_coming;       /* [wire]: bytes on their way to it */
	uint64_t *wire_nbytes;       /* [wire]: that crossed it */
	uint64_t *wire_byte_time;    /* [wire]: in 2^-20 ns */
	uint64_t *queue_ns;          /* [wire]: what its buffer holds; 0: endless */
	uint64_t *even_bps;       /* [from * nranks + to]: of what goes at even rates; else NULL */
	const uint64_t *pace_bps; /* those, or the operation's */
	uint64_t *pair_byte_time; /* [from * nclusters + to]: in 2^-20 ns */
	unsigned char *sends_to;  /* [rank * nclusters + cluster] */
	uint64_t now;
	uint64_t *window_end_ns; /* [window]: on the last rank */
	struct gci_sim_result *r;
	int failed;
};

/* nbytes at `byte_time`; 0 means at once. */
static inline uint64_t gci_sim_time(uint64_t nbytes, uint64_t byte_time)
{
	return (uint64_t)((unsigned __int128)nbytes * byte_time >> 20);
}

static inline uint64_t gci_sim_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline const struct gci_sched *gci_sim_sched(const struct gci_sim *m, int rank, uint32_t w)
{
	return &m->shapes[m->shape_of[w]].sched[rank];
}

/* ---- what each rank may do next */

/* A step ends then. */
void gci_sim_end_step(struct gci_sim *m, int rank, uint32_t window, uint32_t step, uint64_t ns);

/* All of it has come, and it was asked for: the receiver's step ends. */
void gci_sim_received(struct gci_sim *m, struct gci_sim_message *msg);

/* Its number among those of its receiver. */
static inline uint32_t gci_sim_number(const struct gci_sim *m, const struct gci_sim_message *msg)
{
	return (uint32_t)(msg - m->ranks[msg->pair->dst].messages[msg->window]);
}

/* NULL without a trace. */
static inline struct gci_sim_times *gci_sim_times(
	const struct gci_sim *m, const struct gci_sim_message *msg)
{
	struct gci_sim_times *t = m->ranks[msg->pair->dst].times[msg->window];

	return t ? &t[gci_sim_number(m, msg)] : NULL;
}

void gci_sim_trace(struct gci_sim *m, int rank, uint32_t window, uint32_t step, uint64_t ready_ns,
	uint64_t from_ns, uint64_t to_ns);

/* ---- wire.c */

/* The sender offers it, the receiver asks for it, the sender has its credit. */
void gci_sim_offer(struct gci_sim *m, struct gci_sim_message *msg);
void gci_sim_ask(struct gci_sim *m, struct gci_sim_message *msg);
void gci_sim_credit(struct gci_sim *m, struct gci_sim_message *msg);

void gci_sim_nic(struct gci_sim *m, int rank);
void gci_sim_enter_wire(struct gci_sim *m, const struct gci_pair *p, const struct gci_ev *e);
void gci_sim_arrive(struct gci_sim *m, const struct gci_ev *e);
void gci_sim_arrived(struct gci_sim *m, struct gci_sim_message *msg);

#endif
