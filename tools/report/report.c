/* SPDX-License-Identifier: MIT
 * `gridcoll report`: reads a directory's files, writes the page. */
#include "tools/report/report.h"

#include "base/file.h"
#include "base/mem.h"
#include "tools/lib/tools.h"
#include "tools/report/impl.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The page around a report's sections. It is well-formed XML as well as HTML, has no script,
 * and asks for nothing from outside. */

static const char style[] =
	":root{color-scheme:light dark;--page:#f6f7f8;--card:#fff;--ink:#1d2126;--muted:#5b6570;"
	"--rule:#dde1e6;--far:#b3261e;--limit:#1d2126;--band:#e8ecf0;--fill:#8fb3dd;--used:#3b78c4;"
	"--idle:#b9c1ca;--s0:#2467b5;--s1:#c8453b;--s2:#23845a;--s3:#b76e00;--s4:#7a4fc0;"
	"--s5:#0b8494;--s6:#b34a86;--s7:#6f6650;--row:#f4f5f7}\n"
	"@media (prefers-color-scheme:dark){:root{--page:#14171a;--card:#1c2024;--ink:#e7e9ec;"
	"--muted:#a0a9b3;--rule:#363d45;--far:#ff8a80;--limit:#e7e9ec;--band:#2a3037;"
	"--fill:#3f6ea5;--used:#6ea8ec;--idle:#57616c;--s0:#6ea8ec;--s1:#f0837a;--s2:#5cc494;"
	"--s3:#e6a640;--s4:#b394ee;--s5:#4fc3d1;--s6:#e58abd;--s7:#bdb294;--row:#23282e}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,"
	"-apple-system,'Segoe UI','DejaVu Sans',sans-serif}\n"
	"main,header,footer{max-width:1280px;margin:0 auto;padding:0 20px}\n"
	"header{padding-top:28px}h1{font-size:26px;line-height:1.25;margin:0 0 4px}\n"
	"h2{font-size:19px;margin:0 0 8px}h3{font-size:16px;margin:20px 0 4px}\n"
	"p{margin:0 0 12px}"
	".sub,.note,.none,footer{color:var(--muted)}.note,footer{font-size:14px}\n"
	"nav{margin:12px 0 4px}nav a{margin-right:14px;white-space:nowrap}a{color:var(--used)}\n"
	"section{background:var(--card);border:1px solid var(--rule);border-radius:8px;"
	"padding:18px 20px;margin:16px 0}\n"
	"code{font:14px ui-monospace,'DejaVu Sans Mono',monospace;overflow-wrap:anywhere}\n"
	".charts{display:grid;gap:24px;grid-template-columns:repeat(auto-fit,minmax(min(100%,"
	"420px),1fr));align-items:start}\n"
	"figure{margin:0;max-width:640px;min-width:0}figcaption{font-weight:600;"
	"overflow-wrap:anywhere}\n"
	"svg{display:block}svg.chart,svg.map{width:100%;height:auto}svg.map{max-width:760px;"
	"min-width:430px;margin:0 auto}\n"
	"svg text{fill:var(--ink)}.chart text,.map text{font-size:12px}\n"
	".chart .end,.chart .mid{fill:var(--muted)}.end{text-anchor:end}.mid{text-anchor:middle}\n"
	".chart .title{fill:var(--muted);font-style:italic}\n"
	".grid{stroke:var(--rule);fill:none}.line{fill:none;stroke:currentColor;stroke-width:2;"
	"stroke-linejoin:round}\n"
	".limit{color:var(--limit);stroke:var(--limit);stroke-width:1.5;stroke-dasharray:5 4}\n"
	".spread{stroke:currentColor;stroke-width:1.2;opacity:.7}.band{fill:var(--band)}\n"
	".mark{fill:currentColor;stroke:var(--card)}\n"
	".s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}"
	".s4{color:var(--s4)}.s5{color:var(--s5)}.s6{color:var(--s6)}.s7{color:var(--s7)}\n"
	".legend{list-style:none;margin:4px 0 0;padding:0;display:flex;flex-wrap:wrap;"
	"gap:2px 18px;font-size:14px}.legend li{display:flex;align-items:center;gap:6px;"
	"overflow-wrap:anywhere}\n"
	".key{width:26px;height:12px;flex:none}\n"
	".box{fill:var(--card);stroke:var(--muted);stroke-width:1.5}.plate{fill:var(--card)}\n"
	".map .name{font-weight:600;font-size:13px}.map .muted{fill:var(--muted)}\n"
	".wan{stroke:var(--idle);fill:none}.wan.used{stroke:var(--used);opacity:.75}\n"
	".scroll{overflow-x:auto}details{margin-top:12px;min-width:0}summary{cursor:pointer;"
	"font-weight:600;overflow-wrap:anywhere}\n"
	"table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;"
	"margin-top:6px}\n"
	"th,td{padding:3px 10px;border-bottom:1px solid var(--rule);text-align:right;"
	"white-space:nowrap;vertical-align:top}\n"
	"th:first-child,.text,th[scope=row]{text-align:left}th[scope=row]{font-weight:500}\n"
	"td.text{white-space:normal;min-width:150px;overflow-wrap:anywhere}thead "
	"th{color:var(--muted);font-weight:600}\n"
	"td.bar{width:160px;min-width:110px}td.bar svg{width:100%;height:12px;margin-top:5px}"
	".fill{fill:var(--fill)}\n"
	"tr.choice th{font-weight:700}.far{color:var(--far)}\n"
	".beside{display:flex;flex-wrap:wrap;gap:12px 32px;align-items:flex-start}"
	".beside figure{flex:1 1 400px}.beside details{flex:1 1 540px}\n"
	".gantt svg{width:100%;min-width:1100px;height:auto}\n"
	/* What has these colours in a chart of its own (gantt.c). */
	".gantt [fill=\"#555\"],.gantt [fill=\"#777\"]{fill:var(--muted)}"
	".gantt [fill=\"#fff\"]{fill:var(--card)}.gantt [fill=\"#f4f5f7\"]{fill:var(--row)}"
	".gantt [stroke=\"#e3e5e8\"]{stroke:var(--rule)}"
	".gantt [stroke=\"#777\"]{stroke:var(--muted)}"
	".gantt [stroke=\"#222\"]{stroke:var(--limit)}\n"
	"@media (max-width:600px){body{font-size:15px}main,header,footer{padding:0 10px}"
	"header{padding-top:16px}section{padding:14px 12px}svg.chart text{font-size:14.5px}"
	"h1{font-size:21px}}\n"
	"@media print{body{background:#fff}section{break-inside:avoid}}\n";

