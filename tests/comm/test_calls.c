/* SPDX-License-Identifier: MIT
 * The public calls over the in-process network: what may be under way at once, what may be asked
 * for, and what is refused. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/op.h"
#include "tests/comm/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Several operations at once, ended in any order. */
static void outstanding(void **state)
{
	enum { N = 12 };
	struct job j;
	gcoll_req *req[N][MAX_RANKS];
	uint32_t *buf[N][MAX_RANKS], i;
	int r, k, left, done;

	(void)state;
	job_open(&j, (int[]){3, 2, 0}, 0, 3, NULL);
	for (k = 0; k < N; k++)
		for (r = 0; r < j.n; r++) {
			buf[k][r] = gci_calloc(5000, 4);
			for (i = 0; i < 5000; i++)
				buf[k][r][i] = (uint32_t)(k * 1000003) + i;
			if (k % 3 == 2)
				assert_int_equal(
					gcoll_iallreduce(GCOLL_IN_PLACE, buf[k][r], 5000,
						GCOLL_UINT32, GCOLL_SUM, j.comm[r], &req[k][r]),
					0);
			else
				assert_int_equal(gcoll_ibcast(buf[k][r], 5000, GCOLL_UINT32,
							 k % j.n, j.comm[r], &req[k][r]),
					0);
		}
	for (left = N * j.n; left;) {
		for (r = 0; r < j.n; r++)
			for (k = N - 1; k >= 0; k--) {
				if (!req[k][r])
					continue;
				assert_int_equal(gcoll_test(&req[k][r], &done), 0);
				left -= done;
			}
	}
	for (k = 0; k < N; k++)
		for (r = 0; r < j.n; r++) {
			for (i = 0; i < 5000; i++)
				assert_int_equal(
					buf[k][r][i], ((uint32_t)(k * 1000003) + i) *
							      (k % 3 == 2 ? (uint32_t)j.n : 1));
			gci_free(buf[k][r]);
		}
	job_close(&j);
}

/* More operations of different shape than schedules are kept. */
static void many_shapes(void **state)
{
	enum { N = 40 };
	gcoll_req *req[N][MAX_RANKS];
	uint32_t *buf[N][MAX_RANKS];
	int r, k, left, done;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 1, 0}, 0, 9, NULL);
	for (k = 0; k < N; k++)
		for (r = 0; r < j.n; r++) {
			buf[k][r] = gci_calloc(1000 + (size_t)k, 4);
			buf[k][r][k] = r ? 0 : 7 + (uint32_t)k;
			assert_int_equal(gcoll_ibcast(buf[k][r], 1000 + (uint64_t)k, GCOLL_UINT32,
						 0, j.comm[r], &req[k][r]),
				0);
		}
	for (left = N * j.n; left;)
		for (r = 0; r < j.n; r++)
			for (k = 0; k < N; k++) {
				if (!req[k][r])
					continue;
				assert_int_equal(gcoll_test(&req[k][r], &done), 0);
				left -= done;
			}
	for (k = 0; k < N; k++)
		for (r = 0; r < j.n; r++) {
			assert_int_equal(buf[k][r][k], 7 + k);
			gci_free(buf[k][r]);
		}
	job_close(&j);
}

/* A segment so small that a window of them could not be held is made larger. */
static void tiny_segments(void **state)
{
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 1, 0}, 0, 4, NULL);
	job_set(&j, "bcast", "pipeline:segment=1");
	trial_run(&j, &(struct trial){.kind = GCI_BCAST, .count = 100000, .type = GCOLL_INT32});
	job_close(&j);
}

/* Waiting counts, computing does not; and he who waits is not to blame. */
static void the_timeout_counts_waiting(void **state)
{
	struct job j;
	int done, rc = 0;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 4, NULL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "timeout", "50ms"), 0);
	assert_int_equal(gcoll_ibarrier(j.comm[0], &j.req[0]), 0);
	assert_int_equal(gcoll_ibarrier(j.comm[1], &j.req[1]), 0);
	gci_sleep_ns(100 * GCI_NS_PER_MS);
	assert_int_equal(gcoll_test(&j.req[0], &done), 0);
	while (j.req[0] || j.req[1]) {
		assert_int_equal(gcoll_test(&j.req[0], &done), 0);
		assert_int_equal(gcoll_test(&j.req[1], &done), 0);
	}
	assert_int_equal(gcoll_ibarrier(j.comm[0], &j.req[0]), 0);
	while (j.req[0] && !rc) {
		rc = gcoll_test(&j.req[0], &done);
		gci_sleep_ns(GCI_NS_PER_MS / 10);
	}
	assert_int_equal(rc, GCOLL_ERR_TIMEOUT);
	assert_non_null(strstr(gcoll_last_error(), "has waited"));
	assert_int_equal(j.comm[0]->engine->failure.rank, -1);
	job_close(&j);
}

