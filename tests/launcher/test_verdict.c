/* SPDX-License-Identifier: MIT
 * Who failed first, and what is said of it. */
#include "tests/launcher/rdv.h"

#include <stdio.h>
#include <string.h>

static void late_ranks_are_named(void **state)
{
	struct world *w = *state;

	rdv_pass(w, 600 * SEC); /* nobody has come yet: not a program of ours, as far as we know */
	assert_string_equal(rdv_verdict(w), "");
	rdv_join(w, 0);
	rdv_join(w, 3);
	rdv_pass(w, 59 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	rdv_pass(w, 3 * SEC);
	assert_string_equal(rdv_verdict(w),
		"ranks 1-2,4-7 on k2-k3,t1-t4 did not join the job within 60 s of the first rank");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* Time in which the launcher did not run counts for nobody, whenever the first rank came. */
static void late_launcher(void **state)
{
	struct world *w = *state;

	rdv_pass(w, SEC);
	w->now += SEC;
	rdv_join(w, 0);
	w->now += 10 * SEC;
	gci_rdv_tick(w->rdv, w->now);
	assert_string_equal(rdv_verdict(w), "");
	rdv_pass(w, 59 * SEC);
	assert_string_equal(rdv_verdict(w), "");
	rdv_pass(w, 3 * SEC);
	assert_non_null(strstr(rdv_verdict(w), "did not join the job within 60 s"));
}

static void killed_rank(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	rdv_join_all(w);
	rdv_end(w, 3, 0, 9);
	assert_string_equal(rdv_verdict(w), "rank 3 on k4 was killed by signal 9 (Killed)");
	assert_string_equal(gci_rdv_verdict(w->rdv)->who, "rank 3 on k4");
	assert_true(rdv_next_of(&w->ranks[5], GCI_CTL_ABORT, &m) >= 0);
	assert_int_equal(m.failure.rank, 3);
	assert_string_equal(m.failure.text, rdv_verdict(w));
	rdv_end(w, 5, 1, 0);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 137);
}

/* The survivors' word comes first, the true cause within the grace. */
static void cause_beats_consequence(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 5, 3, "peer 3: connection lost");
	rdv_end(w, 5, 1, 0);
	rdv_hang_up(w, 5);
	rdv_say_fail(w, 6, 3, "peer 3: connection lost");
	rdv_pass(w, 400 * MS);
	assert_string_equal(rdv_verdict(w), "");
	rdv_end(w, 3, 0, 9);
	assert_string_equal(rdv_verdict(w), "rank 3 on k4 was killed by signal 9 (Killed)");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 137);
}

static void blamed_peer_that_lives(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 5, 3, "peer 3: connection lost");
	rdv_end(w, 5, 1, 0);
	rdv_pass(w, 600 * MS);
	assert_string_equal(rdv_verdict(w), "rank 3 on k4: peer 3: connection lost");
	assert_int_equal(gci_rdv_verdict(w->rdv)->rank, 3);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* Who finds a peer dead ends its connections; its word of that may come last. */
static void the_beginning_of_a_chain(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 1, 2, "peer 2: connection lost");
	rdv_pass(w, MS);
	rdv_say_fail(w, 2, 4, "peer 4: connection lost");
	rdv_pass(w, MS);
	rdv_say_fail(w, 5, 4, "peer 4: connection lost");
	rdv_pass(w, MS);
	rdv_say_fail(w, 4, 5, "peer 5: connection lost");
	rdv_pass(w, 600 * MS);
	assert_string_equal(rdv_verdict(w), "rank 4 on t1: peer 4: connection lost");
	assert_int_equal(gci_rdv_verdict(w->rdv)->rank, 4);
}

