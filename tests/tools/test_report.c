/* SPDX-License-Identifier: MIT
 * gridcoll report: pages of files made by hand, and of a real run. A page must be well-formed, have
 * every section, and no text of a file may be more than text. */
#include "tests/tools/jobs.h"
#include "tests/tools/timelines.h"
#include "tests/tools/xml.h"

#include "base/file.h"
#include "base/mem.h"
#include "tools/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define BAD "<script>x()</script>&"

static const char grid[] = "[cluster kyoto]\nhosts = k[1-2]\nnic = 50Mbit\nlan_delay = 1ms\n"
			   "[cluster tokyo]\nhosts = t1\nnic = 50Mbit\n"
			   "[link kyoto tokyo]\nrate = 500Mbit\ndelay = 200ms\n"
			   "[dilated]\ntimes = 20\ndigest = 0123456789abcdef\n";

/* In a lab dilated by 20: 200 ms of its clock are 10 ms. */
static const char bench[] =
	"{\"version\": 1, \"ranks\": 3, \"dilation\": 20, \"lab\": \"uml\",\n"
	" \"news\": {},\n"
	" \"results\": [\n"
	"  {\"operation\": \"bcast\", \"bytes\": 1048576, \"algorithm\": \"chain (" BAD ")\",\n"
	"   \"asked\": \"auto\", \"first_ns\": 400000000, \"median_ns\": 200000000,\n"
	"   \"warm_ns\": [160000000, 200000000, 240000000], \"limit_ns\": 180000000,\n"
	"   \"predicted_ns\": 220000000, \"wan_bytes\": 1048576,\n"
	"   \"schedule_wan_bytes\": 1048576, \"wan_measured\": true, \"cpu_percent\": 71,\n"
	"   \"dilation\": 20, \"wan_resent_segments\": 17,\n"
	"   \"course\": {\"bin_ns\": 10000000, \"pairs\": [\n"
	"    {\"from\": \"kyoto\", \"to\": \"tokyo\", \"bytes\": [0, 1000000, 48576, 0]},\n"
	"    {\"from\": \"" BAD "\", \"to\": \"b\", \"bytes\": [0, 0, 7, 0]},\n"
	"    {\"from\": \"tokyo\", \"to\": \"kyoto\", \"bytes\": [0, 0, 0, 0]}]}},\n"
	"  {\"operation\": \"bcast\", \"bytes\": 65536, \"algorithm\": \"chain\",\n"
	"   \"asked\": \"auto\", \"first_ns\": 1, \"median_ns\": 100000000,\n"
	"   \"warm_ns\": [100000000], \"limit_ns\": 90000000, \"wan_bytes\": 0,\n"
	"   \"schedule_wan_bytes\": 0, \"wan_measured\": false, \"cpu_percent\": -1,\n"
	"   \"dilation\": 20},\n"
	"  {\"operation\": \"bcast\", \"bytes\": 65536, \"algorithm\": \"" BAD "\",\n"
	"   \"not_run\": \"takes " BAD "\"}]}\n";

static const char plan[] =
	"{\"version\": 1, \"operation\": \"bcast\", \"bytes\": 1048576, \"ranks\": 3,\n"
	" \"limit_ns\": 9000000, \"choice\": {\"algorithm\": \"chain\",\n"
	" \"chosen_by\": \"" BAD "\"}, \"ways\": [\n"
	"  {\"algorithm\": \"chain\", \"predicted_ns\": 11000000, \"why\": \"" BAD "\"},\n"
	"  {\"algorithm\": \"" BAD "\", \"predicted_ns\": 22000000},\n"
	"  {\"algorithm\": \"spoc\", \"not_run\": \"takes at most 2 ranks\"}]}\n";

static const char *const sections[] = {
	"grid", "throughput", "traffic", "gantt", "predicted", "plans", "figures"};

static void check_page(const char *text, size_t len)
{
	const char *begin = strchr(text, '\n') + 1, *wrong;
	char id[40];
	size_t i;

	assert_int_equal(strncmp(text, "<!DOCTYPE html>\n", 16), 0);
	wrong = xml_wrong(begin, len - (size_t)(begin - text));
	if (wrong)
		fail_msg("%s", wrong);
	for (i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		snprintf(id, sizeof(id), "<section id=\"%s\">", sections[i]);
		assert_int_equal(occurrences(text, id), 1);
		snprintf(id, sizeof(id), "<a href=\"#%s\">", sections[i]);
		assert_int_equal(occurrences(text, id), 1);
	}
	/* Nothing runs, and nothing is fetched. */
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "<img"));
	assert_null(strstr(text, " src=\""));
	assert_null(strstr(text, "url("));
	assert_null(strstr(text, "@import"));
	assert_null(strstr(text, "<link"));
}

