/* SPDX-License-Identifier: MIT
 * tools/lib/gantt.c: a small chart is compared with a file ($GRIDCOLL_TEST_GANTT; to look at it, open
 * it in a browser; to make it anew, set GRIDCOLL_TEST_REWRITE), others for what must hold of any.
 */
#include "tests/tools/timelines.h"
#include "tests/tools/xml.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tools/lib/gantt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS GCI_NS_PER_MS

static void print(struct made *m, const char *title, uint64_t limit_ns, struct gci_buf *out)
{
	struct gct_gantt g = {.timeline = &m->timeline,
		.title = title,
		.subtitle = "made by hand",
		.names = m->names,
		.clusters = m->clusters,
		.limit_ns = limit_ns};
	const char *wrong;

	assert_int_equal(gct_timeline_sort(&m->timeline), 0);
	assert_int_equal(gct_gantt_print(&g, out), 0);
	wrong = xml_wrong(gci_buf_cstr(out), out->len);
	if (wrong)
		fail_msg("%s", wrong);
}

/* A reduction of two clusters of two. */
static void small(struct made *m)
{
	made_grid(m, 2, 2);
	made_message(m, 1, 0, 0, 1000, 0, 0, 8 * MS);
	made_message(m, 3, 2, 0, 1000, 0, 0, 8 * MS);
	made_compute(m, 0, 8 * MS, 9 * MS);
	made_compute(m, 2, 8 * MS, 9 * MS);
	made_message(m, 2, 0, 1u << 28, 1000, 9 * MS, 9 * MS, 17 * MS);
	made_compute(m, 0, 27 * MS, 28 * MS);
	made_message(m, 0, 1, 2u << 28, 0, 28 * MS, 28 * MS, 28 * MS);
}

static void golden(void **state)
{
	const char *path = getenv("GRIDCOLL_TEST_GANTT");
	struct gci_buf out = {0};
	char *text;
	struct made m;
	size_t n;
	FILE *f;

	(void)state;
	small(&m);
	print(&m, "reduce of 1.00 kB by hand: 28.1 ms", 18 * MS, &out);
	if (getenv("GRIDCOLL_TEST_REWRITE")) {
		f = fopen(path, "w");
		assert_non_null(f);
		assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
		fclose(f);
	}
	f = fopen(path, "r");
	assert_non_null(f);
	text = gci_calloc(out.len + 2, 1);
	n = fread(text, 1, out.len + 1, f);
	fclose(f);
	assert_int_equal(n, out.len);
	assert_string_equal(text, gci_buf_cstr(&out));
	gci_free(text);
	gci_buf_free(&out);
	made_free(&m);
}

/* Where a bar stands: its path begins at so many tenths of a pixel, and is so long. */
static void assert_bar(const char *svg, const char *tooltip, unsigned at, unsigned width)
{
	const char *title = strstr(svg, tooltip), *p = title;
	unsigned x = 0, w = 0, y = 0;

	if (!title)
		fail_msg("no bar \"%s\"", tooltip);
	while (p > svg && strncmp(p, "d=\"M", 4) != 0)
		p--;
	assert_int_equal(sscanf(p, "d=\"M%u %uh%u", &x, &y, &w), 3);
	assert_in_range(x + 1, at, at + 2);
	assert_in_range(w, width > 5 ? width - 5 : 0, width + 10);
}

/* Of 16 ranks: each has its row, each message its two bars, in their place. */
static void sixteen(void **state)
{
	struct gci_buf out = {0};
	char text[80];
	struct made m;
	int r;

	(void)state;
	made_grid(&m, 2, 8);
	for (r = 1; r < 16; r++)
		made_message(&m, 0, r, (uint32_t)(r / 8) << 28, 4000, 0,
			(uint64_t)(r - 1) * 10 * MS, (uint64_t)r * 10 * MS);
	print(&m, "bcast", 0, &out);
	for (r = 0; r < 16; r++) {
		snprintf(text, sizeof(text), ">%s <tspan fill=\"#777\">%d</tspan>", m.names[r], r);
		assert_int_equal(occurrences(gci_buf_cstr(&out), text), 1);
	}
	assert_int_equal(
		occurrences(gci_buf_cstr(&out), "<title>from rank 0 on c0h0, 4.00 kB, "), 15);
	/* What comes last: 10 ms after 150 ms were sent. */
	for (r = 1; r < 16; r++) {
		snprintf(text, sizeof(text), "<title>to rank %d on %s, 4.00 kB, ", r, m.names[r]);
		assert_bar(gci_buf_cstr(&out), text, 12200u * (unsigned)(r - 1) / 16, 12200 / 16);
	}
	assert_non_null(strstr(gci_buf_cstr(&out), ">within a cluster, phase 1<"));
	assert_non_null(strstr(gci_buf_cstr(&out), ">over a WAN, phase 2<"));
	assert_null(strstr(gci_buf_cstr(&out), "computing"));
	assert_null(strstr(gci_buf_cstr(&out), "physical limit"));
	gci_buf_free(&out);
	made_free(&m);
}