static const struct {
	const char *id, *title, *brief;
	void (*put)(struct gct_page *p);
} sections[] = {
	{"grid", "The grid", "Grid", gct_html_grid},
	{"throughput", "Throughput against size", "Throughput", gct_html_throughput},
	{"traffic", "WAN traffic over time", "Traffic", gct_html_traffic},
	{"gantt", "Runs, step by step", "Runs", gct_html_gantts},
	{"predicted", "Predicted against measured", "Predicted", gct_html_predictions},
	{"plans", "Plans", "Plans", gct_html_plans},
	{"figures", "All figures", "All figures", gct_html_figures},
};

#define NSECTIONS (sizeof(sections) / sizeof(*sections))

static void put_source(struct gct_page *p, const struct gct_html_source *s)
{
	gci_buf_printf(p->out, "<p class=\"sub\">");
	gct_putf(p, "%.80s: %llu rank%s", s->name, (unsigned long long)s->nranks,
		s->nranks > 1 ? "s" : "");
	if (s->lab)
		gct_putf(p, " in an emulated grid (%.40s)", s->lab);
	if (s->dilation > 1)
		gct_putf(p,
			", dilated by %u: rates and times are those of the grid file, "
			"measured times divided by %u",
			s->dilation, s->dilation);
	gci_buf_printf(p->out, ".</p>\n");
}

