/* SPDX-License-Identifier: MIT
 * `gridcoll report`: reads a directory's files, writes the page. */
#include "tools/report.h"

#include "base/file.h"
#include "base/mem.h"
#include "tools/tools.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILES 256
#define PAGE       "report.html"

static const char help[] =
	"usage: gridcoll report DIR [-o FILE]\n"
	"Makes one page of HTML, which needs no other file, of what gridcoll bench and\n"
	"gridcoll plan left in DIR: the grid, throughput against size with the physical\n"
	"limit, WAN traffic over time, what each rank did when, predicted against\n"
	"measured. It takes these files, as many as there are:\n"
	"  grid                  the grid file\n"
	"  NAME.json             of gridcoll bench --json, or gridcoll plan --json\n"
	"  NAME.trace            of gridcoll bench --trace\n"
	"gridcoll bench --report DIR leaves all of them in one run.\n"
	"  -o, --output FILE     where to write it (default DIR/report.html)\n"
	"  -h, --help            this text\n"
	"example: gridcoll-run -n 4 gridcoll bench bcast -b 64KiB,8MiB --report out\n"
	"         gridcoll report out\n";

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
	static const struct option longs[] = {
		{"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *output = NULL;
	struct gci_error e = {0};
	char *path;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1) {
		if (c == 'h')
			return gct_help(help);
		if (c != 'o')
			return gct_wrong_option("report", argv, longs, c);
		output = optarg;
	}
	if (argc - optind != 1)
		return gct_wrong("report", "%s, see gridcoll report --help",
			argc == optind ? "no directory, expected one" : "more than one directory");
	path = output ? gci_strdup(output) : gci_asprintf("%s/" PAGE, argv[optind]);
	if (!path)
		gci_error_set(&e, GCOLL_ERR_NOMEM, "out of memory");
	else if (!gct_html_write(argv[optind], path, &e))
		printf("%s\n", path);
	gci_free(path);
	if (e.status)
		fprintf(stderr, "gridcoll report: %s\n", e.text);
	return e.status == GCOLL_ERR_INVAL ? GCT_USAGE : e.status ? GCT_FAILED : GCT_OK;
}
