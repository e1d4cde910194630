/* SPDX-License-Identifier: MIT
 * A rank of a real job over TCP: every operation, blocking and not, with every algorithm, checked.
 * Run by gridcoll-run; the exit status tells. With an argument it misbehaves:
 *	mismatch	rank 1 calls another operation
 *	abort		rank 1 aborts while the others wait
 *	vanish		rank 1 exits in mid-job
 *	leave		rank 1 leaves while others call an operation */
#include "collectives/coll.h"

#include <gridcoll/gridcoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT (300 * 1000 + 7)

static gcoll_comm *world;
static uint32_t buf[COUNT], in[COUNT];

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", gcoll_rank(world), what, gcoll_last_error());
	exit(1);
}

static void expect(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rank %d: %s: wrong result\n", gcoll_rank(world), what);
	exit(1);
}

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

static int misbehave(const char *how)
{
	int rc;

	if (gcoll_rank(world) == 1 && !strcmp(how, "vanish"))
		_exit(7);
	if (gcoll_rank(world) == 1 && !strcmp(how, "leave")) {
		gcoll_finalize(world);
		return 1;
	}
	if (gcoll_rank(world) == 1 && !strcmp(how, "abort"))
		gcoll_abort(world, "had enough");
	if (gcoll_rank(world) == 1 && !strcmp(how, "mismatch"))
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
		return misbehave(argv[1]);
	gci_each_algorithm (a) {
		must(gcoll_comm_set(world, gci_kind_name(a->kind), a->name), a->name);
		if (a->kind == GCI_BCAST) {
			one_bcast(a->name, 0);
			one_bcast(a->name, gcoll_size(world) - 1);
		} else if (a->kind == GCI_ALLREDUCE) {
			one_allreduce(a->name);
		} else if (a->kind == GCI_BARRIER) {
			must(gcoll_barrier(world), a->name);
		}
	}
	outstanding();
	gcoll_finalize(world);
	return 0;
}
