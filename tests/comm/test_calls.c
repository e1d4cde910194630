/* SPDX-License-Identifier: MIT
 * The public calls over the in-process network: what may be under way at once, what may be asked
 * for, and what is refused. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/op.h"
#include "comm/split.h"
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
	assert_int_equal(gcoll_irecv(&b, 1, GCOLL_UINT32, 1, 0, j.comm[1], &req[0]), 0);
	assert_int_equal(gcoll_send(&a, 1, GCOLL_UINT32, 1, 0, j.comm[1]), 0);
	assert_int_equal(gcoll_wait(&req[0]), 0);
	assert_int_equal(b, 5);
	/* A failure ends one that waits. */
	assert_int_equal(gcoll_irecv(&b, 1, GCOLL_UINT32, 1, 1, j.comm[1], &req[0]), 0);
	gcoll_abort(j.comm[1], "enough");
	assert_int_equal(gcoll_wait(&req[0]), GCOLL_ERR_ABORTED);
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

/* ---- operations of the user's */

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

/* ---- types */

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

/* ---- alltoallv, and what does not fit */

static void counts_that_do_not_fit(void **state)
{
	const uint64_t sends[2] = {1, 5}, receives[2] = {4, 1}, ones[2] = {1, 5};
	uint32_t a[8] = {0}, b[8], c[8] = {0}, d[8];
	int status[MAX_RANKS];
	struct job j;

	(void)state;
	job_open(&j, (int[]){1, 1, 0}, 0, 20, NULL);
	assert_int_equal(
		gcoll_ialltoallv(a, sends, NULL, b, ones, NULL, GCOLL_UINT32, j.comm[0], &j.req[0]),
		0);
	assert_int_equal(gcoll_ialltoallv(c, sends, NULL, d, receives, NULL, GCOLL_UINT32,
				 j.comm[1], &j.req[1]),
		0);
	job_run(&j, status);
	assert_int_equal(status[1], GCOLL_ERR_MISMATCH);
	assert_non_null(strstr(j.comm[1]->engine->failure.text,
		"rank 0 (host) sends 5 uint32 to rank 1 (host), which expects 4"));
	job_close(&j);
}

static int begin(const char *what, uint64_t count, enum gcoll_type type, int root, void *in,
	void *out, gcoll_comm *c, gcoll_req **req)
{
	uint64_t counts[2] = {count, count};

	if (!strcmp(what, "reduce"))
		return gcoll_ireduce(in, out, count, type, GCOLL_BXOR, root, c, req);
	if (!strcmp(what, "allreduce"))
		return gcoll_iallreduce(in, out, count, type, GCOLL_BXOR, c, req);
	if (!strcmp(what, "reduce_scatter"))
		return gcoll_ireduce_scatter(in, out, count, type, GCOLL_BXOR, c, req);
	if (!strcmp(what, "scatter"))
		return gcoll_iscatter(in, out, count, type, root, c, req);
	if (!strcmp(what, "gather"))
		return gcoll_igather(in, out, count, type, root, c, req);
	if (!strcmp(what, "gatherv"))
		return gcoll_igatherv(in, out, counts, NULL, type, root, c, req);
	if (!strcmp(what, "allgather"))
		return gcoll_iallgather(in, out, count, type, c, req);
	return gcoll_ialltoall(in, out, count, type, c, req);
}

