/* SPDX-License-Identifier: MIT
 * Lower bounds by cuts and, of allreduces, by traffic: an element that is summed over k parties takes 2 (k - 1)
 * messages among them, each of which leaves a party by its host's NIC or its links (Patarasu and Yuan 2009). */
#include "collectives/planner/cuts.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define NEVER_NS     1e300
#define MOST_PARTIES 7 /* clusters whose groupings are all looked at */

/* Which resource of each way the cut takes out. */
enum place { FIRST_LINK, LAST_LINK, SLOWEST_LINK, NPLACES };

struct cuts {
	const struct gci_packing_wish *w;
	const struct gci_network *net;
	int n;
	double *far_ns; /* [from * n + to]: shortest ways, by delays alone */
	double *before,
		*after; /* [resource]: least delay to it and from it; of ways that the cut takes out there */
	struct gci_edge *edges; /* [resource] */
	double *to_ns,
		*from_ns; /* [class]: least delay from where it starts, and to where it is wanted */
	unsigned char *starts,
		*ends; /* [class]: where what has to cross is at first, and is wanted */
	double best_ns;
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static int compare_edges(const void *a, const void *b)
{
	const struct gci_edge *x = a, *y = b;

	return x->delay_ns < y->delay_ns ? -1 : x->delay_ns > y->delay_ns;
}

double gci_edges_carry_ns(struct gci_edge *edges, int nedges, double nbytes)
{
	double rate = 0, weighted = 0, end = 0;
	int i;

	qsort(edges, (size_t)nedges, sizeof(*edges), compare_edges);
	for (i = 0; i < nedges; i++) {
		rate += edges[i].rate;
		weighted += edges[i].rate * edges[i].delay_ns;
		end = (nbytes + weighted) / rate;
		if (i + 1 < nedges && end <= edges[i + 1].delay_ns)
			break;
	}
	return end;
}

/* The place of the way that is taken out: an index of `way`. */
static int taken(const struct cuts *c, const int *way, int nway, enum place place)
{
	int i, slowest = 1;

	if (nway == 2 || place == FIRST_LINK)
		return nway == 2 ? 0 : 1;
	if (place == LAST_LINK)
		return nway - 2;
	for (i = 2; i < nway - 1; i++)
		if (c->net->capacity[way[i]] < c->net->capacity[way[slowest]])
			slowest = i;
	return slowest;
}

/* By c->starts and c->ends. */
static void fill_least(struct cuts *c)
{
	int n = c->n, i, k;

	for (k = 0; k < n; k++)
		c->to_ns[k] = c->from_ns[k] = NEVER_NS;
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			if (c->starts[i])
				c->to_ns[k] = smaller(c->to_ns[k], c->far_ns[i * n + k]);
			if (c->ends[i])
				c->from_ns[k] = smaller(c->from_ns[k], c->far_ns[k * n + i]);
		}
}

/* Of ways from classes with one label to those with another, as far as `labels` differ and the first is not 0. */
static int cut_edges(struct cuts *c, const int *labels, enum place place)
{
	int n = c->n, a, b, i, k, way[GCI_MOST_ON_A_WAY], nedges = 0;
	int m = gci_network_nresources(c->net);
	double here;

	for (k = 0; k < m; k++)
		c->before[k] = c->after[k] = NEVER_NS;
	for (a = 0; a < n; a++) {
		double to = c->to_ns[a];

		for (b = 0; labels[a] && b < n; b++) {
			if (labels[a] == labels[b])
				continue;
			k = gci_network_way(c->net, a, b, way);
			i = taken(c, way, k, place);
			here = gci_network_before(c->net, a, b, i);
			c->before[way[i]] = smaller(c->before[way[i]], to + here);
			c->after[way[i]] = smaller(c->after[way[i]],
				c->from_ns[b] + c->net->delay_ns[a * n + b] - here);
		}
	}
	for (k = 0; k < m; k++)
		if (c->after[k] < NEVER_NS)
			c->edges[nedges++] =
				(struct gci_edge){c->net->capacity[k], c->before[k] + c->after[k]};
	return nedges;
}

/* So many bytes have to cross from where labels are 1 to where they are 0. */
static void cross(struct cuts *c, const int *labels, double nbytes)
{
	enum place place;

	fill_least(c);
	for (place = FIRST_LINK; nbytes > 0 && place < NPLACES; place++)
		c->best_ns = larger(c->best_ns,
			gci_edges_carry_ns(c->edges, cut_edges(c, labels, place), nbytes));
}

/* What commodities from class `from` (-1: any) to `to` (the same; of trees, all go everywhere) give that have `far` to go
 * at least, across the cut. */
static void cross_from(struct cuts *c, const int *labels, int from, int to, double far)
{
	const struct gci_packing_wish *w = c->w;
	double part = 0;
	int i;

	memset(c->starts, 0, (size_t)c->n);
	memset(c->ends, 0, (size_t)c->n);
	for (i = 0; i < w->ncommodities; i++) {
		const struct gci_commodity *m = &w->commodities[i];
		int end = w->shape == GCI_PATHS ? m->to : to;

		if ((from >= 0 && m->from != from) || (to >= 0 && end != to) || !labels[m->from] ||
			labels[end] || c->far_ns[m->from * c->n + end] < far)
			continue;
		c->starts[m->from] = c->ends[end] = 1;
		part += m->part;
	}
	cross(c, labels, part * w->nbytes);
}

