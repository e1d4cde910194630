/* SPDX-License-Identifier: MIT
 * gridcoll ctl: asks a running job, and changes its budgets. */
#include "base/error.h"
#include "shaping/budget.h"
#include "tools/ctl/client.h"
#include "tools/lib/tools.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- the connection to a job */

#define PATIENCE_S 10
#define PID_DIGITS 10

/* Jobs of this user that run, if stopped: the last one's path, and a list for people. */
static int find_jobs(const char *directory, char *path, char *list, size_t size)
{
	DIR *d = opendir(directory);
	struct dirent *entry;
	int fd, n = 0;

	*list = '\0';
	while (d && (entry = readdir(d))) {
		char one[GCI_JOBCTL_PATH_NBYTES];

		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) ||
			strlen(entry->d_name) > PID_DIGITS ||
			snprintf(one, sizeof(one), "%s/%s", directory, entry->d_name) >=
				(int)sizeof(one))
			continue;
		fd = gci_jobctl_connect(one);
		if (fd < 0 && errno != EAGAIN)
			continue;
		if (fd >= 0)
			close(fd);
		memcpy(path, one, sizeof(one));
		if (size - strlen(list) > PID_DIGITS + 2) /* no half of a number */
			snprintf(list + strlen(list), size - strlen(list), "%s%.10s", n ? ", " : "",
				entry->d_name);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static int find_only(const char *directory, char path[GCI_JOBCTL_PATH_NBYTES], struct gci_error *e)
{
	char list[200];
	int n = find_jobs(directory, path, list, sizeof(list));

	if (!n)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no job of this user is running on this machine, expected a gridcoll-run");
	if (n > 1)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%d jobs are running, expected the process id of one of them: %s", n, list);
	return 0;
}

static int find(struct gct_ctl *c, const char *job, struct gci_error *e)
{
	char directory[GCI_JOBCTL_PATH_NBYTES];

	if (job && strchr(job, '/')) {
		if (strlen(job) >= sizeof(c->path))
			return gci_error_set(
				e, GCOLL_ERR_INVAL, "%s: expected a shorter path of a socket", job);
		snprintf(c->path, sizeof(c->path), "%s", job);
		return 0;
	}
	if (gci_jobctl_directory(directory, e))
		return e->status;
	if (!job)
		return find_only(directory, c->path, e);
	if (!*job || strspn(job, "0123456789") != strlen(job) || strlen(job) > PID_DIGITS)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"job \"%s\", expected the process id of a gridcoll-run, "
			"or the path of its socket",
			job);
	snprintf(c->path, sizeof(c->path), "%.90s/%.10s", directory, job);
	return 0;
}

int gct_ctl_open(struct gct_ctl *c, const char *job, struct gci_error *e)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};

	memset(c, 0, sizeof(*c));
	c->fd = -1;
	if (find(c, job, e))
		return e->status;
	c->fd = gci_jobctl_connect(c->path);
	if (c->fd < 0 && errno == EAGAIN)
		return gci_error_set(e, GCOLL_ERR_TIMEOUT,
			"the gridcoll-run at %s runs, but does not answer: "
			"it is stopped, or asked by too many",
			c->path);
	if (c->fd < 0)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no job answers at %s: %s, expected a running gridcoll-run of this user",
			c->path, strerror(errno));
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return 0;
}

static int broken(struct gci_error *e)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return gci_error_set(e, GCOLL_ERR_TIMEOUT,
			"the job's gridcoll-run has not answered for %d s", PATIENCE_S);
	return gci_error_set(e, GCOLL_ERR_ABORTED, "the job has ended");
}

