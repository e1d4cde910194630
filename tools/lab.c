/* SPDX-License-Identifier: MIT
 * gridcoll lab: a grid file's network on this machine. */
#include "tools/lab.h"

#include "base/buf.h"
#include "base/mem.h"
#include "netem/apply.h"
#include "netem/guest.h"
#include "netem/host.h"
#include "netem/plan.h"
#include "tools/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lab_complain(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll lab: error: %s\n", e->text);
	return e->status == GCOLL_ERR_PARSE || e->status == GCOLL_ERR_INVAL ? GCT_USAGE
									    : GCT_FAILED;
}

/* gridcoll lab plan GRID: what would be done, and nothing else. */
static int lab_plan(int argc, char **argv)
{
	static const char usage[] = "plan [--backend auto|host|tap|uml] [--dilate K|auto] GRID";
	struct lab_options o = {0};
	struct gci_lab_plan plan;
	struct gci_error e = {0};
	struct gci_buf text = {0};
	struct gci_grid g;
	struct gci_lab_how how = {0, 1, 1};
	int rc = lab_parse_grid(&o, argc, argv, usage, &g);

	if (rc)
		return rc - 1;
	/* Where no lab can be, what it would be elsewhere. */
	if (o.backend == LAB_AUTO)
		o.backend = lab_choose(&o, NULL);
	if (o.backend == LAB_TAP)
		how = (struct gci_lab_how){1, gci_host_has_qdisc("fq") == 1, gci_lab_has_cubic()};
	if (gci_lab_plan_make(&plan, &g, o.dilation, how, &e)) {
		rc = lab_complain(&e);
	} else {
		gci_lab_plan_print(&plan, &text);
		fputs(gci_buf_cstr(&text), stdout);
		gci_lab_plan_free(&plan);
	}
	gci_buf_free(&text);
	gci_grid_free(&g);
	return rc;
}

/* linux.uml adds an argument of its own behind ours. */
static int lab_guest(int argc, char **argv)
{
	return argc >= 2 ? gci_guest_main(argv[1]) : GCT_USAGE;
}

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* NULL: not for people */
} verbs[] = {
	{"run", lab_run, "[OPTIONS] GRID -- CMD... run CMD in the grid, take it down after it"},
	{"up", lab_up, "[OPTIONS] GRID           bring up the grid, let it stand (host only)"},
	{"down", lab_down, "                         take it down, or what a crashed lab left"},
	{"doctor", lab_doctor,
		"[GRID]                   which backend works here, what is missing"},
	{"plan", lab_plan, "[--dilate K] GRID        print the commands that build the grid"},
	{"link", lab_link, "HOST up|down             inside a lab: plug or pull a host's cable"},
	{"links", lab_links, "[A B KEY=VALUE...]       inside a lab: what links did; change some"},
	{"guest", lab_guest, NULL},
	{NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	const struct verb *v;

	fprintf(out, "usage: gridcoll lab VERB ...\n");
	for (v = verbs; v->name; v++)
		if (v->help)
			fprintf(out, "  %-7s %s\n", v->name, v->help);
	fprintf(out, "gridcoll lab VERB --help says more of each.\n"
		     "example: gridcoll lab run --dilate auto my.grid -- gridcoll bench bcast\n");
}

int gct_lab(int argc, char **argv)
{
	const struct verb *v;

	if (argc < 2) {
		usage(stderr);
		return GCT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return GCT_OK;
	}
	for (v = verbs; v->name; v++)
		if (!strcmp(argv[1], v->name))
			return v->run(argc - 1, argv + 1);
	fprintf(stderr, "gridcoll lab: unknown verb \"%s\", expected one of these:\n", argv[1]);
	usage(stderr);
	return GCT_USAGE;
}
