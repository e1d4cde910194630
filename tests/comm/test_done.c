/* SPDX-License-Identifier: MIT
 * Callbacks of requests: when they are called, what they may do. */
#include "tests/comm/jobs.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static struct job j;

struct told {
	int times, status;
	char text[256];
};

static void on_told(int status, void *ctx)
{
	struct told *t = ctx;

	t->times++;
	t->status = status;
	snprintf(t->text, sizeof(t->text), "%s", status ? gcoll_last_error() : "");
}

static void open_job(void)
{
	job_open(&j, (int[]){2, 1, 0}, 0, 7, NULL);
}

/* All ranks, until nothing moves any more. */
static void settle(void)
{
	int r, quiet;

	for (quiet = 0; quiet < 3; quiet++) {
		while (gci_mem_net_step(j.net))
			quiet = 0;
		for (r = 0; r < j.n; r++)
			gcoll_progress(j.comm[r], 0);
	}
}

static void called_once(void **state)
{
	struct told t[MAX_RANKS] = {{0}};
	int value = 0, r;

	(void)state;
	open_job();
	for (r = 0; r < j.n; r++) {
		value = r ? value : 5;
		assert_int_equal(gcoll_ibarrier(j.comm[r], &j.req[r]), 0);
		assert_int_equal(gcoll_on_done(&j.req[r], on_told, &t[r]), 0);
		assert_null(j.req[r]);
		assert_int_equal(t[r].times, 0);
	}
	settle();
	settle();
	for (r = 0; r < j.n; r++) {
		assert_int_equal(t[r].times, 1);
		assert_int_equal(t[r].status, 0);
		assert_int_equal(j.comm[r]->nrequests, 0);
	}
	job_close(&j);
	for (r = 0; r < j.n; r++)
		assert_int_equal(t[r].times, 1);
}

/* One that is over already is told from the next progress, not from gcoll_on_done. */
static void over_before(void **state)
{
	struct told t = {0};
	int r;

	(void)state;
	open_job();
	for (r = 0; r < j.n; r++)
		assert_int_equal(gcoll_ibarrier(j.comm[r], &j.req[r]), 0);
	settle();
	assert_int_equal(gcoll_on_done(&j.req[1], on_told, &t), 0);
	assert_int_equal(t.times, 0);
	gcoll_progress(j.comm[1], 0);
	assert_int_equal(t.times, 1);
	assert_int_equal(gcoll_wait(&j.req[0]), 0);
	assert_int_equal(gcoll_wait(&j.req[2]), 0);
	job_close(&j);
}

/* ---- what a callback may do */

static struct told inner;
static int depth, nrefused;

static void refused(int rc)
{
	assert_int_equal(rc, GCOLL_ERR_INVAL);
	assert_non_null(strstr(gcoll_last_error(), "callback"));
	nrefused++;
}

static void on_busy(int status, void *ctx)
{
	gcoll_comm *c = j.comm[0], *other;
	gcoll_req *pending = *(gcoll_req **)ctx, *req;
	uint64_t ops = c->next_op;
	int done = 1;

	assert_int_equal(status, 0);
	assert_int_equal(depth++, 0);
	refused(gcoll_barrier(c));
	refused(gcoll_wait(&pending));
	refused(gcoll_progress(c, 0));
	refused(gcoll_comm_dup(c, &other));
	assert_true(c->next_op == ops); /* others wait for nothing that was refused */
	assert_int_equal(gcoll_test(&pending, &done), 0);
	assert_int_equal(done, 0);
	assert_int_equal(gcoll_ibarrier(c, &req), 0);
	assert_int_equal(gcoll_on_done(&req, on_told, &inner), 0);
	depth--;
}

static void a_callback_begins_but_does_not_wait(void **state)
{
	gcoll_req *pending;
	int value = 0, r;

	(void)state;
	memset(&inner, 0, sizeof(inner));
	nrefused = 0;
	open_job();
	assert_int_equal(gcoll_irecv(&value, 1, GCOLL_INT32, 1, 9, j.comm[0], &pending), 0);
	for (r = 0; r < j.n; r++)
		assert_int_equal(gcoll_ibarrier(j.comm[r], &j.req[r]), 0);
	assert_int_equal(gcoll_on_done(&j.req[0], on_busy, &pending), 0);
	settle();
	assert_int_equal(nrefused, 4);
	for (r = 1; r < j.n; r++) {
		assert_int_equal(gcoll_wait(&j.req[r]), 0);
		assert_int_equal(gcoll_ibarrier(j.comm[r], &j.req[r]), 0);
	}
	settle();
	assert_int_equal(inner.times, 1);
	job_close(&j);
}

/* ---- prepared requests */

static gcoll_req *prepared;
static int nrounds;

static void on_round(int status, void *ctx)
{
	(void)ctx;
	assert_int_equal(status, 0);
	if (++nrounds < 3)
		assert_int_equal(gcoll_start(prepared), 0);
	else
		assert_int_equal(gcoll_req_free(&prepared), 0);
}

