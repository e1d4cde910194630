/* SPDX-License-Identifier: MIT
 * The control server and ranks that others start, in simulated time. */
#include "tests/launcher/rdv.h"

#include <stdio.h>
#include <string.h>

static const char *names[NRANKS];
static const char *unwelcome, *unsettled;
static int settled;

static int arrive(
	void *guests, uint32_t rank, const char *host, const char *cluster, char *why, size_t size)
{
	assert_ptr_equal(guests, names);
	assert_string_equal(cluster, "kyoto"); /* as come() says */
	snprintf(why, size, "%s is unwelcome", host);
	if (unwelcome && !strcmp(host, unwelcome))
		return -1;
	names[rank] = rank < 4 ? "k1" : "t1";
	return 0;
}

static const char *settle(void *guests, char *why, size_t size)
{
	assert_ptr_equal(guests, names);
	settled++;
	snprintf(why, size, "%s", unsettled ? unsettled : "");
	return unsettled ? NULL : "the grid of those who came";
}

/* The last n ranks are guests. */
static void open_for(struct world *w, uint32_t n, int survives)
{
	memset(names, 0, sizeof(names));
	unwelcome = unsettled = NULL;
	settled = 0;
	gci_rdv_free(w->rdv);
	w->config.names = names;
	w->config.grid = NULL;
	w->config.nguests = n;
	w->config.survives = survives;
	w->config.arrive = arrive;
	w->config.settle = settle;
	w->config.guests = names;
	assert_int_equal(gci_rdv_create(&w->rdv, &w->config, w->now), 0);
}

static void come(struct world *w, uint32_t rank, uint32_t size, const char *host)
{
	struct gci_ctl_hello m = rdv_hello_of(w, rank);
	struct wire *x = &w->ranks[rank % NRANKS];

	gci_buf_free(&x->got); /* of whoever was there before */
	memset(x, 0, sizeof(*x));
	m.size = size;
	snprintf(m.host, sizeof(m.host), "%s", host);
	snprintf(m.cluster, sizeof(m.cluster), "kyoto");
	rdv_dial(w, x);
	rdv_say_hello(w, x, &m);
}

static void all_come(struct world *w)
{
	uint32_t i;

	for (i = 0; i < NRANKS; i++)
		come(w, i, 0, "h");
}

static void grid_of_those_who_came(void **state)
{
	struct gci_ctl_message m;
	struct world *w = *state;
	uint32_t i;

	open_for(w, NRANKS, 0);
	for (i = 0; i < NRANKS; i++) {
		assert_int_equal(settled, 0);
		come(w, i, i % 2 ? NRANKS : 0, "h");
	}
	assert_int_equal(settled, 1);
	assert_true(rdv_gets(w, 7, GCI_CTL_START, &m));
	assert_string_equal(m.start.grid, "the grid of those who came");
	gci_ctl_message_free(&m);
	assert_string_equal(rdv_verdict(w), "");
	for (i = 0; i < NRANKS; i++)
		rdv_say(w, i, GCI_CTL_BYE);
	for (i = 0; i < NRANKS; i++) {
		assert_false(gci_rdv_settled(w->rdv));
		assert_false(gci_rdv_is_gone(w->rdv, i));
		rdv_hang_up(w, i);
		assert_true(gci_rdv_is_gone(w->rdv, i));
	}
	assert_true(gci_rdv_settled(w->rdv));
	assert_int_equal(gci_rdv_exit_status(w->rdv), 0);
}

static void no_grid_of_them(void **state)
{
	struct world *w = *state;

	open_for(w, NRANKS, 0);
	unsettled = "two names of one host";
	all_come(w);
	assert_string_equal(rdv_verdict(w), "two names of one host");
	rdv_expect_abort(w, 3, "two names of one host");
}

/* The number of ranks and the host are what a rank says, and all others are told when they do not
 * fit. */
static void who_may_not_come(void **state)
{
	struct world *w = *state;

	open_for(w, NRANKS, 0);
	come(w, 0, 0, "h");
	come(w, 1, 7, "h");
	assert_string_equal(rdv_verdict(w), "rank 1 on h was started as one of 7 (GRIDCOLL_SIZE), "
					    "but gridcoll-run serves a job of 8 (-n): "
					    "expected the same number");
	rdv_expect_abort(w, 0, rdv_verdict(w));
	assert_true(w->ranks[1].closed);
	open_for(w, NRANKS, 0);
	unwelcome = "x";
	come(w, 2, 0, "x");
	assert_string_equal(rdv_verdict(w), "x is unwelcome");
}

