/* SPDX-License-Identifier: MIT
 * Results as a picture: a row for each operation, in it the throughput against the size of the
 * message, and for the largest size the traffic between clusters over time. The script for gnuplot
 * is made here, and gnuplot is run. */
#include "base/file.h"
#include "base/units.h"
#include "launcher/spawn.h"
#include "tools/bench/bench.h"
#include "tools/lib/cases.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int gct_bench_plot_script(
	const struct gct_bench *b, const struct gct_bench_result *r, int n, struct gci_buf *out);

/* ---- Runs gnuplot: a script in, what it draws out. Both go through files in memory, so neither
 * side waits for the other. */

#define HINT "expected gnuplot to be installed (Debian: apt-get install gnuplot-nox)"

static int run(const char *option, int in, int out, struct gci_error *e)
{
	static char name[] = "gnuplot";
	char argument[16];
	char *argv[] = {name, *option ? argument : NULL, NULL};
	const struct gci_spawn s = {
		.argv = argv, .fds = {in, out, STDERR_FILENO, -1}, .death_signal = 9};
	int status;
	pid_t pid;

	snprintf(argument, sizeof(argument), "%s", option);
	if (gci_spawn(&s, &pid, e))
		return e->status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return gci_error_errno(e, "gnuplot");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return gci_error_set(e, GCOLL_ERR_SYS, "gnuplot failed");
	return 0;
}

int gct_bench_can_plot(void)
{
	struct gci_error e = {0};

	if (run("--version", -1, -1, &e))
		return gci_comm_error(GCOLL_ERR_INVAL, "--plot: %s, " HINT, e.text);
	return 0;
}

