/* SPDX-License-Identifier: MIT
 * Multicasts: bcasts among some of the ranks, on topologies of their own. Each has an operation's
 * number, which the ranks outside of it skip. */
#include "base/mem.h"
#include "base/prng.h"
#include "comm/collective.h"

#include <inttypes.h>
#include <stdio.h>

struct cast {
	struct gci_op op;
	struct gci_topo topo; /* of the root and its destinations, in the order of ranks */
	int *ranks;           /* of the world */
	int member;           /* this rank is one */
};

struct multicasts {
	gcoll_req req;
	struct cast *casts;
	int n, left, status;
};

static struct multicasts *of(gcoll_req *r)
{
	return gci_container(r, struct multicasts, req);
}

static void on_done(struct gci_op *op, int status)
{
	struct multicasts *v = op->user;

	if (status && !v->status)
		v->status = status;
	if (!--v->left)
		gci_req_end(&v->req, v->status);
}

static int start(gcoll_req *r)
{
	struct multicasts *v = of(r);
	gcoll_comm *c = r->comm;
	uint64_t first = c->next_op;
	int i, rc = 0;

	/* Those of others, too: what one rank refuses all must refuse, or their numbers differ. */
	for (i = 0; i < v->n && !rc; i++)
		rc = gci_op_prepare(&v->casts[i].op);
	if (rc)
		return rc;
	c->next_op += (uint64_t)v->n;
	v->status = 0;
	v->left = 1; /* this function: no cast ends the request before all have begun */
	for (i = 0; i < v->n; i++) {
		struct gci_op *op = &v->casts[i].op;
		int member = v->casts[i].member;

		op->number = first + (uint64_t)i;
		if (member)
			gci_recording_count(c->engine, &op->coll);
		v->left++;
		/* Who is not in it stands for it, too: others may call something else. */
		if (!member)
			gci_op_note(op);
		rc = member ? gci_op_start(op) : gci_op_see(c, op->number, op->digest);
		if (rc || !member) /* the engine failed: those begun end by themselves */
			on_done(op, rc);
	}
	if (!--v->left)
		gci_req_end(r, v->status);
	return 0;
}

static void drop(gcoll_req *r)
{
	struct multicasts *v = of(r);
	int i;

	for (i = 0; v->casts && i < v->n; i++) {
		gci_op_drop(&v->casts[i].op);
		gci_sched_cache_forget(&r->comm->engine->cache, &v->casts[i].topo);
		gci_topo_free(&v->casts[i].topo);
		gci_free(v->casts[i].ranks);
	}
	gci_free(v->casts);
}

static void name(const gcoll_req *r, char out[GCI_SIGNATURE_NBYTES])
{
	const struct multicasts *v = gci_container(r, const struct multicasts, req);

	snprintf(out, GCI_SIGNATURE_NBYTES, "%d multicast%s", v->n, v->n == 1 ? "" : "s");
}

static const struct gci_req_ops multicast_ops = {start, drop, name, NULL};

static int check(const struct gcoll_multicast *m, const gcoll_comm *c)
{
	int i, rc = gci_check_type(m->type, m->count);

	if (!rc)
		rc = gci_check_root("root", m->root, c);
	if (!rc && m->ndests < 0)
		rc = gci_comm_error(GCOLL_ERR_INVAL, "ndests %d, expected 0 or more", m->ndests);
	if (!rc && m->ndests && !m->dests)
		rc = gci_comm_error(GCOLL_ERR_INVAL, "dests is NULL");
	for (i = 0; i < m->ndests && !rc; i++)
		rc = gci_check_root("dest", m->dests[i], c);
	return rc;
}

/* The members in the order of ranks, as parent's ranks; how many, or -1 if one is named twice. */
static int list_members(const struct gcoll_multicast *m, int size, int *ranks)
{
	int i, n = 0;

	for (i = 0; i < size; i++)
		ranks[i] = 0;
	ranks[m->root] = 1;
	for (i = 0; i < m->ndests; i++) {
		if (ranks[m->dests[i]])
			return -1;
		ranks[m->dests[i]] = 1;
	}
	for (i = 0; i < size; i++)
		if (ranks[i])
			ranks[n++] = i;
	return n;
}

