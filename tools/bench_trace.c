/* SPDX-License-Identifier: MIT
 * When steps began and ended, on all ranks: recorded by a hook in the executor, brought to rank 0,
 * and written for `gridcoll plan --explain`. */
#include "base/mem.h"
#include "comm/op.h"
#include "tools/bench.h"
#include "tools/cases.h"
#include "tools/trace_file.h"

#include <stdio.h>
#include <string.h>

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
