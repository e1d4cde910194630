/* SPDX-License-Identifier: MIT */
#include "tools/tune.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "tools/model_files.h"
#include "tools/progress.h"
#include "tools/shape.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int out_of_memory(void)
{
	return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
}

/* ---- what is tuned */

static int add_case(
	struct gct_tune *t, size_t *cap, enum gci_kind kind, uint64_t nbytes, uint64_t calls)
{
	struct gct_tune_case *c;

	if (gci_grow(&t->cases, cap, t->ncases + 1, sizeof(*t->cases)))
		return out_of_memory();
	c = &t->cases[t->ncases++];
	*c = (struct gct_tune_case){.kind = kind, .asked_nbytes = nbytes, .calls = calls};
	c->coll = (struct gci_coll){.kind = kind, .topo = t->topo, .root = (int)t->o.root};
	c->nbytes = gct_shape(&c->coll, nbytes);
	return 0;
}

static int list_cases(struct gct_tune *t)
{
	size_t cap = 0;
	int k, s, rc = 0;

	for (k = 0; k < t->o.nkinds; k++)
		for (s = 0; s < (t->o.kinds[k] == GCI_BARRIER ? 1 : t->o.nsizes) && !rc; s++)
			rc = add_case(t, &cap, t->o.kinds[k], t->o.sizes[s], 0);
	return rc;
}

static int read_record(struct gct_tune *t, struct gci_record *r, struct gci_error *e)
{
	struct gci_buf text = {0};
	int rc = gci_file_read(t->o.recorded, GCI_RECORD_MAX_TEXT, &text, e);

	if (rc)
		return rc;
	rc = gci_record_parse(r, (const char *)text.data, text.len, t->o.recorded, e);
	gci_buf_free(&text);
	return rc;
}

/* Rank 0 has the file; of a record, what it says of so many ranks. */
static int list_recorded(struct gct_tune *t)
{
	struct gci_record r = {.n = 0};
	struct gci_error e = {0};
	uint64_t n = 0, i, entry[3];
	size_t cap = 0;
	int rc = 0;

	if (gct_tune_is_first(t) && read_record(t, &r, &e))
		rc = gci_comm_error(GCOLL_ERR_INVAL, "%s", e.text);
	for (i = 0; i < r.n; i++)
		if (r.entries[i].nranks == t->topo->nranks)
			r.entries[n++] = r.entries[i];
	if (!rc && gct_tune_is_first(t) && !n)
		rc = gci_comm_error(GCOLL_ERR_INVAL, "%s: no operation of %d ranks", t->o.recorded,
			t->topo->nranks);
	if (!rc && t->bench.comm)
		rc = gcoll_bcast(&n, 1, GCOLL_UINT64, 0, t->bench.own);
	for (i = 0; i < n && !rc; i++) {
		if (gct_tune_is_first(t)) {
			entry[0] = r.entries[i].kind;
			entry[1] = r.entries[i].nbytes;
			entry[2] = r.entries[i].calls;
		}
		if (t->bench.comm)
			rc = gcoll_bcast(entry, 3, GCOLL_UINT64, 0, t->bench.own);
		if (!rc)
			rc = add_case(t, &cap, (enum gci_kind)entry[0], entry[1], entry[2]);
	}
	gci_record_free(&r);
	return rc;
}

/* Names are checked before anything runs. */
static int check_names(const struct gct_tune *t)
{
	struct gci_candidate how;
	struct gci_error e = {0};
	size_t i;
	int a;

	if (t->o.root >= (uint64_t)t->topo->nranks)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"--root \"%llu\", expected a rank from 0 to %d",
			(unsigned long long)t->o.root, t->topo->nranks - 1);
	for (i = 0; i < t->ncases; i++)
		for (a = 0; a < t->o.nalgorithms; a++)
			if (gci_candidate_parse(&how, t->cases[i].kind, t->o.algorithms[a], &e))
				return gci_comm_error(e.status, "%s", e.text);
	return 0;
}

/* ---- the network */

/* Wrong or foreign parameters: it says so, and goes on without. */
static void read_params(struct gct_tune *t)
{
	struct gci_error e = {0};

	t->has_params = !gct_read_params(t->o.params, t->grid, &t->params, &e);
	if (!t->has_params)
		fprintf(stderr,
			"gridcoll tune: %s\ngridcoll tune: predicting from the grid file alone\n",
			e.text);
}

static int open_grid(struct gct_tune *t)
{
	struct gci_error e = {0};

	if (gct_read_grid(t->o.grid, &t->own_grid, &e))
		return gci_comm_error(GCOLL_ERR_INVAL, "%s", e.text);
	t->grid = &t->own_grid;
	t->topo = &t->own_topo;
	if (gci_topo_create(&t->own_topo, &t->own_grid, NULL, t->own_grid.nhosts))
		return out_of_memory();
	return 0;
}

