/* SPDX-License-Identifier: MIT
 * One link at a time, by rank 0's word; who has no part in it waits for the next. */
#include "tools/probe/probe.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/params_json.h"
#include "collectives/models/ramp.h"
#include "netem/cpu.h"
#include "tools/lib/cases.h"
#include "tools/lib/progress.h"
#include "tools/lib/tools.h"
#include "tools/probe/clusters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct gct_probe {
	gcoll_comm *comm, *own;
	struct gct_lab lab;
	struct gct_wire wire;
	const struct gci_grid *grid;
	uint32_t dilation;
	const char *file;       /* of parameters; NULL: none is written */
	const char *grid_file;  /* of the clusters found; NULL: none */
	struct gct_budget all;  /* by this machine's clock; 0: by the number of links */
	struct gct_budget most; /* of that, for links: the rest is for pools */
	uint64_t most_message, streams;
	int pools;

	/* Rank 0's. */
	struct gct_probed *links;
	size_t nlinks;
	uint64_t started_ns; /* the program */
	uint64_t began_ns;   /* measuring, to which the budget of time applies */
	uint64_t nbytes;
};

/* What rank 0 tells all others to do next. */
enum gct_task_kind { GCT_TASK_END, GCT_TASK_LINK, GCT_TASK_SENDERS, GCT_TASK_PAIR };

struct gct_task {
	uint64_t kind, from, to;    /* clusters of the topology */
	uint64_t a, b;              /* LINK, PAIR: the ranks */
	uint64_t ns, nbytes;        /* LINK, PAIR: the budget; SENDERS: a piece */
	uint64_t level, n, streams; /* SENDERS; n pieces each */
};

/* ---- What one link's measuring rank tells rank 0. */

#define MOST_ENTRIES 4096

static void put_rates(struct gci_buf *out, const struct gci_params_rate *r, size_t n)
{
	size_t i;

	gci_buf_put_u32(out, (uint32_t)n);
	for (i = 0; i < n; i++) {
		gci_buf_put_u32(out, r[i].streams);
		gci_buf_put_u64(out, r[i].bps);
	}
}

static void put_points(struct gci_buf *out, const struct gci_params_link *l)
{
	size_t i;

	gci_buf_put_u32(out, (uint32_t)l->npoints);
	for (i = 0; i < l->npoints; i++) {
		gci_buf_put_u64(out, l->points[i].nbytes);
		gci_buf_put_u64(out, l->points[i].os_ns);
		gci_buf_put_u64(out, l->points[i].or_ns);
		gci_buf_put_u64(out, l->points[i].gap_ns);
	}
}

static void put_isends(struct gci_buf *out, const struct gci_params_link *l)
{
	size_t i;

	gci_buf_put_u32(out, (uint32_t)l->nisends);
	for (i = 0; i < l->nisends; i++) {
		const struct gci_params_isend *s = &l->isends[i];

		gci_buf_put_u64(out, s->nbytes);
		gci_buf_put_u8(out, s->immediate != 0);
		gci_buf_put_u32(out, s->initial);
		gci_buf_put_u32(out, s->mid);
		gci_buf_put_u64(out, s->os_start_ns);
		gci_buf_put_u64(out, s->os_spike_ns);
		gci_buf_put_u64(out, s->os_mid_ns);
	}
}

/* All that gct_probe_link has found, as bytes and back. */
static void encode(const struct gct_probed *p, struct gci_buf *out)
{
	gci_buf_put_u32(out, p->streams);
	gci_buf_put_u32(out, p->one_way);
	gci_buf_put_u32(out, p->limits);
	gci_buf_put_u64(out, p->err_ppm);
	gci_buf_put_u64(out, p->took_ns);
	gci_buf_put_u64(out, p->nbytes);
	gci_buf_put_u64(out, p->link.latency_ns);
	put_points(out, &p->link);
	put_rates(out, p->link.rates, p->link.nrates);
	put_isends(out, &p->link);
}

/* The number of entries; memory for them in *list. */
static size_t open_list(struct gci_reader *r, size_t size, void **list)
{
	uint32_t n = gci_read_u32(r);

	if (r->failed || n > MOST_ENTRIES || !(*list = gci_calloc(n, size))) {
		r->failed = 1;
		return 0;
	}
	return n;
}

static void read_points(struct gci_reader *r, struct gci_params_link *l)
{
	void *list = NULL;
	size_t i, n = open_list(r, sizeof(*l->points), &list);

	l->points = list;
	for (i = 0; i < n; i++) {
		l->points[i].nbytes = gci_read_u64(r);
		l->points[i].os_ns = gci_read_u64(r);
		l->points[i].or_ns = gci_read_u64(r);
		l->points[i].gap_ns = gci_read_u64(r);
	}
	l->npoints = n;
}

static void read_rates(struct gci_reader *r, struct gci_params_link *l)
{
	void *list = NULL;
	size_t i, n = open_list(r, sizeof(*l->rates), &list);

	l->rates = list;
	for (i = 0; i < n; i++) {
		l->rates[i].streams = gci_read_u32(r);
		l->rates[i].bps = gci_read_u64(r);
	}
	l->nrates = n;
}

