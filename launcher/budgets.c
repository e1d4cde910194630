/* SPDX-License-Identifier: MIT
 * Budgets of a job: those it begins with, and those it is told of while it runs. */
#include "base/mem.h"
#include "launcher/job.h"
#include "shaping/budget.h"

#include <stdlib.h>
#include <string.h>

int gci_placement_retell(struct gci_placement *p, struct gci_error *e)
{
	struct gci_buf text = {0};
	char *copy;

	gci_grid_print(&p->grid, &text);
	copy = text.failed ? NULL : gci_strdup(gci_buf_cstr(&text));
	gci_buf_free(&text);
	if (!copy)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(p->grid_text);
	p->grid_text = copy;
	return 0;
}

static int find_cluster(const struct gci_grid *g, const char *name, struct gci_error *e)
{
	struct gci_buf list = {0};
	int i;

	for (i = 0; i < g->nclusters; i++)
		if (!strcmp(g->clusters[i].name, name))
			return i;
	for (i = 0; i < g->nclusters; i++)
		gci_buf_printf(&list, "%s%s", i ? ", " : "", g->clusters[i].name);
	gci_error_set(e, GCOLL_ERR_INVAL, "unknown cluster %s, expected one of: %.300s", name,
		gci_buf_cstr(&list));
	gci_buf_free(&list);
	return -1;
}

int gci_placement_link(
	const struct gci_placement *p, const struct gci_budget_order *o, struct gci_error *e)
{
	int from = find_cluster(&p->grid, o->from, e);
	int to = from < 0 ? -1 : find_cluster(&p->grid, o->to, e);

	if (to < 0)
		return GCOLL_ERR_INVAL;
	if (from == to)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "cluster %s to itself, expected two clusters", o->from);
	return (int)(gci_grid_link(&p->grid, from, to) - p->grid.links);
}

/* A lab's links are slower than the grid's by as much as its time is. */
static uint64_t in_lab(const struct gci_grid *g, uint64_t bps)
{
	return bps && bps < g->dilation ? 1 : bps / g->dilation;
}

static const char nobody_keeps[] = "with --pace off nobody keeps a budget";

int gci_placement_budgets(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	const char *pace = o->pace ? o->pace : getenv("GRIDCOLL_PACE");
	struct gci_budget_order order;
	unsigned i;
	int link;

	p->unpaced = pace && !strcmp(pace, "off");
	if (p->unpaced && o->nbudgets)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "--wan-budget %.60s: %s", o->budgets[0], nobody_keeps);
	for (i = 0; i < o->nbudgets; i++) {
		struct gci_error why = {0};

		if (gci_budget_parse(&order, o->budgets[i], e))
			return e->status;
		link = gci_placement_link(p, &order, &why);
		if (link < 0)
			return gci_error_set(e, why.status, "--wan-budget %.60s: %.400s",
				o->budgets[i], why.text);
		p->grid.links[link].budget_bps = in_lab(&p->grid, order.bps);
	}
	return o->nbudgets ? gci_placement_retell(p, e) : 0;
}

int gci_job_budget(const struct gci_budget_order *o, struct gci_error *e)
{
	struct gci_grid *g = &gci_job.plan->grid;
	int link = gci_placement_link(gci_job.plan, o, e);
	struct gci_ctl_budget b;

	if (link < 0)
		return link;
	if (gci_job.plan->unpaced)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "%s", nobody_keeps);
	b = (struct gci_ctl_budget){.from = (uint32_t)g->links[link].from,
		.to = (uint32_t)g->links[link].to,
		.bps = in_lab(g, o->bps)};
	if (gci_rdv_budget(gci_job.server.rdv, &b))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	g->links[link].budget_bps = b.bps;
	gci_server_kick(&gci_job.server);
	return 0;
}
