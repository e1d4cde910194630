/* SPDX-License-Identifier: MIT
 * Joining and leaving, messages, strangers. (Who failed first: test_verdict.c) */
#include "tests/launcher/rdv.h"

#include "collectives/coll.h"

#include <stdio.h>
#include <string.h>

static void all_join_and_leave(void **state)
{
	struct world *w = *state;
	char text[GCI_REACH_TEXT];
	struct gci_ctl_message m;
	uint32_t i;

	for (i = 0; i < NRANKS - 1; i++)
		rdv_join(w, i);
	rdv_pass(w, 3 * SEC);
	assert_int_equal(rdv_next_of(&w->ranks[0], GCI_CTL_START, &m), -1);
	rdv_join(w, NRANKS - 1);
	for (i = 0; i < NRANKS; i++) {
		assert_true(rdv_next_of(&w->ranks[i], GCI_CTL_START, &m) >= 0);
		assert_int_equal(m.start.size, NRANKS);
		assert_int_equal(m.start.epoch, 1);
		assert_true(m.start.beat_ns == SEC && m.start.dead_ns == 20 * SEC);
		assert_string_equal(m.start.grid, w->config.grid);
		assert_string_equal(m.start.table, w->config.table);
		assert_true(m.start.table_digest == w->config.table_digest);
		assert_int_equal(m.start.ranks[6].host, 6);
		assert_string_equal(
			gci_reach_format(&m.start.ranks[6].reach, text), "10.0.0.7:5000");
		gci_ctl_message_free(&m);
	}
	rdv_pass(w, 100 * SEC);
	assert_true(rdv_next_of(&w->ranks[0], GCI_CTL_BYE, &m) < 0);
	for (i = 0; i < NRANKS - 1; i++)
		rdv_say(w, i, GCI_CTL_BYE);
	assert_true(rdv_next_of(&w->ranks[0], GCI_CTL_BYE, &m) < 0);
	rdv_say(w, NRANKS - 1, GCI_CTL_BYE);
	for (i = 0; i < NRANKS; i++)
		assert_true(rdv_next_of(&w->ranks[i], GCI_CTL_BYE, &m) >= 0);
	assert_false(gci_rdv_settled(w->rdv));
	for (i = 0; i < NRANKS; i++) {
		rdv_hang_up(w, i);
		rdv_end(w, i, 0, 0);
	}
	assert_true(gci_rdv_settled(w->rdv));
	assert_null(gci_rdv_verdict(w->rdv));
	assert_int_equal(gci_rdv_exit_status(w->rdv), 0);
}

/* Who waits for a message is told of to the rank it waits for, once that one has left. */
static void waits_reach_those_who_left(void **state)
{
	struct world *w = *state;
	const struct gci_ctl_wait waits[] = {
		{2, 7, 9, 11}, {NRANKS, 7, 9, 11}, {UINT32_MAX, 0, 0, 0}};
	struct gci_ctl_message m;
	struct gci_buf b = {0};
	size_t i;

	rdv_join_all(w);
	gci_ctl_put_wait(&b, &waits[0]);
	rdv_give(w, &w->ranks[5], &b);
	assert_int_equal(rdv_next_of(&w->ranks[2], GCI_CTL_WAIT, &m), -1);
	rdv_say(w, 2, GCI_CTL_BYE);
	for (i = 0; i < 3; i++) {
		gci_ctl_put_wait(&b, &waits[i]);
		rdv_give(w, &w->ranks[5], &b);
	}
	assert_true(rdv_next_of(&w->ranks[2], GCI_CTL_WAIT, &m) >= 0);
	assert_int_equal(m.wait.rank, 5);
	assert_int_equal(m.wait.comm, 7);
	assert_int_equal(m.wait.tag, 9);
	assert_int_equal(m.wait.seq, 11);
	assert_int_equal(rdv_next_of(&w->ranks[2], GCI_CTL_WAIT, &m), -1);
	rdv_hang_up(w, 2);
	gci_ctl_put_wait(&b, &waits[0]);
	rdv_give(w, &w->ranks[5], &b);
	rdv_pass(w, 3 * SEC);
	assert_string_equal(rdv_verdict(w), "");
}