static void read_isends(struct gci_reader *r, struct gci_params_link *l)
{
	void *list = NULL;
	size_t i, n = open_list(r, sizeof(*l->isends), &list);

	l->isends = list;
	for (i = 0; i < n; i++) {
		struct gci_params_isend *s = &l->isends[i];

		s->nbytes = gci_read_u64(r);
		s->immediate = gci_read_u8(r);
		s->initial = gci_read_u32(r);
		s->mid = gci_read_u32(r);
		s->os_start_ns = gci_read_u64(r);
		s->os_spike_ns = gci_read_u64(r);
		s->os_mid_ns = gci_read_u64(r);
	}
	l->nisends = n;
}

/* GCOLL_ERR_PROTO where it is not whole. */
static int decode(struct gct_probed *p, const uint8_t *data, size_t len)
{
	struct gci_reader r = {.data = data, .len = len};

	p->streams = gci_read_u32(&r);
	p->one_way = gci_read_u32(&r);
	p->limits = gci_read_u32(&r);
	p->err_ppm = gci_read_u64(&r);
	p->took_ns = gci_read_u64(&r);
	p->nbytes = gci_read_u64(&r);
	p->link.latency_ns = gci_read_u64(&r);
	read_points(&r, &p->link);
	read_rates(&r, &p->link);
	read_isends(&r, &p->link);
	return r.failed ? GCOLL_ERR_PROTO : 0;
}

static void probed_free(struct gct_probed *p)
{
	gci_free(p->link.points);
	gci_free(p->link.rates);
	gci_free(p->link.isends);
	memset(&p->link, 0, sizeof(p->link));
}

/* ---- What rank 0 says before, meanwhile and at the end, and the parameters file. */

static const char *cluster_name(const struct gct_probe *p, int cluster)
{
	return p->grid->clusters[p->comm->topo.in_grid[cluster]].name;
}

static void link_name(const struct gct_probe *p, int from, int to, char *out, size_t size)
{
	if (from == to)
		snprintf(out, size, "%s", cluster_name(p, from));
	else
		snprintf(out, size, "%s > %s", cluster_name(p, from), cluster_name(p, to));
}

static void gct_probe_print_plan(const struct gct_probe *p)
{
	char t[16], bytes[16];
	size_t i, n = 0;

	for (i = 0; i < p->nlinks; i++)
		n += p->links[i].last >= 0;
	printf("%d ranks in %d cluster%s: %zu link%s, one after the other, in at most %s",
		p->comm->size, p->comm->topo.nclusters, p->comm->topo.nclusters > 1 ? "s" : "", n,
		n == 1 ? "" : "s", gci_format_time(p->all.ns, t, sizeof(t)));
	if (p->dilation > 1)
		printf(" (%s", gci_format_time(p->all.ns / p->dilation, t, sizeof(t)));
	if (p->dilation > 1)
		printf(" x %u, for the lab's dilation)", p->dilation);
	printf(" and %s\n", gci_format_bytes(p->all.nbytes, bytes, sizeof(bytes)));
	fflush(stdout);
}

static void say_progress(const struct gct_probe *p, const char *what, int from, int to)
{
	char name[160], t[16], bytes[16];

	link_name(p, from, to, name, sizeof(name));
	gct_progress("%s %s, after %s and %s", what, name,
		gci_format_time(gci_now_ns() - p->began_ns, t, sizeof(t)),
		gci_format_bytes(p->nbytes, bytes, sizeof(bytes)));
}

/* ---- the table */

static void print_time(const struct gct_probe *p, uint64_t ns)
{
	char t[16];

	printf(" %7s", gci_format_time(ns / p->dilation, t, sizeof(t)));
}

static void print_rate(const struct gct_probe *p, const struct gci_params_rate *r, size_t n)
{
	size_t knee = n ? gci_params_rate_knee(r, n) : 0;
	char rate[16];

	if (!n)
		printf(" %9s %3s", "-", "-");
	else
		printf(" %9s %3u", gci_format_rate(r[knee].bps * p->dilation, rate, sizeof(rate)),
			r[knee].streams);
}

/* In a lab, all hosts share one machine's CPUs. */
static int is_busy(const struct gct_probe *p, const struct gct_probed *l)
{
	return p->lab.backend && l->cpu_percent > gci_cpu_most_percent(p->lab.backend);
}

static void print_link(const struct gct_probe *p, const struct gct_probed *l)
{
	struct gci_params_point at[2];
	char name[160];

	link_name(p, l->from, l->to, name, sizeof(name));
	printf("%-16s", name);
	if (!l->link.npoints) {
		printf(" not measured: %s\n",
			l->last < 0 ? "it has one rank only" : "not enough time or bytes");
		return;
	}
	gci_params_at(&l->link, 64u << 10, &at[0]);
	gci_params_at(&l->link, 1u << 20, &at[1]);
	print_time(p, l->link.latency_ns);
	print_time(p, l->link.points[0].gap_ns);
	print_time(p, at[0].os_ns);
	print_time(p, at[0].or_ns);
	print_time(p, at[0].gap_ns);
	print_time(p, at[1].gap_ns);
	if (l->err_ppm < 1000000)
		printf(" %4.1f%%", (double)l->err_ppm / 1e4);
	else
		printf(" %5s", "?"); /* of one time */
	print_rate(p, l->link.rates, l->link.nrates);
	print_rate(p, l->senders, l->nsenders);
	printf("%s%s\n", l->limits ? " *" : "", is_busy(p, l) ? " !" : "");
}

