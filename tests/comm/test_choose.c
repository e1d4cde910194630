/* SPDX-License-Identifier: MIT
 * How calls are run that nobody has chosen an algorithm for. */

#include "tests/test.h"

#include "comm/collective.h"
#include "tests/comm/jobs.h"
#include "tests/comm/trial.h"

#include <gridcoll/gridcoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NRANKS 5

/* All ranks have it. */
static void give_table(struct job *j, const struct gci_table *t)
{
	int r;

	for (r = 0; r < j->n; r++)
		j->comm[r]->engine->job.table = t;
}

static void put(struct gci_table *t, enum gci_kind kind, uint64_t nbytes, const char *how)
{
	struct gci_table_entry e = {.nbytes = nbytes, .measured_ns = 77};

	assert_int_equal(gci_candidate_parse(&e.how, kind, how, NULL), 0);
	assert_int_equal(gci_table_add(t, kind, &e), 0);
}

static void open_job(struct job *j, struct gci_table *t)
{
	job_open(j, (int[]){3, 2, 0}, 0, 11, NULL);
	*t = (struct gci_table){.nranks = NRANKS, .nclusters = 2, .date = "2026-01-01T00:00:00Z"};
	put(t, GCI_BCAST, 1024, "sequential");
	put(t, GCI_BCAST, 65536, "chain:segment=4KiB");
	put(t, GCI_ALLREDUCE, 4096, "ring");
	put(t, GCI_GATHER, 1024 * NRANKS, "sequential");
	give_table(j, t);
	job_set(j, "tuning", "table");
}

static void close_job(struct job *j, struct gci_table *t)
{
	job_close(j);
	gci_table_free(t);
}

/* What was run last, of so many elements. */
static const struct gci_cached_sched *last_run(const gcoll_comm *c, uint64_t count)
{
	const struct gci_sched_cache *cache = &c->engine->cache;
	const struct gci_cached_sched *last = NULL;
	int i;

	for (i = 0; i < GCI_CACHED_SCHEDS; i++)
		if (cache->slots[i].coll.count == count &&
			(!last || cache->slots[i].used > last->used))
			last = &cache->slots[i];
	assert_non_null(last);
	return last;
}

static void stream(struct job *j, uint64_t nbytes)
{
	int r;

	for (r = 0; r < j->n; r++)
		j->comm[r]->stream_nbytes = nbytes;
}

/* A short piece has the algorithm and the segments that the whole would have. */
static void a_part_runs_as_its_stream(void **state)
{
	const struct trial piece = {.kind = GCI_BCAST, .count = 250000, .type = GCOLL_INT32};
	uint32_t nsteps;
	struct gci_table t;
	struct job j;

	(void)state;
	open_job(&j, &t);
	trial_run(&j, &(struct trial){.kind = GCI_BCAST, .count = 256, .type = GCOLL_INT32});
	assert_string_equal(last_run(j.comm[1], 256)->algorithm->name, "sequential");
	stream(&j, 1 << 20);
	trial_run(&j, &(struct trial){.kind = GCI_BCAST, .count = 256, .type = GCOLL_INT32});
	assert_string_equal(last_run(j.comm[1], 256)->algorithm->name, "chain");

	job_set(&j, "bcast", "packed");
	trial_run(&j, &piece);
	nsteps = last_run(j.comm[1], piece.count)->sched.nsteps;
	stream(&j, UINT64_MAX);
	trial_run(&j, &piece);
	assert_true(last_run(j.comm[1], piece.count)->sched.nsteps < nsteps / 4);
	close_job(&j, &t);
}

static struct gci_coll call_of(const gcoll_comm *c, enum gci_kind kind, uint64_t count)
{
	return (struct gci_coll){.kind = kind, .topo = &c->topo, .count = count, .esize = 1};
}

static struct gci_decision choose(gcoll_comm *c, const struct gci_coll *coll, int internal)
{
	struct gci_decision d;
	const char *why;

	if (gci_op_choose(c, coll, internal, &d, &why))
		fail_msg("%s", why);
	return d;
}

static void assert_chosen(
	gcoll_comm *c, const struct gci_coll *coll, enum gci_decided_by by, const char *how)
{
	struct gci_decision d = choose(c, coll, 0);
	char text[GCI_CANDIDATE_NBYTES];

	gci_candidate_print(&d.how, text);
	assert_int_equal(d.by, by);
	if (how)
		assert_string_equal(text, how);
}