static int open_job(struct gct_tune *t)
{
	char streams[24];
	int rc = 0;

	t->grid = t->bench.comm->engine->grid;
	t->topo = &t->bench.comm->topo;
	snprintf(streams, sizeof(streams), "%llu", (unsigned long long)t->o.streams);
	if (t->o.streams)
		rc = gcoll_comm_set(t->bench.comm, "streams", streams);
	return rc;
}

static int open_buffers(struct gct_tune *t)
{
	uint64_t most = GCT_PAIR_NBYTES;
	size_t i;
	int rc = gct_bench_clocks(&t->bench);

	for (i = 0; i < t->ncases; i++)
		most = t->cases[i].nbytes > most ? t->cases[i].nbytes : most;
	return rc ? rc : gct_bench_buffers(&t->bench, most);
}

/* Arguments that are wrong on all ranks are found before any of them waits for another. */
static int take_cases(struct gct_tune *t)
{
	int rc = 0;

	if (!t->o.recorded)
		rc = list_cases(t);
	if (!rc)
		rc = check_names(t);
	if (!rc && t->bench.comm)
		rc = gct_bench_open(&t->bench, (int)t->o.root);
	if (!rc && t->o.recorded)
		rc = list_recorded(t);
	return rc ? rc : check_names(t);
}

static int set_up(struct gct_tune *t)
{
	int rc = t->bench.comm ? open_job(t) : open_grid(t);

	if (rc)
		return rc;
	t->dilation = t->grid->dilation ? t->grid->dilation : 1;
	rc = take_cases(t);
	if (!rc && gct_tune_is_first(t) && t->o.params)
		read_params(t);
	if (!rc && gct_tune_is_first(t) && t->o.output)
		rc = gct_try_to_write(t->o.output);
	if (!rc)
		rc = gct_tune_net(t, t->topo, &t->net);
	if (!rc && gci_decider_init(&t->decider, t->topo, gct_tune_streams(t)))
		rc = out_of_memory();
	if (!rc && t->bench.comm)
		rc = open_buffers(t);
	return rc;
}

/* ---- tuning */

static int decide(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gci_candidate *how, uint64_t predicted_ns, uint64_t measured_ns)
{
	struct gci_table_entry entry = {.nbytes = gci_table_nbytes(&c->coll), .how = *how};
	int rc;

	if (predicted_ns != GCI_NEVER)
		entry.predicted_ns = predicted_ns / t->dilation;
	if (measured_ns != GCI_NEVER)
		entry.measured_ns = measured_ns / t->dilation;
	rc = gci_table_add(&t->table, c->kind, &entry);
	return rc ? gci_comm_error(rc, "the table cannot take %s of %llu bytes",
			    gci_kind_name(c->kind), (unsigned long long)entry.nbytes)
		  : 0;
}

/* What is known of this way; 0: nothing. */
static uint64_t time_of(const struct gci_search_result *r, const struct gci_candidate *how)
{
	size_t i;

	for (i = 0; i < r->ntried; i++)
		if (gci_candidate_same(&r->tried[i].how, how) && r->tried[i].ns != GCI_NEVER)
			return r->tried[i].ns;
	return 0;
}

int gct_tune_usual(struct gct_tune *t, const struct gct_tune_case *c, struct gci_candidate *usual)
{
	struct gci_decision how;
	int rc = gci_decide(&t->decider, &c->coll, &how);

	if (rc)
		return gci_comm_error(rc, "%s: nothing can run it", gci_kind_name(c->kind));
	*usual = how.how;
	return 0;
}

/* Without a measurement: what a job takes by itself, unless something is predicted to be faster. */
static struct gci_candidate predicted_best(
	const struct gci_search_result *ranked, const struct gci_candidate *usual)
{
	const struct gci_candidate *best =
		ranked->ntried ? &gct_tune_prefer(ranked, 0)->how : usual;
	uint64_t usual_ns = time_of(ranked, usual);

	return usual_ns && usual_ns <= time_of(ranked, best) ? *usual : *best;
}

static int tune_by_simulation(struct gct_tune *t, const struct gct_tune_case *c)
{
	struct gci_search_result ranked = {.best_ns = GCI_NEVER}, measured = {.best_ns = GCI_NEVER};
	struct gct_tune_line line = {.c = c};
	int rc = gct_tune_usual(t, c, &line.usual);

	if (!rc)
		rc = gct_tune_best(t, c, &line.usual, &ranked, &measured);
	if (!rc && gct_tune_is_first(t)) {
		int has = measured.best_ns != GCI_NEVER;

		line.best = has ? measured.best : predicted_best(&ranked, &line.usual);
		line.predicted_ns = time_of(&ranked, &line.best);
		line.best_ns = time_of(&measured, &line.best);
		line.usual_ns = time_of(has ? &measured : &ranked, &line.usual);
		gct_tune_print_line(t, &line);
		rc = decide(t, c, &line.best, line.predicted_ns, line.best_ns);
	}
	gci_search_result_free(&ranked);
	gci_search_result_free(&measured);
	return rc;
}

