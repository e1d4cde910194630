/* SPDX-License-Identifier: MIT */
#include "tools/bench/bench.h"

#include "base/mem.h"
#include "base/units.h"
#include "comm/op.h"
#include "flow/warm.h"
#include "netem/cpu.h"
#include "tools/lib/cases.h"
#include "tools/lib/progress.h"
#include "tools/lib/tools.h"
#include "tools/shape/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- What all measurements of one job share. */

int gct_bench_open(struct gct_bench *b, int root)
{
	const struct gci_topo *t = &b->comm->topo;
	struct gci_error e = {0};
	int i, rc = gcoll_comm_dup(b->comm, &b->own);

	b->root = root;
	if (!rc && gct_lab_read(&b->lab, &e))
		rc = gci_comm_error(e.status, "%s", e.text);
	for (i = 0; i < t->nclusters * t->nclusters; i++)
		if (t->links[i].delay_ns > b->longest_delay_ns)
			b->longest_delay_ns = t->links[i].delay_ns;
	return rc;
}

int gct_bench_buffers(struct gct_bench *b, uint64_t nbytes)
{
	nbytes += (uint64_t)b->comm->size; /* equal blocks may be more than was asked for */
	b->send = gci_calloc(nbytes, 1);
	b->recv = gci_calloc(nbytes, 1);
	if (!b->send || !b->recv)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for two buffers of the size");
	/* First touches are the kernel's time, not the operation's. */
	memset(b->send, 1, nbytes);
	memset(b->recv, 1, nbytes);
	return 0;
}

void gct_bench_close(struct gct_bench *b)
{
	gcoll_finalize(b->comm);
	gct_lab_free(&b->lab);
	gci_free(b->send);
	gci_free(b->recv);
	gci_free((char *)b->pattern);
}

/* ---- Offsets of the ranks' clocks from rank 0's, by Cristian's method (1989): the shortest of
 * several round trips, the remote clock being read half-way. Off by at most half that round
 * trip. */

#define ROUNDS     5
#define MOST_RANKS 256 /* it takes a round trip of everybody's for each */

/* One round trip between ranks 0 and r. On rank 0: its length, and rank r's offset. */
static int round_trip(gcoll_comm *c, int r, uint64_t *rtt_ns, int64_t *offset_ns)
{
	uint64_t before = gci_wall_ns(), there = 0, after;
	int rc = gcoll_bcast(&before, 1, GCOLL_UINT64, 0, c);

	there = gci_wall_ns();
	if (!rc)
		rc = gcoll_bcast(&there, 1, GCOLL_UINT64, r, c);
	after = gci_wall_ns();
	*rtt_ns = after - before;
	*offset_ns = (int64_t)(there - before - (after - before) / 2);
	return rc;
}

static int offset_of(gcoll_comm *c, int r, uint64_t *rtt_ns, int64_t *offset_ns)
{
	uint64_t rtt = 0;
	int64_t offset = 0;
	int i, rc = 0;

	*rtt_ns = UINT64_MAX;
	*offset_ns = 0;
	for (i = 0; i < ROUNDS && !rc; i++) {
		rc = round_trip(c, r, &rtt, &offset);
		if (rtt < *rtt_ns) {
			*rtt_ns = rtt;
			*offset_ns = offset;
		}
	}
	return rc;
}

int gct_bench_clocks(struct gct_bench *b)
{
	gcoll_comm *c = b->own;
	uint64_t rtt = 0, longest = 0, widest = 0, offset_bits;
	int64_t offset = 0;
	int r, rc = 0;

	if (b->lab.backend || c->size > MOST_RANKS)
		return 0;
	rc = gcoll_comm_set(c, "bcast", "sequential");
	for (r = 1; r < c->size && !rc; r++) {
		rc = offset_of(c, r, &rtt, &offset);
		offset_bits = (uint64_t)offset;
		if (!rc)
			rc = gcoll_bcast(&offset_bits, 1, GCOLL_UINT64, 0, c);
		if (r == c->rank)
			b->offset_ns = (int64_t)offset_bits;
		longest = rtt > longest ? rtt : longest;
		if ((uint64_t)(offset < 0 ? -offset : offset) > widest)
			widest = (uint64_t)(offset < 0 ? -offset : offset);
	}
	b->clock_offset_ns = widest;
	b->clock_error_ns = longest / 2;
	return rc;
}

