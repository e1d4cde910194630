/* SPDX-License-Identifier: MIT
 * The commands of gridcoll-run's control socket. */
#include "launcher/job.h"
#include "shaping/budget.h"

#include <jansson.h>
#include <stddef.h>
#include <unistd.h>

#define MOST_BUDGET 200

static int job(void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	const struct gci_placement *p = gci_job.plan;
	char **argv = user;

	(void)request;
	if (json_object_set_new(reply, "pid", json_integer(getpid())) ||
		json_object_set_new(reply, "command", json_string(*argv)) ||
		json_object_set_new(reply, "ranks", json_integer(p->size)) ||
		json_object_set_new(reply, "clusters", json_integer(p->grid.nclusters)) ||
		json_object_set_new(reply, "dilation", json_integer(p->grid.dilation)))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int budget(
	void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	struct gci_budget_order o;
	const char *text;
	int rc = gci_json_string(request, "budget", MOST_BUDGET, &text);

	(void)user;
	(void)reply;
	if (!rc)
		rc = gci_budget_parse(&o, text, e);
	return rc ? rc : gci_job_budget(&o, e);
}

/* As people have it: of the grid that a dilated lab stands for. */
static json_t *rate(const struct gci_grid *g, uint64_t bps)
{
	return json_integer((json_int_t)(bps * g->dilation));
}

static json_t *link_status(const struct gci_grid *g, const struct gci_link *l)
{
	json_t *o = json_object();

	if (o && !json_object_set_new(o, "from", json_string(g->clusters[l->from].name)) &&
		!json_object_set_new(o, "to", json_string(g->clusters[l->to].name)) &&
		!json_object_set_new(o, "rate_bps", rate(g, l->rate_bps)) &&
		!json_object_set_new(o, "budget_bps", rate(g, l->budget_bps)))
		return o;
	json_decref(o);
	return NULL;
}

static int status(
	void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	const struct gci_grid *g = &gci_job.plan->grid;
	json_t *links = json_array();
	int i, rc = job(user, request, reply, e);

	for (i = 0; !rc && i < g->nlinks; i++)
		if (json_array_append_new(links, link_status(g, &g->links[i])))
			rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!rc && json_object_set(reply, "links", links))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	json_decref(links);
	return rc;
}

static const char *const budget_arguments[] = {"cmd", "budget", NULL};
static const char *const no_arguments[] = {"cmd", NULL};

const struct gci_jobctl_command gci_job_commands[] = {
	{"job", no_arguments, job},
	{"status", no_arguments, status},
	{"budget", budget_arguments, budget},
	{NULL, NULL, NULL},
};
