/* SPDX-License-Identifier: MIT
 * gridcoll lab: a grid file's network on this machine. */
#include "tools/lab/lab.h"
#include "base/buf.h"
#include "netem/apply.h"
#include "netem/cpu.h"
#include "netem/guest.h"
#include "netem/host.h"
#include "netem/labfile.h"
#include "netem/netns.h"
#include "netem/plan.h"
#include "netem/tap.h"
#include "netem/uml.h"
#include "tools/lib/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- gridcoll lab doctor */

/* Boots a guest with a small grid, which tries all that a lab needs. */
static int try_uml(struct gci_error *e)
{
	static const char grid[] = "[cluster a]\nhosts = a\nnic = 1Gbit\nlan_delay = 50us\n"
				   "[cluster b]\nhosts = b\nnic = 1Gbit\n"
				   "[link a b]\nrate = 1Gbit\ndelay = 1ms\n";
	struct gci_uml_options options = {grid, 1, 512u << 20};
	uint64_t network_ns, all_ns;
	struct gci_uml *u;

	if (gci_uml_check(e))
		return -1;
	u = gci_uml_boot(&options, -1, e);
	if (!u)
		return -1;
	gci_uml_boot_times(u, &network_ns, &all_ns);
	printf("uml:  works: a guest with a small grid was up in %.1f s\n", (double)all_ns / 1e9);
	gci_uml_stop(u);
	return 0;
}

static int describe_grid(struct lab_options *o)
{
	struct gci_grid g;
	uint32_t k;
	int rc;

	o->dilate_auto = 0;
	o->dilation = 1;
	rc = lab_load_grid(o, &g);
	if (rc)
		return rc;
	k = lab_dilation(o, &g);
	printf("grid: %s: %d hosts in %d clusters; --dilate auto would choose %u; in uml with %llu "
	       "MiB of memory\n",
		o->grid_file, g.nhosts, g.nclusters, k,
		(unsigned long long)(lab_memory(o, &g) >> 20));
	gci_grid_free(&g);
	return GCT_OK;
}

static int lab_doctor(int argc, char **argv)
{
	static const char usage[] = "doctor [GRID]";
	struct gci_error host = {0}, tap = {0}, uml = {0};
	struct lab_options o;
	int rc = lab_parse(&o, argc, argv, 0, usage);
	int host_works, tap_works, uml_works;

	if (rc)
		return rc - 1;
	if (*o.command && lab_nothing_more(o.command + 1, usage))
		return GCT_USAGE;
	host_works = !gci_host_check(&host);
	if (host_works)
		printf("host: works: root, with netem, tbf, fq and ifb\n");
	else
		printf("host: no: %s\n", host.text);
	tap_works = !gci_tap_check(&tap);
	printf("tap:  %s%s\n", tap_works ? "works: veth, bridge, tun, and tbf" : "no: ", tap.text);
	uml_works = !try_uml(&uml);
	if (!uml_works)
		printf("uml:  no: %s\n", uml.text);
	printf("auto: %s\n", host_works  ? "host"
			     : tap_works ? "tap"
			     : uml_works ? "uml"
					 : "none works here");
	if (*o.command) {
		o.grid_file = o.command[0];
		rc = describe_grid(&o);
	}
	return rc ? rc : host_works || tap_works || uml_works ? GCT_OK : GCT_FAILED;
}

/* ---- gridcoll lab link and links: what a program in a lab does to its network. */