static void print_isends(const struct gct_probe *p)
{
	size_t i, k;
	char name[160], size[16];

	printf("\nisends in a row: how many until one has to wait, then how many between those\n");
	for (i = 0; i < p->nlinks; i++) {
		const struct gci_params_link *l = &p->links[i].link;

		link_name(p, p->links[i].from, p->links[i].to, name, sizeof(name));
		for (k = 0; k < l->nisends; k++) {
			const struct gci_params_isend *s = &l->isends[k];

			printf("%-16s %7s: %s", k ? "" : name,
				gci_format_bytes(s->nbytes, size, sizeof(size)),
				s->immediate ? "" : "blocking,");
			print_time(p, s->os_start_ns);
			if (!s->immediate) {
				printf(" each\n");
				continue;
			}
			if (s->os_spike_ns == s->os_start_ns) {
				printf(", no pattern in %u\n", s->initial);
				continue;
			}
			printf(", %u times, then", s->initial);
			print_time(p, s->os_spike_ns);
			printf(" each %u, else", s->mid + 1);
			print_time(p, s->os_mid_ns);
			printf("\n");
		}
	}
}

static void print_all(const struct gct_probe *p)
{
	int one_way = p->nlinks && p->links[0].one_way;
	uint32_t limits = 0;
	int busy = 0;
	size_t i;

	gct_progress_end();
	printf("\n%-16s %7s %7s %7s %7s %7s %7s %5s %9s %3s %9s %3s\n", "link", "L", "g(0)",
		"os 64K", "or 64K", "g 64K", "g 1M", "+-", "a pair", "str", "pairs", "snd");
	for (i = 0; i < p->nlinks; i++) {
		print_link(p, &p->links[i]);
		limits |= p->links[i].limits;
		busy |= is_busy(p, &p->links[i]);
	}
	print_isends(p);
	printf("\nL: %s; +-: half of the 90 %% confidence interval of g at the largest size;\n"
	       "a pair, str: what one pair of hosts gets, with the fewest streams that reach 95 %% "
	       "of it;\npairs, snd: pairs that send at once, "
	       "the fewest that reach 95 %% of their most\n",
		one_way ? "one way, by the lab's one clock"
			: "half a round trip, since the hosts' clocks may differ");
	if (limits)
		printf("* the %s did not suffice for all: other sizes than these are estimates\n",
			limits == GCT_OUT_OF_TIME    ? "time"
			: limits == GCT_OUT_OF_BYTES ? "bytes"
						     : "time and the bytes");
	if (busy)
		printf("! the machine's CPU was busy more than %d %% of the time: "
		       "these figures are the CPU's,\n"
		       "  not the network's; a larger dilation tells more\n",
			gci_cpu_most_percent(p->lab.backend));
	if (p->dilation > 1)
		printf("times are measured times divided by %u, rates multiplied\n", p->dilation);
}

static void gct_probe_print_cost(const struct gct_probe *p)
{
	char t[16], bytes[16];

	printf("took %s and %s\n", gci_format_time(gci_now_ns() - p->started_ns, t, sizeof(t)),
		gci_format_bytes(p->nbytes, bytes, sizeof(bytes)));
}

/* ---- the file */

static void date_of(char out[32])
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int copy_senders(const struct gct_probed *l, struct gci_params_link *out)
{
	if (!l->nsenders)
		return 0;
	out->senders = gci_calloc(l->nsenders, sizeof(*out->senders));
	if (!out->senders)
		return GCOLL_ERR_NOMEM;
	memcpy(out->senders, l->senders, l->nsenders * sizeof(*out->senders));
	out->nsenders = l->nsenders;
	return 0;
}

/* Moves the links' lists. */
static int make_params(const struct gct_probe *p, struct gci_params *out)
{
	const int *in_grid = p->comm->topo.in_grid;
	char date[32];
	size_t i;

	date_of(date);
	if (gci_params_init(out, p->grid, date))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for parameters");
	for (i = 0; i < p->nlinks; i++) {
		struct gct_probed *l = &p->links[i];
		struct gci_params_link *to = gci_params_link(out, in_grid[l->from], in_grid[l->to]);

		*to = l->link;
		memset(&l->link, 0, sizeof(l->link));
		if (copy_senders(l, to)) {
			gci_params_free(out);
			return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for parameters");
		}
		if (l->one_way)
			out->latency = GCI_LATENCY_ONE_WAY;
	}
	gci_params_undilate(out, p->dilation);
	return 0;
}

static int gct_probe_write(const struct gct_probe *p)
{
	struct gci_params params;
	struct gci_buf b = {0};
	int rc = make_params(p, &params);

	if (rc)
		return rc;
	gci_params_print(&params, &b);
	gci_params_free(&params);
	rc = gct_write(p->file, &b);
	gci_buf_free(&b);
	return rc;
}