static void a_table_is_followed(void **state)
{
	struct gci_coll bcast, gather, scatter;
	struct gci_table t;
	struct job j;
	int r;

	(void)state;
	open_job(&j, &t);
	for (r = 0; r < j.n; r++) {
		bcast = call_of(j.comm[r], GCI_BCAST, 1000);
		gather = call_of(j.comm[r], GCI_GATHER, 1000);
		scatter = call_of(j.comm[r], GCI_SCATTER, 1000);
		assert_chosen(j.comm[r], &bcast, GCI_BY_TABLE, "sequential");
		assert_true(choose(j.comm[r], &bcast, 0).ns == 77);
		bcast.count = 1000000;
		assert_chosen(j.comm[r], &bcast, GCI_BY_TABLE, "chain:segment=4096");
		assert_chosen(j.comm[r], &gather, GCI_BY_TABLE, "sequential");
		assert_chosen(j.comm[r], &scatter, GCI_BY_DEFAULT, NULL);
		/* What the library calls for itself runs whatever the table says. */
		assert_int_equal(choose(j.comm[r], &gather, 1).by, GCI_BY_DEFAULT);
	}
	trial_run(&j, &(struct trial){.kind = GCI_BCAST, .count = 70000, .type = GCOLL_INT32});
	trial_run(&j, &(struct trial){.kind = GCI_ALLREDUCE, .count = 900, .type = GCOLL_INT32});
	trial_run(&j, &(struct trial){.kind = GCI_GATHER, .count = 900, .type = GCOLL_INT32});
	close_job(&j, &t);
}

static void settings_come_before_a_table(void **state)
{
	struct gci_coll bcast;
	struct gci_table t;
	struct job j;

	(void)state;
	open_job(&j, &t);
	bcast = call_of(j.comm[0], GCI_BCAST, 1000);
	job_set(&j, "bcast", "binomial");
	assert_chosen(j.comm[0], &bcast, GCI_BY_USER, "binomial");
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "auto:segment=1KiB"), GCOLL_ERR_INVAL);
	job_set(&j, "bcast", "auto");
	assert_chosen(j.comm[0], &bcast, GCI_BY_TABLE, "sequential");
	job_set(&j, "tuning", "off");
	assert_chosen(j.comm[0], &bcast, GCI_BY_DEFAULT, NULL);
	job_set(&j, "tuning", "table");
	assert_chosen(j.comm[0], &bcast, GCI_BY_TABLE, "sequential");
	assert_int_equal(gcoll_comm_set(j.comm[0], "tuning", "on"), GCOLL_ERR_INVAL);
	close_job(&j, &t);
}

/* What was measured of other ranks, or of equal blocks, tells nothing. */
static void a_table_has_its_place(void **state)
{
	uint64_t counts[NRANKS] = {0, 10, 20, 30, 40};
	struct gci_coll coll;
	struct gci_table t;
	struct job j;

	(void)state;
	open_job(&j, &t);
	coll = call_of(j.comm[0], GCI_GATHER, 1000);
	coll.counts = counts;
	assert_chosen(j.comm[0], &coll, GCI_BY_DEFAULT, NULL);
	coll = call_of(j.comm[0], GCI_BCAST, 1000);
	t.nclusters = 1;
	assert_chosen(j.comm[0], &coll, GCI_BY_DEFAULT, NULL);
	t.nclusters = 2;
	t.nranks = 4;
	assert_chosen(j.comm[0], &coll, GCI_BY_DEFAULT, NULL);
	close_job(&j, &t);
}

/* An algorithm that cannot keep the order that was asked for is passed over, not an error. */
static void what_cannot_run_is_passed_over(void **state)
{
	struct gci_coll coll;
	struct gci_table t;
	struct job j;

	(void)state;
	open_job(&j, &t);
	coll = call_of(j.comm[0], GCI_ALLREDUCE, 4096);
	assert_chosen(j.comm[0], &coll, GCI_BY_TABLE, "ring");
	coll.order = GCI_CLUSTER_ORDER;
	assert_non_null(gci_ineligible(gci_algorithm_find(GCI_ALLREDUCE, "ring"), &coll));
	assert_chosen(j.comm[0], &coll, GCI_BY_DEFAULT, NULL);
	close_job(&j, &t);
}

/* ---- by simulation */

