/* SPDX-License-Identifier: MIT
 * Every algorithm of the registry, run by the executor over the in-process network against a
 * naive oracle: the same data, computed in one loop. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/op.h"
#include "tests/collectives/topologies.h"
#include "transport/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 17

struct job {
	int n;
	struct gci_mem_net *net;
	gcoll_comm *comm[MAX_RANKS];
	const char *hosts[MAX_RANKS];
	gcoll_req *req[MAX_RANKS];
};

static void job_open(
	struct job *j, const int *sizes, uint64_t seed, const struct gci_mem_faults *faults)
{
	static const struct gci_mem_faults none = {0};
	struct gci_topo topo;
	int r;

	memset(j, 0, sizeof(*j));
	topology_make(&topo, sizes, 0, 3);
	j->n = topo.nranks;
	gci_topo_free(&topo);
	assert_int_equal(gci_mem_net_create(&j->net, j->n, faults ? faults : &none, seed), 0);
	for (r = 0; r < j->n; r++)
		j->hosts[r] = "host";
	for (r = 0; r < j->n; r++) {
		struct gci_tp_config config;

		topology_make(&topo, sizes, 0, 3);
		assert_int_equal(gci_comm_create(&j->comm[r], r, &topo, j->hosts), 0);
		config = gci_engine_tp_config(j->comm[r]->engine);
		assert_int_equal(gci_mem_create(&j->comm[r]->engine->tp, j->net, &config), 0);
	}
}

static void job_close(struct job *j)
{
	int r;

	for (r = 0; r < j->n; r++)
		gci_engine_free(j->comm[r]->engine);
	gci_mem_net_free(j->net);
}

/* Runs the network until all requests are over, or nothing moves any more. Returns the number
 * of ranks that are not done. */
static int run_all(struct job *j, int status[MAX_RANKS])
{
	int r, left = j->n, moved = 1;

	for (r = 0; r < j->n; r++)
		status[r] = 0;
	while (left && moved) {
		moved = 0;
		for (r = 0; r < j->n; r++) {
			int done = 0;

			if (!j->req[r])
				continue;
			status[r] = gcoll_test(&j->req[r], &done);
			if (done) {
				left--;
				moved = 1;
			}
		}
		while (gci_mem_net_step(j->net))
			moved = 1;
	}
	return left;
}

static void set_all(struct job *j, const char *key, const char *value)
{
	int r;

	for (r = 0; r < j->n; r++)
		assert_int_equal(gcoll_comm_set(j->comm[r], key, value), 0);
}

static void check_bcast(struct job *j, uint64_t count, int root)
{
	size_t nbytes = count * 4;
	uint8_t *want = gci_calloc(nbytes, 1), *buf[MAX_RANKS];
	struct gci_prng prng = {count + (uint64_t)root};
	int r, status[MAX_RANKS];
	size_t i;

	for (i = 0; i < nbytes; i++)
		want[i] = (uint8_t)gci_prng_next(&prng);
	for (r = 0; r < j->n; r++) {
		buf[r] = gci_calloc(nbytes, 1);
		if (r == root)
			memcpy(buf[r], want, nbytes);
		assert_int_equal(
			gcoll_ibcast(buf[r], count, GCOLL_INT32, root, j->comm[r], &j->req[r]), 0);
	}
	assert_int_equal(run_all(j, status), 0);
	for (r = 0; r < j->n; r++) {
		assert_int_equal(status[r], 0);
		assert_memory_equal(buf[r], want, nbytes);
		gci_free(buf[r]);
	}
	gci_free(want);
}

/* Integers: bit-exact. */
static void check_allreduce(struct job *j, uint64_t count, enum gcoll_op op, int in_place)
{
	uint32_t *in[MAX_RANKS], *out[MAX_RANKS], *want = gci_calloc(count, 4);
	struct gci_prng prng = {count};
	int r, status[MAX_RANKS];
	uint64_t i;

	for (r = 0; r < j->n; r++) {
		in[r] = gci_calloc(count, 4);
		out[r] = gci_calloc(count, 4);
		for (i = 0; i < count; i++) {
			in[r][i] = (uint32_t)gci_prng_next(&prng);
			if (!r)
				want[i] = in[r][i];
			else if (op == GCOLL_SUM)
				want[i] += in[r][i];
			else
				want[i] = in[r][i] > want[i] ? in[r][i] : want[i];
		}
		if (in_place && count)
			memcpy(out[r], in[r], count * 4);
		assert_int_equal(gcoll_iallreduce(in_place ? GCOLL_IN_PLACE : in[r], out[r], count,
					 GCOLL_UINT32, op, j->comm[r], &j->req[r]),
			0);
	}
	assert_int_equal(run_all(j, status), 0);
	for (r = 0; r < j->n; r++) {
		assert_int_equal(status[r], 0);
		assert_memory_equal(out[r], want, count * 4);
		gci_free(in[r]);
		gci_free(out[r]);
	}
	gci_free(want);
}

static void check_barrier(struct job *j)
{
	int r, status[MAX_RANKS], last = j->n - 1, done;

	/* Nobody leaves while one is missing. */
	for (r = 0; r < last; r++)
		assert_int_equal(gcoll_ibarrier(j->comm[r], &j->req[r]), 0);
	while (gci_mem_net_step(j->net))
		;
	for (r = 0; r < last; r++) {
		assert_int_equal(gcoll_test(&j->req[r], &done), 0);
		assert_false(done);
	}
	assert_int_equal(gcoll_ibarrier(j->comm[last], &j->req[last]), 0);
	assert_int_equal(run_all(j, status), 0);
	for (r = 0; r < j->n; r++)
		assert_int_equal(status[r], 0);
}

