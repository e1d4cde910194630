/* SPDX-License-Identifier: MIT
 * Runs that are their own prediction, but for what a test changes. */
#include "tests/tools/timelines.h"

#include "base/clock.h"
#include "base/mem.h"
#include "tools/plan/explain.h"
#include "tools/plan/ways.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MS GCI_NS_PER_MS

struct run {
	struct made made; /* two clusters of four */
	struct gci_simnet net;
	struct gci_coll coll;
	struct gct_timeline predicted, actual;
	struct gci_sim_result result;
	struct gct_trace trace;
	struct gct_explanation x;
};

static void record(struct run *r)
{
	struct gct_trace *t = &r->trace;
	size_t i, k;

	*t = (struct gct_trace){.kind = r->coll.kind,
		.count = r->coll.count,
		.esize = r->coll.esize,
		.nranks = 8,
		.dilation = 1,
		.ns = r->result.ns,
		.hosts = (char **)r->made.names};
	t->windows = gci_calloc(r->predicted.n, sizeof(*t->windows));
	for (i = 0; i < r->predicted.n; i++) {
		const struct gct_span *s = &r->predicted.spans[i];
		struct gct_trace_window *w = t->nwindows ? &t->windows[t->nwindows - 1] : NULL;

		if (!w || w->rank != s->rank || w->window != s->window) {
			w = &t->windows[t->nwindows++];
			*w = (struct gct_trace_window){s->rank, s->window, 0, NULL};
			for (k = i; k < r->predicted.n && r->predicted.spans[k].rank == s->rank &&
				    r->predicted.spans[k].window == s->window;
				k++)
				w->nsteps++;
			w->at = gci_calloc(w->nsteps, 2 * sizeof(*w->at));
		}
		w->at[2 * s->step] = s->ready_ns;
		w->at[2 * s->step + 1] = s->to_ns;
	}
}

static void begin(struct run *r, enum gci_kind kind, const char *name, uint64_t count)
{
	*r = (struct run){.coll = {.kind = kind, .count = count, .esize = 4}};
	made_grid(&r->made, 2, 4);
	r->coll.topo = &r->made.topo;
	r->trace.how.algorithm = gci_algorithm_find(kind, name);
	assert_int_equal(gci_simnet_init(&r->net, &r->made.topo, NULL), 0);
	assert_int_equal(
		gct_way_simulate(&r->net, &r->coll,
			&(struct gci_candidate){.algorithm = gci_algorithm_find(kind, name)}, 0,
			&r->predicted, &r->result),
		0);
	record(r);
	r->trace.how.algorithm = gci_algorithm_find(kind, name);
}

static void end(struct run *r)
{
	size_t i;

	gct_explain_free(&r->x);
	for (i = 0; i < r->trace.nwindows; i++)
		gci_free(r->trace.windows[i].at);
	gci_free(r->trace.windows);
	gct_timeline_free(&r->predicted);
	gct_timeline_free(&r->actual);
	gci_sim_result_free(&r->result);
	gci_simnet_free(&r->net);
	made_free(&r->made);
}

static void explain(struct run *r)
{
	struct gci_error e = {0};

	if (gct_explain_join(&r->actual, &r->predicted, &r->net, &r->trace, "t", &e))
		fail_msg("%s", e.text);
	assert_int_equal(gct_explain_compare(&r->x, &r->predicted, &r->actual), 0);
}

/* A run that went as predicted ends as predicted in each part. */
static void as_predicted(void **state)
{
	uint64_t messages = 0;
	struct run r;
	size_t i;

	(void)state;
	begin(&r, GCI_ALLREDUCE, "rabenseifner-mod", 1 << 20);
	explain(&r);
	assert_true(r.x.n >= 4);
	for (i = 0; i < r.x.n; i++) {
		const struct gct_part *p = &r.x.parts[i];

		assert_true(p->actual.end_ns == p->predicted.end_ns);
		assert_true(p->predicted.start_ns <= p->predicted.end_ns);
		assert_true(p->predicted.busy_ns <= p->predicted.end_ns - p->predicted.start_ns);
		assert_int_equal(p->wan, p->phase && p->from != p->to);
		if (i)
			assert_true(p->predicted.start_ns >= p[-1].predicted.start_ns);
		messages += p->phase ? p->nmessages : 0;
	}
	assert_true(messages == r.result.nmessages);
	assert_true(r.x.late_ns == 0);
	end(&r);
}

