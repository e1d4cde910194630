/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/mem.h"
#include "netem/weather.h"

#include <string.h>

#define S GCI_NS_PER_S

static struct gci_grid g;
static struct gci_weather w;

static int setup(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a\n[cluster b]\nhosts = b\n[cluster c]\n"
				   "hosts = c\n[link a b]\ndelay = 1ms\n[link a c]\ndelay = 1ms\n"
				   "[link b c]\ndelay = 1ms\n";
	struct gci_error e = {0};

	(void)state;
	return gci_grid_parse(&g, text, strlen(text), "grid", &e);
}

static int teardown(void **state)
{
	(void)state;
	gci_grid_free(&g);
	return 0;
}

static void parse(const char *text)
{
	struct gci_error e = {0};

	if (gci_weather_parse(&w, text, strlen(text), "file", &g, &e))
		fail_msg("%s", e.text);
}

static void refuse(const char *text, const char *why)
{
	struct gci_error e = {0};

	assert_int_equal(
		gci_weather_parse(&w, text, strlen(text), "file", &g, &e), GCOLL_ERR_PARSE);
	if (!strstr(e.text, why))
		fail_msg("\"%s\", expected \"%s\"", e.text, why);
	assert_null(w.changes);
}

static int number(int from, int to)
{
	return gci_grid_link(&g, from, to)->own - 1;
}

static void every_key(void **state)
{
	struct gci_wire_model m = {.rate_bps = 7, .loss_burst = 9};

	(void)state;
	parse("# nothing\n\n1.5s a > b rate=1Mbit delay=2ms queue=3KB flow_rate=4kbit loss=5% "
	      "jitter=6us burst=7 reorder=8% duplicate=9% corrupt=10% codel=11ms,12ms # all\n");
	assert_int_equal(w.nchanges, 1);
	assert_int_equal(w.changes[0].at_ns, 1500000000);
	assert_int_equal(w.changes[0].wire, number(0, 1));
	gci_weather_apply(&w.changes[0], &m);
	assert_int_equal(m.rate_bps, 1000000);
	assert_int_equal(m.delay_ns, 2000000);
	assert_int_equal(m.queue_nbytes, 3000);
	assert_int_equal(m.flow_rate_bps, 4000);
	assert_int_equal(m.loss_ppm, 50000);
	assert_int_equal(m.jitter_ns, 6000);
	assert_int_equal(m.loss_burst, 7);
	assert_int_equal(m.reorder_ppm, 80000);
	assert_int_equal(m.duplicate_ppm, 90000);
	assert_int_equal(m.corrupt_ppm, 100000);
	assert_int_equal(m.codel_target_ns, 11000000);
	assert_int_equal(m.codel_interval_ns, 12000000);
	gci_weather_free(&w);
}

/* What a line does not name stays. */
static void the_rest_stays(void **state)
{
	struct gci_wire_model m = {
		.rate_bps = 7, .delay_ns = 8, .loss_ppm = 9, .codel_target_ns = 1};

	(void)state;
	parse("0s all loss=0%\n");
	assert_int_equal(w.nchanges, 6);
	gci_weather_apply(&w.changes[3], &m);
	assert_int_equal(m.rate_bps, 7);
	assert_int_equal(m.delay_ns, 8);
	assert_int_equal(m.loss_ppm, 0);
	assert_int_equal(m.codel_target_ns, 1);
	gci_weather_free(&w);
	parse("0s b a codel=off");
	assert_int_equal(w.nchanges, 2);
	gci_weather_apply(&w.changes[0], &m);
	assert_int_equal(m.codel_target_ns, 0);
	gci_weather_free(&w);
}

/* By time; those of one time as they stand. */
static void in_order(void **state)
{
	static const uint64_t at[] = {0, 1, 1, 1, 2, 3}, delay[] = {5, 3, 4, 6, 2, 1};
	size_t i;

	(void)state;
	parse("3s a > b delay=1ns\n2s a > b delay=2ns\n1s a > b delay=3ns\n1s a > b delay=4ns\n"
	      "0s a > b delay=5ns\n1s a > b delay=6ns\n");
	assert_int_equal(w.nchanges, 6);
	for (i = 0; i < 6; i++) {
		assert_int_equal(w.changes[i].at_ns, at[i] * S);
		assert_int_equal(w.changes[i].to.delay_ns, delay[i]);
	}
	gci_weather_free(&w);
	parse("");
	assert_int_equal(w.nchanges, 0);
	gci_weather_free(&w);
}

static void dilated(void **state)
{
	(void)state;
	parse("2s a > b rate=10Mbit flow_rate=1kbit delay=3ms jitter=1ms codel=5ms,100ms loss=1%");
	gci_weather_dilate(&w, 10);
	assert_int_equal(w.changes[0].at_ns, 20 * S);
	assert_int_equal(w.changes[0].to.rate_bps, 1000000);
	assert_int_equal(w.changes[0].to.flow_rate_bps, 100);
	assert_int_equal(w.changes[0].to.delay_ns, 30000000);
	assert_int_equal(w.changes[0].to.jitter_ns, 10000000);
	assert_int_equal(w.changes[0].to.codel_target_ns, 50000000);
	assert_int_equal(w.changes[0].to.codel_interval_ns, 1000000000);
	assert_int_equal(w.changes[0].to.loss_ppm, 10000);
	gci_weather_free(&w);
}

