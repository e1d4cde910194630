/* SPDX-License-Identifier: MIT */
#include "launcher/watch.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "shaping/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERIOD_MS    500
#define MOST_BACKLOG (16u << 20) /* of the file: a disk that is slower than that loses lines */
#define MOST_BUDGET  200         /* characters */

/* Ranks report for so long after the last question. Prometheus asks seldom. */
#define LEASE_NS      (5 * GCI_NS_PER_S)
#define LONG_LEASE_NS (150 * GCI_NS_PER_S)

static int open_file(struct gci_watch *w, const char *path, uv_loop_t *loop,
	void (*on_drained)(struct gci_sink *s), struct gci_error *e)
{
	struct gci_error why = {0};
	int fd;

	if (gci_file_check(path, &why) == GCOLL_ERR_INVAL)
		return gci_error_set(e, why.status, "--stats: %s", why.text);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "--stats: cannot write %s: %s", path, strerror(errno));
	gci_sink_open(&w->file, loop, fd, on_drained, w);
	w->has_file = 1;
	w->path = path;
	return 0;
}

int gci_watch_open(struct gci_watch *w, const struct gci_options *o, struct gci_placement *p,
	uv_loop_t *loop, void (*on_drained)(struct gci_sink *s), struct gci_error *e)
{
	uint32_t *cluster_of = gci_calloc(p->size, sizeof(*cluster_of)), i;
	int rc = GCOLL_ERR_NOMEM;

	memset(w, 0, sizeof(*w));
	w->plan = p;
	w->argv = o->argv;
	/* A launcher of thousands has more to read in each period. */
	w->period_ms = PERIOD_MS + p->size / 4;
	if (w->period_ms > GCI_REPORT_PERIOD)
		w->period_ms = GCI_REPORT_PERIOD;
	uv_timer_init(loop, &w->timer);
	w->timer.data = w;
	for (i = 0; cluster_of && i < p->size; i++)
		cluster_of[i] = (uint32_t)gci_grid_cluster_of(&p->grid, (int)p->hosts[i]);
	if (cluster_of)
		rc = gci_traffic_create(
			&w->traffic, p->size, cluster_of, (uint32_t)p->grid.nclusters);
	gci_free(cluster_of);
	if (rc)
		return gci_error_set(e, rc, "out of memory");
	return o->stats ? open_file(w, o->stats, loop, on_drained, e) : 0;
}

void gci_watch_settle(struct gci_watch *w)
{
	const struct gci_placement *p = w->plan;
	uint32_t i;

	for (i = 0; i < p->size; i++)
		w->traffic->cluster_of[i] =
			(uint32_t)gci_grid_cluster_of(&p->grid, (int)p->hosts[i]);
}

static void on_report(void *user, uint32_t rank, const struct gci_ctl_report *m)
{
	struct gci_watch *w = user;

	gci_traffic_report(w->traffic, rank, m, gci_wall_ns());
}

static void on_flows(void *user, uint32_t rank, const struct gci_ctl_flows *m)
{
	struct gci_watch *w = user;

	gci_traffic_flows(w->traffic, rank, m);
}

static void on_renewed(void *user, uint32_t rank)
{
	struct gci_watch *w = user;

	gci_traffic_renew(w->traffic, rank);
}

struct gci_rdv_reports gci_watch_reports(struct gci_watch *w)
{
	return (struct gci_rdv_reports){on_report, on_flows, on_renewed, w};
}

/* What is known now. */
static struct gci_traffic_view view(struct gci_watch *w)
{
	uint64_t now_ns = gci_wall_ns();

	gci_traffic_sum(w->traffic, now_ns);
	return (struct gci_traffic_view){w->traffic, &w->plan->grid, w->plan->names, now_ns};
}

/* ---- the file */

/* Something that is not in the file; the first time it is said. */
static void lose(struct gci_watch *w, const char *why)
{
	if (!w->is_partial)
		gci_log(GCI_LOG_ERROR, "--stats: lines are missing in %s: %s; the job goes on",
			w->path, why);
	w->is_partial = 1;
}

