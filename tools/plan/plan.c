/* SPDX-License-Identifier: MIT
 * gridcoll plan: reads what it is given, simulates, prints. */
#include "tools/plan/plan.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "collectives/blocks/windows.h"
#include "collectives/planner/packed.h"
#include "collectives/sim/sim.h"
#include "collectives/tuner/decide.h"
#include "tools/lib/cases.h"
#include "tools/lib/gantt.h"
#include "tools/lib/progress.h"
#include "tools/lib/tools.h"
#include "tools/plan/impl.h"
#include "tools/shape/shape.h"
#include "transport/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options */

static int wrong(const char *what, const char *value, const char *expected)
{
	return gct_wrong("plan", "%s \"%s\", expected %s", what, value, expected);
}

static int take_bytes(void *settings, char *value, struct gci_error *e)
{
	struct gct_plan_options *o = settings;

	o->has_nbytes = 1;
	if (gci_parse_bytes(value, &o->nbytes) || o->nbytes > GCT_MOST_NBYTES)
		return gci_option_wrong(e, "bytes", value, GCT_NBYTES_EXPECTED);
	return 0;
}

static int take_dilation(void *settings, char *value, struct gci_error *e)
{
	struct gct_plan_options *o = settings;
	uint64_t k = 1;

	if (strcmp(value, "no") && (gci_parse_uint(value, 1000000, &k) || !k))
		return gci_option_wrong(e, "dilate", value, "no or a number from 1 to 1000000");
	o->dilation = (uint32_t)k;
	return 0;
}

static int take_ports(void *settings, char *value, struct gci_error *e)
{
	static const char *const names[] = {[GCI_HOST_FAIR] = "shared",
		[GCI_HOST_FULL_DUPLEX] = "full-duplex",
		[GCI_HOST_HALF_DUPLEX] = "half-duplex"};
	struct gct_plan_options *o = settings;
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(value, names[i])) {
			o->ports = (enum gci_host_model)i;
			return 0;
		}
	return gci_option_wrong(e, "ports", value, "shared, full-duplex or half-duplex");
}

#define SETTINGS struct gct_plan_options

static const struct gci_option options[] = {
	{'g', "grid", "FILE", "the grid (default: the lab's, in $GRIDCOLL_LAB)",
		GCI_OPTION_TEXT(SETTINGS, run.grid)},
	{'b', "bytes", "N", "as in gridcoll bench, e.g. 32MiB", .take = take_bytes},
	{'a', "algorithm", "NAME", "show this one, with parameters: chain:segment=64KiB",
		GCI_OPTION_TEXT(SETTINGS, algorithm)},
	{'p', "params", "FILE", "what gridcoll probe measured", GCI_OPTION_TEXT(SETTINGS, params)},
	{'t', "table", "FILE", "what gridcoll tune decided", GCI_OPTION_TEXT(SETTINGS, table)},
	{'r', "root", "RANK", "of bcast, reduce, scatter and gather (default 0)",
		GCI_OPTION_NUMBER(SETTINGS, root, 0, GCI_CTL_MAX_RANKS - 1)},
	{'n', "np", "N", "so many ranks, as in gridcoll-run",
		GCI_OPTION_NUMBER(SETTINGS, run.nranks, 1, GCI_CTL_MAX_RANKS)},
	{0, "hosts", "LIST", "ranks on these hosts, the same",
		GCI_OPTION_TEXT(SETTINGS, run.hosts)},
	{0, "per-host", "K", "K ranks on each host, the same",
		GCI_OPTION_NUMBER(SETTINGS, run.per_host, 1, GCI_CTL_MAX_RANKS)},
	{'s', "streams", "N", "connections per WAN peer",
		GCI_OPTION_NUMBER(SETTINGS, streams, 1, 64)},
	{0, "cold", NULL, "connections are new", GCI_OPTION_FLAG(SETTINGS, cold)},
	{0, "ports", "MODEL", "NICs: shared (default), full-duplex or half-duplex",
		.take = take_ports},
	{0, "dilate", "K", "as in a lab dilated by K; no (default)", .take = take_dilation},
	{'j', "json", NULL, "for programs", GCI_OPTION_FLAG(SETTINGS, json)},
	{0, "gantt", "FILE", "who sends what to whom when, as a chart (SVG)",
		GCI_OPTION_TEXT(SETTINGS, gantt)},
	{0, "print-schedule", "RANK", "this rank's steps, of the first window",
		GCI_OPTION_NUMBER(SETTINGS, schedule_of, 0, GCI_CTL_MAX_RANKS - 1)},
	{'x', "explain", "FILE",
		"a run that gridcoll bench --trace recorded, beside its prediction",
		GCI_OPTION_TEXT(SETTINGS, explain)},
	{0}};