/* ---- The operations as bench runs them: inputs that tell rank and place, and what each must make
 * of them. Elements are 32-bit integers, or bytes where a size asks for that; reductions are sums.
 *
 * Rank r's input at place i is word(i) + r. i counts through all blocks, so that a block in a wrong
 * place, or of a wrong rank, does not pass; word() changes with each operation. */

void gct_bench_shape(const struct gct_bench *b, struct gct_bench_result *r, uint64_t nbytes)
{
	struct gci_coll c = {.kind = r->kind, .topo = &b->comm->topo};

	r->asked_nbytes = r->kind == GCI_BARRIER ? 0 : nbytes;
	r->nbytes = gct_shape(&c, nbytes);
	r->type = c.esize == 1 ? GCOLL_UINT8 : GCOLL_UINT32;
	r->esize = c.esize;
	r->count = c.count;
}

static uint32_t word(uint64_t seed, uint64_t i)
{
	return (uint32_t)(seed + i * 2654435761u);
}

/* Element k = word(first + k) + add; of bytes, the word's highest counts. */
static void fill(const struct gct_bench *b, const struct gct_bench_result *r, char *buf, uint64_t n,
	uint64_t first, uint32_t add)
{
	uint64_t i;
	uint32_t w;

	if (r->esize == 1)
		for (i = 0; i < n; i++)
			buf[i] = (char)((word(b->seed, first + i) >> 24) + add);
	else
		for (i = 0; i < n; i++) {
			w = word(b->seed, first + i) + add;
			memcpy(buf + 4 * i, &w, 4);
		}
}

static int is(const struct gct_bench *b, const struct gct_bench_result *r, const char *buf,
	uint64_t first, uint32_t factor, uint32_t add)
{
	uint32_t w, bad = 0;
	uint64_t i;

	if (r->esize == 1)
		for (i = 0; i < r->count; i++)
			bad |= (uint8_t)((uint8_t)buf[i] -
					 (factor * (word(b->seed, first + i) >> 24) + add));
	else
		for (i = 0; i < r->count; i++) {
			memcpy(&w, buf + 4 * i, 4);
			bad |= w ^ (factor * word(b->seed, first + i) + add);
		}
	return !bad;
}

/* Writes this rank's input, runs the operation, tells if this rank's result is right. */
static void gct_bench_fill(struct gct_bench *b, const struct gct_bench_result *r)
{
	uint64_t n = r->count, all = n * (uint64_t)b->comm->size;
	uint32_t rank = (uint32_t)b->comm->rank;
	int is_root = b->comm->rank == b->root;

	switch (r->kind) {
	case GCI_BCAST:
		if (is_root && b->pattern)
			memcpy(b->recv, b->pattern, r->nbytes);
		else if (is_root)
			fill(b, r, b->recv, n, 0, rank);
		break;
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		fill(b, r, b->send, n, 0, rank);
		break;
	case GCI_SCATTER:
		if (is_root)
			fill(b, r, b->send, all, 0, rank);
		break;
	case GCI_REDUCE_SCATTER:
	case GCI_ALLTOALL:
		fill(b, r, b->send, all, 0, rank);
		break;
	case GCI_GATHER:
	case GCI_ALLGATHER:
		fill(b, r, b->send, n, rank * n, rank);
		break;
	default:
		break;
	}
}

/* A block of each rank: from place `first` of its input, and so on every `step`. */
static int is_from_all(
	const struct gct_bench *b, const struct gct_bench_result *r, uint64_t first, uint64_t step)
{
	uint64_t s, p = (uint64_t)b->comm->size;
	int good = 1;

	for (s = 0; s < p; s++)
		good &= is(
			b, r, b->recv + s * r->count * r->esize, first + s * step, 1, (uint32_t)s);
	return good;
}

