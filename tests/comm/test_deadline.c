/* SPDX-License-Identifier: MIT
 * How long calls wait: for ranks that are late, for messages that do not move, and for those that
 * do. */

#include "tests/test.h"

#include "base/mem.h"
#include "comm/engine.h"
#include "comm/op.h"
#include "tests/comm/jobs.h"

#include <gridcoll/gridcoll.h>
#include <stdio.h>
#include <string.h>

#define COUNT    (8u << 20) /* far more than the network holds of a stream */
#define FLOOR_NS (200 * GCI_NS_PER_MS)
#define FLOOR    "auto:200ms"

static char *buffers[2];

/* Two ranks, one of which the network forgets after some of the message has moved. */
static void open_job(struct job *j, uint64_t freeze_after)
{
	struct gci_mem_faults faults = {.freeze_after = freeze_after, .freeze_rank = 1};
	int r;

	job_open(j, (int[]){2, 0}, 0, 4, &faults);
	for (r = 0; r < 2; r++)
		buffers[r] = gci_calloc(COUNT, 1);
}

static void close_job(struct job *j)
{
	job_close(j);
	gci_free(buffers[0]);
	gci_free(buffers[1]);
}

static void begin(struct job *j, int r)
{
	assert_int_equal(gcoll_ibcast(buffers[r], COUNT, GCOLL_BYTE, 0, j->comm[r], &j->req[r]), 0);
}

/* Calls of one rank until its time in them is over, or it fails, or is done. */
static int wait_for(struct job *j, int r, uint64_t ns)
{
	uint64_t end = gci_now_ns() + ns;
	int done = 0, rc = 0;

	while (j->req[r] && !rc && gci_now_ns() < end)
		rc = gcoll_test(&j->req[r], &done);
	return rc;
}

static void finish(struct job *j)
{
	int status[MAX_RANKS];

	assert_int_equal(job_run(j, status), 0);
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], 0);
}

static void late_ranks_are_waited_for(void **state)
{
	struct job j;
	int late;

	(void)state;
	for (late = 0; late < 2; late++) {
		open_job(&j, 0);
		job_set(&j, "timeout", FLOOR);
		begin(&j, !late);
		assert_int_equal(wait_for(&j, !late, 3 * FLOOR_NS), 0);
		assert_non_null(j.req[!late]);
		begin(&j, late);
		finish(&j);
		close_job(&j);
	}
}

/* Who asks for a time gets it, whyever the other one does not come. */
static void a_plain_timeout_spares_nobody(void **state)
{
	struct job j;

	(void)state;
	open_job(&j, 0);
	job_set(&j, "timeout", "200ms");
	begin(&j, 1);
	assert_int_equal(wait_for(&j, 1, 100 * FLOOR_NS), GCOLL_ERR_TIMEOUT);
	assert_non_null(strstr(gcoll_last_error(), "rank 1 (host) has waited 0.2 s for rank 0 "
						   "(host) to send a message of "));
	assert_int_equal(j.comm[1]->engine->failure.rank, -1);
	close_job(&j);
}

static void assert_given_up(struct job *j, int r, const char *verb)
{
	uint64_t before = gci_now_ns();
	char text[128];

	assert_int_equal(wait_for(j, r, 100 * FLOOR_NS), GCOLL_ERR_TIMEOUT);
	assert_true(gci_now_ns() - before >= FLOOR_NS);
	snprintf(text, sizeof(text), "s for rank %d (host) to %s a message of ", !r, verb);
	if (!strstr(gcoll_last_error(), text) || !strstr(gcoll_last_error(), "bcast of 8388608"))
		fail_msg("\"%s\" does not say \"%s\"", gcoll_last_error(), text);
	assert_int_equal(j->comm[r]->engine->failure.rank, !r);
}

