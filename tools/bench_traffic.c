/* SPDX-License-Identifier: MIT
 * What the network made of an operation: segments that TCP sent again, on all ranks; and for the
 * plot the course of the traffic between clusters, in bins of 10 ms. */
#include "base/bins.h"
#include "base/mem.h"
#include "comm/sampler.h"
#include "tools/bench.h"

#include <string.h>

#define MOST_BINS (1u << 20) /* of all pairs together: 8 MiB */

/* ---- segments sent again */

struct resent {
	const struct gci_topo *topo; /* the world's */
	int rank;
	uint64_t counts[2]; /* of all connections, of those to other clusters */
};

static void on_flow(void *user, const struct gci_flow *f)
{
	struct resent *r = user;

	r->counts[0] += f->resent;
	if (r->topo->cluster[f->peer] != r->topo->cluster[r->rank])
		r->counts[1] += f->resent;
}

static struct resent look(const struct gct_bench *b)
{
	const struct gci_engine *e = b->comm->engine;
	struct resent r = {.topo = &e->world->topo, .rank = e->rank};

	gci_taps_look(e->taps, on_flow, &r);
	return r;
}

void gct_bench_resent_begin(const struct gct_bench *b, uint64_t before[2])
{
	const struct resent r = look(b);

	memcpy(before, r.counts, sizeof(r.counts));
}

int gct_bench_resent_end(
	const struct gct_bench *b, const uint64_t before[2], struct gct_bench_result *r)
{
	struct resent now = look(b);
	int i, rc;

	for (i = 0; i < 2; i++)
		now.counts[i] -= before[i] < now.counts[i] ? before[i] : now.counts[i];
	rc = gcoll_allreduce(GCOLL_IN_PLACE, now.counts, 2, GCOLL_UINT64, GCOLL_SUM, b->own);
	r->resent = now.counts[0];
	r->wan_resent = now.counts[1];
	return rc;
}

/* ---- the course of the traffic */

struct gct_bench_course {
	struct gci_sampler *sampler;
	uint32_t nclusters;
	struct gci_bins *bins; /* [cluster]: what this rank sends there */
	int failed;
};

#define KEPT_BINS 8192 /* 80 s: of a longer operation the end is shown */

static void course_free(struct gct_bench_course *c)
{
	uint32_t i;

	for (i = 0; c && c->bins && i < c->nclusters; i++)
		gci_bins_free(&c->bins[i]);
	if (c)
		gci_free(c->bins);
	gci_free(c);
}

/* From the sampler's thread; we look when that has ended. */
static void on_report(void *user, const struct gci_ctl_report *m)
{
	struct gct_bench_course *c = user;
	uint32_t i;

	for (i = 0; i < m->nbins; i++)
		gci_bins_put(&c->bins[m->cluster], m->end_bin - m->nbins + i, m->bins[i]);
}

int gct_bench_course_begin(const struct gct_bench *b, struct gct_bench_course **out)
{
	struct gct_bench_course *c = gci_calloc(1, sizeof(*c));
	struct gci_sampler_config config = {.engine = b->comm->engine,
		.period_ms = GCI_REPORT_PERIOD,
		.report = on_report,
		.user = c};
	uint32_t i;
	int rc = 0;

	*out = NULL;
	if (!c)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	c->nclusters = (uint32_t)b->comm->engine->grid->nclusters;
	c->bins = gci_calloc(c->nclusters, sizeof(*c->bins));
	for (i = 0; c->bins && i < c->nclusters; i++)
		rc |= gci_bins_init(&c->bins[i], GCI_BIN_NS, KEPT_BINS);
	rc = rc || !c->bins ? GCOLL_ERR_NOMEM : gci_sampler_start(&c->sampler, &config);
	if (rc) {
		course_free(c);
		return gci_comm_error(rc, "--plot: %s", gcoll_strerror(rc));
	}
	*out = c;
	return 0;
}

/* This rank's part of the sum: bins since `start`, by its own clock. */
static void put_own(const struct gct_bench *b, const struct gct_bench_course *c, uint64_t start,
	uint64_t *pairs, uint32_t nbins)
{
	const struct gci_engine *e = b->comm->engine;
	const struct gci_topo *t = &e->world->topo;
	uint32_t from = (uint32_t)t->in_grid[t->cluster[e->rank]], to, i;

	for (to = 0; to < c->nclusters; to++)
		for (i = 0; i < nbins; i++)
			pairs[((size_t)from * c->nclusters + to) * nbins + i] =
				gci_bins_get(&c->bins[to], start / GCI_BIN_NS + i);
}

void gct_bench_course_drop(struct gct_bench_course *c)
{
	gci_sampler_stop(c->sampler);
	course_free(c);
}

int gct_bench_course_end(struct gct_bench *b, struct gct_bench_course *c, uint64_t start,
	uint64_t ns, struct gct_bench_result *r)
{
	size_t npairs = (size_t)c->nclusters * c->nclusters;
	uint64_t n = ns / GCI_BIN_NS + 2;
	int rc = 0;

	gci_sleep_ns(2 * GCI_BIN_NS); /* to the end of the last bin */
	gci_sampler_stop(c->sampler);
	n = n < MOST_BINS / npairs ? n : MOST_BINS / npairs;
	r->course = gci_calloc(npairs * n, sizeof(*r->course));
	r->ncourse = (uint32_t)n;
	if (r->course)
		put_own(b, c, start, r->course, r->ncourse);
	else
		rc = gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	course_free(c);
	if (!rc)
		rc = gcoll_allreduce(
			GCOLL_IN_PLACE, r->course, npairs * n, GCOLL_UINT64, GCOLL_SUM, b->own);
	return rc;
}

static json_t *pair_json(const struct gct_bench *b, const struct gct_bench_result *r, size_t pair)
{
	const struct gci_grid *g = b->comm->engine->grid;
	size_t n = (size_t)g->nclusters;
	json_t *bins = json_array();
	uint32_t i;

	for (i = 0; i < r->ncourse; i++)
		json_array_append_new(
			bins, json_integer((json_int_t)r->course[pair * r->ncourse + i]));
	return json_pack("{s:s, s:s, s:o}", "from", g->clusters[pair / n].name, "to",
		g->clusters[pair % n].name, "bytes", bins);
}

json_t *gct_bench_course_json(const struct gct_bench *b, const struct gct_bench_result *r)
{
	size_t n = (size_t)b->comm->engine->grid->nclusters, pair;
	json_t *pairs;

	if (!r->course)
		return NULL;
	pairs = json_array();
	for (pair = 0; pair < n * n; pair++)
		if (pair / n != pair % n)
			json_array_append_new(pairs, pair_json(b, r, pair));
	return json_pack("{s:I, s:o}", "bin_ns", (json_int_t)GCI_BIN_NS, "pairs", pairs);
}
