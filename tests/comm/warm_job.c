/* SPDX-License-Identifier: MIT
 * A rank whose connections to another cluster are warmed up while the program does something else,
 * in which the library is not called. Run by gridcoll-run on two clusters; the status tells.
 *	warm_job		from the first operation on
 *	warm_job now		from gcoll_init on (with GRIDCOLL_WARM=now)
 *	warm_job off		not at all
 *	warm_job bulk		bulk data comes first, and ends it
 *	warm_job yield		a long operation is under way: none but whom it sends to */
#include "base/clock.h"
#include "base/mem.h"
#include "comm/progress.h"
#include "flow/warm.h"
#include "tests/comm/rank.h"
#include "transport/frame.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (60 * GCI_NS_PER_S)
#define ALONE_NS    (5 * GCI_NS_PER_S) /* on a machine so slow that the thread's time is over */
#define COUNT       (1u << 20)

static uint64_t padding(int peer)
{
	struct gci_tp_stats s;

	gci_tp_stats(world->engine->tp, peer, &s);
	return s.tx_pad_nbytes;
}

/* All that was planned has gone, and a frame too much per stream at most. */
static int is_warm(const uint64_t *plan)
{
	int i;

	for (i = 0; i < gcoll_size(world); i++) {
		uint64_t nbytes = padding(i);

		if (nbytes < plan[i] * GCI_DEFAULT_STREAMS)
			return 0;
		expect(nbytes <= (plan[i] + GCI_FRAME_PAD_NBYTES) * GCI_DEFAULT_STREAMS,
			"more padding than planned");
	}
	return 1;
}

static void await_warmth(const uint64_t *plan)
{
	uint64_t begin = gci_now_ns(), end = begin + PATIENCE_NS;
	int warm;

	do {
		if (gci_now_ns() - begin > ALONE_NS)
			must(gcoll_progress(world, 0), "progress");
		gci_sleep_ns(10 * GCI_NS_PER_MS);
		gci_enter(world->engine); /* only to look */
		warm = is_warm(plan);
		gci_leave(world->engine);
	} while (!warm && gci_now_ns() < end);
	expect(warm, "still cold");
}

static void one_bcast(unsigned char *buf)
{
	unsigned i, bad = 0;

	for (i = 0; i < COUNT; i++)
		buf[i] = gcoll_rank(world) ? 0 : (unsigned char)(i * 7);
	must(gcoll_bcast(buf, COUNT, GCOLL_BYTE, 0, world), "bcast");
	for (i = 0; i < COUNT; i++)
		bad |= buf[i] ^ (unsigned char)(i * 7);
	expect(!bad, "bcast");
}

/* Nobody of the other cluster sends back in a bcast from here, however long that waits for its data. */
static void bcast_of_a_late_root(unsigned char *buf)
{
	int r, half = gcoll_size(world) / 2, back = gcoll_rank(world) >= half;
	gcoll_req *req;

	if (!gcoll_rank(world))
		gci_sleep_ns(500 * GCI_NS_PER_MS);
	must(gcoll_ibcast(buf, COUNT, GCOLL_BYTE, 0, world, &req), "ibcast");
	for (r = 0; r < 30 && gcoll_rank(world); r++) {
		must(gcoll_progress(world, 0), "progress");
		gci_sleep_ns(10 * GCI_NS_PER_MS);
	}
	gci_enter(world->engine);
	for (r = 0; r < half; r++)
		expect(!back || !padding(r), "padding in the way of a bcast");
	gci_leave(world->engine);
	must(gcoll_wait(&req), "wait");
}

static uint64_t all_padding(void)
{
	uint64_t sum = 0;
	int i;

	gci_enter(world->engine);
	for (i = 0; i < gcoll_size(world); i++)
		sum += padding(i);
	gci_leave(world->engine);
	return sum;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	unsigned char *buf = malloc(COUNT);
	uint64_t *plan, before;

	must(gcoll_init(&world), "init");
	plan = gci_calloc((size_t)gcoll_size(world), sizeof(*plan));
	if (!buf || !plan || (strcmp(how, "now") != 0 && gci_warm_plan(world, plan, NULL)))
		gcoll_comm_abort(world, "out of memory");
	if (!strcmp(how, "now")) {
		expect(gcoll_comm_set(world, "streams", "2") == GCOLL_ERR_INVAL, "too late");
		gci_enter(world->engine);
		expect(!gci_warm_plan(world, plan, NULL), "no plan");
		gci_leave(world->engine);
	} else if (!strcmp(how, "off")) {
		must(gcoll_comm_set(world, "warm", "off"), "off");
		memset(plan, 0, (size_t)gcoll_size(world) * sizeof(*plan));
	}
	if (!strcmp(how, "bulk"))
		one_bcast(buf);
	else if (!strcmp(how, "yield"))
		bcast_of_a_late_root(buf);
	else if (strcmp(how, "now") != 0)
		must(gcoll_barrier(world), "barrier");
	if (strcmp(how, "bulk") != 0 && strcmp(how, "yield") != 0)
		await_warmth(plan);
	one_bcast(buf);
	before = all_padding();
	must(gcoll_barrier(world), "barrier");
	gci_sleep_ns(100 * GCI_NS_PER_MS);
	one_bcast(buf);
	expect(all_padding() == before, "padding behind bulk data");
	gcoll_finalize(world);
	gci_free(plan);
	free(buf);
	return 0;
}
