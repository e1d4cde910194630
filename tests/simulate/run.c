/* SPDX-License-Identifier: MIT */
#include "tests/simulate/run.h"

#include "tests/simulate/heap.h"
#include "tests/simulate/launcher.h"
#include "tests/simulate/rank.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_NS        (600 * GCI_NS_PER_S)
#define MOST_NOTICE_NS (20 * GCI_NS_PER_MS) /* that an agent takes to tell of an end */

static struct job *job;

/* ---- what goes wrong */

static int may_lose(int a, int b)
{
	return plan_replays(&job->plan, a, b);
}

static void damage(int a, int b)
{
	const struct gci_rdv_config *rdv = &job->plan.rdv;
	struct plan_damage *d = &job->plan.damage;
	/* One side may hear of it by keepalive only. */
	uint64_t lost_ns = rdv->grace_ns + rdv->dead_ns + 10 * GCI_NS_PER_S;

	if (a >= 0) {
		d->guilty[a] = d->guilty[b] = 1;
		if (d->bound_ns < lost_ns)
			d->bound_ns = lost_ns;
	}
	if (!d->done)
		d->at_ns = os_now;
	d->done = 1;
}

static void on_notice(void *arg, uint64_t n)
{
	(void)arg;
	launcher_exited((uint32_t)n, 0, SIGKILL);
}

static void on_fate(struct os_process *p)
{
	if (p->dead) {
		damage(-1, -1);
		os_at(os_now + os_between(0, MOST_NOTICE_NS), on_notice, NULL, (uint64_t)p->rank);
	} else if (p->fate.stop_ns == GCI_NEVER) {
		damage(-1, -1);
	}
}

/* The launcher's agent of that host is gone as well; in the end it gives up on it. */
static void switch_off(void)
{
	int r;

	for (r = 0; r < job->plan.n; r++) {
		struct os_process *p = job->ranks[r].process;

		if (net_is_dark(p->host) && !p->dead)
			os_kill(p);
	}
}

static void on_fault(int a, int b)
{
	/* A cut that ends in time is survived. */
	if (a < 0 && job->plan.faults.cut_at && job->plan.faults.cut_ns != GCI_NEVER &&
		!job->plan.unseen)
		return;
	damage(a, b);
	if (job->plan.unseen)
		switch_off();
}

/* ---- is all as it must be? */