/* Every rank for itself, whatever its own call looks like; and what is chosen runs. */
static void all_ranks_simulate_the_same(void **state)
{
	int kind, r, size;
	struct job j;

	(void)state;
	job_open(&j, (int[]){3, 2, 0}, 0, 11, NULL);
	for (kind = 0; kind < GCI_NKINDS; kind++)
		for (size = 4; size <= 1 << 22; size *= 8) {
			struct gci_decision d = {.ns = 0}, first = {.ns = 0};
			char how[2][GCI_CANDIDATE_NBYTES];

			for (r = 0; r < j.n; r++) {
				struct gci_coll coll =
					call_of(j.comm[r], (enum gci_kind)kind, (uint64_t)size);

				coll.in_place = r == 0;
				d = choose(j.comm[r], &coll, 0);
				if (!r)
					first = d;
				gci_candidate_print(&first.how, how[0]);
				gci_candidate_print(&d.how, how[1]);
				assert_string_equal(how[0], how[1]);
				assert_true(d.ns == first.ns);
				assert_int_equal(d.by, first.by);
			}
			if (kind != GCI_BARRIER)
				assert_int_equal(d.by, GCI_BY_SIMULATION);
		}
	trial_run(&j, &(struct trial){.kind = GCI_BCAST, .count = 70000, .type = GCOLL_INT32});
	trial_run(
		&j, &(struct trial){
			    .kind = GCI_REDUCE, .count = 900, .in_place = 1, .type = GCOLL_INT32});
	trial_run(&j, &(struct trial){.kind = GCI_ALLTOALL, .count = 900, .type = GCOLL_INT32});
	job_close(&j);
}

/* Every rank's block is a byte longer than the one before. */
static void gather_all_sizes(struct job *j)
{
	static char in[MAX_RANKS][100 + MAX_RANKS], out[MAX_RANKS][MAX_RANKS * (100 + MAX_RANKS)];
	uint64_t counts[MAX_RANKS], displs[MAX_RANKS], sum = 0;
	int r, i, status[MAX_RANKS];

	for (r = 0; r < j->n; r++) {
		counts[r] = 100 + (unsigned)r;
		displs[r] = sum;
		sum += counts[r];
		memset(in[r], 1 + r, counts[r]);
	}
	for (r = 0; r < j->n; r++)
		assert_int_equal(gcoll_iallgatherv(in[r], out[r], counts, displs, GCOLL_BYTE,
					 j->comm[r], &j->req[r]),
			0);
	assert_int_equal(job_run(j, status), 0);
	for (r = 0; r < j->n; r++)
		for (i = 0; i < j->n; i++)
			assert_memory_equal(out[r] + displs[i], in[i], counts[i]);
}

/* One element is all that there is, from rank 0 to rank 3, each time that it is started. */
static void alltoallv_of_one_element(const char *how)
{
	uint64_t none[NRANKS] = {0}, one[NRANKS] = {0}, at[NRANKS] = {0};
	gcoll_req *req[NRANKS], *again[NRANKS];
	char what[2] = "x", got[NRANKS] = "";
	int r, i, status[MAX_RANKS];
	struct job j;

	job_open(&j, (int[]){3, 2, 0}, 0, 11, NULL);
	job_set(&j, "alltoall", how);
	for (r = 0; r < NRANKS; r++) {
		uint64_t *sends = r == 0 ? one : none, *gets = r == 3 ? one : none;

		one[r == 0 ? 3 : 0] = 1;
		one[r == 0 ? 0 : 3] = 0;
		assert_int_equal(gcoll_alltoallv_init(what, sends, at, got + r, gets, at,
					 GCOLL_BYTE, j.comm[r], &req[r]),
			0);
	}
	for (i = 0; i < 2; i++) {
		memset(got, 0, sizeof(got));
		for (r = 0; r < NRANKS; r++) {
			again[r] = req[r];
			assert_int_equal(gcoll_start(req[r]), 0);
		}
		assert_int_equal(job_run_all(&j, again, status, NRANKS), 0);
		for (r = 0; r < NRANKS; r++)
			assert_int_equal(got[r], r == 3 ? 'x' : 0);
	}
	for (r = 0; r < NRANKS; r++)
		assert_int_equal(gcoll_req_free(&req[r]), 0);
	job_close(&j);
}

static void an_alltoallv_of_one_element(void **state)
{
	(void)state;
	alltoallv_of_one_element("packed");
	alltoallv_of_one_element("auto");
}

/* In a job of many clusters the first short operation of a kind and size does without its packing, which a thread
 * makes; on all ranks those that follow have it. */
