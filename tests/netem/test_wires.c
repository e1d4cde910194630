/* SPDX-License-Identifier: MIT
 * Each thing that a wire does, against its own definition. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "netem/wires.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MBIT UINT64_C(1000000)
#define US   GCI_NS_PER_US
#define MS   GCI_NS_PER_MS

static struct gci_wires *w;

static void begin(const struct gci_wire_model *m)
{
	w = gci_wires_new(1, 7);
	assert_non_null(w);
	gci_wires_set(w, 0, m);
	assert_int_equal(gci_wires_path(w, (const int[]){0}, 1), 0);
}

static const struct gci_wire_counts *counts(void)
{
	return gci_wires_counts(w, 0);
}

/* Segments of 1514 bytes on the wire, the last one of which is as long. */
static void put_from(uint64_t sender, uint64_t cookie, uint16_t nsegs, uint64_t now)
{
	struct gci_wire_packet p = {cookie, cookie, sender, 1514, 1514, nsegs};

	assert_int_equal(gci_wires_put(w, 0, &p, now), 0);
}

static void put(uint64_t cookie, uint16_t nsegs, uint64_t now)
{
	put_from(0, cookie, nsegs, now);
}

static int take(uint64_t now, struct gci_wire_out *out)
{
	return gci_wires_take(w, now, 0, out);
}

/* The next that leaves must be this, and not before `ns`. */
static void leaves(uint64_t cookie, uint16_t first, uint16_t count, uint64_t ns)
{
	struct gci_wire_out out;

	assert_false(take(ns - 1, &out));
	assert_true(gci_wires_next(w) <= ns);
	assert_true(take(ns, &out));
	assert_int_equal(out.cookie, cookie);
	assert_int_equal(out.due_ns, ns);
	assert_int_equal(out.first, first);
	assert_int_equal(out.count, count);
}

/* All of a packet takes its time in the serializer, then the way; the next one waits for it. */
static void rate_and_delay(void **state)
{
	struct gci_wire_out out;
	uint64_t one = 1514 * 8 * US / 100; /* at 100 Mbit/s */

	(void)state;
	begin(&(struct gci_wire_model){.rate_bps = 100 * MBIT, .delay_ns = 10 * MS});
	put(1, 1, 5 * MS);
	put(2, 40, 5 * MS);
	put(3, 1, 7 * MS);
	leaves(1, 0, 1, 15 * MS + one);
	leaves(2, 0, 40, 15 * MS + 41 * one);
	leaves(3, 0, 1, 15 * MS + 42 * one);
	assert_false(take(GCI_NEVER - 1, &out));
	assert_int_equal(gci_wires_next(w), GCI_NEVER);
	assert_int_equal(counts()->passed, 42);
	assert_int_equal(counts()->nbytes, 42 * 1514);
	gci_wires_free(w);
}

/* Nobody has to look at a wire often: what happens within is done in its order whenever one does. */
static void late_looks_change_nothing(void **state)
{
	struct gci_wire_out out;
	int i;

	(void)state;
	begin(&(struct gci_wire_model){.rate_bps = 8 * MBIT, .delay_ns = MS, .queue_nbytes = 3028});
	for (i = 0; i < 4; i++)
		put((uint64_t)i + 1, 1,
			0);   /* one in the serializer, two wait, the fourth is lost */
	put(5, 1, 1600 * US); /* by then the first has gone: there is room */
	for (i = 1; i <= 5; i++) {
		assert_true(take(GCI_NS_PER_S, &out));
		assert_int_equal(out.cookie, i == 4 ? 5 : i == 5 ? 4 : i);
		assert_true(out.last);
		assert_int_equal(out.count, i < 5);
		if (out.count)
			assert_int_equal(out.due_ns, MS + (uint64_t)(i < 4 ? i : 4) * 1514 * US);
	}
	assert_int_equal(counts()->overflowed, 1);
	gci_wires_free(w);
}

/* A queue takes as many segments as have room. */
static void queues_cut_packets(void **state)
{
	uint64_t one = 1514 * 8 * US / 1000;

	(void)state;
	begin(&(struct gci_wire_model){.rate_bps = 1000 * MBIT, .queue_nbytes = 10 * 1514 + 100});
	put(1, 20, MS); /* into the serializer */
	put(2, 20, MS);
	leaves(1, 0, 20, MS + 20 * one);
	leaves(2, 0, 10, MS + 30 * one);
	assert_int_equal(counts()->overflowed, 10);
	assert_int_equal(counts()->queue_most_nbytes, 10 * 1514);
	gci_wires_free(w);
}