static const struct gct_usage command_line = {"plan",
	"usage: gridcoll plan OPERATION --grid FILE --bytes N [options]\n"
	"       gridcoll plan --explain FILE --grid FILE [options]\n"
	"Predicts how long an operation takes by each algorithm, and why. Starts no job.\n",
	"example: gridcoll plan bcast --grid my.grid --bytes 32MiB --gantt bcast.svg\n", options};

#define OPERATIONS                                                                           \
	"bcast, reduce, allreduce, reduce_scatter, scatter, gather, allgather, alltoall or " \
	"barrier"

static int check(struct gct_plan_options *o, int argc, char **argv)
{
	const char *lab = getenv("GRIDCOLL_LAB");

	if (!o->run.grid && lab && *lab) {
		o->run.lab = lab;
		o->run.lab_from_environment = 1;
	}
	if (!o->run.grid && !o->run.lab)
		return gct_wrong(
			"plan", "no --grid, expected a grid file, see gridcoll plan --help");
	if (o->explain && argc)
		return wrong("operation", argv[0], "none: --explain FILE names it");
	if (o->explain && (o->has_nbytes || o->algorithm || o->has_root || o->dilation))
		return wrong("--explain", o->explain,
			"no --bytes, --algorithm, --root or --dilate with it: the file names them");
	if (o->explain && (o->run.hosts || o->run.nranks || o->run.per_host))
		return wrong("--explain", o->explain,
			"no --hosts, -n or --per-host with it: the file names them");
	if (o->explain && (o->cold || o->ports))
		return wrong("--explain", o->explain, "no --cold or --ports with it");
	if (o->explain && (o->table || o->schedule_of != UINT64_MAX))
		return wrong("--explain", o->explain, "no --table or --print-schedule with it");
	if (o->explain)
		return 0;
	if (!argc)
		return gct_wrong("plan", "no operation, expected " OPERATIONS);
	if (argc > 1)
		return wrong("operation", argv[1], "only one");
	o->kind = gci_kind_find(argv[0]);
	if (o->kind < 0)
		return wrong("operation", argv[0], OPERATIONS);
	if (!o->has_nbytes && o->kind != GCI_BARRIER)
		return gct_wrong("plan", "no --bytes, expected " GCT_NBYTES_EXPECTED);
	return 0;
}

/* 0; an exit status after saying what is wrong; or GCT_HELPED. */
static int gct_plan_parse(struct gct_plan_options *o, int argc, char **argv)
{
	int first, rc;

	*o = (struct gct_plan_options){.kind = -1, .schedule_of = UINT64_MAX, .root = UINT64_MAX};
	rc = gct_options(&command_line, o, argc, argv, GCI_OPTIONS_ANYWHERE, &first);
	o->has_root = o->root != UINT64_MAX;
	if (!o->has_root)
		o->root = 0;
	return rc ? rc : check(o, argc - first, argv + first);
}

/* ---- the simulation of all ways */

#define MOST_STEPS        (1u << 19) /* of each way, on all ranks */
#define ALL_STEPS         (1u << 20) /* of all ways */
#define MOST_CHOICE_STEPS (1u << 24) /* of the choice */

/* ---- which way */

struct planning {
	const struct gct_plan_options *o;
	struct gct_site site;
	struct gci_coll coll;
	struct gct_ways ways;
	struct gci_candidate usual, wanted; /* what a job does by itself; what is shown */
	int has_wanted;
	char chosen_by[300];
	struct gct_timeline timeline;
	struct gci_sim_result result;
	struct gct_plan_report report;
};

static int ask_table(struct planning *p)
{
	const char *path = p->o->table;
	struct gci_error e = {0};
	struct gci_buf text = {0};
	struct gci_decision d;
	struct gci_table t;
	int rc = gci_file_read(path, GCI_TABLE_MAX_TEXT, &text, &e);

	if (!rc) {
		rc = gci_table_parse(&t, gci_buf_cstr(&text), text.len, path,
			gci_grid_digest(&p->site.place.grid), &e);
		if (!rc && gci_decide_by_table(&t, &p->coll, &d)) {
			p->wanted = d.how;
			p->has_wanted = 1;
			snprintf(p->chosen_by, sizeof(p->chosen_by), "decided by %.200s of %s",
				path, t.date);
		} else if (!rc) {
			fprintf(stderr,
				"gridcoll plan: warning: %s has no decision on %s with %d ranks in "
				"%d clusters that can run it (it is of %d in %d)\n",
				path, gci_kind_name(p->coll.kind), p->coll.topo->nranks,
				p->coll.topo->nclusters, t.nranks, t.nclusters);
		}
		if (!rc)
			gci_table_free(&t);
	}
	gci_buf_free(&text);
	return rc ? gct_plan_go_without(&e, "without a table") : 0;
}

