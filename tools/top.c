/* SPDX-License-Identifier: MIT
 * `gridcoll top`: asks a job about its traffic, once or again and again. */
#include "tools/top.h"

#include "base/clock.h"
#include "base/units.h"
#include "tools/ctl_client.h"
#include "tools/json_out.h"
#include "tools/tools.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define FIRST_NS    (100 * GCI_NS_PER_MS)
#define WARM_NS     (1200 * GCI_NS_PER_MS) /* ranks have reported twice by then */
#define PATIENCE    3                      /* tries */
#define COURSE_BINS 1000

static const char help[] =
	"usage: gridcoll top [JOB] [options]\n"
	"Shows the traffic of a running job: for each pair of clusters its rate now,\n"
	"of the link's, what was sent, segments sent again and the longest round trip.\n"
	"JOB is the process id of its gridcoll-run, or the path of its control socket;\n"
	"not needed where one job runs. Keys: c connections, q quit.\n"
	"  -c, --connections    list each connection between clusters\n"
	"  -i, --interval TIME  between two looks (default 1s)\n"
	"  -1, --once           print it once, and end; also where the output is no\n"
	"                       terminal\n"
	"      --json           the same as JSON, with the traffic in bins of 10 ms\n"
	"      --prometheus     figures as Prometheus reads them\n"
	"  -h, --help           this text\n"
	"example: gridcoll-run --grid my.grid ./a.out &\n"
	"         gridcoll top\n";

struct top {
	struct gct_ctl ctl;
	json_t *job, *traffic;
	uint64_t interval_ns;
	int connections, once, json, prometheus;
	const char *name; /* of the job */
};

static int parse(struct top *t, int argc, char **argv)
{
	static const struct option longs[] = {{"connections", 0, NULL, 'c'},
		{"interval", 1, NULL, 'i'}, {"once", 0, NULL, '1'}, {"json", 0, NULL, 'J'},
		{"prometheus", 0, NULL, 'P'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	t->interval_ns = GCI_NS_PER_S;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":ci:1h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			t->connections = 1;
			break;
		case 'i':
			if (gci_parse_time(optarg, &t->interval_ns) || t->interval_ns < FIRST_NS ||
				t->interval_ns > 60 * GCI_NS_PER_S)
				return gct_wrong("top",
					"--interval \"%s\", expected a time from 100ms to 60s",
					optarg);
			break;
		case '1':
			t->once = 1;
			break;
		case 'J':
			t->json = 1;
			break;
		case 'P':
			t->prometheus = 1;
			break;
		case 'h':
			gct_help(help);
			return -1;
		default:
			return gct_wrong_option("top", argv, longs, c);
		}
	}
	if (argc - optind > 1)
		return gct_wrong("top", "\"%s\", expected one job", argv[optind + 1]);
	if (t->json && t->prometheus)
		return gct_wrong("top", "--json and --prometheus, expected one of them");
	t->name = argv[optind];
	return 0;
}

/* ---- asking */

static int ask(struct top *t, json_t *request, json_t **reply, struct gci_error *e)
{
	json_decref(*reply);
	*reply = gct_ctl_ask(&t->ctl, request, e);
	return *reply ? 0 : e->status;
}

static int ask_traffic(struct top *t, struct gci_error *e)
{
	json_int_t end = json_integer_value(json_object_get(t->traffic, "end_bin"));

	return ask(t,
		json_pack("{s:s, s:I, s:b}", "cmd", "traffic", "since",
			end > COURSE_BINS ? end - COURSE_BINS : 0, "connections", t->connections),
		&t->traffic, e);
}

/* The first question makes the ranks report: the answer to a later one has rates. */
static int ask_warm(struct top *t, struct gci_error *e)
{
	int i, rc = ask_traffic(t, e);

	for (i = 0; !rc && i < PATIENCE; i++) {
		if (i && json_is_true(json_object_get(t->traffic, "fresh")))
			break;
		gci_sleep_ns(WARM_NS);
		rc = ask_traffic(t, e);
	}
	return rc;
}

static int print_prometheus(struct top *t, struct gci_error *e)
{
	json_t *reply = NULL;
	int i, rc = 0;

	for (i = 0; !rc && i < PATIENCE; i++) {
		rc = ask(t, json_pack("{s:s}", "cmd", "prometheus"), &reply, e);
		if (rc || json_is_true(json_object_get(reply, "fresh")))
			break;
		gci_sleep_ns(WARM_NS);
	}
	if (!rc)
		fputs(json_string_value(json_object_get(reply, "text")), stdout);
	json_decref(reply);
	return rc;
}