/* Two ranks that call different operations learn it, instead of waiting for ever. */
static void mismatch_is_found(void **state)
{
	static const char *const other[] = {"count", "root", "kind"};
	uint32_t a[64] = {0}, b[64] = {0};
	int k, status[MAX_RANKS];
	struct job j;

	(void)state;
	for (k = 0; k < 3; k++) {
		job_open(&j, (int[]){2, 0}, 0, 3, NULL);
		assert_int_equal(gcoll_ibcast(a, 64, GCOLL_INT32, 0, j.comm[0], &j.req[0]), 0);
		if (!strcmp(other[k], "count"))
			gcoll_ibcast(b, 63, GCOLL_INT32, 0, j.comm[1], &j.req[1]);
		else if (!strcmp(other[k], "root"))
			gcoll_ibcast(b, 64, GCOLL_INT32, 1, j.comm[1], &j.req[1]);
		else
			gcoll_iallreduce(GCOLL_IN_PLACE, b, 64, GCOLL_INT32, GCOLL_SUM, j.comm[1],
				&j.req[1]);
		job_run(&j, status);
		/* Two roots are done as soon as they have sent: they learn of it in their next
		 * call. */
		status[0] |= gcoll_ibarrier(j.comm[0], &j.req[0]);
		status[1] |= gcoll_ibarrier(j.comm[1], &j.req[1]);
		assert_true(status[0] == GCOLL_ERR_MISMATCH || status[1] == GCOLL_ERR_MISMATCH);
		assert_non_null(strstr(gcoll_last_error(), "calls"));
		job_close(&j);
	}
}

static void death_ends_the_operation(void **state)
{
	const struct gci_mem_faults faults = {.kill_after = 40, .kill_rank = 2};
	uint32_t *buf[MAX_RANKS];
	int r, status[MAX_RANKS];
	struct job j;

	(void)state;
	job_open(&j, (int[]){3, 3, 0}, 0, 5, &faults);
	for (r = 0; r < j.n; r++) {
		buf[r] = gci_calloc(1 << 20, 4);
		assert_int_equal(gcoll_iallreduce(GCOLL_IN_PLACE, buf[r], 1 << 20, GCOLL_INT32,
					 GCOLL_SUM, j.comm[r], &j.req[r]),
			0);
	}
	job_run(&j, status);
	/* Without a launcher only those who deal with the dead rank learn of it. */
	assert_true(status[0] == GCOLL_ERR_PEER || status[1] == GCOLL_ERR_PEER);
	assert_int_not_equal(gcoll_barrier(j.comm[status[0] ? 0 : 1]), 0); /* and stay dead */
	job_close(&j);
	for (r = 0; r < 6; r++)
		gci_free(buf[r]);
}

static void bad_arguments(void **state)
{
	uint32_t x = 0, y = 0;
	gcoll_req *req;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 1, NULL);
	assert_int_equal(gcoll_bcast(&x, 1, GCOLL_INT32, 2, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(NULL, 1, GCOLL_INT32, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(&x, 1, (enum gcoll_type)99, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(&x, UINT64_MAX, GCOLL_INT32, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_iallreduce(&x, &y, 1, GCOLL_FLOAT32, GCOLL_BXOR, j.comm[0], &req),
		GCOLL_ERR_INVAL);
	assert_null(req);
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "nonsense"), GCOLL_ERR_INVAL);
	assert_non_null(strstr(gcoll_last_error(), "farfirst"));
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "farfirst:senders=x"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "streams", "65"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "farfirst:senders=2"), GCOLL_ERR_INVAL);
	assert_int_equal(
		gcoll_comm_set(j.comm[0], "bcast", "vandegeijn-mod:segment=1K"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "streams", "8"), 0);
	assert_int_equal(gcoll_ibarrier(j.comm[0], &req), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "streams", "8"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "socket_buffer", "3MB"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "colour", "red"), GCOLL_ERR_INVAL);
	job_close(&j);
}

static void outside_of_a_job(void **state)
{
	gcoll_comm *c;

	(void)state;
	unsetenv("GRIDCOLL_RANK");
	assert_int_equal(gcoll_init(&c), GCOLL_ERR_NOLAUNCHER);
	assert_null(c);
	gcoll_finalize(c);
}

/* What the launcher would never say: the variable is named. */
static void bad_environment(void **state)
{
	static const struct {
		const char *name, *value;
	} wrong[] = {{"GRIDCOLL_SIZE", "many"}, {"GRIDCOLL_RANK", "4"}, {"GRIDCOLL_RANK", "-1"},
		{"GRIDCOLL_SECRET_FD", ""}, {"GRIDCOLL_PORT_RANGE", "9-8"}};
	gcoll_comm *c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("GRIDCOLL_RENDEZVOUS", "127.0.0.1:1", 1);
		setenv("GRIDCOLL_SIZE", "4", 1);
		setenv("GRIDCOLL_RANK", "3", 1);
		setenv("GRIDCOLL_SECRET_FD", "0", 1);
		setenv(wrong[i].name, wrong[i].value, 1);
		assert_int_equal(gcoll_init(&c), GCOLL_ERR_INVAL);
		assert_null(c);
		if (!strstr(gcoll_last_error(), wrong[i].name))
			fail_msg("%s=%s: %s", wrong[i].name, wrong[i].value, gcoll_last_error());
		unsetenv(wrong[i].name);
	}
	unsetenv("GRIDCOLL_RANK");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outstanding),
		cmocka_unit_test(many_shapes),
		cmocka_unit_test(tiny_segments),
		cmocka_unit_test(the_timeout_counts_waiting),
		cmocka_unit_test(mismatch_is_found),
		cmocka_unit_test(death_ends_the_operation),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(outside_of_a_job),
		cmocka_unit_test(bad_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
