/* SPDX-License-Identifier: MIT
 * Figure 10 of Banikazemi, Moorthy and Panda 1998: several multicasts at a time on 64 hosts of two
 * kinds, down SPOC's or FNF's trees, each made for its multicast alone (4, 6.2), beside binomial
 * trees in the order of ranks (DEF).
 *	bench_hnow10 [ORDERS]
 * prints, over so many seeded orders of hosts and sets of sources and destinations (100), by share
 * of fast hosts, number of sources and of destinations of each, when the last multicast is over,
 * and with what factors of improvement; then those factors of the multicasts' own times, their
 * mean. bench/papers says what agrees.
 *
 * A host sends one message at a time, whichever multicast it belongs to, in the order in which it
 * got what it has to send. Otherwise as in hnow.c: 400 or 1600 us for a message of 1 KiB, 12.5 ns a
 * byte on the way. Sources are of either kind. */
#include "base/clock.h"
#include "base/units.h"
#include "bench/hnow_hosts.h"
#include "collectives/blocks/blocks.h"
#include "collectives/models/hnow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NHOSTS  64
#define NORDERS 100
#define NBYTES  1024
#define FAST_NS (400 * GCI_NS_PER_US)
#define SLOW_NS (4 * FAST_NS)

enum { DEF, SPOC, FNF, NTREES };

/* Trees of one multicast: who sends to whom, children in the order in which they are sent to. */
struct multicast {
	int source, n;
	int member[NHOSTS]; /* the source first, then in the order of ranks */
	int parent[NHOSTS]; /* [rank]; -1: takes no part, or the source */
	int nchildren[NHOSTS], children[NHOSTS][NHOSTS];
};

/* Emitters know the operation alone. */
static struct multicast several[NHOSTS];
static int nseveral;

/* ---- who takes part */

static void choose(struct gci_prng *prng, int *out, int n, int besides)
{
	int all[NHOSTS], left = 0, i;

	for (i = 0; i < NHOSTS; i++)
		if (i != besides)
			all[left++] = i;
	for (i = 0; i < n; i++) {
		int k = (int)gci_prng_below(prng, (uint64_t)left);

		out[i] = all[k];
		all[k] = all[--left];
	}
}

static void draw_multicast(struct gci_prng *prng, struct multicast *m, int source, int ndests)
{
	int dests[NHOSTS], taken[NHOSTS] = {0}, i;

	choose(prng, dests, ndests, source);
	for (i = 0; i < ndests; i++)
		taken[dests[i]] = 1;
	m->source = m->member[0] = source;
	m->n = 1;
	for (i = 1; i < NHOSTS; i++)
		if (taken[(source + i) % NHOSTS])
			m->member[m->n++] = (source + i) % NHOSTS;
}

/* ---- their trees */

static void add_edge(struct multicast *m, int parent, int child)
{
	m->parent[child] = parent;
	m->children[parent][m->nchildren[parent]++] = child;
}

static void plant_binomial(struct multicast *m)
{
	int i, k, parent, children[32];

	for (i = 0; i < m->n; i++) {
		struct gci_group g = {m->member, m->n, 0, i};
		int n = gci_binomial(&g, &parent, children);

		for (k = 0; k < n; k++)
			add_edge(m, m->member[i], m->member[children[k]]);
	}
}

static int plant_hnow(struct multicast *m, const uint64_t *tini_ns, int tree)
{
	uint64_t own_ns[NHOSTS];
	struct gci_hnow t;
	int i, rc;

	for (i = 0; i < m->n; i++)
		own_ns[i] = tini_ns[m->member[i]];
	rc = gci_hnow_init(&t, own_ns, m->n, 0);
	if (rc)
		return rc;
	if (tree == SPOC)
		gci_hnow_spoc(&t);
	else
		rc = gci_hnow_fnf(&t);
	for (i = 1; !rc && i < m->n; i++)
		add_edge(m, m->member[t.rank[t.parent[i]]], m->member[t.rank[i]]);
	gci_hnow_free(&t);
	return rc;
}

static int plant(struct multicast *m, const uint64_t *tini_ns, int tree)
{
	int i;

	memset(m->nchildren, 0, sizeof(m->nchildren));
	for (i = 0; i < NHOSTS; i++)
		m->parent[i] = -1;
	if (tree != DEF)
		return plant_hnow(m, tini_ns, tree);
	plant_binomial(m);
	return 0;
}

/* ---- all of them as one operation: an allgather in which not all take part */

