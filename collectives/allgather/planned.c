/* SPDX-License-Identifier: MIT
 * Allgathers after a plan: Min3-Allgather and N broadcast trees (Gupta 2007). Every rank makes the
 * whole plan and emits its own part. Cost: as the plan says; for blocks of m bytes, pools of h
 * hosts and p other hosts' blocks coming in over slow links of bandwidth b about p/h (L + m/b), as
 * h hosts take in one each at a time.
 *
 * Order, as 6.1 has it: a rank's sends go in the plan's order, its receives are posted in that
 * order. What overlaps in the plan may overlap: a step waits only for steps of this rank that in
 * the plan are over when it is due. A SEND over a long link is over when its acknowledgement is
 * back, not when its NIC is free, and the RECV of such a message is due one delay early: else each
 * would cost a round trip more.
 *
 * No deadlock under rendezvous: a step that is waited for, by order or by data, belongs to a
 * transfer that begins earlier in the plan than that of the step that waits. Of the transfers that
 * have not ended the earliest has both its steps ready. */
#include "collectives/allgather/allgather.h"
#include "collectives/allgather/plan.h"

#include "base/mem.h"

#include <stdlib.h>

/* A step of this rank. */
struct own {
	const struct gci_transfer *t;
	int sends, far;
	uint64_t due_ns, over_ns;
	uint32_t step;
};

static int compare_own(const void *a, const void *b)
{
	const struct own *x = a, *y = b;

	if (x->t->start_ns != y->t->start_ns)
		return x->t->start_ns < y->t->start_ns ? -1 : 1;
	return x->t < y->t ? -1 : x->t > y->t;
}

static struct own own_of(const struct gci_net *net, const struct gci_transfer *t, int rank)
{
	const struct gci_wire *path = gci_net_path(net, t->from, t->to);
	struct own o = {.t = t, .sends = t->from == rank, .far = path->far, .due_ns = t->start_ns};

	if (o.sends)
		o.over_ns = o.far ? t->end_ns + path->latency_ns : t->free_ns;
	else
		o.over_ns = t->end_ns;
	if (!o.sends && o.far)
		o.due_ns -= t->start_ns < path->latency_ns ? t->start_ns : path->latency_ns;
	return o;
}

/* The latest step waits for the last one before it, of those with this direction and reach, that
 * is over when it is due: that one has waited for those before. */
static void wait_for(struct gci_builder *b, const struct own *own, size_t k, int sends, int far)
{
	size_t i;

	for (i = k; i-- > 0;)
		if (own[i].sends == sends && own[i].far == far && own[i].over_ns <= own[k].due_ns) {
			gci_after(b, own[i].step);
			return;
		}
}

static void emit_one(struct gci_builder *b, const struct gci_coll *c, struct own *o)
{
	int block = o->t->block;
	uint32_t tag = gci_tag(0, (uint32_t)block);

	if (!o->sends)
		o->step = gci_recv(b, o->t->from, tag, gci_out_block(c, b->rank, block));
	else if (block == b->rank)
		o->step = gci_send(b, o->t->to, tag, gci_in_block(c, b->rank, block));
	else
		o->step = gci_send(b, o->t->to, tag, gci_out_block(c, b->rank, block));
}

static void emit_part(struct gci_builder *b, const struct gci_coll *c, const struct gci_net *net,
	const struct gci_plan *plan, int half_duplex)
{
	struct own *own;
	size_t n = 0, i;
	int far;

	for (i = 0; i < plan->n; i++)
		n += plan->transfers[i].from == b->rank || plan->transfers[i].to == b->rank;
	own = gci_calloc(n, sizeof(*own));
	if (!own) {
		b->failed = 1;
		return;
	}
	for (i = 0, n = 0; i < plan->n; i++)
		if (plan->transfers[i].from == b->rank || plan->transfers[i].to == b->rank)
			own[n++] = own_of(net, &plan->transfers[i], b->rank);
	qsort(own, n, sizeof(*own), compare_own);
	for (i = 0; i < n; i++) {
		emit_one(b, c, &own[i]);
		for (far = 0; far < 2; far++) {
			wait_for(b, own, i, own[i].sends, far);
			if (half_duplex)
				wait_for(b, own, i, !own[i].sends, far);
		}
	}
	gci_free(own);
}

static int make_plan(const struct gci_coll *c, const struct gci_net *net, enum gci_planner how,
	int half_duplex, struct gci_plan *plan)
{
	uint64_t *nbytes = gci_calloc((size_t)net->nhosts, sizeof(*nbytes));
	int i, rc = GCOLL_ERR_NOMEM;

	for (i = 0; nbytes && i < net->nhosts; i++)
		nbytes[i] = gci_block_len(c, i, i) * c->esize;
	if (nbytes)
		rc = gci_plan_make(plan, net, nbytes, how, half_duplex);
	gci_free(nbytes);
	return rc;
}

static void emit(
	struct gci_builder *b, const struct gci_coll *c, enum gci_planner how, int half_duplex)
{
	struct gci_net net;
	struct gci_plan plan = {0};

	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	if (gci_net_of(&net, c->topo) || make_plan(c, &net, how, half_duplex, &plan))
		b->failed = 1;
	else
		emit_part(b, c, &net, &plan, half_duplex);
	gci_plan_free(&plan);
	gci_net_free(&net);
}

void gci_emit_allgather_min3(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_PLAN_MIN3, 0);
}

void gci_emit_allgather_min3_half(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_PLAN_MIN3, 1);
}

void gci_emit_allgather_trees_greedy(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_PLAN_TREES_GREEDY, 0);
}

void gci_emit_allgather_trees_annealed(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, GCI_PLAN_TREES_ANNEALED, 0);
}
