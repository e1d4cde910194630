/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/buf.h"
#include "base/jsontext.h"
#include "base/mem.h"
#include "collectives/models/params_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char grid_text[] = "[cluster kyoto]\nhosts=k[1-8]\nnic=1Gbit\n"
				"[cluster tokyo]\nhosts=t[1-8]\nnic=1Gbit\n"
				"[link kyoto tokyo]\nrate=10Gbit\ndelay=10ms\n";

/* A file in the layout that a person might give it. The digest is put in. */
static const char file[] =
	"{ \"version\": 1,\n"                                                            /* 1 */
	"  \"date\": \"2026-11-21T16:29:00Z\",\n"                                        /* 2 */
	"  \"grid_digest\": \"%016" PRIx64 "\",\n"                                       /* 3 */
	"  \"dilation\": 20, \"latency\": \"half a round trip\",\n"                      /* 4 */
	"  \"clusters\": [\"kyoto\",\n"                                                  /* 5 */
	"    \"tokyo\"],\n"                                                              /* 6 */
	"  \"links\": [\n"                                                               /* 7 */
	"    {\"from\": \"kyoto\", \"to\": \"kyoto\", \"latency_ns\": 50000},\n"         /* 8 */
	"    {\"from\": \"kyoto\", \"to\": \"tokyo\", \"latency_ns\": 10000000,\n"       /* 9 */
	"      \"points\": [\n"                                                          /* 10 */
	"        {\"nbytes\": 0, \"os_ns\": 900, \"or_ns\": 800, \"gap_ns\": 2000},\n"   /* 11 */
	"        {\"nbytes\": 64, \"os_ns\": 950, \"or_ns\": 850, \"gap_ns\": 2500}],\n" /* 12
											  */
	"      \"rates\": [{\"streams\": 1, \"bps\": 100},\n"                            /* 13 */
	"        {\"streams\": 4, \"bps\": 350}], \"senders\": [{\"senders\": 2, \"bps\": "
	"700}],\n"                                                                       /* 14 */
	"      \"isends\": [\n"                                                          /* 15 */
	"        {\"nbytes\": 8, \"immediate\": true, \"initial\": 15, \"mid\": 3,\n"    /* 16 */
	"         \"os_start_ns\": 70, \"os_spike_ns\": 9000, \"os_mid_ns\": 90}]}]}\n"; /* 17
											  */

struct fixture {
	struct gci_grid g;
	char text[sizeof(file) + 256];
};

static void start(struct fixture *f)
{
	struct gci_error e = {0};

	if (gci_grid_parse(&f->g, grid_text, sizeof(grid_text) - 1, "g", &e))
		fail_msg("%s", e.text);
	snprintf(f->text, sizeof(f->text), file, gci_grid_digest(&f->g));
}

static void parse(struct gci_params *p, const char *text, const struct gci_grid *g)
{
	struct gci_error e = {0};

	if (gci_params_parse(p, text, strlen(text), "p.json", g, &e))
		fail_msg("%s", e.text);
}

static void whole_file(void **state)
{
	const struct gci_params_link *l;
	struct gci_params p;
	struct fixture f;

	(void)state;
	start(&f);
	parse(&p, f.text, &f.g);
	assert_true(p.grid_digest == gci_grid_digest(&f.g));
	assert_string_equal(p.date, "2026-11-21T16:29:00Z");
	assert_int_equal(p.dilation, 20);
	assert_int_equal(p.latency, GCI_LATENCY_HALF_ROUND_TRIP);
	assert_int_equal(p.nclusters, 2);
	assert_string_equal(p.clusters[1], "tokyo");
	assert_int_equal(gci_params_link(&p, 0, 0)->latency_ns, 50000);
	assert_int_equal(gci_params_link(&p, 0, 0)->npoints, 0);
	assert_int_equal(gci_params_link(&p, 1, 0)->npoints, 0);
	l = gci_params_link(&p, 0, 1);
	assert_int_equal(l->latency_ns, 10000000);
	assert_int_equal(l->npoints, 2);
	assert_int_equal(l->points[1].nbytes, 64);
	assert_int_equal(l->points[1].os_ns, 950);
	assert_int_equal(l->points[1].or_ns, 850);
	assert_int_equal(l->points[1].gap_ns, 2500);
	assert_int_equal(l->nrates, 2);
	assert_int_equal(l->rates[1].streams, 4);
	assert_int_equal(l->rates[1].bps, 350);
	assert_int_equal(l->nsenders, 1);
	assert_int_equal(l->senders[0].streams, 2);
	assert_int_equal(l->senders[0].bps, 700);
	assert_int_equal(l->nisends, 1);
	assert_int_equal(l->isends[0].initial, 15);
	assert_int_equal(l->isends[0].mid, 3);
	assert_int_equal(l->isends[0].immediate, 1);
	assert_int_equal(l->isends[0].os_start_ns, 70);
	assert_int_equal(l->isends[0].os_spike_ns, 9000);
	assert_int_equal(l->isends[0].os_mid_ns, 90);
	gci_params_free(&p);
	gci_grid_dilate(&f.g, 20); /* the lab's grid is the same */
	parse(&p, f.text, &f.g);
	gci_params_free(&p);
	gci_grid_free(&f.g);
}

