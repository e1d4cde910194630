/* SPDX-License-Identifier: MIT */
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
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { OPT_BACKEND = 256, OPT_DILATE, OPT_MEM, OPT_QUIET, OPT_KEEP_AWAKE, OPT_WEATHER };

static const struct option options[] = {
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"dilate", required_argument, NULL, OPT_DILATE},
	{"mem", required_argument, NULL, OPT_MEM},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"keep-awake", no_argument, NULL, OPT_KEEP_AWAKE},
	{"weather", required_argument, NULL, OPT_WEATHER},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int bad(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "gridcoll lab: --%s %s: expected %s\n", option, value, expected);
	return -1;
}

static int set_backend(struct lab_options *o, const char *value)
{
	static const char *const names[] = {"auto", "host", "tap", "uml"};
	int i;

	for (i = 0; i < 4; i++)
		if (!strcmp(value, names[i])) {
			o->backend = (enum lab_backend)i;
			return 0;
		}
	return bad("backend", value, "auto, host, tap or uml");
}

static int set_dilation(struct lab_options *o, const char *value)
{
	uint64_t k;

	if (!strcmp(value, "auto")) {
		o->dilate_auto = 1;
		return 0;
	}
	if (gci_parse_uint(value, 10000, &k) || !k)
		return bad("dilate", value, "auto or a number from 1 to 10000");
	o->dilate_auto = 0;
	o->dilation = (uint32_t)k;
	return 0;
}

static int set_mem(struct lab_options *o, const char *value)
{
	if (gci_parse_bytes(value, &o->mem_nbytes) || o->mem_nbytes < (128u << 20) ||
		o->mem_nbytes > (1ull << 40))
		return bad("mem", value, "a size from 128M to 1T");
	return 0;
}

static int set_option(struct lab_options *o, int c, const char *value)
{
	switch (c) {
	case OPT_BACKEND:
		return set_backend(o, value);
	case OPT_DILATE:
		return set_dilation(o, value);
	case OPT_MEM:
		return set_mem(o, value);
	case OPT_QUIET:
		o->quiet = 1;
		return 0;
	case OPT_WEATHER:
		o->weather_file = value;
		return 0;
	case OPT_KEEP_AWAKE:
		o->keep_awake = 1;
		return 0;
	default:
		return -1;
	}
}

void lab_help(const char *usage)
{
	static const struct {
		const char *option, *text;
	} about[] = {
		{"--backend",
			"host: in the running kernel, by netem, as root; tap: there, too, but "
			"the links are this program's; uml: in a guest of user-mode "
			"Linux; auto (default): the first of these that works"},
		{"--dilate", "divide rates by K and multiply delays by it (default 1); auto: by as "
			     "much as the processors need, found by a second's trial"},
		{"--weather",
			"how links change meanwhile, a line for each time: \"12.5s kyoto tokyo "
			"rate=400Mbit loss=0.1%\" (of tap)"},
		{"--mem", "the guest's memory, e.g. 2GiB (default: by the number of hosts)"},
		{"--quiet", "say nothing but errors and warnings"},
		{"--keep-awake", "keep processors busy that others share: steadier times"},
	};
	static const char *const examples[] = {
		"run --dilate auto my.grid -- gridcoll bench bcast",
		"up my.grid",
		"down",
		"doctor my.grid",
		"plan my.grid",
		"link k1 down",
		"links kyoto tokyo rate=400Mbit loss=0.1%",
	};
	size_t i;

	printf("usage: gridcoll lab %s\n", usage);
	for (i = 0; i < sizeof(about) / sizeof(*about); i++) {
		const char *at = strstr(usage, about[i].option);

		if (!at)
			continue;
		gct_wrapped(
			stdout, about[i].text, printf("  %-29.*s", (int)strcspn(at, "]"), at), 31);
	}
	printf("  -h, --help                   this text\n");
	for (i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		if (!strncmp(usage, examples[i], strcspn(examples[i], " ")))
			printf("example: gridcoll lab %s\n", examples[i]);
}

int lab_parse(struct lab_options *o, int argc, char **argv, int wants_grid, const char *usage)
{
	int c, at, rc = 0;

	memset(o, 0, sizeof(*o));
	o->dilation = 1;
	optind = 1;
	while (!rc && (c = getopt_long(argc, argv, "+:h", options, &at)) != -1) {
		if (c == '?' || c == ':') {
			fprintf(stderr, "gridcoll lab: %s %s\n",
				c == ':' ? "a value is missing after" : "unknown option",
				argv[optind - 1]);
			rc = -1;
			break;
		}
		if (c == 'h') {
			lab_help(usage);
			return GCT_OK + 1;
		}
		rc = set_option(o, c, optarg);
		if (!rc && !strstr(usage, options[at].name)) {
			fprintf(stderr, "gridcoll lab: --%s is not for this verb\n",
				options[at].name);
			rc = -1;
		}
	}
	if (!rc && wants_grid) {
		/* "--" may stand where GRID is missing. */
		if (optind < argc && strcmp(argv[optind - 1], "--"))
			o->grid_file = argv[optind++];
		if (!o->grid_file) {
			fprintf(stderr, "gridcoll lab: no GRID, expected a grid file\n");
			rc = -1;
		}
	}
	if (!rc && optind < argc && !strcmp(argv[optind], "--"))
		optind++;
	o->command = argv + optind;
	if (rc)
		fprintf(stderr, "usage: gridcoll lab %s\n", usage);
	return rc ? GCT_USAGE + 1 : 0;
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
