/* SPDX-License-Identifier: MIT
 * A rank of a job on a network that has faults: collective operations of all kinds, one after the
 * other, every result checked, until the file LOG.stop is there or one fails. What happens goes to
 * the file LOG, a line each: "RANK SECONDS WHAT TEXT", seconds as in /proc/uptime.
 *
 *	job LOG NBYTES end|survive [TIMEOUT]
 *
 * NBYTES: of the longest buffer of an operation. TIMEOUT: the setting of that name. */
#include "tests/comm/rank.h"
#include "tests/comm/trial_data.h"

#include "base/clock.h"
#include "comm/comm.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TRIES 5 /* to make a world of those who are left */

static int job_rank, log_fd;
static uint64_t nbytes;

/* One line, whole: others write, too. */
static void note_at(uint64_t ns, const char *what, const char *text)
{
	char line[1400];
	int n = snprintf(line, sizeof(line), "%d %.3f %s %s\n", job_rank,
		(double)ns / (double)GCI_NS_PER_S, what, text);

	if (write(log_fd, line, (size_t)n) != n)
		_exit(99);
}

static void note(const char *what, const char *text)
{
	note_at(gci_now_ns(), what, text);
}

static void note_failure(int rc)
{
	char text[1200];

	snprintf(text, sizeof(text), "%d %s", rc, gcoll_last_error());
	note("failed", text);
}

/* All kinds in turn, roots and in place or not as well. */
static struct trial trial_of(uint64_t step)
{
	unsigned n = (unsigned)gcoll_size(world);
	struct trial t = {0};

	t.kind = (enum gci_kind)(step % GCI_BARRIER);
	t.count = nbytes / sizeof(uint64_t);
	if (!gci_kind_has_vector(t.kind))
		t.count = 1 + t.count / n;
	t.root = (int)(step / GCI_BARRIER % n);
	t.op = GCOLL_SUM;
	t.type = GCOLL_UINT64;
	t.in_place = t.kind != GCI_BCAST && step % 3 == 0;
	t.seed = step;
	return t;
}

/* 0, or what the call returned. A wrong result ends the process. */
static int one_operation(uint64_t step)
{
	struct trial t = trial_of(step);
	struct trial_data *x = trial_data_new(&t, &world->topo);
	int me = gcoll_rank(world), rc;
	uint64_t begin_ns, end_ns;
	gcoll_req *req = NULL;
	char text[300];

	trial_data_fill(x, 0);
	rc = gcoll_barrier(world);
	begin_ns = gci_now_ns();
	if (!rc)
		rc = trial_data_call(x, me, world, &req);
	if (!rc)
		rc = gcoll_wait(&req);
	end_ns = gci_now_ns();
	if (!rc && trial_data_check(x, me, text, sizeof(text))) {
		note("wrong", text);
		_exit(98);
	}
	trial_data_free(x);
	if (!rc) {
		snprintf(text, sizeof(text), "%s %.3f", gci_kind_name(t.kind),
			(double)(end_ns - begin_ns) / (double)GCI_NS_PER_S);
		note_at(begin_ns, "did", text);
	}
	return rc;
}

/* Whether anybody has seen the file; 0, or what the call returned. */
static int ask(const char *stop, int *over)
{
	uint32_t in = !access(stop, F_OK), out = 0;
	int rc = gcoll_allreduce(&in, &out, 1, GCOLL_UINT32, GCOLL_MAX, world);

	*over = !rc && out;
	return rc;
}

/* 0: those who are left may go on. */
static int shrink(void)
{
	int tries, rc = -1;

	for (tries = 0; rc && rc != GCOLL_ERR_ABORTED && tries < MOST_TRIES; tries++) {
		rc = gcoll_comm_shrink(world, &world);
		if (rc)
			note(rc == GCOLL_ERR_ABORTED ? "out" : "again", gcoll_last_error());
	}
	return rc;
}

static int run(const char *stop, int survives)
{
	uint64_t step = 0;
	int rc, over = 0;

	while (!over) {
		rc = ask(stop, &over);
		if (!rc && !over)
			rc = one_operation(step++);
		if (!rc)
			continue;
		note_failure(rc);
		over = 0;
		if (!survives || shrink())
			return 1;
		step = 0;
		note("shrunk", "");
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *rank = getenv("GRIDCOLL_RANK");
	char stop[256];
	int rc;

	expect(argc >= 4 && rank, "arguments");
	job_rank = atoi(rank);
	log_fd = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
	expect(log_fd >= 0, "log");
	snprintf(stop, sizeof(stop), "%s.stop", argv[1]);
	nbytes = strtoull(argv[2], NULL, 10);
	must(gcoll_init(&world), "init");
	if (argc > 4)
		must(gcoll_comm_set(world, "timeout", argv[4]), "timeout");
	note("joined", "");
	rc = run(stop, !strcmp(argv[3], "survive"));
	if (!rc)
		note("leaving", "");
	gcoll_finalize(world);
	note("left", "");
	return rc;
}