/* Two paths share a wire, and one of them goes on over another one. */
static void wires_are_shared(void **state)
{
	struct gci_wire_packet p = {1, 1, 0, 1000, 1000, 1};
	uint64_t one = 80 * US;

	(void)state;
	w = gci_wires_new(2, 1);
	gci_wires_set(w, 0, &(struct gci_wire_model){.rate_bps = 100 * MBIT, .delay_ns = MS});
	gci_wires_set(w, 1, &(struct gci_wire_model){.rate_bps = 100 * MBIT, .delay_ns = 2 * MS});
	assert_int_equal(gci_wires_path(w, (const int[]){0}, 1), 0);
	assert_int_equal(gci_wires_path(w, (const int[]){0, 1}, 2), 1);
	assert_int_equal(gci_wires_put(w, 1, &p, 0), 0);
	p.cookie = 2;
	assert_int_equal(gci_wires_put(w, 0, &p, 0), 0);
	leaves(2, 0, 1, 2 * one + MS);
	leaves(1, 0, 1, 2 * one + 3 * MS);
	gci_wires_free(w);
}

/* Sends `n` packets a microsecond apart; got[i] counts what came of packet i, after their delay. */
struct tally {
	uint64_t came, doubles, corrupt, swaps, gone;
	double sum_ns, least_ns, most_ns;
};

static void send_many(const struct gci_wire_model *m, uint64_t n, uint8_t *got, struct tally *t)
{
	struct gci_wire_out out;
	uint64_t i, sent = 0, highest = 0;

	begin(m);
	memset(t, 0, sizeof(*t));
	t->least_ns = 1e18;
	while (sent < n || gci_wires_next(w) != GCI_NEVER) {
		if (sent < n && sent * US <= gci_wires_next(w)) {
			put(sent, 1, sent * US);
			sent++;
			continue;
		}
		if (!take(gci_wires_next(w), &out))
			continue;
		if (!out.count) {
			t->gone++;
			continue;
		}
		i = out.cookie;
		t->came++;
		t->doubles += got && got[i] == 1;
		t->corrupt += (uint64_t)out.corrupt;
		t->swaps += i < highest;
		highest = i > highest ? i : highest;
		if (got)
			got[i]++;
		t->sum_ns += (double)(out.due_ns - i * US);
		t->least_ns = fmin(t->least_ns, (double)(out.due_ns - i * US));
		t->most_ns = fmax(t->most_ns, (double)(out.due_ns - i * US));
	}
	gci_wires_free(w);
}

/* Within five standard deviations of a binomial distribution. */
static void about(uint64_t got, uint64_t n, double p)
{
	double want = (double)n * p, off = 5 * sqrt(want * (1 - p)) + 1;

	if (fabs((double)got - want) > off)
		fail_msg("%llu of %llu, expected %.0f +- %.0f", (unsigned long long)got,
			(unsigned long long)n, want, off);
}

enum { MANY = 400000 };

static void losses(void **state)
{
	struct gci_wire_model m = {.loss_ppm = 10000, .delay_ns = MS};
	uint8_t *got = gci_calloc(MANY, 1);
	uint64_t i, runs = 0, lost = 0;
	struct tally t;

	(void)state;
	send_many(&m, MANY, got, &t);
	about(t.gone, MANY, 0.01);
	assert_int_equal(t.came + t.gone, MANY);
	/* In bursts: as many over all, five in a row on average. */
	memset(got, 0, MANY);
	m.loss_burst = 5;
	send_many(&m, MANY, got, &t);
	for (i = 0; i < MANY; i++) {
		lost += !got[i];
		runs += !got[i] && (!i || got[i - 1]);
	}
	assert_int_equal(lost, t.gone);
	assert_true(lost > MANY * 0.008 && lost < MANY * 0.012);
	assert_true((double)lost / (double)runs > 4.5 && (double)lost / (double)runs < 5.5);
	gci_free(got);
}

/* Losses take segments out of a packet, not the packet; the rest of it comes in pieces. */
static void losses_cut_packets(void **state)
{
	struct gci_wire_model m = {.loss_ppm = 20000, .delay_ns = MS};
	uint64_t i, sent = 0, came = 0, lasts = 0;
	struct gci_wire_out out;
	int end = 0;

	(void)state;
	begin(&m);
	for (i = 0; i < 5000; i++) {
		put(i, 44, i * 100 * US);
		sent += 44;
		for (end = 0; take(i * 100 * US + MS, &out); end = out.first + out.count) {
			assert_int_equal(out.cookie, i);
			assert_true(!out.count || out.first >= end + (end > 0));
			came += out.count;
			lasts += (uint64_t)out.last;
		}
		assert_int_equal(gci_wires_next(w), GCI_NEVER);
	}
	assert_int_equal(lasts, 5000);
	about(sent - came, sent, 0.02);
	assert_int_equal(counts()->lost, sent - came);
	gci_wires_free(w);
}

