/* SPDX-License-Identifier: MIT
 * SENDs that wait until they are due, and what ends the wait. */
#include "comm/run.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/grid/topo.h"
#include "testing/network.h"
#include "tests/test.h"
#include "transport/endpoint.h"

/* What is planned with is what the transport counts. */
_Static_assert(GCI_EAGER_MESSAGE == GCI_EP_MESSAGE_NBYTES, "allowance of a message");

#define HOUR  (3600 * GCI_NS_PER_S)
#define COUNT 64
#define NDUE  4 /* messages of rank 0 that are not due; one more goes at once */

struct side {
	struct gci_tp *tp;
	struct gci_sched sched;
	struct gci_run run;
	char buf[(NDUE + 1) * COUNT];
	int ended, status;
};

struct pair {
	struct gci_mem_net *net;
	struct side side[2];
};

static void link_of(void *user, int peer, struct gci_tp_link *out)
{
	(void)user;
	(void)peer;
	*out = (struct gci_tp_link){.eager_nbytes = 1 << 20};
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	(void)user;
	(void)f;
}

static void on_done(struct gci_run *run, int status)
{
	struct side *s = run->user;

	s->ended++;
	s->status = status;
}

/* Due after 4, 2, 3 and 1 hours; the last message at once. */
static void build(struct side *s, int rank)
{
	static const uint64_t due[NDUE + 1] = {4 * HOUR, 2 * HOUR, 3 * HOUR, HOUR, 0};
	struct gci_builder b;
	uint32_t i;

	gci_builder_init(&b, rank, 2);
	b.in_len = b.out_len = sizeof(s->buf);
	for (i = 0; i <= NDUE; i++)
		if (rank) {
			gci_recv(&b, 0, i, gci_slice(GCI_OUT, i * COUNT, COUNT));
		} else {
			gci_send(&b, 1, i, gci_slice(GCI_IN, i * COUNT, COUNT));
			gci_not_before(&b, due[i]);
		}
	assert_int_equal(gci_builder_end(&b, &s->sched), 0);
}

static void settle(struct pair *p)
{
	while (gci_mem_net_step(p->net))
		;
}

static void open_pair(struct pair *p, struct gci_held *held)
{
	static const struct gci_mem_faults none = {0};
	int r, i;

	memset(p, 0, sizeof(*p));
	assert_int_equal(gci_mem_net_create(&p->net, 2, &none, 1), 0);
	for (r = 0; r < 2; r++) {
		struct side *s = &p->side[r];
		struct gci_tp_config config = {
			.rank = r, .size = 2, .link = link_of, .on_failure = on_failure};

		assert_int_equal(gci_mem_create(&s->tp, p->net, &config), 0);
		for (i = 0; i < (int)sizeof(s->buf) && !r; i++)
			s->buf[i] = (char)(1 + i / COUNT);
		build(s, r);
		s->run = (struct gci_run){.sched = &s->sched,
			.tp = s->tp,
			.esize = 1,
			.buf = {s->buf, s->buf},
			.held = held,
			.began_ns = gci_now_ns(),
			.done = on_done,
			.user = s};
		assert_int_equal(gci_run_start(&s->run), 0);
	}
	settle(p);
}

static void close_pair(struct pair *p)
{
	int r;

	for (r = 0; r < 2; r++)
		gci_tp_free(p->side[r].tp);
	for (r = 0; r < 2; r++) {
		gci_run_free(&p->side[r].run);
		gci_sched_free(&p->side[r].sched);
	}
	gci_mem_net_free(p->net);
}

/* As bits: the messages that have come. */
static unsigned came(const struct pair *p)
{
	unsigned i, bits = 0;

	for (i = 0; i <= NDUE; i++)
		bits |= (unsigned)(p->side[1].buf[i * COUNT] == (char)(1 + i)) << i;
	return bits;
}

