/* SPDX-License-Identifier: MIT
 * The grid of a plan, and what was measured of it. */
#include "tools/plan/impl.h"

#include "base/mem.h"
#include "tools/lib/model_files.h"
#include "tools/lib/tools.h"

#include <stdio.h>
#include <string.h>

int gct_plan_complain(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll plan: %s\n", e->text);
	return e->status == GCOLL_ERR_PARSE || e->status == GCOLL_ERR_INVAL ? GCT_USAGE
									    : GCT_FAILED;
}

int gct_plan_wrong_file(const struct gci_error *e)
{
	gct_plan_complain(e);
	return e->status == GCOLL_ERR_NOMEM ? GCT_FAILED : GCT_USAGE;
}

int gct_plan_nomem(void)
{
	fprintf(stderr, "gridcoll plan: out of memory\n");
	return GCT_FAILED;
}

int gct_plan_go_without(const struct gci_error *e, const char *instead)
{
	if (e->status != GCOLL_ERR_INVAL)
		return gct_plan_wrong_file(e);
	fprintf(stderr,
		"gridcoll plan: warning: %s\n"
		"gridcoll plan: warning: going on %s\n",
		e->text, instead);
	return 0;
}

static int read_params(struct gct_site *s, const char *path)
{
	struct gci_error e = {0};

	if (gct_read_params(path, &s->place.grid, &s->params, &e))
		return gct_plan_go_without(&e, "with the grid file alone");
	gci_params_streams(&s->params, &s->place.grid);
	gci_params_senders(&s->params, &s->place.grid);
	snprintf(s->basis, sizeof(s->basis), "from what was measured at %s (%.200s)",
		s->params.date, path);
	s->has_params = 1;
	return 0;
}

/* Which rank is where. */
static int find_hosts(struct gct_site *s, const struct gct_site_wish *w)
{
	int i;

	s->nranks = w->hosts ? w->nhosts : (int)s->place.size;
	s->hosts = gci_calloc((size_t)s->nranks, sizeof(*s->hosts));
	s->names = gci_calloc((size_t)s->nranks, sizeof(*s->names));
	if (!s->hosts || !s->names)
		return gct_plan_nomem();
	for (i = 0; i < s->nranks; i++) {
		s->hosts[i] = w->hosts ? gci_grid_find_host(&s->place.grid, w->hosts[i])
				       : (int)s->place.hosts[i];
		if (s->hosts[i] < 0)
			return gct_wrong("plan",
				"rank %d was on \"%s\", expected a host of the grid", i,
				w->hosts[i]);
		s->names[i] = gci_grid_host(&s->place.grid, s->hosts[i]);
	}
	return 0;
}

static int name_wires(struct gct_site *s)
{
	const struct gci_grid *g = &s->place.grid;
	int i;

	s->wires = gci_calloc((size_t)s->topo.nwires, sizeof(*s->wires));
	for (i = 0; s->wires && i < s->topo.nwires; i++) {
		const struct gci_link *w = &s->topo.wires[i];

		s->wires[i] = w->from == w->to ? gci_strdup("a budget")
					       : gci_asprintf("%s > %s", gci_grid_end(g, w->from),
							 gci_grid_end(g, w->to));
		if (!s->wires[i])
			return GCOLL_ERR_NOMEM;
	}
	return s->wires ? 0 : GCOLL_ERR_NOMEM;
}

static int make_network(struct gct_site *s, const struct gct_site_wish *w)
{
	uint32_t streams = w->streams;
	int i, n;

	if (gci_topo_create(&s->topo, &s->place.grid, s->hosts, s->nranks))
		return gct_plan_nomem();
	s->topo_digest = gci_topo_digest(&s->topo);
	/* It may have run on one machine, whatever its hosts are called. */
	if (w->topo_digest && w->topo_digest != s->topo_digest) {
		s->topo.one_host = 1;
		s->topo.per_host = s->nranks;
		s->topo_digest = gci_topo_digest(&s->topo);
	}
	n = s->topo.nclusters;
	s->clusters = gci_calloc((size_t)n, sizeof(*s->clusters));
	if (!s->clusters)
		return gct_plan_nomem();
	for (i = 0; i < n; i++)
		s->clusters[i] = s->place.grid.clusters[s->topo.in_grid[i]].name;
	if (name_wires(s))
		return gct_plan_nomem();
	if (gci_simnet_init(&s->net, &s->topo, s->has_params ? &s->params : NULL))
		return gct_plan_nomem();
	gci_simnet_streams(&s->net, streams);
	s->net.host = w->ports;
	s->net.cold = w->cold;
	return 0;
}

/* What is supposed beside it. */
static void add_suppositions(struct gct_site *s, const struct gct_site_wish *w)
{
	static const char *const ports[] = {[GCI_HOST_FULL_DUPLEX] = "; one message in and one out "
								     "at a time",
		[GCI_HOST_HALF_DUPLEX] = "; one message at a time, in or out"};
	size_t n = strlen(s->basis);

	snprintf(s->basis + n, sizeof(s->basis) - n, "%s%s", w->cold ? "; connections are new" : "",
		ports[w->ports] ? ports[w->ports] : "");
}

int gct_site_make(struct gct_site *s, const struct gct_site_wish *w)
{
	struct gci_error e = {0};
	int rc = 0;

	snprintf(s->basis, sizeof(s->basis),
		"from the grid file alone: nothing was measured (see gridcoll probe)");
	if (gci_placement_make(&s->place, w->run, &e))
		return gct_plan_wrong_file(&e);
	if (s->place.grid.dilation > 1 && w->dilation && w->dilation != s->place.grid.dilation)
		return gct_wrong("plan", "dilation %u, expected %u, that of the lab", w->dilation,
			s->place.grid.dilation);
	if (s->place.grid.dilation == 1 && w->dilation > 1)
		gci_grid_dilate(&s->place.grid, w->dilation);
	if (w->params)
		rc = read_params(s, w->params);
	add_suppositions(s, w);
	if (!rc)
		rc = find_hosts(s, w);
	return rc ? rc : make_network(s, w);
}

void gct_site_free(struct gct_site *s)
{
	int i;

	gci_simnet_free(&s->net);
	for (i = 0; s->wires && i < s->topo.nwires; i++)
		gci_free(s->wires[i]);
	gci_free(s->wires);
	gci_topo_free(&s->topo);
	gci_free(s->clusters);
	gci_free(s->hosts);
	gci_free(s->names);
	gci_params_free(&s->params);
	gci_placement_free(&s->place);
}