static void waiting_ranks_hear_beats(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	int beats = 0;

	rdv_join(w, 0);
	rdv_pass(w, 30 * SEC);
	while (rdv_next_of(&w->ranks[0], GCI_CTL_BEAT, &m) == 0)
		beats++;
	assert_in_range(beats, 29, 31);
}

static void strangers_do_no_harm(void **state)
{
	struct world *w = *state;
	struct wire x[6] = {{0}};
	struct gci_ctl_hello m = rdv_hello_of(w, 2);
	struct gci_buf b = {0};
	char big[8192];
	size_t i;

	rdv_join_all(w);
	for (i = 0; i < 6; i++)
		rdv_dial(w, &x[i]);
	m.token[31] ^= 1;
	rdv_say_hello(w, &x[0], &m);
	m = rdv_hello_of(w, 2);
	m.rank = NRANKS; /* out of range */
	rdv_say_hello(w, &x[1], &m);
	gci_buf_printf(&b, "GET / HTTP/1.1\r\n\r\n");
	rdv_give(w, &x[2], &b);
	memset(big, 0, sizeof(big));
	gci_store_u32((uint8_t *)big, GCI_CTL_MAX_HELLO + 1);
	gci_buf_put(&b, big, sizeof(big));
	rdv_give(w, &x[3], &b);
	gci_ctl_put_plain(&b, GCI_CTL_BYE);
	rdv_give(w, &x[4], &b);
	for (i = 0; i < 5; i++)
		assert_true(x[i].closed);
	assert_false(x[5].closed); /* says nothing: has 5 s */
	rdv_pass(w, 4 * SEC);
	assert_false(x[5].closed);
	rdv_pass(w, 3 * SEC);
	assert_true(x[5].closed);
	rdv_pass(w, 100 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	for (i = 0; i < 6; i++)
		assert_int_equal(x[i].got.len, 0); /* and learn nothing */
}

/* Also from as many addresses as there are places, and from where the ranks come from. */
static void strangers_keep_nobody_out(void **state)
{
	enum { PLACES = GCI_RDV_STRANGERS + NRANKS, N = 3 * PLACES };
	struct world *w = *state;
	static struct wire x[N];
	int i, open = 0;

	memset(x, 0, sizeof(x));
	for (i = 0; i < N; i++) {
		assert_int_equal(gci_rdv_is_crowded(w->rdv), i >= PLACES);
		rdv_dial_from(w, &x[i], (uint8_t)(i % 3 ? i % 251 : 1));
		rdv_drain(w);
	}
	for (i = 0; i < N; i++)
		open += !x[i].closed;
	assert_int_equal(open, PLACES);
	rdv_join_all(w);
	assert_true(w->ranks[0].got.len > 0);
	for (i = 0, open = 0; i < N; i++)
		open += !x[i].closed;
	assert_int_equal(open, GCI_RDV_STRANGERS); /* no rank is to come any more */
	rdv_pass(w, 7 * SEC);
	for (i = 0; i < N; i++)
		assert_true(x[i].closed);
	assert_string_equal(rdv_verdict(w), "");
}

/* Where more ranks start than there are processors, one may say nothing for long after it has called. */
static void slow_to_speak(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = rdv_hello_of(w, 2);

	rdv_dial(w, &w->ranks[2]);
	rdv_pass(w, 30 * SEC);
	assert_false(w->ranks[2].closed);
	rdv_say_hello(w, &w->ranks[2], &m);
	rdv_pass(w, 7 * SEC);
	assert_false(w->ranks[2].closed);
	assert_string_equal(rdv_verdict(w), "");
}

/* Who has shown who it is by TLS stays, and may be nobody else. */
static void who_is_named(void **state)
{
	enum { N = 2 * (GCI_RDV_STRANGERS + NRANKS) };
	struct world *w = *state;
	struct gci_ctl_hello m = rdv_hello_of(w, 2);
	static struct wire x[N];
	struct wire silent = {0};
	int i;

	memset(x, 0, sizeof(x));
	rdv_dial(w, &w->ranks[2]);
	rdv_dial(w, &w->ranks[3]);
	rdv_dial(w, &silent);
	gci_rdv_named(w->ranks[2].conn, 2);
	gci_rdv_named(w->ranks[3].conn, 3);
	gci_rdv_named(silent.conn, 4);
	for (i = 0; i < N; i++) {
		rdv_dial(w, &x[i]);
		rdv_drain(w);
	}
	rdv_say_hello(w, &w->ranks[3], &m);
	assert_true(w->ranks[3].closed);
	rdv_say_hello(w, &w->ranks[2], &m);
	assert_false(w->ranks[2].closed);
	assert_false(silent.closed);
}

static void joining_twice(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = rdv_hello_of(w, 2);
	struct gci_ctl_message got;
	struct wire x = {0};

	rdv_join_all(w);
	rdv_dial(w, &x);
	rdv_say_hello(w, &x, &m);
	assert_int_equal(rdv_next_of(&x, GCI_CTL_ABORT, &got), 0);
	assert_string_equal(got.failure.text, "rank 2 has joined already");
	assert_true(x.closed);
	rdv_pass(w, 5 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	gci_buf_free(&x.got);
}

static void other_release(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = rdv_hello_of(w, 2);
	char says[160];

	snprintf(says, sizeof(says),
		"rank 2 on k3: speaks version %d of the control protocol, expected %d (another "
		"release of gridcoll)",
		GCI_CTL_VERSION + 1, GCI_CTL_VERSION);
	m.version = GCI_CTL_VERSION + 1;
	rdv_dial(w, &w->ranks[2]);
	rdv_say_hello(w, &w->ranks[2], &m);
	assert_true(w->ranks[2].closed);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), says);
}

