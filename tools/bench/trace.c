/* SPDX-License-Identifier: MIT
 * What the kernel and the network made of operations; and when steps began and ended, on all ranks:
 * recorded by a hook in the executor, brought to rank 0, and written for `gridcoll plan --explain`. */
#include "base/bins.h"
#include "base/mem.h"
#include "comm/op.h"
#include "flow/telemetry.h"
#include "tools/bench/bench.h"
#include "tools/lib/cases.h"
#include "tools/lib/trace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- How the kernel treated rank 0's connections, by the cluster they lead to: what stood in
 * their way is found here, and what to do about it by gridcoll doctor. */

#define WORTH_A_WORD 10 /* percent of the time with data to send */

struct sockets {
	const char *cluster;
	uint64_t connections, lost, restored;
	uint64_t again, refused; /* frames, and those that came corrupted */
	struct gci_tp_socket of;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* As gci_tp_socket counts the connections of one peer, of all. */
static void add(struct sockets *s, const struct gci_tp_stats *one)
{
	const struct gci_tp_socket *o = &one->socket;
	struct gci_tp_socket *sum = &s->of;

	s->connections += one->streams;
	s->lost += one->lost;
	s->restored += one->restored;
	s->again += one->again_frames;
	s->refused += one->refused;
	sum->sndbuf_nbytes = smaller(sum->sndbuf_nbytes, o->sndbuf_nbytes);
	sum->rcvbuf_nbytes = smaller(sum->rcvbuf_nbytes, o->rcvbuf_nbytes);
	sum->mss_nbytes = (uint32_t)smaller(sum->mss_nbytes, o->mss_nbytes);
	sum->sndbuf_set |= o->sndbuf_set;
	sum->rcvbuf_set |= o->rcvbuf_set;
	sum->rtt_ns = o->rtt_ns > sum->rtt_ns ? o->rtt_ns : sum->rtt_ns;
	sum->resent += o->resent;
	sum->busy_ns += o->busy_ns;
	sum->window_limited_ns += o->window_limited_ns;
	sum->buffer_limited_ns += o->buffer_limited_ns;
	if (*o->congestion)
		memcpy(sum->congestion, o->congestion, sizeof(sum->congestion));
}

/* Those of rank 0 to ranks of cluster c. */
static struct sockets look_at_sockets(const struct gct_bench *b, int c)
{
	const struct gci_engine *e = b->comm->engine;
	const struct gci_topo *t = &e->world->topo;
	struct sockets s = {
		.cluster = e->job.grid ? e->job.grid->clusters[t->in_grid[c]].name : ""};
	struct gci_tp_stats one;
	int i;

	for (i = 0; i < gci_topo_size(t, c); i++) {
		gci_tp_stats(e->tp, gci_topo_members(t, c)[i], &one);
		if (one.streams || one.lost)
			add(&s, &one);
	}
	return s;
}

static int percent(uint64_t part, uint64_t all)
{
	return all ? (int)((double)part * 100 / (double)all) : 0;
}

void gct_bench_print_sockets(const struct gct_bench *b)
{
	const struct gci_topo *t = &b->comm->engine->world->topo;
	int c;

	for (c = 0; c < t->nclusters; c++) {
		struct sockets s = look_at_sockets(b, c);
		int window = percent(s.of.window_limited_ns, s.of.busy_ns);
		int buffer = percent(s.of.buffer_limited_ns, s.of.busy_ns);

		if (window >= WORTH_A_WORD)
			printf("connections to %s waited for the receivers' window in %d %% of the "
			       "time:\nsee gridcoll doctor there\n",
				s.cluster, window);
		if (buffer >= WORTH_A_WORD &&
			c != t->cluster[b->comm->rank]) /* there long operations keep them short */
			printf("connections to %s waited for room in their send buffers in %d %% "
			       "of the\ntime: see gridcoll doctor here\n",
				s.cluster, buffer);
		if (s.lost)
			printf("%" PRIu64 " connections to %s were lost, %" PRIu64
			       " made anew; %" PRIu64 " frames were sent again\n",
				s.lost, s.cluster, s.restored, s.again);
		if (s.refused)
			printf("%" PRIu64 " frames from %s came corrupted, and once more\n",
				s.refused, s.cluster);
	}
}

static json_t *socket_json(const struct sockets *s)
{
	const struct gci_tp_socket *o = &s->of;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:b, s:s, s:I, s:I, s:I, "
			 "s:I, s:I, s:I}",
		"cluster", s->cluster, "connections", (json_int_t)s->connections, "lost",
		(json_int_t)s->lost, "restored", (json_int_t)s->restored, "again_frames",
		(json_int_t)s->again, "refused_frames", (json_int_t)s->refused, "send_buffer_bytes",
		(json_int_t)o->sndbuf_nbytes, "send_buffer_set", o->sndbuf_set,
		"receive_buffer_bytes", (json_int_t)o->rcvbuf_nbytes, "receive_buffer_set",
		o->rcvbuf_set, "congestion", o->congestion, "segment_bytes",
		(json_int_t)o->mss_nbytes, "rtt_ns", (json_int_t)o->rtt_ns, "resent_segments",
		(json_int_t)o->resent, "busy_ns", (json_int_t)o->busy_ns, "window_limited_ns",
		(json_int_t)o->window_limited_ns, "buffer_limited_ns",
		(json_int_t)o->buffer_limited_ns);
}