static void packings_of_many_clusters_come_later(void **state)
{
	const struct trial bcast = {.kind = GCI_BCAST, .count = 70000, .type = GCOLL_BYTE};
	struct gci_coll coll;
	struct job j;
	int i, r;

	(void)state;
	job_open(&j, (int[]){2, 1, 1, 1, 1, 1, 1, 1, 1, 0}, 0, 11, NULL);
	for (i = 0; i < 3; i++) {
		trial_run(&j, &bcast);
		for (r = 0; r < j.n; r++)
			assert_int_equal(
				!(last_run(j.comm[r], bcast.count)->algorithm->traits & GCI_PACKS),
				!i);
	}
	coll = call_of(j.comm[1], GCI_BCAST, bcast.count);
	assert_true(choose(j.comm[1], &coll, 0).how.algorithm->traits & GCI_PACKS);
	/* Its thread may still be at it, when the counts are no more. */
	gather_all_sizes(&j);
	trial_run(&j, &(struct trial){.kind = GCI_ALLREDUCE, .count = 90000, .type = GCOLL_INT32});
	job_close(&j);
}

/* A table comes first; and whoever wants neither gets what estimates say. */
static void simulation_is_the_last_resort(void **state)
{
	struct gci_coll bcast, gather;
	struct gci_table t;
	struct job j;

	(void)state;
	open_job(&j, &t);
	bcast = call_of(j.comm[0], GCI_BCAST, 1000);
	gather = call_of(j.comm[0], GCI_SCATTER, 1000);
	job_set(&j, "tuning", "simulate");
	assert_chosen(j.comm[0], &bcast, GCI_BY_TABLE, "sequential");
	assert_chosen(j.comm[0], &gather, GCI_BY_SIMULATION, NULL);
	job_set(&j, "tuning", "off");
	assert_chosen(j.comm[0], &bcast, GCI_BY_DEFAULT, NULL);
	assert_chosen(j.comm[0], &gather, GCI_BY_DEFAULT, NULL);
	close_job(&j, &t);
}

/* ---- recorded runs */

static void check_record(const struct gci_record *r)
{
	static const struct gci_record_entry want[] = {{GCI_BCAST, 2, 1024, 1},
		{GCI_BCAST, NRANKS, 262144, 2}, {GCI_GATHER, NRANKS, 16384, 3}};
	size_t i, n = sizeof(want) / sizeof(*want);

	assert_int_equal(r->lost, 0);
	assert_int_equal(r->n, n);
	for (i = 0; i < n; i++) {
		assert_int_equal(r->entries[i].kind, want[i].kind);
		assert_int_equal(r->entries[i].nranks, want[i].nranks);
		assert_int_equal(r->entries[i].nbytes, want[i].nbytes);
		assert_int_equal(r->entries[i].calls, want[i].calls);
	}
}

static void cast(struct job *j)
{
	static char buf[1024];
	static const int to[] = {3};
	int r, status[MAX_RANKS];

	for (r = 0; r < j->n; r++)
		assert_int_equal(
			gcoll_imulticast(buf, 1024, GCOLL_BYTE, 0, to, 1, j->comm[r], &j->req[r]),
			0);
	assert_int_equal(job_run(j, status), 0);
}

/* Every call counts, persistent ones each time they are started; what the library itself calls and
 * blocks of different lengths do not. */
static void runs_are_recorded(void **state)
{
	char path[] = "/tmp/gridcoll-record-XXXXXX", text[4096];
	struct gci_error e = {0};
	struct gci_record got;
	struct job j;
	size_t n;
	FILE *f;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	job_open(&j, (int[]){3, 2, 0}, 0, 11, NULL);
	job_set(&j, "record", path);
	trial_run(&j, &(struct trial){.kind = GCI_BCAST, .count = 70000, .type = GCOLL_INT32});
	trial_run(&j, &(struct trial){.kind = GCI_BCAST, .count = 60000, .type = GCOLL_INT32});
	trial_run(&j,
		&(struct trial){
			.kind = GCI_GATHER, .count = 900, .type = GCOLL_INT32, .persistent = 1});
	trial_run(
		&j, &(struct trial){.kind = GCI_GATHER, .count = 900, .type = GCOLL_INT32, .v = 1});
	cast(&j);
	gci_recording_end(j.comm[0]->engine);
	job_close(&j);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	unlink(path);
	assert_int_equal(gci_record_parse(&got, text, n, path, &e), 0);
	check_record(&got);
	gci_record_free(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_followed),
		cmocka_unit_test(settings_come_before_a_table),
		cmocka_unit_test(a_part_runs_as_its_stream),
		cmocka_unit_test(a_table_has_its_place),
		cmocka_unit_test(what_cannot_run_is_passed_over),
		cmocka_unit_test(all_ranks_simulate_the_same),
		cmocka_unit_test(packings_of_many_clusters_come_later),
		cmocka_unit_test(an_alltoallv_of_one_element),
		cmocka_unit_test(simulation_is_the_last_resort),
		cmocka_unit_test(runs_are_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
