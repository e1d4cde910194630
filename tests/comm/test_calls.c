/* SPDX-License-Identifier: MIT
 * Calls over the in-process network: several at once, time-outs, failures; types and operations. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/op.h"
#include "tests/comm/trial.h"

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
	job_set(&j, "bcast", "chain:segment=1");
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
	assert_int_equal(gcoll_comm_set(j.comm[0], "timeout", "500ms"), 0);
	assert_int_equal(gcoll_ibarrier(j.comm[0], &j.req[0]), 0);
	assert_int_equal(gcoll_ibarrier(j.comm[1], &j.req[1]), 0);
	gci_sleep_ns(600 * GCI_NS_PER_MS);
	assert_int_equal(gcoll_test(&j.req[0], &done), 0);
	while (j.req[0] || j.req[1]) {
		assert_int_equal(gcoll_test(&j.req[0], &done), 0);
		assert_int_equal(gcoll_test(&j.req[1], &done), 0);
	}
	assert_int_equal(gcoll_ibarrier(j.comm[0], &j.req[0]), 0);
	while (j.req[0] && !rc)
		rc = gcoll_test(&j.req[0], &done);
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

/* Products of 2x2 matrices over 32-bit integers do not commute. */
static void multiply(
	void *out, const void *left, const void *right, uint64_t n, enum gcoll_type type, void *ctx)
{
	uint64_t i;

	assert_int_equal(gcoll_type_size(type), 16);
	++*(uint64_t *)ctx;
	for (i = 0; i < n; i++) {
		uint32_t a[4], b[4], c[4];

		memcpy(a, (const char *)left + 16 * i, 16);
		memcpy(b, (const char *)right + 16 * i, 16);
		c[0] = a[0] * b[0] + a[1] * b[2];
		c[1] = a[0] * b[1] + a[1] * b[3];
		c[2] = a[2] * b[0] + a[3] * b[2];
		c[3] = a[2] * b[1] + a[3] * b[3];
		memcpy((char *)out + 16 * i, c, 16);
	}
}

static void check_matrices(struct job *j, const char *algorithm, enum gcoll_op op)
{
	enum { N = 300 };
	uint32_t *buf[MAX_RANKS], *want = gci_calloc(N, 16);
	struct gci_prng prng = {5};
	uint64_t calls = 0;
	int r, i, status[MAX_RANKS];

	job_set(j, "allreduce", algorithm);
	for (r = 0; r < j->n; r++) {
		buf[r] = gci_calloc(N, 16);
		for (i = 0; i < 4 * N; i++)
			buf[r][i] = (uint32_t)gci_prng_next(&prng);
		if (r)
			multiply(want, want, buf[r], N, GCOLL_ELEMENT(16), &calls);
		else
			memcpy(want, buf[r], N * 16);
	}
	for (r = 0; r < j->n; r++)
		if (gcoll_iallreduce(GCOLL_IN_PLACE, buf[r], N, GCOLL_ELEMENT(16), op, j->comm[r],
			    &j->req[r]))
			fail_msg("%s: %s", algorithm, gcoll_last_error());
	assert_int_equal(job_run(j, status), 0);
	for (r = 0; r < j->n; r++) {
		if (memcmp(buf[r], want, N * 16) != 0)
			fail_msg("%s: rank %d has a wrong product", algorithm, r);
		gci_free(buf[r]);
	}
	gci_free(want);
}

static void products_of_matrices(void **state)
{
	struct gci_coll coll = {.kind = GCI_ALLREDUCE, .order = GCI_RANK_ORDER};
	const struct gci_algorithm *a;
	uint64_t calls = 0;
	enum gcoll_op op;
	gcoll_req *req;
	int shuffle, n = 0;
	char x[16], y[16];
	struct job j;

	(void)state;
	assert_int_equal(gcoll_op_create(multiply, 0, &calls, &op), 0);
	for (shuffle = 0; shuffle < 2; shuffle++) {
		job_open(&j, (int[]){4, 2, 3, 0}, shuffle, 18, NULL);
		coll.topo = &j.comm[0]->topo;
		check_matrices(&j, "auto", op);
		gci_each_algorithm (a) {
			if (a->kind != GCI_ALLREDUCE)
				continue;
			if (!gci_ineligible(a, &coll)) {
				check_matrices(&j, a->name, op);
				n++;
				continue;
			}
			job_set(&j, "allreduce", a->name);
			assert_int_equal(
				gcoll_iallreduce(x, y, 1, GCOLL_ELEMENT(16), op, j.comm[0], &req),
				GCOLL_ERR_INVAL);
			assert_non_null(strstr(gcoll_last_error(), "order"));
		}
		job_close(&j);
	}
	assert_true(n > 0 && calls > 0);
	assert_int_equal(gcoll_op_free(op), 0);
	assert_int_equal(gcoll_op_free(op), GCOLL_ERR_INVAL);
}

static void every_type_and_operation(void **state)
{
	int t, o, r, status[MAX_RANKS], n = 0;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 1, 0}, 0, 19, NULL);
	for (t = 0; t < GCOLL_NTYPES; t++)
		for (o = 0; o < GCOLL_NOPS; o++) {
			enum gcoll_type type = (enum gcoll_type)t;
			enum gcoll_op op = (enum gcoll_op)o;
			gci_kernel kernel = gci_kernel_find(type, op);
			size_t nbytes = 5 * gcoll_type_size(type);
			unsigned char in[3][40] = {{0}}, out[3][40], want[40];

			/* Bit patterns that are small numbers in all types: sums are exact. */
			for (r = 0; r < 3; r++)
				in[r][0] = in[r][nbytes / 5] = (unsigned char)(r + 1);
			for (r = 0; r < 3 && kernel; r++)
				assert_int_equal(gcoll_iallreduce(in[r], out[r], 5, type, op,
							 j.comm[r], &j.req[r]),
					0);
			if (!kernel) {
				assert_int_equal(gcoll_iallreduce(in[0], out[0], 5, type, op,
							 j.comm[0], &j.req[0]),
					GCOLL_ERR_INVAL);
				assert_null(j.req[0]);
				continue;
			}
			assert_int_equal(job_run(&j, status), 0);
			kernel(want, in[0], in[1], 5);
			kernel(want, want, in[2], 5);
			if (op == GCOLL_AVG)
				gci_kernel_scale(type, want, 5, 3);
			for (r = 0; r < 3; r++)
				assert_memory_equal(out[r], want, nbytes);
			n++;
		}
	assert_true(n >= 8 * 8 + 3 + 2 * 5);
	job_close(&j);
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
		cmocka_unit_test(products_of_matrices),
		cmocka_unit_test(every_type_and_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