/* It stays open, to be read from its beginning. */
static int fill(int fd, const struct gci_buf *text)
{
	return gci_file_write_to(dup(fd), text) || lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

static int drain(int fd, struct gci_buf *out)
{
	char chunk[16384];
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		gci_buf_put(out, chunk, (size_t)n);
	return n < 0 || out->failed ? -1 : 0;
}

static int draw(const struct gci_buf *script, struct gci_buf *picture, struct gci_error *e)
{
	int in = memfd_create("script", MFD_CLOEXEC), out = memfd_create("picture", MFD_CLOEXEC);
	int rc = 0;

	if (in < 0 || out < 0 || fill(in, script))
		rc = gci_error_errno(e, "a file in memory");
	if (!rc)
		rc = run("", in, out, e);
	if (!rc && (drain(out, picture) || !picture->len))
		rc = gci_error_set(e, GCOLL_ERR_SYS, "gnuplot has drawn nothing");
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return rc;
}

int gct_bench_plot(
	const struct gct_bench *b, const struct gct_bench_result *r, int n, const char *path)
{
	struct gci_buf script = {0}, picture = {0};
	struct gci_error e = {0};
	int rc = 0;

	if (gct_bench_plot_script(b, r, n, &script))
		gci_error_set(&e, GCOLL_ERR_INVAL, "no operation with a size was measured");
	else if (script.failed)
		gci_error_set(&e, GCOLL_ERR_NOMEM, "out of memory");
	else
		draw(&script, &picture, &e);
	rc = e.status ? gci_comm_error(e.status, "--plot %s: %s", path, e.text)
		      : gct_write(path, &picture);
	gci_buf_free(&script);
	gci_buf_free(&picture);
	return rc;
}

/* ---- the script */

#define MOST_COURSES 3 /* beside each other: of so many algorithms */
#define MOST_POINTS  240
#define WIDTH        640 /* of a panel */
#define HEIGHT       380
#define MOST_TICS    8

struct plot {
	const struct gct_bench *b;
	const struct gct_bench_result *r;
	int n;
	struct gci_buf *out;
};

/* In gnuplot's double quotes, without its markup. */
static void put_quoted(struct gci_buf *out, const char *s)
{
	gci_buf_put_u8(out, '"');
	for (; *s; s++)
		if (*s >= ' ' && *s != '"' && *s != '\\' && *s != '`')
			gci_buf_put_u8(out, (uint8_t)*s);
	gci_buf_put_u8(out, '"');
}

static int shows(const struct gct_bench_result *r)
{
	return !r->not_run[0] && r->kind != GCI_BARRIER && r->nbytes;
}

static int kind_shown(const struct plot *p, enum gci_kind kind)
{
	int i;

	for (i = 0; i < p->n; i++)
		if (p->r[i].kind == kind && shows(&p->r[i]))
			return 1;
	return 0;
}

/* What "auto" stood for may differ from size to size: the word before it is what was asked for. */
static int same_curve(const struct gct_bench_result *a, const struct gct_bench_result *b)
{
	return a->kind == b->kind && a->column == b->column;
}

static const char *curve_name(const struct plot *p, const struct gct_bench_result *r)
{
	int i;

	for (i = 0; i < p->n; i++)
		if (same_curve(&p->r[i], r) && shows(&p->r[i]) &&
			strcmp(p->r[i].algorithm, r->algorithm) != 0)
			return r->asked_algorithm;
	return r->algorithm;
}

/* The first result of its curve. */
static int is_first(const struct plot *p, int i)
{
	int k;

	for (k = 0; k < i; k++)
		if (same_curve(&p->r[k], &p->r[i]) && shows(&p->r[k]))
			return 0;
	return shows(&p->r[i]);
}

static uint64_t largest(const struct plot *p, enum gci_kind kind)
{
	uint64_t most = 0;
	int i;

	for (i = 0; i < p->n; i++)
		if (p->r[i].kind == kind && shows(&p->r[i]) && p->r[i].nbytes > most)
			most = p->r[i].nbytes;
	return most;
}

/* As people have it, who do not know of dilation. */
static double rate(const struct plot *p, uint64_t nbytes, uint64_t ns)
{
	return ns ? (double)nbytes * 8 * (double)GCI_NS_PER_S * p->b->lab.dilation / (double)ns : 0;
}

/* ---- throughput */

static void put_tics(const struct plot *p, enum gci_kind kind)
{
	uint64_t sizes[GCT_MAX_CASES];
	char text[16];
	int i, k, n = 0;

	for (i = 0; i < p->n; i++) {
		if (p->r[i].kind != kind || !shows(&p->r[i]))
			continue;
		for (k = 0; k < n && sizes[k] != p->r[i].nbytes; k++)
			;
		if (k == n && n < GCT_MAX_CASES)
			sizes[n++] = p->r[i].nbytes;
	}
	gci_buf_printf(p->out, "set xtics (");
	for (i = 0; i < n; i += 1 + n / (MOST_TICS + 1))
		gci_buf_printf(p->out, "%s\"%s\" %llu", i ? ", " : "",
			gci_format_bytes(sizes[i], text, sizeof(text)),
			(unsigned long long)sizes[i]);
	gci_buf_printf(p->out, ")\n");
}

/* Curve `of`, or with -1 the limit. */
static void put_data(const struct plot *p, enum gci_kind kind, int of)
{
	const struct gct_bench_result *r;
	int i;

	gci_buf_printf(p->out, "$d%d_%d << EOD\n", (int)kind, of + 1);
	for (i = 0; i < p->n; i++) {
		r = &p->r[i];
		if (r->kind != kind || !shows(r) || (of >= 0 && !same_curve(r, &p->r[of])))
			continue;
		if (of < 0 && !r->limit_ns)
			continue;
		gci_buf_printf(p->out, "%llu %.6g\n", (unsigned long long)r->nbytes,
			rate(p, r->nbytes, of < 0 ? r->limit_ns : gct_bench_median(r)));
	}
	gci_buf_printf(p->out, "EOD\n");
}

static int has_limit(const struct plot *p, enum gci_kind kind)
{
	int i;

	for (i = 0; i < p->n; i++)
		if (p->r[i].kind == kind && shows(&p->r[i]) && p->r[i].limit_ns)
			return 1;
	return 0;
}

static void put_throughput(const struct plot *p, enum gci_kind kind)
{
	const char *sep = "plot ";
	int i;

	put_data(p, kind, -1);
	for (i = 0; i < p->n; i++)
		if (p->r[i].kind == kind && is_first(p, i))
			put_data(p, kind, i);
	gci_buf_printf(
		p->out, "set title \"%s: throughput\"\nset logscale x 2\n", gci_kind_name(kind));
	gci_buf_printf(p->out, "set xlabel \"message\"\nset format y \"%%.1s %%cbit/s\"\n"
			       "set yrange [0:*]\nset xrange [*:*]\n");
	put_tics(p, kind);
	if (has_limit(p, kind)) {
		gci_buf_printf(p->out,
			"plot $d%d_0 with lines dashtype 2 linewidth 2 linecolor \"black\" title "
			"\"physical limit\"",
			(int)kind);
		sep = ", ";
	}
	for (i = 0; i < p->n; i++) {
		if (p->r[i].kind != kind || !is_first(p, i))
			continue;
		gci_buf_printf(p->out, "%s$d%d_%d with linespoints linewidth 2 title ", sep,
			(int)kind, i + 1);
		put_quoted(p->out, curve_name(p, &p->r[i]));
		sep = ", ";
	}
	gci_buf_printf(p->out, "\nunset logscale x\nset xtics auto\n");
}

/* ---- traffic over time */

static uint64_t course_sum(const struct gct_bench_result *r, size_t pair)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < r->ncourse; i++)
		sum += r->course[pair * r->ncourse + i];
	return sum;
}

static void put_course_data(
	const struct plot *p, const struct gct_bench_result *r, int at, size_t pair, uint32_t each)
{
	double k = p->b->lab.dilation, bin_s = (double)GCI_BIN_NS / (double)GCI_NS_PER_S / k;
	uint32_t i, j, n;
	uint64_t sum;

	gci_buf_printf(p->out, "$c%d_%zu << EOD\n", at, pair);
	for (i = 0; i < r->ncourse; i += each) {
		for (j = i, sum = 0, n = 0; j < r->ncourse && j < i + each; j++, n++)
			sum += r->course[pair * r->ncourse + j];
		gci_buf_printf(p->out, "%.6g %.6g\n", i * bin_s, (double)sum * 8 / (n * bin_s));
	}
	gci_buf_printf(p->out, "EOD\n");
}