/* Takes `object` over. */
static void put_line(struct gci_watch *w, const char *type, uint64_t now_ns, json_t *object)
{
	json_t *line = json_pack("{s:s, s:I}", "type", type, "time_ns", (json_int_t)now_ns);
	int is_late = gci_sink_backlog(&w->file) >= MOST_BACKLOG;
	size_t before = w->file.o.out.len;
	char *text = NULL;

	if (line && object && !json_object_update(line, object) && !is_late)
		text = json_dumps(line, JSON_COMPACT);
	if (text)
		gci_buf_printf(&w->file.o.out, "%s\n", text);
	if (w->file.o.out.len == before)
		lose(w, is_late ? "it is written too slowly" : "out of memory");
	free(text); /* jansson's */
	json_decref(line);
	json_decref(object);
}

static json_t *job_json(const struct gci_placement *p)
{
	json_t *clusters = json_array();
	int c;

	for (c = 0; c < p->grid.nclusters; c++)
		json_array_append_new(clusters, json_string(p->grid.clusters[c].name));
	return json_pack("{s:i, s:I, s:I, s:I, s:o}", "version", 1, "ranks", (json_int_t)p->size,
		"dilation", (json_int_t)p->grid.dilation, "bin_ns", (json_int_t)GCI_BIN_NS,
		"clusters", clusters);
}

static void write_pairs(struct gci_watch *w, const struct gci_traffic_view *v, uint64_t end)
{
	size_t i, n = (size_t)v->t->nclusters * v->t->nclusters;

	for (i = 0; i < n; i++) {
		const struct gci_traffic_pair *p = v->t->pairs[i];

		if (p && gci_bins_sum(&p->bins, w->written_bin, end))
			put_line(w, "pair", v->now_ns,
				gci_traffic_pair_json(v, p, w->written_bin, end));
	}
}

/* Ranks that sent something to another cluster, and their connections. */
static void write_rank(struct gci_watch *w, const struct gci_traffic_view *v, uint32_t rank)
{
	const struct gci_traffic_rank *k = &v->t->ranks[rank];
	int sent = 0;
	size_t i;

	for (i = 0; i < k->nparts; i++) {
		if (!k->parts[i].fresh_nbytes || k->parts[i].to == v->t->cluster_of[rank])
			continue;
		put_line(w, "rank", v->now_ns, gci_traffic_part_json(v, rank, &k->parts[i]));
		sent = 1;
	}
	for (i = 0; sent && i < k->nflows; i++)
		put_line(w, "connection", v->now_ns, gci_traffic_flow_json(v, rank, &k->flows[i]));
}

/* A rank's first report may be a period behind those of the others, which are waited for no longer
 * than that; the job's last lines wait for nothing. */
static void write_lines(struct gci_watch *w, int last)
{
	const struct gci_traffic_view v = view(w);
	uint64_t end = gci_traffic_settled(v.t, v.now_ns);
	uint64_t lag = w->period_ms * GCI_NS_PER_MS / GCI_BIN_NS;
	uint32_t r;

	end = last ? v.now_ns / GCI_BIN_NS + 1 : end > lag ? end - lag : 0;
	write_pairs(w, &v, end);
	for (r = 0; r < v.t->size; r++)
		write_rank(w, &v, r);
	w->written_bin = end > w->written_bin ? end : w->written_bin;
	gci_sink_flush(&w->file);
}

void gci_watch_end(struct gci_watch *w)
{
	struct gci_traffic_view v;
	size_t i, n;

	uv_timer_stop(&w->timer);
	if (!w->has_file)
		return;
	write_lines(w, 1);
	v = view(w);
	n = (size_t)v.t->nclusters * v.t->nclusters;
	for (i = 0; i < n; i++)
		if (v.t->pairs[i])
			put_line(w, "total", v.now_ns,
				gci_traffic_pair_json(&v, v.t->pairs[i], 0, 0));
	if (w->traffic->failed)
		lose(w, "out of memory");
	gci_sink_flush(&w->file);
}

int gci_watch_failed(const struct gci_watch *w)
{
	return w->file.error || w->is_partial;
}

/* ---- who wants it */

