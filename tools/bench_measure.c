/* SPDX-License-Identifier: MIT
 * One measurement. All ranks start at a clock time that rank 0 names, since a barrier would let
 * them go up to a WAN delay apart; the time is that from there to the last rank's end. Every
 * result is checked, against a pattern that changes with each iteration. */
#include "base/mem.h"
#include "netem/cpu.h"
#include "tools/bench.h"

#include <stdlib.h>
#include <string.h>

#define START_MARGIN (20 * GCI_NS_PER_MS)

static uint32_t word(uint64_t seed, uint64_t i)
{
	return (uint32_t)(seed + i * 2654435761u);
}

static void fill_words(char *buf, uint64_t nbytes, uint64_t seed, uint32_t add)
{
	uint32_t w;
	uint64_t i;

	for (i = 0; i + 4 <= nbytes; i += 4) {
		w = word(seed, i) + add;
		memcpy(buf + i, &w, 4);
	}
	for (; i < nbytes; i++)
		buf[i] = (char)(seed + i + add);
}

/* buf[i] must be factor * word + add. */
static int check_words(
	const char *buf, uint64_t nbytes, uint64_t seed, uint32_t factor, uint32_t add)
{
	uint32_t w, bad = 0;
	uint64_t i;

	for (i = 0; i + 4 <= nbytes; i += 4) {
		memcpy(&w, buf + i, 4);
		bad |= w ^ (word(seed, i) * factor + add);
	}
	for (; factor == 1 && i < nbytes; i++)
		bad |= (unsigned char)(buf[i] ^ (char)(seed + i + add));
	return !bad;
}

static void prepare(struct gct_bench *b, const struct gct_bench_result *r, uint64_t seed)
{
	int rank = b->comm->rank;

	if (r->kind == GCI_ALLREDUCE) {
		fill_words(b->send, r->nbytes, seed, (uint32_t)rank);
		return;
	}
	if (r->kind != GCI_BCAST || (b->pattern && rank == 0))
		return;
	/* What the root has, others must not have before. */
	fill_words(b->recv, r->nbytes, rank ? ~seed : seed, 0);
}

static int check(struct gct_bench *b, const struct gct_bench_result *r, uint64_t seed)
{
	uint32_t p = (uint32_t)b->comm->size;

	if (r->kind == GCI_BCAST && b->pattern)
		return !memcmp(b->recv, b->pattern, r->nbytes);
	if (r->kind == GCI_BCAST)
		return check_words(b->recv, r->nbytes, seed, 1, 0);
	if (r->kind == GCI_ALLREDUCE)
		return check_words(b->recv, r->nbytes / 4 * 4, seed, p, p * (p - 1) / 2);
	return 1;
}

static int run(struct gct_bench *b, const struct gct_bench_result *r)
{
	if (r->kind == GCI_BCAST)
		return gcoll_bcast(b->recv, r->nbytes, GCOLL_BYTE, 0, b->comm);
	if (r->kind == GCI_ALLREDUCE)
		return gcoll_allreduce(
			b->send, b->recv, r->nbytes / 4, GCOLL_UINT32, GCOLL_SUM, b->comm);
	return gcoll_barrier(b->comm);
}

/* Rank 0 names a time that all will know of before it comes. */
static int agree_on_start(struct gct_bench *b, uint64_t *start)
{
	uint64_t now;
	int rc;

	*start = gci_wall_ns() + START_MARGIN + 4 * b->longest_delay_ns;
	rc = gcoll_bcast(start, 1, GCOLL_UINT64, 0, b->comm);
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

/* One operation: *ns to the last rank's end. Raises r->late_ns to the latest rank's start. */
static int time_one(struct gct_bench *b, struct gct_bench_result *r, uint64_t seed, uint64_t *ns)
{
	uint64_t start, late, end[3];
	int rc;

	prepare(b, r, seed);
	rc = agree_on_start(b, &start);
	if (rc)
		return rc;
	late = since(start);
	rc = run(b, r);
	if (rc)
		return rc;
	end[0] = since(start);
	end[1] = late;
	end[2] = !check(b, r, seed);
	rc = gcoll_allreduce(GCOLL_IN_PLACE, end, 3, GCOLL_UINT64, GCOLL_MAX, b->comm);
	*ns = end[0];
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
	uint32_t esize = r->kind == GCI_ALLREDUCE ? 4 : 1;
	const struct gci_coll coll = {.kind = r->kind, .count = r->nbytes / esize, .esize = esize};
	uint64_t nic;

	if (b->comm->rank || r->kind == GCI_BARRIER)
		return 0;
	if (gci_comm_traffic(b->comm, &coll, &r->schedule_wan_nbytes, &nic))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

/* A dry exchange, so that counters do not catch what belongs to the operations before. */
static int settle(struct gct_bench *b)
{
	return gcoll_barrier(b->comm);
}

int gct_bench_measure(struct gct_bench *b, struct gct_bench_result *r)
{
	struct gci_coll coll = {
		.kind = r->kind, .topo = &b->comm->topo, .count = r->nbytes, .esize = 1};
	struct meter before, after;
	uint64_t i, seed = r->nbytes * 31 + 7;
	int rc;

	if (b->pattern && !b->comm->rank && r->kind == GCI_BCAST)
		memcpy(b->recv, b->pattern, r->nbytes);
	r->limit_ns = gci_limit_ns(&coll, b->comm->engine->streams);
	r->cpu_percent = -1;
	rc = time_one(b, r, seed, &r->cold_ns);
	if (!rc)
		rc = measure_traffic(b, r);
	if (!rc)
		rc = settle(b);
	if (!rc)
		rc = read_meter(b, &before);
	for (i = 0; i < r->iterations && !rc; i++)
		rc = time_one(b, r, seed + 1 + i, &r->ns[i]);
	if (!rc)
		rc = settle(b);
	if (!rc)
		rc = read_meter(b, &after);
	if (rc)
		return rc;
	qsort(r->ns, r->iterations, sizeof(*r->ns), compare_u64);
	r->has_wan = before.has_wan && after.has_wan;
	r->wan_nbytes = (after.wan - before.wan) / r->iterations;
	r->cpu_percent = gci_cpu_percent(after.busy - before.busy, after.all - before.all);
	return 0;
}

int gct_bench_wan_fits(const struct gct_bench_result *r, uint64_t percent)
{
	uint64_t want = r->schedule_wan_nbytes, got = r->wan_nbytes;
	uint64_t off = got > want ? got - want : want - got;

	return !r->has_wan || !want || off <= (uint64_t)((double)want / 100 * (double)percent);
}