static void refusals(void **state)
{
	char line[2000];

	(void)state;
	refuse("\n5 a b loss=1%", "file:2: \"5\", expected a time");
	refuse("5s", "file:1: expected two ends of a link");
	refuse("5s a d loss=1%", "file:1: \"d\" is none of the grid's clusters and switches, "
				 "expected two ends of a link, as A B");
	refuse("5s a>b loss=1%", "file:1: \"a>b\" is none of the grid's");
	refuse("5s a a loss=1%", "file:1: expected two ends of a link");
	refuse("5s a > loss=1%", "file:1: expected two ends of a link");
	refuse("5s a b", "file:1: nothing changes");
	refuse("5s a b loss", "file:1: \"loss\", expected KEY=VALUE with rate");
	refuse("5s a b los=1%", "file:1: \"los\", expected KEY=VALUE");
	refuse("5s a b loss=101%", "file:1: loss=101%, expected a percentage");
	refuse("5s a b rate=0bit", "file:1: rate=0bit, expected a rate");
	refuse("5s a b rate=1Mbit rate=2Mbit", "file:1: rate twice, expected once a line");
	refuse("5s a b delay=300s", "file:1: delay=300s, expected a time");
	refuse("5s a b burst=0", "file:1: burst=0, expected a number");
	refuse("5s a b codel=100ms,5ms", "file:1: codel=100ms,5ms, expected off, or two");
	refuse("5s a b codel=5ms", "file:1: codel=5ms, expected off, or two");
	refuse("5s a b codel=5ms,0s", "file:1: codel=5ms,0s, expected off, or two");
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	refuse(line, "file:1: expected a line of text of less than 1024");
	memcpy(line, "0s all", 6);
	memset(line + 6, ' ', 1000);
	line[1000] = '\0';
	for (int i = 0; i < 66; i++)
		memcpy(line + 7 + (size_t)i * 8, "loss=1%", 7);
	refuse(line, "file:1: expected no more than 64 words");
}

/* A link by way of a third cluster is that cluster's links. */
static void by_way_of_another(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a\n[cluster b]\nhosts = b\n[cluster c]\n"
				   "hosts = c\n[link a b]\ndelay = 1ms\n[link a c]\ndelay = 1ms\n"
				   "[link b c]\nvia = a\n";
	struct gci_error e = {0};
	struct gci_grid other;

	(void)state;
	assert_int_equal(gci_grid_parse(&other, text, strlen(text), "grid", &e), 0);
	assert_int_equal(gci_weather_parse(&w, "0s all loss=1%", 14, "file", &other, &e), 0);
	assert_int_equal(w.nchanges, 4);
	gci_weather_free(&w);
	assert_int_equal(
		gci_weather_parse(&w, "0s b c loss=1%", 14, "file", &other, &e), GCOLL_ERR_PARSE);
	assert_string_equal(e.text, "file:1: no link b > c, expected one of the grid's");
	gci_grid_free(&other);
}

/* Any end of a wire. */
static void switches_and_uplinks(void **state)
{
	static const char text[] =
		"[switch s]\n[cluster a]\nhosts = a\nuplink = 1Gbit\n[cluster b]\n"
		"hosts = b\n[link a s]\n[link s b]\n";
	static const char changes[] = "0s a > uplink loss=1%\n1s s b loss=2%\n2s uplink a loss=3%";
	struct gci_error e = {0};
	struct gci_grid other;
	size_t i;

	(void)state;
	assert_int_equal(gci_grid_parse(&other, text, strlen(text), "grid", &e), 0);
	assert_int_equal(gci_weather_parse(&w, changes, strlen(changes), "file", &other, &e), 0);
	assert_int_equal(w.nchanges, 5);
	for (i = 0; i < w.nchanges; i++) {
		const struct gci_link *l = &other.wires[w.changes[i].wire];

		assert_int_equal(l->from == GCI_GRID_UPLINK || l->to == GCI_GRID_UPLINK,
			i % 3 == 0 || i == 4);
	}
	gci_weather_free(&w);
	assert_int_equal(gci_weather_parse(&w, changes, strlen(changes), "file", &other, &e), 0);
	assert_int_equal(w.nchanges, 5);
	for (i = 0; i < w.nchanges; i++) {
		const struct gci_link *l = &other.wires[w.changes[i].wire];

		assert_int_equal(l->from == GCI_GRID_UPLINK || l->to == GCI_GRID_UPLINK,
			i % 3 == 0 || i == 4);
	}
	gci_weather_free(&w);
	assert_int_equal(gci_weather_parse(&w, "0s b > uplink loss=1%", 21, "file", &other, &e),
		GCOLL_ERR_PARSE);
	assert_string_equal(e.text, "file:1: no link b > uplink, expected one of the grid's");
	gci_grid_free(&other);
}

static void without_memory(void **state)
{
	static const char text[] = "2s all loss=1%\n1s all loss=2%\n";
	struct gci_error e = {0};
	unsigned long n;
	int rc;

	(void)state;
	for (n = 1;; n++) {
		gci_mem_fail_at(n);
		gci_error_clear(&e);
		rc = gci_weather_parse(&w, text, strlen(text), "file", &g, &e);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		assert_null(w.changes);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(n > 1);
	gci_weather_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key),
		cmocka_unit_test(the_rest_stays),
		cmocka_unit_test(in_order),
		cmocka_unit_test(dilated),
		cmocka_unit_test(refusals),
		cmocka_unit_test(by_way_of_another),
		cmocka_unit_test(switches_and_uplinks),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