static int ask_user(struct planning *p)
{
	struct gci_error e = {0};
	const char *why;

	if (gci_candidate_parse(&p->wanted, p->coll.kind, p->o->algorithm, &e))
		return gct_plan_complain(&e);
	why = gci_ineligible(p->wanted.algorithm, &p->coll);
	if (why)
		return gct_wrong("plan", "--algorithm \"%s\": it %s", p->o->algorithm, why);
	p->has_wanted = 1;
	snprintf(p->chosen_by, sizeof(p->chosen_by), "asked for");
	return 0;
}

static int make_coll(struct planning *p)
{
	p->coll = (struct gci_coll){.kind = (enum gci_kind)p->o->kind, .topo = &p->site.topo};
	p->report.nbytes = gct_shape(&p->coll, p->o->nbytes);
	if (p->o->root >= (uint64_t)p->site.topo.nranks)
		return gct_wrong("plan", "--root \"%llu\", expected a rank from 0 to %d",
			(unsigned long long)p->o->root, p->site.topo.nranks - 1);
	if (p->o->schedule_of != UINT64_MAX && p->o->schedule_of >= (uint64_t)p->site.topo.nranks)
		return gct_wrong("plan", "--print-schedule \"%llu\", expected a rank from 0 to %d",
			(unsigned long long)p->o->schedule_of, p->site.topo.nranks - 1);
	p->coll.root = gci_kind_has_root(p->coll.kind) ? (int)p->o->root : 0;
	return 0;
}

/* What a job would do that has neither a table nor options; without either here, too, it is what is
 * shown. */
static int ask_decider(struct planning *p)
{
	struct gci_decider d;
	struct gci_decision how;
	int rc = gci_decider_init(&d, &p->site.topo, p->o->streams);

	if (rc)
		return gct_plan_nomem();
	rc = gci_decide(&d, &p->coll, &how);
	gci_decider_free(&d);
	if (rc)
		return gct_plan_nomem(); /* every kind has an algorithm that runs anything */
	p->usual = how.how;
	if (p->has_wanted)
		return 0;
	p->wanted = how.how;
	p->has_wanted = 1;
	snprintf(p->chosen_by, sizeof(p->chosen_by), "%s",
		how.by == GCI_BY_SIMULATION ? "as gridcoll chooses by a quick simulation"
					    : "gridcoll's default");
	return 0;
}

/* All that can be compared; what is shown is among it. */
static int compare(struct planning *p)
{
	int rc = gct_ways_add_all(&p->ways);

	if (!rc)
		rc = gct_ways_add(&p->ways, &p->usual);
	if (!rc)
		rc = gct_ways_add(&p->ways, &p->wanted);
	if (!rc)
		rc = gct_ways_simulate(&p->ways, MOST_STEPS, ALL_STEPS);
	return rc ? gct_plan_nomem() : 0;
}

/* The choice is simulated, however many steps it has. */
static int choose(struct planning *p)
{
	struct gct_way *way = gct_ways_find(&p->ways, &p->wanted);
	int rc;

	gct_way_progress(&p->coll, &way->how);
	rc = gct_way_simulate(
		&p->site.net, &p->coll, &way->how, MOST_CHOICE_STEPS, &p->timeline, &p->result);
	gct_progress_end();
	if (rc == GCOLL_ERR_INVAL)
		return gct_wrong("plan",
			"%s: more than %u steps, expected longer segments, a "
			"shorter message or fewer ranks",
			way->how.algorithm->name, MOST_CHOICE_STEPS);
	if (rc)
		return gct_plan_nomem();
	*way->why_not = '\0';
	way->ns = p->result.ns;
	gct_ways_sort(&p->ways);
	p->report.choice = gct_ways_find(&p->ways, &p->wanted);
	return 0;
}

/* ---- reports */

static void fill_report(struct planning *p)
{
	struct gct_plan_report *r = &p->report;
	size_t i;

	r->coll = &p->coll;
	r->net = &p->site.net;
	r->names = p->site.names;
	r->clusters = p->site.clusters;
	r->wires = (const char *const *)p->site.wires;
	r->limit_ns = gci_bound_ns(&p->coll, p->o->streams);
	r->dilation = p->site.place.grid.dilation;
	r->ways = &p->ways;
	r->usual = &p->usual;
	r->chosen_by = p->chosen_by;
	r->basis = p->site.basis;
	r->result = &p->result;
	r->nupgrades = r->choice->how.algorithm->traits & GCI_PACKS && p->coll.topo->nclusters > 1
			       ? gct_upgrades(&p->coll, &p->result, r->upgrades)
			       : -1;
	for (i = 0; i < p->timeline.n; i++) {
		uint64_t n = p->timeline.spans[i].nbytes;

		if (p->timeline.spans[i].kind != GCI_STEP_SEND || !n)
			continue;
		r->most_message = n > r->most_message ? n : r->most_message;
		if (!r->least_message || n < r->least_message)
			r->least_message = n;
	}
}

