/* SPDX-License-Identifier: MIT
 * The communicator: a group of ranks with settings and numbers of operations of its own.
 * gcoll_init() (comm/world.c) makes the world's from the launcher's environment, gcoll_comm_split()
 * others from it; tests make one over any transport:
 *
 *	gci_comm_create(&c, rank, &topo, hosts);
 *	config = gci_engine_tp_config(c->engine);
 *	gci_mem_create(&c->engine->tp, net, &config);
 *	gcoll_bcast(buf, n, GCOLL_BYTE, 0, c);
 *	gci_engine_free(c->engine);			// frees all */
#ifndef GCI_COMM_COMM_H
#define GCI_COMM_COMM_H

#include "collectives/tuner/decide.h"
#include "comm/engine.h"

#define GCI_SEEN_OPS         64 /* a peer's message is compared with so many operations back */
#define GCI_MESSAGE_SLOTS    256
#define GCI_SIGNATURE_NBYTES 200

/* What may choose for an operation that is set to "auto". */
enum gci_tuning {
	GCI_TUNING_OFF,     /* nothing: the kind's first algorithm that can */
	GCI_TUNING_TABLE,   /* the job's table, where it knows */
	GCI_TUNING_SIMULATE /* that, else a simulation */
};

/* What gcoll_comm_set() chose for one kind of operation. */
struct gci_choice {
	struct gci_candidate how;
	int automatic; /* another one where this cannot run */
};

/* The signature of one operation: as this rank called it, or as a peer did who was here first. */
struct gci_seen_op {
	uint64_t op, digest;
	int peer, set; /* the peer as a rank of the world */
};

/* A message of gcoll_send that has ended here: its other side may yet be heard of. */
struct gci_seen_message {
	uint64_t seq, nbytes;
	uint32_t tag;
	int peer, set;
};

struct gcoll_comm {
	struct gci_engine *engine;
	struct gci_list link;         /* engine->comms */
	struct gcoll_comm *same_slot; /* of engine->by_id */
	uint32_t id;
	int rank, size;
	int *ranks; /* of the world, by rank here; NULL: the same */
	struct gci_topo topo;
	uint64_t topo_digest;
	struct gci_choice choice[GCI_NKINDS];
	int fixed_order;
	int compares; /* results of allreduces, comm/compare.h */
	enum gci_tuning tuning;
	struct gci_decider decider; /* made when it is first asked */
	/* Bcasts and multicasts are parts of a stream of so many bytes, and are run as one operation
	 * of that length is; 0: by their own length. The same on every rank. */
	uint64_t stream_nbytes;
	unsigned warms; /* kinds to warm up for, a bit each (comm/warm.h); 0: the usual ones */

	uint64_t next_op;
	struct gci_list ops; /* in flight, gci_op.link */
	uint32_t nrequests;
	struct gci_seen_op seen[GCI_SEEN_OPS]; /* [operation's number modulo] */

	/* comm/message.c */
	struct gci_counters *counters;               /* of messages by peer and tag */
	struct gci_list messages[GCI_MESSAGE_SLOTS]; /* under way: a hash table */
	struct gci_seen_message seen_messages[GCI_MESSAGE_SLOTS];
};

/* The world's. Takes over *topo. hosts[rank] must live as long as the communicator. */
int gci_comm_create(gcoll_comm **c, int rank, struct gci_topo *topo, const char **hosts);

/* At once, whatever uses it. */
void gci_comm_drop(gcoll_comm *c);

/* The settings of one communicator, for another. */
void gci_comm_inherit(gcoll_comm *c, const gcoll_comm *from);

static inline int gci_comm_world_rank(const gcoll_comm *c, int rank)
{
	return c->ranks ? c->ranks[rank] : rank;
}

static inline const char *gci_comm_host(const gcoll_comm *c, int rank)
{
	return c->engine->hosts[gci_comm_world_rank(c, rank)];
}

/* Has this peer (a rank of the world) called what was called here? False after a failure. */
int gci_comm_check(gcoll_comm *c, int peer, const struct gci_tp_key *key, uint64_t digest);

/* Compares an operation that is begun here with peers who were here first, and stands for those
 * that come later. 0 or GCOLL_ERR_MISMATCH. */
int gci_comm_see(gcoll_comm *c, uint64_t op, uint64_t digest);

/* How to run `coll`, the whole message without parameters; `internal`: whatever was set. 0, or with
 * the reason in *why GCOLL_ERR_INVAL (what was chosen cannot run it) or GCOLL_ERR_NOMEM. */
int gci_comm_choose(gcoll_comm *c, const struct gci_coll *coll, int internal,
	struct gci_decision *d, const char **why);

/* Sets the calling thread's gcoll_last_error(); returns status. */
int gci_comm_error(int status, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

/* The bytes that one operation (kind, count, esize, root) moves between clusters, summed over all
 * ranks' schedules; and the largest number of bytes that any one rank puts out or takes in. For
 * benchmarks: O(P steps). */
int gci_comm_traffic(
	gcoll_comm *c, const struct gci_coll *coll, uint64_t *wan_nbytes, uint64_t *nic_nbytes);

#endif