/* Of another release as well: the rank whose number it has is there, and has done nothing. */
static void other_release_comes_too_late(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = rdv_hello_of(w, 2);
	struct gci_ctl_message got;
	struct wire x = {0};

	rdv_join_all(w);
	m.version = GCI_CTL_VERSION + 1;
	rdv_dial(w, &x);
	rdv_say_hello(w, &x, &m);
	assert_int_equal(rdv_next_of(&x, GCI_CTL_ABORT, &got), 0);
	assert_true(x.closed);
	rdv_pass(w, 5 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	gci_buf_free(&x.got);
}

/* By the same protocol. Neither end can tell which is the wrong one, so both are named; of a rank that is
 * there already nothing changes. */
static void other_schedules(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = rdv_hello_of(w, 2), twin = rdv_hello_of(w, 1);
	struct wire x = {0};
	char says[GCI_CTL_TEXT];

	rdv_join(w, 1);
	twin.big_endian ^= 1;
	rdv_dial(w, &x);
	rdv_say_hello(w, &x, &twin);
	assert_true(x.closed);
	gci_buf_free(&x.got);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "");
	m.schedules ^= 1;
	snprintf(says, sizeof(says),
		"rank 2 on k3: is of gridcoll 0.0.1 with schedules %016llx, %s-endian, but "
		"gridcoll-run of %s with %016llx, %s-endian: expected the same on all hosts",
		(unsigned long long)m.schedules, m.big_endian ? "big" : "little", gci_build.release,
		(unsigned long long)gci_build.schedules, gci_build.big_endian ? "big" : "little");
	rdv_dial(w, &w->ranks[2]);
	rdv_say_hello(w, &w->ranks[2], &m);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), says);
	rdv_expect_abort(w, 1, says);
	rdv_expect_abort(w, 2, strchr(says, ':') + 2);
}

static void broken_rank(void **state)
{
	struct world *w = *state;
	struct gci_buf b = {0};

	rdv_join_all(w);
	gci_buf_put_u32(&b, 1);
	gci_buf_put_u8(&b, 99);
	rdv_give(w, &w->ranks[4], &b);
	assert_true(w->ranks[4].closed);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 4 on t1: malformed control message of type 99");
}