static void printed_ones_parse_to_the_same(void **state)
{
	struct gci_buf first = {0}, second = {0};
	struct gci_params p, q;
	struct fixture f;
	int i;

	(void)state;
	start(&f);
	parse(&p, f.text, NULL);
	p.latency = GCI_LATENCY_ONE_WAY;
	gci_params_print(&p, &first);
	parse(&q, gci_buf_cstr(&first), &f.g);
	gci_params_print(&q, &second);
	assert_string_equal(gci_buf_cstr(&first), gci_buf_cstr(&second));
	assert_true(p.grid_digest == q.grid_digest && p.dilation == q.dilation);
	assert_int_equal(q.latency, GCI_LATENCY_ONE_WAY);
	assert_string_equal(p.date, q.date);
	for (i = 0; i < 4; i++) {
		const struct gci_params_link *a = &p.links[i], *b = &q.links[i];

		assert_true(a->latency_ns == b->latency_ns);
		assert_int_equal(a->npoints, b->npoints);
		assert_int_equal(a->nrates, b->nrates);
		assert_int_equal(a->nisends, b->nisends);
		assert_int_equal(a->nsenders, b->nsenders);
		assert_memory_equal(a->points, b->points, a->npoints * sizeof(*a->points));
	}
	assert_memory_equal(&p.links[1].isends[0].os_start_ns, &q.links[1].isends[0].os_start_ns,
		3 * sizeof(uint64_t));
	gci_params_free(&p);
	gci_params_free(&q);
	gci_buf_free(&first);
	gci_buf_free(&second);
	gci_grid_free(&f.g);
}

/* The file with `old` replaced must be refused. */
static void refused(const char *old, const char *new, int status, const char *want)
{
	char text[sizeof(file) + 512];
	struct gci_error e = {0};
	struct gci_params p;
	struct fixture f;
	const char *at;

	start(&f);
	at = strstr(f.text, old);
	if (!at)
		fail_msg("no %s to replace", old);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - f.text), f.text, new, at + strlen(old));
	assert_int_equal(gci_params_parse(&p, text, strlen(text), "p.json", &f.g, &e), status);
	assert_string_equal(e.text, want);
	assert_null(p.links);
	assert_null(p.clusters);
	gci_grid_free(&f.g);
}

#define bad(old, new, want) refused(old, new, GCOLL_ERR_PARSE, "p.json:" want)

static void bad_heads(void **state)
{
	(void)state;
	bad("\"version\": 1", "\"version\": 2", "1: version = 2, expected 1");
	bad("\"version\": 1,", "", "1: no version, expected 1");
	bad("\"date\"", "\"data\"",
		"2: unknown key \"data\", expected version, date, grid_digest, dilation, latency, "
		"clusters or links");
	bad("2026-11-21T", "yesterday",
		"2: date = \"yesterday16:29:00Z\", expected a time in UTC such as "
		"\"2026-01-31T23:59:00Z\"");
	bad("\"grid_digest\"", "\"grid_digests\"",
		"3: unknown key \"grid_digests\", expected version, date, grid_digest, dilation, "
		"latency, clusters or links");
	bad("\"dilation\": 20", "\"dilation\": 0",
		"4: dilation = 0, expected a whole number from 1 to 4294967295");
	bad("half a round trip", "guess",
		"4: latency = \"guess\", expected \"half a round trip\" or \"one way\"");
	bad("\"kyoto\",\n    \"tokyo\"", "\n",
		"5: clusters = an array of 0, expected an array of 1 to 256");
	bad("    \"tokyo\"],", "    \"kyoto\"],",
		"6: cluster kyoto is there twice, expected each once");
	bad("    \"tokyo\"],", "    \"to kyo\"],",
		"6: clusters[1] = \"to kyo\", "
		"expected a name of letters, digits, \"-\", \"_\" and \".\"");
}

