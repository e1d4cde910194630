/* SPDX-License-Identifier: MIT
 * Communicators made from others, multicasts, and messages, over the in-process network. */
#include "tests/test.h"

#include "base/mem.h"
#include "comm/comm.h"
#include "comm/op.h"
#include "tests/comm/trial.h"

#include <string.h>

/* ---- communicators */

static void split_all(struct job *j, gcoll_comm *const *from, int n, const int *color,
	const int *key, gcoll_comm **to)
{
	struct gci_split s[MAX_RANKS];
	gcoll_req *reqs[MAX_RANKS];
	int r, status[MAX_RANKS];

	for (r = 0; r < n; r++) {
		assert_int_equal(gci_split_start(&s[r], from[r], "split", color[r], key[r]), 0);
		reqs[r] = s[r].req;
	}
	assert_int_equal(job_run_all(j, reqs, status, n), 0);
	for (r = 0; r < n; r++)
		assert_int_equal(gci_split_end(&s[r], status[r], &to[r]), 0);
}

/* Two halves and one rank without any, in the opposite order; a part of a part; freed in between.
 */
static void parts_work_like_the_whole(void **state)
{
	const int color[7] = {1, 0, 1, -5, 0, 1, 1}, key[7] = {3, 0, 2, 0, 0, 1, 1}, zero[7] = {0};
	const int want[4] = {5, 6, 2, 0};
	gcoll_comm *part[7], *one[4], *two[2], *again[4], *sub[4];
	struct trial t = {.count = 500, .type = GCOLL_UINT32, .root = 1, .op = GCOLL_SUM};
	struct job j;
	int r, k;

	(void)state;
	job_open(&j, (int[]){3, 4, 0}, 0, 11, NULL);
	split_all(&j, j.comm, 7, color, key, part);
	assert_null(part[3]);
	for (r = 0; r < 4; r++) {
		one[r] = part[want[r]];
		assert_int_equal(gcoll_rank(one[r]), r);
		assert_int_equal(gcoll_size(one[r]), 4);
		assert_int_equal(gcoll_clusters(one[r]), 2);
	}
	two[0] = part[1];
	two[1] = part[4];
	for (k = 0; k < GCI_NKINDS; k++) {
		t.kind = (enum gci_kind)k;
		t.seed++;
		trial_run_on(&j, one, 4, &t);
		trial_run_on(&j, two, 2, &t);
		trial_run(&j, &t);
	}
	split_all(&j, one, 4, zero, zero, again);
	assert_true(again[0]->id > one[0]->id);
	for (r = 0; r < 4; r++)
		assert_int_equal(gcoll_comm_free(&one[r]), 0);
	trial_run_on(&j, again, 4, &t);
	split_all(&j, again, 4, (int[]){0, 0, 1, 0}, zero, sub);
	t.kind = GCI_ALLTOALL;
	trial_run_on(&j, (gcoll_comm *[]){sub[0], sub[1], sub[3]}, 3, &t);
	for (r = 0; r < 4; r++)
		assert_int_equal(gcoll_comm_free(&again[r]), 0);
	trial_run_on(&j, (gcoll_comm *[]){sub[0], sub[1], sub[3]}, 3, &t);
	assert_int_equal(gcoll_comm_free(&j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_free(NULL), 0);
	job_close(&j);
}

/* One rank has a new communicator, and uses it, before the others have theirs. */
static void early_messages_wait(void **state)
{
	const int n = 3;
	struct gci_split s[3];
	gcoll_comm *c[3];
	gcoll_req *reqs[3];
	uint32_t sum[3] = {1, 2, 4};
	int r, status[3];
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 1, 0}, 0, 12, NULL);
	for (r = 0; r < n; r++) {
		assert_int_equal(gci_split_start(&s[r], j.comm[r], "dup", 0, 0), 0);
		reqs[r] = s[r].req;
	}
	assert_int_equal(job_run_all(&j, reqs, status, n), 0);
	for (r = 0; r < n; r++) {
		assert_int_equal(gci_split_end(&s[r], status[r], &c[r]), 0);
		assert_int_equal(gcoll_iallreduce(GCOLL_IN_PLACE, &sum[r], 1, GCOLL_UINT32,
					 GCOLL_SUM, c[r], &reqs[r]),
			0);
		while (gci_mem_net_step(j.net))
			;
	}
	assert_int_equal(job_run_all(&j, reqs, status, n), 0);
	for (r = 0; r < n; r++)
		assert_int_equal(sum[r], 7);
	job_close(&j);
}

