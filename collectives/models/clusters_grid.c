/* SPDX-License-Identifier: MIT
 * A grid file of what was measured. It is made as text and parsed, so that it is one. */
#include "base/buf.h"
#include "base/mem.h"
#include "collectives/models/clusters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "link NAME > NAME" has to fit in what a section's name may be. */
#define MOST_NAME 16

struct writing {
	const struct gci_clusters *c;
	const struct gci_measured *m;
	char (*name)[MOST_NAME + 8]; /* [cluster] */
	uint64_t *v;                 /* room for n * n values */
	struct gci_buf text;
};

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t median(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare_values);
	return n ? v[n / 2] : 0;
}

static int is_free(const struct writing *w, int clusters, const char *name)
{
	int i;

	for (i = 0; i < clusters; i++)
		if (!strcmp(w->name[i], name))
			return 0;
	return 1;
}

/* What all names of the cluster's hosts begin with, up to the number. */
static void name_cluster(struct writing *w, int cluster)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *first = NULL;
	char name[MOST_NAME + 1];
	size_t len = 0, same;
	int i;

	for (i = 0; i < w->m->n; i++) {
		if (w->c->cluster_of[i] != cluster)
			continue;
		if (!first) {
			first = w->m->hosts[i];
			len = strcspn(first, "0123456789-_.");
		}
		for (same = 0; same < len && w->m->hosts[i][same] == first[same]; same++)
			;
		len = same;
	}
	if (len > MOST_NAME)
		len = 0;
	memcpy(name, first ? first : "", len);
	name[len] = '\0';
	if (len && strspn(name, letters) == len && is_free(w, cluster, name))
		memcpy(w->name[cluster], name, len + 1);
	else
		snprintf(w->name[cluster], sizeof(*w->name), "c%d", cluster + 1);
}

static uint64_t known(const uint64_t *v, int n, int a, int b)
{
	return v[a * n + b] ? v[a * n + b] : v[b * n + a];
}

/* The rate on the wire of a payload rate. */
static uint64_t wire_bps(uint64_t bps)
{
	return (uint64_t)((unsigned __int128)bps * 1514 / 1448);
}

static uint64_t nic_bps(struct writing *w, int cluster)
{
	const struct gci_measured *m = w->m;
	size_t n = 0;
	int a, b;

	for (a = 0; a < m->n; a++) {
		uint64_t best = 0;

		for (b = 0; b < m->n; b++)
			if (a != b && known(m->bps, m->n, a, b) > best)
				best = known(m->bps, m->n, a, b);
		if (w->c->cluster_of[a] == cluster)
			w->v[n++] = best;
	}
	return wire_bps(median(w->v, n));
}

static uint64_t delay_ns(struct writing *w, int from, int to)
{
	const struct gci_measured *m = w->m;
	size_t n = 0;
	int a, b;

	for (a = 0; m->latency_ns && a < m->n; a++)
		for (b = 0; b < m->n; b++)
			if (a != b && w->c->cluster_of[a] == from && w->c->cluster_of[b] == to)
				w->v[n++] = known(m->latency_ns, m->n, a, b);
	return median(w->v, n);
}

static uint64_t link_bps(const struct writing *w, int from, int to)
{
	const struct gci_measured *m = w->m;
	uint64_t best = 0;
	int a, b;

	for (a = 0; a < m->n; a++)
		for (b = 0; b < m->n; b++)
			if (w->c->cluster_of[a] == from && w->c->cluster_of[b] == to &&
				known(m->bps, m->n, a, b) > best)
				best = known(m->bps, m->n, a, b);
	return wire_bps(best);
}

static void print_cluster(struct writing *w, int cluster)
{
	uint64_t nic = nic_bps(w, cluster), lan = delay_ns(w, cluster, cluster);
	int i;

	gci_buf_printf(&w->text, "[cluster %s]\n", w->name[cluster]);
	for (i = 0; i < w->m->n; i++)
		if (w->c->cluster_of[i] == cluster)
			gci_buf_printf(&w->text, "hosts = %s\n", w->m->hosts[i]);
	if (nic)
		gci_buf_printf(&w->text, "nic = %" PRIu64 "bit\n", nic);
	if (lan)
		gci_buf_printf(&w->text, "lan_delay = %" PRIu64 "ns\n", lan);
}

static void print_link(struct writing *w, int from, int to)
{
	uint64_t delay = delay_ns(w, from, to);

	gci_buf_printf(&w->text, "[link %s > %s]\nrate = %" PRIu64 "bit\n", w->name[from],
		w->name[to], link_bps(w, from, to));
	if (delay)
		gci_buf_printf(&w->text, "delay = %" PRIu64 "ns\n", delay);
}

static int print_grid(struct writing *w)
{
	int a, b;

	for (a = 0; a < w->c->n; a++)
		name_cluster(w, a);
	for (a = 0; a < w->c->n; a++)
		print_cluster(w, a);
	for (a = 0; a < w->c->n; a++)
		for (b = 0; b < w->c->n; b++)
			if (a != b)
				print_link(w, a, b);
	return w->text.failed ? GCOLL_ERR_NOMEM : 0;
}

int gci_clusters_grid(const struct gci_clusters *c, const struct gci_measured *m, const char *name,
	struct gci_grid *g, struct gci_error *e)
{
	struct writing w = {.c = c, .m = m};
	int rc = GCOLL_ERR_NOMEM;

	memset(g, 0, sizeof(*g));
	w.name = gci_calloc((size_t)c->n, sizeof(*w.name));
	w.v = gci_calloc((size_t)m->n * (size_t)m->n, sizeof(*w.v));
	if (w.name && w.v)
		rc = print_grid(&w);
	if (rc)
		gci_error_set(e, rc, "out of memory");
	else
		rc = gci_grid_parse(g, (const char *)w.text.data, w.text.len, name, e);
	/* A name like "a b" or "a[1-3]" is several. */
	if (!rc && g->nhosts != m->n) {
		rc = gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: %d hosts, expected %d: a name stands for several", name, g->nhosts,
			m->n);
		gci_grid_free(g);
	}
	gci_free(w.name);
	gci_free(w.v);
	gci_buf_free(&w.text);
	return rc;
}