static void each_goes_when_it_is_due(void **state)
{
	static const unsigned after[] = {0x10, 0x18, 0x1a, 0x1e, 0x1f};
	struct gci_held held;
	struct pair p;
	uint64_t began;
	unsigned h;

	(void)state;
	gci_held_init(&held);
	open_pair(&p, &held);
	began = p.side[0].run.began_ns;
	for (h = 0; h < NDUE; h++) {
		assert_int_equal(came(&p), after[h]);
		assert_int_equal(p.side[0].ended + p.side[1].ended, 0);
		assert_true(gci_held_due_ns(&held) == began + (h + 1) * HOUR);
		gci_held_release(&held, gci_held_due_ns(&held) - 1, 0);
		settle(&p);
		assert_int_equal(came(&p), after[h]);
		gci_held_release(&held, gci_held_due_ns(&held), 0);
		settle(&p);
	}
	assert_int_equal(came(&p), after[NDUE]);
	assert_true(gci_held_due_ns(&held) == GCI_NEVER);
	assert_int_equal(p.side[0].ended, 1);
	assert_int_equal(p.side[1].ended, 1);
	assert_int_equal(p.side[0].status | p.side[1].status, 0);
	close_pair(&p);
}

/* A run that is freed before its end takes its own along; then all others go at once. */
static void two_runs_on_one_list(void **state)
{
	struct gci_held held;
	struct pair p, other;

	(void)state;
	gci_held_init(&held);
	open_pair(&p, &held);
	open_pair(&other, &held);
	close_pair(&other);
	assert_true(gci_held_due_ns(&held) == p.side[0].run.began_ns + HOUR);
	gci_held_release(&held, 0, 1);
	settle(&p);
	assert_int_equal(came(&p), 0x1f);
	assert_int_equal(p.side[0].ended, 1);
	close_pair(&p);
}

/* Those that are due go one after the other, as the NIC takes them. */
static void no_faster_than_the_nic(void **state)
{
	static const unsigned after[] = {0x10, 0x18, 0x1a, 0x1e, 0x1f};
	const uint64_t each_ns = (uint64_t)COUNT * 8 * GCI_NS_PER_S;
	struct gci_held held;
	struct pair p;
	uint64_t now;
	unsigned h;

	(void)state;
	gci_held_init(&held);
	open_pair(&p, &held);
	p.side[0].run.nic_bps = 1;
	now = p.side[0].run.began_ns + 5 * HOUR;
	for (h = 0; h < NDUE; h++) {
		assert_int_equal(came(&p), after[h]);
		gci_held_release(&held, now, 0);
		settle(&p);
		assert_int_equal(came(&p), after[h + 1]);
		if (h + 1 < NDUE) {
			gci_held_release(&held, now + each_ns / 2, 0);
			settle(&p);
			assert_int_equal(came(&p), after[h + 1]);
		}
		now += each_ns;
	}
	assert_int_equal(p.side[0].ended, 1);
	close_pair(&p);
}

/* What all are released for, such as a failure, leaves the NIC to those that come later. */
static void what_goes_at_will_is_not_counted(void **state)
{
	struct gci_held held;
	struct pair p, later;
	uint64_t due;

	(void)state;
	gci_held_init(&held);
	open_pair(&p, &held);
	p.side[0].run.nic_bps = 1;
	gci_held_release(&held, gci_now_ns(), 1);
	settle(&p);
	assert_int_equal(came(&p), 0x1f);
	open_pair(&later, &held);
	due = gci_held_due_ns(&held);
	assert_true(due == later.side[0].run.began_ns + HOUR);
	close_pair(&later);
	close_pair(&p);
}

static void without_a_list_nothing_waits(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, NULL);
	assert_int_equal(came(&p), 0x1f);
	assert_int_equal(p.side[0].ended, 1);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_goes_when_it_is_due),
		cmocka_unit_test(two_runs_on_one_list),
		cmocka_unit_test(no_faster_than_the_nic),
		cmocka_unit_test(what_goes_at_will_is_not_counted),
		cmocka_unit_test(without_a_list_nothing_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