/* The fastest link, if all are known: 0 else. */
static double link_rate(const struct plot *p)
{
	const struct gci_grid *g = p->b->comm->engine->grid;
	uint64_t most = 0;
	int i;

	for (i = 0; i < g->nlinks; i++)
		most = g->links[i].rate_bps > most ? g->links[i].rate_bps : most;
	return (double)most * p->b->lab.dilation * 1448 / 1514;
}

static void put_course(const struct plot *p, int at)
{
	const struct gct_bench_result *r = &p->r[at];
	const struct gci_grid *g = p->b->comm->engine->grid;
	size_t n = (size_t)g->nclusters, pair;
	uint32_t each = 1 + r->ncourse / MOST_POINTS;
	const char *sep = "plot ";
	char size[16], bin[16];

	for (pair = 0; pair < n * n; pair++)
		if (pair / n != pair % n && course_sum(r, pair))
			put_course_data(p, r, at, pair, each);
	gci_buf_printf(p->out, "set title \"%s of %s by ", gci_kind_name(r->kind),
		gci_format_bytes(r->nbytes, size, sizeof(size)));
	gci_buf_printf(p->out, "%s: between clusters, bins of %s\"\n", r->algorithm,
		gci_format_time(each * GCI_BIN_NS / p->b->lab.dilation, bin, sizeof(bin)));
	gci_buf_printf(p->out, "set xlabel \"time\"\nset format x \"%%g s\"\n"
			       "set yrange [0:*]\nset xrange [0:*]\n");
	if (link_rate(p) > 0) {
		gci_buf_printf(p->out,
			"plot %.6g with lines dashtype 2 linewidth 2 linecolor \"black\" "
			"title \"link\"",
			link_rate(p));
		sep = ", ";
	}
	for (pair = 0; pair < n * n; pair++) {
		char name[80];

		if (pair / n == pair % n || !course_sum(r, pair))
			continue;
		snprintf(name, sizeof(name), "%.30s > %.30s", g->clusters[pair / n].name,
			g->clusters[pair % n].name);
		gci_buf_printf(p->out, "%s$c%d_%zu with steps linewidth 2 title ", sep, at, pair);
		put_quoted(p->out, name);
		sep = ", ";
	}
	gci_buf_printf(p->out, "\nset format x\n");
}

static int has_course(const struct plot *p, const struct gct_bench_result *r)
{
	size_t n = (size_t)p->b->comm->engine->grid->nclusters, pair;

	if (!shows(r) || !r->course || r->nbytes != largest(p, r->kind))
		return 0;
	for (pair = 0; pair < n * n; pair++)
		if (pair / n != pair % n && course_sum(r, pair))
			return 1;
	return 0;
}

static int count_courses(const struct plot *p, enum gci_kind kind)
{
	int i, n = 0;

	for (i = 0; i < p->n; i++)
		n += p->r[i].kind == kind && has_course(p, &p->r[i]);
	return n < MOST_COURSES ? n : MOST_COURSES;
}

/* ---- the page */

static void put_row(const struct plot *p, enum gci_kind kind, int columns)
{
	int i, done = 0;

	put_throughput(p, kind);
	for (i = 0; i < p->n && done < MOST_COURSES; i++) {
		if (p->r[i].kind != kind || !has_course(p, &p->r[i]))
			continue;
		put_course(p, i);
		done++;
	}
	for (done++; done < columns; done++)
		gci_buf_printf(p->out, "set multiplot next\n");
}

/* -1: there is nothing to draw. */
static int gct_bench_plot_script(
	const struct gct_bench *b, const struct gct_bench_result *r, int n, struct gci_buf *out)
{
	const struct plot p = {b, r, n, out};
	int k, rows = 0, columns = 1;

	for (k = 0; k < GCI_NKINDS; k++) {
		int courses = count_courses(&p, (enum gci_kind)k);

		rows += kind_shown(&p, (enum gci_kind)k);
		columns = courses + 1 > columns ? courses + 1 : columns;
	}
	if (!rows)
		return -1;
	gci_buf_printf(out,
		"set terminal svg size %d,%d dynamic font \"sans,12\" background \"white\" "
		"noenhanced\nset multiplot layout %d,%d\nset grid linecolor \"#dddddd\"\n"
		"set border linecolor \"#555555\"\n"
		"set key below samplen 1.5\nset rmargin 4\nset tics font \",10\"\n"
		"set title font \",11\"\n",
		columns * WIDTH, rows * HEIGHT, rows, columns);
	for (k = 0; k < GCI_NKINDS; k++)
		if (kind_shown(&p, (enum gci_kind)k))
			put_row(&p, (enum gci_kind)k, columns);
	gci_buf_printf(out, "unset multiplot\n");
	return 0;
}