/* Messages reach the one of hundreds that they are for. */
static void many_communicators(void **state)
{
	enum { N = 300 };
	const int zero[2] = {0};
	static gcoll_comm *c[N][2];
	static uint32_t sum[N][2];
	static gcoll_req *reqs[2 * N];
	static int status[2 * N];
	struct job j;
	int i, r;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 25, NULL);
	for (i = 0; i < N; i++)
		split_all(&j, j.comm, 2, zero, zero, c[i]);
	for (i = 0; i < N; i += 2)
		for (r = 0; r < 2; r++)
			assert_int_equal(gcoll_comm_free(&c[i][r]), 0);
	for (r = 0; r < 2; r++)
		for (i = 1; i < N; i += 2) {
			sum[i][r] = (uint32_t)(i + r);
			assert_int_equal(
				gcoll_iallreduce(GCOLL_IN_PLACE, &sum[i][r], 1, GCOLL_UINT32,
					GCOLL_SUM, c[i][r], &reqs[2 * i + r]),
				0);
		}
	assert_int_equal(job_run_all(&j, reqs, status, 2 * N), 0);
	for (i = 1; i < N; i += 2)
		for (r = 0; r < 2; r++)
			assert_int_equal(sum[i][r], 2 * i + 1);
	job_close(&j);
}

static void busy_communicators_stay(void **state)
{
	const int zero[2] = {0};
	gcoll_comm *c[2];
	gcoll_req *req[2];
	int r, status[2];
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 13, NULL);
	split_all(&j, j.comm, 2, zero, zero, c);
	for (r = 0; r < 2; r++)
		assert_int_equal(gcoll_ibarrier(c[r], &req[r]), 0);
	assert_int_equal(gcoll_comm_free(&c[0]), GCOLL_ERR_INVAL);
	assert_int_equal(job_run_all(&j, req, status, 2), 0);
	assert_int_equal(gcoll_comm_free(&c[0]), 0);
	assert_null(c[0]);
	/* The other rank calls on what is no more. */
	assert_int_equal(gcoll_ibarrier(c[1], &req[1]), 0);
	job_run_all(&j, &req[1], status, 1);
	assert_int_equal(gcoll_ibarrier(j.comm[0], &req[0]), GCOLL_ERR_MISMATCH);
	assert_non_null(strstr(gcoll_last_error(), "freed"));
	job_close(&j);
}

/* Operations of several kinds on two communicators at once, waited for backwards. */
static void outstanding_on_both(void **state)
{
	enum { N = 30 };
	const int zero[5] = {0}, key[5] = {4, 3, 2, 1, 0};
	uint32_t(*in)[5][5] = gci_calloc(N, sizeof(*in)),
	(*out)[5][5] = gci_calloc(N, sizeof(*out));
	gcoll_req *reqs[N * 5];
	int status[N * 5], k, r, i;
	gcoll_comm *c[5];
	struct job j;

	(void)state;
	job_open(&j, (int[]){3, 2, 0}, 0, 24, NULL);
	split_all(&j, j.comm, 5, zero, key, c);
	for (k = 0; k < N; k++)
		for (r = 0; r < 5; r++) {
			/* A rank's operations keep their order on each communicator only. */
			int o = r % 2 ? k : k ^ 1;
			gcoll_comm *on = o % 2 ? c[r] : j.comm[r];
			gcoll_req **q = &reqs[(N - 1 - o) * 5 + r];

			for (i = 0; i < 5; i++)
				in[o][r][i] = (uint32_t)(o * 100 + gcoll_rank(on) * 10 + i);
			if (o % 3 == 0)
				assert_int_equal(gcoll_ialltoall(in[o][r], out[o][r], 1,
							 GCOLL_UINT32, on, q),
					0);
			else if (o % 3 == 1)
				assert_int_equal(gcoll_iallgather(in[o][r], out[o][r], 1,
							 GCOLL_UINT32, on, q),
					0);
			else
				assert_int_equal(gcoll_iallreduce(in[o][r], out[o][r], 5,
							 GCOLL_UINT32, GCOLL_MAX, on, q),
					0);
		}
	assert_int_equal(job_run_all(&j, reqs, status, N * 5), 0);
	for (k = 0; k < N; k++)
		for (r = 0; r < 5; r++)
			for (i = 0; i < 5; i++) {
				int me = k % 2 ? 4 - r : r;
				int want = k % 3 == 0 ? i * 10 + me : k % 3 == 1 ? i * 10 : 40 + i;

				assert_int_equal(out[k][r][i], k * 100 + want);
			}
	gci_free(in);
	gci_free(out);
	job_close(&j);
}

/* ---- multicasts */