static void put_head(struct gct_page *p)
{
	size_t i;

	gci_buf_printf(p->out,
		"<!DOCTYPE html>\n<html lang=\"en\" "
		"xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
		"<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, "
		"initial-scale=1\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
		"content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n<title>gridcoll: ");
	gct_put(p, p->r->title);
	gci_buf_printf(p->out, "</title>\n<style>\n");
	gci_buf_put(p->out, style, sizeof(style) - 1);
	gci_buf_printf(p->out, "</style>\n</head>\n<body>\n<header>\n<h1>");
	gct_put(p, p->r->title);
	gci_buf_printf(p->out, "</h1>\n");
	for (i = 0; i < p->r->nsources; i++)
		put_source(p, &p->r->sources[i]);
	gci_buf_printf(p->out, "<nav>");
	for (i = 0; i < NSECTIONS; i++)
		gci_buf_printf(
			p->out, "<a href=\"#%s\">%s</a> ", sections[i].id, sections[i].brief);
	gci_buf_printf(p->out, "</nav>\n</header>\n<main>\n");
}

static void put_foot(struct gct_page *p)
{
	size_t i;

	gci_buf_printf(p->out, "</main>\n<footer>\n");
	for (i = 0; i < p->r->nleft_out; i++) {
		gci_buf_printf(p->out, "<p class=\"far\">Left out: ");
		gct_put(p, p->r->left_out[i]);
		gci_buf_printf(p->out, "</p>\n");
	}
	gci_buf_printf(p->out, "<p>Made by gridcoll report.</p>\n</footer>\n</body>\n</html>\n");
}

/* As its file had it at first: a lab's is slower. */
static void undilate(struct gci_grid *g)
{
	const uint32_t k = g->dilation;
	int i;

	for (i = 0; i < g->nclusters; i++) {
		g->clusters[i].nic_bps *= k;
		g->clusters[i].lan_delay_ns /= k;
	}
	for (i = 0; i < g->nlinks; i++) {
		g->links[i].rate_bps *= k;
		g->links[i].flow_rate_bps *= k;
		g->links[i].delay_ns /= k;
	}
}

int gct_html_print(struct gct_html *r, struct gci_buf *out)
{
	struct gct_page p = {.r = r, .out = out};
	struct gci_error e = {0};
	size_t i;

	if (r->grid) {
		p.has_grid = !gci_grid_parse(&p.grid, r->grid, r->grid_len, "grid", &e);
		p.nomem = e.status == GCOLL_ERR_NOMEM;
	}
	if (p.has_grid)
		undilate(&p.grid);
	put_head(&p);
	for (i = 0; i < NSECTIONS; i++) {
		gci_buf_printf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", sections[i].id,
			sections[i].title);
		sections[i].put(&p);
		gci_buf_printf(out, "</section>\n");
	}
	put_foot(&p);
	gci_grid_free(&p.grid);
	return out->failed || p.nomem ? GCOLL_ERR_NOMEM : 0;
}

/* ---- gridcoll report */

#define MOST_FILES 256
#define PAGE       "report.html"

static int is_file(const struct dirent *d)
{
	return *d->d_name != '.' && gct_html_knows(d->d_name);
}

static void say_left_out(const char *why)
{
	fprintf(stderr, "gridcoll report: warning: left out: %s\n", why);
}

