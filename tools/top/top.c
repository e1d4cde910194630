/* SPDX-License-Identifier: MIT
 * `gridcoll top`: asks a job about its traffic, once or again and again. */
#include "tools/top/top.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/ctl/client.h"
#include "tools/lib/json_out.h"
#include "tools/lib/tools.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* ---- the page */

#define LEAST_COLUMNS 60 /* lines are laid out for, and cut where the screen has less */
#define FEW_PAIRS     12
#define SLOWEST       5
#define PAYLOAD       1448 / 1514 /* of an Ethernet frame: what a link's rate leaves for data */

struct page {
	const struct gct_top_view *v;
	struct gci_buf *out;
	int columns, lines; /* columns: of the layout */
};

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? (uint64_t)n : 0;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* One line, cut to the screen's width. */

static void put(struct page *p, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	if (p->v->rows && p->lines >= p->v->rows)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	n = (int)strlen(line);
	n = n < p->v->columns ? n : p->v->columns;
	while (n && line[n - 1] == ' ')
		n--;
	gci_buf_printf(p->out, "%.*s\n", n, line);
	p->lines++;
}

static int room(const struct page *p, int lines)
{
	return !p->v->rows || p->lines + lines <= p->v->rows;
}

/* ---- the head */

static void put_head(struct page *p)
{
	const json_t *job = p->v->job;
	time_t s = (time_t)(number(p->v->traffic, "time_ns") / GCI_NS_PER_S);
	uint64_t k = number(job, "dilation");
	char clock[16] = "", lab[48] = "", command[64];
	struct tm tm;

	if (s && localtime_r(&s, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (k > 1)
		snprintf(lab, sizeof(lab), ", a lab %llu times slower", (unsigned long long)k);
	snprintf(command, sizeof(command), "%.48s", text(job, "command"));
	put(p, "gridcoll top  %s  job %llu: %s, %llu rank%s in %llu cluster%s%s", clock,
		(unsigned long long)number(job, "pid"), command,
		(unsigned long long)number(job, "ranks"), number(job, "ranks") == 1 ? "" : "s",
		(unsigned long long)number(job, "clusters"),
		number(job, "clusters") == 1 ? "" : "s", lab);
}

/* ---- pairs of clusters */

static int is_wan(const json_t *o)
{
	return strcmp(text(o, "from"), text(o, "to")) != 0;
}

/* Those between clusters first. */
static int by_name(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	int order = is_wan(y) - is_wan(x);

	if (!order)
		order = strcmp(text(x, "from"), text(y, "from"));
	return order ? order : strcmp(text(x, "to"), text(y, "to"));
}

/* And the busy ones before the others. */
static int by_rate(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	uint64_t rx = number(x, "rate_bps"), ry = number(y, "rate_bps");

	if (is_wan(x) != is_wan(y) || rx == ry)
		return by_name(a, b);
	return rx < ry ? 1 : -1;
}

/* The elements of an array, in order; NULL when there are none, or no memory. */
static const json_t **sorted(
	const json_t *array, size_t *n, int (*order)(const void *a, const void *b))
{
	size_t i, size = json_array_size(array);
	const json_t **list = size ? gci_calloc(size, sizeof(*list)) : NULL;

	*n = list ? size : 0;
	for (i = 0; i < *n; i++)
		list[i] = json_array_get(array, i);
	if (list)
		qsort(list, *n, sizeof(*list), order);
	return list;
}

static void make_bar(uint64_t rate, uint64_t most, int width, char *out, size_t size)
{
	int i, full = most ? (int)((double)rate * width / (double)most + 0.5) : 0;

	full = full < width ? full : width;
	if (!most || (size_t)width + 1 > size) {
		snprintf(out, size, "%*s", width, "");
		return;
	}
	for (i = 0; i < width; i++)
		out[i] = i < full ? '#' : '.';
	out[width] = '\0';
}

static const char *share(uint64_t rate, uint64_t most, char out[8])
{
	*out = '\0';
	if (most)
		snprintf(out, 8, "%.0f%%", (double)rate * 100 / (double)most);
	return out;
}

static void name_pair(const json_t *o, char *out, size_t size)
{
	if (is_wan(o))
		snprintf(out, size, "%.9s > %.9s", text(o, "from"), text(o, "to"));
	else
		snprintf(out, size, "%.12s inside", text(o, "from"));
}

static void put_pair(struct page *p, const json_t *o)
{
	uint64_t rate = number(o, "rate_bps"), most = number(o, "link_bps") * PAYLOAD;
	char name[24], bar[96], percent[8], r[16], sent[16], rtt[16];
	int width = p->columns - 68;

	name_pair(o, name, sizeof(name));
	make_bar(rate, most, width < 80 ? width : 80, bar, sizeof(bar));
	put(p, "%-20s %11s %s %4s %8s %7llu %8s", name, gci_format_rate(rate, r, sizeof(r)), bar,
		share(rate, most, percent),
		gci_format_bytes(number(o, "sent_bytes"), sent, sizeof(sent)),
		(unsigned long long)number(o, "resent_segments"),
		gci_format_time(number(o, "rtt_ns"), rtt, sizeof(rtt)));
}

static void put_pairs(struct page *p, const json_t **pairs, size_t n)
{
	int width = p->columns - 68;
	size_t i;

	put(p, "%-20s %11s %-*s %8s %7s %8s", "clusters", "now", (width < 80 ? width : 80) + 5,
		"of the link", "sent", "resent", "rtt");
	for (i = 0; i < n; i++) {
		if (!room(p, n - i > 1 ? 2 : 1)) {
			put(p, "... and %zu more", n - i);
			return;
		}
		put_pair(p, pairs[i]);
	}
}

/* ---- the last seconds of each link */

static uint64_t bin(const json_t *o, uint64_t number_of_bin)
{
	uint64_t first = number(o, "first_bin");
	json_int_t v = number_of_bin < first
			       ? 0
			       : json_integer_value(json_array_get(json_object_get(o, "bytes"),
					 (size_t)(number_of_bin - first)));

	return v > 0 ? (uint64_t)v : 0;
}

/* `each` bins a character, up to the newest. */
static void make_course(
	const struct page *p, const json_t *o, uint64_t each, int width, char *out, uint64_t *peak)
{
	static const char levels[] = " .:-=+*#";
	uint64_t end = number(p->v->traffic, "end_bin"), ns = number(p->v->traffic, "bin_ns");
	uint64_t most = number(o, "link_bps") * PAYLOAD, sum, i, at;
	double rates[200], top;
	int x;

	*peak = 0;
	for (x = 0; x < width; x++) {
		at = end - (uint64_t)(width - x) * each;
		for (i = 0, sum = 0; i < each && end > at; i++)
			sum += bin(o, at + i);
		rates[x] = (double)sum * 8 * (double)GCI_NS_PER_S / (double)(ns ? ns * each : 1);
		*peak = (uint64_t)rates[x] > *peak ? (uint64_t)rates[x] : *peak;
	}
	top = (double)(most ? most : *peak);
	for (x = 0; x < width; x++) {
		int level = top > 0 ? (int)(rates[x] * 7 / top + 0.999) : 0;

		out[x] = levels[level > 7 ? 7 : level];
	}
	out[width] = '\0';
}

static void put_courses(struct page *p, const json_t **pairs, size_t n)
{
	uint64_t ns = number(p->v->traffic, "bin_ns"), each = 10, peak;
	int width = p->columns - 41;
	char name[24], course[204], top[16];
	size_t i;

	width = width < 200 ? width : 200;
	if (!n || !is_wan(pairs[0]) || !ns || !room(p, 3))
		return;
	put(p, "%s", "");
	put(p, "the last %.0f s", (double)(each * ns) * width / (double)GCI_NS_PER_S);
	for (i = 0; i < n && is_wan(pairs[i]) && room(p, 2); i++) {
		name_pair(pairs[i], name, sizeof(name));
		make_course(p, pairs[i], each, width, course, &peak);
		put(p, "%-20s|%s| %s", name, course, gci_format_rate(peak, top, sizeof(top)));
	}
}

/* ---- ranks */

/* To other clusters; what does not send at all is not slow, but done. */
static int by_slowness(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	uint64_t rx = number(x, "rate_bps"), ry = number(y, "rate_bps");
	int sx = is_wan(x) && rx, sy = is_wan(y) && ry;

	if (sx != sy)
		return sy - sx;
	return rx < ry ? -1 : rx > ry;
}

static void put_ranks(struct page *p)
{
	char name[24], rate[16], sent[16], rtt[16];
	size_t n, i;
	const json_t **list = sorted(json_object_get(p->v->traffic, "ranks"), &n, by_slowness);

	if (n && is_wan(list[0]) && number(list[0], "rate_bps") && room(p, 4)) {
		put(p, "%s", "");
		put(p, "%-20s %5s %-13s %11s %8s %7s %8s", "slowest senders", "rank", "host", "now",
			"sent", "resent", "rtt");
	} else {
		n = 0;
	}
	for (i = 0; i < n && i < SLOWEST && is_wan(list[i]) && number(list[i], "rate_bps"); i++) {
		name_pair(list[i], name, sizeof(name));
		put(p, "%-20s %5llu %-13.13s %11s %8s %7llu %8s", name,
			(unsigned long long)number(list[i], "rank"), text(list[i], "host"),
			gci_format_rate(number(list[i], "rate_bps"), rate, sizeof(rate)),
			gci_format_bytes(number(list[i], "sent_bytes"), sent, sizeof(sent)),
			(unsigned long long)number(list[i], "resent_segments"),
			gci_format_time(number(list[i], "rtt_ns"), rtt, sizeof(rtt)));
	}
	gci_free(list);
}

/* ---- connections */

static int by_resent(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	uint64_t rx = number(x, "resent_segments"), ry = number(y, "resent_segments");

	return rx < ry ? 1 : -(rx > ry);
}

static void put_connection(struct page *p, const json_t *o)
{
	char cwnd[16], rate[16], paced[16], rtt[16], acked[16];

	put(p, "%5llu > %-5llu %3llu %9s %9s %8llu %9s %11s %11s",
		(unsigned long long)number(o, "rank"), (unsigned long long)number(o, "peer"),
		(unsigned long long)number(o, "stream"),
		gci_format_time(number(o, "rtt_ns"), rtt, sizeof(rtt)),
		gci_format_bytes(number(o, "cwnd_bytes"), cwnd, sizeof(cwnd)),
		(unsigned long long)number(o, "resent_segments"),
		gci_format_bytes(number(o, "acked_bytes"), acked, sizeof(acked)),
		gci_format_rate(number(o, "delivery_bps"), rate, sizeof(rate)),
		gci_format_rate(number(o, "pacing_bps"), paced, sizeof(paced)));
}

static void put_connections(struct page *p)
{
	size_t n, i;
	const json_t **list = sorted(json_object_get(p->v->traffic, "connections"), &n, by_resent);

	if (n && room(p, 3)) {
		put(p, "%s", "");
		put(p, "%-13s %3s %9s %9s %8s %9s %11s %11s", " rank > rank", "no", "rtt", "window",
			"resent", "arrived", "delivered", "paced at");
	}
	for (i = 0; i < n; i++) {
		if (!room(p, n - i > 1 ? 2 : 1)) {
			put(p, "... and %zu more", n - i);
			break;
		}
		put_connection(p, list[i]);
	}
	gci_free(list);
}

void gct_top_print(const struct gct_top_view *v, struct gci_buf *out)
{
	struct page p = {v, out, v->columns > LEAST_COLUMNS ? v->columns : LEAST_COLUMNS, 0};
	const json_t *pairs, **list;
	size_t n;

	put_head(&p);
	/* Lines that stay where they are read better, while all of them fit. */
	pairs = json_object_get(v->traffic, "pairs");
	list = sorted(pairs, &n, json_array_size(pairs) > FEW_PAIRS ? by_rate : by_name);
	if (!n) {
		put(&p, "no connection has been seen yet");
		return;
	}
	put(&p, "%s", "");
	put_pairs(&p, list, n);
	if (!v->connections)
		put_courses(&p, list, n);
	if (!v->connections)
		put_ranks(&p);
	else
		put_connections(&p);
	gci_free(list);
}

/* ---- the command */

#define FIRST_NS    (100 * GCI_NS_PER_MS)
#define WARM_NS     (1200 * GCI_NS_PER_MS) /* ranks have reported twice by then */
#define PATIENCE    3                      /* tries */
#define COURSE_BINS 1000

struct top {
	struct gct_ctl ctl;
	json_t *job, *traffic;
	uint64_t interval_ns;
	int connections, once, json, prometheus;
	const char *name; /* of the job */
};

static const struct gci_option options[] = {
	{'c', "connections", NULL, "list each connection between clusters",
		GCI_OPTION_FLAG(struct top, connections)},
	{'i', "interval", "TIME", "between two looks (default 1s)",
		GCI_OPTION_TIME(struct top, interval_ns, FIRST_NS, 60 * GCI_NS_PER_S),
		.expected = "a time from 100ms to 60s"},
	{'1', "once", NULL, "print it once, and end; also where the output is no terminal",
		GCI_OPTION_FLAG(struct top, once)},
	{0, "json", NULL, "the same as JSON, with the traffic in bins of 10 ms",
		GCI_OPTION_FLAG(struct top, json)},
	{0, "prometheus", NULL, "figures as Prometheus reads them",
		GCI_OPTION_FLAG(struct top, prometheus)},
	{0}};

static const struct gct_usage command_line = {"top",
	"usage: gridcoll top [JOB] [options]\n"
	"Shows the traffic of a running job: for each pair of clusters its rate now,\n"
	"of the link's, what was sent, segments sent again and the longest round trip.\n"
	"JOB is the process id of its gridcoll-run, or the path of its control socket;\n"
	"not needed where one job runs. Keys: c connections, q quit.\n",
	"example: gridcoll-run --grid my.grid ./a.out &\n"
	"         gridcoll top\n",
	options};

static int parse(struct top *t, int argc, char **argv)
{
	int first, rc;

	t->interval_ns = GCI_NS_PER_S;
	rc = gct_options(&command_line, t, argc, argv, GCI_OPTIONS_ANYWHERE, &first);
	if (rc)
		return rc;
	if (argc - first > 1)
		return gct_wrong("top", "\"%s\", expected one job", argv[first + 1]);
	if (t->json && t->prometheus)
		return gct_wrong("top", "--json and --prometheus, expected one of them");
	t->name = argv[first];
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

int gct_top_command(int argc, char **argv)
{
	struct gci_error e = {0};
	struct top t = {.ctl = {.fd = -1}};
	int rc = parse(&t, argc, argv);

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
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