static void doubles_and_damage(void **state)
{
	struct gci_wire_model m = {.duplicate_ppm = 20000, .corrupt_ppm = 30000, .delay_ns = MS};
	uint8_t *got = gci_calloc(MANY, 1);
	struct tally t;

	(void)state;
	send_many(&m, MANY, got, &t);
	assert_int_equal(t.came, MANY + t.doubles);
	about(t.doubles, MANY, 0.02);
	about(t.corrupt - (uint64_t)((double)t.corrupt * 0.02 / 1.02), MANY, 0.03);
	assert_int_equal(t.swaps, 0);
	gci_free(got);
}

static void jitter_and_order(void **state)
{
	struct gci_wire_model m = {.delay_ns = 10 * MS, .jitter_ns = 2 * MS};
	struct tally t;

	(void)state;
	send_many(&m, MANY, NULL, &t);
	assert_true(t.least_ns >= 8.0 * MS && t.least_ns < 8.01 * MS);
	assert_true(t.most_ns <= 12.0 * MS && t.most_ns > 11.99 * MS);
	assert_true(fabs(t.sum_ns / MANY - 10.0 * MS) < 0.02 * MS);
	assert_true(t.swaps > MANY / 2);
	/* Some go ahead of those before them. */
	m = (struct gci_wire_model){.delay_ns = 10 * MS, .reorder_ppm = 10000};
	send_many(&m, MANY, NULL, &t);
	assert_true(t.least_ns == 0 && t.most_ns == 10.0 * MS);
	about(t.came - (uint64_t)(t.sum_ns / (10.0 * MS) + 0.5), MANY, 0.01);
}

/* A connection gets no more than its part, others are not held up. */
static void flows_have_limits(void **state)
{
	struct gci_wire_model m = {
		.rate_bps = 1000 * MBIT, .flow_rate_bps = 10 * MBIT, .delay_ns = 20 * MS};
	struct gci_wire_out out;
	uint64_t i, n[2] = {0};

	(void)state;
	begin(&m);
	for (i = 0; i < 1000; i++) {
		struct gci_wire_packet p = {i, i % 2, 0, 1250, 1250, 1};

		assert_int_equal(gci_wires_put(w, 0, &p, i * MS), 0);
		while (take(i * MS, &out))
			n[out.cookie % 2] += out.count;
	}
	/* Each has 1250 bytes every 2 ms: 5 Mbit/s. All of it comes, but what is under way. */
	assert_true(n[0] >= 488 && n[1] >= 488);
	gci_wires_free(w);
	begin(&m);
	memset(n, 0, sizeof(n));
	for (i = 0; i < 4000; i++) {
		struct gci_wire_packet p = {i, 0, 0, 1250, 1250, 1};

		assert_int_equal(gci_wires_put(w, 0, &p, i * 250 * US), 0);
		while (take(i * 250 * US, &out))
			n[0] += out.count;
	}
	/* 40 Mbit/s offered for a second, 10 come: 1000 packets less those under way. */
	assert_true(n[0] > 970 && n[0] < 985);
	assert_true(counts()->overflowed > 2900);
	gci_wires_free(w);
}

/* CoDel lets a queue stand no longer than its target, while one that only drops when full stands for
 * as long as it is deep; bursts that go away by themselves lose nothing. */
static uint64_t standing_ns(const struct gci_wire_model *m, uint64_t *passed)
{
	struct gci_wire_out out;
	uint64_t i, sum = 0, window = 40, flying = 0, sent = 0;

	/* As TCP does: one more for each round, half of them at a loss. */
	begin(m);
	*passed = 0;
	for (i = 0; i < 20 * GCI_NS_PER_S; i += 50 * US) {
		while (flying < window) {
			put(i, 1, i);
			flying++;
			sent++;
		}
		while (take(i, &out)) {
			flying--;
			if (!out.count) {
				window = window / 2 + 2;
				continue;
			}
			if (!(gci_wires_counts(w, 0)->passed % window))
				window++;
			++*passed;
			sum += out.due_ns - out.cookie;
		}
	}
	gci_wires_free(w);
	return sum / *passed;
}

