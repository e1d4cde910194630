/* SPDX-License-Identifier: MIT
 * A rank of a real job over TCP: every operation, blocking and not, with every algorithm, checked.
 * Run by gridcoll-run; the exit status tells. With an argument it misbehaves:
 *	mismatch	rank 1 calls another operation
 *	abort		rank 1 aborts while the others wait
 *	vanish		rank 1 exits in mid-job
 *	sizes		rank 1 expects a shorter message than rank 0 sends
 *	leave		rank 1 leaves while others call an operation
 *	leave-send	rank 1 leaves while others send to it
 *	leave-recv	rank 1 leaves while others receive from it, as many as it has sent and
 *			one more
 *	forget		all leave with a message asked for that nobody sends: no failure
 * With "owe" rank 0 leaves while messages of a bcast wait for their time: all get it.
 * With "choose" all say how a bcast of 64 KiB runs, and run it. */
#include "tests/comm/job.h"
#include "comm/op.h"
#include "tests/comm/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT JOB_COUNT

static uint32_t buf[COUNT], in[COUNT];

static void one_bcast(const char *name, int root)
{
	uint32_t i, bad = 0;

	for (i = 0; i < COUNT; i++)
		buf[i] = gcoll_rank(world) == root ? i ^ (uint32_t)root : 0;
	must(gcoll_bcast(buf, COUNT, GCOLL_UINT32, root, world), name);
	for (i = 0; i < COUNT; i++)
		bad |= buf[i] ^ i ^ (uint32_t)root;
	expect(!bad, name);
}

static void one_allreduce(const char *name)
{
	uint32_t i, bad = 0, n = (uint32_t)gcoll_size(world);

	for (i = 0; i < COUNT; i++)
		in[i] = i + (uint32_t)gcoll_rank(world);
	must(gcoll_allreduce(in, buf, COUNT, GCOLL_UINT32, GCOLL_SUM, world), name);
	for (i = 0; i < COUNT; i++)
		bad |= buf[i] ^ (n * i + n * (n - 1) / 2);
	expect(!bad, name);
}

static uint32_t element(int from, int to, uint32_t i)
{
	return (uint32_t)(from * 131 + to * 17) + i * 2654435761u;
}

/* Blocks of about COUNT / size elements, by every kind that has them. */
static void one_block_kind(enum gci_kind kind, const char *name)
{
	int n = gcoll_size(world), me = gcoll_rank(world), root = n / 2, b;
	uint32_t len = COUNT / (uint32_t)n, i, bad = 0, sum;
	int rc = 0;

	for (b = 0; b < n; b++)
		for (i = 0; i < len; i++)
			in[(uint32_t)b * len + i] = element(me, b, i);
	memset(buf, 0, sizeof(buf));
	if (kind == GCI_SCATTER)
		rc = gcoll_scatter(in, buf, len, GCOLL_UINT32, root, world);
	else if (kind == GCI_GATHER)
		rc = gcoll_gather(in, buf, len, GCOLL_UINT32, root, world);
	else if (kind == GCI_ALLGATHER)
		rc = gcoll_allgather(in, buf, len, GCOLL_UINT32, world);
	else if (kind == GCI_ALLTOALL)
		rc = gcoll_alltoall(in, buf, len, GCOLL_UINT32, world);
	else
		rc = gcoll_reduce_scatter(in, buf, len, GCOLL_UINT32, GCOLL_SUM, world);
	must(rc, name);
	for (b = 0; b < n; b++)
		for (i = 0; i < len; i++) {
			const uint32_t *block = buf + (uint32_t)b * len;

			if (kind == GCI_SCATTER && b == 0)
				bad |= block[i] ^ element(root, me, i);
			if (kind == GCI_ALLGATHER || (kind == GCI_GATHER && me == root))
				bad |= block[i] ^ element(b, 0, i);
			if (kind == GCI_ALLTOALL)
				bad |= block[i] ^ element(b, me, i);
		}
	for (i = 0; i < len && kind == GCI_REDUCE_SCATTER; i++) {
		for (sum = 0, b = 0; b < n; b++)
			sum += element(b, me, i);
		bad |= buf[i] ^ sum;
	}
	expect(!bad, name);
}