static void a_message_that_stands_still_is_given_up(void **state)
{
	struct job j;
	int r;

	(void)state;
	for (r = 0; r < 2; r++) {
		open_job(&j, 20);
		job_set(&j, "bcast", "binomial");
		job_set(&j, "timeout", FLOOR);
		begin(&j, 0);
		begin(&j, 1);
		assert_given_up(&j, r, r ? "send" : "take");
		close_job(&j);
	}
}

static struct gci_op *only_op(gcoll_comm *c)
{
	assert_false(gci_list_empty(&c->ops));
	return gci_container(c->ops.next, struct gci_op, link);
}

static void long_operations_may_stand_still_for_longer(void **state)
{
	struct job j;

	(void)state;
	open_job(&j, 20);
	job_set(&j, "bcast", "binomial");
	job_set(&j, "timeout", FLOOR);
	begin(&j, 0);
	begin(&j, 1);
	only_op(j.comm[1])->expected_ns = 100 * FLOOR_NS / GCI_DEADLINE_SLACK;
	assert_int_equal(wait_for(&j, 1, 3 * FLOOR_NS), 0);
	assert_non_null(j.req[1]);
	only_op(j.comm[1])->expected_ns = 2 * FLOOR_NS / GCI_DEADLINE_SLACK;
	/* It looks again after a second at the latest. */
	assert_int_equal(wait_for(&j, 1, 100 * FLOOR_NS), GCOLL_ERR_TIMEOUT);
	close_job(&j);
}

/* Takes its time: the operation lasts several times the floor, and moves all the while. */
static void slow_xor(
	void *out, const void *left, const void *right, uint64_t n, enum gcoll_type type, void *ctx)
{
	const unsigned char *a = left, *b = right;
	unsigned char *to = out;
	uint64_t i;

	(void)type;
	(void)ctx;
	for (i = 0; i < n; i++)
		to[i] = a[i] ^ b[i];
	gci_sleep_ns(FLOOR_NS / 4);
}

static void what_moves_is_not_given_up(void **state)
{
	int r, status[MAX_RANKS];
	enum gcoll_op op;
	uint64_t before;
	struct job j;

	(void)state;
	open_job(&j, 0);
	job_set(&j, "timeout", FLOOR);
	job_set(&j, "reduce", "binomial");
	assert_int_equal(gcoll_op_create(slow_xor, 1, NULL, &op), 0);
	before = gci_now_ns();
	for (r = 0; r < 2; r++)
		assert_int_equal(gcoll_ireduce(buffers[r], r ? NULL : buffers[1] + COUNT / 2,
					 COUNT / 2, GCOLL_BYTE, op, 0, j.comm[r], &j.req[r]),
			0);
	assert_int_equal(job_run(&j, status), 0);
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], 0);
	assert_true(gci_now_ns() - before > 3 * FLOOR_NS);
	assert_int_equal(gcoll_op_free(op), 0);
	close_job(&j);
}

static void settings_are_checked(void **state)
{
	static const char *const wrong[] = {"", "auto:", "auto:0s", "auto:x", "automatic", "-1s"};
	struct job j;
	size_t i;

	(void)state;
	open_job(&j, 0);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(gcoll_comm_set(j.comm[0], "timeout", wrong[i]), GCOLL_ERR_INVAL);
		assert_non_null(strstr(gcoll_last_error(), "expected never, auto, auto:TIME or"));
	}
	job_set(&j, "timeout", "auto");
	assert_true(j.comm[0]->engine->settings.floor_ns == 10 * GCI_NS_PER_S);
	job_set(&j, "timeout", "never");
	assert_true(j.comm[0]->engine->settings.floor_ns == 0);
	close_job(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_ranks_are_waited_for),
		cmocka_unit_test(a_plain_timeout_spares_nobody),
		cmocka_unit_test(a_message_that_stands_still_is_given_up),
		cmocka_unit_test(long_operations_may_stand_still_for_longer),
		cmocka_unit_test(what_moves_is_not_given_up),
		cmocka_unit_test(settings_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