static int add(struct gct_html *r, const char *name, const char *text, struct gci_error *e)
{
	return gct_html_add(r, name, text, strlen(text), e);
}

static void add_good(struct gct_html *r, const char *name, const char *text)
{
	struct gci_error e = {0};

	if (add(r, name, text, &e))
		fail_msg("%s", e.text);
}

static void print(struct gct_html *r, struct gci_buf *out)
{
	assert_int_equal(gct_html_print(r, out), 0);
	check_page(gci_buf_cstr(out), out->len);
}

#define HAS(out, text)                                \
	do {                                          \
		if (!strstr(gci_buf_cstr(out), text)) \
			fail_msg("no \"%s\"", text);  \
	} while (0)

static void hostile(void **state)
{
	struct gct_html r = {.title = "a \"" BAD};
	struct gci_buf out = {0};

	(void)state;
	add_good(&r, "grid", grid);
	add_good(&r, "\"><img src=x>.json", bench);
	add_good(&r, "<p>.json", plan);
	print(&r, &out);
	/* As people have it: the lab's clock divided by 20. */
	HAS(&out, "bcast of 1 MiB: 10.0 ms, by chain (&lt;script&gt;x()&lt;/script&gt;&amp;)");
	HAS(&out, "<td>20.0 ms</td><td>8.00 ms</td><td>10.0 ms</td><td>12.0 ms</td><td>1.11</td>");
	HAS(&out, "<td>1.05 MB</td><td>17</td><td class=\"far\">71 %</td>");
	HAS(&out, ">+10.0 %<");
	HAS(&out, "1 prediction, off by 10.0 % in the median");
	assert_null(strstr(gci_buf_cstr(&out), "guesses"));
	HAS(&out, ">10.0 Gbit/s, 10.0 ms<");
	HAS(&out, ">kyoto &gt; tokyo: 1.05 MB<");
	HAS(&out, ">tokyo &gt; kyoto: 0 B<");
	HAS(&out, "kyoto &gt; tokyo: 1.05 MB</li>");
	HAS(&out, "&lt;script&gt;x()&lt;/script&gt;&amp; &gt; b: 7 B</li>");
	assert_null(strstr(gci_buf_cstr(&out), "tokyo &gt; kyoto: 0 B</li>"));
	HAS(&out, "not run: takes &lt;script&gt;");
	HAS(&out, " gridcoll's choice</li>");
	HAS(&out, "dilated by 20");
	/* A plan's way beside what was measured of it. */
	HAS(&out, "<tr class=\"choice\"><th scope=\"row\">chain</th><td>11.0 ms</td>");
	HAS(&out, "</svg></td><td>10.0 ms</td><td class=\"text\">&lt;script&gt;");
	assert_int_equal(occurrences(gci_buf_cstr(&out), "<figure>"), 2);
	gci_buf_free(&out);
	gct_html_free(&r);
}

/* Where there is nothing to show it says what would. */
static void nothing(void **state)
{
	struct gct_html r = {.title = "empty"};
	struct gci_buf out = {0};

	(void)state;
	print(&r, &out);
	assert_int_equal(occurrences(gci_buf_cstr(&out), "<p class=\"none\">"), 7);
	gci_buf_free(&out);
	gct_html_free(&r);
}