static void check_algorithm(const struct gci_algorithm *a, const int *sizes, uint64_t seed)
{
	static const char *const parameters[] = {"", ":senders=1", ":senders=2", ":segment=100"};
	struct job j;
	uint64_t counts[] = {0, 1, 5, 17, 1009, 30011};
	char value[64];
	size_t i, p;

	job_open(&j, sizes, seed, NULL);
	for (p = 0; p < sizeof(parameters) / sizeof(*parameters); p++) {
		if ((strstr(parameters[p], "senders") && !(a->traits & GCI_USES_SENDERS)) ||
			(strstr(parameters[p], "segment") && !(a->traits & GCI_USES_SEGMENT)))
			continue;
		snprintf(value, sizeof(value), "%s%s", a->name, parameters[p]);
		set_all(&j, gci_kind_name(a->kind), value);
		for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
			if (a->kind == GCI_BCAST) {
				check_bcast(&j, counts[i], 0);
				check_bcast(&j, counts[i], (int)(counts[i] % (unsigned)j.n));
			} else if (a->kind == GCI_ALLREDUCE) {
				check_allreduce(&j, counts[i], GCOLL_SUM, 0);
				check_allreduce(&j, counts[i], GCOLL_MAX, 1);
			} else if (!i) {
				check_barrier(&j);
			}
		}
	}
	job_close(&j);
}

static void against_oracle(void **state)
{
	const struct gci_algorithm *a;
	int p, seed = 1;

	(void)state;
	gci_each_algorithm (a) {
		for (p = 1; p <= MAX_RANKS; p += 1 + (p > 5))
			check_algorithm(a, (int[]){p, 0}, (uint64_t)seed++);
		for (p = 1; p <= 8; p++)
			check_algorithm(a, (int[]){p, 9 - p, 0}, (uint64_t)seed++);
		check_algorithm(a, (int[]){8, 8, 0}, (uint64_t)seed++);
		check_algorithm(a, (int[]){3, 1, 4, 2, 0}, (uint64_t)seed++);
	}
}

/* Longer than a window: several instances of the schedule are under way. */
static void many_windows(void **state)
{
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 1, 0}, 7, NULL);
	check_bcast(&j, (5ull * GCI_WINDOW_NBYTES + 1000) / 4, 1);
	set_all(&j, "bcast", "farfirst");
	check_bcast(&j, (4ull * GCI_WINDOW_NBYTES) / 4, 2);
	check_allreduce(&j, (2ull * GCI_WINDOW_NBYTES + 36) / 4, GCOLL_SUM, 1);
	job_close(&j);
}

/* Several operations at once, ended in any order. */
static void outstanding(void **state)
{
	enum { N = 12 };
	struct job j;
	gcoll_req *req[N][MAX_RANKS];
	uint32_t *buf[N][MAX_RANKS], i;
	int r, k, left, done;

	(void)state;
	job_open(&j, (int[]){3, 2, 0}, 3, NULL);
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
	job_open(&j, (int[]){2, 1, 0}, 9, NULL);
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
	job_open(&j, (int[]){2, 1, 0}, 4, NULL);
	set_all(&j, "bcast", "pipeline:segment=1");
	check_bcast(&j, 300000, 0);
	job_close(&j);
}

/* Waiting counts, computing does not; and he who waits is not to blame. */
static void the_timeout_counts_waiting(void **state)
{
	struct job j;
	int done, rc = 0;

	(void)state;
	job_open(&j, (int[]){2, 0}, 4, NULL);
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
		job_open(&j, (int[]){2, 0}, 3, NULL);
		assert_int_equal(gcoll_ibcast(a, 64, GCOLL_INT32, 0, j.comm[0], &j.req[0]), 0);
		if (!strcmp(other[k], "count"))
			gcoll_ibcast(b, 63, GCOLL_INT32, 0, j.comm[1], &j.req[1]);
		else if (!strcmp(other[k], "root"))
			gcoll_ibcast(b, 64, GCOLL_INT32, 1, j.comm[1], &j.req[1]);
		else
			gcoll_iallreduce(GCOLL_IN_PLACE, b, 64, GCOLL_INT32, GCOLL_SUM, j.comm[1],
				&j.req[1]);
		run_all(&j, status);
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
	job_open(&j, (int[]){3, 3, 0}, 5, &faults);
	for (r = 0; r < j.n; r++) {
		buf[r] = gci_calloc(1 << 20, 4);
		assert_int_equal(gcoll_iallreduce(GCOLL_IN_PLACE, buf[r], 1 << 20, GCOLL_INT32,
					 GCOLL_SUM, j.comm[r], &j.req[r]),
			0);
	}
	run_all(&j, status);
	/* Without a launcher only those who deal with the dead rank learn of it. */
	assert_true(status[0] == GCOLL_ERR_PEER || status[1] == GCOLL_ERR_PEER);
	assert_int_not_equal(gcoll_barrier(j.comm[status[0] ? 0 : 1]), 0); /* and stay dead */
	job_close(&j);
	for (r = 0; r < 6; r++)
		gci_free(buf[r]);
}

static void bad_arguments(void **state)
{
	uint32_t x = 0;
	gcoll_req *req;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 1, NULL);
	assert_int_equal(gcoll_bcast(&x, 1, GCOLL_INT32, 2, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(NULL, 1, GCOLL_INT32, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(&x, 1, (enum gcoll_type)99, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(&x, UINT64_MAX, GCOLL_INT32, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_iallreduce(&x, &x, 1, GCOLL_FLOAT32, GCOLL_BXOR, j.comm[0], &req),
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
		cmocka_unit_test(against_oracle),
		cmocka_unit_test(many_windows),
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
