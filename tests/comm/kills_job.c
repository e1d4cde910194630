/* SPDX-License-Identifier: MIT
 * A rank of a job in which somebody dies: collective operations of random kinds and sizes, every
 * result checked, and a note of whatever happens, with the time, in the file LOG.
 *
 *	kills_job LOG SEED STEPS end|survive [EVENT...] [thread] [brood:RANK]
 *
 * The last step is a barrier. `brood`: this rank has a process of its own in the background, in
 * another session. An EVENT is WHAT:RANK@POINT+NS, RANK that of the job's start: from its POINT on
 * ("start", the number of a step, "shrink", "leave") NS nanoseconds pass, and then WHAT happens:
 *
 *	kill, stop		SIGKILL or SIGSTOP for this process
 *	agent, launcher		SIGKILL for the process that started it, or that one's parent */
#include "tests/comm/rank.h"
#include "tests/comm/trial_data.h"

#include "base/clock.h"
#include "base/prng.h"
#include "comm/comm.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TRIES 5 /* to make a world of those who are left */

struct event {
	int number, sig;
	pid_t whom;
	uint64_t after_ns;
};

static int job_rank, log_fd, nargs, epoch = 1;
static char **args;
static uint64_t seed;

/* One line, whole: others write, too. */
static void note(const char *what, const char *text)
{
	char line[1400];
	int n = snprintf(
		line, sizeof(line), "%d %" PRIu64 " %s %s\n", job_rank, gci_now_ns(), what, text);

	if (write(log_fd, line, (size_t)n) != n)
		_exit(99);
}

static void note_number(const char *what, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	note(what, text);
}

/* ---- events */

static pid_t parent_of(pid_t pid)
{
	char path[64], line[128];
	pid_t parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "PPid:", 5))
			parent = atoi(line + 5);
	if (f)
		fclose(f);
	return parent;
}

static void *happen(void *arg)
{
	struct event *e = arg;

	gci_sleep_ns(e->after_ns);
	note_number("event", e->number);
	kill(e->whom, e->sig);
	free(e);
	return NULL;
}

static pid_t target(const char *what)
{
	pid_t agent = getppid();

	if (!strncmp(what, "agent:", 6))
		return agent;
	if (!strncmp(what, "launcher:", 9))
		return parent_of(agent);
	return getpid();
}

/* Once, though the step may be done again. */
static void events(const char *point)
{
	char at[32];
	int i;

	snprintf(at, sizeof(at), ":%d@%s+", job_rank, point);
	for (i = 0; i < nargs; i++) {
		char *found = strstr(args[i], at);
		struct event *e;
		pthread_t thread;

		if (!found)
			continue;
		e = calloc(1, sizeof(*e));
		expect(!!e, "memory");
		e->number = i;
		e->sig = !strncmp(args[i], "stop:", 5) ? SIGSTOP : SIGKILL;
		e->whom = target(args[i]);
		e->after_ns = strtoull(found + strlen(at), NULL, 10);
		*found = '\0';
		expect(e->whom > 1, "an agent and a launcher");
		expect(!pthread_create(&thread, NULL, happen, e), "a thread");
		pthread_detach(thread);
	}
}

static void events_of_step(int step)
{
	char point[16];

	snprintf(point, sizeof(point), "%d", step);
	events(point);
}

static int has_arg(const char *what)
{
	int i;

	for (i = 0; i < nargs && strcmp(args[i], what) != 0; i++)
		;
	return i < nargs;
}

static void breed(void)
{
	char what[32];

	snprintf(what, sizeof(what), "brood:%d", job_rank);
	if (!has_arg(what) || fork())
		return;
	setsid();
	for (;;)
		pause();
}

/* ---- operations */

static uint64_t elements(struct gci_prng *p)
{
	uint64_t most = 1ull << gci_prng_below(p, 17);

	return 1 + gci_prng_below(p, most);
}

static struct trial trial_of(int step)
{
	static const enum gcoll_type types[] = {
		GCOLL_UINT64, GCOLL_INT32, GCOLL_FLOAT64, GCOLL_FLOAT32};
	struct gci_prng p = {gci_digest(seed, (uint64_t)step)};
	int n = gcoll_size(world);
	struct trial t = {0};