static void foreign_ones(void **state)
{
	struct gci_error e = {0};
	char want[240], text[sizeof(file) + 256];
	struct gci_params p;
	struct fixture f;

	(void)state;
	refused("\"kyoto\",\n", "", GCOLL_ERR_INVAL,
		"p.json:5: 1 clusters, expected the 2 of the grid");
	refused("    \"tokyo\"],", "    \"osaka\"],", GCOLL_ERR_INVAL,
		"p.json:6: cluster osaka, expected tokyo as in the grid");
	start(&f);
	snprintf(text, sizeof(text), file, gci_grid_digest(&f.g) ^ 1);
	snprintf(want, sizeof(want),
		"p.json:3: measured on another grid, or before this one was changed: its digest is "
		"%016" PRIx64 ", expected %016" PRIx64 "; gridcoll probe measures this one",
		gci_grid_digest(&f.g) ^ 1, gci_grid_digest(&f.g));
	assert_int_equal(
		gci_params_parse(&p, text, strlen(text), "p.json", &f.g, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, want);
	parse(&p, text, NULL); /* nothing to compare with */
	gci_params_free(&p);
	gci_error_clear(&e);
	memcpy(strstr(text, "digest") + 10, "X", 1);
	assert_int_equal(
		gci_params_parse(&p, text, strlen(text), "p.json", &f.g, &e), GCOLL_ERR_PARSE);
	assert_non_null(strstr(e.text, "p.json:3: grid_digest = \"X"));
	assert_non_null(strstr(e.text, "\", expected 16 digits from 0 to f"));
	gci_grid_free(&f.g);
}

static void bad_links(void **state)
{
	(void)state;
	bad("\"links\": [", "\"links\": [7,", "7: links[0] = 7, expected an object");
	bad("\"from\": \"kyoto\", \"to\": \"tokyo\"", "\"from\": \"kyoto\"",
		"9: no links[1].to, expected a text of 1 to 64 plain characters");
	bad("\"to\": \"tokyo\"", "\"to\": \"osaka\"",
		"9: links[1].to = \"osaka\", expected one of \"clusters\"");
	bad("\"to\": \"tokyo\"", "\"to\": \"kyoto\"",
		"9: the link from kyoto to kyoto is there twice, expected each once");
	bad("10000000", "-1",
		"9: links[1].latency_ns = -1, expected a whole number from 0 to 100000000000000");
	bad("10000000", "1e7",
		"9: links[1].latency_ns = 1e+07, expected a whole number from 0 to "
		"100000000000000");
	bad("10000000", "100000000000001",
		"9: links[1].latency_ns = 100000000000001, expected a whole number from 0 to "
		"100000000000000");
	bad("\"points\"", "\"pints\"",
		"10: unknown key \"pints\", "
		"expected from, to, latency_ns, points, rates, senders or isends");
}

static void bad_lists(void **state)
{
	(void)state;
	bad("\"nbytes\": 0", "\"nbytes\": 1",
		"11: links[1].points[0].nbytes = 1, expected 0, of the first point");
	bad("\"nbytes\": 64", "\"nbytes\": 0",
		"12: links[1].points[1].nbytes = 0, expected more than 0, which is before it");
	bad("\"nbytes\": 64", "\"nbytes\": 1099511627777",
		"12: links[1].points[1].nbytes = 1099511627777, expected a whole number from 0 to "
		"1099511627776");
	bad("\"gap_ns\": 2500", "\"gap_ns\": 949",
		"12: links[1].points[1].gap_ns = 949, expected no less than os_ns, which is 950");
	bad("\"or_ns\": 850", "\"or_ns\": 2501",
		"12: links[1].points[1].gap_ns = 2500, expected no less than or_ns, which is 2501");
	bad("\"or_ns\": 850", "\"or_ns\": \"850\"",
		"12: links[1].points[1].or_ns = \"850\", expected a whole number from 0 to "
		"100000000000000");
	bad(", \"os_ns\": 950", "",
		"12: no links[1].points[1].os_ns, expected a whole number from 0 to "
		"100000000000000");
	bad("\"os_ns\": 950", "\"os\": 950",
		"12: unknown key \"os\", expected nbytes, os_ns, or_ns or gap_ns");
	bad("\"bps\": 100", "\"bps\": 0",
		"13: links[1].rates[0].bps = 0, expected a whole number from 1 to "
		"1000000000000000");
	bad("\"streams\": 4", "\"streams\": 1",
		"14: links[1].rates[1].streams = 1, expected more than 1, which is before it");
	bad("\"streams\": 4", "\"streams\": 5000",
		"14: links[1].rates[1].streams = 5000, expected a whole number from 1 to 4096");
	bad("\"senders\": 2", "\"streams\": 2",
		"14: unknown key \"streams\", expected senders or bps");
	bad("\"senders\": 2", "\"senders\": 65537",
		"14: links[1].senders[0].senders = 65537, expected a whole number from 1 to 65536");
	bad("{\"streams\": 1, \"bps\": 100},\n        {\"streams\": 4, \"bps\": 350}", "",
		"13: links[1].rates = an array of 0, expected an array of 1 to 4096");
	bad("\"immediate\": true", "\"immediate\": 1",
		"16: links[1].isends[0].immediate = 1, expected true or false");
	bad("\"os_mid_ns\": 90", "\"os_mid_ns\": null",
		"17: links[1].isends[0].os_mid_ns = null, expected a whole number from 0 to "
		"100000000000000");
	bad("\"initial\": 15", "\"initial\": 1048577",
		"16: links[1].isends[0].initial = 1048577, "
		"expected a whole number from 0 to 1048576");
}

/* Cut anywhere, it is refused with a line and a word. */
static void truncated(void **state)
{
	struct gci_params p;
	struct fixture f;
	size_t len;

	(void)state;
	start(&f);
	for (len = 0; len < strlen(f.text) - 2; len++) {
		struct gci_error e = {0};

		assert_int_equal(
			gci_params_parse(&p, f.text, len, "p.json", &f.g, &e), GCOLL_ERR_PARSE);
		assert_int_equal(strncmp(e.text, "p.json:", 7), 0);
		assert_non_null(strstr(e.text, ", expected JSON"));
	}
	gci_grid_free(&f.g);
}

static void too_large(void **state)
{
	size_t len = GCI_PARAMS_MAX_TEXT + 1;
	char *text = gci_calloc(len, 1);
	struct gci_error e = {0};
	struct gci_params p;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', len);
	assert_int_equal(gci_params_parse(&p, text, len, "p.json", NULL, &e), GCOLL_ERR_PARSE);
	assert_string_equal(e.text, "p.json:1: larger than 8388608 bytes");
	gci_free(text);
}

static void lack_of_memory_anywhere(void **state)
{
	unsigned long n = 0;
	struct gci_params p;
	struct fixture f;
	int rc;

	(void)state;
	start(&f);
	do {
		struct gci_error e = {0};

		gci_mem_fail_at(++n);
		rc = gci_params_parse(&p, f.text, strlen(f.text), "p.json", &f.g, &e);
		assert_int_equal(rc, gci_mem_failed() ? GCOLL_ERR_NOMEM : 0);
		if (rc)
			assert_null(p.clusters);
	} while (rc);
	gci_mem_fail_at(0);
	assert_true(n > 5);
	gci_params_free(&p);
	gci_grid_free(&f.g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file),
		cmocka_unit_test(printed_ones_parse_to_the_same),
		cmocka_unit_test(bad_heads),
		cmocka_unit_test(foreign_ones),
		cmocka_unit_test(bad_links),
		cmocka_unit_test(bad_lists),
		cmocka_unit_test(truncated),
		cmocka_unit_test(too_large),
		cmocka_unit_test(lack_of_memory_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
