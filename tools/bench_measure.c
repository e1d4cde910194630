/* SPDX-License-Identifier: MIT
 * One measurement. All ranks start at a clock time that they agree on, since a barrier would let
 * them go up to a WAN delay apart; the time is that from there to the last rank's end. Every
 * result is checked, against a pattern that changes with each iteration. */
#include "base/mem.h"
#include "base/units.h"
#include "comm/warm.h"
#include "netem/cpu.h"
#include "tools/bench.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SEGMENT 1500 /* bytes of one that TCP sends again */
#define START_MARGIN (20 * GCI_NS_PER_MS)
#define QUIET_TRIES  1000

/* So long after the last rank is ready that all know of it before. Times are by rank 0's clock. */
static int agree_on_start(struct gct_bench *b, uint64_t *start)
{
	uint64_t now;
	int rc;

	*start = gci_wall_ns() - (uint64_t)b->offset_ns;
	rc = gcoll_allreduce(GCOLL_IN_PLACE, start, 1, GCOLL_UINT64, GCOLL_MAX, b->own);
	*start += START_MARGIN + (b->comm->topo.nclusters > 2 ? 6 : 3) * b->longest_delay_ns;
	now = gci_wall_ns();
	*start += (uint64_t)b->offset_ns; /* by this rank's own clock */
	if (!rc && now < *start)
		gci_sleep_ns(*start - now);
	return rc;
}

/* Since `start`; 0 while it is still to come. */
static uint64_t since(uint64_t start)
{
	uint64_t now = gci_wall_ns();

	return now > start ? now - start : 0;
}

/* One operation: *ns to the last rank's end, *start as this rank's clock had it; `traced`: its
 * steps are recorded. Raises r->late_ns to the latest rank's start. */
