/* SPDX-License-Identifier: MIT */
#include "tools/tune/tune.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/candidates.h"
#include "tools/lib/model_files.h"
#include "tools/lib/progress.h"
#include "tools/lib/tools.h"
#include "tools/shape/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- options */

#define LONGEST_LIST 100 /* of candidates to measure */

static const char *const names[GCT_NSEARCHES] = {
	"simulate", "exhaustive", "halving", "mgd", "smgd", "pipeline"};

static const char *gct_search_name(enum gct_search search)
{
	return names[search];
}

static int add_search(struct gct_tune_options *o, const char *name, struct gci_error *e)
{
	int i, k;

	for (k = 0; k < GCT_NSEARCHES && strcmp(names[k], name) != 0; k++)
		;
	if (k == GCT_NSEARCHES)
		return gci_option_wrong(
			e, "search", name, "simulate, exhaustive, halving, mgd, smgd or pipeline");
	for (i = 0; i < o->nsearches; i++)
		if (o->searches[i] == (enum gct_search)k)
			return 0;
	o->searches[o->nsearches++] = (enum gct_search)k;
	return 0;
}

static int take_searches(void *settings, char *list, struct gci_error *e)
{
	struct gct_tune_options *o = settings;
	char *save = NULL, *p;
	int rc = 0;

	o->nsearches = 0;
	for (p = strtok_r(list, ",", &save); p && !rc; p = strtok_r(NULL, ",", &save))
		rc = add_search(o, p, e);
	return rc || o->nsearches ? rc : add_search(o, "", e);
}

static int take_sizes(void *settings, char *list, struct gci_error *e)
{
	struct gct_tune_options *o = settings;

	return gct_take_sizes(list, o->sizes, &o->nsizes, e);
}

static int take_algorithms(void *settings, char *list, struct gci_error *e)
{
	struct gct_tune_options *o = settings;

	return gct_take_algorithms(list, o->algorithms, &o->nalgorithms, e);
}

#define SETTINGS struct gct_tune_options

static const struct gci_option options[] = {
	{'b', "bytes", "LIST", "sizes, as gridcoll bench has them (default 1MiB)",
		.take = take_sizes},
	{'a', "algorithm", "LIST", "only these, in all segments; with parameters: as given",
		.take = take_algorithms},
	{'m', "measure", "N",
		"measure the N best by simulation (default 3), and what a job without a table "
		"does",
		GCI_OPTION_NUMBER(SETTINGS, measure, 0, LONGEST_LIST)},
	{'i', "iters", "N", "warm iterations of each (default 3)",
		GCI_OPTION_NUMBER(SETTINGS, iterations, 1, 1000000)},
	{'S', "search", "LIST",
		"instead of that, or beside it, search methods and segments: simulate, "
		"exhaustive, halving, mgd, smgd, pipeline",
		.take = take_searches},
	{0, "least-segment", "B", "the shortest that is searched (default 4KiB)",
		GCI_OPTION_BYTES(SETTINGS, least_segment, 1, UINT64_MAX)},
	{0, "compare", NULL,
		"for each algorithm: best segment as measured, by MagPIe's formulas and by "
		"simulation",
		GCI_OPTION_FLAG(SETTINGS, compare)},
	{'p', "params", "FILE", "the grid's measured parameters, of gridcoll probe",
		GCI_OPTION_TEXT(SETTINGS, params)},
	{'R', "recorded", "FILE", "the operations and sizes of a recorded run",
		GCI_OPTION_TEXT(SETTINGS, recorded)},
	{'o', "output", "FILE", "write the decisions as a table for gridcoll-run",
		GCI_OPTION_TEXT(SETTINGS, output)},
	{'r', "root", "RANK", "of bcast, reduce, scatter and gather (default 0)",
		GCI_OPTION_NUMBER(SETTINGS, root, 0, GCI_GRID_MAX_HOSTS), .expected = "a rank"},
	{'s', "streams", "N", "connections per WAN peer",
		GCI_OPTION_NUMBER(SETTINGS, streams, 1, 64)},
	{0, "simulated", NULL, "measure nothing: no job is needed",
		GCI_OPTION_FLAG(SETTINGS, simulated)},
	{'g', "grid", "FILE", "with --simulated: the grid, a rank on each host",
		GCI_OPTION_TEXT(SETTINGS, grid)},
	{0}};

static const struct gct_usage command_line = {"tune",
	"usage: gridcoll-run ... gridcoll tune OPERATION... [options]\n"
	"       gridcoll tune --simulated --grid FILE OPERATION... [options]\n"
	"Finds the best algorithm and parameters for each operation and size: simulates\n"
	"what formulas find promising, and measures the best of that on the ranks of a\n"
	"job.\n",
	"example: gridcoll tune --simulated -g my.grid bcast -b 64KiB,8MiB -o my.table\n"
	"         gridcoll-run --grid my.grid --table my.table ./a.out\n",
	options};

