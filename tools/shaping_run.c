/* SPDX-License-Identifier: MIT
 * gridcoll shape run: a command whose connections to some networks are told how to behave. */
#include "base/mem.h"
#include "base/units.h"
#include "shaping/cgroup.h"
#include "shaping/sockops.h"
#include "shaping/sockops_shared.h"
#include "tools/shaping.h"
#include "tools/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_NETS 64

static const char help[] =
	"usage: gridcoll shape run --to NETWORK [options] -- COMMAND [ARGUMENT...]\n"
	"Runs COMMAND. Connections that it and what it starts open to the NETWORKs, or\n"
	"accept from them, get these settings from the kernel, before their first data:\n"
	"  -t, --to NETWORK            e.g. 10.2.0.0/16; may be given several times\n"
	"  -c, --congestion NAME       congestion control, e.g. bbr\n"
	"  -w, --initial-window N      packets that are sent without an answer at first\n"
	"  -r, --rto-min TIME          the least retransmission time-out, at most 200ms\n"
	"  -p, --pacing RATE           the most payload of one connection, e.g. 500Mbit\n"
	"  -l, --list                  in the end, each connection, what it sent again\n"
	"  -h, --help                  this text\n"
	"Needs root and cgroups of version 2. The exit status is COMMAND's.\n"
	"example: gridcoll shape run --to 10.2.0.0/16 --congestion bbr -- ./a.out\n";

struct run {
	struct gci_net nets[MOST_NETS];
	size_t n;
	struct gci_sockops_want want;
	int list;
	char **command;
};

static int add_net(struct run *r, const char *text)
{
	struct gci_error e = {0};

	if (r->n == MOST_NETS)
		return gct_wrong("shape", "run: more than %d networks", MOST_NETS);
	if (gci_net_parse(&r->nets[r->n], text, &e))
		return gct_wrong("shape", "run: --to %s", e.text);
	r->n++;
	return GCT_OK;
}

static int set_option(struct run *r, int c, const char *value)
{
	uint64_t v;

	switch (c) {
	case 't':
		return add_net(r, value);
	case 'c':
		if (!*value || strlen(value) >= sizeof(r->want.congestion))
			return gct_wrong("shape",
				"run: --congestion \"%s\", expected a name such as bbr", value);
		memcpy(r->want.congestion, value, strlen(value) + 1);
		return GCT_OK;
	case 'w':
		if (gci_parse_uint(value, 10000, &v) || !v)
			return gct_wrong("shape",
				"run: --initial-window \"%s\", expected a number from 1 to 10000",
				value);
		r->want.initial_window = (uint32_t)v;
		return GCT_OK;
	case 'r':
		if (gci_parse_time(value, &r->want.rto_min_ns) || !r->want.rto_min_ns ||
			r->want.rto_min_ns > 200000000)
			return gct_wrong("shape",
				"run: --rto-min \"%s\", expected a time of at most 200ms", value);
		return GCT_OK;
	case 'p':
		if (gci_parse_rate(value, &r->want.pacing_bps) || r->want.pacing_bps < 8)
			return gct_wrong("shape",
				"run: --pacing \"%s\", expected " GCI_RATE_EXPECTED, value);
		return GCT_OK;
	default:
		r->list = 1;
		return GCT_OK;
	}
}

static int parse(struct run *r, int argc, char **argv)
{
	static const struct option longs[] = {{"to", 1, NULL, 't'}, {"congestion", 1, NULL, 'c'},
		{"initial-window", 1, NULL, 'w'}, {"rto-min", 1, NULL, 'r'},
		{"pacing", 1, NULL, 'p'}, {"list", 0, NULL, 'l'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int c, rc = GCT_OK;

	optind = 1;
	while (!rc && (c = getopt_long(argc, argv, "+:t:c:w:r:p:lh", longs, NULL)) != -1) {
		if (c == 'h') {
			gct_help(help);
			return -1;
		}
		rc = c == '?' || c == ':' ? gct_wrong_option("shape", argv, longs, c)
					  : set_option(r, c, optarg);
	}
	r->command = argv + optind;
	if (!rc && (!r->n || !*r->command))
		rc = gct_wrong("shape", "run: expected --to NETWORK and -- COMMAND");
	return rc;
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

int gct_shape_run(int argc, char **argv)
{
	char cgroup[GCI_CGROUP_PATH];
	struct gci_sockops *s = NULL;
	struct gci_error e = {0};
	struct run r = {0};
	int rc = parse(&r, argc, argv), number, fd;

	if (rc)
		return rc < 0 ? GCT_OK : rc;
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