/* It had left, as all others have; then it is blamed, and the end of its process tells why. */
static void killed_on_its_way_out(void **state)
{
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	for (i = 0; i < NRANKS; i++)
		if (i != 5)
			rdv_say(w, i, GCI_CTL_BYE);
	rdv_say_fail(w, 5, 3, "closed without a goodbye");
	assert_string_equal(rdv_verdict(w), "");
	rdv_end(w, 3, 0, 9);
	assert_string_equal(rdv_verdict(w), "rank 3 on k4 was killed by signal 9 (Killed)");
}

/* One that blamed a peer is killed as well, before anybody knows of that peer's end. */
static void two_are_killed(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 5, 7, "peer 7: connection lost");
	rdv_hang_up(w, 7);
	rdv_end(w, 5, 0, 9);
	rdv_hang_up(w, 5);
	assert_string_equal(rdv_verdict(w), "");
	rdv_end(w, 7, 0, 9);
	assert_string_equal(rdv_verdict(w), "rank 7 on t4 was killed by signal 9 (Killed)");
}

static void own_fault_beats_blame(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	rdv_join_all(w);
	rdv_say_fail(w, 5, 2, "peer 2: connection lost");
	rdv_say_fail(w, 2, 2, "rank 2 on k3: cannot write /x: No space left on device");
	rdv_pass(w, 600 * MS);
	assert_string_equal(
		rdv_verdict(w), "rank 2 on k3: cannot write /x: No space left on device");
	assert_string_equal(
		gci_rdv_verdict(w->rdv)->cause, "cannot write /x: No space left on device");
	assert_true(rdv_next_of(&w->ranks[2], GCI_CTL_ABORT, &m) >= 0);
	rdv_end(w, 2, 3, 0); /* and its status is the job's */
	assert_int_equal(gci_rdv_exit_status(w->rdv), 3);
}

/* Nobody has anything to add: no grace. Of those who say the same, the lowest rank has said it. */
static void all_say_the_same(void **state)
{
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	for (i = 7; i; i--) {
		rdv_say_fail(w, i, (int32_t)i, "unknown option -x");
		rdv_end(w, i, 2, 0);
		rdv_hang_up(w, i);
	}
	assert_string_equal(rdv_verdict(w), "");
	rdv_say_fail(w, 0, 0, "unknown option -x");
	assert_string_equal(rdv_verdict(w), "rank 0 on k1: unknown option -x");
	rdv_end(w, 0, 2, 0);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 2);
}

static void one_has_other_words(void **state)
{
	struct world *w = *state;
	uint32_t i;

	rdv_join_all(w);
	rdv_say_fail(w, 5, 5, "unknown option -y");
	rdv_pass(w, 10 * MS);
	for (i = 0; i < 8; i++)
		if (i != 5)
			rdv_say_fail(w, i, (int32_t)i, "unknown option -x");
	assert_string_equal(rdv_verdict(w), "rank 5 on t2: unknown option -y");
}

static void exit_status_with_words(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_end(w, 2, 4, 0); /* the words are still in the socket */
	rdv_pass(w, 100 * MS);
	assert_string_equal(rdv_verdict(w), "");
	rdv_say_fail(w, 2, 2, "cannot read /x");
	rdv_pass(w, 500 * MS);
	assert_string_equal(rdv_verdict(w), "rank 2 on k3: cannot read /x");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 4);
}

static void nobody_in_particular(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 2, -1, "no algorithm for this");
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "no algorithm for this");
	assert_int_equal(gci_rdv_verdict(w->rdv)->rank, -1);
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

/* Then the status speaks. */
static void failure_without_words(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 5, -1, "");
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), gcoll_strerror(gci_rdv_verdict(w->rdv)->status));
}

static void rank_out_of_range_is_nobody(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_say_fail(w, 2, 1000000, "bad things");
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "bad things");
}

static void nonzero_exit_of_a_foreign_program(void **state)
{
	struct world *w = *state;

	rdv_end(w, 1, 0, 0);
	assert_string_equal(rdv_verdict(w), "");
	rdv_end(w, 4, 3, 0);
	assert_string_equal(rdv_verdict(w), "rank 4 on t1 exited with status 3");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 3);
}