/* All that crosses one cut: to each class, from each, and of paths all together; by distance. */
static void look_at_cut(struct cuts *c, const int *labels)
{
	int n = c->n, a, b, paths = c->w->shape == GCI_PATHS;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			double far = c->far_ns[a * n + b];

			if (!labels[a] || labels[b])
				continue;
			if (c->w->shape == GCI_SUMS) {
				memset(c->starts, 0, (size_t)n);
				memset(c->ends, 0, (size_t)n);
				c->starts[a] = c->ends[b] = 1;
				cross(c, labels, c->w->nbytes);
				continue;
			}
			cross_from(c, labels, -1, b, far);
			if (paths) {
				cross_from(c, labels, a, -1, far);
				cross_from(c, labels, -1, -1, far);
			}
		}
}

static void look_at_cuts(struct cuts *c, int *labels)
{
	int n = c->n, k;
	long set;

	for (set = 1; n <= GCI_CUTS_CLASSES && set < (1L << n) - 1; set++) {
		for (k = 0; k < n; k++)
			labels[k] = (int)(set >> k & 1);
		look_at_cut(c, labels);
	}
	for (set = 0; n > GCI_CUTS_CLASSES && set < 2 * n; set++) {
		for (k = 0; k < n; k++)
			labels[k] = (k == set / 2) ^ (int)(set & 1);
		look_at_cut(c, labels);
	}
}

/* ---- traffic */

/* Parties: classes with the same label, and the hosts of those with 0, each alone. */
static void look_at_parties(struct cuts *c, const int *labels)
{
	int n = c->n, a, b, nparties = 0, nedges, most = 0;
	enum place place;

	for (a = 0; a < n; a++) {
		most = labels[a] > most ? labels[a] : most;
		nparties += labels[a] ? 0 : gci_network_size(c->net, a);
	}
	nparties += most;
	fill_least(c);
	for (place = FIRST_LINK; nparties > 1 && place < NPLACES; place++) {
		nedges = cut_edges(c, labels, place);
		for (a = 0; a < n; a++) {
			double least = gci_network_size(c->net, a) > 1 ? c->net->delay_ns[a * n + a]
								       : NEVER_NS;

			for (b = 0; b < n; b++)
				if (b != a)
					least = smaller(least, c->net->delay_ns[a * n + b]);
			if (!labels[a])
				c->edges[nedges++] = (struct gci_edge){
					c->net->capacity[gci_nic_out(c->net, a)], least};
		}
		c->best_ns = larger(c->best_ns,
			gci_edges_carry_ns(c->edges, nedges, 2.0 * (nparties - 1) * c->w->nbytes));
	}
}

/* All ways to group the classes from the kth on, with `most` groups before. */
static void look_at_groupings(struct cuts *c, int *labels, int k, int most)
{
	if (k == c->n) {
		look_at_parties(c, labels);
		return;
	}
	for (labels[k] = 0; labels[k] <= most + 1; labels[k]++)
		look_at_groupings(c, labels, k + 1, labels[k] > most ? most + 1 : most);
}

static void look_at_traffic(struct cuts *c, int *labels)
{
	int k;

	memset(c->starts, 1, (size_t)c->n);
	memset(c->ends, 1, (size_t)c->n);
	if (c->n <= MOST_PARTIES) {
		look_at_groupings(c, labels, 0, 0);
		return;
	}
	memset(labels, 0, (size_t)c->n * sizeof(*labels));
	look_at_parties(c, labels);
	for (k = 0; k < c->n; k++)
		labels[k] = k + 1;
	look_at_parties(c, labels);
}

/* ---- */

static int look(
	const struct gci_packing_wish *w, const struct gci_network *net, int traffic, double *ns)
{
	size_t n = (size_t)net->nclasses, m = (size_t)gci_network_nresources(net);
	struct cuts c = {.w = w, .net = net, .n = net->nclasses, .best_ns = *ns};
	int *labels = gci_calloc(n, sizeof(*labels)), rc = 0;

	c.far_ns = gci_calloc(n * n + 2 * m + 2 * n, sizeof(*c.far_ns));
	c.edges = gci_calloc(m + n, sizeof(*c.edges));
	c.starts = gci_calloc(2 * n, 1);
	if (!labels || !c.far_ns || !c.edges || !c.starts) {
		rc = GCOLL_ERR_NOMEM;
	} else {
		c.before = c.far_ns + n * n;
		c.after = c.before + m;
		c.to_ns = c.after + m;
		c.from_ns = c.to_ns + n;
		c.ends = c.starts + n;
		gci_network_distances(net, c.far_ns);
		if (traffic)
			look_at_traffic(&c, labels);
		else
			look_at_cuts(&c, labels);
		*ns = c.best_ns;
	}
	gci_free(labels);
	gci_free(c.far_ns);
	gci_free(c.edges);
	gci_free(c.starts);
	return rc;
}

int gci_cuts_bound(const struct gci_packing_wish *w, double *ns)
{
	struct gci_network back;
	int rc;

	*ns = 0;
	rc = look(w, w->net, 0, ns);
	if (rc || w->shape != GCI_SUMS)
		return rc;
	rc = look(w, w->net, 1, ns);
	if (!rc && gci_network_reverse(&back, w->net))
		return GCOLL_ERR_NOMEM;
	if (!rc) {
		rc = look(w, &back, 1, ns);
		gci_network_free(&back);
	}
	return rc;
}
