/* SPDX-License-Identifier: MIT
 * gridcoll shape: rates for all that this host sends to a cluster, set by hand and looked at. */

#include "tools/shape/shape.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "shaping/cgroup.h"
#include "shaping/edt.h"
#include "shaping/sockops.h"
#include "shaping/sockops_shared.h"
#include "tools/lib/json_out.h"
#include "tools/lib/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- gridcoll shape run: a command whose connections to some networks are told how to behave. */

#define MOST_NETS 64

struct run {
	struct gci_net nets[MOST_NETS];
	size_t n;
	struct gci_sockops_want want;
	int list;
	char **command;
};

static int take_net(void *settings, char *value, struct gci_error *e)
{
	struct gci_error why = {0};
	struct run *r = settings;

	if (r->n == MOST_NETS)
		return gci_error_set(e, GCOLL_ERR_INVAL, "run: more than %d networks", MOST_NETS);
	if (gci_net_parse(&r->nets[r->n], value, &why))
		return gci_error_set(e, GCOLL_ERR_INVAL, "run: --to %s", why.text);
	r->n++;
	return 0;
}

static int take_congestion(void *settings, char *value, struct gci_error *e)
{
	struct run *r = settings;

	if (!*value || strlen(value) >= sizeof(r->want.congestion))
		return gci_option_wrong(e, "congestion", value, "a name such as bbr");
	memcpy(r->want.congestion, value, strlen(value) + 1);
	return 0;
}

static const struct gci_option run_options[] = {
	{'t', "to", "NETWORK", "e.g. 10.2.0.0/16; may be given several times", .take = take_net},
	{'c', "congestion", "NAME", "congestion control, e.g. bbr", .take = take_congestion},
	{'w', "initial-window", "N", "packets that are sent without an answer at first",
		GCI_OPTION_NUMBER(struct run, want.initial_window, 1, 10000)},
	{'r', "rto-min", "TIME", "the least retransmission time-out, at most 200ms",
		GCI_OPTION_TIME(struct run, want.rto_min_ns, 1, 200 * GCI_NS_PER_MS),
		.expected = "a time of at most 200ms"},
	{'p', "pacing", "RATE", "the most payload of one connection, e.g. 500Mbit",
		GCI_OPTION_RATE(struct run, want.pacing_bps, 8, UINT64_MAX)},
	{'l', "list", NULL, "in the end, each connection, what it sent again",
		GCI_OPTION_FLAG(struct run, list)},
	{0}};

static const struct gct_usage run_command_line = {"shape",
	"usage: gridcoll shape run --to NETWORK [options] -- COMMAND [ARGUMENT...]\n"
	"Runs COMMAND. Connections that it and what it starts open to the NETWORKs, or\n"
	"accept from them, get these settings from the kernel, before their first data:\n",
	"Needs root and cgroups of version 2. The exit status is COMMAND's.\n"
	"example: gridcoll shape run --to 10.2.0.0/16 --congestion bbr -- ./a.out\n",
	run_options};

static int parse_run(struct run *r, int argc, char **argv)
{
	int first, rc = gct_options(&run_command_line, r, argc, argv, GCI_OPTIONS_FIRST, &first);

	if (rc)
		return rc;
	r->command = argv + first;
	if (!r->n || !*r->command)
		return gct_wrong("shape", "run: expected --to NETWORK and -- COMMAND");
	return 0;
}