/* Of a program whose status 23 tells so, one that has left the job: no failure, but its status. */
static void a_partial_result(void **state)
{
	struct world *w = *state;
	uint32_t i;

	w->config.partial = 23;
	gci_rdv_free(w->rdv);
	assert_int_equal(gci_rdv_create(&w->rdv, &w->config, w->now), 0);
	rdv_join_all(w);
	for (i = 0; i < NRANKS; i++)
		rdv_say(w, i, GCI_CTL_BYE);
	for (i = 0; i < NRANKS; i++)
		rdv_end(w, i, i == 2 ? 23 : 0, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 2 on k3: a partial result (exit status 23)");
	assert_string_equal(gci_rdv_verb(gci_rdv_verdict(w->rdv)), ": ");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 23);
}

/* Of one that has not left, or of another status, it is a failure. */
static void a_status_that_is_no_result(void **state)
{
	struct world *w = *state;

	w->config.partial = 23;
	gci_rdv_free(w->rdv);
	assert_int_equal(gci_rdv_create(&w->rdv, &w->config, w->now), 0);
	rdv_join_all(w);
	rdv_end(w, 2, 23, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 2 on k3 exited with status 23");
	assert_string_equal(gci_rdv_verb(gci_rdv_verdict(w->rdv)), " failed: ");
}

static void foreign_programs_that_end_well(void **state)
{
	struct world *w = *state;
	uint32_t i;

	for (i = 0; i < NRANKS; i++)
		rdv_end(w, i, 0, 0);
	assert_true(gci_rdv_settled(w->rdv));
	assert_int_equal(gci_rdv_exit_status(w->rdv), 0);
}

static void leaving_without_bye(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_end(w, 2, 0, 0); /* its BYE may still be in the socket */
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "");
	assert_false(gci_rdv_settled(w->rdv));
	rdv_hang_up(w, 2);
	assert_false(gci_rdv_settled(w->rdv));
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 2 on k3 exited with status 0 without leaving the "
					    "job (gcoll_finalize)");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
}

static void bye_after_the_end_of_the_process(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_end(w, 2, 0, 0);
	rdv_say(w, 2, GCI_CTL_BYE);
	rdv_hang_up(w, 2);
	rdv_pass(w, 5 * SEC);
	assert_string_equal(rdv_verdict(w), "");
}

static void never_joining_while_others_wait(void **state)
{
	struct world *w = *state;

	rdv_end(w, 7, 0, 0);
	assert_string_equal(rdv_verdict(w), "");
	rdv_join(w, 0);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w),
		"rank 7 on t4 exited with status 0 without joining the job "
		"(gcoll_init), and others wait for it");
}

static void lost_control_connection(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	rdv_hang_up(w, 1);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 1 on k2: its control connection was lost");
}

static void say_call(struct world *w, uint32_t by, enum gci_ctl_type type, uint32_t rank,
	uint64_t op, const char *text)
{
	struct gci_ctl_call m = {.rank = rank, .comm = 3, .op = op};
	struct gci_buf b = {0};

	snprintf(m.text, sizeof(m.text), "%s", text);
	gci_ctl_put_call(&b, type, &m);
	rdv_give(w, &w->ranks[by], &b);
}

static void say_mismatch(struct world *w, uint32_t by)
{
	struct gci_ctl_failure m = {.status = GCOLL_ERR_MISMATCH,
		.rank = -1,
		.text = "rank 1 calls barrier, rank 2 " GCI_CTL_SOMETHING_ELSE};
	struct gci_buf b = {0};

	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &m);
	rdv_give(w, &w->ranks[by], &b);
}