static void codel_keeps_queues_short(void **state)
{
	struct gci_wire_model m = {
		.rate_bps = 20 * MBIT, .delay_ns = 20 * MS, .queue_nbytes = 1000000};
	uint64_t passed[2], before = standing_ns(&m, &passed[0]), after;

	(void)state;
	m.codel_target_ns = 5 * MS;
	m.codel_interval_ns = 100 * MS;
	after = standing_ns(&m, &passed[1]);
	assert_true(before > 100 * MS);
	assert_true(after < 45 * MS);
	assert_true(passed[1] > passed[0] * 9 / 10);
}

/* What came at once though its sender's card takes time for it comes as late as that; a short packet
 * does not overtake it. */
static void as_late_as_it_is_long(void **state)
{
	struct gci_wire_model m = {
		.sender_bps = 12112 * 1000, .delay_ns = 5 * MS}; /* 1 ms a segment */

	(void)state;
	begin(&m);
	put(1, 10, 0);
	put(2, 1, 2 * MS);
	put_from(7, 3, 1, 2 * MS);
	put(4, 1, 30 * MS);
	leaves(1, 0, 10, 15 * MS);
	leaves(3, 0, 1, 15 * MS);
	leaves(2, 0, 1, 16 * MS);
	leaves(4, 0, 1, 36 * MS);
	m.rate_bps = 2 * m.sender_bps; /* half of that is taken by the wire itself */
	gci_wires_set(w, 0, &m);
	put(5, 10, 40 * MS);
	leaves(5, 0, 10, 55 * MS);
	m.rate_bps = m.sender_bps / 2; /* and here all */
	gci_wires_set(w, 0, &m);
	put(6, 10, 60 * MS);
	leaves(6, 0, 10, 85 * MS);
	gci_wires_free(w);
}

/* What is seen late, and so at once, is no burst for the queue: cards take their time for it, each of
 * its own. */
static void seen_late_is_sent_in_time(void **state)
{
	struct gci_wire_model m = {.sender_bps = 12112 * 1000, /* 1 ms a segment */
		.rate_bps = 121120 * 1000,
		.queue_nbytes = 2 * 1514,
		.delay_ns = 5 * MS};
	uint64_t i;

	(void)state;
	begin(&m);
	for (i = 0; i < 20; i++)
		put_from(1, i, 1, 0);
	put_from(2, 20, 1, 0);
	leaves(0, 0, 1, 6 * MS);
	leaves(20, 0, 1, 6 * MS + 100 * US);
	for (i = 1; i < 20; i++)
		leaves(i, 0, 1, (6 + i) * MS);
	assert_int_equal(counts()->overflowed, 0);
	assert_true(counts()->queue_most_nbytes <= 1514);
	gci_wires_free(w);
}

/* Who takes late what was due gets no more at once than a card sends in GCI_WIRES_LATE_NS, and the rest a third
 * faster than a card sends it, until it is late no more; it is still said when that was due. */
static void taken_late_is_no_burst(void **state)
{
	struct gci_wire_model m = {.sender_bps = 121120 * 1000, .delay_ns = 5 * MS};
	struct gci_wire_out out;
	uint64_t i, n = 0, now = 15 * MS, before;

	(void)state;
	begin(&m);
	for (i = 0; i < 100; i++) /* 100 us each: the last is due after 15 ms */
		put_from(1, i, 1, i * 100 * US);
	while (take(now, &out))
		assert_int_equal(out.cookie, n++);
	assert_in_range(n, 13, 15);
	for (before = now; n < 100; n++) {
		now = gci_wires_next(w);
		assert_true(take(now, &out));
		assert_int_equal(out.cookie, n);
		assert_int_equal(out.due_ns, 5 * MS + (n + 1) * 100 * US);
		assert_in_range(now - before, 1, 75 * US);
		assert_false(take(now, &out));
		before = now;
	}
	assert_in_range(before, 15 * MS + 85 * 75 * US, 15 * MS + 87 * 75 * US);
	put_from(1, 100, 1, 100 * MS); /* after a pause nothing has to wait */
	leaves(100, 0, 1, 105 * MS + 100 * US);
	for (i = 200; i < 300; i++)
		put_from(1, i, 1, 200 * MS);
	assert_true(take(GCI_NS_PER_S, &out)); /* the card is gone, what waits for it is not */
	gci_wires_set(w, 0, &(struct gci_wire_model){.delay_ns = 5 * MS});
	for (n = 1; take(GCI_NS_PER_S, &out); n++)
		;
	assert_int_equal(n, 100);
	gci_wires_free(w);
}

