/* SPDX-License-Identifier: MIT
 * From the links and routes of a grid file to wires, and to the path of each pair of clusters over them: its own
 * link, the route that the file says, or that of the least delay. */
#include "base/mem.h"
#include "collectives/grid/grid_impl.h"

#include <string.h>

struct routes {
	struct gci_grid_parser *p;
	struct gci_grid *g;
	int *wire_of;   /* [section]: its wire; -1: none */
	int *up, *down; /* [cluster]: its uplink's wires; -1: none */
	int nroutes;    /* of g->routes */
	size_t routes_cap;
	/* Ways of least delay from one cluster to each end, as GCI_GRID_MAX_ENDS numbers them. */
	int source;   /* -1: none was looked for */
	uint64_t *ns; /* UINT64_MAX: none */
	int *nhops, *last_wire;
	unsigned char *done;
};

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t smaller_known(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* What a wire adds to a path. Delays of wires begin at hosts, and what is on its way does not come from the LAN of
 * a cluster in the middle. */
static uint64_t added_ns(const struct gci_grid *g, const struct gci_link *wire, int source)
{
	int in_middle =
		wire->from >= 0 && wire->from < GCI_GRID_MAX_CLUSTERS && wire->from != source;
	uint64_t lan_ns = in_middle ? g->clusters[wire->from].lan_delay_ns : 0;

	return wire->delay_ns > lan_ns ? wire->delay_ns - lan_ns : 0;
}

static int *section_at(const struct routes *r, int from, int to)
{
	return &r->p->link_at[from * GCI_GRID_MAX_ENDS + to];
}

/* ---- wires */

static int check_section(struct gci_grid_parser *p, const struct gci_link_section *s)
{
	const struct gci_link *l = &s->link;
	const char *from = gci_grid_end(p->g, l->from), *to = gci_grid_end(p->g, l->to);
	int line = s->via_line ? s->via_line : s->line;

	if (s->is_route && (l->from >= GCI_GRID_MAX_CLUSTERS || l->to >= GCI_GRID_MAX_CLUSTERS))
		return gci_grid_fail_at(p, line,
			"via of %s > %s, expected a route between clusters only", from, to);
	if (s->is_route &&
		(l->rate_bps || l->delay_ns || l->queue_nbytes || l->flow_rate_bps || l->loss_ppm))
		return gci_grid_fail_at(p, line,
			"%s > %s goes over other links and has rate, delay, queue, loss or "
			"flow_rate, expected those of the links it passes only",
			from, to);
	if ((l->from >= GCI_GRID_MAX_CLUSTERS || l->to >= GCI_GRID_MAX_CLUSTERS) &&
		(l->streams || l->budget_bps))
		return gci_grid_fail_at(p, line,
			"link %s > %s has streams or budget, expected them in a [route A B] of two "
			"clusters",
			from, to);
	return 0;
}

static int add_wires(struct routes *r)
{
	struct gci_grid_parser *p = r->p;
	struct gci_grid *g = r->g;
	size_t i;
	int c;

	g->wires = gci_calloc(p->nlinks_all + 2 * (size_t)g->nclusters, sizeof(*g->wires));
	if (!g->wires)
		return gci_grid_nomem(p);
	for (i = 0; i < p->nlinks_all; i++) {
		if (check_section(p, &p->links[i]))
			return p->e->status;
		r->wire_of[i] = p->links[i].is_route ? -1 : g->nwires;
		if (!p->links[i].is_route)
			g->wires[g->nwires++] = p->links[i].link;
	}
	for (c = 0; c < g->nclusters; c++) {
		uint64_t bps = g->clusters[c].uplink_bps;

		r->up[c] = r->down[c] = -1;
		if (!bps)
			continue;
		r->up[c] = g->nwires;
		g->wires[g->nwires++] =
			(struct gci_link){.from = c, .to = GCI_GRID_UPLINK, .rate_bps = bps};
		r->down[c] = g->nwires;
		g->wires[g->nwires++] =
			(struct gci_link){.from = GCI_GRID_UPLINK, .to = c, .rate_bps = bps};
	}
	return 0;
}

/* ---- paths */

static int nends(const struct gci_grid *g)
{
	return g->nswitches ? GCI_GRID_MAX_CLUSTERS + g->nswitches : g->nclusters;
}

static int is_nearer(const struct routes *r, int end, uint64_t ns, int nhops)
{
	return r->ns[end] < ns || (r->ns[end] == ns && r->nhops[end] < nhops);
}

/* Dijkstra's. Of equal delays, the fewest wires; then the first one found, which is the same everywhere. */
static void find_ways(struct routes *r, int source)
{
	const struct gci_grid *g = r->g;
	int n = nends(g), i, k;

	if (r->source == source)
		return;
	r->source = source;
	for (i = 0; i < n; i++) {
		r->ns[i] = UINT64_MAX;
		r->done[i] = 0;
	}
	r->ns[source] = 0;
	r->nhops[source] = 0;
	for (;;) {
		int next = -1;

		for (i = 0; i < n; i++)
			if (!r->done[i] && r->ns[i] < UINT64_MAX &&
				(next < 0 || is_nearer(r, i, r->ns[next], r->nhops[next])))
				next = i;
		if (next < 0)
			return;
		r->done[next] = 1;
		for (k = 0; k < n; k++) {
			int at = *section_at(r, next, k), wire = at ? r->wire_of[at - 1] : -1;
			uint64_t ns;

			if (wire < 0 || r->done[k])
				continue;
			ns = sum(r->ns[next], added_ns(g, &g->wires[wire], source));
			if (is_nearer(r, k, ns, r->nhops[next] + 2))
				continue;
			r->ns[k] = ns;
			r->nhops[k] = r->nhops[next] + 1;
			r->last_wire[k] = wire;
		}
	}
}

static int pass(struct routes *r, struct gci_link *l, int wire)
{
	struct gci_grid *g = r->g;

	if (wire < 0)
		return 0;
	if (gci_grow(&g->routes, &r->routes_cap, (size_t)r->nroutes + 1, sizeof(*g->routes)))
		return gci_grid_nomem(r->p);
	g->routes[r->nroutes++] = wire;
	l->nroute++;
	return 0;
}

static int pass_quickest(struct routes *r, struct gci_link *l)
{
	struct gci_grid *g = r->g;
	int wires[GCI_GRID_MAX_ROUTE], n, at, rc = 0;

	find_ways(r, l->from);
	if (r->ns[l->to] == UINT64_MAX)
		return gci_grid_fail_at(r->p, r->p->cluster_lines[l->to],
			"cluster %s cannot be reached from %s, expected a section [link %s %s]",
			g->clusters[l->to].name, g->clusters[l->from].name,
			g->clusters[l->from].name, g->clusters[l->to].name);
	n = r->nhops[l->to];
	if (n > GCI_GRID_MAX_ROUTE)
		return gci_grid_fail_at(r->p, r->p->cluster_lines[l->to],
			"cluster %s is %d links away from %s, expected at most %d",
			g->clusters[l->to].name, n, g->clusters[l->from].name, GCI_GRID_MAX_ROUTE);
	for (at = l->to; at != l->from; at = g->wires[wires[n]].from)
		wires[--n] = r->last_wire[at];
	for (n = 0; !rc && n < r->nhops[l->to]; n++)
		rc = pass(r, l, wires[n]);
	return rc;
}

static int pass_said(struct routes *r, struct gci_link *l, const struct gci_link_section *s)
{
	const struct gci_grid *g = r->g;
	const int *via = r->p->via + s->via;
	int from = l->from, i, k, rc = 0;

	l->said = 1;
	for (i = 0; !rc && i <= s->nvia; i++) {
		int to = i < s->nvia ? via[i] : l->to, at = *section_at(r, from, to);

		for (k = 0; k < i; k++)
			if (via[k] == to)
				return gci_grid_fail_at(r->p, s->via_line,
					"via: %s twice, expected a way without circles",
					gci_grid_end(g, to));
		if (!at || r->wire_of[at - 1] < 0)
			return gci_grid_fail_at(r->p, s->via_line,
				"via: there is no [link %s > %s], expected links from each to the "
				"next",
				gci_grid_end(g, from), gci_grid_end(g, to));
		rc = pass(r, l, r->wire_of[at - 1]);
		from = to;
	}
	return rc;
}

/* What a path is: its wires, one behind the other. */
static void join_wires(const struct gci_grid *g, struct gci_link *l)
{
	const uint64_t whole = 1000000;
	uint64_t passes = whole;
	int i;

	for (i = 0; i < l->nroute; i++) {
		const struct gci_link *w = &g->wires[g->routes[l->route + i]];

		l->rate_bps = smaller_known(l->rate_bps, w->rate_bps);
		l->flow_rate_bps = smaller_known(l->flow_rate_bps, w->flow_rate_bps);
		l->queue_nbytes = smaller_known(l->queue_nbytes, w->queue_nbytes);
		l->delay_ns = sum(l->delay_ns, added_ns(g, w, l->from));
		passes = (passes * (whole - w->loss_ppm) + whole / 2) / whole;
	}
	l->loss_ppm = (uint32_t)(whole - passes);
}

static int route_link(struct routes *r, struct gci_link *l)
{
	int at = *section_at(r, l->from, l->to), wire = at ? r->wire_of[at - 1] : -1, rc;
	const struct gci_link_section *s = at ? &r->p->links[at - 1] : NULL;

	if (s) {
		l->streams = s->link.streams;
		l->senders = s->link.senders;
		l->budget_bps = s->link.budget_bps;
	}
	l->own = wire + 1;
	l->route = r->nroutes;
	rc = pass(r, l, r->up[l->from]);
	if (!rc && wire >= 0)
		rc = pass(r, l, wire);
	else if (!rc && s && s->nvia)
		rc = pass_said(r, l, s);
	else if (!rc)
		rc = pass_quickest(r, l);
	rc = rc ? rc : pass(r, l, r->down[l->to]);
	join_wires(r->g, l);
	return rc;
}

static int route_links(struct routes *r)
{
	struct gci_grid *g = r->g;
	int a, b, n = g->nclusters, rc = 0;

	g->links = gci_calloc((size_t)n * (size_t)(n - 1), sizeof(*g->links));
	if (!g->links)
		return gci_grid_nomem(r->p);
	for (a = 0; !rc && a < n; a++)
		for (b = 0; !rc && b < n; b++)
			if (a != b) {
				struct gci_link *l = &g->links[g->nlinks++];

				l->from = a;
				l->to = b;
				rc = route_link(r, l);
			}
	return rc;
}

int gci_grid_route(struct gci_grid_parser *p)
{
	size_t n = (size_t)p->g->nclusters, ends = GCI_GRID_MAX_ENDS;
	struct routes r = {.p = p, .g = p->g, .source = -1};
	int rc;

	r.wire_of = gci_calloc(p->nlinks_all + 2 * n + 2 * ends, sizeof(*r.wire_of));
	r.ns = gci_calloc(ends, sizeof(*r.ns));
	r.done = gci_calloc(ends, sizeof(*r.done));
	if (!r.wire_of || !r.ns || !r.done) {
		rc = gci_grid_nomem(p);
	} else {
		r.up = r.wire_of + p->nlinks_all;
		r.down = r.up + n;
		r.nhops = r.down + n;
		r.last_wire = r.nhops + ends;
		rc = add_wires(&r);
		rc = rc ? rc : route_links(&r);
	}
	gci_free(r.wire_of);
	gci_free(r.ns);
	gci_free(r.done);
	return rc;
}

int gci_grid_is_simple(const struct gci_grid *g)
{
	int i;

	for (i = 0; i < g->nlinks; i++)
		if (!g->links[i].own || g->links[i].nroute != 1)
			return 0;
	return 1;
}
