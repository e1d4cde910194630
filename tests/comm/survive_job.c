/* SPDX-License-Identifier: MIT
 * A rank of a real job that goes on after failures: rounds of operations with every result checked,
 * and who is told to dies in the midst of them. Run by gridcoll-run --survive:
 *
 *	survive_job [thread] [EVENT...]
 *
 * An EVENT is WHAT:RANK@ROUND, RANK that of the job's start:
 *	kill		dies while an operation of the round is under way
 *	shrinkless	dies instead of the gcoll_comm_shrink that follows another's death there
 *	newborn		dies right after it
 *	agree		dies instead of gcoll_comm_agree in that round
 *	stop		stops its process, for others to find
 *	host		stops its host's agent as well, and so, with its other ranks, the host
 *	abort		aborts the epoch
 *	leave		calls gcoll_finalize instead of the shrink
 *	late		sleeps instead, until it is left out
 * Or "endless": it goes on until it is ended.
 * Each rank prints at the end how many ranks and epochs there were, and what it saw. */
#include "tests/comm/rank.h"

#include "base/clock.h"
#include "base/prng.h"
#include "flow/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define COUNT  30011
#define ROUNDS 8

static uint64_t in[COUNT], out[COUNT];
static int job_rank, nargs, epochs = 1;
static char **args;

/* Once, though the round may be done again. */
static int happens(const char *what, int round)
{
	char event[64];
	int i;

	snprintf(event, sizeof(event), "%s:%d@%d", what, job_rank, round);
	for (i = 0; i < nargs; i++)
		if (!strcmp(args[i], event)) {
			args[i][0] = '\0';
			return 1;
		}
	return 0;
}

static int is_said(const char *what)
{
	int i;

	for (i = 0; i < nargs; i++)
		if (strstr(args[i], what))
			return 1;
	return 0;
}

static void die(void)
{
	raise(SIGKILL);
}

static uint64_t element(int rank, int round, uint64_t i)
{
	return gci_mix64((uint64_t)rank << 48 ^ (uint64_t)round << 32 ^ i);
}

static void fill(int rank, int round)
{
	uint64_t i;

	for (i = 0; i < COUNT; i++)
		in[i] = element(rank, round, i);
}

/* The sum over all ranks, which each can make by itself. */
static void check_sum(int round)
{
	int n = gcoll_size(world), r;
	uint64_t i, sum, bad = 0;

	for (i = 0; i < COUNT; i++) {
		for (r = 0, sum = 0; r < n; r++)
			sum += element(r, round, i);
		bad |= sum ^ out[i];
	}
	expect(!bad, "allreduce: wrong result");
}

static void check_bcast(int root, int round)
{
	uint64_t i, bad = 0;

	for (i = 0; i < COUNT; i++)
		bad |= in[i] ^ element(root, round, i);
	expect(!bad, "bcast: wrong result");
}

/* Who dies has begun, and let some bytes go. */
static void events(int round, gcoll_req *req)
{
	uint64_t end = gci_now_ns() + 2 * GCI_NS_PER_MS;
	int done = 0, host = happens("host", round);
	int sig = happens("kill", round) ? SIGKILL : host || happens("stop", round) ? SIGSTOP : 0;

	while (sig && !done && gci_now_ns() < end && !gcoll_test(&req, &done))
		;
	if (host)
		kill(getppid(), SIGSTOP);
	if (sig)
		raise(sig);
	if (happens("abort", round))
		gcoll_comm_abort(world, "once more, please");
}

static int one_round(int round)
{
	int me = gcoll_rank(world), root = round % gcoll_size(world), rc;
	gcoll_req *req;

	fill(me, round);
	rc = gcoll_iallreduce(in, out, COUNT, GCOLL_UINT64, GCOLL_SUM, world, &req);
	if (!rc) {
		events(round, req);
		rc = gcoll_wait(&req);
	}
	if (rc)
		return rc;
	check_sum(round);
	rc = gcoll_bcast(in, COUNT, GCOLL_UINT64, root, world);
	if (!rc)
		check_bcast(root, round);
	return rc;
}

/* All see the same, whoever dies: which round to go on with, the lowest that any has not done. */
static int agree_on(int round, int rc)
{
	uint64_t done = rc ? 0 : 1;
	int failed;

	if (happens("agree", round))
		die();
	failed = rc != 0;
	rc = gcoll_comm_agree(world, &done);
	if (rc && !failed) /* it needed nothing from the dead, and hears of it here */
		printf("agreed: %s\n", gcoll_last_error());
	expect(!rc || rc == GCOLL_ERR_PEER || rc == GCOLL_ERR_ABORTED, "what agreeing returns");
	if (rc == GCOLL_ERR_ABORTED) {
		printf("left out: %s\n", gcoll_last_error());
		exit(0);
	}
	return done && !rc;
}