	t.kind = (enum gci_kind)gci_prng_below(&p, GCI_BARRIER);
	t.count = elements(&p);
	if (!gci_kind_has_vector(t.kind))
		t.count = 1 + t.count / (unsigned)(n * n);
	t.root = (int)gci_prng_below(&p, 1 << 16) % n;
	t.op = GCOLL_SUM;
	t.type = types[gci_prng_below(&p, 4)];
	t.in_place = t.kind != GCI_BCAST && !gci_prng_below(&p, 3);
	t.seed = gci_prng_next(&p);
	return t;
}

/* 0, or what the call returned. A wrong result is noted and ends the process. */
static int one_operation(int step)
{
	struct trial t = trial_of(step);
	struct trial_data *x = trial_data_new(&t, &world->topo);
	int me = gcoll_rank(world), rc;
	char text[300];
	gcoll_req *req = NULL;

	trial_data_fill(x, (uint64_t)epoch);
	events_of_step(step);
	rc = trial_data_call(x, me, world, &req);
	if (!rc)
		rc = gcoll_wait(&req);
	if (!rc && trial_data_check(x, me, text, sizeof(text))) {
		note("wrong", text);
		_exit(98);
	}
	trial_data_free(x);
	return rc;
}

static int one_step(int step, int last)
{
	note_number("begin", step);
	if (!last)
		return one_operation(step);
	events_of_step(step);
	return gcoll_barrier(world);
}

static void note_failure(int rc)
{
	char text[1200];

	snprintf(text, sizeof(text), "%d %s", rc, gcoll_last_error());
	note("failed", text);
}

static void leave(int status)
{
	if (!status) {
		events("leave");
		note("leaving", "");
	}
	gcoll_finalize(world);
	note("left", "");
	exit(status);
}

/* ---- going on */

static void shrink(void)
{
	int tries, rc = 0;

	events("shrink");
	for (tries = 0; tries < MOST_TRIES; tries++) {
		rc = gcoll_comm_shrink(world, &world);
		if (!rc || rc == GCOLL_ERR_ABORTED)
			break;
		note_failure(rc);
	}
	if (rc == GCOLL_ERR_ABORTED) {
		note("out", gcoll_last_error());
		leave(1);
	}
	if (rc)
		leave(1);
	epoch++;
	note_number("shrunk", gcoll_size(world));
}

/* Whether all have done the step; all see the same. */
static int agree(int rc)
{
	uint64_t done = rc ? 0 : 1;
	int agreed;

	if (rc)
		note_failure(rc);
	agreed = gcoll_comm_agree(world, &done);
	if (agreed == GCOLL_ERR_ABORTED) {
		note("out", gcoll_last_error());
		leave(1);
	}
	if (agreed && !rc)
		note_failure(agreed);
	return done && !agreed;
}

static void run(int steps, int survives)
{
	int step = 0, rc;

	while (step < steps) {
		rc = one_step(step, step == steps - 1);
		if (!survives && rc) {
			note_failure(rc);
			leave(1);
		}
		if (!survives || agree(rc))
			step++;
		else
			shrink();
	}
}

int main(int argc, char **argv)
{
	struct gcoll_options options = {0};
	const char *rank = getenv("GRIDCOLL_RANK");
	int rc;

	expect(argc >= 5 && rank, "arguments");
	job_rank = atoi(rank);
	log_fd = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
	expect(log_fd >= 0, "log");
	seed = strtoull(argv[2], NULL, 10);
	args = argv + 5;
	nargs = argc - 5;
	note("born", "");
	breed();
	events("start");
	options.progress_thread = has_arg("thread");
	rc = gcoll_init_options(&world, &options);
	if (rc) {
		note_failure(rc);
		return 1;
	}
	note("joined", "");
	must(gcoll_comm_set(world, "order", "fixed"), "order");
	run(atoi(argv[3]), !strcmp(argv[4], "survive"));
	leave(0);
}