static int write_chart(struct planning *p)
{
	const struct gct_plan_report *r = &p->report;
	char how[GCI_CANDIDATE_NBYTES], bytes[16], time[16], title[200];
	struct gct_gantt g = {.timeline = &p->timeline,
		.title = title,
		.subtitle = r->basis,
		.names = r->names,
		.clusters = r->clusters,
		.limit_ns = r->limit_ns,
		.dilation = r->dilation};
	struct gci_error e = {0};
	struct gci_buf svg = {0};
	int rc;

	gci_candidate_print(&r->choice->how, how);
	snprintf(title, sizeof(title), "%s of %s by %s: predicted %s", gci_kind_name(p->coll.kind),
		gci_format_bytes(r->nbytes, bytes, 16), how,
		gci_format_time(r->choice->ns / r->dilation, time, 16));
	if (p->timeline.cut)
		return gct_wrong("plan",
			"--gantt: more than %u steps, expected longer segments or "
			"a shorter message",
			GCT_MOST_SPANS);
	rc = gct_gantt_print(&g, &svg) ? gct_plan_nomem() : 0;
	if (!rc && gci_file_write(p->o->gantt, &svg, &e))
		rc = gct_plan_complain(&e);
	gci_buf_free(&svg);
	return rc;
}

static int print_schedule(struct planning *p, struct gci_buf *out)
{
	const struct gci_algorithm *a = p->report.choice->how.algorithm;
	struct gci_coll c = p->coll;
	struct gci_packed *packed = NULL;
	struct gci_windows w;
	struct gci_sched s;
	int rc;

	gci_candidate_apply(&p->report.choice->how, &c);
	if (a->traits & GCI_PACKS &&
		gci_timed_make(&packed, &p->site.net, a, &c, 0, MOST_CHOICE_STEPS))
		return gct_plan_nomem();
	gci_windows_cut(&w, &c, GCI_WINDOW_NBYTES);
	gci_windows_segment(&c, &w);
	c = gci_window_of(&w, &c, 0);
	c.packed = packed;
	rc = gci_emit(a, &c, (int)p->o->schedule_of, &s);
	gci_packed_free(packed);
	if (rc)
		return gct_plan_nomem();
	gci_sched_print(&s, out);
	gci_sched_free(&s);
	return 0;
}

static int report(struct planning *p)
{
	struct gci_buf out = {0}, schedule = {0};
	int wanted = p->o->schedule_of != UINT64_MAX, rc = 0;

	fill_report(p);
	if (p->o->gantt)
		rc = write_chart(p);
	if (!rc && wanted)
		rc = print_schedule(p, &schedule);
	if (!rc && p->o->json)
		rc = gct_plan_json(&p->report, wanted ? gci_buf_cstr(&schedule) : NULL, &out)
			     ? gct_plan_nomem()
			     : 0;
	if (!rc && !p->o->json) {
		gct_plan_text(&p->report, &out);
		if (wanted)
			gci_buf_printf(&out, "\nsteps of rank %d, elements of %u bytes\n%s",
				(int)p->o->schedule_of, p->coll.esize, gci_buf_cstr(&schedule));
	}
	if (!rc && (out.failed || schedule.failed))
		rc = gct_plan_nomem();
	if (!rc)
		fputs(gci_buf_cstr(&out), stdout);
	gci_buf_free(&out);
	gci_buf_free(&schedule);
	return rc;
}

static int plan(const struct gct_plan_options *o)
{
	struct planning p = {.o = o};
	const struct gct_site_wish wish = {.run = &o->run,
		.dilation = o->dilation,
		.streams = o->streams,
		.params = o->params,
		.ports = o->ports,
		.cold = o->cold};
	int rc = gct_site_make(&p.site, &wish);

	if (!rc)
		rc = make_coll(&p);
	if (!rc && o->algorithm)
		rc = ask_user(&p);
	else if (!rc && o->table)
		rc = ask_table(&p);
	p.ways = (struct gct_ways){.net = &p.site.net, .coll = &p.coll};
	if (!rc)
		rc = ask_decider(&p);
	if (!rc)
		rc = compare(&p);
	if (!rc)
		rc = choose(&p);
	if (!rc)
		rc = report(&p);
	gct_timeline_free(&p.timeline);
	gci_sim_result_free(&p.result);
	gct_ways_free(&p.ways);
	gct_site_free(&p.site);
	return rc;
}

int gct_plan_command(int argc, char **argv)
{
	struct gct_plan_options o;
	int rc = gct_plan_parse(&o, argc, argv);

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	return o.explain ? gct_explain(&o) : plan(&o);
}