static int time_one(struct gct_bench *b, struct gct_bench_result *r, int traced, uint64_t *ns,
	uint64_t *started)
{
	uint64_t start, late, end[3];
	int rc;

	b->seed += UINT64_C(0x9e3779b97f4a7c15);
	gct_bench_fill(b, r);
	rc = agree_on_start(b, &start);
	if (rc)
		return rc;
	late = since(start);
	if (traced)
		gct_bench_trace_on(b->trace, start);
	rc = gct_bench_run(b, r);
	if (traced)
		gct_bench_trace_off(b->trace);
	if (rc)
		return rc;
	end[0] = since(start);
	end[1] = late;
	end[2] = !gct_bench_check(b, r);
	rc = gcoll_allreduce(GCOLL_IN_PLACE, end, 3, GCOLL_UINT64, GCOLL_MAX, b->own);
	*ns = end[0];
	*started = start;
	if (end[1] > r->late_ns)
		r->late_ns = end[1];
	if (!rc && end[2])
		rc = gci_comm_error(GCOLL_ERR_CORRUPT, "%s of %llu bytes by %s: wrong result",
			gci_kind_name(r->kind), (unsigned long long)r->nbytes, r->algorithm);
	return rc;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Counters and CPU time before and after; on rank 0 only. */
struct meter {
	uint64_t wan, busy, all;
	int has_wan;
};

static int read_meter(struct gct_bench *b, struct meter *m)
{
	struct gci_error e = {0};

	memset(m, 0, sizeof(*m));
	if (b->comm->rank)
		return 0;
	gci_cpu_read(&m->busy, &m->all);
	if (!b->lab.nlinks)
		return 0;
	if (gct_lab_wan_nbytes(&b->lab, &m->wan, &e))
		return gci_comm_error(e.status, "%s", e.text);
	m->has_wan = 1;
	return 0;
}

static int measure_traffic(struct gct_bench *b, struct gct_bench_result *r)
{
	const struct gci_coll coll = gct_bench_coll(b, r);
	uint64_t nic;

	if (b->comm->rank)
		return 0;
	if (gci_comm_traffic(b->comm, &coll, &r->schedule_wan_nbytes, &nic))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

/* The last iteration: of this one more is kept than how long it took. */
static int time_last(struct gct_bench *b, struct gct_bench_result *r, uint64_t *ns)
{
	struct gct_bench_course *course = NULL;
	uint64_t start = 0;
	int rc = b->wants_course ? gct_bench_course_begin(b, &course) : 0;

	if (!rc)
		rc = time_one(b, r, b->trace != NULL, ns, &start);
	if (course && rc)
		gct_bench_course_drop(course);
	else if (course)
		rc = gct_bench_course_end(b, course, start, *ns, r);
	return rc;
}

/* A dry exchange, so that counters do not catch what belongs to the operations before. */
static int settle(struct gct_bench *b)
{
	return gcoll_barrier(b->own);
}

/* Padding that is still under way would be counted as an operation's. All that was sent has come
 * when the sums are the same, since nobody sends any more. */
static int await_quiet(struct gct_bench *b)
{
	struct gci_engine *e = b->comm->engine;
	struct gci_tp_stats s;
	uint64_t pads[2];
	int i, n, rc = 0;

	gci_warm_close(e);
	for (n = 0; n < QUIET_TRIES && !b->quiet && !rc; n++) {
		pads[0] = pads[1] = 0;
		for (i = 0; i < e->size; i++) {
			gci_tp_stats(e->tp, i, &s);
			pads[0] += s.tx_pad_nbytes;
			pads[1] += s.rx_pad_nbytes;
		}
		rc = gcoll_allreduce(GCOLL_IN_PLACE, pads, 2, GCOLL_UINT64, GCOLL_SUM, b->own);
		b->quiet = pads[0] == pads[1];
	}
	b->quiet = 1; /* or a connection was lost with some of it */
	return rc;
}

static void show(const struct gct_bench_result *r, uint64_t i)
{
	char bytes[16];

	if (r->kind == GCI_BARRIER)
		gct_progress("barrier by %s: %" PRIu64 " of %" PRIu64, r->algorithm, i,
			r->iterations + 1);
	else
		gct_progress("%s of %s by %s: %" PRIu64 " of %" PRIu64, gci_kind_name(r->kind),
			gci_format_bytes(r->nbytes, bytes, sizeof(bytes)), r->algorithm, i,
			r->iterations + 1);
}

int gct_bench_measure(struct gct_bench *b, struct gct_bench_result *r)
{
	struct gci_coll coll = gct_bench_coll(b, r);
	struct meter before, after;
	uint64_t i, start, resent[2];
	int rc;

	r->limit_ns = gci_limit_ns(&coll, b->comm->engine->settings.streams);
	r->cpu_percent = -1;
	show(r, 1);
	rc = time_one(b, r, 0, &r->cold_ns, &start);
	if (!rc && r->enough_ns && r->cold_ns > r->enough_ns) {
		r->iterations = 0;
		return 0;
	}
	if (!rc)
		rc = await_quiet(b);
	if (!rc)
		rc = measure_traffic(b, r);
	if (!rc)
		rc = settle(b);
	if (!rc)
		rc = read_meter(b, &before);
	gct_bench_resent_begin(b, resent);
	for (i = 0; i + 1 < r->iterations && !rc; i++) {
		show(r, i + 2);
		rc = time_one(b, r, 0, &r->ns[i], &start);
	}
	if (!rc)
		rc = time_last(b, r, &r->ns[i]);
	if (!rc)
		rc = settle(b);
	if (!rc)
		rc = read_meter(b, &after);
	if (!rc)
		rc = gct_bench_resent_end(b, resent, r);
	if (!rc && b->trace)
		rc = gct_bench_trace_write(b, r, r->ns[r->iterations - 1], b->trace_file);
	if (rc == GCOLL_ERR_INVAL && *b->report_trace) /* a report may go without */
		rc = 0;
	if (rc)
		return rc;
	qsort(r->ns, r->iterations, sizeof(*r->ns), compare_u64);
	r->has_wan = before.has_wan && after.has_wan;
	r->wan_nbytes = (after.wan - before.wan) / r->iterations;
	r->cpu_percent = gci_cpu_percent(after.busy - before.busy, after.all - before.all);
	return 0;
}

uint64_t gct_bench_median(const struct gct_bench_result *r)
{
	uint64_t n = r->iterations;

	return n % 2 ? r->ns[n / 2] : (r->ns[n / 2 - 1] + r->ns[n / 2]) / 2;
}

int gct_bench_wan_fits(const struct gct_bench_result *r, uint64_t percent)
{
	uint64_t want = r->schedule_wan_nbytes, got = r->wan_nbytes;
	uint64_t off = got > want ? got - want : want - got;
	uint64_t most = (uint64_t)((double)want / 100 * (double)percent);

	if (got > want)
		most += r->wan_resent * MOST_SEGMENT / r->iterations;
	return !r->has_wan || !want || off <= most;
}
