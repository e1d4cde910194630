/* SPDX-License-Identifier: MIT */
#include "tools/doctor.h"

#include "base/mem.h"
#include "base/units.h"
#include "launcher/placement.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
	"usage: gridcoll doctor [options]\n"
	"       gridcoll-run ... gridcoll doctor [options]\n"
	"Checks this host for what slows bulk data down on long fat networks, and prints\n"
	"what to change, why, and the command. Changes nothing.\n"
	"  -g, --grid FILE   check buffers and limits against this grid (default: the\n"
	"                    job's, or the lab's, in $GRIDCOLL_LAB)\n"
	"  -s, --streams N   if a pair of ranks has so many connections (default: as the\n"
	"                    grid says, see gridcoll-grid(5))\n"
	"  -p, --params FILE if gridcoll-run is given these parameters, too\n"
	"      --host NAME   as this host of the grid (default: this host's name)\n"
	"      --root DIR    read proc and sys below DIR, and try nothing\n"
	"  -l, --lines       a line per finding, with the host's name (default in a job)\n"
	"  -j, --json        for programs\n"
	"  -h, --help        this text\n"
	"Exit status: 0 no problem, 1 problems, 2 wrong usage. In a job always 0.\n"
	"example: gridcoll doctor --grid my.grid --host k1\n";

struct options {
	struct gci_options run;
	const char *host, *root;
	uint64_t streams; /* 0: not said */
	int lines, json;
};

enum { HOST = 256, ROOT };

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"grid", 1, NULL, 'g'}, {"host", 1, NULL, HOST},
		{"streams", 1, NULL, 's'}, {"params", 1, NULL, 'p'}, {"root", 1, NULL, ROOT},
		{"lines", 0, NULL, 'l'}, {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	const char *lab = getenv("GRIDCOLL_LAB"), *job = getenv("GRIDCOLL_GRID");
	const char *text = getenv("GRIDCOLL_GRID_TEXT");
	int c;

	o->lines = !!getenv("GRIDCOLL_RANK");
	optind = 1;
	while ((c = getopt_long(argc, argv, ":g:s:p:ljh", longs, NULL)) != -1) {
		switch (c) {
		case 'g':
			o->run.grid = optarg;
			break;
		case 's':
			if (gci_parse_uint(optarg, GCI_GRID_MAX_STREAMS, &o->streams) ||
				!o->streams)
				return gct_wrong("doctor",
					"--streams \"%s\", expected a number from 1 to %d", optarg,
					GCI_GRID_MAX_STREAMS);
			break;
		case 'p':
			o->run.params = optarg;
			break;
		case HOST:
			o->host = optarg;
			break;
		case ROOT:
			o->root = optarg;
			break;
		case 'l':
			o->lines = 1;
			break;
		case 'j':
			o->json = 1;
			break;
		case 'h':
			gct_help(help);
			return -1;
		default:
			return gct_wrong_option("doctor", argv, longs, c);
		}
	}
	if (optind < argc)
		return gct_wrong("doctor", "argument \"%s\", expected options only", argv[optind]);
	/* The file need not be on every host. */
	if (job && text && getenv("GRIDCOLL_RANK") &&
		(o->run.grid ? !strcmp(o->run.grid, job) : !(lab && *lab))) {
		o->run.grid = job;
		o->run.grid_text = text;
	}
	if (!o->run.grid && lab && *lab) {
		o->run.lab = lab;
		o->run.lab_from_environment = 1;
	}
	return 0;
}

/* In a lab all hosts share this machine's name; a job with a rank on each tells them apart. */
static const char *lab_host(const struct gci_placement *p)
{
	const char *rank = getenv("GRIDCOLL_RANK"), *size = getenv("GRIDCOLL_SIZE");
	uint32_t r = rank ? (uint32_t)strtoul(rank, NULL, 10) : UINT32_MAX;

	return size && strtoul(size, NULL, 10) == p->size && r < p->size ? p->names[r] : NULL;
}

static int complain(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll doctor: %s\n", e->text);
	return e->status == GCOLL_ERR_NOMEM ? GCT_FAILED : GCT_USAGE;
}