static int send_all(struct gct_ctl *c, const char *text, size_t len, struct gci_error *e)
{
	while (len) {
		ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return broken(e);
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Until a whole line is there: its length, without the end; 0 with the reason. */
static size_t receive_line(struct gct_ctl *c, struct gci_error *e)
{
	size_t seen = 0;

	for (;;) {
		const uint8_t *end =
			c->in.len > seen ? memchr(c->in.data + seen, '\n', c->in.len - seen) : NULL;
		char chunk[16384];
		ssize_t n;

		if (end && end > c->in.data)
			return (size_t)(end - c->in.data);
		seen = c->in.len;
		n = recv(c->fd, chunk, sizeof(chunk), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : 0;
			broken(e);
			return 0;
		}
		gci_buf_put(&c->in, chunk, (size_t)n);
		if (c->in.failed || c->in.len > GCT_CTL_REPLY_NBYTES) {
			gci_error_set(e, GCOLL_ERR_NOMEM, "a reply too long to keep");
			return 0;
		}
	}
}

static json_t *take_reply(struct gct_ctl *c, struct gci_error *e)
{
	size_t len = receive_line(c, e);
	json_t *reply;

	if (!len)
		return NULL;
	reply = json_loadb((const char *)c->in.data, len, 0, NULL);
	gci_buf_consume(&c->in, len + 1);
	if (json_is_object(reply) && json_is_true(json_object_get(reply, "ok")))
		return reply;
	if (json_is_string(json_object_get(reply, "error")))
		gci_error_set(e, GCOLL_ERR_INVAL, "%s",
			json_string_value(json_object_get(reply, "error")));
	else
		gci_error_set(e, GCOLL_ERR_PROTO, "the job's reply is none that is known here");
	json_decref(reply);
	return NULL;
}

json_t *gct_ctl_ask(struct gct_ctl *c, json_t *request, struct gci_error *e)
{
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_t *reply = NULL;

	json_decref(request);
	if (!text)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	else if (!send_all(c, text, strlen(text), e) && !send_all(c, "\n", 1, e))
		reply = take_reply(c, e);
	free(text); /* jansson's */
	return reply;
}

void gct_ctl_close(struct gct_ctl *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	gci_buf_free(&c->in);
}

/* ---- the command */

static const char help[] =
	"usage: gridcoll ctl [JOB] status | budget A>B=RATE...\n"
	"Asks a running gridcoll-run of this user, or changes its budgets.\n"
	"  status             its links, their rates and budgets\n"
	"  budget A>B=RATE    send no faster than that from cluster A to B from now on,\n"
	"                     e.g. kyoto>tokyo=2Gbit; kyoto>tokyo=off: at will\n"
	"JOB is the process id of the gridcoll-run, or the path of its socket; it is not\n"
	"needed while only one job is running.\n"
	"example: gridcoll ctl budget 'kyoto>tokyo=2Gbit'\n";

static int failed(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll ctl: %s\n", e->text);
	return GCT_FAILED;
}

static int wrong(const char *what, const char *expected)
{
	fprintf(stderr, "gridcoll ctl: %s, expected %s (see --help)\n", what, expected);
	return GCT_USAGE;
}

/* As grid files have it, as short as it is exact. */
static const char *rate_text(json_int_t bps, char *out, size_t size)
{
	static const char *const units[] = {"bit", "kbit", "Mbit", "Gbit", "Tbit"};
	size_t unit = 0;

	while (unit < 4 && bps && bps % 1000 == 0) {
		bps /= 1000;
		unit++;
	}
	snprintf(out, size, "%lld%s", (long long)bps, units[unit]);
	return out;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "?";
}

static void print_status(const json_t *reply)
{
	json_t *links = json_object_get(reply, "links"), *l;
	json_int_t k = json_integer_value(json_object_get(reply, "dilation"));
	long long ranks = json_integer_value(json_object_get(reply, "ranks"));
	long long clusters = json_integer_value(json_object_get(reply, "clusters"));
	char rate[32], budget[32];
	size_t i;

	printf("%s: %lld rank%s in %lld cluster%s", text_of(reply, "command"), ranks,
		ranks == 1 ? "" : "s", clusters, clusters == 1 ? "" : "s");
	if (k > 1)
		printf(", in a lab that is %lld times slower than these rates", (long long)k);
	printf("\n");
	json_array_foreach (links, i, l) {
		json_int_t bps = json_integer_value(json_object_get(l, "rate_bps"));
		json_int_t most = json_integer_value(json_object_get(l, "budget_bps"));

		printf("  %s > %s  rate %s, budget %s\n", text_of(l, "from"), text_of(l, "to"),
			bps ? rate_text(bps, rate, sizeof(rate)) : "unknown",
			most ? rate_text(most, budget, sizeof(budget)) : "none");
	}
}

static int status(struct gct_ctl *c, struct gci_error *e)
{
	json_t *reply = gct_ctl_ask(c, json_pack("{s:s}", "cmd", "status"), e);

	if (!reply)
		return failed(e);
	print_status(reply);
	json_decref(reply);
	return GCT_OK;
}

static int budgets(struct gct_ctl *c, char **orders, struct gci_error *e)
{
	json_t *reply;

	for (; *orders; orders++) {
		reply = gct_ctl_ask(
			c, json_pack("{s:s, s:s}", "cmd", "budget", "budget", *orders), e);
		if (!reply)
			return failed(e);
		json_decref(reply);
	}
	return GCT_OK;
}

/* Before any of them is sent. */
static int check_budgets(char **orders)
{
	struct gci_budget_order o;
	struct gci_error e = {0};

	if (!*orders)
		return wrong("nothing behind budget", GCI_BUDGET_EXPECTED);
	for (; *orders; orders++)
		if (gci_budget_parse(&o, *orders, &e)) {
			fprintf(stderr, "gridcoll ctl: budget: %s\n", e.text);
			return GCT_USAGE;
		}
	return GCT_OK;
}

static int is_verb(const char *word)
{
	return word && (!strcmp(word, "status") || !strcmp(word, "budget"));
}

/* A process id or a path, that is. */
static int may_be_job(const char *word)
{
	return strchr(word, '/') || strspn(word, "0123456789") == strlen(word);
}

static int is_help(const char *word)
{
	return word && (!strcmp(word, "--help") || !strcmp(word, "-h"));
}

int gct_ctl_command(int argc, char **argv)
{
	struct gci_error e = {0};
	const char *job = NULL;
	struct gct_ctl c;
	int rc;

	if (is_help(argv[1]) || (argc > 2 && is_verb(argv[1]) && is_help(argv[2])))
		return fputs(help, stdout) < 0 ? GCT_FAILED : GCT_OK;
	argv++;
	if (*argv && **argv == '-') {
		fprintf(stderr, "gridcoll ctl: unknown option %s, expected none (see --help)\n",
			*argv);
		return GCT_USAGE;
	}
	if (*argv && !is_verb(*argv))
		job = *argv++;
	if (!is_verb(*argv))
		return wrong(*argv                     ? *argv
			     : job && !may_be_job(job) ? job
						       : "no verb",
			"status or budget");
	rc = !strcmp(*argv, "budget") ? check_budgets(argv + 1) : GCT_OK;
	if (!rc && !strcmp(*argv, "status") && argv[1])
		rc = wrong(argv[1], "nothing behind status");
	if (rc)
		return rc;
	if (gct_ctl_open(&c, job, &e))
		return failed(&e);
	rc = !strcmp(*argv, "budget") ? budgets(&c, argv + 1, &e) : status(&c, &e);
	gct_ctl_close(&c);
	return rc;
}
