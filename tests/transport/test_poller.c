/* SPDX-License-Identifier: MIT */
#include "transport/poller.h"

#include "tests/test.h"

#include "base/clock.h"

#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

static struct gci_poller p;
static struct gci_watched w[2];
static int fds[2][2], told[2], last;

static void on_ready(struct gci_watched *which, int events)
{
	told[which - w]++;
	last = events;
}

/* Whichever is told first takes the other one away. */
static void take_other(struct gci_watched *which, int events)
{
	(void)events;
	told[which - w]++;
	gci_poller_watch(&p, &w[!(which - w)], 0);
}

static int setup(void **state)
{
	int i;

	(void)state;
	assert_int_equal(gci_poller_open(&p), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
		w[i] = (struct gci_watched){.fd = fds[i][0], .ready = on_ready};
		told[i] = 0;
	}
	return 0;
}

static int teardown(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		close(fds[i][0]);
		if (fds[i][1] >= 0)
			close(fds[i][1]);
	}
	gci_poller_close(&p);
	return 0;
}

static void only_what_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(gci_poller_watch(&p, &w[0], UV_READABLE), 0);
	gci_poller_wait(&p, 0);
	assert_int_equal(told[0], 0);
	assert_int_equal(send(fds[0][1], "x", 1, 0), 1);
	gci_poller_wait(&p, 1);
	assert_int_equal(told[0], 1);
	assert_int_equal(last, UV_READABLE);
	assert_int_equal(gci_poller_watch(&p, &w[0], UV_WRITABLE), 0);
	gci_poller_wait(&p, 1);
	assert_int_equal(told[0], 2);
	assert_int_equal(last, UV_WRITABLE);
	assert_int_equal(gci_poller_watch(&p, &w[0], 0), 0);
	gci_poller_wait(&p, 0);
	assert_int_equal(told[0], 2);
}

static void an_end_is_told_as_both(void **state)
{
	(void)state;
	assert_int_equal(gci_poller_watch(&p, &w[0], UV_READABLE), 0);
	close(fds[0][1]);
	fds[0][1] = -1;
	gci_poller_wait(&p, 1);
	assert_int_equal(last, UV_READABLE | UV_WRITABLE);
}

/* It may be freed then, though its event was found already. */
static void what_is_taken_away_is_not_told(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		w[i].ready = take_other;
		assert_int_equal(gci_poller_watch(&p, &w[i], UV_WRITABLE), 0);
	}
	gci_poller_wait(&p, 1);
	assert_int_equal(told[0] + told[1], 1);
}

static void what_cannot_be_watched(void **state)
{
	struct gci_watched bad = {.fd = -1, .ready = on_ready};

	(void)state;
	assert_true(gci_poller_watch(&p, &bad, UV_READABLE) < 0);
}

/* A later time does not put the alarm off, an earlier one brings it forward; it rings once. */
static void the_alarm_rings_by_the_earliest_time(void **state)
{
	uint64_t now = gci_now_ns() / GCI_NS_PER_MS;

	(void)state;
	gci_poller_wake_by(&p, now + 100000);
	gci_poller_wake_by(&p, now + 20);
	gci_poller_wake_by(&p, now + 200000);
	assert_int_equal(p.alarm_ms, now + 20);
	gci_poller_wait(&p, 1);
	assert_true(gci_now_ns() / GCI_NS_PER_MS >= now + 20);
	assert_int_equal(p.alarm_ms, 0);
	gci_poller_wait(&p, 0);
}

/* An alarm that is wound for a shorter time is early enough; what it was wound for does not count
 * when it is wound anew. */
static void the_alarm_rings_within_the_shortest_time(void **state)
{
	uint64_t ms, now = gci_now_ns() / GCI_NS_PER_MS;

	(void)state;
	gci_poller_wake_in(&p, 20 * GCI_NS_PER_S);
	ms = p.alarm_ms;
	assert_true(ms >= now + 20000 && ms <= gci_now_ns() / GCI_NS_PER_MS + 20001);
	gci_poller_wake_in(&p, 100 * GCI_NS_PER_S);
	assert_int_equal(p.alarm_ms, ms);
	gci_poller_wake_in(&p, GCI_NS_PER_MS);
	assert_true(p.alarm_ms < ms);
	gci_poller_wait(&p, 1);
	assert_int_equal(p.alarm_ms, 0);
	gci_poller_wake_by(&p, now + 100000);
	gci_poller_wake_in(&p, 20 * GCI_NS_PER_MS);
	assert_true(p.alarm_ms < now + 100000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(only_what_is_asked_for),
		T(an_end_is_told_as_both),
		T(what_is_taken_away_is_not_told),
		T(what_cannot_be_watched),
		T(the_alarm_rings_by_the_earliest_time),
		T(the_alarm_rings_within_the_shortest_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