static int gct_bench_check(const struct gct_bench *b, const struct gct_bench_result *r)
{
	uint32_t p = (uint32_t)b->comm->size, sum = p * (p - 1) / 2, root = (uint32_t)b->root;
	uint64_t own = (uint64_t)b->comm->rank * r->count;
	int is_root = b->comm->rank == b->root;

	switch (r->kind) {
	case GCI_BCAST:
		return b->pattern ? !memcmp(b->recv, b->pattern, r->nbytes)
				  : is(b, r, b->recv, 0, 1, root);
	case GCI_REDUCE:
		return !is_root || is(b, r, b->recv, 0, p, sum);
	case GCI_ALLREDUCE:
		return is(b, r, b->recv, 0, p, sum);
	case GCI_REDUCE_SCATTER:
		return is(b, r, b->recv, own, p, sum);
	case GCI_SCATTER:
		return is(b, r, b->recv, own, 1, root);
	case GCI_GATHER:
		return !is_root || is_from_all(b, r, 0, r->count);
	case GCI_ALLGATHER:
		return is_from_all(b, r, 0, r->count);
	case GCI_ALLTOALL:
		return is_from_all(b, r, own, 0);
	default:
		return 1;
	}
}

static int gct_bench_run(struct gct_bench *b, const struct gct_bench_result *r)
{
	enum gcoll_type t = r->type;
	gcoll_comm *c = b->comm;
	uint64_t n = r->count;

	switch (r->kind) {
	case GCI_BCAST:
		return gcoll_bcast(b->recv, n, t, b->root, c);
	case GCI_REDUCE:
		return gcoll_reduce(b->send, b->recv, n, t, GCOLL_SUM, b->root, c);
	case GCI_ALLREDUCE:
		return gcoll_allreduce(b->send, b->recv, n, t, GCOLL_SUM, c);
	case GCI_REDUCE_SCATTER:
		return gcoll_reduce_scatter(b->send, b->recv, n, t, GCOLL_SUM, c);
	case GCI_SCATTER:
		return gcoll_scatter(b->send, b->recv, n, t, b->root, c);
	case GCI_GATHER:
		return gcoll_gather(b->send, b->recv, n, t, b->root, c);
	case GCI_ALLGATHER:
		return gcoll_allgather(b->send, b->recv, n, t, c);
	case GCI_ALLTOALL:
		return gcoll_alltoall(b->send, b->recv, n, t, c);
	default:
		return gcoll_barrier(c);
	}
}

/* ---- One measurement. All ranks start at a clock time that they agree on, since a barrier would
 * let them go up to a WAN delay apart; the time is that from there to the last rank's end. Every
 * result is checked, against a pattern that changes with each iteration. */

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
 * steps are recorded. Raises r->late_ns to the latest rank's start. Results are looked at when all
 * have ended: ranks that share processors would take them from those that are not done. */
static int time_one(struct gct_bench *b, struct gct_bench_result *r, int traced, uint64_t *ns,
	uint64_t *started)
{
	uint64_t start, late, end[2], wrong;
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
	rc = gcoll_allreduce(GCOLL_IN_PLACE, end, 2, GCOLL_UINT64, GCOLL_MAX, b->own);
	if (rc)
		return rc;
	wrong = !gct_bench_check(b, r);
	rc = gcoll_allreduce(GCOLL_IN_PLACE, &wrong, 1, GCOLL_UINT64, GCOLL_MAX, b->own);
	*ns = end[0];
	*started = start;
	if (end[1] > r->late_ns)
		r->late_ns = end[1];
	if (!rc && wrong)
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

static void count_steps(const gcoll_comm *c, const struct gci_sched *s, uint32_t esize,
	uint64_t *moved, uint64_t *wan_nbytes)
{
	const int *cluster = c->topo.cluster;
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		if (p->kind == GCI_STEP_SEND) {
			moved[0] += p->src.length * esize;
			if (cluster[s->rank] != cluster[p->peer])
				*wan_nbytes += p->src.length * esize;
		} else if (p->kind <= GCI_STEP_RECV_REDUCE) {
			moved[1] += p->dst.length * esize;
		}
	}
}

/* The bytes that one operation moves between clusters, summed over all ranks' schedules; and the largest
 * number of bytes that any one rank puts out or takes in. O(P steps). */