/* Several jobs' results of one operation are told apart, and more curves than colours said. */
static void many_curves(void **state)
{
	struct gct_html r = {.title = "many"};
	struct gci_buf out = {0}, text = {0};
	int i;

	(void)state;
	gci_buf_printf(&text, "{\"version\": 1, \"ranks\": 3, \"dilation\": 1, \"results\": [");
	for (i = 0; i < 11; i++)
		gci_buf_printf(&text,
			"%s{\"operation\": \"bcast\", \"bytes\": %d, \"algorithm\": \"a%d\","
			"\"first_ns\": 9, \"median_ns\": 9, \"warm_ns\": [9], \"limit_ns\": 0,"
			"\"wan_bytes\": 0, \"schedule_wan_bytes\": 0, \"wan_measured\": false,"
			"\"cpu_percent\": -1, \"dilation\": 1}",
			i ? "," : "", 1000 << i / 10, i % 10);
	gci_buf_printf(&text, "]}");
	add_good(&r, "one.json", gci_buf_cstr(&text));
	print(&r, &out);
	HAS(&out, ">2 more algorithms are in the table");
	HAS(&out, "a7</li>");
	assert_null(strstr(gci_buf_cstr(&out), "a8</li>"));
	out.len = 0;
	add_good(&r, "two.json", gci_buf_cstr(&text));
	print(&r, &out);
	HAS(&out, "a0 (one.json)</li>");
	HAS(&out, ">12 more algorithms are in the table");
	gci_buf_free(&out);
	gci_buf_free(&text);
	gct_html_free(&r);
}

/* Of cards and links nothing is known: then the page says what its predictions are worth. */
static void guesses(void **state)
{
	static const char text[] =
		"{\"version\": 1, \"ranks\": 3, \"dilation\": 1, \"results\": [\n"
		"  {\"operation\": \"bcast\", \"bytes\": 1000, \"algorithm\": \"a\",\n"
		"   \"first_ns\": 9, \"median_ns\": 9, \"warm_ns\": [9], \"limit_ns\": 0,\n"
		"   \"predicted_ns\": 30, \"wan_bytes\": 0, \"schedule_wan_bytes\": 0,\n"
		"   \"wan_measured\": false, \"cpu_percent\": -1, \"dilation\": 1}]}";
	struct gct_html r = {.title = "guesses"}, b = {.title = "a barrier"};
	struct gci_buf out = {0};
	char *barrier = gci_strdup(text), *name;

	(void)state;
	add_good(&r, "one.json", text);
	print(&r, &out);
	HAS(&out, "1 prediction, off by 233.3 % in the median");
	HAS(&out, "so they are guesses");
	gci_buf_free(&out);
	gct_html_free(&r);
	/* Without delays nothing bounds a barrier, whatever is known of rates. */
	name = strstr(barrier, "\"bcast\", \"bytes\": 1000");
	assert_non_null(name);
	memcpy(name, "\"barrier\", \"bytes\": 0 ", strlen("\"bcast\", \"bytes\": 1000"));
	add_good(&b, "one.json", barrier);
	print(&b, &out);
	HAS(&out, "1 prediction, off by 233.3 % in the median");
	assert_null(strstr(gci_buf_cstr(&out), "guesses"));
	gci_buf_free(&out);
	gct_html_free(&b);
	gci_free(barrier);
}

/* A grid of as many clusters as nobody can draw, and links that only a table can tell. */
static void many_clusters(void **state)
{
	struct gct_html r = {.title = "clusters"};
	struct gci_buf out = {0}, text = {0};
	int i, k;

	(void)state;
	for (i = 0; i < 30; i++)
		gci_buf_printf(&text, "[cluster c%d]\nhosts = h%d\n", i, i);
	for (i = 0; i < 30; i++)
		for (k = 0; k < i; k++)
			gci_buf_printf(&text, "[link c%d c%d]\nrate = 1Gbit\ndelay = 1ms\n", i, k);
	add_good(&r, "grid", gci_buf_cstr(&text));
	print(&r, &out);
	HAS(&out, "More than 24 are not drawn");
	HAS(&out, "The first 200 of them");
	gci_buf_free(&out);
	gci_buf_free(&text);
	gct_html_free(&r);
}

