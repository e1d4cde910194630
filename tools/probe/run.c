/* SPDX-License-Identifier: MIT
 * One link at a time, by rank 0's word; who has no part in it waits for the next. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/measure_isend.h"
#include "netem/cpu.h"
#include "tools/lib/cases.h"
#include "tools/probe/clusters.h"
#include "tools/probe/probe.h"

#include <stdio.h>
#include <string.h>

static int gct_probe_task(
	struct gct_probe *p, struct gct_task *t, struct gct_probed *out, uint64_t *found);

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

uint64_t gct_probe_npairs(const gcoll_comm *c)
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
		gct_probe_progress(p, "pairs of a host in", p->comm->topo.cluster[v->rank[a]],
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

	gct_probed_encode(result, &b);
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
	if (!rc && gct_probed_decode(result, data, len))
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
	gct_probed_free(&mine);
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
	gct_probe_progress(p, "link", l->from, l->to);
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
	gct_probe_progress(p, "senders", l->from, l->to);
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
	gct_probe_print(p);
	if (p->pools)
		rc = gct_probe_pools(p);
	return rc ? rc : gct_probe_task(p, &end, NULL, NULL);
}

int gct_probe_run(struct gct_probe *p)
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