static void multicasts_at_once(void **state)
{
	enum { N = 4, LEN = 3000 };
	static const int d0[] = {4, 1}, d1[] = {0, 2, 3, 5}, d2[] = {5};
	struct gcoll_multicast list[6][N];
	uint32_t *buf[6][N];
	int status[MAX_RANKS], r, k, again;
	struct job j;

	(void)state;
	job_open(&j, (int[]){3, 3, 0}, 1, 17, NULL);
	for (r = 0; r < 6; r++) {
		for (k = 0; k < N; k++)
			buf[r][k] = gci_calloc(LEN, 4);
		list[r][0] = (struct gcoll_multicast){buf[r][0], LEN, GCOLL_UINT32, 0, d0, 2};
		list[r][1] = (struct gcoll_multicast){buf[r][1], LEN, GCOLL_UINT32, 4, d1, 4};
		list[r][2] = (struct gcoll_multicast){buf[r][2], 1, GCOLL_UINT32, 0, d2, 1};
		list[r][3] = (struct gcoll_multicast){buf[r][3], LEN, GCOLL_UINT32, 2, NULL, 0};
		assert_int_equal(gcoll_multicasts_init(list[r], N, j.comm[r], &j.req[r]), 0);
	}
	for (again = 1; again <= 3; again++) {
		for (r = 0; r < 6; r++) {
			for (k = 0; k < N; k++)
				buf[r][k][0] =
					(uint32_t)(r == list[r][k].root ? again * 10 + k : 0);
			assert_int_equal(gcoll_start(j.req[r]), 0);
		}
		assert_int_equal(job_run(&j, status), 0);
		for (r = 0; r < 6; r++) {
			assert_int_equal(buf[r][0][0], r <= 1 || r == 4 ? again * 10 : 0);
			assert_int_equal(buf[r][1][0], r != 1 ? again * 10 + 1 : 0);
			assert_int_equal(buf[r][2][0], r % 5 ? 0 : again * 10 + 2);
		}
	}
	for (r = 0; r < 6; r++) {
		assert_int_equal(gcoll_req_free(&j.req[r]), 0);
		for (k = 0; k < N; k++)
			gci_free(buf[r][k]);
	}
	assert_int_equal(gcoll_multicast(&r, 1, GCOLL_BYTE, 0, (int[]){2, 2}, 2, j.comm[3]),
		GCOLL_ERR_INVAL);
	assert_int_equal(
		gcoll_multicast(&r, 1, GCOLL_BYTE, 0, (int[]){6}, 1, j.comm[3]), GCOLL_ERR_INVAL);
	assert_int_equal(
		gcoll_multicast(&r, 1, GCOLL_BYTE, 0, NULL, 3, j.comm[3]), GCOLL_ERR_INVAL);
	job_close(&j);
}

/* What the algorithm cannot run is refused by ranks outside of it as well: else they would count an
 * operation that the members do not, and the next one would never end. */
static void a_refused_multicast_counts_nowhere(void **state)
{
	static const int few[] = {1, 2}, many[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	int status[MAX_RANKS], r;
	uint32_t x[14] = {0};
	struct job j;

	(void)state;
	job_open(&j, (int[]){7, 7, 0}, 0, 19, NULL);
	job_set(&j, "bcast", "optimal");
	for (r = 0; r < 14; r++) {
		const struct gcoll_multicast list[] = {
			{&x[r], 1, GCOLL_UINT32, 0, few, 2}, {&x[r], 1, GCOLL_UINT32, 0, many, 12}};

		assert_int_equal(gcoll_imulticasts(list, 2, j.comm[r], &j.req[r]), GCOLL_ERR_INVAL);
		assert_non_null(strstr(gcoll_last_error(), "takes at most"));
		assert_null(j.req[r]);
	}
	for (r = 0; r < 14; r++)
		assert_int_equal(gcoll_ibarrier(j.comm[r], &j.req[r]), 0);
	assert_int_equal(job_run(&j, status), 0);
	job_close(&j);
}

/* A rank outside of a multicast knows of it: others who call something else in its place are found
 * before the numbers of operations drift apart. */
static void a_multicast_that_one_rank_calls(void **state)
{
	static const int dests[] = {1};
	int status[MAX_RANKS], r;
	uint32_t x = 0;
	struct job j;

	(void)state;
	job_open(&j, (int[]){3, 0}, 0, 20, NULL);
	assert_int_equal(
		gcoll_imulticast(&x, 1, GCOLL_UINT32, 0, dests, 1, j.comm[2], &j.req[2]), 0);
	assert_int_equal(gcoll_wait(&j.req[2]), 0);
	for (r = 0; r < 3; r++)
		assert_int_equal(gcoll_ibarrier(j.comm[r], &j.req[r]), 0);
	job_run(&j, status);
	assert_int_equal(j.comm[2]->engine->failure.status, GCOLL_ERR_MISMATCH);
	job_close(&j);
}

/* ---- messages */

/* Many at once, in both directions, received in another order than sent, on two communicators. */
static void message_storm(void **state)
{
	enum { N = 200 };
	const int zero[3] = {0};
	uint32_t *out = gci_calloc(3 * N, sizeof(*out)), *in = gci_calloc(3 * N, sizeof(*in));
	gcoll_req **reqs = gci_calloc(6 * N, sizeof(*reqs));
	int *status = gci_calloc(6 * N, sizeof(*status)), i, r, k = 0;
	gcoll_comm *c[3];
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 1, 0}, 0, 14, NULL);
	split_all(&j, j.comm, 3, zero, (int[]){2, 1, 0}, c);
	for (r = 0; r < 3; r++)
		for (i = 0; i < N; i++) {
			gcoll_comm *on = i % 2 ? c[r] : j.comm[r];
			int to = (gcoll_rank(on) + 1 + i / 2 % 3) % 3;

			out[r * N + i] = (uint32_t)(gcoll_rank(on) * 1000 + i);
			assert_int_equal(gcoll_isend(&out[r * N + i], 1, GCOLL_UINT32, to, i % 5,
						 on, &reqs[k++]),
				0);
		}
	for (r = 2; r >= 0; r--)
		for (i = 0; i < N; i++) {
			gcoll_comm *on = i % 2 ? c[r] : j.comm[r];
			int from = (gcoll_rank(on) + 2 - i / 2 % 3 + 3) % 3;

			assert_int_equal(gcoll_irecv(&in[r * N + i], 1, GCOLL_UINT32, from, i % 5,
						 on, &reqs[k++]),
				0);
		}
	assert_int_equal(job_run_all(&j, reqs, status, k), 0);
	for (r = 0; r < 3; r++)
		for (i = 0; i < N; i++) {
			gcoll_comm *on = i % 2 ? c[r] : j.comm[r];
			int from = (gcoll_rank(on) + 2 - i / 2 % 3 + 3) % 3;

			assert_int_equal(in[r * N + i], from * 1000 + i);
		}
	gci_free(out);
	gci_free(in);
	gci_free(reqs);
	gci_free(status);
	job_close(&j);
}