static int gct_probe_task(
	struct gct_probe *p, struct gct_task *t, struct gct_probed *out, uint64_t *found);

uint64_t gct_probe_share(uint64_t all, uint64_t part, uint64_t rest)
{
	return (uint64_t)((unsigned __int128)all * part / ((unsigned __int128)part + rest));
}

/* ---- Which hosts belong together, by the bandwidths and latencies of all pairs of them, and
 * whether the grid file says the same. */

/* The hosts, each by the first of its ranks. */
struct pairs {
	int n;
	int *rank;
	const char **hosts;
	uint64_t *bps, *latency_ns; /* [from * n + to] */
	size_t missing;
};

static int first_on_host(const gcoll_comm *c, int rank)
{
	int i;

	for (i = 0; i < rank; i++)
		if (!strcmp(gci_comm_host(c, i), gci_comm_host(c, rank)))
			return 0;
	return 1;
}

static int list_hosts(struct pairs *v, const gcoll_comm *c)
{
	size_t n = (size_t)c->size;
	int r;

	v->rank = gci_calloc(n, sizeof(*v->rank));
	v->hosts = gci_calloc(n, sizeof(*v->hosts));
	for (r = 0; v->rank && v->hosts && r < c->size; r++) {
		if (!first_on_host(c, r))
			continue;
		v->hosts[v->n] = gci_comm_host(c, r);
		v->rank[v->n++] = r;
	}
	n = (size_t)v->n;
	v->bps = gci_calloc(n * n, sizeof(*v->bps));
	v->latency_ns = gci_calloc(n * n, sizeof(*v->latency_ns));
	if (!v->rank || !v->hosts || !v->bps || !v->latency_ns)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for %d hosts", c->size);
	return 0;
}

static void free_pairs(struct pairs *v)
{
	gci_free(v->rank);
	gci_free(v->hosts);
	gci_free(v->bps);
	gci_free(v->latency_ns);
}

static uint64_t count_pairs(const gcoll_comm *c)
{
	uint64_t n = 0;
	int r;

	for (r = 0; r < c->size; r++)
		n += (uint64_t)first_on_host(c, r);
	return n * (n - 1) / 2;
}

/* One pair of hosts, in one direction: the other one is taken to be the same. */
static int measure_pair(struct gct_probe *p, struct pairs *v, int a, int b, uint64_t parts)
{
	const struct gci_topo *t = &p->comm->topo;
	uint64_t spent = gci_now_ns() - p->began_ns, found[GCT_PAIR_VALUES] = {0};
	struct gct_task task = {.kind = GCT_TASK_PAIR,
		.from = (uint64_t)t->cluster[v->rank[a]],
		.to = (uint64_t)t->cluster[v->rank[b]],
		.a = (uint64_t)v->rank[a],
		.b = (uint64_t)v->rank[b],
		.ns = p->all.ns > spent ? (p->all.ns - spent) / parts : 0,
		.nbytes = p->all.nbytes > p->nbytes ? (p->all.nbytes - p->nbytes) / parts : 0};
	int rc = gct_probe_task(p, &task, NULL, found);

	v->bps[a * v->n + b] = found[0] * p->dilation;
	v->latency_ns[a * v->n + b] = found[1] / p->dilation;
	p->nbytes += found[2];
	v->missing += !found[0];
	return rc;
}

static int measure_pairs(struct gct_probe *p, struct pairs *v)
{
	uint64_t parts = (uint64_t)v->n * ((uint64_t)v->n - 1) / 2;
	int a, b, rc = 0;

	for (a = 0; a < v->n && !rc; a++) {
		say_progress(p, "pairs of a host in", p->comm->topo.cluster[v->rank[a]],
			p->comm->topo.cluster[v->rank[a]]);
		for (b = a + 1; b < v->n && !rc; b++)
			rc = measure_pair(p, v, a, b, parts--);
	}
	return rc;
}

static int print_tree(const struct gci_measured *m, struct gci_error *e)
{
	struct gci_pools tree = {0};
	struct gci_buf text = {0};
	int rc = gci_clusters_tree(&tree, m, e);

	if (!rc) {
		gci_clusters_print_tree(&tree, m, &text);
		printf("\npools of hosts, by the bandwidths of all pairs:\n%s",
			gci_buf_cstr(&text));
	}
	gci_buf_free(&text);
	gci_pools_free(&tree);
	return rc;
}

static int print_clusters(const struct gct_probe *p, const struct gci_clusters *c,
	const struct gci_measured *m, struct gci_error *e)
{
	struct gci_buf text = {0};
	int differ = gci_clusters_compare(c, m, p->grid, &text);

	if (differ >= 0)
		printf("%d cluster%s by measurement%s\n%s", c->n, c->n == 1 ? "" : "s",
			differ ? ", which differ from the grid file:" : ", as in the grid file",
			differ ? gci_buf_cstr(&text) : "");
	gci_buf_free(&text);
	return differ < 0 ? gci_error_set(e, differ, "out of memory for clusters") : 0;
}

/* What gridcoll-run --grid takes. */
static int write_grid(const char *path, const struct gci_clusters *c, const struct gci_measured *m,
	struct gci_error *e)
{
	struct gci_buf text = {0};
	struct gci_grid found;
	int rc = gci_clusters_grid(c, m, path, &found, e);