/* With the secret, but with a number that the job has not: told so, and no more comes of it. */
static void too_high(void **state)
{
	static const char why[] = "a process on x came as rank 9, but gridcoll-run serves a job of "
				  "8 ranks (-n), from 0";
	struct world *w = *state;
	struct gci_ctl_message m;
	char news[200];
	int late;

	snprintf(news, sizeof(news), "turned away: %s\n", why);
	for (late = 0; late < 2; late++) {
		struct gci_ctl_hello hello = rdv_hello_of(w, NRANKS + 1);
		struct wire high = {0};

		open_for(w, NRANKS, 0);
		if (late)
			all_come(w);
		strcpy(hello.host, "x");
		rdv_dial(w, &high);
		rdv_say_hello(w, &high, &hello);
		assert_true(high.closed);
		assert_true(rdv_next_of(&high, GCI_CTL_ABORT, &m) >= 0);
		assert_string_equal(m.failure.text, why);
		gci_buf_free(&high.got);
		rdv_expect_news(w, news);
		if (!late)
			all_come(w);
		rdv_pass(w, 2 * SEC);
		assert_int_equal(settled, 1);
		assert_string_equal(rdv_verdict(w), "");
	}
}

/* A name that would be a line of its own where it is printed. */
static void a_name_that_forges(void **state)
{
	struct gci_ctl_hello hello = rdv_hello_of(*state, NRANKS + 1);
	struct world *w = *state;
	struct wire x = {0};

	open_for(w, NRANKS, 0);
	strcpy(hello.host, "x\nrank 1 failed");
	rdv_dial(w, &x);
	rdv_say_hello(w, &x, &hello);
	assert_true(x.closed);
	rdv_expect_news(w, "");
	gci_buf_free(&x.got);
}

/* Who has not the secret learns nothing, and changes nothing. */
static void strangers(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m;

	open_for(w, NRANKS, 0);
	m = rdv_hello_of(w, 1);
	m.rank = NRANKS + 1;
	m.size = 3;
	rdv_dial(w, &w->ranks[1]);
	rdv_say_hello(w, &w->ranks[1], &m);
	assert_true(w->ranks[1].closed);
	assert_int_equal(w->ranks[1].got.len, 0);
	all_come(w);
	assert_int_equal(settled, 1);
}

static void say_wrong_secret(struct world *w, uint8_t host)
{
	struct gci_ctl_hello m = rdv_hello_of(w, 1);
	struct wire x = {0};

	m.token[0] ^= 1;
	rdv_dial_from(w, &x, host);
	rdv_say_hello(w, &x, &m);
	assert_true(x.closed);
	assert_int_equal(x.got.len, 0);
	gci_buf_free(&x.got);
}

#define OTHER_SECRET " has another secret, expected that of this job (--secret-file)"

/* The user is told of each address, once a minute, and of eight at most: no stranger fills a log. */
static void wrong_secrets(void **state)
{
	struct world *w = *state;
	struct gci_buf news;
	int i;

	open_for(w, NRANKS, 0);
	say_wrong_secret(w, 7);
	rdv_expect_news(w, "turned away: a process at 10.0.0.7" OTHER_SECRET "\n");
	for (i = 0; i < 500; i++)
		say_wrong_secret(w, 7);
	rdv_expect_news(w, "");
	for (i = 0; i < 200; i++)
		say_wrong_secret(w, (uint8_t)i);
	gci_rdv_news(w->rdv, &news);
	for (i = 0; news.len; i++)
		gci_buf_consume(&news,
			(size_t)(strchr(gci_buf_cstr(&news), '\n') + 1 - gci_buf_cstr(&news)));
	gci_buf_free(&news);
	assert_int_equal(i, 7);
	rdv_pass(w, 59 * SEC);
	say_wrong_secret(w, 7);
	rdv_expect_news(w, "");
	rdv_pass(w, SEC);
	gci_rdv_news(w->rdv, &news); /* that nobody has come */
	gci_buf_free(&news);
	say_wrong_secret(w, 7);
	rdv_expect_news(w, "turned away: a process at 10.0.0.7" OTHER_SECRET
			   "; since the last such line 194 more\n");
	all_come(w);
	assert_int_equal(settled, 1);
}