/* One change of a good file, and what is said of it. */
static const struct {
	const char *file, *what, *instead, *message;
} wrongs[] = {
	{bench, "\"version\": 1", "\"version\": 2", "f.json:1: version = 2, expected"},
	{bench, "\"results\"", "\"result\"",
		"f.json:1: no results, expected those of gridcoll bench"},
	{bench, "\"ranks\": 3", "\"ranks\": 0", "f.json:1: ranks = 0, expected"},
	{bench, "\"bcast\"", "\"bcst\"",
		"f.json:4: results[0].operation = \"bcst\", expected bcast"},
	{bench, "\"bytes\": 1048576", "\"bytes\": -1", "f.json:4: results[0].bytes = -1, expected"},
	{bench, "\"median_ns\": 200000000", "\"median_ns\": 1",
		"f.json:6: results[0].warm_ns = an array of 3, expected times in rising order"},
	{bench, "160000000,", "\"x\",", NULL},
	{bench, "[160000000, 200000000, 240000000]", "[]", "f.json:6: results[0].warm_ns = "},
	{bench, "\"dilation\": 20, \"wan", "\"dilation\": 0, \"wan",
		"f.json:9: results[0].dilation = 0, expected"},
	{bench, "\"cpu_percent\": 71", "\"cpu_percent\": \"x\"",
		"f.json:8: results[0].cpu_percent = \"x\", expected a whole number"},
	{bench, "\"bin_ns\": 10000000", "\"bin_ns\": 0",
		"f.json:10: results[0].course.bin_ns = 0, expected"},
	{bench, "1000000, 48576", "-1, 48576",
		"f.json:11: results[0].course.pairs[0].bytes = an array of 4, "
		"expected whole numbers"},
	{bench, "[0, 0, 7, 0]", "[0, 0, 7]",
		"f.json:12: results[0].course.pairs[1].bytes = an array of 3, "
		"expected an array of 4"},
	{plan, "\"choice\": {\"algorithm\"", "\"choice\": {\"algorthm\"",
		"f.json:2: no choice.algorithm, expected a text"},
	{plan, "\"predicted_ns\": 22000000", "\"predicted_ns\": \"soon\"",
		"f.json:5: ways[1].predicted_ns = \"soon\", expected"},
	{plan, "\"ways\": [", "\"ways\": [[], ",
		"f.json:3: ways[0] = an array of 0, expected an object"},
	{plan, "}]}", "}]", "f.json:7: "},
};

static void wrong_files(void **state)
{
	struct gct_html r = {.title = "wrong"};
	struct gci_buf out = {0};
	char text[4096];
	size_t i, n = sizeof(wrongs) / sizeof(*wrongs);

	(void)state;
	for (i = 0; i < n; i++) {
		const char *at = strstr(wrongs[i].file, wrongs[i].what);
		struct gci_error e = {0};

		assert_non_null(at);
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - wrongs[i].file), wrongs[i].file,
			wrongs[i].instead, at + strlen(wrongs[i].what));
		if (!wrongs[i].message) { /* not looked at */
			assert_int_equal(add(&r, "f.json", text, &e), 0);
			continue;
		}
		assert_int_equal(add(&r, "f.json", text, &e), GCOLL_ERR_PARSE);
		if (strncmp(e.text, wrongs[i].message, strlen(wrongs[i].message)) != 0)
			fail_msg("case %zu: %s", i, e.text);
	}
	assert_int_equal(r.nsources, 1);
	assert_int_equal(r.ncases, 3);
	assert_int_equal(r.nplans, 0);
	assert_int_equal(r.nleft_out, n - 1);
	print(&r, &out);
	assert_int_equal(occurrences(gci_buf_cstr(&out), ">Left out: f.json:"), n - 1);
	gci_buf_free(&out);
	gct_html_free(&r);
}

static int make_all(struct gci_buf *out)
{
	struct gct_html r = {.title = "memory"};
	struct gci_error e = {0};
	int rc = add(&r, "grid", grid, &e);

	if (!rc)
		rc = add(&r, "b.json", bench, &e);
	if (!rc)
		rc = add(&r, "p.json", plan, &e);
	if (!rc)
		rc = gct_html_print(&r, out);
	gct_html_free(&r);
	return rc;
}