	if (rc)
		return rc;
	gci_buf_printf(&text, "; as gridcoll probe has measured it\n");
	gci_grid_print(&found, &text);
	gci_grid_free(&found);
	rc = gct_write(path, &text);
	gci_buf_free(&text);
	return rc ? gci_error_set(e, rc, "%s", gcoll_last_error()) : 0;
}

static int report_pools(const struct gct_probe *p, const struct pairs *v)
{
	struct gci_measured m = {
		.n = v->n, .hosts = v->hosts, .bps = v->bps, .latency_ns = v->latency_ns};
	struct gci_clusters c = {0};
	struct gci_error e = {0};
	int rc = print_tree(&m, &e);

	if (!rc)
		rc = gci_clusters_find(&c, &m, &e);
	if (!rc)
		rc = print_clusters(p, &c, &m, &e);
	if (!rc && p->grid_file)
		rc = write_grid(p->grid_file, &c, &m, &e);
	gci_clusters_free(&c);
	return rc ? gci_comm_error(e.status, "%s", e.text) : 0;
}

/* Rank 0: measures all pairs of hosts, and prints which belong together. */
static int gct_probe_pools(struct gct_probe *p)
{
	struct pairs v = {0};
	int rc = list_hosts(&v, p->comm);

	if (!rc && v.n < 2) {
		printf("\npools of hosts: there is one host only%s\n",
			p->grid_file ? ", no grid file is written" : "");
	} else if (!rc) {
		rc = measure_pairs(p, &v);
		if (!rc && v.missing)
			printf("\npools of hosts: time or bytes did not suffice for %zu pairs%s\n",
				v.missing, p->grid_file ? ", no grid file is written" : "");
		else if (!rc)
			rc = report_pools(p, &v);
	}
	free_pairs(&v);
	return rc;
}

/* ---- tasks */

#define RESULT_TAG      1
#define SENDERS_PERCENT 25 /* of all time and bytes */
#define MOST_RESULT     (1u << 20)

/* ---- parts of tasks */

/* What connections such a pair has in collective operations. */
static uint32_t usual_streams(const struct gct_probe *p, const struct gct_task *t)
{
	return gci_topo_link(&p->comm->topo, (int)t->from, (int)t->to)->streams;
}

static int send_result(struct gct_probe *p, const struct gct_probed *result)
{
	struct gci_buf b = {0};
	uint64_t len;
	int rc;

	encode(result, &b);
	len = b.len;
	rc = b.failed ? gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for a result") : 0;
	if (!rc)
		rc = gcoll_send(&len, 1, GCOLL_UINT64, 0, RESULT_TAG, p->own);
	if (!rc)
		rc = gcoll_send(b.data, len, GCOLL_BYTE, 0, RESULT_TAG, p->own);
	gci_buf_free(&b);
	return rc;
}

static int recv_result(struct gct_probe *p, int from, struct gct_probed *result)
{
	uint8_t *data = NULL;
	uint64_t len;
	int rc = gcoll_recv(&len, 1, GCOLL_UINT64, from, RESULT_TAG, p->own);

	if (!rc && len > MOST_RESULT)
		rc = gci_comm_error(GCOLL_ERR_PROTO, "rank %d has measured too much", from);
	if (!rc && !(data = gci_calloc(len, 1)))
		rc = gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for a result");
	if (!rc)
		rc = gcoll_recv(data, len, GCOLL_BYTE, from, RESULT_TAG, p->own);
	if (!rc && decode(result, data, len))
		rc = gci_comm_error(
			GCOLL_ERR_PROTO, "what rank %d has measured is not whole", from);
	gci_free(data);
	return rc;
}

static int do_link(struct gct_probe *p, const struct gct_task *t, struct gct_probed *out)
{
	struct gct_budget most = {t->ns, t->nbytes};
	struct gct_probed mine = {0}, *result = p->comm->rank ? &mine : out;
	int a = (int)t->a, b = (int)t->b, rc;

	if (p->comm->rank == b) {
		rc = gct_mirror(&p->wire, a);
		return rc || b ? rc : recv_result(p, a, out);
	}
	if (p->comm->rank != a)
		return p->comm->rank ? 0 : recv_result(p, a, out);
	result->streams = gct_wire_streams(&p->wire, b, usual_streams(p, t));
	rc = gct_probe_link(&p->wire, b, &most, p->lab.backend != NULL, result);
	if (!rc && p->comm->rank)
		rc = send_result(p, result);
	probed_free(&mine);
	return rc;
}

static int do_pair(struct gct_probe *p, const struct gct_task *t, uint64_t *found)
{
	uint64_t mine[GCT_PAIR_VALUES] = {0}, *out = p->comm->rank ? mine : found;
	struct gct_budget most = {t->ns, t->nbytes};
	int a = (int)t->a, b = (int)t->b, rc = 0;

	if (p->comm->rank == b)
		rc = gct_mirror(&p->wire, a);
	if (p->comm->rank == a)
		rc = gct_probe_pair(&p->wire, b, &most,
			gct_wire_streams(&p->wire, b, usual_streams(p, t)), out);
	if (!rc && p->comm->rank == a && a)
		rc = gcoll_send(out, GCT_PAIR_VALUES, GCOLL_UINT64, 0, RESULT_TAG, p->own);
	if (!rc && !p->comm->rank && a)
		rc = gcoll_recv(out, GCT_PAIR_VALUES, GCOLL_UINT64, a, RESULT_TAG, p->own);
	return rc;
}

