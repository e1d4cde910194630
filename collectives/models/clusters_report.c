/* SPDX-License-Identifier: MIT
 * What was found, for people: as text, beside a grid file, and as one. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/clusters.h"

#define MOST_NAMES 12 /* in a line */

static void print_name(struct gci_buf *out, int i, const char *name)
{
	if (i < MOST_NAMES)
		gci_buf_printf(out, "%s%s", i ? ", " : "", name);
}

static void print_rest(struct gci_buf *out, int n)
{
	if (n > MOST_NAMES)
		gci_buf_printf(out, " and %d more", n - MOST_NAMES);
}

void gci_clusters_print_tree(
	const struct gci_pools *p, const struct gci_measured *m, struct gci_buf *out)
{
	char rate[16];
	int i, h;

	for (i = 0; i < p->n; i++) {
		const struct gci_pool *pool = &p->pool[i];

		gci_buf_printf(out, "pool %d", i + 1);
		if (pool->parent >= 0)
			gci_buf_printf(out, " of pool %d", pool->parent + 1);
		if (pool->threshold_bps)
			gci_buf_printf(out, ", together at %s",
				gci_format_rate(pool->threshold_bps, rate, sizeof(rate)));
		gci_buf_printf(out, ": ");
		for (h = 0; h < pool->n; h++)
			print_name(out, h, m->hosts[p->host[pool->first + h]]);
		print_rest(out, pool->n);
		gci_buf_printf(out, "\n");
	}
}

/* ---- beside a grid file */

struct comparison {
	const struct gci_clusters *c;
	const struct gci_measured *m;
	const struct gci_grid *g;
	int *given;  /* [host]: its cluster in the grid, or the grid's nclusters */
	int *common; /* [found * (nclusters + 1) + given]: hosts */
	int *match;  /* [found]: the grid's cluster, or -1 */
};

static int *common(const struct comparison *w, int found, int given)
{
	return &w->common[found * (w->g->nclusters + 1) + given];
}

static void count(const struct comparison *w)
{
	int i, host;

	for (i = 0; i < w->m->n; i++) {
		host = gci_grid_find_host(w->g, w->m->hosts[i]);
		w->given[i] = host < 0 ? w->g->nclusters : gci_grid_cluster_of(w->g, host);
		++*common(w, w->c->cluster_of[i], w->given[i]);
	}
}

static int is_taken(const struct comparison *w, int given)
{
	int f;

	for (f = 0; f < w->c->n; f++)
		if (w->match[f] == given)
			return 1;
	return 0;
}

/* Those that have most in common first; each of either side once. */
static void match(const struct comparison *w)
{
	int best_found, best_given, most, f, g;

	for (f = 0; f < w->c->n; f++)
		w->match[f] = -1;
	do {
		most = best_found = best_given = 0;
		for (f = 0; f < w->c->n; f++)
			for (g = 0; w->match[f] < 0 && g < w->g->nclusters; g++) {
				if (*common(w, f, g) <= most || is_taken(w, g))
					continue;
				most = *common(w, f, g);
				best_found = f;
				best_given = g;
			}
		if (most)
			w->match[best_found] = best_given;
	} while (most);
}

/* All of a cluster is with another one: whether they are two, only latencies tell. */
static int swallowed(const struct comparison *w, int found, int given)
{
	int f;

	for (f = 0; f < w->c->n; f++)
		if (f != found && *common(w, f, given))
			return 0;
	return w->match[found] >= 0;
}

static int report(const struct comparison *w, int found, int given, struct gci_buf *out)
{
	int i, n = 0;

	if (!*common(w, found, given) || w->match[found] == given)
		return 0;
	if (given < w->g->nclusters && !w->m->latency_ns && swallowed(w, found, given))
		return 0;
	for (i = 0; i < w->m->n; i++)
		if (w->c->cluster_of[i] == found && w->given[i] == given)
			print_name(out, n++, w->m->hosts[i]);
	print_rest(out, n);
	if (given < w->g->nclusters)
		gci_buf_printf(out, ": in %s by the grid file, ", w->g->clusters[given].name);
	else
		gci_buf_printf(out, ": not in the grid file, ");
	if (w->match[found] >= 0)
		gci_buf_printf(out, "measured with %s\n", w->g->clusters[w->match[found]].name);
	else
		gci_buf_printf(out, "measured apart from all others\n");
	return n;
}

int gci_clusters_compare(const struct gci_clusters *c, const struct gci_measured *m,
	const struct gci_grid *g, struct gci_buf *out)
{
	struct comparison w = {.c = c, .m = m, .g = g};
	int f, i, n = GCOLL_ERR_NOMEM;

	w.given = gci_calloc((size_t)m->n, sizeof(*w.given));
	w.common = gci_calloc((size_t)c->n * ((size_t)g->nclusters + 1), sizeof(*w.common));
	w.match = gci_calloc((size_t)c->n, sizeof(*w.match));
	if (w.given && w.common && w.match) {
		n = 0;
		count(&w);
		match(&w);
		for (f = 0; f < c->n; f++)
			for (i = 0; i <= g->nclusters; i++)
				n += report(&w, f, i, out);
	}
	gci_free(w.given);
	gci_free(w.common);
	gci_free(w.match);
	return out->failed ? GCOLL_ERR_NOMEM : n;
}