static int count_traffic(
	gcoll_comm *c, const struct gci_coll *coll, uint64_t *wan_nbytes, uint64_t *nic_nbytes)
{
	struct gci_op op = {.comm = c, .coll = *coll, .number = c->next_op};
	uint64_t *moved = gci_calloc((size_t)c->size, 2 * sizeof(*moved)), w;
	int r, rc = moved ? 0 : GCOLL_ERR_NOMEM;

	*wan_nbytes = *nic_nbytes = 0;
	op.coll.topo = &c->topo;
	if (!rc)
		rc = gci_op_prepare(&op);
	for (w = 0; !rc && w < op.windows.n; w++) {
		struct gci_coll window = gci_window_of(&op.windows, &op.coll, w);

		if (c->decider.topo)
			window.packed = gci_decide_packed(&c->decider, op.algorithm, &window);
		for (r = 0; r < c->size && !rc; r++) {
			struct gci_sched s;

			rc = gci_emit(op.algorithm, &window, r, &s);
			if (!rc)
				count_steps(c, &s, coll->esize, &moved[2 * r], wan_nbytes);
			gci_sched_free(&s);
		}
	}
	for (r = 0; !rc && r < 2 * c->size; r++)
		if (moved[r] > *nic_nbytes)
			*nic_nbytes = moved[r];
	gci_free(moved);
	return rc;
}