/* One rank is late with all it does after some time: the run's phases tell. */
static void one_is_late(void **state)
{
	struct gci_buf text = {0};
	struct run r;
	size_t i;
	uint32_t k;

	(void)state;
	begin(&r, GCI_BCAST, "binomial", 1 << 20);
	for (i = 0; i < r.trace.nwindows; i++)
		for (k = 0; r.trace.windows[i].rank == 6 && k < r.trace.windows[i].nsteps; k++)
			r.trace.windows[i].at[2 * k + 1] += 500 * MS;
	r.trace.ns += 500 * MS;
	explain(&r);
	assert_int_equal(r.x.late_rank, 6);
	assert_true(r.x.late_ns == (int64_t)(500 * MS));
	assert_true(r.x.worst >= 0);
	assert_int_equal(r.x.parts[r.x.worst].to, 1);
	gct_explain_text(&(struct gct_explain_report){.trace = &r.trace,
				 .x = &r.x,
				 .clusters = r.made.clusters,
				 .nbytes = 4 << 20,
				 .predicted_ns = r.result.ns,
				 .basis = "from a test"},
		&text);
	assert_non_null(strstr(gci_buf_cstr(&text), "\nthey part most in \""));
	assert_non_null(
		strstr(gci_buf_cstr(&text), "rank 6 (c1h2) is farthest off: it ends 500 ms late"));
	gci_buf_free(&text);
	end(&r);
}

static void assert_refused(struct run *r, const char *message)
{
	struct gci_error e = {0};

	assert_int_equal(gct_explain_join(&r->actual, &r->predicted, &r->net, &r->trace, "t", &e),
		GCOLL_ERR_PARSE);
	assert_null(r->actual.spans);
	if (strncmp(e.text, message, strlen(message)) != 0)
		fail_msg("%s", e.text);
}

/* Steps that are missing, too many, or there twice. */
static void other_steps(void **state)
{
	struct gct_trace_window *w;
	struct run r;

	(void)state;
	begin(&r, GCI_BCAST, "chain", 1000);
	w = &r.trace.windows[1];
	assert_int_equal(w->nsteps, 2);
	w->nsteps = 1;
	assert_refused(&r, "t: rank 1's 1 steps of window 0 are not those of this algorithm");
	w->nsteps = 2;
	w->rank = 0;
	assert_refused(&r, "t: rank 0's 2 steps of window 0 are not those of this algorithm");
	w->rank = 2;
	assert_refused(&r, "t: ");
	w->rank = 1;
	r.trace.nwindows--;
	assert_refused(
		&r, "t: 13 steps, expected each of the 14 of this algorithm on this grid once");
	r.trace.nwindows++;
	explain(&r);
	end(&r);
}

static void as_json(void **state)
{
	struct gci_buf text = {0};
	struct run r;
	json_t *root;

	(void)state;
	begin(&r, GCI_BCAST, "binomial", 1 << 20);
	explain(&r);
	r.trace.dilation = 10;
	assert_int_equal(gct_explain_json(&(struct gct_explain_report){.trace = &r.trace,
						  .x = &r.x,
						  .clusters = r.made.clusters,
						  .nbytes = 4 << 20,
						  .predicted_ns = r.result.ns,
						  .basis = "from a test"},
				 &text),
		0);
	root = json_loads(gci_buf_cstr(&text), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(
		json_integer_value(json_object_get(root, "predicted_ns")), r.result.ns / 10);
	assert_int_equal(json_array_size(json_object_get(root, "phases")), r.x.n);
	json_decref(root);
	gci_buf_free(&text);
	end(&r);
}

static void out_of_memory(void **state)
{
	struct gci_error e = {0};
	struct run r;
	unsigned long n;
	int rc;

	(void)state;
	begin(&r, GCI_ALLREDUCE, "tree", 1000);
	for (n = 1;; n++) {
		gci_error_clear(&e);
		gci_mem_fail_at(n);
		rc = gct_explain_join(&r.actual, &r.predicted, &r.net, &r.trace, "t", &e);
		if (!rc)
			rc = gct_explain_compare(&r.x, &r.predicted, &r.actual);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		gct_timeline_free(&r.actual);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(n > 5);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_predicted),
		cmocka_unit_test(one_is_late),
		cmocka_unit_test(other_steps),
		cmocka_unit_test(as_json),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