/* This rank's part: *ns of the second half of its pieces, on their receiver's clock. */
static int send_pieces(struct gct_probe *p, const struct gct_task *t, int peer, uint64_t *ns)
{
	const struct gct_command end = {.kind = GCT_END};
	uint64_t *at_ns = gci_calloc(t->n, sizeof(*at_ns));
	int rc = at_ns ? 0 : gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for times");

	if (!rc)
		rc = gct_trial_pieces(
			&p->wire, peer, (uint32_t)t->streams, (uint32_t)t->n, t->nbytes, at_ns);
	if (!rc)
		*ns = at_ns[t->n - 1] - at_ns[t->n / 2 - 1];
	gci_free(at_ns);
	return rc ? rc : gct_command_say(&p->wire, peer, &end);
}

/* All that they moved in that time, by the slowest of them: they run at about the same time. */
static uint64_t sum_of(const struct gct_task *t, const uint64_t *ns, int n)
{
	uint64_t longest = 0;
	unsigned __int128 bits = (unsigned __int128)t->level * t->nbytes * (t->n - t->n / 2) * 8;
	int i;

	for (i = 0; i < n; i++)
		longest = ns[i] > longest ? ns[i] : longest;
	return longest ? (uint64_t)(bits * GCI_NS_PER_S / longest) : 0;
}

static int do_senders(struct gct_probe *p, const struct gct_task *t, uint64_t *bps)
{
	const struct gci_topo *topo = &p->comm->topo;
	const int *from = gci_topo_members(topo, (int)t->from);
	const int *to = gci_topo_members(topo, (int)t->to);
	uint64_t mine = 0, *ns = gci_calloc((size_t)p->comm->size, sizeof(*ns)), i;
	int rc = ns ? 0 : gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for times");

	for (i = 0; i < t->level && !rc; i++) {
		if (from[i] == p->comm->rank)
			rc = send_pieces(p, t, to[i], &mine);
		else if (to[i] == p->comm->rank)
			rc = gct_mirror(&p->wire, from[i]);
	}
	if (!rc)
		rc = gcoll_gather(&mine, ns, 1, GCOLL_UINT64, 0, p->own);
	if (!rc && !p->comm->rank)
		*bps = sum_of(t, ns, p->comm->size);
	gci_free(ns);
	return rc;
}

/* ---- rank 0 leads */

/* Tells all; every rank does its part. On rank 0, `out` is what LINK has found (may be NULL on
 * others), found[] what SENDERS reached together, in bits per second, or GCT_PAIR_VALUES. */
static int gct_probe_task(
	struct gct_probe *p, struct gct_task *t, struct gct_probed *out, uint64_t *found)
{
	int rc = gcoll_bcast(t, sizeof(*t) / sizeof(uint64_t), GCOLL_UINT64, 0, p->own);

	if (rc || t->kind == GCT_TASK_END)
		return rc;
	if (t->kind == GCT_TASK_LINK)
		return do_link(p, t, out);
	return t->kind == GCT_TASK_PAIR ? do_pair(p, t, found) : do_senders(p, t, found);
}

static uint64_t left(uint64_t most, uint64_t spent)
{
	return most > spent ? most - spent : 0;
}

/* Round trips between clusters are long. */
static uint64_t weight(const struct gct_probed *l)
{
	return l->last < 0 ? 0 : l->from == l->to ? 1 : 3;
}

/* Its part of what is left for it and the links after it, whose weights `parts` adds up. */
static int measure_link(struct gct_probe *p, struct gct_probed *l, uint64_t *parts)
{
	uint64_t spent = gci_now_ns() - p->began_ns, mine = weight(l), busy[2], all[2];
	uint64_t percent = 100 - (p->comm->topo.nclusters > 1 ? SENDERS_PERCENT : 0);
	struct gct_task t = {.kind = GCT_TASK_LINK,
		.from = (uint64_t)l->from,
		.to = (uint64_t)l->to,
		.a = (uint64_t)l->first,
		.b = (uint64_t)l->last};
	int rc;

	l->cpu_percent = -1;
	if (!mine)
		return 0;
	t.ns = left(p->most.ns / 100 * percent, spent) / *parts * mine;
	t.nbytes = left(p->most.nbytes / 100 * percent, p->nbytes) / *parts * mine;
	*parts -= mine;
	say_progress(p, "link", l->from, l->to);
	gci_cpu_read(&busy[0], &all[0]);
	rc = gct_probe_task(p, &t, l, NULL);
	gci_cpu_read(&busy[1], &all[1]);
	l->cpu_percent = gci_cpu_percent(busy[1] - busy[0], all[1] - all[0]);
	p->nbytes += l->nbytes;
	return rc;
}