/* What was measured is, before whatever was not. */
static int is_better(const struct gct_tune_answer *a, const struct gct_tune_answer *b)
{
	return a->predicted != b->predicted ? b->predicted : a->r.best_ns < b->r.best_ns;
}

static int tune_by_searches(struct gct_tune *t, const struct gct_tune_case *c)
{
	struct gct_tune_answer a[GCT_NSEARCHES] = {{.why_not = NULL}}, *best = NULL;
	struct gci_trial predicted = {.ns = GCI_NEVER};
	int i, n = t->o.nsearches, rc = 0;

	for (i = 0; i < n && !rc; i++) {
		a[i].search = t->o.searches[i];
		rc = gct_tune_search(t, c, &a[i]);
		if (!rc && !a[i].why_not && (!best || is_better(&a[i], best)))
			best = &a[i];
	}
	if (!rc && gct_tune_is_first(t)) {
		gct_tune_print_answers(t, c, a, n);
		if (best && best->r.best_ns != GCI_NEVER) {
			rc = gct_tune_simulate(t, &t->net, &c->coll, &best->r.best, &predicted);
			if (!rc)
				rc = decide(t, c, &best->r.best, predicted.ns,
					best->predicted ? GCI_NEVER : best->r.best_ns);
		}
	}
	for (i = 0; i < n; i++)
		gci_search_result_free(&a[i].r);
	return rc;
}

static int write_table(struct gct_tune *t)
{
	struct gci_buf text = {0};
	time_t now = time(NULL);
	struct tm tm;
	int rc;

	if (gmtime_r(&now, &tm))
		strftime(t->table.date, sizeof(t->table.date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	gci_table_print(&t->table, &text);
	rc = gct_write(t->o.output, &text);
	gci_buf_free(&text);
	if (rc)
		return rc;
	printf("\nwritten to %s; gridcoll-run --table %s uses it\n", t->o.output, t->o.output);
	return 0;
}

static int run(struct gct_tune *t)
{
	int rc = set_up(t);
	size_t i;

	if (rc)
		return rc;
	t->table.grid_digest = gci_grid_digest(t->grid);
	t->table.nranks = t->topo->nranks;
	t->table.nclusters = t->topo->nclusters;
	if (gct_tune_is_first(t))
		gct_tune_print_header(t);
	for (i = 0; i < t->ncases && !rc; i++) {
		t->nknown = 0;
		gct_progress_stage(i + 1, t->ncases);
		if (t->o.compare)
			rc = gct_tune_compare(t, &t->cases[i]);
		else if (t->o.nsearches)
			rc = tune_by_searches(t, &t->cases[i]);
		else
			rc = tune_by_simulation(t, &t->cases[i]);
	}
	gct_progress_end();
	if (!rc && gct_tune_is_first(t))
		gct_tune_print_untuned(t);
	if (!rc && t->o.output && gct_tune_is_first(t) && !t->o.compare)
		rc = write_table(t);
	return rc;
}

static void tear_down(struct gct_tune *t)
{
	gci_decider_free(&t->decider);
	gci_simnet_free(&t->net);
	gci_params_free(&t->params);
	gci_table_free(&t->table);
	gci_topo_free(&t->own_topo);
	gci_grid_free(&t->own_grid);
	gci_free(t->cases);
	gci_free(t->known);
}

static int status_of(int rc)
{
	return rc == GCOLL_ERR_INVAL ? GCT_USAGE : rc ? GCT_FAILED : GCT_OK;
}

int gct_tune(int argc, char **argv)
{
	struct gct_tune t = {.dilation = 1};
	int rc = gct_tune_parse(&t.o, argc, argv);

	if (rc)
		return rc < 0 ? GCT_OK : rc;
	if (!t.o.simulated) {
		rc = gct_join("tune", &t.bench.comm);
		if (rc)
			return rc;
		rc = gcoll_comm_set(t.bench.comm, "warm", "off"); /* all are to start alike */
	}
	rc = rc ? rc : run(&t);
	if (rc && !t.bench.comm)
		fprintf(stderr, "gridcoll tune: %s\n", gcoll_last_error());
	else if (rc && !t.bench.comm->engine->failure.status)
		gct_abort(t.bench.comm, gcoll_last_error());
	tear_down(&t);
	if (t.bench.comm)
		gct_bench_close(&t.bench);
	return status_of(rc);
}