static int columns_of(int fd, int *rows)
{
	struct winsize w;

	*rows = 0;
	if (ioctl(fd, TIOCGWINSZ, &w) || !w.ws_col)
		return 80;
	*rows = w.ws_row;
	return w.ws_col;
}

static int print_once(struct top *t, struct gci_error *e)
{
	struct gct_top_view v = {.connections = t->connections};
	struct gci_buf out = {0};
	int rows, rc = ask_warm(t, e);

	if (rc)
		return rc;
	if (t->json) {
		json_object_del(t->traffic, "ok");
		rc = gct_json_print(json_incref(t->traffic), 0, &out);
	} else {
		v.job = t->job;
		v.traffic = t->traffic;
		v.columns = columns_of(STDOUT_FILENO, &rows);
		gct_top_print(&v, &out);
	}
	fputs(gci_buf_cstr(&out), stdout);
	gci_buf_free(&out);
	return rc;
}

/* ---- the screen */

static struct termios before;
static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	if (sig != SIGWINCH)
		stopped = sig;
}

static int open_screen(struct gci_error *e)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	struct sigaction on = {.sa_handler = on_signal};
	struct termios raw;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &on, NULL); /* no SA_RESTART: poll is to end */
	if (tcgetattr(STDIN_FILENO, &before))
		return gci_error_errno(e, "standard input, expected a terminal (or --once)");
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	printf("\033[?1049h\033[?25l"); /* another screen, no cursor */
	return 0;
}

static void close_screen(void)
{
	printf("\033[?25h\033[?1049l");
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void draw(const struct top *t)
{
	struct gct_top_view v = {
		.job = t->job, .traffic = t->traffic, .connections = t->connections};
	struct gci_buf out = {0};
	const char *s, *end;

	v.columns = columns_of(STDOUT_FILENO, &v.rows);
	v.rows = v.rows > 1 ? v.rows - 1 : v.rows; /* the last line's end would scroll */
	gct_top_print(&v, &out);
	printf("\033[H");
	for (s = gci_buf_cstr(&out); *s; s = end + 1) {
		end = strchr(s, '\n');
		printf("%.*s\033[K\r\n", (int)(end - s), s);
	}
	printf("\033[J");
	fflush(stdout);
	gci_buf_free(&out);
}

/* Until the next look; 1: it is over. */
static int wait_for_key(struct top *t, uint64_t ns)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	if (poll(&in, 1, (int)(ns / GCI_NS_PER_MS)) <= 0)
		return stopped;
	if (read(STDIN_FILENO, &c, 1) <= 0 || c == 'q' || c == 'Q')
		return 1;
	if (c == 'c')
		t->connections = !t->connections;
	return stopped;
}

static int watch(struct top *t, struct gci_error *e)
{
	int rc = open_screen(e);
	uint64_t ns = FIRST_NS;

	if (rc)
		return rc;
	do {
		rc = ask_traffic(t, e);
		if (!rc)
			draw(t);
		else
			break;
		/* The first answers know little. */
		ns = json_is_true(json_object_get(t->traffic, "fresh")) ? t->interval_ns : FIRST_NS;
	} while (!wait_for_key(t, ns));
	close_screen();
	if (rc != GCOLL_ERR_ABORTED)
		return rc;
	printf("%s\n", e->text);
	return 0;
}

int gct_top(int argc, char **argv)
{
	struct gci_error e = {0};
	struct top t = {.ctl = {.fd = -1}};
	int rc = parse(&t, argc, argv);

	if (rc)
		return rc < 0 ? GCT_OK : rc;
	if (gct_ctl_open(&t.ctl, t.name, &e)) {
		fprintf(stderr, "gridcoll top: %s\n", e.text);
		return GCT_FAILED;
	}
	rc = ask(&t, json_pack("{s:s}", "cmd", "job"), &t.job, &e);
	if (!rc && t.prometheus)
		rc = print_prometheus(&t, &e);
	else if (!rc && (t.once || t.json || !isatty(STDOUT_FILENO)))
		rc = print_once(&t, &e);
	else if (!rc)
		rc = watch(&t, &e);
	if (rc)
		fprintf(stderr, "gridcoll top: %s\n", e.text);
	json_decref(t.job);
	json_decref(t.traffic);
	gct_ctl_close(&t.ctl);
	return rc ? GCT_FAILED : GCT_OK;
}