static void out_of_memory(void **state)
{
	unsigned long n;
	int rc;

	(void)state;
	for (n = 1;; n++) {
		struct gci_buf out = {0};

		gci_mem_fail_at(n);
		rc = make_all(&out);
		gci_buf_free(&out);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(n > 50);
}

/* ---- as a person runs it */

static int run(const char *fmt, const char *a)
{
	char *args = gci_asprintf(fmt, a);
	char *command = gci_asprintf(
		"%s report %s >%s 2>%s", GRIDCOLL, args, in_scratch("out"), in_scratch("err"));
	int status = system(command);

	gci_free(args);
	gci_free(command);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void read_page(const char *path, struct gci_buf *out)
{
	struct gci_error e = {0};

	out->len = 0;
	assert_int_equal(gci_file_read(path, 1 << 24, out, &e), 0);
	check_page(gci_buf_cstr(out), out->len);
}

static void a_real_run(void **state)
{
	const char *dir = in_scratch("results");
	struct gci_buf page = {0}, err = {0};
	struct gci_error e = {0};
	struct job j = {0};

	(void)state;
	make_text(in_scratch("two.grid"), "[cluster kyoto]\nhosts = 127.0.0.1\nnic = 1Gbit\n"
					  "[cluster tokyo]\nhosts = 127.0.0.2\nnic = 1Gbit\n"
					  "[link kyoto tokyo]\nrate = 1Gbit\ndelay = 1ms\n");
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--quiet-prefix", GRIDCOLL, "bench",
		"bcast", "barrier", "-b", "64KiB,1MiB", "-i", "2", "-a", "auto", "--report", dir,
		NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "report: "));
	job_free(&j);
	read_page(in_scratch("results/report.html"), &page);
	HAS(&page, "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"gantt0\"");
	HAS(&page, "id=\"gantt1\"");
	HAS(&page, "<details class=\"gantt\" open=\"open\"><summary>bcast of 1 MiB by ");
	HAS(&page, "<summary>barrier by ");
	HAS(&page, "#gantt0 path{");
	HAS(&page, "By phases, beside the prediction");
	HAS(&page, "kyoto &gt; tokyo: ");
	assert_null(strstr(gci_buf_cstr(&page), "Left out"));
	/* Plans are still to be made. */
	assert_int_equal(occurrences(gci_buf_cstr(&page), "<p class=\"none\">"), 1);

	/* Again from the files, with some that are of no use. */
	make_text(in_scratch("results/notes.txt"), "not for us");
	make_text(in_scratch("results/bad.json"), "{");
	make_text(in_scratch("results/bad.trace"), "{\"<b>\": 0}");
	assert_int_equal(run("%s", dir), 0);
	read_page(in_scratch("results/report.html"), &page);
	HAS(&page, "Left out: bad.json:1: ");
	HAS(&page, "Left out: bad.trace:1: ");
	HAS(&page, "id=\"gantt1\"");
	assert_int_equal(gci_file_read(in_scratch("err"), 1 << 16, &err, &e), 0);
	HAS(&err, "gridcoll report: warning: left out: bad.json:1: ");
	HAS(&err, "gridcoll report: warning: left out: bad.trace:1: ");
	/* And on another grid the runs cannot be told. */
	make_text(in_scratch("results/grid"), grid);
	assert_int_equal(run("%s", dir), 0);
	read_page(in_scratch("results/report.html"), &page);
	HAS(&page, "No chart: bcast.trace was recorded on another grid");
	HAS(&page, "Left out: bcast.trace was recorded on another grid");
	assert_int_equal(gci_file_read(in_scratch("err"), 1 << 16, &err, &e), 0);
	HAS(&err, "gridcoll report: warning: left out: bcast.trace was recorded on another grid");
	/* Nothing is left to report of. */
	make_dir(in_scratch("garbage"));
	make_text(in_scratch("garbage/bcast.trace"), "garbage\n");
	assert_int_equal(run("%s", in_scratch("garbage")), 2);
	assert_false(is_there(in_scratch("garbage/report.html")));
	gci_buf_free(&page);
	gci_buf_free(&err);
}

static void wrong_arguments(void **state)
{
	static const struct {
		const char *args;
		int status;
		const char *message;
	} cases[] = {
		{"", 2,
			"gridcoll report: no directory, "
			"expected one, see gridcoll report --help\n"},
		{"a b", 2,
			"gridcoll report: more than one directory, see gridcoll report --help\n"},
		{"-x a", 2, "gridcoll report: unknown option -x, see gridcoll report --help\n"},
		{"/nowhere", 1, "gridcoll report: /nowhere: No such file or directory\n"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(run("%s", cases[i].args), cases[i].status);
		assert_text(in_scratch("err"), cases[i].message);
	}
	make_dir(in_scratch("none"));
	assert_int_equal(run("%s", in_scratch("none")), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile),
		cmocka_unit_test(nothing),
		cmocka_unit_test(many_curves),
		cmocka_unit_test(guesses),
		cmocka_unit_test(many_clusters),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(out_of_memory),
		TEST(a_real_run),
		TEST(wrong_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