/* Messages arrive in any pieces. */
static void byte_by_byte(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = rdv_hello_of(w, 0);
	struct gci_ctl_failure f = {.status = GCOLL_ERR_IO, .rank = 0, .text = "disk on fire"};
	struct gci_buf b = {0};
	size_t i;

	gci_ctl_put_hello(&b, &m);
	gci_ctl_put_got(&b, GCI_CTL_BEAT, 0);
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &f);
	rdv_dial(w, &w->ranks[0]);
	for (i = 0; i < b.len; i++)
		gci_rdv_input(w->rdv, w->ranks[0].conn, b.data + i, 1, w->now);
	gci_buf_free(&b);
	rdv_drain(w);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 0 on k1: disk on fire");
	assert_int_equal(gci_rdv_verdict(w->rdv)->status, GCOLL_ERR_IO);
}

static void many_in_one_read(void **state)
{
	struct world *w = *state;
	struct gci_buf b = {0};
	int i;

	rdv_join_all(w);
	for (i = 0; i < 20000; i++)
		gci_ctl_put_got(&b, GCI_CTL_BEAT, 0);
	gci_ctl_put_plain(&b, GCI_CTL_BYE);
	rdv_give(w, &w->ranks[0], &b);
	rdv_end(w, 0, 0, 0);
	rdv_hang_up(w, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "");
}

/* What each rank says of its addresses, and what comes of it when the last one has joined. */
static const char *met(struct world *w, const struct gci_reach *reach)
{
	struct gci_ctl_message m;
	uint32_t i;

	for (i = 0; i < NRANKS; i++) {
		struct gci_ctl_hello h = rdv_hello_of(w, i);

		h.reach = reach[i];
		rdv_dial(w, &w->ranks[i]);
		rdv_say_hello(w, &w->ranks[i], &h);
	}
	if (!gci_rdv_verdict(w->rdv)) {
		assert_true(rdv_next_of(&w->ranks[0], GCI_CTL_START, &m) >= 0);
		gci_ctl_message_free(&m);
		return "started";
	}
	assert_true(rdv_next_of(&w->ranks[0], GCI_CTL_ABORT, &m) >= 0);
	assert_int_equal(m.failure.status, GCOLL_ERR_INVAL);
	assert_string_equal(m.failure.text, rdv_verdict(w));
	return rdv_verdict(w);
}

static const struct gci_reach v4 = {5000, 1, 0, {{10, 0, 0, 1}}};
static const struct gci_reach v6 = {5001, 1, 1, {{0xfd, [15] = 1}}};
static const struct gci_reach both = {5002, 2, 1, {{0xfd, [15] = 1}, {10, 0, 0, 1}}};
static const struct gci_reach lo = {5003, 1, 0, {{127, 0, 0, 1}}};

static void families_meet(void **state)
{
	assert_string_equal(
		met(*state, (struct gci_reach[]){both, v4, v4, both, v4, v4, v4, v4}), "started");
}

static void families_do_not_meet(void **state)
{
	assert_string_equal(
		met(*state, (struct gci_reach[]){both, v4, v4, both, v4, v6, both, both}),
		"rank 5 on t2 takes connections at [fd00::1]:5001 only, rank 4 on t1 at "
		"10.0.0.1:5000: expected addresses of one family, IPv4 or IPv6 (see --interfaces)");
}

static void loopback_leads_nowhere(void **state)
{
	assert_string_equal(met(*state, (struct gci_reach[]){v4, v4, lo, v4, v4, v4, v4, v4}),
		"rank 2 on k3 takes connections at 127.0.0.1:5003 only, rank 7 on t4 at "
		"10.0.0.1:5000: expected addresses that lead from host to host (see --interfaces)");
}

/* Eight names of one machine. */
static void all_on_loopback(void **state)
{
	assert_string_equal(
		met(*state, (struct gci_reach[]){lo, lo, lo, lo, lo, lo, lo, lo}), "started");
}

/* ---- connections that are lost */