/* What does not go together. */
static int check(const struct gct_tune_options *o)
{
	if (o->simulated && !o->grid)
		return gct_wrong("tune", "--simulated needs the grid: --grid FILE");
	if (o->grid && !o->simulated)
		return gct_wrong("tune", "--grid is for --simulated: a job has a grid");
	if (o->simulated && o->compare)
		return gct_wrong("tune", "--compare measures: not with --simulated");
	if (o->compare && o->output)
		return gct_wrong("tune", "--compare makes no table: not with --output");
	if (o->recorded && o->nkinds)
		return gct_wrong("tune", "operation \"%s\": those of --recorded are tuned",
			gci_kind_name(o->kinds[0]));
	return 0;
}

/* 0; an exit status after saying what is wrong; or GCT_HELPED. */
static int gct_tune_parse(struct gct_tune_options *o, int argc, char **argv)
{
	int first, rc;

	*o = (struct gct_tune_options){.sizes = {1 << 20},
		.nsizes = 1,
		.iterations = 3,
		.measure = 3,
		.least_segment = GCI_LEAST_SEGMENT};
	rc = gct_options(&command_line, o, argc, argv, GCI_OPTIONS_ANYWHERE, &first);
	if (!rc && (first < argc || !o->recorded))
		rc = gct_parse_operations("tune", argc - first, argv + first, o->kinds, &o->nkinds);
	return rc ? rc : check(o);
}

/* ---- what tune prints */

static const char *time_text(const struct gct_tune *t, uint64_t ns, char out[16])
{
	if (!ns || ns == GCI_NEVER)
		snprintf(out, 16, "-");
	else
		gci_format_time(ns / t->dilation, out, 16);
	return out;
}

static uint64_t limit_of(const struct gct_tune *t, const struct gct_tune_case *c)
{
	return gci_bound_ns(&c->coll, t->bench.comm ? t->bench.comm->engine->settings.streams : 0);
}

static void name_case(const struct gct_tune_case *c, char *out, size_t size)
{
	char bytes[16];

	snprintf(out, size, "%s", gci_kind_name(c->kind));
	if (c->kind != GCI_BARRIER)
		snprintf(out, size, "%s of %s", gci_kind_name(c->kind),
			gci_format_bytes(c->nbytes, bytes, 16));
}

static void print_case(const struct gct_tune *t, const struct gct_tune_case *c)
{
	char name[64], limit[16];
	uint64_t ns = limit_of(t, c);

	gct_progress_end();
	name_case(c, name, sizeof(name));
	printf("\n%s", name);
	if (c->calls)
		printf(", called %" PRIu64 " times", c->calls);
	if (ns)
		printf(", physical limit %s", time_text(t, ns, limit));
	printf("\n");
}

/* Rank 0's output. */
static void gct_tune_print_header(const struct gct_tune *t)
{
	const struct gci_topo *topo = t->topo;
	int k;

	printf("%d ranks in %d cluster%s:", topo->nranks, topo->nclusters,
		topo->nclusters > 1 ? "s" : "");
	for (k = 0; k < topo->nclusters; k++)
		printf("%s%d", k ? " + " : " ", gci_topo_size(topo, k));
	printf("; predictions from %s\n",
		t->has_params ? "measured parameters" : "the grid file alone");
	if (t->dilation > 1)
		printf("dilation k = %u: times are measured times divided by k\n", t->dilation);
	if (!t->o.nsearches && !t->o.compare)
		printf("\n%-26s %-32s %9s %9s %9s %6s\n", "operation", "best", "predicted",
			"measured", "untuned", "x lim");
}

static void count_untuned(
	struct gct_tune_untuned *u, const struct gct_tune_line *l, const char *name)
{
	double slower;

	if (!l->best_ns || !l->usual_ns)
		return;
	slower = (double)l->usual_ns / (double)l->best_ns - 1;
	if (!u->n++ || slower > u->worst) {
		u->worst = slower;
		snprintf(u->what, sizeof(u->what), "%s", name);
	}
	u->near += slower <= 0.05;
}

/* What a job without a table does, where it is not the best. */
static void print_usual(const struct gct_tune_line *l)
{
	char usual[GCI_CANDIDATE_NBYTES];

	if (!l->best_ns || !l->usual_ns || gci_candidate_same(&l->best, &l->usual))
		return;
	gci_candidate_print(&l->usual, usual);
	printf("    untuned: %s, %.1f%% slower\n", usual,
		100 * ((double)l->usual_ns / (double)l->best_ns - 1));
}