static void a_prepared_one_again_and_again(void **state)
{
	int done, r, i;

	(void)state;
	nrounds = 0;
	job_open(&j, (int[]){2, 0}, 0, 7, NULL);
	assert_int_equal(gcoll_barrier_init(j.comm[0], &prepared), 0);
	assert_int_equal(gcoll_on_done(&prepared, on_told, &inner), 0);
	assert_int_equal(gcoll_on_done(&prepared, on_round, NULL), 0); /* not begun: another one */
	assert_non_null(prepared);
	assert_int_equal(gcoll_wait(&prepared), 0); /* not begun */
	assert_int_equal(gcoll_start(prepared), 0);
	refused(gcoll_wait(&prepared));
	refused(gcoll_test(&prepared, &done));
	refused(gcoll_on_done(&prepared, on_told, NULL));
	assert_int_equal(gcoll_req_free(&prepared), GCOLL_ERR_INVAL);
	for (i = 0; i < 3; i++) {
		assert_int_equal(nrounds, i);
		assert_int_equal(gcoll_ibarrier(j.comm[1], &j.req[1]), 0);
		settle();
		assert_int_equal(gcoll_wait(&j.req[1]), 0);
	}
	assert_int_equal(nrounds, 3);
	assert_null(prepared);
	for (r = 0; r < j.n; r++)
		assert_int_equal(j.comm[r]->nrequests, 0);
	job_close(&j);
}

/* ---- ends that are not good */

static void a_failure_is_told(void **state)
{
	struct told t = {0};

	(void)state;
	open_job();
	assert_int_equal(gcoll_ibarrier(j.comm[0], &j.req[0]), 0);
	assert_int_equal(gcoll_on_done(&j.req[0], on_told, &t), 0);
	gcoll_comm_abort(j.comm[0], "had enough");
	assert_int_equal(gcoll_progress(j.comm[0], 0), GCOLL_ERR_ABORTED);
	assert_int_equal(t.times, 1);
	assert_int_equal(t.status, GCOLL_ERR_ABORTED);
	assert_string_equal(t.text, "had enough");
	job_close(&j);
}

static void what_is_cancelled_is_told(void **state)
{
	struct told t[3] = {{0}};
	int value;

	(void)state;
	open_job();
	assert_int_equal(gcoll_irecv(&value, 1, GCOLL_INT32, 1, 9, j.comm[0], &j.req[0]), 0);
	assert_int_equal(gcoll_on_done(&j.req[0], on_told, &t[0]), 0);
	/* A message to oneself is nobody's but the communicator's. */
	assert_int_equal(gcoll_irecv(&value, 1, GCOLL_INT32, 0, 9, j.comm[0], &j.req[0]), 0);
	assert_int_equal(gcoll_on_done(&j.req[0], on_told, &t[1]), 0);
	assert_int_equal(gcoll_barrier_init(j.comm[0], &prepared), 0);
	assert_int_equal(gcoll_on_done(&prepared, on_told, &t[2]), 0);
	job_close(&j);
	assert_int_equal(t[0].times, 1);
	assert_int_equal(t[0].status, GCOLL_ERR_ABORTED);
	assert_non_null(strstr(t[0].text, "cancelled"));
	assert_int_equal(t[1].times, 1);
	assert_int_equal(t[2].times, 0); /* was not begun */
}

/* ---- before sleeping */

static void spinning_adapts(void **state)
{
	struct gci_spin s;
	int i;

	(void)state;
	gci_spin_set(&s, 64000);
	assert_true(gci_spin_budget(&s) == 64000);
	gci_spin_learn(&s, 0);
	assert_true(gci_spin_budget(&s) == 32000);
	gci_spin_learn(&s, 1);
	assert_true(gci_spin_budget(&s) == 64000);
	for (i = 0; i < 100; i++)
		gci_spin_learn(&s, 0);
	assert_true(gci_spin_budget(&s) == 4000); /* never to nothing: it would not come back */
	gci_spin_set(&s, 0);
	gci_spin_learn(&s, 1);
	gci_spin_learn(&s, 0);
	assert_true(gci_spin_budget(&s) == 0);
}

static void spinning_is_set(void **state)
{
	static const char *const wrong[] = {"", "0", "101us", "1", "on", "-1us"};
	size_t i;

	(void)state;
	open_job();
	assert_true(gci_spin_budget(&j.comm[0]->engine->settings.spin) == 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "spin", "100us"), 0);
	assert_true(gci_spin_budget(&j.comm[0]->engine->settings.spin) == 100000);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(gcoll_comm_set(j.comm[0], "spin", wrong[i]), GCOLL_ERR_INVAL);
		assert_non_null(strstr(gcoll_last_error(), "100us"));
	}
	assert_true(gci_spin_budget(&j.comm[0]->engine->settings.spin) == 100000);
	assert_int_equal(gcoll_comm_set(j.comm[0], "spin", "off"), 0);
	assert_true(gci_spin_budget(&j.comm[0]->engine->settings.spin) == 0);
	job_close(&j);
}

static void nonsense(void **state)
{
	gcoll_req *none = NULL;

	(void)state;
	open_job();
	assert_int_equal(gcoll_on_done(NULL, on_told, NULL), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_on_done(&none, on_told, NULL), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_ibarrier(j.comm[0], &j.req[0]), 0);
	assert_int_equal(gcoll_on_done(&j.req[0], NULL, NULL), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_progress(NULL, 0), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_fd(NULL), GCOLL_ERR_INVAL);
	assert_true(gcoll_comm_timeout_ns(NULL) == GCOLL_NEVER);
	job_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(called_once),
		cmocka_unit_test(over_before),
		cmocka_unit_test(a_callback_begins_but_does_not_wait),
		cmocka_unit_test(a_prepared_one_again_and_again),
		cmocka_unit_test(a_failure_is_told),
		cmocka_unit_test(what_is_cancelled_is_told),
		cmocka_unit_test(spinning_adapts),
		cmocka_unit_test(spinning_is_set),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