static void break_off(struct world *w, uint32_t rank)
{
	gci_rdv_closed(w->rdv, w->ranks[rank].conn, 1, w->now);
	gci_buf_free(&w->ranks[rank].got);
	rdv_drain(w);
	memset(&w->ranks[rank], 0, sizeof(w->ranks[rank]));
}

/* By another connection; 1: it was taken. */
static int resume_by(struct world *w, struct wire *x, uint32_t rank, uint32_t life, uint64_t got)
{
	struct gci_ctl_resume m = {.rank = rank, .life = life, .got = got};
	struct gci_ctl_hello hello = rdv_hello_of(w, rank);
	struct gci_ctl_message answer;
	uint8_t key[32];
	struct gci_buf b = {0};

	assert_int_equal(gci_ctl_resume_key(w->config.secret, rank, key), 0);
	assert_int_equal(gci_ctl_resume_token(key, &m, hello.session, m.token), 0);
	gci_ctl_put_resume(&b, &m);
	rdv_dial(w, x);
	rdv_give(w, x, &b);
	if (rdv_next_of(x, GCI_CTL_RESUMED, &answer))
		return 0;
	x->beating = 1;
	x->heard = got;
	return 1;
}

static int resume(struct world *w, uint32_t rank, uint32_t life, uint64_t got)
{
	return resume_by(w, &w->ranks[rank], rank, life, got);
}

static int tells_abort(struct world *w, uint32_t rank, const char *text)
{
	struct gci_ctl_message m;

	gci_rdv_give_up(w->rdv, GCOLL_ERR_ABORTED, text, w->now);
	rdv_drain(w);
	return rdv_gets(w, rank, GCI_CTL_ABORT, &m) && !strcmp(m.failure.text, text);
}

/* What each side said meanwhile comes once, in order, and the job goes on. */
static void a_lost_connection(void **state)
{
	const struct gci_ctl_budget budgets[] = {{0, 1, 11}, {1, 0, 12}, {0, 1, 13}};
	struct world *w = *state;
	struct gci_ctl_message m;
	int i;

	rdv_join_all(w);
	gci_rdv_budget(w->rdv, &budgets[0]);
	rdv_drain(w);
	assert_true(rdv_gets(w, 5, GCI_CTL_BUDGET, &m)); /* 1 */
	gci_rdv_budget(w->rdv, &budgets[1]);             /* 2 is sent, and lost */
	rdv_drain(w);
	rdv_say(w, 5, GCI_CTL_BYE); /* 1 of its own */
	break_off(w, 5);
	gci_rdv_budget(w->rdv, &budgets[2]); /* 3 is said to nobody */
	rdv_drain(w);
	rdv_pass(w, 10 * SEC);
	assert_true(resume(w, 5, 1, 1));
	for (i = 1; i < 3; i++) {
		assert_int_equal(rdv_next_of(&w->ranks[5], GCI_CTL_BUDGET, &m), 0);
		assert_true(m.budget.bps == budgets[i].bps);
	}
	assert_int_equal(rdv_next_of(&w->ranks[5], GCI_CTL_BUDGET, &m), -1);
	rdv_pass(w, 100 * SEC);
	for (i = 0; i < NRANKS; i++)
		if (i != 5)
			rdv_say(w, (uint32_t)i, GCI_CTL_BYE);
	assert_true(rdv_gets(w, 5, GCI_CTL_BYE, &m));
	assert_string_equal(rdv_verdict(w), "");
}

/* The rank has noticed the loss before the launcher, which has said more by the old one. */
static void an_old_connection_that_stands(void **state)
{
	const struct gci_ctl_budget budget = {0, 1, 11};
	struct world *w = *state;
	struct gci_ctl_message m;
	struct wire x = {0};

	rdv_join_all(w);
	gci_rdv_budget(w->rdv, &budget);
	rdv_drain(w);
	assert_true(resume_by(w, &x, 5, 1, 0));
	assert_true(w->ranks[5].closed);
	assert_int_equal(rdv_next_of(&x, GCI_CTL_START, &m), 0);
	gci_ctl_message_free(&m);
	assert_int_equal(rdv_next_of(&x, GCI_CTL_BUDGET, &m), 0);
	gci_buf_free(&x.got);
}