/* Of every kind: another count, type, root, or kind; the message names what was called. */
static void every_mismatch_is_named(void **state)
{
	static const char *const kinds[] = {"reduce", "allreduce", "reduce_scatter", "scatter",
		"gather", "gatherv", "allgather", "alltoall"};
	static char buf[4][8192];
	size_t k;
	int how, status[MAX_RANKS];
	struct job j;

	(void)state;
	for (k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		for (how = 0; how < 4; how++) {
			const char *other = how == 3 ? kinds[(k + 1) % 8] : kinds[k], *text;
			int no_root = strcmp(kinds[k], "reduce") != 0 &&
				      !strstr(kinds[k], "gather") &&
				      strcmp(kinds[k], "scatter") != 0;
			int named;

			if (how == 2 && (no_root || !strcmp(kinds[k], "allgather")))
				continue;
			job_open(&j, (int[]){1, 1, 0}, 0, 21, NULL);
			assert_int_equal(begin(kinds[k], 64, GCOLL_INT32, 0, buf[0], buf[1],
						 j.comm[0], &j.req[0]),
				0);
			begin(other, how == 0 ? 63 : 64, how == 1 ? GCOLL_UINT32 : GCOLL_INT32,
				how == 2, buf[2], buf[3], j.comm[1], &j.req[1]);
			job_run(&j, status);
			gcoll_ibarrier(j.comm[0], &j.req[0]);
			gcoll_ibarrier(j.comm[1], &j.req[1]);
			while (gci_mem_net_step(j.net))
				;
			text = j.comm[0]->engine->failure.text;
			named = strstr(text, "calls") && strstr(text, "something else");
			text = j.comm[1]->engine->failure.text;
			named |= strstr(text, "calls") && strstr(text, "something else");
			if (!named)
				fail_msg("%s, how %d: \"%s\", \"%s\"", kinds[k], how,
					j.comm[0]->engine->failure.text, text);
			job_close(&j);
		}
}

/* ---- hostile arguments */

static void hostile_arguments(void **state)
{
	const uint64_t huge[2] = {UINT64_MAX, 2}, far[2] = {0, UINT64_MAX - 1}, one[2] = {1, 1};
	uint32_t x[8] = {0}, y[8];
	enum gcoll_op gone;
	gcoll_req *req, *kept;
	gcoll_comm *c;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 22, NULL);
	c = j.comm[0];
#define REFUSED(call, text)                                                            \
	do {                                                                           \
		assert_int_equal(call, GCOLL_ERR_INVAL);                               \
		if (!strstr(gcoll_last_error(), text))                                 \
			fail_msg("\"%s\", expected \"%s\"", gcoll_last_error(), text); \
	} while (0)
	REFUSED(gcoll_barrier(NULL), "communicator is NULL");
	REFUSED(gcoll_ibarrier(c, NULL), "req is NULL");
	REFUSED(gcoll_reduce(x, y, 1, GCOLL_INT32, GCOLL_SUM, -1, c), "root -1");
	REFUSED(gcoll_reduce(x, NULL, 1, GCOLL_INT32, GCOLL_SUM, 0, c), "receive in is NULL");
	REFUSED(gcoll_reduce(GCOLL_IN_PLACE, y, 1, GCOLL_INT32, GCOLL_SUM, 1, c), "root only");
	REFUSED(gcoll_reduce(x, y, 1, GCOLL_INT32, (enum gcoll_op)77, 0, c), "not defined");
	REFUSED(gcoll_allreduce(x, x + 1, 2, GCOLL_INT32, GCOLL_SUM, c), "overlap");
	REFUSED(gcoll_allreduce(x, GCOLL_IN_PLACE, 2, GCOLL_INT32, GCOLL_SUM, c), "IN_PLACE");
	REFUSED(gcoll_bcast(GCOLL_IN_PLACE, 2, GCOLL_INT32, 0, c), "IN_PLACE");
	REFUSED(gcoll_scatter(x, GCOLL_IN_PLACE, 1, GCOLL_INT32, 1, c), "root only");
	REFUSED(gcoll_scatter(NULL, y, 1, GCOLL_INT32, 0, c), "send from is NULL");
	REFUSED(gcoll_gather(x, y, UINT64_MAX / 2 + 1, GCOLL_BYTE, 0, c), "memory can hold");
	REFUSED(gcoll_allgather(x, y, 1ull << 61, GCOLL_INT32, c), "memory can hold");
	REFUSED(gcoll_alltoall(x, y, UINT64_MAX, GCOLL_BYTE, c), "memory can hold");
	REFUSED(gcoll_allgatherv(x, y, NULL, NULL, GCOLL_BYTE, c), "counts are NULL");
	REFUSED(gcoll_allgatherv(x, y, huge, NULL, GCOLL_BYTE, c), "memory can hold");
	REFUSED(gcoll_allgatherv(x, y, one, far, GCOLL_INT32, c), "memory can hold");
	REFUSED(gcoll_alltoallv(x, one, NULL, y, NULL, NULL, GCOLL_BYTE, c), "counts are NULL");
	REFUSED(gcoll_alltoallv(NULL, one, NULL, y, one, NULL, GCOLL_BYTE, c), "NULL");
	REFUSED(gcoll_bcast(x, 1, GCOLL_ELEMENT(0), 0, c), "element type");
	REFUSED(gcoll_bcast(x, UINT64_MAX, GCOLL_ELEMENT(3), 0, c), "memory can hold");
	REFUSED(gcoll_send(x, 1, GCOLL_BYTE, 2, 0, c), "dest 2");
	REFUSED(gcoll_send(x, 1, GCOLL_BYTE, 1, -1, c), "tag -1");
	REFUSED(gcoll_recv(NULL, 1, GCOLL_BYTE, 1, 0, c), "NULL");
	REFUSED(gcoll_multicasts(NULL, 2, c), "NULL");
	REFUSED(gcoll_comm_split(c, 0, 0, NULL), "NULL");
	REFUSED(gcoll_comm_set(c, NULL, "x"), "NULL");
	REFUSED(gcoll_comm_set(c, "order", "random"), "any or fixed");
	REFUSED(gcoll_comm_set(c, "bcast", "chain:degree=2:x"), "");
	REFUSED(gcoll_op_create(NULL, 1, NULL, &gone), "NULL");
	assert_int_equal(gcoll_op_create(multiply, 1, NULL, &gone), 0);
	assert_int_equal(gcoll_op_free(gone), 0);
	REFUSED(gcoll_allreduce(x, y, 1, GCOLL_INT32, gone, c), "freed");
	REFUSED(gcoll_start(NULL), "NULL");
	assert_int_equal(gcoll_barrier_init(c, &kept), 0);
	assert_int_equal(gcoll_wait(&kept), 0); /* not begun: done */
	assert_int_equal(gcoll_start(kept), 0);
	REFUSED(gcoll_start(kept), "under way");
	REFUSED(gcoll_req_free(&kept), "under way");
	assert_int_equal(gcoll_ibarrier(j.comm[1], &req), 0);
	assert_int_equal(gcoll_wait(&kept), 0);
	assert_non_null(kept);
	assert_int_equal(gcoll_req_free(&kept), 0);
	assert_null(kept);
	assert_int_equal(gcoll_wait(&req), 0);
	assert_int_equal(gcoll_wait(NULL), 0);
	/* A buffer that this rank does not use may be anything. */
	assert_int_equal(gcoll_ireduce(x, NULL, 1, GCOLL_INT32, GCOLL_SUM, 1, c, &req), 0);
	job_close(&j);
}

