/* SPDX-License-Identifier: MIT
 * The control server in simulated time: no sockets, no processes, no clock. */

#include "tests/test.h"

#include "base/mem.h"
#include "launcher/rendezvous.h"

#include <stdio.h>
#include <string.h>

#define NRANKS 8
#define SEC    GCI_NS_PER_S
#define MS     GCI_NS_PER_MS
#define START  (100 * SEC)

/* One end of a simulated connection. */
struct wire {
	struct gci_rdv_conn *conn;
	struct gci_buf got; /* what the launcher sent */
	int closed;
	int beating;
};

struct world {
	struct gci_rdv *rdv;
	struct gci_rdv_config config;
	struct wire ranks[NRANKS];
	uint64_t now;
};

static const char *const names[NRANKS] = {"k1", "k2", "k3", "k4", "t1", "t2", "t3", "t4"};
static const uint32_t hosts[NRANKS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void drain(struct world *w)
{
	struct gci_rdv_event ev;

	while (gci_rdv_next(w->rdv, &ev)) {
		struct wire *x = ev.user;

		assert_false(x->closed);
		if (ev.type == GCI_RDV_CLOSE) {
			x->closed = 1;
			x->conn = NULL;
		} else {
			gci_buf_put(&x->got, ev.data.data, ev.data.len);
			gci_buf_free(&ev.data);
		}
	}
}

static int setup(void **state)
{
	struct world *w = gci_calloc(1, sizeof(*w));

	w->config = (struct gci_rdv_config){.size = NRANKS,
		.names = names,
		.hosts = hosts,
		.grid = "[cluster k]\nhosts = k[1-8]\n",
		.table = "a table\n",
		.table_digest = 77,
		.beat_ns = SEC,
		.dead_ns = 20 * SEC,
		.start_ns = 60 * SEC,
		.grace_ns = 500 * MS};
	memset(w->config.secret, 0x5a, sizeof(w->config.secret));
	w->now = START;
	assert_int_equal(gci_rdv_create(&w->rdv, &w->config, w->now), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	int i;

	gci_rdv_free(w->rdv);
	for (i = 0; i < NRANKS; i++)
		gci_buf_free(&w->ranks[i].got);
	gci_free(w);
	return 0;
}

static void give(struct world *w, struct wire *x, struct gci_buf *bytes)
{
	gci_rdv_input(w->rdv, x->conn, bytes->data, bytes->len, w->now);
	gci_buf_free(bytes);
	drain(w);
}

static void dial(struct world *w, struct wire *x)
{
	x->conn = gci_rdv_open(w->rdv, x, w->now);
	assert_non_null(x->conn);
}

static struct gci_ctl_hello hello_of(struct world *w, uint32_t rank)
{
	struct gci_ctl_hello m = {.version = GCI_CTL_VERSION, .rank = rank};

	assert_int_equal(gci_ctl_token(w->config.secret, rank, m.token), 0);
	snprintf(m.addr, sizeof(m.addr), "10.0.0.%u:5000", rank + 1);
	return m;
}

static void say_hello(struct world *w, struct wire *x, const struct gci_ctl_hello *m)
{
	struct gci_buf b = {0};

	gci_ctl_put_hello(&b, m);
	give(w, x, &b);
}

static void join(struct world *w, uint32_t rank)
{
	struct gci_ctl_hello m = hello_of(w, rank);

	dial(w, &w->ranks[rank]);
	say_hello(w, &w->ranks[rank], &m);
	w->ranks[rank].beating = 1;
}

static void join_all(struct world *w)
{
	uint32_t i;

	for (i = 0; i < NRANKS; i++)
		join(w, i);
}

static void say(struct world *w, uint32_t rank, enum gci_ctl_type type)
{
	struct gci_buf b = {0};

	gci_ctl_put_plain(&b, type);
	give(w, &w->ranks[rank], &b);
}

static void say_fail(struct world *w, uint32_t by, int32_t rank, const char *text)
{
	struct gci_ctl_failure m = {.status = GCOLL_ERR_PEER, .rank = rank};
	struct gci_buf b = {0};

	snprintf(m.text, sizeof(m.text), "%s", text);
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &m);
	give(w, &w->ranks[by], &b);
}

static void hang_up(struct world *w, uint32_t rank)
{
	gci_rdv_closed(w->rdv, w->ranks[rank].conn, w->now);
	w->ranks[rank].conn = NULL;
	w->ranks[rank].beating = 0;
	drain(w);
}

static void end(struct world *w, uint32_t rank, int code, int sig)
{
	gci_rdv_exited(w->rdv, rank, code, sig, w->now);
	drain(w);
}

/* Lets `ns` pass: deadlines are met, and who beats does so twice a second. */
static void pass(struct world *w, uint64_t ns)
{
	uint64_t until = w->now + ns, beat = w->now;
	uint32_t i;

	while (w->now < until) {
		uint64_t next = gci_rdv_deadline(w->rdv);

		assert_true(next > w->now);
		w->now = next < until ? next : until;
		if (w->now >= beat) {
			beat = w->now + 500 * MS;
			for (i = 0; i < NRANKS; i++)
				if (w->ranks[i].beating && w->ranks[i].conn)
					say(w, i, GCI_CTL_BEAT);
		}
		gci_rdv_tick(w->rdv, w->now);
		drain(w);
	}
}

static const char *verdict(struct world *w)
{
	const struct gci_rdv_verdict *v = gci_rdv_verdict(w->rdv);

	return v ? v->sentence : "";
}

/* Takes messages up to one of `type` off what a rank got; counts those before. -1: none. */
static int next_of(struct wire *x, enum gci_ctl_type type, struct gci_ctl_message *m)
{
	struct gci_error e = {0};
	int skipped = 0;

	while (gci_ctl_get(&x->got, GCI_CTL_MAX_MESSAGE, m, &e) == 1) {
		if (m->type == type)
			return skipped;
		gci_ctl_message_free(m);
		skipped++;
	}
	assert_int_equal(e.status, 0);
	return -1;
}

static void all_join_and_leave(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	uint32_t i;

	for (i = 0; i < NRANKS - 1; i++)
		join(w, i);
	pass(w, 3 * SEC);
	assert_int_equal(next_of(&w->ranks[0], GCI_CTL_START, &m), -1);
	join(w, NRANKS - 1);
	for (i = 0; i < NRANKS; i++) {
		assert_true(next_of(&w->ranks[i], GCI_CTL_START, &m) >= 0);
		assert_int_equal(m.start.size, NRANKS);
		assert_int_equal(m.start.epoch, 1);
		assert_true(m.start.beat_ns == SEC && m.start.dead_ns == 20 * SEC);
		assert_string_equal(m.start.grid, w->config.grid);
		assert_string_equal(m.start.table, w->config.table);
		assert_true(m.start.table_digest == w->config.table_digest);
		assert_int_equal(m.start.ranks[6].host, 6);
		assert_string_equal(m.start.ranks[6].addr, "10.0.0.7:5000");
		gci_ctl_message_free(&m);
	}
	pass(w, 100 * SEC);
	assert_true(next_of(&w->ranks[0], GCI_CTL_BYE, &m) < 0);
	for (i = 0; i < NRANKS - 1; i++)
		say(w, i, GCI_CTL_BYE);
	assert_true(next_of(&w->ranks[0], GCI_CTL_BYE, &m) < 0);
	say(w, NRANKS - 1, GCI_CTL_BYE);
	for (i = 0; i < NRANKS; i++)
		assert_true(next_of(&w->ranks[i], GCI_CTL_BYE, &m) >= 0);
	assert_false(gci_rdv_settled(w->rdv));
	for (i = 0; i < NRANKS; i++) {
		hang_up(w, i);
		end(w, i, 0, 0);
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

	join_all(w);
	gci_ctl_put_wait(&b, &waits[0]);
	give(w, &w->ranks[5], &b);
	assert_int_equal(next_of(&w->ranks[2], GCI_CTL_WAIT, &m), -1);
	say(w, 2, GCI_CTL_BYE);
	for (i = 0; i < 3; i++) {
		gci_ctl_put_wait(&b, &waits[i]);
		give(w, &w->ranks[5], &b);
	}
	assert_true(next_of(&w->ranks[2], GCI_CTL_WAIT, &m) >= 0);
	assert_int_equal(m.wait.rank, 5);
	assert_int_equal(m.wait.comm, 7);
	assert_int_equal(m.wait.tag, 9);
	assert_int_equal(m.wait.seq, 11);
	assert_int_equal(next_of(&w->ranks[2], GCI_CTL_WAIT, &m), -1);
	hang_up(w, 2);
	gci_ctl_put_wait(&b, &waits[0]);
	give(w, &w->ranks[5], &b);
	pass(w, 3 * SEC);
	assert_string_equal(verdict(w), "");
}

static void waiting_ranks_hear_beats(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;
	int beats = 0;

	join(w, 0);
	pass(w, 30 * SEC);
	while (next_of(&w->ranks[0], GCI_CTL_BEAT, &m) == 0)
		beats++;
	assert_in_range(beats, 29, 31);
}

static void late_ranks_are_named(void **state)
{
	struct world *w = *state;

	pass(w, 600 * SEC); /* nobody has come yet: not a program of ours, as far as we know */
	assert_string_equal(verdict(w), "");
	join(w, 0);
	join(w, 3);
	pass(w, 59 * SEC);
	assert_string_equal(verdict(w), "");
	pass(w, 3 * SEC);
	assert_string_equal(verdict(w),
		"ranks 1-2,4-7 on k2-k3,t1-t4 did not join the job within 60 s of the first rank");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

static void killed_rank(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	join_all(w);
	end(w, 3, 0, 9);
	assert_string_equal(verdict(w), "rank 3 on k4 was killed by signal 9 (Killed)");
	assert_string_equal(gci_rdv_verdict(w->rdv)->who, "rank 3 on k4");
	assert_true(next_of(&w->ranks[5], GCI_CTL_ABORT, &m) >= 0);
	assert_int_equal(m.failure.rank, 3);
	assert_string_equal(m.failure.text, verdict(w));
	end(w, 5, 1, 0);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 137);
}

/* The survivors' word comes first, the true cause within the grace. */
static void cause_beats_consequence(void **state)
{
	struct world *w = *state;

	join_all(w);
	say_fail(w, 5, 3, "peer 3: connection lost");
	end(w, 5, 1, 0);
	hang_up(w, 5);
	say_fail(w, 6, 3, "peer 3: connection lost");
	pass(w, 400 * MS);
	assert_string_equal(verdict(w), "");
	end(w, 3, 0, 9);
	assert_string_equal(verdict(w), "rank 3 on k4 was killed by signal 9 (Killed)");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 137);
}

static void blamed_peer_that_lives(void **state)
{
	struct world *w = *state;

	join_all(w);
	say_fail(w, 5, 3, "peer 3: connection lost");
	end(w, 5, 1, 0);
	pass(w, 600 * MS);
	assert_string_equal(verdict(w), "rank 3 on k4: peer 3: connection lost");
	assert_int_equal(gci_rdv_verdict(w->rdv)->rank, 3);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

static void own_fault_beats_blame(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	join_all(w);
	say_fail(w, 5, 2, "peer 2: connection lost");
	say_fail(w, 2, 2, "rank 2 on k3: cannot write /x: No space left on device");
	pass(w, 600 * MS);
	assert_string_equal(verdict(w), "rank 2 on k3: cannot write /x: No space left on device");
	assert_string_equal(
		gci_rdv_verdict(w->rdv)->cause, "cannot write /x: No space left on device");
	assert_true(next_of(&w->ranks[2], GCI_CTL_ABORT, &m) >= 0);
	end(w, 2, 3, 0); /* and its status is the job's */
	assert_int_equal(gci_rdv_exit_status(w->rdv), 3);
}

static void exit_status_with_words(void **state)
{
	struct world *w = *state;

	join_all(w);
	end(w, 2, 4, 0); /* the words are still in the socket */
	pass(w, 100 * MS);
	assert_string_equal(verdict(w), "");
	say_fail(w, 2, 2, "cannot read /x");
	pass(w, 500 * MS);
	assert_string_equal(verdict(w), "rank 2 on k3: cannot read /x");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 4);
}

static void nobody_in_particular(void **state)
{
	struct world *w = *state;

	join_all(w);
	say_fail(w, 2, -1, "no algorithm for this");
	pass(w, SEC);
	assert_string_equal(verdict(w), "no algorithm for this");
	assert_int_equal(gci_rdv_verdict(w->rdv)->rank, -1);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

static void rank_out_of_range_is_nobody(void **state)
{
	struct world *w = *state;

	join_all(w);
	say_fail(w, 2, 1000000, "bad things");
	pass(w, SEC);
	assert_string_equal(verdict(w), "bad things");
}

static void silent_rank(void **state)
{
	struct world *w = *state;
	uint64_t before;

	join_all(w);
	pass(w, 10 * SEC);
	w->ranks[6].beating = 0;
	before = w->now;
	while (!*verdict(w))
		pass(w, 100 * MS);
	assert_in_range(w->now - before, 19 * SEC + 500 * MS, 20 * SEC + 100 * MS);
	assert_true(gci_rdv_is_silent(w->rdv, 6));
	assert_false(gci_rdv_is_silent(w->rdv, 5));
	assert_string_equal(verdict(w),
		"rank 6 on t3: no sign of life for 20 s (its host or its network link is down, or "
		"it is stopped)");
	end(w, 6, 0, 15);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* Behind a dead link a rank gives up by its own clock, a moment before ours. */
static void silent_rank_that_gives_up(void **state)
{
	struct world *w = *state;

	join_all(w);
	pass(w, 10 * SEC);
	w->ranks[5].beating = 0;
	pass(w, 18 * SEC);
	end(w, 5, 1, 0);
	pass(w, SEC);
	assert_string_equal(verdict(w),
		"rank 5 on t2: no sign of life for 20 s (its host or its network link is down, or "
		"it is stopped)");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* That it was heard a moment ago says that the link is well. */
static void exit_soon_after_a_beat(void **state)
{
	struct world *w = *state;

	join_all(w);
	pass(w, 10 * SEC);
	w->ranks[5].beating = 0;
	pass(w, 2 * SEC);
	end(w, 5, 4, 0);
	pass(w, SEC);
	assert_string_equal(verdict(w), "rank 5 on t2 exited with status 4");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 4);
}

static void silent_cluster_is_one_message(void **state)
{
	struct world *w = *state;
	uint32_t i;

	join_all(w);
	pass(w, 10 * SEC);
	for (i = 4; i < 8; i++) {
		pass(w, 100 * MS);
		w->ranks[i].beating = 0;
	}
	while (!*verdict(w))
		pass(w, 100 * MS);
	assert_string_equal(verdict(w),
		"ranks 4-7 on t1-t4: no sign of life for 20 s (their hosts or their network link "
		"are down, or they are stopped)");
}

/* We were stopped, not they. */
static void own_sleep_is_nobodys_silence(void **state)
{
	struct world *w = *state;

	join_all(w);
	pass(w, 5 * SEC);
	w->now += 1000 * SEC;
	gci_rdv_tick(w->rdv, w->now);
	pass(w, 15 * SEC);
	assert_string_equal(verdict(w), "");
}

static void nonzero_exit_of_a_foreign_program(void **state)
{
	struct world *w = *state;

	end(w, 1, 0, 0);
	assert_string_equal(verdict(w), "");
	end(w, 4, 3, 0);
	assert_string_equal(verdict(w), "rank 4 on t1 exited with status 3");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 3);
}

static void foreign_programs_that_end_well(void **state)
{
	struct world *w = *state;
	uint32_t i;

	for (i = 0; i < NRANKS; i++)
		end(w, i, 0, 0);
	assert_true(gci_rdv_settled(w->rdv));
	assert_int_equal(gci_rdv_exit_status(w->rdv), 0);
}

static void leaving_without_bye(void **state)
{
	struct world *w = *state;

	join_all(w);
	end(w, 2, 0, 0); /* its BYE may still be in the socket */
	pass(w, SEC);
	assert_string_equal(verdict(w), "");
	assert_false(gci_rdv_settled(w->rdv));
	hang_up(w, 2);
	assert_false(gci_rdv_settled(w->rdv));
	pass(w, SEC);
	assert_string_equal(verdict(w), "rank 2 on k3 exited with status 0 without leaving the "
					"job (gcoll_finalize)");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

static void bye_after_the_end_of_the_process(void **state)
{
	struct world *w = *state;

	join_all(w);
	end(w, 2, 0, 0);
	say(w, 2, GCI_CTL_BYE);
	hang_up(w, 2);
	pass(w, 5 * SEC);
	assert_string_equal(verdict(w), "");
}

static void never_joining_while_others_wait(void **state)
{
	struct world *w = *state;

	end(w, 7, 0, 0);
	assert_string_equal(verdict(w), "");
	join(w, 0);
	pass(w, SEC);
	assert_string_equal(verdict(w), "rank 7 on t4 exited with status 0 without joining the job "
					"(gcoll_init), and others wait for it");
}

static void lost_control_connection(void **state)
{
	struct world *w = *state;

	join_all(w);
	hang_up(w, 1);
	pass(w, SEC);
	assert_string_equal(verdict(w), "rank 1 on k2: its control connection was lost");
}

static void launcher_could_not_start(void **state)
{
	struct world *w = *state;

	gci_rdv_failed(w->rdv, 2, 127, "cannot run ./nothing: No such file or directory", w->now);
	drain(w);
	assert_string_equal(
		verdict(w), "rank 2 on k3: cannot run ./nothing: No such file or directory");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 127);
}

/* Nothing a rank does after that is the cause. */
static void launcher_gives_up(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	join_all(w);
	gci_rdv_give_up(w->rdv, GCOLL_ERR_IO, "standard output: the disk is full", w->now);
	drain(w);
	assert_true(next_of(&w->ranks[3], GCI_CTL_ABORT, &m) >= 0);
	assert_int_equal(m.failure.status, GCOLL_ERR_IO);
	assert_int_equal(m.failure.rank, -1);
	end(w, 1, 0, 13);
	pass(w, SEC);
	assert_string_equal(verdict(w), "standard output: the disk is full");
	assert_string_equal(gci_rdv_verdict(w->rdv)->who, "");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

static void strangers_do_no_harm(void **state)
{
	struct world *w = *state;
	struct wire x[6] = {{0}};
	struct gci_ctl_hello m = hello_of(w, 2);
	struct gci_buf b = {0};
	char big[8192];
	size_t i;

	join_all(w);
	for (i = 0; i < 6; i++)
		dial(w, &x[i]);
	m.token[31] ^= 1;
	say_hello(w, &x[0], &m);
	m = hello_of(w, 2);
	m.rank = NRANKS; /* out of range */
	say_hello(w, &x[1], &m);
	gci_buf_printf(&b, "GET / HTTP/1.1\r\n\r\n");
	give(w, &x[2], &b);
	memset(big, 0, sizeof(big));
	gci_store_u32((uint8_t *)big, GCI_CTL_MAX_HELLO + 1);
	gci_buf_put(&b, big, sizeof(big));
	give(w, &x[3], &b);
	gci_ctl_put_plain(&b, GCI_CTL_BYE);
	give(w, &x[4], &b);
	for (i = 0; i < 5; i++)
		assert_true(x[i].closed);
	assert_false(x[5].closed); /* says nothing: has 5 s */
	pass(w, 4 * SEC);
	assert_false(x[5].closed);
	pass(w, 3 * SEC);
	assert_true(x[5].closed);
	pass(w, 100 * SEC);
	assert_string_equal(verdict(w), "");
	for (i = 0; i < 6; i++)
		assert_int_equal(x[i].got.len, 0); /* and learn nothing */
}

static void strangers_are_bounded(void **state)
{
	struct world *w = *state;
	static struct wire x[GCI_RDV_STRANGERS + NRANKS];
	int i;

	for (i = 0; i < GCI_RDV_STRANGERS + NRANKS; i++)
		dial(w, &x[i]);
	assert_null(gci_rdv_open(w->rdv, &x[0], w->now));
	pass(w, 7 * SEC);
	join_all(w);
	assert_true(w->ranks[0].got.len > 0);
}

static void joining_twice(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = hello_of(w, 2);
	struct gci_ctl_message got;
	struct wire x = {0};

	join_all(w);
	dial(w, &x);
	say_hello(w, &x, &m);
	assert_int_equal(next_of(&x, GCI_CTL_ABORT, &got), 0);
	assert_string_equal(got.failure.text, "rank 2 has joined already");
	assert_true(x.closed);
	pass(w, 5 * SEC);
	assert_string_equal(verdict(w), "");
	gci_buf_free(&x.got);
}

static void other_release(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = hello_of(w, 2);

	m.version = GCI_CTL_VERSION + 1;
	dial(w, &w->ranks[2]);
	say_hello(w, &w->ranks[2], &m);
	assert_true(w->ranks[2].closed);
	pass(w, SEC);
	assert_string_equal(verdict(w), "rank 2 on k3: speaks version 3 of the control protocol, "
					"expected 2 (another release of gridcoll)");
}

static void bad_addresses(void **state)
{
	static const char *const bad[] = {"", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", ":5",
		"[::1:5", "[]:5", "host:5", "10.0.0.1:5x", "1::2:5"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		void *other;
		struct world *w;
		struct gci_ctl_hello m;

		setup(&other);
		w = other;
		m = hello_of(w, 0);
		snprintf(m.addr, sizeof(m.addr), "%s", bad[i]);
		dial(w, &w->ranks[0]);
		say_hello(w, &w->ranks[0], &m);
		pass(w, SEC);
		assert_string_equal(
			verdict(w), "rank 0 on k1: gave no usable address for data connections");
		teardown(&other);
	}
}

static void v6_addresses(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = hello_of(w, 0);

	snprintf(m.addr, sizeof(m.addr), "[fe80::1%%eth0]:5000");
	dial(w, &w->ranks[0]);
	say_hello(w, &w->ranks[0], &m);
	pass(w, SEC);
	assert_string_equal(verdict(w), "");
}

static void broken_rank(void **state)
{
	struct world *w = *state;
	struct gci_buf b = {0};

	join_all(w);
	gci_buf_put_u32(&b, 1);
	gci_buf_put_u8(&b, 99);
	give(w, &w->ranks[4], &b);
	assert_true(w->ranks[4].closed);
	pass(w, SEC);
	assert_string_equal(verdict(w), "rank 4 on t1: malformed control message of type 99");
}

/* Messages arrive in any pieces. */
static void byte_by_byte(void **state)
{
	struct world *w = *state;
	struct gci_ctl_hello m = hello_of(w, 0);
	struct gci_ctl_failure f = {.status = GCOLL_ERR_IO, .rank = 0, .text = "disk on fire"};
	struct gci_buf b = {0};
	size_t i;

	gci_ctl_put_hello(&b, &m);
	gci_ctl_put_plain(&b, GCI_CTL_BEAT);
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &f);
	dial(w, &w->ranks[0]);
	for (i = 0; i < b.len; i++)
		gci_rdv_input(w->rdv, w->ranks[0].conn, b.data + i, 1, w->now);
	gci_buf_free(&b);
	drain(w);
	pass(w, SEC);
	assert_string_equal(verdict(w), "rank 0 on k1: disk on fire");
	assert_int_equal(gci_rdv_verdict(w->rdv)->status, GCOLL_ERR_IO);
}

static void many_in_one_read(void **state)
{
	struct world *w = *state;
	struct gci_buf b = {0};
	int i;

	join_all(w);
	for (i = 0; i < 20000; i++)
		gci_ctl_put_plain(&b, GCI_CTL_BEAT);
	gci_ctl_put_plain(&b, GCI_CTL_BYE);
	give(w, &w->ranks[0], &b);
	end(w, 0, 0, 0);
	hang_up(w, 0);
	pass(w, SEC);
	assert_string_equal(verdict(w), "");
}

static void lists_read_well(void **state)
{
	static const char *const mixed[] = {"a", "a", "node09", "node10", "x9", "x11", "b", "b2"};
	static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	static const char *many[1000];
	static uint32_t odd[1000];
	static char space[1000][32];
	char out[GCI_RANKLIST_NBYTES];
	uint32_t i;

	(void)state;
	assert_string_equal(
		gci_ranklist(all, 8, mixed, out), "ranks 0-7 on a,node09-node10,x9,x11,b,b2");
	assert_string_equal(gci_ranklist(all + 1, 1, mixed, out), "rank 1 on a");
	for (i = 0; i < 1000; i++) {
		snprintf(space[i], sizeof(space[i]), "machine-%u-%u", i * 7 % 13, i);
		many[i] = space[i];
		odd[i] = i - i % 2;
	}
	gci_ranklist(odd, 1000, many, out);
	assert_non_null(strstr(out, ",... on "));
	assert_non_null(strstr(out, ",..."));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_join_and_leave),
		T(waits_reach_those_who_left),
		T(waiting_ranks_hear_beats),
		T(late_ranks_are_named),
		T(killed_rank),
		T(cause_beats_consequence),
		T(blamed_peer_that_lives),
		T(own_fault_beats_blame),
		T(exit_status_with_words),
		T(nobody_in_particular),
		T(rank_out_of_range_is_nobody),
		T(silent_rank),
		T(silent_rank_that_gives_up),
		T(exit_soon_after_a_beat),
		T(silent_cluster_is_one_message),
		T(own_sleep_is_nobodys_silence),
		T(nonzero_exit_of_a_foreign_program),
		T(foreign_programs_that_end_well),
		T(leaving_without_bye),
		T(bye_after_the_end_of_the_process),
		T(never_joining_while_others_wait),
		T(lost_control_connection),
		T(launcher_could_not_start),
		T(launcher_gives_up),
		T(strangers_do_no_harm),
		T(strangers_are_bounded),
		T(joining_twice),
		T(other_release),
		T(bad_addresses),
		T(v6_addresses),
		T(broken_rank),
		T(byte_by_byte),
		T(many_in_one_read),
		cmocka_unit_test(lists_read_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
