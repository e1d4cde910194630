/* SPDX-License-Identifier: MIT
 * The commands of gridcoll-run's control socket. */
#include "launcher/job.h"
#include "shaping/budget.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_BUDGET 200
/* The job's command line, as far as it goes in there. JSON must be UTF-8, which arguments need not
 * be, and not whole where they are cut. */
static void join(char **argv, char *out, size_t size)
{
	char *at = out;

	for (*out = '\0'; *argv; argv++)
		snprintf(out + strlen(out), size - strlen(out), "%s%s", *out ? " " : "", *argv);
	for (; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

static int job(void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	const struct gci_placement *p = gci_job.plan;
	char command[200];

	(void)request;
	join(user, command, sizeof(command));
	if (json_object_set_new(reply, "pid", json_integer(getpid())) ||
		json_object_set_new(
			reply, "command", json_stringn_nocheck(command, strlen(command))) ||
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
static int traffic(
	void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	struct gci_traffic_view v;
	uint64_t since = 0;
	int flows = 0, rc = 0;

	(void)user;
	if (gci_json_has(request, "since"))
		rc = gci_json_uint(request, "since", 0, INT64_MAX, &since);
	if (!rc && gci_json_has(request, "connections"))
		rc = gci_json_bool(request, "connections", &flows);
	if (rc)
		return rc;
	gci_watch_want(&gci_job.watch, GCI_WATCH_LEASE_NS, flows);
	v = gci_watch_view(&gci_job.watch);
	if (json_object_set_new(reply, "time_ns", json_integer((json_int_t)v.now_ns)) ||
		json_object_set_new(reply, "bin_ns", json_integer(GCI_BIN_NS)) ||
		json_object_set_new(reply, "end_bin",
			json_integer((json_int_t)gci_traffic_settled(v.t, v.now_ns))) ||
		json_object_set_new(reply, "fresh", json_boolean(v.t->first_bin)) ||
		json_object_set_new(reply, "pairs", gci_traffic_pairs_json(&v, since)) ||
		json_object_set_new(reply, "ranks", gci_traffic_parts_json(&v)) ||
		(flows && json_object_set_new(reply, "connections", gci_traffic_flows_json(&v))))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int prometheus(
	void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	struct gci_traffic_view v;
	struct gci_buf text = {0};
	char job[24];
	int failed;

	(void)user;
	(void)request;
	gci_watch_want(&gci_job.watch, GCI_WATCH_LONG_LEASE_NS, 0);
	v = gci_watch_view(&gci_job.watch);
	snprintf(job, sizeof(job), "%ld", (long)getpid());
	gci_traffic_prometheus(&v, job, &text);
	failed = text.failed || json_object_set_new(reply, "fresh", json_boolean(v.t->first_bin)) ||
		 json_object_set_new(reply, "text", json_string(gci_buf_cstr(&text)));
	gci_buf_free(&text);
	return failed ? gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory") : 0;
}

static const char *const traffic_keys[] = {"cmd", "since", "connections", NULL};
static const char *const no_arguments[] = {"cmd", NULL};

const struct gci_jobctl_command gci_job_commands[] = {
	{"job", no_arguments, job},
	{"status", no_arguments, status},
	{"budget", budget_arguments, budget},
	{"prometheus", no_arguments, prometheus},
	{"traffic", traffic_keys, traffic},
	{NULL, NULL, NULL},
};