static int wait_for(const struct run *r, const char *cgroup)
{
	struct gci_error e = {0};
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		if (gci_cgroup_enter(cgroup, 0, &e)) {
			fprintf(stderr, "gridcoll shape: %s\n", e.text);
			_exit(GCT_FAILED);
		}
		execvp(*r->command, r->command);
		fprintf(stderr, "gridcoll shape: %s: %s\n", *r->command, strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (pid < 0) {
		fprintf(stderr, "gridcoll shape: cannot start a process: %s\n", strerror(errno));
		return GCT_FAILED;
	}
	/* What the terminal sends, the command gets, too; then its end is ours. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void say_refused(unsigned refused)
{
	static const char *const names[] = {
		"congestion control", "initial window", "rto-min", "pacing"};
	int i;

	for (i = 0; i < 4; i++)
		if (refused & (1u << i))
			fprintf(stderr, ", %s refused by the kernel", names[i]);
}

static void list(struct gci_sockops *s)
{
	struct gci_sockops_seen *seen = gci_calloc(GCI_SOCKOPS_MAX_CONNS, sizeof(*seen));
	char from[GCI_NET_TEXT], to[GCI_NET_TEXT];
	unsigned n = seen ? gci_sockops_list(s, seen, GCI_SOCKOPS_MAX_CONNS) : 0, i;

	for (i = 0; i < n; i++) {
		fprintf(stderr, "  %s port %u to %s port %u: %" PRIu64 " packets sent again",
			gci_net_text(&seen[i].local, from), seen[i].local_port,
			gci_net_text(&seen[i].remote, to), seen[i].remote_port,
			seen[i].retransmitted);
		say_refused(seen[i].refused);
		fprintf(stderr, "%s\n", seen[i].closed ? "" : ", still open");
	}
	gci_free(seen);
}

static void report(const struct run *r, struct gci_sockops *s, int number)
{
	struct gci_sockops_counters c;

	if (gci_sockops_count(s, number, &c))
		return;
	fprintf(stderr, "gridcoll shape: %" PRIu64 " connections, %" PRIu64 " packets sent again",
		c.opened, c.retransmitted);
	if (c.refused)
		fprintf(stderr,
			"; of %" PRIu64 " the kernel refused a setting (--list tells which)",
			c.refused);
	fprintf(stderr, "\n");
	if (r->list)
		list(s);
}

/* argv[0] is "run". Returns the exit status. */
static int gct_shape_run(int argc, char **argv)
{
	char cgroup[GCI_CGROUP_PATH];
	struct gci_sockops *s = NULL;
	struct gci_error e = {0};
	struct run r = {0};
	int rc = parse_run(&r, argc, argv), number, fd;

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	fd = gci_cgroup_make(cgroup, &e);
	if (fd < 0) {
		fprintf(stderr, "gridcoll shape: %s\n", e.text);
		return GCT_FAILED;
	}
	number = gci_sockops_open(&s, cgroup, &e);
	if (!number)
		number = gci_sockops_class(s, r.nets, r.n, &r.want, &e);
	if (number < 0) {
		fprintf(stderr, "gridcoll shape: %s\n", e.text);
		rc = GCT_FAILED;
	} else {
		rc = wait_for(&r, cgroup);
		report(&r, s, number);
	}
	gci_sockops_close(s);
	gci_cgroup_remove(cgroup);
	close(fd);
	return rc;
}

/* ---- gridcoll shape */

struct options {
	const char *dev;
	int json;
	char **words; /* what is no option */
	int nwords;
};

static const struct gci_option options[] = {
	{'d', "dev", "DEVICE", "default for status and clear: every device",
		GCI_OPTION_TEXT(struct options, dev)},
	{'j', "json", NULL, "for programs", GCI_OPTION_FLAG(struct options, json)}, {0}};

static const struct gct_usage command_line = {"shape",
	"usage: gridcoll shape [status] [--dev DEVICE] [--json]\n"
	"       gridcoll shape set --dev DEVICE CLASS RATE [NETWORK...]\n"
	"       gridcoll shape clear [--dev DEVICE] [CLASS]\n"
	"       gridcoll shape run --to NETWORK [options] -- COMMAND\n"
	"One rate for all that this host sends to some networks, by whatever process:\n"
	"earliest departure times by eBPF. Needs root, and fq on the device.\n"
	"  status            what is shaped, by whom, and what it has sent (default)\n"
	"  set               CLASS, e.g. the name of a cluster, may get RATE (4Gbit; or\n"
	"                    0bit: counts only) from now on, until it is cleared;\n"
	"                    NETWORKs, e.g. 10.2.0.0/16, are added to those that it has\n"
	"  clear             take back what was set for CLASS; without CLASS, take away\n"
	"                    all that gridcoll put there, of jobs that run, too\n",
	"example: gridcoll shape set --dev eth0 tokyo 4Gbit 10.2.0.0/16\n"
	"         gridcoll shape clear --dev eth0 tokyo\n",
	options};

static int complain(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll shape: %s\n", e->text);
	return e->status == GCOLL_ERR_INVAL ? GCT_USAGE : GCT_FAILED;
}

static int parse(struct options *o, int argc, char **argv)
{
	int first, rc = gct_options(&command_line, o, argc, argv, GCI_OPTIONS_ANYWHERE, &first);

	o->words = argv + (rc ? 0 : first);
	o->nwords = argc - (rc ? 0 : first);
	return rc;
}

/* --- status
 * ----------------------------------------------------------------------------------------- */

struct shown {
	const struct options *o;
	json_t *devices; /* with --json */
	int failed;
	unsigned n;
};

static void show_class(struct gci_edt *edt, const struct gci_edt_class *c)
{
	char rate[24] = "no limit", sent[16], waited[16], text[GCI_NET_TEXT];
	struct gci_net *nets = gci_calloc(GCI_EDT_NETS, sizeof(*nets));
	unsigned n = nets ? gci_edt_nets(edt, c->number, nets, GCI_EDT_NETS) : 0, i;
	unsigned jobs = c->holders - !!c->standing;

	if (c->bps)
		gci_format_rate(c->bps, rate, sizeof(rate));
	printf("  %-12s %s, set by %s%s", c->name, rate, c->standing ? "hand" : "",
		c->standing && jobs ? " and " : "");
	if (jobs)
		printf("%u job%s", jobs, jobs == 1 ? "" : "s");
	printf("\n    sent %s in %" PRIu64 " packets",
		gci_format_bytes(c->counters.nbytes, sent, sizeof(sent)), c->counters.packets);
	if (c->bps)
		printf(", the longest wait %s, dropped %" PRIu64,
			gci_format_time(c->counters.waited_ns, waited, sizeof(waited)),
			c->counters.dropped);
	printf("\n    to");
	for (i = 0; i < n; i++)
		printf(" %s", gci_net_text(&nets[i], text));
	printf("\n");
	gci_free(nets);
}

static json_t *class_json(struct gci_edt *edt, const struct gci_edt_class *c, int *failed)
{
	struct gci_net *nets = gci_calloc(GCI_EDT_NETS, sizeof(*nets));
	unsigned n = nets ? gci_edt_nets(edt, c->number, nets, GCI_EDT_NETS) : 0, i;
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {{"rate_bps", c->bps}, {"horizon_ns", c->horizon_ns}, {"holders", c->holders},
		{"bytes", c->counters.nbytes}, {"packets", c->counters.packets},
		{"dropped_packets", c->counters.dropped},
		{"dropped_bytes", c->counters.dropped_nbytes},
		{"longest_wait_ns", c->counters.waited_ns}};
	json_t *o = json_object(), *list = json_array();
	char text[GCI_NET_TEXT];

	gct_json_set(o, "class", json_string(c->name), failed);
	gct_json_set(o, "set_by_hand", json_boolean(c->standing), failed);
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		gct_json_set(o, numbers[i].key, gct_json_whole(numbers[i].value), failed);
	for (i = 0; i < n; i++)
		gct_json_append(list, json_string(gci_net_text(&nets[i], text)), failed);
	gct_json_set(o, "networks", list, failed);
	*failed |= !nets;
	gci_free(nets);
	return o;
}

static void show_device(struct shown *s, struct gci_edt *edt, const char *dev)
{
	struct gci_edt_class *c = gci_calloc(GCI_EDT_CLASSES, sizeof(*c));
	unsigned n = c ? gci_edt_list(edt, c) : 0, i;
	json_t *classes = s->devices ? json_array() : NULL, *o;

	s->failed |= !c;
	if (!classes)
		printf("%s: earliest departure times, %s\n", dev, gci_edt_how(edt));
	for (i = 0; i < n; i++) {
		if (classes)
			gct_json_append(classes, class_json(edt, &c[i], &s->failed), &s->failed);
		else
			show_class(edt, &c[i]);
	}
	if (classes) {
		o = json_object();
		gct_json_set(o, "device", json_string(dev), &s->failed);
		gct_json_set(o, "attached", json_string(gci_edt_how(edt)), &s->failed);
		gct_json_set(o, "classes", classes, &s->failed);
		gct_json_append(s->devices, o, &s->failed);
	}
	gci_free(c);
	s->n++;
}

/* Calls `each` for --dev or, without, for all devices of this network namespace, until it fails. */
static int for_devices(const char *dev, int (*each)(const char *dev, void *arg), void *arg)
{
	struct if_nameindex *all, *i;
	int rc = 0;

	if (dev)
		return each(dev, arg);
	all = if_nameindex();
	if (!all) {
		fprintf(stderr, "gridcoll shape: no list of devices: %s\n", strerror(errno));
		return GCT_FAILED;
	}
	for (i = all; !rc && i->if_name; i++)
		rc = each(i->if_name, arg);
	if_freenameindex(all);
	return rc;
}

static int status_of(const char *dev, void *arg)
{
	struct gci_error e = {0};
	struct gci_edt *edt;

	if (gci_edt_look(&edt, dev, &e))
		return complain(&e);
	if (edt)
		show_device(arg, edt, dev);
	gci_edt_close(edt);
	return GCT_OK;
}

static int status(const struct options *o)
{
	struct shown s = {.o = o, .devices = o->json ? json_array() : NULL};
	struct gci_buf out = {0};
	int rc;

	if (o->nwords)
		return gct_wrong("shape", "argument \"%s\", expected options only", o->words[0]);
	rc = for_devices(o->dev, status_of, &s);
	if (o->json) {
		s.failed = gct_json_print(s.devices, s.failed, &out);
		if (!rc && !s.failed)
			fputs(gci_buf_cstr(&out), stdout);
		gci_buf_free(&out);
	} else if (!rc && !s.n) {
		printf("nothing is shaped\n");
	}
	if (s.failed)
		fprintf(stderr, "gridcoll shape: out of memory\n");
	return rc ? rc : s.failed ? GCT_FAILED : GCT_OK;
}

/* --- set and clear
 * ---------------------------------------------------------------------------------- */

/* The number of a class, or -1. */
static int find_class(struct gci_edt *edt, const char *name, struct gci_edt_class *found)
{
	struct gci_edt_class *c = gci_calloc(GCI_EDT_CLASSES, sizeof(*c));
	unsigned n = c ? gci_edt_list(edt, c) : 0, i;
	int number = -1;

	for (i = 0; i < n && number < 0; i++)
		if (!strcmp(c[i].name, name)) {
			*found = c[i];
			number = c[i].number;
		}
	gci_free(c);
	return number;
}

static int parse_nets(char **words, int n, struct gci_net **nets)
{
	struct gci_error e = {0};
	int i, rc = GCT_OK;

	*nets = gci_calloc((size_t)n + 1, sizeof(**nets));
	if (!*nets)
		rc = gct_wrong("shape", "out of memory");
	for (i = 0; !rc && i < n; i++)
		if (gci_net_parse(&(*nets)[i], words[i], &e))
			rc = complain(&e);
	return rc;
}

static int apply(const struct options *o, uint64_t bps, const struct gci_net *nets, size_t n)
{
	const char *name = o->words[0];
	struct gci_edt_class c;
	struct gci_error e = {0};
	struct gci_edt *edt;
	char rate[24];
	int rc = GCT_OK;

	if (gci_edt_open(&edt, o->dev, GCI_EDT_STANDING, &e))
		return complain(&e);
	if (!n && find_class(edt, name, &c) < 0)
		rc = gct_wrong("shape", "set: class %s is new, expected its networks", name);
	else if (gci_edt_class(edt, name, nets, n, bps, &e) < 0)
		rc = complain(&e);
	else if (find_class(edt, name, &c) >= 0 && c.bps != bps)
		fprintf(stderr, "gridcoll shape: %s gets %s: a job asked for less\n", name,
			gci_format_rate(c.bps, rate, sizeof(rate)));
	gci_edt_close(edt);
	return rc;
}

static int set(const struct options *o)
{
	struct gci_net *nets = NULL;
	uint64_t bps;
	int rc;

	if (!o->dev || o->nwords < 2)
		return gct_wrong("shape", "set: expected --dev DEVICE CLASS RATE [NETWORK...]");
	if (gci_parse_rate(o->words[1], &bps))
		return gct_wrong("shape", "set: \"%s\", expected " GCI_RATE_EXPECTED, o->words[1]);
	rc = parse_nets(o->words + 2, o->nwords - 2, &nets);
	rc = rc ? rc : apply(o, bps, nets, (size_t)o->nwords - 2);
	gci_free(nets);
	return rc;
}

struct clearing {
	const char *name;
	int ncleared;
};

static int clear_class(const char *dev, void *arg)
{
	struct clearing *w = arg;
	struct gci_edt_class c;
	struct gci_error e = {0};
	struct gci_edt *edt;
	int number, rc = GCT_OK;

	/* First a look: opening would put the program there. */
	if (gci_edt_look(&edt, dev, &e))
		return complain(&e);
	number = edt ? find_class(edt, w->name, &c) : -1;
	gci_edt_close(edt);
	if (number < 0 || !c.standing)
		return GCT_OK;
	if (gci_edt_open(&edt, dev, GCI_EDT_STANDING, &e))
		return complain(&e);
	if (gci_edt_drop(edt, number, &e))
		rc = complain(&e);
	gci_edt_close(edt);
	w->ncleared++;
	return rc;
}

static int clear_all(const char *dev, void *arg)
{
	struct gci_error e = {0};

	(void)arg;
	return gci_edt_clear(dev, &e) < 0 ? complain(&e) : GCT_OK;
}

static int clear(const struct options *o)
{
	struct clearing w = {.name = o->words[0]};
	int rc;

	if (o->nwords > 1)
		return gct_wrong("shape", "clear: \"%s\" is too much", o->words[1]);
	if (!o->nwords)
		return for_devices(o->dev, clear_all, NULL);
	rc = for_devices(o->dev, clear_class, &w);
	if (rc || w.ncleared)
		return rc;
	fprintf(stderr,
		"gridcoll shape: clear: no class \"%s\" is set by hand on %s (see gridcoll shape "
		"status)\n",
		w.name, o->dev ? o->dev : "any device");
	return GCT_FAILED;
}

int gct_shape_command(int argc, char **argv)
{
	static const struct verb {
		const char *name;
		int (*run)(const struct options *o);
	} verbs[] = {{"status", status}, {"set", set}, {"clear", clear}};
	struct options o = {0};
	size_t i;
	int rc;

	if (argc > 1 && !strcmp(argv[1], "run"))
		return gct_shape_run(argc - 1, argv + 1);
	rc = parse(&o, argc, argv);
	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	if (!o.nwords)
		return status(&o);
	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(o.words[0], verbs[i].name)) {
			o.words++;
			o.nwords--;
			return verbs[i].run(&o);
		}
	return gct_wrong("shape", "\"%s\", expected status, set, clear or run", o.words[0]);
}

/* ---- shape */

uint64_t gct_shape(struct gci_coll *c, uint64_t nbytes)
{
	uint64_t n = gci_kind_has_vector(c->kind) ? 1 : (uint64_t)c->topo->nranks;
	uint64_t block = c->kind == GCI_BARRIER ? 0 : nbytes / n + (nbytes % n != 0);

	c->esize = block % 4 ? 1 : 4;
	c->count = block / c->esize;
	return block * n;
}