/* --start-timeout begins with the first rank, however long that takes; the user is told once. */
static void nobody_comes(void **state)
{
	struct world *w = *state;

	open_for(w, NRANKS, 0);
	rdv_pass(w, 59 * SEC);
	rdv_expect_news(w, "");
	rdv_pass(w, 2 * SEC);
	rdv_expect_news(w,
		"no rank has joined within 60 s; waiting on, --start-timeout begins with "
		"the first\n");
	rdv_pass(w, 300 * SEC);
	rdv_expect_news(w, "");
	come(w, 4, 0, "h");
	rdv_pass(w, 59 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	rdv_pass(w, 2 * SEC);
	assert_non_null(strstr(rdv_verdict(w), "did not join the job within 60 s of the first"));
}

static void second_ones(void **state)
{
	struct gci_ctl_message m;
	struct world *w = *state;
	struct wire twin = {0};
	struct gci_ctl_hello hello;

	open_for(w, NRANKS, 0);
	come(w, 1, 0, "h");
	hello = rdv_hello_of(w, 1);
	strcpy(hello.host, "x");
	rdv_dial(w, &twin);
	rdv_say_hello(w, &twin, &hello);
	assert_true(twin.closed);
	assert_true(rdv_next_of(&twin, GCI_CTL_ABORT, &m) >= 0);
	assert_non_null(strstr(m.failure.text, "rank 1 has joined already, from another process"));
	gci_buf_free(&twin.got);
	rdv_expect_news(w, "a second process on x came as rank 1\n");
	assert_string_equal(rdv_verdict(w), "");
}

/* The hosts of those who never came are not known. */
static void missing(void **state)
{
	struct world *w = *state;

	open_for(w, NRANKS, 0);
	come(w, 4, 0, "h");
	rdv_pass(w, 61 * SEC);
	assert_memory_equal(rdv_verdict(w), "ranks 0-3,5-7 did not join the job within 60 s", 46);
	assert_true(gci_rdv_is_gone(w->rdv, 0));
	assert_false(gci_rdv_is_gone(w->rdv, 4));
}

/* Their connection is all there is of them. */
static void lost(void **state)
{
	struct world *w = *state;

	open_for(w, NRANKS, 0);
	all_come(w);
	rdv_hang_up(w, 5);
	rdv_pass(w, SEC);
	assert_memory_equal(rdv_verdict(w),
		"rank 5 on t1: its control connection was lost: its process has ended", 67);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* The job goes on without one. */
static void lost_by_one_that_survives(void **state)
{
	static const uint32_t rest[] = {0, 1, 2, 3, 4, 6, 7};
	struct world *w = *state;
	size_t i;

	open_for(w, NRANKS, 1);
	all_come(w);
	rdv_hang_up(w, 5);
	rdv_pass(w, SEC);
	for (i = 0; i < 7; i++)
		rdv_say_shrink(w, rest[i], 1);
	rdv_expect_survivors(w, 7, 2, rest, 7);
	for (i = 0; i < 7; i++)
		rdv_say(w, rest[i], GCI_CTL_BYE);
	for (i = 0; i < 7; i++)
		rdv_hang_up(w, rest[i]);
	assert_true(gci_rdv_settled(w->rdv));
	assert_int_equal(gci_rdv_exit_status(w->rdv), 0);
}

/* Rank 0 is ours: when it has ended, and nobody has joined, there is no job to wait for. */
static void beside_our_own(void **state)
{
	struct world *w = *state;

	open_for(w, NRANKS - 1, 0);
	assert_false(gci_rdv_is_gone(w->rdv, 0));
	assert_false(gci_rdv_settled(w->rdv));
	rdv_end(w, 0, 0, 0);
	assert_true(gci_rdv_settled(w->rdv));
	open_for(w, NRANKS - 1, 0);
	come(w, 3, 0, "h");
	rdv_end(w, 0, 0, 0);
	assert_false(gci_rdv_settled(w->rdv));
	rdv_pass(w, SEC);
	assert_non_null(strstr(rdv_verdict(w), "without joining the job"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(grid_of_those_who_came),
		T(no_grid_of_them),
		T(who_may_not_come),
		T(too_high),
		T(a_name_that_forges),
		T(strangers),
		T(wrong_secrets),
		T(nobody_comes),
		T(second_ones),
		T(missing),
		T(lost),
		T(lost_by_one_that_survives),
		T(beside_our_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