static int measure_senders(struct gct_probe *p, struct gct_probed *l, uint64_t parts)
{
	const struct gci_topo *topo = &p->comm->topo;
	int most = gci_topo_size(topo, l->from), there = gci_topo_size(topo, l->to), rc = 0;
	uint64_t spent = gci_now_ns() - p->began_ns, bps = 0;
	struct gci_ramp_config config = {.most_ns = left(p->most.ns, spent) / parts,
		.most_nbytes = left(p->most.nbytes, p->nbytes) / parts,
		.least_ns = gct_least_ns(&p->wire, 2 * l->link.latency_ns),
		.most_level = (uint32_t)(most < there ? most : there),
		.each = 1};
	struct gct_task t = {.kind = GCT_TASK_SENDERS,
		.from = (uint64_t)l->from,
		.to = (uint64_t)l->to,
		.streams = l->streams};
	struct gci_ramp_trial trial;
	struct gci_ramp r;

	if (l->link.nrates)
		t.streams =
			l->link.rates[gci_params_rate_knee(l->link.rates, l->link.nrates)].streams;
	say_progress(p, "senders", l->from, l->to);
	gci_ramp_init(&r, &config);
	while (!rc && gci_ramp_next(&r, &trial)) {
		uint64_t from = gci_now_ns();

		t.level = trial.level;
		t.n = trial.n;
		t.nbytes = trial.nbytes;
		rc = gct_probe_task(p, &t, NULL, &bps);
		gci_ramp_done(&r, bps, gci_now_ns() - from);
	}
	memcpy(l->senders, r.rates, r.nrates * sizeof(*r.rates));
	l->nsenders = r.nrates;
	l->limits |= r.out_of_time ? GCT_OUT_OF_TIME : 0u;
	l->limits |= r.out_of_bytes ? GCT_OUT_OF_BYTES : 0u;
	p->nbytes += r.spent_nbytes;
	return rc;
}

static int lead(struct gct_probe *p)
{
	struct gct_task end = {.kind = GCT_TASK_END};
	uint64_t weights = 0;
	size_t i, parts = 0;
	int rc = 0;

	for (i = 0; i < p->nlinks; i++)
		weights += weight(&p->links[i]);
	p->began_ns = gci_now_ns();
	for (i = 0; i < p->nlinks && !rc; i++) {
		rc = measure_link(p, &p->links[i], &weights);
		parts += p->links[i].from != p->links[i].to;
	}
	for (i = 0; i < p->nlinks && !rc; i++)
		if (p->links[i].from != p->links[i].to)
			rc = measure_senders(p, &p->links[i], parts--);
	if (rc)
		return rc;
	print_all(p);
	if (p->pools)
		rc = gct_probe_pools(p);
	return rc ? rc : gct_probe_task(p, &end, NULL, NULL);
}

/* Rank 0: all of them; other ranks: their parts until it ends. */
static int lead_or_follow(struct gct_probe *p)
{
	struct gct_task t;
	int rc;

	if (!p->comm->rank)
		return lead(p);
	do {
		rc = gct_probe_task(p, &t, NULL, NULL);
	} while (!rc && t.kind != GCT_TASK_END);
	return rc;
}

/* ---- gridcoll probe: its options, and what it is to measure */

#define LINK_NS      (15 * GCI_NS_PER_S) /* times the dilation */
#define PAIR_NS      (500 * GCI_NS_PER_MS)
#define PAIR_NBYTES  (UINT64_C(16) << 20)
#define LINK_NBYTES  (UINT64_C(512) << 20)
#define MOST_MESSAGE (UINT64_C(8) << 20)
#define STREAMS      16

#define SETTINGS struct gct_probe

static const struct gci_option options[] = {
	{'o', "output", "FILE", "write the parameters file, for gridcoll plan and tune",
		GCI_OPTION_TEXT(SETTINGS, file)},
	{'t', "time", "T",
		"take no longer than this (default 15s for each link; in a lab, both are "
		"multiplied by its dilation)",
		GCI_OPTION_TIME(SETTINGS, all.ns, 1, UINT64_MAX)},
	{'b', "bytes", "B", "send no more than this (default 512MiB for each link)",
		GCI_OPTION_BYTES(SETTINGS, all.nbytes, 1, UINT64_MAX)},
	{'m', "message", "SIZE", "the largest message worth trying (default 8MiB)",
		GCI_OPTION_BYTES(SETTINGS, most_message, 1024, 1u << 30),
		.expected = "a size from 1KiB to 1GiB"},
	{'s', "streams", "N", "most connections to try between two hosts (default 16)",
		GCI_OPTION_NUMBER(SETTINGS, streams, 1, GCI_TP_MAX_STREAMS)},
	{0, "pools", NULL, "measure all pairs of hosts, too, and say which belong together",
		GCI_OPTION_FLAG(SETTINGS, pools)},
	{0, "write-grid", "FILE", "the same, and write a grid file of what was found",
		GCI_OPTION_TEXT(SETTINGS, grid_file)},
	{0}};

