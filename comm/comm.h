/* SPDX-License-Identifier: MIT
 * The communicator: a group of ranks with settings and numbers of operations of its own.
 * gcoll_init() (job/world.c) makes the world's from the launcher's environment, gcoll_comm_split()
 * others from it; tests make one over any transport:
 *
 *	gci_comm_create(&c, rank, &topo, hosts);
 *	config = gci_comm_tp_config(c->engine);
 *	gci_mem_create(&c->engine->tp, net, &config);
 *	gcoll_bcast(buf, n, GCOLL_BYTE, 0, c);
 *	gci_engine_free(c->engine);			// frees all */
#ifndef GCI_COMM_COMM_H
#define GCI_COMM_COMM_H

#include "base/prng.h"
#include "collectives/tuner/decide.h"
#include "comm/engine.h"

#define GCI_SEEN_OPS      64 /* a peer's message is compared with so many operations back */
#define GCI_MESSAGE_SLOTS 256

/* What may choose for an operation that is set to "auto". */
enum gci_tuning {
	GCI_TUNING_OFF,     /* rough estimates only */
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
	struct gci_list link; /* engine->comms.all */
	struct gci_hash_node by_id;
	uint32_t id;
	int rank, size;
	int *ranks; /* of the world, by rank here; NULL: the same */
	struct gci_topo topo;
	uint64_t topo_digest;
	struct gci_choice choice[GCI_NKINDS];
	int fixed_order;
	int compares; /* results of allreduces, comm/compare.h */
	enum gci_tuning tuning;
	struct gci_decider decider;    /* made when it is first asked */
	struct gci_planning *planning; /* NULL: its thread does not run */
	/* Bcasts and multicasts are parts of a stream of so many bytes, and are run as one operation
	 * of that length is; 0: by their own length. The same on every rank. */
	uint64_t stream_nbytes;
	unsigned warms; /* kinds to warm up for, a bit each (flow/warm.h); 0: the usual ones */

	uint64_t next_op;
	struct gci_list ops; /* in flight, gci_op.link */
	uint32_t nrequests;
	struct gci_seen_op seen[GCI_SEEN_OPS]; /* [operation's number modulo] */

	/* comm/message.c */
	struct gci_hash counters;                    /* of messages by peer and tag */
	struct gci_list messages[GCI_MESSAGE_SLOTS]; /* under way: a hash table */
	struct gci_seen_message seen_messages[GCI_MESSAGE_SLOTS];
};

/* The world's. Takes over *topo. hosts[rank] must live as long as the communicator. */
int gci_comm_create(gcoll_comm **c, int rank, struct gci_topo *topo, const char **hosts);

/* For the transport of a world: what it asks and tells its engine. */
struct gci_tp_config gci_comm_tp_config(struct gci_engine *e);

/* The one with this number; NULL: it is not here. */
static inline gcoll_comm *gci_comm_find(const struct gci_engine *e, uint32_t id)
{
	/* Numbers are mixed one to one. */
	struct gci_hash_node *n = gci_hash_first(&e->comms.by_id, gci_mix64(id));

	return n ? gci_container(n, gcoll_comm, by_id) : NULL;
}

/* gcoll_comm_split in two halves, so that one thread can do it for several ranks.
 *
 *	rc = gci_split_start(&s, c, "split", color, key);
 *	if (!rc)
 *		rc = gcoll_wait(&s.req);
 *	rc = gci_split_end(&s, rc, &out);		// in any case */
struct gci_vote {
	int64_t color, key;
	uint64_t next_id;
	int64_t rank;
};

struct gci_split {
	gcoll_comm *parent;
	gcoll_req *req;
	struct gci_vote mine, *votes; /* [rank] */
};

int gci_split_start(struct gci_split *s, gcoll_comm *c, const char *name, int color, int key);

/* `status` is the request's. Returns it, or that of making the communicator. */
int gci_split_end(struct gci_split *s, int status, gcoll_comm **out);

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

#endif