static void gct_tune_print_line(struct gct_tune *t, const struct gct_tune_line *l)
{
	char name[64], best[GCI_CANDIDATE_NBYTES], ns[3][16], ratio[16] = "-";
	uint64_t limit = limit_of(t, l->c), is = l->best_ns ? l->best_ns : l->predicted_ns;

	gct_progress_end();
	name_case(l->c, name, sizeof(name));
	gci_candidate_print(&l->best, best);
	if (limit && is)
		snprintf(ratio, sizeof(ratio), "%.2f", (double)is / (double)limit);
	printf("%-26s %-32s %9s %9s %9s %6s\n", name, best, time_text(t, l->predicted_ns, ns[0]),
		time_text(t, l->best_ns, ns[1]), time_text(t, l->usual_ns, ns[2]), ratio);
	print_usual(l);
	fflush(stdout);
	count_untuned(&t->untuned, l, name);
}

/* How far jobs without a table are from the best, over all lines printed. */
static void gct_tune_print_untuned(const struct gct_tune *t)
{
	const struct gct_tune_untuned *u = &t->untuned;

	if (u->n)
		printf("\nwithout a table %u of %u are within 5%% of the best, at worst %.1f%% "
		       "(%s)\n",
			u->near, u->n, 100 * u->worst, u->what);
}

/* Time of what a search has found, over the best of all: measured once, it is the same for all. */
static void loss_text(const struct gct_tune_answer *a, uint64_t best_ns, char out[16])
{
	snprintf(out, 16, a->predicted ? "predicted" : "-");
	if (best_ns && !a->predicted && a->r.best_ns != GCI_NEVER)
		snprintf(out, 16, "%+.1f %%", 100 * ((double)a->r.best_ns / (double)best_ns - 1));
}

/* Several searches of one case: ATCC's table 2. */
static void gct_tune_print_answers(const struct gct_tune *t, const struct gct_tune_case *c,
	const struct gct_tune_answer *answers, int n)
{
	uint64_t all_ns = 0, best_ns = 0;
	int i;

	for (i = 0; i < n; i++)
		if (answers[i].search == GCT_EXHAUSTIVE) {
			all_ns = answers[i].r.spent_ns;
			best_ns = answers[i].r.best_ns;
		}
	print_case(t, c);
	printf("%-11s %9s %6s %6s %7s  %-28s %9s %8s\n", "search", "took", "ways", "runs", "sooner",
		"best", "its time", "loss");
	for (i = 0; i < n; i++) {
		const struct gct_tune_answer *a = &answers[i];
		char best[GCI_CANDIDATE_NBYTES] = "-", ns[2][16], loss[16], sooner[16] = "-";

		if (a->why_not) {
			printf("%-11s does not apply: %s\n", gct_search_name(a->search),
				a->why_not);
			continue;
		}
		if (a->r.best_ns != GCI_NEVER)
			gci_candidate_print(&a->r.best, best);
		if (all_ns && a->r.spent_ns)
			snprintf(sooner, sizeof(sooner), "%.1f x",
				(double)all_ns / (double)a->r.spent_ns);
		loss_text(a, best_ns, loss);
		printf("%-11s %9s %6" PRIu64 " %6" PRIu64 " %7s  %-28s %9s %8s\n",
			gct_search_name(a->search), time_text(t, a->r.spent_ns, ns[0]),
			a->r.evaluations, a->r.runs, sooner, best,
			time_text(t, a->r.best_ns, ns[1]), loss);
	}
	fflush(stdout);
}

/* ---- the command */

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

/* Parameters of another grid: it says so, and goes on without. */
static int read_params(struct gct_tune *t)
{
	struct gci_error e = {0};
	int rc = gct_read_params(t->o.params, t->grid, &t->params, &e);

	t->has_params = !rc;
	if (rc && rc != GCOLL_ERR_INVAL)
		return gci_comm_error(rc == GCOLL_ERR_NOMEM ? rc : GCOLL_ERR_INVAL, "%s", e.text);
	if (rc)
		fprintf(stderr,
			"gridcoll tune: %s\ngridcoll tune: predicting from the grid file alone\n",
			e.text);
	return 0;
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
	t->grid = t->bench.comm->engine->job.grid;
	t->topo = &t->bench.comm->topo;
	return gct_set_streams(t->bench.comm, t->o.streams);
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
		rc = read_params(t);
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
		if (t->o.compare && gct_tune_is_first(t))
			print_case(t, &t->cases[i]);
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

int gct_tune_command(int argc, char **argv)
{
	struct gct_tune t = {.dilation = 1};
	int rc = gct_tune_parse(&t.o, argc, argv);

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
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