static int measure_traffic(struct gct_bench *b, struct gct_bench_result *r)
{
	const struct gci_coll coll = gct_bench_coll(b, r);
	uint64_t nic;

	if (b->comm->rank)
		return 0;
	if (count_traffic(b->comm, &coll, &r->schedule_wan_nbytes, &nic))
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

	r->limit_ns = gci_bound_ns(&coll, b->comm->engine->settings.streams);
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

/* True if the WAN interfaces counted what the schedules move, within `percent` and what was sent
 * again; also where nothing was counted. */
static int gct_bench_wan_fits(const struct gct_bench_result *r, uint64_t percent)
{
	uint64_t want = r->schedule_wan_nbytes, got = r->wan_nbytes;
	uint64_t off = got > want ? got - want : want - got;
	uint64_t most = (uint64_t)((double)want / 100 * (double)percent);

	if (got > want)
		most += r->wan_resent * MOST_SEGMENT / r->iterations;
	return !r->has_wan || !want || off <= most;
}

/* ---- the command */

#define SETTINGS struct gct_bench_options

static int take_sizes(void *settings, char *list, struct gci_error *e)
{
	SETTINGS *o = settings;

	o->sized = 1;
	return gct_take_sizes(list, o->sizes, &o->nsizes, e);
}

static int take_algorithms(void *settings, char *list, struct gci_error *e)
{
	SETTINGS *o = settings;

	return gct_take_algorithms(list, o->algorithms, &o->nalgorithms, e);
}

static const struct gci_option options[] = {
	{'b', "bytes", "LIST",
		"sizes, e.g. 8,64KiB,32MiB (default 1MiB): of the whole vector, of all ranks' "
		"blocks, in alltoall of those that one rank sends",
		.take = take_sizes},
	{'a', "algorithm", "LIST",
		"names of --list with parameters, e.g. farfirst,vandegeijn-mod:senders=4; auto "
		"(default), all",
		.take = take_algorithms},
	{'i', "iters", "N", "warm iterations (default 5; 2 with --algorithm all)",
		GCI_OPTION_NUMBER(SETTINGS, iterations, 1, 1000000)},
	{'r', "root", "RANK", "of bcast, reduce, scatter and gather (default 0)",
		GCI_OPTION_NUMBER(SETTINGS, root, 0, GCI_GRID_MAX_HOSTS), .expected = "a rank"},
	{'f', "file", "FILE", "bcast this file's contents (rank 0 reads it), one size",
		GCI_OPTION_TEXT(SETTINGS, file)},
	{'s', "streams", "N", "connections per WAN peer",
		GCI_OPTION_NUMBER(SETTINGS, streams, 1, 64)},
	{0, "socket-buffer", "B", "fixed socket buffers, e.g. 3MB (default: auto)",
		GCI_OPTION_TEXT(SETTINGS, socket_buffer)},
	{0, "wan-tolerance", "P",
		"fail if the WAN interfaces' counters are off the schedule's sum by more than P "
		"percent",
		GCI_OPTION_NUMBER(SETTINGS, wan_tolerance, 0, 1000)},
	{'j', "json", "FILE", "write results as JSON too", GCI_OPTION_TEXT(SETTINGS, json)},
	{'t', "trace", "FILE",
		"write what each rank did when in the last iteration, for gridcoll plan "
		"--explain; of one operation, size and algorithm",
		GCI_OPTION_TEXT(SETTINGS, trace)},
	{'p', "predict", NULL, "show what the simulator predicts, from the grid file",
		GCI_OPTION_FLAG(SETTINGS, predict)},
	{0, "params", "FILE", "the same, from a parameters file of gridcoll probe",
		GCI_OPTION_TEXT(SETTINGS, params)},
	{0, "report", "DIR",
		"write grid, results, predictions and a recorded run of each operation to DIR, "
		"and a page that shows them all: DIR/report.html",
		GCI_OPTION_TEXT(SETTINGS, report)},
	{'l', "list", NULL, "list the algorithms and end", GCI_OPTION_FLAG(SETTINGS, list)}, {0}};

static const struct gct_usage command_line = {"bench",
	"usage: gridcoll-run ... gridcoll bench OPERATION... [options]\n"
	"Measures bcast, reduce, allreduce, reduce_scatter, scatter, gather, allgather,\n"
	"alltoall, barrier, or all of them: time from an agreed start to the last rank's\n"
	"end. Every result is verified.\n",
	"example: gridcoll-run -n 4 gridcoll bench bcast allreduce -b 64KiB,8MiB\n", options};

static int usage_error(const char *what, const char *value, const char *expected)
{
	return gct_wrong("bench", "%s \"%s\", expected %s", what, value, expected);
}

static int list_algorithms(void)
{
	const struct gci_algorithm *a;
	char text[400];
	int at;

	if (!gct_is_first())
		return GCT_OK;
	gci_each_algorithm (a) {
		at = printf("%-14s %-22s ", gci_kind_name(a->kind), a->name);
		snprintf(text, sizeof(text), "%s%s%s%s", a->summary,
			(a->traits & GCI_USES_SENDERS) ? " [:senders=N]" : "",
			(a->traits & GCI_USES_SEGMENT) ? " [:segment=BYTES]" : "",
			(a->traits & GCI_USES_DEGREE) ? " [:degree=D]" : "");
		gci_print_wrapped(stdout, text, at, at);
	}
	return GCT_OK;
}

static int parse_options(struct gct_bench_options *o, int argc, char **argv)
{
	int i, first, rc;

	*o = (struct gct_bench_options){.sizes = {1 << 20},
		.nsizes = 1,
		.algorithms = {"auto"},
		.nalgorithms = 1,
		.wan_tolerance = UINT64_MAX};
	rc = gct_options(&command_line, o, argc, argv, GCI_OPTIONS_ANYWHERE, &first);
	if (!rc && o->list && first < argc)
		rc = gct_wrong(
			"bench", "\"%s\" after --list, see gridcoll bench --help", argv[first]);
	if (rc || o->list)
		return rc;
	o->predict |= o->params || o->report;
	if (!o->iterations)
		o->iterations = o->nalgorithms ? 5 : 2;
	rc = gct_parse_operations("bench", argc - first, argv + first, o->kinds, &o->nkinds);
	if (!rc && o->trace && (o->nkinds != 1 || o->nsizes != 1 || o->nalgorithms != 1))
		rc = usage_error(
			"--trace", o->trace, "one operation, one size and one algorithm with it");
	for (i = 0; !rc && o->file && i < o->nkinds && o->kinds[i] != GCI_BCAST; i++)
		;
	if (!rc && o->file && i == o->nkinds)
		rc = usage_error("--file", o->file, "bcast, which sends it, among the operations");
	if (!rc && o->file && o->sized)
		rc = usage_error("--file", o->file, "no --bytes with it: it has a size");
	return rc;
}

/* Rank 0 reads the file; everybody gets it once, the plain way, to compare with later. */
static int share_file(struct gct_bench *b, struct gct_bench_options *o)
{
	uint64_t nbytes = 0;
	struct stat st;
	FILE *f = NULL;
	char *copy;
	int rc = 0, fd;

	if (!b->comm->rank) {
		fd = open(o->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO has no writer */
		f = fd < 0 ? NULL : fdopen(fd, "r");
		if (!f || fstat(fd, &st))
			rc = gci_comm_error(
				GCOLL_ERR_IO, "cannot read %s: %s", o->file, strerror(errno));
		else if (!S_ISREG(st.st_mode))
			rc = gci_comm_error(
				GCOLL_ERR_IO, "%s is no regular file, expected one", o->file);
		else
			nbytes = (uint64_t)st.st_size;
	}
	if (!rc)
		rc = gcoll_bcast(&nbytes, 1, GCOLL_UINT64, 0, b->own);
	copy = rc ? NULL : gci_calloc(nbytes, 1);
	if (!rc && !copy)
		rc = gci_comm_error(GCOLL_ERR_NOMEM, "%s: larger than memory", o->file);
	if (!rc && f && fread(copy, 1, nbytes, f) != nbytes)
		rc = gci_comm_error(GCOLL_ERR_IO, "%s: read error", o->file);
	if (f)
		fclose(f);
	if (!rc)
		rc = gcoll_bcast(copy, nbytes, GCOLL_BYTE, 0, b->own);
	b->pattern = copy;
	o->sizes[0] = nbytes;
	o->nsizes = 1;
	return rc;
}

static int set_up(struct gct_bench *b, struct gct_bench_options *o)
{
	uint64_t most = 1;
	int i, rc = gct_bench_open(b, (int)o->root);

	if (!rc)
		rc = gct_bench_files_open(b, o);
	if (!rc)
		rc = gct_bench_clocks(b);
	if (!rc && o->file)
		rc = share_file(b, o);
	for (i = 0; i < o->nsizes; i++)
		most = o->sizes[i] > most ? o->sizes[i] : most;
	return rc ? rc : gct_bench_buffers(b, most);
}

/* The algorithms of one operation: those asked for, or all. */
static int algorithm_names(
	const struct gct_bench_options *o, enum gci_kind kind, const char *names[GCT_MAX_CASES])
{
	const struct gci_algorithm *a;
	int n = 0;

	if (o->nalgorithms) {
		memcpy(names, o->algorithms, sizeof(o->algorithms));
		return o->nalgorithms;
	}
	gci_each_algorithm (a)
		if (a->kind == kind && n < GCT_MAX_CASES)
			names[n++] = a->name;
	return n;
}

/* `listed`: it was asked for by name, and then must run. */
static int measure_case(struct gct_bench *b, const struct gct_bench_options *o,
	const char *algorithm, int listed, struct gct_bench_result *r)
{
	int rc = gcoll_comm_set(b->comm, gci_kind_name(r->kind), algorithm);
	struct gci_coll coll = gct_bench_coll(b, r);
	char text[GCI_CANDIDATE_NBYTES];
	struct gci_decision d;
	const char *why = "";
	int chosen;

	if (rc)
		return rc;
	chosen = !gci_op_choose(b->comm, &coll, 0, &d, &why);
	/* "auto" is told by what it stands for. */
	if (chosen && !strncmp(algorithm, "auto", 4)) {
		gci_candidate_print(&d.how, text);
		snprintf(r->algorithm, sizeof(r->algorithm), "%s (%s)", text,
			gci_decided_by_name(d.by));
	} else {
		snprintf(r->algorithm, sizeof(r->algorithm), "%s", algorithm);
	}
	if (!chosen && listed)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s by %s: %s", gci_kind_name(r->kind), algorithm, why);
	if (!chosen) {
		snprintf(r->not_run, sizeof(r->not_run), "%s", why);
		return 0;
	}
	if (b->predictor) {
		coll = gct_bench_coll(b, r);
		r->predicted_ns = gct_bench_predict(b->predictor, &coll, &d.how);
	}
	r->ns = gci_calloc(o->iterations, sizeof(*r->ns));
	if (!r->ns)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	return gct_bench_measure(b, r);
}

struct results {
	struct gct_bench_result *list;
	size_t n, cap;
};

static int check_wan(const struct gct_bench_options *o, const struct gct_bench_result *r)
{
	if (r->not_run[0] || o->wan_tolerance == UINT64_MAX ||
		gct_bench_wan_fits(r, o->wan_tolerance))
		return 0;
	return gci_comm_error(GCOLL_ERR_VERIFY,
		"%s by %s: bytes over the WAN are not what its schedule moves",
		gci_kind_name(r->kind), r->algorithm);
}

/* Rows in all. */
static size_t count_rows(const struct gct_bench_options *o)
{
	const char *names[GCT_MAX_CASES];
	size_t n = 0;
	int k;

	for (k = 0; k < o->nkinds; k++)
		n += (size_t)algorithm_names(o, o->kinds[k], names) *
		     (o->kinds[k] == GCI_BARRIER ? 1 : (size_t)o->nsizes);
	return n;
}

static int measure_size(struct gct_bench *b, const struct gct_bench_options *o, enum gci_kind kind,
	uint64_t nbytes, struct results *out)
{
	const char *names[GCT_MAX_CASES];
	size_t nrows = count_rows(o);
	int a, rc = 0, n = algorithm_names(o, kind, names);

	for (a = 0; a < n && !rc; a++) {
		struct gct_bench_result *r;

		if (gci_grow(&out->list, &out->cap, out->n + 1, sizeof(*out->list)))
			return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
		r = &out->list[out->n++];
		*r = (struct gct_bench_result){.kind = kind,
			.iterations = o->iterations,
			.asked_algorithm = names[a],
			.column = a};
		gct_bench_shape(b, r, nbytes);
		gct_progress_stage(out->n, nrows);
		rc = gct_bench_files_begin(b, o, r);
		if (!rc)
			rc = measure_case(b, o, names[a], o->nalgorithms != 0, r);
		gct_bench_files_end(b);
		gct_progress_end();
		if (!rc && !b->comm->rank && !a)
			gct_bench_print_group(b, r);
		if (!rc && !b->comm->rank)
			gct_bench_print(b, r);
		if (!rc)
			rc = check_wan(o, r);
	}
	return rc;
}

static int measure_kind(struct gct_bench *b, const struct gct_bench_options *o, enum gci_kind kind,
	struct results *out)
{
	int s, rc = 0, nsizes = kind == GCI_BARRIER ? 1 : o->nsizes;

	for (s = 0; s < nsizes && !rc; s++)
		rc = measure_size(b, o, kind, o->sizes[s], out);
	return rc;
}

static int run(struct gct_bench *b, struct gct_bench_options *o)
{
	struct results results = {0};
	size_t i;
	int k, rc = set_up(b, o);

	if (!rc && !b->comm->rank)
		gct_bench_print_header(b, o);
	for (k = 0; k < o->nkinds && !rc; k++)
		rc = measure_kind(b, o, o->kinds[k], &results);
	if (!rc && !b->comm->rank)
		gct_bench_print_footer(b, results.list, (int)results.n);
	if (!rc && !b->comm->rank)
		rc = gct_bench_files_write(b, o, results.list, (int)results.n);
	for (i = 0; i < results.n; i++) {
		gci_free(results.list[i].ns);
		gci_free(results.list[i].course);
	}
	gci_free(results.list);
	return rc;
}

/* Names and parameters are checked before anything runs; every rank finds the same. */
static int check_settings(struct gct_bench *b, const struct gct_bench_options *o)
{
	int k, a, rc;

	if (o->root >= (uint64_t)b->comm->size)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"--root \"%llu\", expected a rank from 0 to %d",
			(unsigned long long)o->root, b->comm->size - 1);
	rc = gct_set_streams(b->comm, o->streams);
	if (!rc && o->socket_buffer)
		rc = gcoll_comm_set(b->comm, "socket_buffer", o->socket_buffer);
	for (k = 0; k < o->nkinds && !rc; k++)
		for (a = 0; a < o->nalgorithms && !rc; a++)
			rc = gcoll_comm_set(b->comm, gci_kind_name(o->kinds[k]), o->algorithms[a]);
	return rc;
}

int gct_bench_command(int argc, char **argv)
{
	struct gct_bench_options o;
	struct gct_bench b = {0};
	int rc = parse_options(&o, argc, argv);

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	if (o.list)
		return list_algorithms();
	rc = gct_join("bench", &b.comm);
	if (rc)
		return rc;
	rc = check_settings(&b, &o);
	if (!rc)
		rc = run(&b, &o);
	if (rc && !b.comm->engine->failure.status)
		gct_abort(b.comm, gcoll_last_error());
	gct_bench_files_end(&b);
	gct_bench_predict_end(b.predictor);
	gct_bench_close(&b);
	return rc == GCOLL_ERR_INVAL ? GCT_USAGE : rc ? GCT_FAILED : GCT_OK;
}
