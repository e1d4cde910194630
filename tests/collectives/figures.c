/* SPDX-License-Identifier: MIT */
#include "tests/collectives/figures.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define MAX 20

/* A sub-pool: a pool of the tree, or a single host. */
struct sub {
	int host[MAX], n;
};

struct figures {
	const struct gci_net *net;
	const struct gci_pools *pools;
	const uint64_t *nbytes;
	int half_duplex;
	struct gci_plan *plan;
	/* Section 4 */
	uint64_t link_avail[MAX][MAX], host_avail[MAX], avail_for_send[MAX], avail_for_recv[MAX];
	uint64_t arrival[MAX][MAX]; /* [block][host] */
	/* One call of ScheduleInputPool */
	struct sub sub[MAX];
	int nsubs;
	int sources[MAX][MAX], nsources[MAX];
	int dest_pool[MAX][MAX]; /* [block][sub-pool]: in DestPools */
	uint64_t min_time[MAX][MAX];
	int min_src[MAX][MAX], min_dest[MAX][MAX];
};

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static const struct gci_wire *path(const struct figures *f, int s, int r)
{
	return gci_net_path(f->net, s, r);
}

/* g(m) = m / bandwidth. */
static uint64_t gap(const struct figures *f, int m, int s, int r)
{
	return gci_path_transfer_ns(path(f, s, r), f->nbytes[m]) - path(f, s, r)->latency_ns;
}

static uint64_t start_time(const struct figures *f, int m, int s, int r)
{
	uint64_t start = max(f->link_avail[s][r], f->arrival[m][s]);

	if (f->half_duplex)
		return max(start, max(f->host_avail[s], f->host_avail[r]));
	return max(start, max(f->avail_for_send[s], f->avail_for_recv[r]));
}

static uint64_t total_time(const struct figures *f, int m, int s, int r)
{
	return start_time(f, m, s, r) + gci_path_transfer_ns(path(f, s, r), f->nbytes[m]);
}

/* Figure 4 */
static void find_min(struct figures *f, int d, int p)
{
	int i, k;

	f->min_time[d][p] = UINT64_MAX;
	for (i = 0; i < f->nsources[d]; i++)
		for (k = 0; k < f->sub[p].n; k++) {
			int s = f->sources[d][i], host = f->sub[p].host[k];

			if (total_time(f, d, s, host) < f->min_time[d][p]) {
				f->min_time[d][p] = total_time(f, d, s, host);
				f->min_src[d][p] = s;
				f->min_dest[d][p] = host;
			}
		}
}

static int in_sub(const struct figures *f, int p, int host)
{
	int k;

	for (k = 0; k < f->sub[p].n; k++)
		if (f->sub[p].host[k] == host)
			return 1;
	return 0;
}

/* Figure 3 */
static void init_sched(struct figures *f, const int *init_source)
{
	int d, p;

	memset(f->dest_pool, 0, sizeof(f->dest_pool));
	for (d = 0; d < f->net->nhosts; d++) {
		f->sources[d][0] = init_source[d];
		f->nsources[d] = 1;
		for (p = 0; p < f->nsubs; p++)
			if (f->nbytes[d] && !in_sub(f, p, init_source[d])) {
				f->dest_pool[d][p] = 1;
				find_min(f, d, p);
			}
	}
}

/* Equations 1 to 3. */
static void schedule_transfer(struct figures *f, int s, int r, int m)
{
	struct gci_transfer t = {.from = s, .to = r, .block = m};

	if (gci_grow(&f->plan->transfers, &f->plan->cap, f->plan->n + 1, sizeof(t)))
		abort();
	t.start_ns = start_time(f, m, s, r);
	t.end_ns = total_time(f, m, s, r);
	t.free_ns = t.start_ns + gci_path_busy_ns(path(f, s, r), f->nbytes[m]);
	f->link_avail[s][r] = t.start_ns + gap(f, m, s, r);
	f->host_avail[s] = f->avail_for_send[s] = t.free_ns;
	f->host_avail[r] = f->avail_for_recv[r] = t.end_ns;
	f->arrival[m][r] = t.end_ns;
	f->plan->end_ns = max(f->plan->end_ns, t.end_ns);
	f->plan->transfers[f->plan->n++] = t;
}