json_t *gct_bench_sockets_json(const struct gct_bench *b)
{
	json_t *list = json_array();
	const struct gci_topo *t = &b->comm->engine->world->topo;
	int c;

	for (c = 0; c < t->nclusters; c++) {
		struct sockets s = look_at_sockets(b, c);

		if ((s.connections || s.lost) && json_array_append_new(list, socket_json(&s))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* ---- What the network made of an operation: segments that TCP sent again, on all ranks; and for
 * the report the course of the traffic between clusters, in bins of 10 ms. */

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
	c->nclusters = (uint32_t)b->comm->engine->job.grid->nclusters;
	c->bins = gci_calloc(c->nclusters, sizeof(*c->bins));
	for (i = 0; c->bins && i < c->nclusters; i++)
		rc |= gci_bins_init(&c->bins[i], GCI_BIN_NS, KEPT_BINS);
	rc = rc || !c->bins ? GCOLL_ERR_NOMEM : gci_sampler_start(&c->sampler, &config);
	if (rc) {
		course_free(c);
		return gci_comm_error(rc, "--report: %s", gcoll_strerror(rc));
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
	const struct gci_grid *g = b->comm->engine->job.grid;
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
	size_t n = (size_t)b->comm->engine->job.grid->nclusters, pair;
	json_t *pairs;

	if (!r->course)
		return NULL;
	pairs = json_array();
	for (pair = 0; pair < n * n; pair++)
		if (pair / n != pair % n)
			json_array_append_new(pairs, pair_json(b, r, pair));
	return json_pack("{s:I, s:o}", "bin_ns", (json_int_t)GCI_BIN_NS, "pairs", pairs);
}

/* ---- the recorded run */

struct gct_bench_trace {
	const gcoll_comm *comm; /* whose operations are recorded */
	struct gci_run_trace hook;
	struct gct_trace trace; /* this rank's part; rank 0: in the end all */
	size_t windows_cap;
	uint64_t start, nsteps; /* start: on this rank's clock */
	int failed;             /* out of memory, or more than a trace may hold */
};

static struct gct_trace_window *find_window(struct gct_trace *t, uint32_t number)
{
	size_t i;

	for (i = t->nwindows; i > 0; i--)
		if (t->windows[i - 1].window == number)
			return &t->windows[i - 1];
	return NULL;
}

static struct gct_trace_window *add_window(
	struct gct_bench_trace *x, const struct gci_run *run, uint32_t number)
{
	const struct gci_op *op = run->user;
	struct gct_trace *t = &x->trace;
	struct gct_trace_window *w;

	x->nsteps += run->sched->nsteps;
	if (x->nsteps > GCT_TRACE_MOST_STEPS ||
		gci_grow(&t->windows, &x->windows_cap, t->nwindows + 1, sizeof(*t->windows)))
		return NULL;
	w = &t->windows[t->nwindows];
	*w = (struct gct_trace_window){run->sched->rank, number, run->sched->nsteps,
		gci_calloc(run->sched->nsteps, 2 * sizeof(*w->at))};
	if (!w->at)
		return NULL;
	t->nwindows++;
	t->how = (struct gci_candidate){op->algorithm, op->coll.senders, op->coll.degree,
		op->coll.segment * op->coll.esize};
	return w;
}

static void on_step(void *ctx, const struct gci_run *run, uint32_t step, int ended)
{
	uint32_t number = (uint32_t)(run->seq & ((1u << GCI_WINDOW_BITS) - 1));
	struct gct_bench_trace *x = ctx;
	struct gct_trace_window *w;
	uint64_t now;

	if (x->failed || run->comm != x->comm->id)
		return;
	w = find_window(&x->trace, number);
	if (!w)
		w = add_window(x, run, number);
	now = gci_wall_ns();
	if (w)
		w->at[2 * step + (uint32_t)ended] = now > x->start ? now - x->start : 0;
	else
		x->failed = 1;
}

struct gct_bench_trace *gct_bench_trace_begin(struct gct_bench *b)
{
	struct gct_bench_trace *x = gci_calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->comm = b->comm;
	x->hook = (struct gci_run_trace){on_step, x};
	return x;
}

void gct_bench_trace_on(struct gct_bench_trace *x, uint64_t start)
{
	x->start = start;
	x->comm->engine->settings.trace = &x->hook;
}

void gct_bench_trace_off(struct gct_bench_trace *x)
{
	x->comm->engine->settings.trace = NULL;
}

void gct_bench_trace_end(struct gct_bench_trace *x)
{
	if (!x)
		return;
	gct_bench_trace_off(x);
	gct_trace_free(&x->trace);
	gci_free(x);
}

/* ---- bringing it together */

/* rank, window, steps, and for each step two times. */
static uint64_t *pack(const struct gct_trace *t, uint64_t *n)
{
	uint64_t *out, *p;
	size_t i;

	for (i = 0, *n = 0; i < t->nwindows; i++)
		*n += 3 + 2 * (uint64_t)t->windows[i].nsteps;
	out = p = gci_calloc(*n, sizeof(*out));
	for (i = 0; out && i < t->nwindows; i++) {
		const struct gct_trace_window *w = &t->windows[i];

		*p++ = (uint64_t)w->rank;
		*p++ = w->window;
		*p++ = w->nsteps;
		memcpy(p, w->at, 2 * sizeof(*p) * w->nsteps);
		p += 2 * (uint64_t)w->nsteps;
	}
	return out;
}

static int unpack(struct gct_bench_trace *x, const uint64_t *p, uint64_t n)
{
	struct gct_trace *t = &x->trace;
	const uint64_t *end = p + n;

	while (end - p >= 3 && p[2] <= (uint64_t)(end - p - 3) / 2) {
		struct gct_trace_window w = {(int)p[0], (uint32_t)p[1], (uint32_t)p[2], NULL};

		w.at = gci_calloc(w.nsteps, 2 * sizeof(*w.at));
		if (!w.at || gci_grow(&t->windows, &x->windows_cap, t->nwindows + 1,
				     sizeof(*t->windows))) {
			gci_free(w.at);
			return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
		}
		memcpy(w.at, p + 3, 2 * sizeof(*w.at) * w.nsteps);
		t->windows[t->nwindows++] = w;
		p += 3 + 2 * p[2];
	}
	return 0;
}

/* All of it on rank 0. The sums are compared by all ranks, so that all go on or none. */
static int gather(struct gct_bench *b, struct gct_bench_trace *x)
{
	uint64_t sums[2] = {x->nsteps, (uint64_t)x->failed}, n, all = 0;
	uint64_t *mine = NULL, *counts = NULL, *list = NULL;
	int r, rc;

	rc = gcoll_allreduce(GCOLL_IN_PLACE, sums, 2, GCOLL_UINT64, GCOLL_SUM, b->own);
	if (!rc && (sums[1] || sums[0] > GCT_TRACE_MOST_STEPS))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"--trace: more than %u steps, "
			"expected a shorter message or longer segments",
			GCT_TRACE_MOST_STEPS);
	mine = pack(&x->trace, &n);
	counts = gci_calloc((size_t)b->comm->size, sizeof(*counts));
	if (!rc && (!mine || !counts))
		rc = gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	if (!rc)
		rc = gcoll_allgather(&n, counts, 1, GCOLL_UINT64, b->own);
	for (r = 0; !rc && r < b->comm->size; r++)
		all += counts[r];
	if (!rc && !b->comm->rank)
		list = gci_calloc(all, sizeof(*list));
	if (!rc && !b->comm->rank && !list)
		rc = gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	if (!rc)
		rc = gcoll_gatherv(mine, list, counts, NULL, GCOLL_UINT64, 0, b->own);
	if (!rc && !b->comm->rank)
		rc = unpack(x, list + counts[0], all - counts[0]);
	gci_free(mine);
	gci_free(counts);
	gci_free(list);
	return rc;
}

static int describe(struct gct_bench *b, const struct gct_bench_result *r, struct gct_trace *t)
{
	const struct gci_coll coll = gct_bench_coll(b, r);
	int i;

	t->kind = coll.kind;
	t->count = coll.count;
	t->esize = coll.esize;
	t->root = coll.root;
	t->streams = b->comm->engine->settings.streams;
	t->dilation = b->lab.dilation;
	t->topo_digest = gci_topo_digest(&b->comm->topo);
	t->hosts = gci_calloc((size_t)b->comm->size, sizeof(*t->hosts));
	if (!t->hosts)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	t->nranks = b->comm->size;
	for (i = 0; i < t->nranks; i++) {
		t->hosts[i] = gci_strdup(gci_comm_host(b->comm, i));
		if (!t->hosts[i])
			return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	}
	return 0;
}

static int write_file(const struct gct_trace *t, const char *path)
{
	struct gci_buf text = {0};
	int rc;

	gct_trace_print(t, &text);
	rc = gct_write(path, &text);
	gci_buf_free(&text);
	return rc;
}

int gct_bench_trace_write(
	struct gct_bench *b, const struct gct_bench_result *r, uint64_t ns, const char *path)
{
	struct gct_bench_trace *x = b->trace;
	int rc = gather(b, x);

	if (rc || b->comm->rank)
		return rc;
	x->trace.ns = ns;
	rc = describe(b, r, &x->trace);
	return rc ? rc : write_file(&x->trace, path);
}