static void tell_ranks(struct gci_watch *w)
{
	uint64_t now = gci_now_ns();
	struct gci_ctl_watch m = {0};

	if (w->has_file || now < w->until_ns)
		m.period_ms = w->period_ms;
	m.flows = m.period_ms && (w->has_file || now < w->flows_until_ns);
	if (m.period_ms == w->told.period_ms && m.flows == w->told.flows)
		return;
	w->told = m;
	gci_rdv_watch(w->server->rdv, &m);
	gci_server_kick(w->server);
}

static void on_period(uv_timer_t *t)
{
	struct gci_watch *w = t->data;

	tell_ranks(w);
	if (!w->told.period_ms)
		uv_timer_stop(t);
	if (w->has_file)
		write_lines(w, 0);
}

static void start_timer(struct gci_watch *w)
{
	if (!uv_is_active((uv_handle_t *)&w->timer))
		uv_timer_start(&w->timer, on_period, w->period_ms, w->period_ms);
}

/* Somebody asks, and would ask again within lease_ns; `flows`: for single connections, too. */
static void want(struct gci_watch *w, uint64_t lease_ns, int flows)
{
	uint64_t until_ns = gci_now_ns() + lease_ns;

	if (until_ns > w->until_ns)
		w->until_ns = until_ns;
	if (flows && until_ns > w->flows_until_ns)
		w->flows_until_ns = until_ns;
	tell_ranks(w);
	start_timer(w);
}

void gci_watch_start(struct gci_watch *w, struct gci_server *server)
{
	w->server = server;
	if (!w->has_file)
		return;
	put_line(w, "job", gci_wall_ns(), job_json(w->plan));
	tell_ranks(w);
	start_timer(w);
}

/* ---- what can be asked over the control socket */

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
	const struct gci_watch *w = user;
	const struct gci_placement *p = w->plan;
	char command[200];

	(void)request;
	join(w->argv, command, sizeof(command));
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
	struct gci_watch *w = user;
	struct gci_budget_order o;
	struct gci_ctl_budget b;
	struct gci_link *link;
	const char *text;
	int rc = gci_json_string(request, "budget", MOST_BUDGET, &text);

	(void)reply;
	if (!rc)
		rc = gci_budget_parse(&o, text, e);
	if (rc)
		return rc;
	link = gci_placement_budget(w->plan, &o, &b.bps, e);
	if (!link)
		return e->status;
	b.from = (uint32_t)link->from;
	b.to = (uint32_t)link->to;
	if (gci_rdv_budget(w->server->rdv, &b))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	link->budget_bps = b.bps;
	gci_server_kick(w->server);
	return 0;
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
	const struct gci_watch *w = user;
	const struct gci_grid *g = &w->plan->grid;
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

static int traffic(
	void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	struct gci_watch *w = user;
	struct gci_traffic_view v;
	uint64_t since = 0;
	int flows = 0, rc = 0;

	if (gci_json_has(request, "since"))
		rc = gci_json_uint(request, "since", 0, INT64_MAX, &since);
	if (!rc && gci_json_has(request, "connections"))
		rc = gci_json_bool(request, "connections", &flows);
	if (rc)
		return rc;
	want(w, LEASE_NS, flows);
	v = view(w);
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
	struct gci_watch *w = user;
	struct gci_traffic_view v;
	struct gci_buf text = {0};
	char job[24];
	int failed;

	(void)request;
	want(w, LONG_LEASE_NS, 0);
	v = view(w);
	snprintf(job, sizeof(job), "%ld", (long)getpid());
	gci_traffic_prometheus(&v, job, &text);
	failed = text.failed || json_object_set_new(reply, "fresh", json_boolean(v.t->first_bin)) ||
		 json_object_set_new(reply, "text", json_string(gci_buf_cstr(&text)));
	gci_buf_free(&text);
	return failed ? gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory") : 0;
}

static const char *const budget_arguments[] = {"cmd", "budget", NULL};
static const char *const traffic_keys[] = {"cmd", "since", "connections", NULL};
static const char *const no_arguments[] = {"cmd", NULL};

const struct gci_jobctl_command gci_watch_commands[] = {
	{"job", no_arguments, job},
	{"status", no_arguments, status},
	{"budget", budget_arguments, budget},
	{"prometheus", no_arguments, prometheus},
	{"traffic", traffic_keys, traffic},
	{NULL, NULL, NULL},
};
