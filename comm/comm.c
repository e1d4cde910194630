/* SPDX-License-Identifier: MIT */
#include "comm/comm.h"

#include "base/mem.h"
#include "comm/message.h"
#include "comm/op.h"

#include <inttypes.h>
#include <string.h>

static gcoll_comm *new_comm(struct gci_engine *e, uint32_t id, int rank, int size)
{
	gcoll_comm *c = gci_calloc(1, sizeof(*c));
	int i;

	if (!c)
		return NULL;
	c->id = id;
	if (gci_comms_add(&e->by_id, c)) {
		gci_free(c);
		return NULL;
	}
	c->engine = e;
	c->rank = rank;
	c->size = size;
	gci_list_init(&c->ops);
	for (i = 0; i < GCI_MESSAGE_SLOTS; i++)
		gci_list_init(&c->messages[i]);
	gci_list_push(&e->comms, &c->link);
	return c;
}

int gci_comm_create(gcoll_comm **out, int rank, struct gci_topo *topo, const char **hosts)
{
	struct gci_engine *e = gci_engine_create(rank, topo->nranks, hosts);
	gcoll_comm *c = e ? new_comm(e, 0, rank, topo->nranks) : NULL;
	int k;

	*out = c;
	if (!c) {
		gci_engine_free(e);
		return GCOLL_ERR_NOMEM;
	}
	c->topo = *topo;
	memset(topo, 0, sizeof(*topo));
	c->topo_digest = gci_topo_digest(&c->topo);
	for (k = 0; k < GCI_NKINDS; k++) {
		c->choice[k].how.algorithm = gci_algorithm_find((enum gci_kind)k, NULL);
		c->choice[k].automatic = 1;
	}
	c->tuning = GCI_TUNING_SIMULATE;
	e->world = c;
	e->next_id = 1;
	return 0;
}

void gci_comm_inherit(gcoll_comm *c, const gcoll_comm *from)
{
	memcpy(c->choice, from->choice, sizeof(c->choice));
	c->fixed_order = from->fixed_order;
	c->compares = from->compares;
	c->tuning = from->tuning;
}

/* What peers said on this communicator before it was made here. */
static void take_early(gcoll_comm *c)
{
	const struct gci_engine *e = c->engine;
	uint32_t i;

	for (i = 0; i < GCI_EARLY_OPS; i++) {
		const struct gci_early_op *o = &e->early[i];
		struct gci_seen_op *seen;
		uint64_t op = o->seq >> GCI_WINDOW_BITS;

		if (o->comm != c->id || o->seq & GCI_SEQ_MESSAGE)
			continue;
		seen = &c->seen[op % GCI_SEEN_OPS];
		if (!seen->set || seen->op < op)
			*seen = (struct gci_seen_op){op, o->digest, o->peer, 1};
	}
}

gcoll_comm *gci_comm_derive(gcoll_comm *parent, uint32_t id, const int *ranks, int size, int rank)
{
	gcoll_comm *c = new_comm(parent->engine, id, rank, size);
	int i;

	if (!c)
		return NULL;
	c->ranks = gci_calloc((size_t)size, sizeof(*c->ranks));
	if (!c->ranks || gci_topo_sub(&c->topo, &parent->topo, ranks, size)) {
		gci_comm_drop(c);
		return NULL;
	}
	for (i = 0; i < size; i++)
		c->ranks[i] = gci_comm_world_rank(parent, ranks[i]);
	c->topo_digest = gci_topo_digest(&c->topo);
	gci_comm_inherit(c, parent);
	take_early(c);
	return c;
}

void gci_comm_drop(gcoll_comm *c)
{
	struct gci_engine *e = c->engine;

	if (c->id) /* late messages may come */
		e->freed[e->nfreed++ % GCI_FREED_COMMS] =
			(struct gci_freed_comm){c->id, c->next_op};
	gci_list_del(&c->link);
	gci_comms_del(&e->by_id, c);
	gci_sched_cache_forget(&e->cache, &c->topo);
	gci_messages_free(c);
	gci_decider_free(&c->decider);
	gci_topo_free(&c->topo);
	gci_free(c->ranks);
	gci_free(c);
}

/* ---- do all ranks call the same? */

static int mismatch(gcoll_comm *c, uint64_t op, int peer)
{
	struct gci_engine *e = c->engine;
	char what[GCI_SIGNATURE_NBYTES] = "one thing";
	struct gci_sign own;

	if (gci_calls_find(&e->calls, c->id, op, &own))
		gci_sign_print(&own, what, sizeof(what));
	gci_engine_ask_call(e, peer, c->id, op);
	/* Either may be wrong: nobody is named as the one who failed. */
	gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
		"operation %" PRIu64
		": rank %d (%s) calls %s, rank %d (%s) " GCI_CTL_SOMETHING_ELSE,
		op, e->rank, e->hosts[e->rank], what, peer, e->hosts[peer]);
	return 0;
}

int gci_comm_check(gcoll_comm *c, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	uint64_t op = key->seq >> GCI_WINDOW_BITS;
	struct gci_seen_op *seen = &c->seen[op % GCI_SEEN_OPS];

	if (key->seq & GCI_SEQ_MESSAGE)
		return gci_message_check(c, peer, key, digest);
	if (!seen->set || seen->op < op)
		*seen = (struct gci_seen_op){op, digest, peer, 1};
	if (seen->op == op && seen->digest != digest && op < c->next_op)
		return mismatch(c, op, peer);
	return 1;
}

int gci_comm_see(gcoll_comm *c, uint64_t op, uint64_t digest)
{
	struct gci_seen_op *seen = &c->seen[op % GCI_SEEN_OPS];

	if (seen->set && seen->op == op && seen->digest != digest) {
		mismatch(c, op, seen->peer);
		return GCOLL_ERR_MISMATCH;
	}
	*seen = (struct gci_seen_op){op, digest, c->engine->rank, 1};
	return 0;
}