/* In a job whose ranks have not got it handed over. */
static void add_advice(const struct options *o, struct gci_error *e)
{
	size_t used = strlen(e->text);

	if (o->run.grid && !o->run.grid_text && getenv("GRIDCOLL_RANK") &&
		access(o->run.grid, R_OK))
		snprintf(e->text + used, sizeof(e->text) - used,
			"; expected the file on each host: only gridcoll-run --grid hands it over, "
			"to ranks that it starts itself, by the same name and if it has less than "
			"%u KiB",
			GCI_GRID_HANDED >> 10);
}

static int read_grid(const struct options *o, struct gct_facts *f, struct gct_needs *n)
{
	struct gci_placement p = {0};
	struct gci_error e = {0};
	const char *host = o->host;
	int i, rc;

	if (!o->run.grid && !o->run.lab)
		return 0;
	if (gci_placement_make(&p, &o->run, &e)) {
		add_advice(o, &e);
		return complain(&e);
	}
	for (i = 0; o->streams && i < p.grid.nlinks; i++)
		p.grid.links[i].streams = (uint32_t)o->streams;
	if (!host && o->run.lab && lab_host(&p))
		snprintf(f->host, sizeof(f->host), "%.64s", lab_host(&p));
	if (gci_placement_params(&p, &o->run, &e))
		fprintf(stderr, "gridcoll doctor: %s; checking without them\n", e.text);
	if (host && gci_grid_find_host(&p.grid, host) < 0)
		rc = gct_wrong("doctor", "--host \"%s\", expected a host of the grid", host);
	else if (gct_needs_make(n, &p.grid, host ? host : f->host))
		rc = complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
	else
		rc = 0;
	snprintf(n->file, sizeof(n->file), "%.255s", o->run.grid ? o->run.grid : "the lab's grid");
	gci_placement_free(&p);
	return rc;
}

static int print(const struct options *o, const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f)
{
	struct gci_buf text = {0};
	int rc = 0;

	if (o->json) {
		rc = gct_doctor_json(r, n, f, &text);
		if (!rc)
			fwrite(text.data, 1, text.len, stdout);
	} else if (o->lines) {
		gct_doctor_lines(r, *f->host ? f->host : "this host", stdout);
	} else {
		gct_doctor_text(r, n, f, stdout);
	}
	gci_buf_free(&text);
	return rc;
}

/* Another directory than what was sent of a host has nothing to find a problem in. */
static int check_root(const char *root)
{
	static const char *const dirs[] = {"proc", "sys"};
	int i, n = 0;

	for (i = 0; i < 2; i++) {
		char *path = gci_asprintf("%s/%s", root, dirs[i]);
		struct stat st;

		if (!path)
			return complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
		n += !stat(path, &st) && S_ISDIR(st.st_mode);
		gci_free(path);
	}
	return n ? 0
		 : gct_wrong("doctor", "--root \"%s\", expected a directory with proc or sys in it",
			   root);
}

int gct_doctor(int argc, char **argv)
{
	struct options o = {.root = NULL};
	struct gct_facts *f;
	struct gct_needs needs = {.own_cluster = -1};
	struct gct_report report = {0};
	int rc = parse(&o, argc, argv);

	if (rc)
		return rc < 0 ? GCT_OK : rc;
	rc = o.root ? check_root(o.root) : 0;
	if (rc)
		return rc;
	f = gci_calloc(1, sizeof(*f));
	if (!f)
		return complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
	gct_facts_read(f, o.root ? o.root : "");
	if (!o.root)
		gct_facts_ask(f);
	rc = read_grid(&o, f, &needs);
	if (!rc && (gct_doctor_check(f, &needs, &report) || print(&o, &report, &needs, f)))
		rc = complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
	else if (!rc && gct_report_count(&report, GCT_PROBLEM) && !getenv("GRIDCOLL_RANK"))
		rc = GCT_FAILED;
	gct_report_free(&report);
	gct_needs_free(&needs);
	gci_free(f);
	return rc;
}