/* ---- lack of memory */

/* One operation of each sort on two ranks; the n-th allocation of rank 0's calls fails. Returns
 * whether it did. */
static int with_failure_at(unsigned long n, int sort)
{
	static const int dests[] = {1};
	const uint64_t counts[2] = {40, 3};
	static uint32_t in[2][200], out[2][200];
	int r, done, steps, status[2] = {0}, failed = 0;
	struct job j;

	job_open(&j, (int[]){1, 1, 0}, 0, 23, NULL);
	for (r = 1; r >= 0; r--) {
		gcoll_comm *c = j.comm[r];
		gcoll_req **q = &j.req[r];
		const uint64_t mine[2] = {r ? 3 : 40, 3};
		int rc = 0;

		if (!r)
			gci_mem_fail_at(n);
		if (sort < GCI_NKINDS) {
			static const char *const kinds[] = {[GCI_REDUCE] = "reduce",
				[GCI_ALLREDUCE] = "allreduce",
				[GCI_REDUCE_SCATTER] = "reduce_scatter",
				[GCI_SCATTER] = "scatter",
				[GCI_GATHER] = "gather",
				[GCI_ALLGATHER] = "allgather",
				[GCI_ALLTOALL] = "alltoall"};

			if (sort == GCI_BARRIER)
				rc = gcoll_ibarrier(c, q);
			else if (sort == GCI_BCAST)
				rc = gcoll_ibcast(out[r], 100, GCOLL_UINT32, 0, c, q);
			else
				rc = begin(kinds[sort], 50, GCOLL_UINT32, 0, in[r], out[r], c, q);
		} else if (sort == GCI_NKINDS) {
			rc = gcoll_ialltoallv(
				in[r], mine, NULL, out[r], mine, NULL, GCOLL_UINT32, c, q);
		} else if (sort == GCI_NKINDS + 1) {
			rc = gcoll_imulticast(out[r], 9, GCOLL_UINT32, 0, dests, 1, c, q);
		} else if (sort == GCI_NKINDS + 2) {
			rc = r ? gcoll_irecv(out[r], 9, GCOLL_UINT32, 0, 5, c, q)
			       : gcoll_isend(in[r], 9, GCOLL_UINT32, 1, 5, c, q);
		} else if (sort == GCI_NKINDS + 3) {
			rc = gcoll_ireduce_scatter(
				GCOLL_IN_PLACE, out[r], 50, GCOLL_UINT32, GCOLL_SUM, c, q);
		} else {
			rc = gcoll_iallgatherv(in[r], out[r], counts, NULL, GCOLL_UINT32, c, q);
		}
		if (rc)
			assert_null(*q);
		status[r] = rc;
	}
	for (steps = 0; steps < 2000 && (j.req[0] || j.req[1]); steps++)
		for (r = 0; r < 2; r++) {
			int rc = j.req[r] ? gcoll_test(&j.req[r], &done) : 0;

			status[r] = rc ? rc : status[r];
		}
	failed = gci_mem_failed();
	gci_mem_fail_at(0);
	/* All is well, or who is out of memory knows; nobody waits without a reason. */
	if (!failed)
		assert_true(!j.req[0] && !j.req[1] && !status[0] && !status[1]);
	if (failed && (j.req[0] || j.req[1] || status[0] || status[1]))
		assert_int_not_equal(
			j.comm[0]->engine->failure.status | j.comm[1]->engine->failure.status, 0);
	job_close(&j);
	return failed;
}

static void lack_of_memory(void **state)
{
	unsigned long n;
	int sort;

	(void)state;
	for (sort = 0; sort < GCI_NKINDS + 5; sort++) {
		for (n = 1; with_failure_at(n, sort); n++)
			assert_true(n < 2000);
		assert_true(n > 3);
	}
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
		cmocka_unit_test(parts_work_like_the_whole),
		cmocka_unit_test(early_messages_wait),
		cmocka_unit_test(busy_communicators_stay),
		cmocka_unit_test(outstanding_on_both),
		cmocka_unit_test(message_storm),
		cmocka_unit_test(message_of_another_size),
		cmocka_unit_test(messages_to_oneself),
		cmocka_unit_test(multicasts_at_once),
		cmocka_unit_test(products_of_matrices),
		cmocka_unit_test(every_type_and_operation),
		cmocka_unit_test(counts_that_do_not_fit),
		cmocka_unit_test(every_mismatch_is_named),
		cmocka_unit_test(hostile_arguments),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