/* Figure 6 */
static void update_after_sched(struct figures *f, int data, int src, int dest)
{
	int d, p;

	for (p = 0; p < f->nsubs; p++)
		if (f->dest_pool[data][p])
			find_min(f, data, p);
	for (d = 0; d < f->net->nhosts; d++)
		for (p = 0; p < f->nsubs; p++) {
			if (d == data || !f->dest_pool[d][p])
				continue;
			if (f->min_src[d][p] == src || f->min_dest[d][p] == dest ||
				(f->half_duplex &&
					(f->min_src[d][p] == dest || f->min_dest[d][p] == src)))
				find_min(f, d, p);
		}
}

/* Figure 5 */
static void schedule_input_pool(struct figures *f, const int *init_source)
{
	int d, p, data, src, dest, pool = 0;

	init_sched(f, init_source);
	for (;;) {
		uint64_t sched_time = UINT64_MAX;

		data = -1;
		for (d = 0; d < f->net->nhosts; d++)
			for (p = 0; p < f->nsubs; p++)
				if (f->dest_pool[d][p] && f->min_time[d][p] < sched_time) {
					sched_time = f->min_time[d][p];
					data = d;
					pool = p;
				}
		if (data < 0)
			return;
		src = f->min_src[data][pool];
		dest = f->min_dest[data][pool];
		schedule_transfer(f, src, dest, data);
		f->sources[data][f->nsources[data]++] = dest;
		f->dest_pool[data][pool] = 0;
		update_after_sched(f, data, src, dest);
	}
}

static void set_subs(struct figures *f, const struct gci_pool *pool)
{
	int i, k;

	f->nsubs = pool->nchildren ? pool->nchildren : pool->n;
	for (i = 0; i < f->nsubs; i++) {
		struct gci_pool one = {.first = pool->first + i, .n = 1};
		const struct gci_pool *p =
			pool->nchildren ? &f->pools->pool[pool->child + i] : &one;

		f->sub[i].n = p->n;
		for (k = 0; k < p->n; k++)
			f->sub[i].host[k] = f->pools->host[p->first + k];
	}
}

/* Figure 7 */
static void min3_allgather(struct figures *f, int number, const int *init_source)
{
	const struct gci_pool *pool = &f->pools->pool[number];
	int next[MAX][MAX], i, d, k;

	if (pool->n == 1)
		return;
	set_subs(f, pool);
	schedule_input_pool(f, init_source);
	if (!pool->nchildren)
		return;
	for (i = 0; i < pool->nchildren; i++)
		for (d = 0; d < f->net->nhosts; d++) {
			next[i][d] = -1;
			for (k = 0; k < f->nsources[d] && next[i][d] < 0; k++)
				if (in_sub(f, i, f->sources[d][k]))
					next[i][d] = f->sources[d][k];
		}
	for (i = 0; i < pool->nchildren; i++)
		min3_allgather(f, pool->child + i, next[i]);
}

void figures_plan(struct gci_plan *plan, const struct gci_net *net, const struct gci_pools *pools,
	const uint64_t *nbytes, int half_duplex)
{
	struct figures *f = gci_calloc(1, sizeof(*f));
	int i, own[MAX];

	if (!f || net->nhosts > MAX)
		abort();
	memset(plan, 0, sizeof(*plan));
	f->net = net;
	f->pools = pools;
	f->nbytes = nbytes;
	f->half_duplex = half_duplex;
	f->plan = plan;
	for (i = 0; i < net->nhosts; i++)
		own[i] = i;
	min3_allgather(f, 0, own);
	gci_free(f);
}