static void complain(struct run_result *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void complain(struct run_result *out, const char *fmt, ...)
{
	va_list ap;

	if (*out->wrong)
		return;
	va_start(ap, fmt);
	vsnprintf(out->wrong, sizeof(out->wrong), fmt, ap);
	va_end(ap);
}

static int survives(const struct rank *k)
{
	return !k->process->dead && !(k->process->stopped);
}

static void check_error(const struct rank *k, struct run_result *out)
{
	const struct plan_damage *d = &job->plan.damage;
	const struct gci_rdv_verdict *v = launcher_verdict();
	uint64_t late = k->ended_ns - d->at_ns;

	if (!d->done) {
		complain(out, "rank %d: step %d, %s failed, and nothing was wrong: %s", k->rank,
			k->at_step, k->what, k->text);
		return;
	}
	if (k->blamed != INT_MIN && (k->blamed < 0 || !d->guilty[k->blamed]))
		complain(out, "rank %d: %s names rank %d, which is well: %s", k->rank, k->what,
			k->blamed, k->text);
	if (v && k->blamed != INT_MIN && k->blamed != v->rank)
		complain(out, "rank %d: %s names rank %d, the launcher's verdict rank %d: %s",
			k->rank, k->what, k->blamed, v->rank, k->text);
	if (!d->any_status && k->status != GCOLL_ERR_PEER && k->blamed != INT_MIN)
		complain(out, "rank %d: %s fails with status %d: %s", k->rank, k->what, k->status,
			k->text);
	if (late > d->bound_ns + (k->blamed == INT_MIN ? job->plan.rdv.start_ns : 0))
		complain(out, "rank %d heard of it %.3f s late, %.3f s are allowed: %s", k->rank,
			(double)late / 1e9, (double)d->bound_ns / 1e9, k->text);
	if (k->blamed != INT_MIN)
		out->late_ns = late > out->late_ns ? late : out->late_ns;
}

static void check_rank(const struct rank *k, struct run_result *out)
{
	if (*k->wrong)
		complain(out, "rank %d: %s", k->rank, k->wrong);
	if (k->process->spins)
		complain(out, "rank %d spins in step %d of %d", k->rank, k->at_step,
			job->plan.nsteps);
	if (!survives(k))
		return;
	if (!k->ended) {
		complain(out, "rank %d hangs in step %d of %d%s%s", k->rank, k->at_step,
			job->plan.nsteps, k->status ? ", after: " : "", k->text);
		return;
	}
	if (k->left_pieces)
		complain(out, "rank %d leaves %zu pieces of memory", k->rank, k->left_pieces);
	if (k->status) {
		out->failed++;
		check_error(k, out);
	}
}

static void check(struct run_result *out)
{
	const struct gci_rdv_verdict *v = launcher_verdict();
	int r, begun = 0;

	if (v && !job->plan.damage.done)
		complain(out, "a verdict, and nothing was wrong: %s", v->sentence);
	for (r = 0; r < job->plan.n; r++) {
		const struct rank *k = &job->ranks[r];

		check_rank(k, out);
		if (k->begun > begun)
			begun = k->begun;
	}
	out->operations = plan_count(&job->plan, begun);
}

static uint64_t digest(void)
{
	uint64_t d = gci_digest(os_now, net_counts.pieces);
	int r;

	d = gci_digest(d, net_counts.nbytes);
	for (r = 0; r < job->plan.n; r++) {
		const struct rank *k = &job->ranks[r];

		d = gci_digest(gci_digest(d, k->ended_ns), k->process->ncalls);
		d = gci_digest_bytes(d, k->text, strlen(k->text));
	}
	return d;
}

/* ---- */

static void begin(uint64_t seed)
{
	struct plan *p = &job->plan;
	static char rendezvous[LAUNCHER_ADDRESS_NBYTES];
	int r;

	os_begin(seed);
	p->faults.may_lose = may_lose;
	p->faults.on_fault = on_fault;
	net_begin(&p->net, &p->faults);
	p->world.rendezvous = rendezvous;
	world_set(&p->world);
	launcher_begin(os_process(OS_LAUNCHER, p->net.nhosts - 1), &p->rdv, rendezvous);
	for (r = 0; r < p->n; r++) {
		struct rank *k = &job->ranks[r];

		k->job = job;
		k->rank = r;
		k->process = os_process(r, p->host[r]);
		k->process->fate = p->fates[r];
		k->process->on_fate = on_fate;
		os_thread(k->process, rank_main, k);
	}
}

/* Ranks that nobody tells the launcher of. */
static int only_launcher_waits(void)
{
	int r;

	for (r = 0; r < job->plan.n; r++)
		if (survives(&job->ranks[r]) && !job->ranks[r].ended)
			return 0;
	return 1;
}

static void end_rest(void)
{
	int r;

	for (r = 0; r < job->plan.n; r++)
		if (!job->ranks[r].ended && (job->plan.unseen || job->ranks[r].process->stopped) &&
			!survives(&job->ranks[r]))
			launcher_exited((uint32_t)r, 0, SIGKILL);
}

void run_seed(uint64_t seed, struct run_result *out)
{
	memset(out, 0, sizeof(*out));
	job = heap_calloc(1, sizeof(*job));
	plan_draw(&job->plan, seed);
	os_trace("seed %llu: %s", (unsigned long long)seed, job->plan.summary);
	begin(seed);
	if (!os_run(MOST_NS) && only_launcher_waits()) {
		end_rest();
		os_run(10 * GCI_NS_PER_S);
	}
	check(out);
	out->digest = digest();
	out->simulated_ns = os_now;
	out->losses = net_counts.losses;
	out->flips = net_counts.flips;
	os_end();
	rank_free_data(job);
	plan_free(&job->plan);
	heap_free(job);
}
