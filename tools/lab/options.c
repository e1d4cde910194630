/* SPDX-License-Identifier: MIT
 * The options of the verbs of gridcoll lab, and what goes wrong with them. */
#include "base/options.h"
#include "base/units.h"
#include "tools/lab/lab.h"
#include "tools/lib/model_files.h"
#include "tools/lib/tools.h"

#include <stdio.h>
#include <string.h>

static int take_backend(void *settings, char *value, struct gci_error *e)
{
	struct lab_options *o = settings;
	enum lab_backend b;

	for (b = LAB_AUTO; b < LAB_NBACKENDS; b++)
		if (!strcmp(value, b == LAB_AUTO ? "auto" : lab_ways[b].name)) {
			o->backend = b;
			return 0;
		}
	return gci_option_wrong(e, "backend", value, "auto, host, tap or uml");
}

static int take_dilation(void *settings, char *value, struct gci_error *e)
{
	struct lab_options *o = settings;
	uint64_t k = 1;

	o->dilate_auto = !strcmp(value, "auto");
	if (!o->dilate_auto && (gci_parse_uint(value, 10000, &k) || !k))
		return gci_option_wrong(e, "dilate", value, "auto or a number from 1 to 10000");
	o->dilation = (uint32_t)k;
	return 0;
}

/* Each verb has those that its usage names, and there the names of their values. */
static const struct gci_option options[] = {
	{0, "backend", "",
		"host: in the running kernel, by netem, as root; tap: there, too, but the links "
		"are this program's; uml: in a guest of user-mode Linux; auto (default): the "
		"first of these that works",
		.take = take_backend},
	{0, "dilate", "",
		"divide rates by K and multiply delays by it (default 1); auto: by as much as "
		"the processors need, found by a second's trial",
		.take = take_dilation},
	{0, "weather", "",
		"how links change meanwhile, a line for each time: \"12.5s kyoto tokyo "
		"rate=400Mbit loss=0.1%\" (of tap)",
		GCI_OPTION_TEXT(struct lab_options, weather_file)},
	{0, "mem", "", "the guest's memory, e.g. 2GiB (default: by the number of hosts)",
		GCI_OPTION_BYTES(
			struct lab_options, mem_nbytes, UINT64_C(128) << 20, UINT64_C(1) << 40),
		.expected = "a size from 128M to 1T"},
	{0, "quiet", NULL, "say nothing but errors and warnings",
		GCI_OPTION_FLAG(struct lab_options, quiet)},
	{0, "keep-awake", NULL, "keep processors busy that others share: steadier times",
		GCI_OPTION_FLAG(struct lab_options, keep_awake)},
	{0}};

#define NOPTIONS (sizeof(options) / sizeof(*options))

struct verb_options {
	struct gci_option list[NOPTIONS];
	char values[NOPTIONS][40];
};

static void of_verb(struct verb_options *v, const char *usage)
{
	size_t i, n = 0;

	memset(v, 0, sizeof(*v));
	for (i = 0; i + 1 < NOPTIONS; i++) {
		const char *name = strstr(usage, options[i].name), *value;

		if (!name)
			continue;
		value = name + strlen(options[i].name) + 1;
		snprintf(v->values[n], sizeof(v->values[n]), "%.*s", (int)strcspn(value, "]"),
			value);
		v->list[n] = options[i];
		if (options[i].value)
			v->list[n].value = v->values[n];
		n++;
	}
}

void lab_help(const char *usage)
{
	static const char *const examples[] = {
		"run --dilate auto my.grid -- gridcoll bench bcast",
		"up my.grid",
		"down",
		"doctor my.grid",
		"plan my.grid",
		"link k1 down",
		"links kyoto tokyo rate=400Mbit loss=0.1%",
	};
	struct verb_options v;
	size_t i;

	of_verb(&v, usage);
	printf("usage: gridcoll lab %s\n", usage);
	gci_options_print(v.list, stdout);
	for (i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		if (strcspn(usage, " ") == strcspn(examples[i], " ") &&
			!strncmp(usage, examples[i], strcspn(usage, " ")))
			printf("example: gridcoll lab %s\n", examples[i]);
}

/* What follows the options: [GRID] [-- COMMAND]; "--" may stand where GRID is missing. */
static int operands(struct lab_options *o, char **at, int wants_grid, struct gci_error *e)
{
	if (wants_grid && *at && strcmp(at[-1], "--"))
		o->grid_file = *at++;
	if (wants_grid && !o->grid_file)
		return gci_error_set(e, GCOLL_ERR_INVAL, "no GRID, expected a grid file");
	o->command = at + (*at && !strcmp(*at, "--"));
	return 0;
}

int lab_parse(struct lab_options *o, int argc, char **argv, int wants_grid, const char *usage)
{
	struct gci_error e = {0};
	struct verb_options v;
	int first;

	memset(o, 0, sizeof(*o));
	o->dilation = 1;
	of_verb(&v, usage);
	first = gci_options_read(v.list, o, argc, argv, GCI_OPTIONS_FIRST, "gridcoll lab VERB", &e);
	if (first == GCI_OPTIONS_HELP) {
		lab_help(usage);
		return GCT_OK + 1;
	}
	if (first == GCI_OPTIONS_WRONG || operands(o, argv + first, wants_grid, &e)) {
		fprintf(stderr, "gridcoll lab: %s\nusage: gridcoll lab %s\n", e.text, usage);
		return GCT_USAGE + 1;
	}
	return 0;
}

int lab_nothing_more(char **rest, const char *usage)
{
	if (!*rest)
		return 0;
	fprintf(stderr, "gridcoll lab: \"%s\" is too much\nusage: gridcoll lab %s\n", *rest, usage);
	return GCT_USAGE;
}

int lab_complain(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll lab: error: %s\n", e->text);
	return e->status == GCOLL_ERR_PARSE || e->status == GCOLL_ERR_INVAL ? GCT_USAGE
									    : GCT_FAILED;
}

static void say_dilation(struct lab_options *o)
{
	if (o->dilate_auto && !o->quiet)
		fprintf(stderr, "gridcoll lab: --dilate auto: %u (rates / %u, delays x %u)\n",
			o->dilation, o->dilation, o->dilation);
}

int lab_load_grid(struct lab_options *o, struct gci_grid *g)
{
	struct gci_error e = {0};

	if (gct_read_grid(o->grid_file, g, &e)) {
		lab_complain(&e);
		return e.status == GCOLL_ERR_NOMEM ? GCT_FAILED : GCT_USAGE;
	}
	if (o->dilate_auto)
		o->dilation = lab_dilation(o, g);
	say_dilation(o);
	gci_grid_dilate(g, o->dilation);
	return GCT_OK;
}

int lab_parse_grid(
	struct lab_options *o, int argc, char **argv, const char *usage, struct gci_grid *g)
{
	int rc = lab_parse(o, argc, argv, 1, usage);

	if (rc)
		return rc;
	rc = lab_nothing_more(o->command, usage);
	if (!rc)
		rc = lab_load_grid(o, g);
	return rc ? rc + 1 : 0;
}
