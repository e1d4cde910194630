/* SPDX-License-Identifier: MIT
 * A rank that waits takes no processor: for a rank that comes late, for many requests at once, for
 * a peer that is stopped in the middle of an operation. Run by gridcoll-run; the status tells. The
 * processor time is compared with the time that passed, so that a busy machine does not matter. */
#include "base/clock.h"
#include "tests/comm/rank.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_NS  (700 * GCI_NS_PER_MS)
#define NREQUESTS 100
#define COUNT     (8u << 20) /* more than sockets hold */

/* What a wait may take besides a twentieth of the time, since a guest's processor is charged with what
 * its host takes from it: a wait begins and ends with some work. */
struct bound {
	uint64_t work_ns;
	long switches;
};

static const struct bound little = {4 * GCI_NS_PER_MS, 100};
static const struct bound each = {4 * GCI_NS_PER_MS, 2 * NREQUESTS}; /* may come by itself */
static const struct bound transfer = {40 * GCI_NS_PER_MS, 400};      /* the rest of COUNT bytes */

struct meter {
	uint64_t ns, used_ns;
	long switches;
};

static char *buf;

static struct meter meter(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (struct meter){.ns = gci_now_ns(),
		.used_ns =
			((uint64_t)r.ru_utime.tv_sec + (uint64_t)r.ru_stime.tv_sec) * GCI_NS_PER_S +
			((uint64_t)r.ru_utime.tv_usec + (uint64_t)r.ru_stime.tv_usec) * 1000,
		.switches = r.ru_nvcsw};
}

static void was_idle(struct meter from, const struct bound *most, const char *what)
{
	struct meter to = meter();
	uint64_t passed = to.ns - from.ns, used = to.used_ns - from.used_ns;
	long switches = to.switches - from.switches;

	if (used <= passed / 20 + most->work_ns && switches <= most->switches)
		return;
	fprintf(stderr,
		"rank %d: %s: %" PRIu64 " us of processor time and %ld waits in %" PRIu64 " us\n",
		gcoll_rank(world), what, used / 1000, switches, passed / 1000);
	exit(1);
}

/* A pause begins when all are there. */
static struct meter begin(void)
{
	must(gcoll_barrier(world), "barrier");
	return meter();
}

static void for_a_late_rank(void)
{
	struct meter m = begin();

	if (gcoll_rank(world) == 0)
		gci_sleep_ns(PAUSE_NS);
	must(gcoll_barrier(world), "barrier");
	was_idle(m, &little, "for a late rank");
}

static void for_many_requests(void)
{
	gcoll_req *req[NREQUESTS];
	struct meter m = begin();
	int i, me = gcoll_rank(world), n = gcoll_size(world);

	for (i = 0; i < NREQUESTS && me; i++)
		must(gcoll_irecv(buf + i, 1, GCOLL_BYTE, 0, i, world, &req[i]), "irecv");
	if (!me)
		gci_sleep_ns(PAUSE_NS);
	for (i = 0; i < NREQUESTS * n && !me; i++)
		if (i % n)
			must(gcoll_send(buf, 1, GCOLL_BYTE, i % n, i / n, world), "send");
	for (i = 0; i < NREQUESTS && me; i++)
		must(gcoll_wait(&req[i]), "recv");
	if (me)
		was_idle(m, &each, "for many requests");
}

/* Stops until its child wakes it up. */
static void stop(void)
{
	pid_t self = getpid(), pid = fork();

	if (!pid) {
		gci_sleep_ns(PAUSE_NS);
		kill(self, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	waitpid(pid, NULL, 0);
}

/* The last rank stops in the middle of a message, which fills all buffers between; the others wait
 * for it, rank 0 until its socket takes more. */
static void for_a_stopped_rank(void)
{
	const struct bound *most = gcoll_rank(world) ? &little : &transfer;
	int last = gcoll_size(world) - 1, done = 0, i;
	gcoll_req *req = NULL;
	struct meter m;

	must(gcoll_barrier(world), "barrier");
	if (gcoll_rank(world) == last) {
		must(gcoll_irecv(buf, COUNT, GCOLL_BYTE, 0, 1, world, &req), "irecv");
		must(gcoll_test(&req, &done), "test");
		stop();
	}
	if (!gcoll_rank(world))
		must(gcoll_isend(buf, COUNT, GCOLL_BYTE, last, 1, world, &req), "isend");
	for (i = 0; i < 100 && !gcoll_rank(world) && !done; i++) {
		must(gcoll_test(&req, &done), "test");
		gci_sleep_ns(GCI_NS_PER_MS);
	}
	m = meter();
	must(gcoll_wait(&req), "wait");
	must(gcoll_barrier(world), "barrier");
	if (gcoll_rank(world) != last)
		was_idle(m, most, "for a stopped rank");
}

int main(void)
{
	must(gcoll_init(&world), "init");
	buf = calloc(1, COUNT);
	if (!buf)
		return 1;
	must(gcoll_bcast(buf, COUNT, GCOLL_BYTE, 0, world), "bcast");
	for_a_late_rank();
	for_many_requests();
	for_a_stopped_rank();
	free(buf);
	gcoll_finalize(world);
	return 0;
}