static void emit(struct gci_builder *b, const struct gci_coll *c)
{
	int i, k;

	for (i = 0; i < nseveral; i++) {
		const struct multicast *m = &several[i];
		int own = m->source == b->rank, parent = m->parent[b->rank];
		struct gci_slice s = gci_slice(
			own ? GCI_IN : GCI_OUT, own ? 0 : (uint64_t)m->source * c->count, c->count);

		if (parent >= 0)
			gci_recv(b, parent, gci_tag(0, (uint32_t)i), s);
		for (k = 0; k < m->nchildren[b->rank]; k++)
			gci_send(b, m->children[b->rank][k], gci_tag(0, (uint32_t)i), s);
	}
}

struct ends {
	uint64_t ns[NHOSTS]; /* [multicast]: when its last host has it */
};

static void note_end(void *ctx, const struct gci_sim_event *e)
{
	struct ends *ends = ctx;
	uint32_t i;

	if (e->s->kind != GCI_STEP_RECV)
		return;
	i = e->s->tag - gci_tag(0, 0);
	if (e->to_ns > ends->ns[i])
		ends->ns[i] = e->to_ns;
}

struct outcome {
	double last_us[NTREES], mean_us[NTREES];
};

static int simulate(const struct gci_topo *t, int tree, struct outcome *o, int norders)
{
	static const struct gci_algorithm all = {
		GCI_ALLGATHER, "multicasts", "several multicasts", 0, 0, emit, NULL};
	static const struct hnow_wire wire = {UINT64_C(640000000), 1500};
	struct gci_coll c = {.kind = GCI_ALLGATHER, .topo = t, .count = NBYTES, .esize = 1};
	struct ends ends = {{0}};
	struct gci_sim_op op = {.algorithm = &all, .coll = &c, .trace = note_end, .ctx = &ends};
	uint64_t ns = hnow_simulate(&wire, &op);
	int i;

	o->last_us[tree] += (double)ns / 1e3 / norders;
	for (i = 0; i < nseveral; i++)
		o->mean_us[tree] += (double)ends.ns[i] / 1e3 / nseveral / norders;
	return ns ? 0 : GCOLL_ERR_NOMEM;
}

/* ---- means over orders */

static int measure(int percent, int nsources, int ndests, int norders, struct outcome *o)
{
	const struct hnow_hosts hosts = {
		NHOSTS, NHOSTS * percent / 100, FAST_NS, SLOW_NS, HNOW_ANY};
	struct gci_prng prng = {1998};
	int sources[NHOSTS], i, k, m, rc;
	struct gci_topo t;

	rc = hnow_topo(&t, NHOSTS);
	if (rc)
		return rc;
	memset(o, 0, sizeof(*o));
	nseveral = nsources;
	for (i = 0; !rc && i < norders; i++) {
		hnow_draw(&prng, &hosts, t.tini_ns);
		choose(&prng, sources, nsources, -1);
		for (m = 0; m < nsources; m++)
			draw_multicast(&prng, &several[m], sources[m], ndests);
		for (k = 0; !rc && k < NTREES; k++) {
			for (m = 0; !rc && m < nsources; m++)
				rc = plant(&several[m], t.tini_ns, k);
			rc = rc ? rc : simulate(&t, k, o, norders);
		}
	}
	gci_topo_free(&t);
	return rc;
}

static int print_all(int norders)
{
	static const int percents[] = {25, 50}, sources[] = {1, 4, 16, 32, 64},
			 dests[] = {15, 31, 63};
	struct outcome o;
	int d, p, s, rc = 0;

	for (d = 0; d < 3; d++)
		for (p = 0; p < 2; p++)
			for (s = 0; !rc && s < 5; s++) {
				rc = measure(percents[p], sources[s], dests[d], norders, &o);
				if (rc)
					break;
				printf("%5d %5d %% %8d %9.0f %9.0f %9.0f %6.2f %6.2f %9.2f %6.2f\n",
					dests[d], percents[p], sources[s], o.last_us[DEF],
					o.last_us[SPOC], o.last_us[FNF],
					o.last_us[DEF] / o.last_us[SPOC],
					o.last_us[DEF] / o.last_us[FNF],
					o.mean_us[DEF] / o.mean_us[SPOC],
					o.mean_us[DEF] / o.mean_us[FNF]);
			}
	return rc;
}

int main(int argc, char **argv)
{
	uint64_t norders = NORDERS;

	if (argc > 2 || (argc > 1 && (gci_parse_uint(argv[1], 100000, &norders) || !norders))) {
		fprintf(stderr, "usage: bench_hnow10 [ORDERS]\n");
		return 2;
	}
	printf("%5s %7s %8s %9s %9s %9s %6s %6s %9s %6s\n", "dests", "fast", "sources", "DEF us",
		"SPOC us", "FNF us", "SPOC", "FNF", "mean SPOC", "FNF");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!print_all((int)norders))
		return 0;
	fprintf(stderr, "out of memory\n");
	return 2;
}