/* 0 also where the file cannot be used, which is said. */
static int add(struct gct_html *r, const char *dir, const char *name, struct gci_error *e)
{
	char *path = gci_asprintf("%s/%s", dir, name);
	struct gci_error why = {0};
	struct gci_buf text = {0};
	int rc;

	if (!path)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	rc = gci_file_read(path, GCT_HTML_MOST_NBYTES, &text, &why);
	if (!rc)
		rc = gct_html_add(r, name, gci_buf_cstr(&text), text.len, &why);
	if (rc && rc != GCOLL_ERR_NOMEM) {
		say_left_out(why.text);
		rc = 0;
	} else if (rc) {
		gci_error_set(e, rc, "%s", why.text);
	}
	gci_buf_free(&text);
	gci_free(path);
	return rc;
}

static int add_all(struct gct_html *r, const char *dir, struct gci_error *e)
{
	struct dirent **list = NULL;
	int i, rc = 0, n = scandir(dir, &list, is_file, alphasort);

	if (n < 0)
		return gci_error_errno(e, "%s", dir);
	for (i = 0; i < n; i++) {
		if (!rc && i < MOST_FILES)
			rc = add(r, dir, list[i]->d_name, e);
		free(list[i]); /* scandir's */
	}
	free(list);
	if (n > MOST_FILES)
		fprintf(stderr,
			"gridcoll report: warning: %s has %d files, the first %d were read\n", dir,
			n, MOST_FILES);
	return rc;
}

int gct_html_write(const char *dir, const char *path, struct gci_error *e)
{
	struct gct_html r = {.title = dir};
	struct gci_buf page = {0};
	int rc = add_all(&r, dir, e);
	size_t i = r.nleft_out;

	if (!rc && !r.nsources && !r.nplans && !r.ntraces)
		rc = gci_error_set(e, GCOLL_ERR_INVAL,
			"%s: nothing to report of, "
			"expected *.json of gridcoll bench or plan, or *.trace",
			dir);
	if (!rc && gct_html_print(&r, &page))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (; !rc && i < r.nleft_out; i++)
		say_left_out(r.left_out[i]);
	if (!rc)
		rc = gci_file_write(path, &page, e);
	gci_buf_free(&page);
	gct_html_free(&r);
	return rc;
}

int gct_report_command(int argc, char **argv)
{
	static const struct gci_option options[] = {
		{'o', "output", "FILE", "where to write it (default DIR/report.html)",
			.type = GCI_OPTION_IS_TEXT},
		{0}};
	static const struct gct_usage command_line = {"report",
		"usage: gridcoll report DIR [-o FILE]\n"
		"Makes one page of HTML, which needs no other file, of what gridcoll bench and\n"
		"gridcoll plan left in DIR: the grid, throughput against size with the physical\n"
		"limit, WAN traffic over time, what each rank did when, predicted against\n"
		"measured. It takes these files, as many as there are:\n"
		"  grid                  the grid file\n"
		"  NAME.json             of gridcoll bench --json, or gridcoll plan --json\n"
		"  NAME.trace            of gridcoll bench --trace\n"
		"gridcoll bench --report DIR leaves all of them in one run.\n",
		"example: gridcoll-run -n 4 gridcoll bench bcast -b 64KiB,8MiB --report out\n"
		"         gridcoll report out\n",
		options};
	const char *output = NULL;
	struct gci_error e = {0};
	char *path;
	int first, rc;

	rc = gct_options(&command_line, &output, argc, argv, GCI_OPTIONS_ANYWHERE, &first);
	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	if (argc - first != 1)
		return gct_wrong("report", "%s, see gridcoll report --help",
			argc == first ? "no directory, expected one" : "more than one directory");
	path = output ? gci_strdup(output) : gci_asprintf("%s/" PAGE, argv[first]);
	if (!path)
		gci_error_set(&e, GCOLL_ERR_NOMEM, "out of memory");
	else if (!gct_html_write(argv[first], path, &e))
		printf("%s\n", path);
	gci_free(path);
	if (e.status)
		fprintf(stderr, "gridcoll report: %s\n", e.text);
	return e.status == GCOLL_ERR_INVAL ? GCT_USAGE : e.status ? GCT_FAILED : GCT_OK;
}