static void one_reduce(const char *name)
{
	uint32_t i, bad = 0, n = (uint32_t)gcoll_size(world);

	for (i = 0; i < COUNT; i++)
		in[i] = i + (uint32_t)gcoll_rank(world);
	must(gcoll_reduce(in, buf, COUNT, GCOLL_UINT32, GCOLL_SUM, (int)n - 1, world), name);
	for (i = 0; i < COUNT && gcoll_rank(world) == (int)n - 1; i++)
		bad |= buf[i] ^ (n * i + n * (n - 1) / 2);
	expect(!bad, name);
}

/* Odd and even ranks on their own, a message around each ring, and blocks of different lengths. */
static void parts(void)
{
	int me = gcoll_rank(world), n, i;
	uint64_t counts[64], sends[64], sum = 0;
	uint32_t token = 1000, got = 0;
	gcoll_comm *part, *twin;
	gcoll_req *req;

	must(gcoll_comm_split(world, me % 2, -me, &part), "split");
	must(gcoll_comm_dup(part, &twin), "dup");
	n = gcoll_size(part);
	me = gcoll_rank(part);
	must(gcoll_irecv(&got, 1, GCOLL_UINT32, (me + n - 1) % n, 7, twin, &req), "irecv");
	token += (uint32_t)me;
	must(gcoll_send(&token, 1, GCOLL_UINT32, (me + 1) % n, 7, twin), "send");
	must(gcoll_wait(&req), "recv");
	expect(got == 1000 + (uint32_t)((me + n - 1) % n), "ring");
	for (i = 0; i < n; i++) {
		sends[i] = (uint64_t)(me + 2 * i);
		counts[i] = (uint64_t)(i + 2 * me);
		sum += counts[i];
	}
	memset(in, 0x5a, sizeof(in));
	must(gcoll_alltoallv(in, sends, NULL, buf, counts, NULL, GCOLL_UINT32, part), "alltoallv");
	expect(!sum || buf[sum - 1] == 0x5a5a5a5a, "alltoallv");
	must(gcoll_comm_free(&part), "free");
	must(gcoll_barrier(twin), "barrier of a duplicate");
	must(gcoll_comm_free(&twin), "free");
}

static void outstanding(void)
{
	gcoll_req *req[3];
	int i, done, left = 3;

	buf[0] = buf[1] = (uint32_t)gcoll_rank(world);
	must(gcoll_ibcast(&buf[0], 1, GCOLL_UINT32, gcoll_size(world) - 1, world, &req[0]),
		"ibcast");
	must(gcoll_iallreduce(GCOLL_IN_PLACE, &buf[1], 1, GCOLL_UINT32, GCOLL_MAX, world, &req[1]),
		"iallreduce");
	must(gcoll_ibarrier(world, &req[2]), "ibarrier");
	while (left)
		for (i = 0; i < 3; i++) {
			if (!req[i])
				continue;
			must(gcoll_test(&req[i], &done), "test");
			left -= done;
		}
	expect(buf[0] == (uint32_t)gcoll_size(world) - 1 && buf[0] == buf[1], "outstanding");
}

/* Rank 0 has no connection to rank 1 before; the others have. */
static int wait_for_one_who_left(int send)
{
	gcoll_req *req;
	int rc = 0;

	if (gcoll_rank(world) == 1) {
		if (!send)
			must(gcoll_send(in, 1, GCOLL_UINT32, 0, 7, world), "send");
		/* Begun before it leaves, ended while it waits for the others. */
		must(gcoll_isend(in, COUNT, GCOLL_UINT32, 2, 7, world, &req), "isend");
		gcoll_finalize(world);
		return 1;
	}
	if (gcoll_rank(world) == 2)
		rc = gcoll_recv(buf, COUNT, GCOLL_UINT32, 1, 7, world);
	if (gcoll_rank(world) == 0 && !send)
		rc = gcoll_recv(buf, 1, GCOLL_UINT32, 1, 7, world);
	must(rc, "what was sent");
	if (send)
		rc = gcoll_send(in, COUNT, GCOLL_UINT32, 1, 7, world);
	else
		rc = gcoll_recv(buf, 1, GCOLL_UINT32, 1, 7, world);
	printf("%s: %s\n", gcoll_strerror(rc), gcoll_last_error());
	gcoll_finalize(world);
	return rc ? 1 : 0;
}