static void check_refusals(gcoll_comm *old)
{
	uint64_t flags = 5;
	gcoll_comm *other = old;

	expect(gcoll_comm_shrink(old, &other) == GCOLL_ERR_INVAL && other == old,
		"the old world is not to be shrunk again");
	expect(gcoll_comm_agree(old, &flags) == GCOLL_ERR_INVAL && flags == 5,
		"nobody agrees on the old world");
	expect(gcoll_barrier(old) != 0, "the old world is dead");
	expect(gcoll_comm_shrink(world, &other) == GCOLL_ERR_INVAL,
		"a world without failure is not to be shrunk");
}

/* Ranks keep their order; who is not in the new world has no number there. */
static void check_numbers(gcoll_comm *old, gcoll_comm *old_half, int failed)
{
	int r, now, n = 0, half, last = gcoll_size(old) - 1;

	for (r = 0; r <= last; r++) {
		now = gcoll_comm_translate(old, r, world);
		expect(now == -1 || now == n, "a number in the new world");
		n += now >= 0;
		expect(now < 0 || gcoll_comm_translate(world, now, old) == r, "and back");
		half = gcoll_comm_translate(old, r, old_half);
		expect(half < 0 || gcoll_comm_translate(old_half, half, world) == now,
			"by way of a part");
	}
	expect(n == gcoll_size(world), "all of the new world were in the old one");
	expect(gcoll_comm_translate(old, gcoll_rank(old), world) == gcoll_rank(world), "own");
	expect(gcoll_comm_translate(old, -1, world) == -1 &&
			gcoll_comm_translate(old, last + 1, world) == -1,
		"no rank");
	expect(gcoll_failed_rank(old) == failed, "as before");
	/* Of several that die, the next may have been heard of. */
	expect(nargs > 1 || gcoll_failed_rank(world) == -1, "nothing has failed");
	printf("failed: rank %d, which is %d now\n", failed,
		gcoll_comm_translate(old, failed, world));
}

/* The descriptor goes with its world. */
static void check_descriptors(gcoll_comm *old, int set, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};
	int now = gcoll_comm_fd(world);

	if (set < 0)
		return;
	expect(now >= 0 && gcoll_comm_fd(old) < 0 && *gcoll_last_error(), "one has a descriptor");
	expect(epoll_ctl(set, EPOLL_CTL_MOD, now, &e) < 0 && errno == ENOENT, "it is another one");
	expect(now == fd || fcntl(fd, F_GETFD) < 0, "the old one is closed");
	expect(!epoll_ctl(set, EPOLL_CTL_ADD, now, &e), "it can be watched");
	close(set);
}

static void shrink(int round, gcoll_comm *half)
{
	struct epoll_event e = {.events = EPOLLIN};
	int rc, fd = gcoll_comm_fd(world), failed = gcoll_failed_rank(world);
	int set = fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
	gcoll_comm *old = world;

	if (set >= 0)
		expect(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), "watched");

	if (happens("shrinkless", round))
		die();
	if (happens("late", round))
		gci_sleep_ns(60 * GCI_NS_PER_S);
	if (happens("leave", round)) {
		gcoll_finalize(world);
		printf("left\n");
		exit(0);
	}
	rc = gcoll_comm_shrink(world, &world);
	if (rc == GCOLL_ERR_ABORTED) {
		printf("left out: %s\n", gcoll_last_error());
		gcoll_finalize(world);
		exit(0);
	}
	must(rc, "shrink");
	epochs++;
	check_descriptors(old, set, fd);
	check_numbers(old, half, failed);
	if (happens("newborn", round))
		die();
	if (epochs == 2 && !is_said("newborn")) /* nothing has failed yet */
		check_refusals(old);
}

/* What every operation is for: a sub-communicator in each epoch, and its own failure's words. */
static int make_half(gcoll_comm **half)
{
	int rc = gcoll_comm_split(world, gcoll_rank(world) % 2, 0, half);
	uint64_t flags = 0;

	if (rc)
		return rc;
	expect(gcoll_comm_agree(*half, &flags) == GCOLL_ERR_INVAL, "agreeing is for worlds");
	return gcoll_barrier(*half);
}

int main(int argc, char **argv)
{
	struct gcoll_options options = {0};
	gcoll_comm *half = NULL;
	int round = 0, rc;

	options.progress_thread = argc > 1 && !strcmp(argv[1], "thread");
	args = argv + 1;
	nargs = argc - 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	must(gcoll_init_options(&world, &options), "init");
	job_rank = gcoll_rank(world);
	must(gcoll_comm_set(world, "order", "fixed"), "order");
	must(gcoll_comm_set(world, "warm", "off"), "warm");
	while (round < ROUNDS) {
		rc = half ? 0 : make_half(&half);
		if (!rc)
			rc = one_round(round);
		if (rc)
			printf("round %d: %s\n", round, gcoll_last_error());
		if (agree_on(round, rc)) {
			round++;
			if (is_said("endless") && !job_rank)
				printf("round %d\n", round);
			if (is_said("endless") && round == ROUNDS)
				round = 4;
			continue;
		}
		shrink(round, half);
		half = NULL;
	}
	expect(world->fixed_order && world->engine->settings.warm == GCI_WARM_OFF,
		"the settings are those of the first world");
	printf("done: rank %d of %d in epoch %d\n", gcoll_rank(world), gcoll_size(world), epochs);
	gcoll_finalize(world);
	return 0;
}
