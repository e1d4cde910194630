/* SPDX-License-Identifier: MIT
 * The hosts while a plan is being made (Gupta 2007, 4), and the greedy loop of all planners. */
#include "collectives/allgather/planner.h"

#include "base/mem.h"

#include <string.h>

static int all_alike(const uint64_t *nbytes, int n)
{
	while (--n > 0 && nbytes[n] == nbytes[0])
		;
	return n == 0;
}

static void fill_times(struct gci_planning *w)
{
	int a, b, n = w->net->nclasses;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			w->time[b * n + a] =
				gci_path_transfer_ns(&w->net->path[a * n + b], w->nbytes[0]);
}

int gci_planning_start(struct gci_planning *w, const struct gci_net *net, const uint64_t *nbytes,
	struct gci_plan *plan, int half_duplex)
{
	size_t n = (size_t)net->nhosts, nc = (size_t)net->nclasses;
	int alike = all_alike(nbytes, net->nhosts);

	*w = (struct gci_planning){.net = net, .nbytes = nbytes, .plan = plan};
	w->send_at = gci_calloc(n, sizeof(*w->send_at));
	w->recv_at = half_duplex ? w->send_at : gci_calloc(n, sizeof(*w->recv_at));
	w->have_at = gci_calloc(n * n, sizeof(*w->have_at));
	w->time = alike ? gci_calloc(nc * nc, sizeof(*w->time)) : NULL;
	if (!w->send_at || !w->recv_at || !w->have_at || (alike && !w->time)) {
		gci_planning_end(w);
		return GCOLL_ERR_NOMEM;
	}
	if (alike)
		fill_times(w);
	gci_planning_reset(w);
	return 0;
}

void gci_planning_reset(struct gci_planning *w)
{
	size_t n = (size_t)w->net->nhosts, i;

	w->plan->n = 0;
	w->plan->end_ns = 0;
	memset(w->send_at, 0, n * sizeof(*w->send_at));
	memset(w->recv_at, 0, n * sizeof(*w->recv_at));
	for (i = 0; i < n * n; i++)
		w->have_at[i] = i % (n + 1) ? GCI_NEVER : 0;
}

void gci_planning_end(struct gci_planning *w)
{
	if (w->recv_at != w->send_at)
		gci_free(w->recv_at);
	gci_free(w->send_at);
	gci_free(w->have_at);
	gci_free(w->time);
	memset(w, 0, sizeof(*w));
}

int gci_planning_add(struct gci_planning *w, int block, int from, int to)
{
	const struct gci_wire *path = gci_net_path(w->net, from, to);
	struct gci_plan *plan = w->plan;
	struct gci_transfer t = {.from = from, .to = to, .block = block};

	if (gci_grow(&plan->transfers, &plan->cap, plan->n + 1, sizeof(t)))
		return GCOLL_ERR_NOMEM;
	t.start_ns = gci_later(gci_ready_at(w, block, from), w->recv_at[to]);
	t.free_ns = t.start_ns + gci_path_busy_ns(path, w->nbytes[block]);
	t.end_ns = t.start_ns + gci_path_transfer_ns(path, w->nbytes[block]);
	w->send_at[from] = t.free_ns;
	w->recv_at[to] = t.end_ns;
	w->have_at[(size_t)block * (size_t)w->net->nhosts + (size_t)to] = t.end_ns;
	plan->transfers[plan->n++] = t;
	plan->end_ns = gci_later(plan->end_ns, t.end_ns);
	return 0;
}

/* The first of the blocks whose bound is the least; -1: nothing is left. */
static int in_front(const struct gci_greedy *g)
{
	uint64_t least = GCI_NEVER;
	int i, block = -1;

	for (i = 0; i < g->nblocks; i++)
		if (g->bound[i] < least) {
			least = g->bound[i];
			block = i;
		}
	return block;
}

int gci_greedy_run(struct gci_greedy *g)
{
	int block, rc = 0;

	while (!rc && (block = in_front(g)) >= 0) {
		uint64_t end_ns = g->best(g->ctx, block);

		if (end_ns == g->bound[block] && end_ns != GCI_NEVER)
			rc = g->take(g->ctx, block, end_ns);
		else
			g->bound[block] = end_ns;
	}
	return rc;
}

static int has_bytes(const struct gci_net *net, const uint64_t *nbytes)
{
	int i;

	for (i = 0; i < net->nhosts; i++)
		if (nbytes[i])
			return net->nhosts > 1;
	return 0;
}

int gci_plan_make(struct gci_plan *plan, const struct gci_net *net, const uint64_t *nbytes,
	enum gci_planner how, int half_duplex)
{
	struct gci_pools pools;
	struct gci_planning w;
	int rc;

	memset(plan, 0, sizeof(*plan));
	if (!has_bytes(net, nbytes))
		return 0;
	rc = gci_net_pools(&pools, net);
	if (rc)
		return rc;
	rc = gci_planning_start(&w, net, nbytes, plan, half_duplex);
	if (!rc && how == GCI_PLAN_MIN3)
		rc = gci_plan_min3(&w, &pools, 0, net->nhosts);
	else if (!rc)
		rc = gci_plan_trees(&w, &pools, how == GCI_PLAN_TREES_ANNEALED);
	gci_planning_end(&w);
	gci_pools_free(&pools);
	if (rc)
		gci_plan_free(plan);
	return rc;
}

void gci_plan_free(struct gci_plan *plan)
{
	gci_free(plan->transfers);
	memset(plan, 0, sizeof(*plan));
}