static void names_are_escaped(void **state)
{
	struct gci_buf out = {0};
	struct made m;

	(void)state;
	small(&m);
	m.names[1] = "<b>&\"\x01\xc3\xa9";
	m.clusters[1] = "</svg>";
	print(&m, "a < b & \"c\" > d\x7f\n", 0, &out);
	assert_int_equal(
		occurrences(gci_buf_cstr(&out), ">a &lt; b &amp; &quot;c&quot; &gt; d?"), 2);
	assert_int_equal(occurrences(gci_buf_cstr(&out), "&lt;b&gt;&amp;&quot;???"), 1 + 3);
	assert_int_equal(occurrences(gci_buf_cstr(&out), "&lt;/svg&gt;"), 1);
	gci_buf_free(&out);
	made_free(&m);
}

static void at_random(struct made *m, int n)
{
	struct gci_prng prng = {7};
	struct gct_span s = {.kind = GCI_STEP_SEND};

	for (; n; n--) {
		s.rank = (int)gci_prng_below(&prng, (uint64_t)m->topo.nranks);
		s.peer = (int)gci_prng_below(&prng, (uint64_t)m->topo.nranks);
		s.kind = (enum gci_step_kind)gci_prng_below(&prng, 5);
		s.step++;
		s.tag = (uint32_t)gci_prng_below(&prng, 1u << 31);
		s.ready_ns = gci_prng_below(&prng, 1000 * MS);
		s.from_ns = s.ready_ns + gci_prng_below(&prng, MS);
		s.to_ns = s.from_ns + gci_prng_below(&prng, MS / 2);
		gct_timeline_add(&m->timeline, &s);
	}
}

/* Bounded, whatever there is to show; and still a chart of more than a few bars. */
static void bounded(void **state)
{
	struct gci_buf out = {0};
	struct made m;

	(void)state;
	made_grid(&m, 4, 16);
	at_random(&m, 300000);
	print(&m, "noise", 0, &out);
	assert_in_range(out.len, 200 << 10, 2000000);
	gci_buf_free(&out);
	made_free(&m);

	made_grid(&m, 5, 200);
	at_random(&m, 300000);
	print(&m, "noise", 0, &out);
	assert_in_range(out.len, 200 << 10, 2000000);
	assert_non_null(strstr(gci_buf_cstr(&out), "(the first 255 of 1000 ranks)"));
	gci_buf_free(&out);
	made_free(&m);
}

static void nothing_to_show(void **state)
{
	struct gci_buf out = {0};
	struct made m;

	(void)state;
	made_grid(&m, 1, 1);
	print(&m, "alone", 0, &out);
	assert_null(strstr(gci_buf_cstr(&out), "<path class=\"a"));
	gci_buf_free(&out);
	made_free(&m);
}

static void out_of_memory(void **state)
{
	struct gct_gantt g = {.title = "t", .subtitle = ""};
	struct made m;
	unsigned long n;

	(void)state;
	small(&m);
	assert_int_equal(gct_timeline_sort(&m.timeline), 0);
	g.timeline = &m.timeline;
	g.clusters = m.clusters;
	for (n = 1;; n++) {
		struct gci_buf out = {0};
		int rc;

		gci_mem_fail_at(n);
		rc = gct_gantt_print(&g, &out);
		gci_buf_free(&out);
		assert_int_equal(rc, gci_mem_failed() ? GCOLL_ERR_NOMEM : 0);
		if (!gci_mem_failed())
			break;
	}
	gci_mem_fail_at(0);
	assert_true(n > 4);
	made_free(&m);
}

/* Messages find their other side, whatever order they were recorded in. */
static void sides_meet(void **state)
{
	struct made m;
	size_t i;

	(void)state;
	small(&m);
	assert_int_equal(gct_timeline_sort(&m.timeline), 0);
	for (i = 0; i < m.timeline.n; i++) {
		const struct gct_span *s = &m.timeline.spans[i], *o;

		assert_ptr_equal(gct_timeline_find(&m.timeline, s->rank, s->window, s->step), s);
		if (gct_span_lane(s) == GCT_LANE_COMPUTE) {
			assert_int_equal(s->other, 0);
			continue;
		}
		assert_int_not_equal(s->other, 0);
		o = &m.timeline.spans[s->other - 1];
		assert_int_equal(o->rank, s->peer);
		assert_int_equal(o->peer, s->rank);
		assert_int_equal(o->tag, s->tag);
		assert_int_not_equal(gct_span_lane(o), gct_span_lane(s));
	}
	assert_null(gct_timeline_find(&m.timeline, 0, 1, 0));
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(sixteen),
		cmocka_unit_test(names_are_escaped),
		cmocka_unit_test(bounded),
		cmocka_unit_test(nothing_to_show),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(sides_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