static const struct gct_usage command_line = {"probe",
	"usage: gridcoll-run ... gridcoll probe [-o FILE] [options]\n"
	"Measures the links of the job's grid: inside each cluster, between its first\n"
	"two ranks on different hosts, and each way between two clusters, by their first\n"
	"ranks; one at a time.\n",
	"example: gridcoll-run --grid my.grid gridcoll probe -o my.params\n"
	"         gridcoll plan bcast --grid my.grid --params my.params --bytes 32MiB\n",
	options};

static int parse_options(struct gct_probe *p, int argc, char **argv)
{
	int first, rc;

	*p = (struct gct_probe){.most_message = MOST_MESSAGE, .streams = STREAMS};
	rc = gct_options(&command_line, p, argc, argv, GCI_OPTIONS_ANYWHERE, &first);
	if (!rc && first < argc)
		rc = gct_wrong("probe", "argument \"%s\", expected options only", argv[first]);
	p->pools |= p->grid_file != NULL;
	return rc;
}

/* The rank that measures `from` with: on another host if there is one. */
static int second_rank(const gcoll_comm *c, int cluster)
{
	const int *member = gci_topo_members(&c->topo, cluster);
	int i, n = gci_topo_size(&c->topo, cluster);

	for (i = 1; i < n; i++)
		if (strcmp(gci_comm_host(c, member[i]), gci_comm_host(c, member[0])))
			return member[i];
	return n > 1 ? member[1] : -1;
}

/* Inside of clusters first. */
static int list_links(struct gct_probe *p)
{
	const struct gci_topo *t = &p->comm->topo;
	int a, b, n = t->nclusters;

	p->links = gci_calloc((size_t)n * (size_t)n, sizeof(*p->links));
	if (!p->links)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for links");
	for (a = 0; a < n; a++)
		p->links[p->nlinks++] = (struct gct_probed){.from = a,
			.to = a,
			.first = gci_topo_members(t, a)[0],
			.last = second_rank(p->comm, a)};
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			if (a != b)
				p->links[p->nlinks++] = (struct gct_probed){.from = a,
					.to = b,
					.first = gci_topo_members(t, a)[0],
					.last = gci_topo_members(t, b)[0]};
	return 0;
}

static int set_up(struct gct_probe *p)
{
	struct gci_error e = {0};
	char streams[16];
	uint64_t n, pairs = 0;
	int rc;

	snprintf(streams, sizeof(streams), "%u", (unsigned)p->streams);
	rc = gcoll_comm_set(p->comm, "streams", streams);
	if (!rc && p->file && !p->comm->rank)
		rc = gct_try_to_write(p->file);
	if (!rc && p->grid_file && !p->comm->rank)
		rc = gct_try_to_write(p->grid_file);
	if (!rc)
		rc = gcoll_comm_dup(p->comm, &p->own);
	if (!rc && gct_lab_read(&p->lab, &e))
		rc = gci_comm_error(e.status, "%s", e.text);
	if (!rc)
		rc = gct_wire_open(&p->wire, p->comm, p->most_message, (uint32_t)p->streams);
	if (!rc)
		rc = list_links(p);
	if (rc)
		return rc;
	p->grid = p->comm->engine->job.grid;
	p->dilation = p->grid->dilation;
	n = p->nlinks;
	if (p->pools)
		pairs = count_pairs(p->comm);
	p->all.ns = (p->all.ns ? p->all.ns : n * LINK_NS + pairs * PAIR_NS) * p->dilation;
	p->all.nbytes = p->all.nbytes ? p->all.nbytes : n * LINK_NBYTES + pairs * PAIR_NBYTES;
	/* As much of it for each, whatever the sums are. */
	p->most.ns = gct_probe_share(p->all.ns, n * LINK_NS, pairs * PAIR_NS);
	p->most.nbytes = gct_probe_share(p->all.nbytes, n * LINK_NBYTES, pairs * PAIR_NBYTES);
	return 0;
}

static int run(struct gct_probe *p)
{
	int rc = set_up(p);

	if (!rc && !p->comm->rank)
		gct_probe_print_plan(p);
	if (!rc)
		rc = lead_or_follow(p);
	if (rc || p->comm->rank)
		return rc;
	rc = p->file ? gct_probe_write(p) : 0;
	if (!rc)
		gct_probe_print_cost(p);
	return rc;
}

static void tear_down(struct gct_probe *p)
{
	size_t i;

	for (i = 0; i < p->nlinks; i++)
		probed_free(&p->links[i]);
	gci_free(p->links);
	gct_wire_close(&p->wire);
	gct_lab_free(&p->lab);
}

int gct_probe_command(int argc, char **argv)
{
	struct gct_probe p;
	int rc = parse_options(&p, argc, argv);

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	p.started_ns = gci_now_ns();
	rc = gct_join("probe", &p.comm);
	if (rc)
		return rc;
	/* It uses the transport directly, and wants no other traffic. */
	rc = gcoll_comm_set(p.comm, "warm", "off");
	if (!rc)
		rc = run(&p);
	if (rc && !p.comm->engine->failure.status)
		gct_abort(p.comm, gcoll_last_error());
	gcoll_finalize(p.comm);
	tear_down(&p);
	return rc == GCOLL_ERR_INVAL ? GCT_USAGE : rc ? GCT_FAILED : GCT_OK;
}