/* Before the job begins; START comes by the next one. */
static void lost_before_start(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	rdv_join(w, 2);
	break_off(w, 2);
	rdv_pass(w, 2 * SEC);
	assert_true(resume(w, 2, 1, 0));
	break_off(w, 2);
	for (i = 0; i < NRANKS; i++)
		if (i != 2)
			rdv_join(w, i);
	assert_true(resume(w, 2, 2, 0));
	assert_true(rdv_gets(w, 2, GCI_CTL_START, &m));
	gci_ctl_message_free(&m);
	assert_int_equal(rdv_next_of(&w->ranks[2], GCI_CTL_START, &m), -1); /* once */
	rdv_pass(w, 100 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	assert_true(tells_abort(w, 2, "over"));
}

static void lost_for_good(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	break_off(w, 5);
	rdv_pass(w, 19 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	rdv_pass(w, 3 * SEC);
	assert_memory_equal(rdv_verdict(w), "rank 5 on t2: no sign of life for 20 s", 38);
	assert_false(resume(w, 5, 1, 0)); /* too late, and is told so */
	assert_true(w->ranks[5].closed);
}

static void lost_for_good_before_start(void **state)
{
	struct world *w = *state;

	rdv_join(w, 5);
	break_off(w, 5);
	rdv_pass(w, 25 * SEC);
	assert_memory_equal(rdv_verdict(w), "rank 5 on t2: its control connection was lost", 45);
}

/* Its process's end, of which others tell, is the end of its connection. */
static void lost_with_its_process(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	break_off(w, 5);
	rdv_end(w, 5, 0, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 5 on t2 exited with status 0 without leaving the "
					    "job (gcoll_finalize)");
}

/* A RESUME that was heard before, or made for other counts, and one of a rank that never came. */
static void who_may_not_resume(void **state)
{
	struct gci_ctl_resume m = {.rank = 5, .life = 7};
	struct gci_ctl_hello hello = rdv_hello_of(*state, 5);
	struct world *w = *state;
	struct wire twin = {0};
	struct gci_buf b = {0};
	uint8_t key[32];
	int i;

	rdv_join(w, 5);
	break_off(w, 5);
	assert_true(resume(w, 5, 7, 0));
	assert_int_equal(gci_ctl_resume_key(w->config.secret, 5, key), 0);
	for (i = 0; i < 3; i++) {
		m.life = i ? 8 : 7;
		assert_int_equal(gci_ctl_resume_token(key, &m, hello.session, m.token), 0);
		m.got += i == 1;
		m.rank = i == 2 ? 6 : 5;
		gci_ctl_put_resume(&b, &m);
		rdv_dial(w, &twin);
		rdv_give(w, &twin, &b);
		assert_true(twin.closed);
		assert_int_equal(twin.got.len, 0);
		memset(&twin, 0, sizeof(twin));
	}
	assert_false(w->ranks[5].closed);
	assert_true(tells_abort(w, 5, "over"));
}

/* More than it was ever told. */
static void a_rank_that_has_heard_too_much(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	break_off(w, 5);
	assert_false(resume(w, 5, 1, 1));
	assert_true(w->ranks[5].closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_join_and_leave),
		T(waits_reach_those_who_left),
		T(waiting_ranks_hear_beats),
		T(strangers_do_no_harm),
		T(strangers_keep_nobody_out),
		T(slow_to_speak),
		T(who_is_named),
		T(joining_twice),
		T(other_release),
		T(other_release_comes_too_late),
		T(other_schedules),
		T(broken_rank),
		T(byte_by_byte),
		T(many_in_one_read),
		T(families_meet),
		T(families_do_not_meet),
		T(loopback_leads_nowhere),
		T(all_on_loopback),
		T(a_lost_connection),
		T(an_old_connection_that_stands),
		T(lost_before_start),
		T(lost_for_good),
		T(lost_for_good_before_start),
		T(lost_with_its_process),
		T(who_may_not_resume),
		T(a_rank_that_has_heard_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