/* Who finds that another calls something else has that one asked what. */
static void both_calls_are_told(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	rdv_join_all(w);
	say_call(w, 2, GCI_CTL_CALLED, 1, 5, "a guess"); /* nobody has asked */
	say_call(w, 1, GCI_CTL_ASK, NRANKS, 5, "");
	say_call(w, 1, GCI_CTL_ASK, 2, 5, "");
	say_mismatch(w, 1);
	assert_true(rdv_next_of(&w->ranks[2], GCI_CTL_ASK, &m) >= 0);
	assert_int_equal(m.call.rank, 1);
	assert_int_equal(m.call.comm, 3);
	assert_int_equal(m.call.op, 5);
	say_call(w, 3, GCI_CTL_CALLED, 1, 5, "not asked");
	say_call(w, 2, GCI_CTL_CALLED, 1, 6, "another operation");
	say_call(w, 2, GCI_CTL_CALLED, 1, 5, "bcast\nof 3 byte");
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "rank 1 calls barrier, rank 2 bcast?of 3 byte");
}

/* It may know no more, or answer too late. */
static void one_call_is_told(void **state)
{
	struct world *w = *state;

	rdv_join_all(w);
	say_call(w, 1, GCI_CTL_ASK, 2, 5, "");
	say_mismatch(w, 1);
	rdv_pass(w, SEC);
	say_call(w, 2, GCI_CTL_CALLED, 1, 5, "bcast");
	assert_string_equal(rdv_verdict(w), "rank 1 calls barrier, rank 2 something else");
}

static void launcher_could_not_start(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	gci_rdv_failed(w->rdv, 2, 127, "cannot run ./nothing: No such file or directory", w->now);
	rdv_drain(w);
	assert_string_equal(
		rdv_verdict(w), "rank 2 on k3: cannot run ./nothing: No such file or directory");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 127);
	/* A peer failed, as after any death: so all are told, also who comes later. */
	assert_int_equal(gci_rdv_verdict(w->rdv)->status, GCOLL_ERR_PEER);
	rdv_join(w, 4);
	assert_true(rdv_next_of(&w->ranks[4], GCI_CTL_ABORT, &m) >= 0);
	assert_int_equal(m.failure.status, GCOLL_ERR_PEER);
}

/* Nothing a rank does after that is the cause. */
static void launcher_gives_up(void **state)
{
	struct world *w = *state;
	struct gci_ctl_message m;

	rdv_join_all(w);
	gci_rdv_give_up(w->rdv, GCOLL_ERR_IO, "standard output: the disk is full", w->now);
	rdv_drain(w);
	assert_true(rdv_next_of(&w->ranks[3], GCI_CTL_ABORT, &m) >= 0);
	assert_int_equal(m.failure.status, GCOLL_ERR_IO);
	assert_int_equal(m.failure.rank, -1);
	rdv_end(w, 1, 0, 13);
	rdv_pass(w, SEC);
	assert_string_equal(rdv_verdict(w), "standard output: the disk is full");
	assert_string_equal(gci_rdv_verdict(w->rdv)->who, "");
	assert_int_equal(gci_rdv_exit_status(w->rdv), 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(late_ranks_are_named),
		T(late_launcher),
		T(killed_rank),
		T(cause_beats_consequence),
		T(blamed_peer_that_lives),
		T(the_beginning_of_a_chain),
		T(killed_on_its_way_out),
		T(two_are_killed),
		T(own_fault_beats_blame),
		T(all_say_the_same),
		T(one_has_other_words),
		T(exit_status_with_words),
		T(nobody_in_particular),
		T(failure_without_words),
		T(rank_out_of_range_is_nobody),
		T(nonzero_exit_of_a_foreign_program),
		T(a_partial_result),
		T(a_status_that_is_no_result),
		T(foreign_programs_that_end_well),
		T(leaving_without_bye),
		T(bye_after_the_end_of_the_process),
		T(never_joining_while_others_wait),
		T(lost_control_connection),
		T(both_calls_are_told),
		T(one_call_is_told),
		T(launcher_could_not_start),
		T(launcher_gives_up),
		cmocka_unit_test(lists_read_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
