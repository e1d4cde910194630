/* SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/terminal.h"
#include "base/units.h"
#include "netem/plan.h"
#include "netem/uml.h"
#include "tools/lab/lab.h"
#include "tools/lib/model_files.h"
#include "tools/lib/tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

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
		if (!strncmp(usage, examples[i], strcspn(examples[i], " ")))
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

int lab_read_weather(const struct lab_options *o, const struct gci_grid *g, struct gci_weather *w,
	struct gci_error *e)
{
	struct gci_buf text = {0};
	int rc;

	memset(w, 0, sizeof(*w));
	if (!o->weather_file)
		return 0;
	rc = gci_file_read(o->weather_file, GCI_WEATHER_MAX_NBYTES, &text, e);
	if (!rc)
		rc = gci_weather_parse(w, text.len ? (const char *)text.data : "", text.len,
			o->weather_file, g, e);
	if (!rc)
		gci_weather_dilate(w, o->dilation);
	gci_buf_free(&text);
	return rc;
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

/* What the machine has to spare, by /proc/meminfo. */
static uint64_t available_nbytes(void)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}

/* The guest's memory is a sparse file, so much costs little until it is used; but its page cache
 * grows to fill it. */
uint64_t lab_memory(const struct lab_options *o, const struct gci_grid *g)
{
	uint64_t want = (256u << 20) + (uint64_t)g->nhosts * (160u << 20);
	uint64_t most = available_nbytes() / 2;

	if (o->mem_nbytes)
		return o->mem_nbytes;
	if (want > most && most > (512u << 20))
		want = most;
	return want;
}

struct env {
	char **v;
	size_t n, cap;
	int failed;
};

static void env_add(struct env *env, char *entry)
{
	if (!entry || gci_grow(&env->v, &env->cap, env->n + 2, sizeof(*env->v))) {
		gci_free(entry);
		env->failed = 1;
		return;
	}
	env->v[env->n++] = entry;
	env->v[env->n] = NULL;
}

/* Our own program's directory first in PATH, so that gridcoll-run is found; in a build directory it
 * lies beside. */
static char *path_entry(const char *old)
{
	char self[4096], *slash, *entry;
	char beside[4200];

	if (gci_self_path(self, sizeof(self), NULL))
		return gci_asprintf("PATH=%s", old);
	slash = strrchr(self, '/');
	*slash = '\0';
	snprintf(beside, sizeof(beside), "%s/../launcher/gridcoll-run", self);
	if (!access(beside, X_OK))
		entry = gci_asprintf("PATH=%s:%s/../launcher:%s", self, self, old);
	else
		entry = gci_asprintf("PATH=%s:%s", self, old);
	return entry;
}

static void add_terminal(struct env *env)
{
	if (!isatty(2))
		return;
	env_add(env, gci_strdup(GCI_TERMINAL "=")); /* a guest fills it in: its pipe's name */
	env_add(env, gci_asprintf("COLUMNS=%d", gci_terminal_columns(2)));
}

static char **make_env(void)
{
	static const char *const ours[] = {"PATH=", "GRIDCOLL_LAB=", "COLUMNS=", GCI_TERMINAL "="};
	const char *path = getenv("PATH");
	struct env env = {0};
	size_t i, k;

	for (i = 0; environ[i]; i++) {
		for (k = 0; k < 4 && strncmp(environ[i], ours[k], strlen(ours[k])); k++)
			;
		if (k == 4)
			env_add(&env, gci_strdup(environ[i]));
	}
	env_add(&env, path_entry(path ? path : "/usr/local/bin:/usr/bin:/bin"));
	add_terminal(&env);
	if (!env.failed)
		return env.v;
	for (i = 0; i < env.n; i++)
		gci_free(env.v[i]);
	gci_free(env.v);
	return NULL;
}

int lab_make_job(const struct lab_options *o, struct gci_job *job, struct gci_error *e)
{
	char cwd[4096];
	size_t n = 0, i;

	memset(job, 0, sizeof(*job));
	if (!getcwd(cwd, sizeof(cwd)))
		return gci_error_errno(e, "the current directory");
	while (o->command[n])
		n++;
	job->cwd = gci_strdup(cwd);
	job->env = make_env();
	job->argv = gci_calloc(n + 1, sizeof(*job->argv));
	for (i = 0; job->argv && i < n; i++)
		job->argv[i] = gci_strdup(o->command[i]);
	for (i = 0; job->argv && i < n && job->argv[i]; i++)
		;
	if (job->cwd && job->env && job->argv && i == n)
		return 0;
	gci_job_free(job);
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}