/* Whoever is first, whether the message is large or small: both counts are told. */
static void message_of_another_size(void **state)
{
	static char a[300000], b[300000];
	uint64_t counts[] = {7, 300000};
	int k, status[MAX_RANKS], rc, told;
	struct job j;

	(void)state;
	for (k = 0; k < 4; k++) {
		int first = k / 2;

		job_open(&j, (int[]){2, 0}, 0, 15, NULL);
		for (rc = 0; rc < 2; rc++) {
			if (rc == first)
				assert_int_equal(gcoll_isend(a, counts[k % 2], GCOLL_BYTE, 1, 3,
							 j.comm[0], &j.req[0]),
					0);
			else
				gcoll_irecv(b, 20, GCOLL_BYTE, 0, 3, j.comm[1], &j.req[1]);
			while (gci_mem_net_step(j.net))
				;
		}
		job_run(&j, status);
		/* One finds it; the launcher, which is not here, would tell the other. */
		for (rc = 0, told = 0; rc < 2; rc++) {
			const struct gci_ctl_failure *f = &j.comm[rc]->engine->failure;

			if (!f->status)
				continue;
			assert_int_equal(f->status, GCOLL_ERR_MISMATCH);
			assert_non_null(strstr(f->text, "20"));
			assert_non_null(strstr(f->text, k % 2 ? "300000" : "7"));
			told++;
		}
		assert_true(told > 0);
		job_close(&j);
	}
}

static void messages_to_oneself(void **state)
{
	uint32_t a = 5, b = 0;
	gcoll_req *req[2];
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 16, NULL);
	assert_int_equal(gcoll_send(&a, 1, GCOLL_UINT32, 1, 0, j.comm[1]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_recv(&a, 1, GCOLL_UINT32, 1, 0, j.comm[1]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_irecv(&b, 1, GCOLL_UINT32, 1, 0, j.comm[1], &req[0]), 0);
	assert_int_equal(gcoll_send(&a, 1, GCOLL_UINT32, 1, 0, j.comm[1]), 0);
	assert_int_equal(gcoll_wait(&req[0]), 0);
	assert_int_equal(b, 5);
	/* A failure ends one that waits. */
	assert_int_equal(gcoll_irecv(&b, 1, GCOLL_UINT32, 1, 1, j.comm[1], &req[0]), 0);
	gcoll_comm_abort(j.comm[1], "enough");
	assert_int_equal(gcoll_wait(&req[0]), GCOLL_ERR_ABORTED);
	job_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_work_like_the_whole),
		cmocka_unit_test(early_messages_wait),
		cmocka_unit_test(many_communicators),
		cmocka_unit_test(busy_communicators_stay),
		cmocka_unit_test(outstanding_on_both),
		cmocka_unit_test(multicasts_at_once),
		cmocka_unit_test(a_refused_multicast_counts_nowhere),
		cmocka_unit_test(a_multicast_that_one_rank_calls),
		cmocka_unit_test(message_storm),
		cmocka_unit_test(message_of_another_size),
		cmocka_unit_test(messages_to_oneself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