static int asks_for_help(int argc, char **argv)
{
	return argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

/* GRIDCOLL_LAB, or NULL after telling that it is not there. */
static const char *lab_file(const char *verb)
{
	const char *lab = getenv("GRIDCOLL_LAB");

	if (!lab)
		fprintf(stderr,
			"gridcoll lab %s: GRIDCOLL_LAB is not set, expected to run inside a lab\n",
			verb);
	return lab;
}

/* gridcoll lab link HOST up|down: pulls a host's cable at the switch's end. */
static int lab_link(int argc, char **argv)
{
	static const char usage[] = "link HOST up|down";
	struct gci_lab_port port;
	struct gci_error e = {0};
	const char *lab;
	int home, rc;

	if (asks_for_help(argc, argv)) {
		lab_help(usage);
		return GCT_OK;
	}
	if (argc != 3 || (strcmp(argv[2], "up") && strcmp(argv[2], "down"))) {
		fprintf(stderr, "usage: gridcoll lab %s (inside a running lab)\n", usage);
		return GCT_USAGE;
	}
	lab = lab_file("link");
	if (!lab)
		return GCT_USAGE;
	rc = gci_labfile_port(lab, argv[1], &port, &e);
	home = rc ? -1 : gci_netns_open(NULL, &e);
	if (!rc && home >= 0)
		rc = gci_netns_enter(port.netns, &e);
	if (!rc && home >= 0) {
		const char *ip[] = {"ip", "link", "set", port.dev, argv[2], NULL};

		gci_lab_tool_run(ip, NULL, &e);
		gci_netns_leave(home);
	}
	return e.status ? lab_complain(&e) : GCT_OK;
}

/* gridcoll lab links [A B KEY=VALUE...]: what links between clusters did, or how they are from now. */
static int lab_links(int argc, char **argv)
{
	static const char usage[] = "links [A B|\"A > B\"|all KEY=VALUE...]";
	struct gci_buf request = {0}, out = {0};
	struct gci_error e = {0};
	int i;

	if (asks_for_help(argc, argv)) {
		lab_help(usage);
		return GCT_OK;
	}
	if (!lab_file("links"))
		return GCT_USAGE;
	for (i = 1; i < argc; i++)
		gci_buf_printf(&request, "%s%s", i > 1 ? " " : "", argv[i]);
	if (request.failed)
		gci_error_set(&e, GCOLL_ERR_NOMEM, "out of memory");
	else if (request.len && memchr(request.data, '\n', request.len))
		gci_error_set(&e, GCOLL_ERR_INVAL, "expected one line");
	else if (!gci_tap_ask(gci_buf_cstr(&request), &out, &e) && out.len)
		fputs(gci_buf_cstr(&out), stdout);
	gci_buf_free(&request);
	gci_buf_free(&out);
	return e.status ? lab_complain(&e) : GCT_OK;
}

/* ---- gridcoll lab up and down: a grid that stands until it is taken down. Only in the running
 * kernel: a guest of user-mode Linux lives as long as the command it was booted for. */

static int up(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e)
{
	const struct lab_way *way = &lab_ways[lab_choose(o, e)];
	struct gci_error why = {0};

	if (way->name && !way->up)
		gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"a lab that stands needs the host backend (%s), not %s, expected: gridcoll "
			"lab run GRID -- CMD (CMD may be a shell)",
			lab_ways[LAB_HOST].check(&why) ? why.text : "--backend host", way->name);
	return e->status ? GCT_FAILED : way->up(o, g, e);
}

static int lab_up(int argc, char **argv)
{
	static const char usage[] = "up [--backend auto|host] [--dilate K|auto] GRID";
	struct lab_options o;
	struct gci_error e = {0};
	struct gci_grid g;
	int rc = lab_parse_grid(&o, argc, argv, usage, &g);

	if (rc)
		return rc - 1;
	rc = up(&o, &g, &e);
	if (e.status)
		rc = lab_complain(&e);
	gci_grid_free(&g);
	return rc;
}

static int lab_down(int argc, char **argv)
{
	struct lab_options o;
	struct gci_error e = {0};
	int found = 0, rc = lab_parse(&o, argc, argv, 0, "down");

	if (rc)
		return rc - 1;
	if (lab_nothing_more(o.command, "down"))
		return GCT_USAGE;
	if (gci_host_down(&found, &e))
		return lab_complain(&e);
	if (!found)
		fprintf(stderr, "gridcoll lab: no lab stands on this machine\n");
	return GCT_OK;
}

/* ---- gridcoll lab run, plan, and gridcoll lab itself */

/* gridcoll lab run GRID -- CMD: the grid for one command. */
static int lab_run(int argc, char **argv)
{
	static const char usage[] =
		"run [--backend auto|host|tap|uml] [--dilate K|auto]\n"
		"                        [--weather FILE] [--mem SIZE] [--quiet]\n"
		"                        [--keep-awake]\n"
		"                        GRID -- CMD ARGS...";
	struct gci_awake awake = {0};
	const struct lab_way *way;
	struct lab_options o;
	struct gci_error e = {0};
	struct gci_grid g;
	int rc = lab_parse(&o, argc, argv, 1, usage);

	if (rc)
		return rc - 1;
	if (!*o.command) {
		fprintf(stderr, "gridcoll lab: no command, expected GRID -- CMD ARGS...\n");
		return GCT_USAGE;
	}
	rc = lab_load_grid(&o, &g);
	if (rc)
		return rc;
	if (o.keep_awake)
		gci_awake_begin(&awake);
	way = &lab_ways[lab_choose(&o, &e)];
	if (o.weather_file && !way->has_weather && !e.status)
		gci_error_set(&e, GCOLL_ERR_INVAL,
			"--weather %s: expected with the backend tap, whose links can change",
			o.weather_file);
	rc = e.status ? GCT_FAILED : way->run(&o, &g, &e);
	gci_awake_end(&awake);
	if (e.status)
		rc = lab_complain(&e);
	gci_grid_free(&g);
	return rc;
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

int gct_lab_command(int argc, char **argv)
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
