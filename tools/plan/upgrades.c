/* SPDX-License-Identifier: MIT */
#include "tools/plan/upgrades.h"

#include "base/mem.h"
#include "collectives/planner/packed.h"
#include "tools/lib/bottleneck.h"

#define MOST_WIRES    6
#define MOST_CLUSTERS 8
#define LEAST_SAVED   1.0 /* percent: packings are known to a third of that */
#define CLEARLY_MORE  1.2

static uint64_t more(uint64_t bps)
{
	return bps + bps / 100 * GCT_UPGRADE_PERCENT;
}

static int copy(struct gci_topo *to, const struct gci_topo *t)
{
	int *all = gci_calloc((size_t)t->nranks, sizeof(*all)), i, rc = GCOLL_ERR_NOMEM;

	for (i = 0; all && i < t->nranks; i++)
		all[i] = i;
	if (all)
		rc = gci_topo_sub(to, t, all, t->nranks);
	gci_free(all);
	return rc;
}

static int is_budget(const struct gci_link *wire)
{
	return wire->from == wire->to;
}

static void speed_up(struct gci_topo *t, const struct gct_upgrade *u)
{
	int i, all = u->what == GCT_ALL_WIRES;

	for (i = 0; i < t->nwires; i++)
		if ((all && !is_budget(&t->wires[i])) || (u->what == GCT_WIRE && i == u->number))
			t->wires[i].rate_bps = more(t->wires[i].rate_bps);
	all = u->what == GCT_ALL_NICS;
	for (i = 0; i < t->nclusters; i++)
		if (all || (u->what == GCT_NICS && i == u->number))
			t->nic_bps[i] = more(t->nic_bps[i]);
	for (i = 0; i < t->nranks; i++)
		if (all || (u->what == GCT_NICS && t->cluster[i] == u->number))
			t->rank_nic_bps[i] = more(t->rank_nic_bps[i]);
}

/* Into its place, if it is among the best. */
static void put(struct gct_upgrade u, struct gct_upgrade out[GCT_UPGRADES], int *n)
{
	int i = *n < GCT_UPGRADES ? *n : GCT_UPGRADES - 1;

	if (*n == GCT_UPGRADES && out[i].saves >= u.saves)
		return;
	for (; i && out[i - 1].saves < u.saves; i--)
		out[i] = out[i - 1];
	out[i] = u;
	*n += *n < GCT_UPGRADES;
}

struct search {
	const struct gci_coll *c;
	double ns, most[GCT_NICS + 1]; /* most: saved by one of a kind */
	struct gct_upgrade *out;
	int n;
};

static void look_at(struct search *s, enum gct_upgraded what, int number)
{
	struct gct_upgrade u = {.what = what, .number = number};
	struct gci_coll own = *s->c;
	struct gci_topo faster;
	double ns, least = LEAST_SAVED;

	if (copy(&faster, s->c->topo))
		return;
	speed_up(&faster, &u);
	own.topo = &faster;
	ns = gci_packed_shares_ns(&own);
	gci_topo_free(&faster);
	u.saves = 100 * (s->ns - ns) / s->ns;
	if (what > GCT_NICS)
		least += s->most[what - GCT_ALL_WIRES] * CLEARLY_MORE;
	else if (ns > 0 && u.saves > s->most[what])
		s->most[what] = u.saves;
	if (ns > 0 && u.saves >= least)
		put(u, s->out, &s->n);
}

/* How long a wire needs for what it carries. */
static double work_of(const struct gci_coll *c, const struct gci_sim_result *r, int wire)
{
	uint64_t bps = c->topo->wires[wire].rate_bps;

	return bps && !is_budget(&c->topo->wires[wire])
		       ? (double)gct_wire_nbytes(c->topo, r, wire) / (double)bps
		       : 0;
}

/* The one that works longest of those that work less than `most`, or as long and come later; -1: none does. */
static int next_wire(
	const struct gci_coll *c, const struct gci_sim_result *r, int last, double most)
{
	double best = 0, work;
	int i, at = -1;

	for (i = 0; i < c->topo->nwires; i++) {
		work = work_of(c, r, i);
		if (work > best && (work < most || (work <= most && i > last))) {
			best = work;
			at = i;
		}
	}
	return at;
}

int gct_upgrades(const struct gci_coll *c, const struct gci_sim_result *r,
	struct gct_upgrade out[GCT_UPGRADES])
{
	struct search s = {.c = c, .ns = gci_packed_shares_ns(c), .out = out};
	int i, wire = -1;

	if (s.ns <= 0)
		return 0;
	for (i = 0; i < c->topo->nclusters && i < MOST_CLUSTERS; i++)
		look_at(&s, GCT_NICS, i);
	for (i = 0; i < MOST_WIRES; i++) {
		wire = next_wire(c, r, wire, wire < 0 ? 1e300 : work_of(c, r, wire));
		if (wire < 0)
			break;
		look_at(&s, GCT_WIRE, wire);
	}
	look_at(&s, GCT_ALL_WIRES, 0);
	look_at(&s, GCT_ALL_NICS, 0);
	return s.n;
}