static int owe(void)
{
	int rank = gcoll_rank(world);
	uint32_t i, bad = 0;
	gcoll_req *req;

	must(gcoll_comm_set(world, "bcast", "packed"), "set");
	for (i = 0; i < COUNT; i++)
		buf[i] = rank ? 0 : i;
	must(gcoll_ibcast(buf, COUNT, GCOLL_UINT32, 0, world, &req), "ibcast");
	if (rank)
		must(gcoll_wait(&req), "wait");
	else
		expect(!gci_list_empty(&world->engine->held.sends), "waiting messages");
	for (i = 0; i < COUNT; i++)
		bad |= buf[i] ^ i;
	expect(!bad, "bcast");
	gcoll_finalize(world);
	return 0;
}

static int choose(void)
{
	struct gci_coll coll = {
		.kind = GCI_BCAST, .topo = &world->topo, .count = 16384, .esize = 4};
	char how[GCI_CANDIDATE_NBYTES];
	struct gci_decision d;
	const char *why;

	expect(!gci_op_choose(world, &coll, 0, &d, &why), "choice");
	gci_candidate_print(&d.how, how);
	printf("%s by %s, %llu ns\n", how, gci_decided_by_name(d.by), (unsigned long long)d.ns);
	one_bcast("chosen", 0);
	gcoll_finalize(world);
	return 0;
}

static int misbehave(const char *how)
{
	gcoll_req *req;
	int rc;

	if (!strcmp(how, "forget")) {
		must(gcoll_irecv(buf, 1, GCOLL_UINT32, (gcoll_rank(world) + 1) % gcoll_size(world),
			     7, world, &req),
			"irecv");
		gcoll_finalize(world);
		return 0;
	}
	if (gcoll_rank(world) == 1 && !strcmp(how, "vanish"))
		_exit(7);
	if (gcoll_rank(world) == 1 && !strcmp(how, "leave")) {
		gcoll_finalize(world);
		return 1;
	}
	if (!strncmp(how, "leave-", 6))
		return wait_for_one_who_left(!strcmp(how, "leave-send"));
	if (gcoll_rank(world) == 1 && !strcmp(how, "abort"))
		gcoll_comm_abort(world, "had enough");
	if (gcoll_rank(world) < 2 && !strcmp(how, "sizes"))
		rc = gcoll_rank(world) ? gcoll_recv(buf, 20, GCOLL_BYTE, 0, 3, world)
				       : gcoll_send(in, sizeof(in), GCOLL_BYTE, 1, 3, world);
	else if (gcoll_rank(world) == 1 && !strcmp(how, "mismatch"))
		rc = gcoll_barrier(world);
	else
		rc = gcoll_allreduce(in, buf, COUNT, GCOLL_UINT32, GCOLL_SUM, world);
	printf("%s: %s\n", gcoll_strerror(rc), gcoll_last_error());
	gcoll_finalize(world);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct gci_algorithm *a;

	must(gcoll_init(&world), "init");
	if (argc > 1)
		return !strcmp(argv[1], "choose") ? choose()
		       : !strcmp(argv[1], "owe")  ? owe()
						  : misbehave(argv[1]);
	gci_each_algorithm (a) {
		must(gcoll_comm_set(world, gci_kind_name(a->kind), a->name), a->name);
		if (a->max_ranks && gcoll_size(world) > a->max_ranks)
			continue;
		if (a->kind == GCI_BCAST) {
			one_bcast(a->name, 0);
			one_bcast(a->name, gcoll_size(world) - 1);
		} else if (a->kind == GCI_ALLREDUCE) {
			one_allreduce(a->name);
		} else if (a->kind == GCI_REDUCE) {
			one_reduce(a->name);
		} else if (a->kind == GCI_BARRIER) {
			must(gcoll_barrier(world), a->name);
		} else {
			one_block_kind(a->kind, a->name);
		}
	}
	gci_each_algorithm (a)
		must(gcoll_comm_set(world, gci_kind_name(a->kind), "auto"), "auto");
	parts();
	outstanding();
	gcoll_finalize(world);
	/* One world per process. */
	return gcoll_init(&world) != GCOLL_ERR_INVAL || !strstr(gcoll_last_error(), "before");
}
