/* SPDX-License-Identifier: MIT
 * Packings as schedules. All ranks walk through all segments in the same order, give each its column by
 * smooth weighted turns and its first host in each class by who has sent least, and note their own steps.
 *
 * Each step has a key, a time at which it may begin for all to end when the packing says: from a timetable of all
 * hosts' messages, where there is one, else the latest, by how deep trees are. Where SENDs are timed it is the earliest,
 * too (the latest, less a 32nd of the whole time). A rank emits its
 * steps by their keys, and a SEND waits for those whose keys are a good deal earlier: else what is there from the
 * beginning, such as the parts of leaves, would take the NIC from what has to go on now. Whatever a step waits for
 * has an earlier key, on this rank or another, so nobody waits for ever.
 *
 * Operations that collect (reduce, gather, reduce_scatter) are those that spread on the network with all
 * arrows turned, with all messages turned. */
#include "base/mem.h"
#include "collectives/planner/emission.h"

#include <stdlib.h>

#define EARLY    32     /* a part of the whole time by which timed SENDs go before they are due */
#define EARLY_NS 500000 /* and that at least: who sleeps may wake up as late */
#define SLACK    8      /* a part of the whole time by which SENDs of sums may be out of order */

static int compare_acts(const void *a, const void *b)
{
	const struct gci_act *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* The latest of the SENDs before this one whose key is earlier by `slack`; moves `*at` on. */
static void wait_for_earlier(struct gci_emission *e, const struct gci_act *a, double slack,
	const uint32_t *sent, const double *keys, size_t nsent, size_t *at)
{
	while (*at < nsent && keys[*at] <= a->key - slack)
		++*at;
	if (*at)
		gci_after(e->b, sent[*at - 1]);
}

/* By their keys. */
static void emit_acts(struct gci_emission *e)
{
	double slack = e->ns / SLACK, early = e->start_ns ? 0 : gci_later(e->ns / EARLY, EARLY_NS);
	uint32_t *sent = gci_calloc(e->nacts, sizeof(*sent));
	double *keys = gci_calloc(e->nacts, sizeof(*keys));
	size_t i, nsent = 0, at = 0;

	if (e->nacts)
		qsort(e->acts, e->nacts, sizeof(*e->acts), compare_acts);
	for (i = 0; sent && keys && i < e->nacts; i++) {
		const struct gci_act *a = &e->acts[i];

		switch (a->kind) {
		case GCI_ACT_RECV:
			gci_recv(e->b, a->peer, a->tag, a->dst);
			break;
		case GCI_ACT_RECV_REDUCE:
			gci_recv_reduce(e->b, a->peer, a->tag, a->dst, a->src, a->swapped);
			break;
		case GCI_ACT_REDUCE:
			gci_reduce(e->b, a->dst, a->src, a->swapped);
			break;
		case GCI_ACT_COPY:
			gci_copy(e->b, a->dst, a->src);
			break;
		case GCI_ACT_SEND:
			sent[nsent] = gci_send(e->b, a->peer, a->tag, a->src);
			keys[nsent++] = a->key;
			if (e->p->timed)
				gci_not_before(e->b, 1 + (uint64_t)gci_later(a->key - early, 0));
			if (gci_kind_reduces(e->c->kind))
				wait_for_earlier(e, a, slack, sent, keys, nsent - 1, &at);
			break;
		}
	}
	e->b->failed |= !sent || !keys;
	gci_free(sent);
	gci_free(keys);
}

int gci_emission_pass(struct gci_emission *e)
{
	if (gci_packed_shape(e->c->kind) != GCI_PATHS)
		return gci_emission_pass_trees(e);
	gci_emission_pass_paths(e);
	return 0;
}

void gci_packed_emit(struct gci_builder *b, const struct gci_coll *c, const struct gci_packed *p)
{
	struct gci_emission e;

	if (gci_emission_start(&e, b, c, p) || gci_emission_pass(&e))
		b->failed = 1;
	else
		emit_acts(&e);
	gci_emission_end(&e);
}