static int buffer_of(const struct gcoll_multicast *m, struct cast *cast)
{
	struct gci_op *op = &cast->op;

	if (!cast->member)
		return 0;
	if ((m->count && !m->buf) || m->buf == GCOLL_IN_PLACE)
		return gci_comm_error(GCOLL_ERR_INVAL, "buf is %s",
			m->buf ? "GCOLL_IN_PLACE, which is not for multicasts" : "NULL");
	if (op->rank == op->coll.root)
		op->in = m->buf;
	else
		op->out = m->buf;
	return 0;
}

static int fill(struct multicasts *v, const struct gcoll_multicast *m, struct cast *cast)
{
	gcoll_comm *c = v->req.comm;
	int *ranks = gci_calloc((size_t)c->size, sizeof(*ranks)), i, n;

	cast->ranks = ranks;
	if (!ranks)
		return GCOLL_ERR_NOMEM;
	n = list_members(m, c->size, ranks);
	if (n < 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "a rank is named twice among root and dests");
	if (gci_topo_sub(&cast->topo, &c->topo, ranks, n))
		return GCOLL_ERR_NOMEM;
	cast->op = (struct gci_op){.comm = c,
		.ranks = ranks,
		.digest_more = gci_topo_digest(&cast->topo),
		.name = "multicast",
		.type = m->type,
		.coll = {.kind = GCI_BCAST,
			.topo = &cast->topo,
			.count = m->count,
			.esize = (uint32_t)gcoll_type_size(m->type)},
		.done = on_done,
		.user = v};
	for (i = 0; i < n; i++) {
		if (ranks[i] == m->root)
			cast->op.coll.root = i;
		if (ranks[i] == c->rank) {
			cast->op.rank = i;
			cast->member = 1;
		}
		ranks[i] = gci_comm_world_rank(c, ranks[i]);
		cast->op.digest_more = gci_digest(cast->op.digest_more, (uint64_t)ranks[i]);
	}
	return buffer_of(m, cast);
}

static int make_multicasts(
	const struct gcoll_multicast *list, int n, gcoll_comm *c, gcoll_req **req)
{
	struct multicasts *v;
	int i, rc = 0;

	if (req)
		*req = NULL;
	if (!req || !c || (n && !list))
		return gci_comm_error(GCOLL_ERR_INVAL, "%s is NULL",
			!req ? "req"
			: !c ? "the communicator"
			     : "the list");
	if (n < 0)
		return gci_comm_error(GCOLL_ERR_INVAL, "%d multicasts, expected 0 or more", n);
	for (i = 0; i < n && !rc; i++)
		rc = check(&list[i], c);
	if (!rc)
		rc = gci_req_create(c, &multicast_ops, sizeof(*v), req);
	if (rc)
		return rc;
	v = of(*req);
	v->n = n;
	v->casts = gci_calloc((size_t)n, sizeof(*v->casts));
	if (!v->casts)
		return gci_req_give_up(req);
	for (i = 0; i < n && !rc; i++)
		rc = fill(v, &list[i], &v->casts[i]);
	if (rc == GCOLL_ERR_NOMEM)
		return gci_req_give_up(req);
	if (rc) {
		gci_req_drop(*req);
		*req = NULL;
	}
	return rc;
}

static int make_multicast(void *buf, uint64_t count, enum gcoll_type type, int root,
	const int *dests, int ndests, gcoll_comm *c, gcoll_req **req)
{
	const struct gcoll_multicast one = {buf, count, type, root, dests, ndests};

	return make_multicasts(&one, 1, c, req);
}

GCI_FORMS(multicast, (buf, count, type, root, dests, ndests, c), void *buf, uint64_t count,
	enum gcoll_type type, int root, const int *dests, int ndests, gcoll_comm *c)
GCI_FORMS(multicasts, (list, n, c), const struct gcoll_multicast *list, int n, gcoll_comm *c)