/* What a sender's card sent one after the other may be there at once, by ways that take longer and shorter. */
static void ways_do_not_wait_for_each_other(void **state)
{
	struct gci_wire_model m = {
		.sender_bps = 12112 * 1000, .delay_ns = 25 * MS}; /* 1 ms a segment */
	struct gci_wire_packet p = {
		.segment_nbytes = 1514, .last_nbytes = 1514, .sender = 1, .nsegs = 1};
	struct gci_wire_out out;
	uint64_t i;

	(void)state;
	w = gci_wires_new(2, 1);
	gci_wires_set(w, 0, &m);
	m.delay_ns = 5 * MS;
	gci_wires_set(w, 1, &m);
	for (i = 0; i < 2; i++)
		assert_int_equal(gci_wires_path(w, (const int[]){(int)i}, 1), (int)i);
	for (p.cookie = 0; p.cookie < 40; p.cookie++)
		assert_int_equal(gci_wires_put(w, p.cookie >= 20, &p, p.cookie * MS), 0);
	for (i = 0; i < 40; i++) {
		uint64_t now = gci_wires_next(w);

		assert_true(take(now, &out));
		assert_int_equal(now, out.due_ns);
		assert_int_equal(now, (out.cookie + 1) * MS + (out.cookie < 20 ? 25 : 5) * MS);
	}
	gci_wires_free(w);
}

/* Thousands of hosts have a card each, and more share some. */
static void cards_of_many(void **state)
{
	struct gci_wire_model m = {.sender_bps = 12112 * 1000};
	struct gci_wire_out out;
	uint64_t i, n = 0;

	(void)state;
	begin(&m);
	for (i = 0; i < 4096; i++)
		put_from(i << 12, i, 1, 0);
	while (take(MS, &out))
		n++;
	assert_int_equal(n, 4096);
	for (i = 0; i < 8192; i++)
		put_from(i << 13 | 1, i, 1, MS);
	while (take(GCI_NS_PER_S, &out))
		n++;
	while (gci_wires_next(w) != GCI_NEVER)
		n += take(gci_wires_next(w), &out);
	assert_int_equal(n, 3 * 4096);
	gci_wires_free(w);
}

/* A rate that changes counts from the next packet on, or lets all go. */
static void changes(void **state)
{
	struct gci_wire_model m = {.rate_bps = 12112 * 1000, .delay_ns = MS};

	(void)state;
	begin(&m);
	put(1, 1, 0);
	put(2, 1, 0);
	m.rate_bps *= 2;
	gci_wires_set(w, 0, &m);
	leaves(1, 0, 1, 2 * MS);
	leaves(2, 0, 1, 2 * MS + MS / 2);
	put(3, 1, 10 * MS);
	put(4, 1, 10 * MS);
	m.rate_bps = 0;
	gci_wires_set(w, 0, &m);
	leaves(3, 0, 1, 11 * MS + MS / 2);
	leaves(4, 0, 1, 11 * MS + MS / 2);
	gci_wires_free(w);
}

/* Without memory a packet is not taken, or parts of it are lost; nothing is told twice. */
static void without_memory(void **state)
{
	struct gci_wire_model m = {
		.rate_bps = MBIT, .delay_ns = MS, .loss_ppm = 100000, .duplicate_ppm = 100000};
	struct gci_wire_packet p = {1, 1, 0, 1514, 1514, 20};
	struct gci_wire_out out;
	unsigned long n;
	int taken, lasts;

	(void)state;
	for (n = 1; n < 40; n++) {
		begin(&m);
		gci_mem_fail_at(n);
		taken = !gci_wires_put(w, 0, &p, 0);
		for (lasts = 0; take(GCI_NS_PER_S, &out);)
			lasts += out.last;
		assert_int_equal(lasts, taken);
		gci_mem_fail_at(0);
		gci_wires_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_and_delay),
		cmocka_unit_test(late_looks_change_nothing),
		cmocka_unit_test(queues_cut_packets),
		cmocka_unit_test(wires_are_shared),
		cmocka_unit_test(losses),
		cmocka_unit_test(losses_cut_packets),
		cmocka_unit_test(doubles_and_damage),
		cmocka_unit_test(jitter_and_order),
		cmocka_unit_test(flows_have_limits),
		cmocka_unit_test(codel_keeps_queues_short),
		cmocka_unit_test(as_late_as_it_is_long),
		cmocka_unit_test(seen_late_is_sent_in_time),
		cmocka_unit_test(taken_late_is_no_burst),
		cmocka_unit_test(ways_do_not_wait_for_each_other),
		cmocka_unit_test(cards_of_many),
		cmocka_unit_test(changes),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
