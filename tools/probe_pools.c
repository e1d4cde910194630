/* SPDX-License-Identifier: MIT
 * Which hosts belong together, by the bandwidths and latencies of all pairs of them, and whether
 * the grid file says the same. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/clusters.h"
#include "tools/cases.h"
#include "tools/probe.h"

#include <stdio.h>
#include <string.h>

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

int gct_probe_pools(struct gct_probe *p)
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
