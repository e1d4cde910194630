/* SPDX-License-Identifier: MIT
 * From facts to findings. */
#include "base/mem.h"
#include "tests/tools/doctor_facts.h"
#include "tests/tools/doctor_faults.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(struct gct_report *r, const struct gct_facts *f, const struct gct_needs *n)
{
	*r = (struct gct_report){0};
	assert_int_equal(gct_doctor_check(f, n, r), 0);
}

static void nothing_to_change(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	size_t i;

	(void)state;
	good_facts(&f);
	grid_needs(&n, FAT_GRID, "k1");
	check(&r, &f, &n);
	for (i = 0; i < r.n; i++)
		if (r.list[i].level != GCT_FINE || r.list[i].should || r.list[i].command)
			fail_msg("%s: %s", r.list[i].what, gct_level_name(r.list[i].level));
	assert_in_range(r.n, 20, 100);
	gct_report_free(&r);
	gct_needs_free(&n);
}

static void assert_text(const char *id, const char *is, const char *want)
{
	if (!is != !want || (is && strcmp(is, want)))
		fail_msg("%s: \"%s\", expected \"%s\"", id, is ? is : "(nothing)",
			want ? want : "(nothing)");
}

static void one_finding_each(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ndoctor_faults; i++) {
		struct gct_facts f;
		struct gct_needs n;
		struct gct_report r;
		const struct gct_finding *g;

		good_facts(&f);
		doctor_faults[i].spoil(&f);
		grid_needs(&n, FAT_GRID, "k1");
		check(&r, &f, &n);
		g = &r.list[0]; /* the worst comes first */
		assert_string_equal(g->id, doctor_faults[i].id);
		assert_string_equal(
			gct_level_name(g->level), gct_level_name(doctor_faults[i].level));
		assert_int_equal(
			gct_report_count(&r, GCT_PROBLEM) + gct_report_count(&r, GCT_ADVICE), 1);
		assert_text(g->id, g->is, doctor_faults[i].is);
		assert_text(g->id, g->should, doctor_faults[i].should);
		assert_text(g->id, g->command, doctor_faults[i].command);
		assert_text(g->id, g->line, doctor_faults[i].line);
		if (!g->why || !strstr(g->why, doctor_faults[i].why))
			fail_msg("%s: %s", g->id, g->why);
		gct_report_free(&r);
		gct_needs_free(&n);
	}
}

/* Cubic loses against loss, bbr does not mind. */
static void lossy_links(void **state)
{
	static const char lossy[] =
		"[cluster a]\nhosts = a\nnic = 1Gbit\n[cluster b]\nhosts = b\nnic = 1Gbit\n"
		"[link a b]\nrate = 1Gbit\ndelay = 50ms\nloss = 0.1%\n";
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	const struct gct_finding *g;

	(void)state;
	good_facts(&f);
	grid_needs(&n, lossy, "a");
	check(&r, &f, &n);
	/* sqrt(1.5 / 0.001) = 38.7 packets, 1.054 x (0.1 / 0.001)^0.75 = 33.3 for cubic: 4.49
	 * Mbit/s in each of four streams. */
	g = find(&r, "tcp_congestion_control");
	assert_int_equal(g->level, GCT_PROBLEM);
	assert_non_null(
		strstr(g->why, "at 0.1 % of packets on a > b a stream keeps up 4.49 Mbit/s, "
			       "4 of them 2 % of the rate"));
	assert_string_equal(
		g->command, "modprobe tcp_bbr && sysctl -w net.ipv4.tcp_congestion_control=bbr");
	gct_report_free(&r);
	f.module[GCT_BBR] = 0;
	check(&r, &f, &n);
	g = find(&r, "tcp_congestion_control");
	assert_null(g->command);
	assert_non_null(strstr(g->why, "tcp_bbr, which this one lacks"));
	gct_report_free(&r);
	strcpy(f.congestion, "bbr");
	check(&r, &f, &n);
	assert_int_equal(find(&r, "tcp_congestion_control")->level, GCT_FINE);
	gct_report_free(&r);
	gct_needs_free(&n);
}

/* What needs a grid says so; what is not known is no problem. */
static void without_a_grid(void **state)
{
	static const char *const ids[] = {"tcp_rmem", "tcp_wmem", "nofile"};
	struct gct_needs n = {.own_cluster = -1};
	struct gct_facts f;
	struct gct_report r;
	size_t i;

	(void)state;
	good_facts(&f);
	check(&r, &f, &n);
	assert_int_equal(gct_report_count(&r, GCT_NOT_KNOWN), 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(find(&r, ids[i])->level, GCT_NOT_KNOWN);
		assert_non_null(strstr(find(&r, ids[i])->why, "give --grid"));
	}
	gct_report_free(&r);
	gct_facts_read(&f, "/nowhere");
	check(&r, &f, &n);
	assert_int_equal(gct_report_count(&r, GCT_PROBLEM), 0);
	gct_report_free(&r);
}

static void needs_of_a_host(void **state)
{
	static const char three[] =
		"[cluster a]\nhosts = a1.example.org\nnic = 1Gbit\n[cluster b]\nhosts = b[1-4]\n"
		"[cluster c]\nhosts = c[1-9]\n[link a b]\nrate = 1Gbit\ndelay = 5ms\n"
		"[link a > c]\nrate = 100Mbit\ndelay = 50ms\nstreams = 7\n[link c > a]\nrate = "
		"1Gbit\ndelay = 50ms\n[link b c]\ndelay = 5ms\n";
	struct gct_needs n;

	(void)state;
	grid_needs(&n, three, "a1"); /* short for a1.example.org */
	assert_int_equal(n.own_cluster, 0);
	assert_int_equal(n.nlinks, 4);
	assert_int_equal(n.connections, 0 + 4 * 4 + 9 * 7);
	assert_string_equal(n.links[1].name, "a > c");
	assert_int_equal(n.links[1].flight.streams, 7);
	assert_int_equal(n.links[3].flight.streams, 7); /* both ways alike */
	assert_int_equal(n.links[1].flight.nbytes, 1250000);
	assert_int_equal(n.links[3].flight.nbytes, 12500000);
	assert_true(n.links[1].sends && !n.links[1].receives);
	gct_needs_free(&n);
	grid_needs(&n, three, "a1.example.com"); /* someone else */
	assert_int_equal(n.own_cluster, -1);
	assert_int_equal(n.nlinks, 6);
	assert_int_equal(n.connections, 4 * 4 + 9 * 7); /* the most of any: a1 */
	gct_needs_free(&n);
}

/* ---- how it is said */

static char *as_text(
	const struct gct_report *r, const struct gct_needs *n, const struct gct_facts *f, int lines)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (lines)
		gct_doctor_lines(r, "k1", out);
	else
		gct_doctor_text(r, n, f, out);
	fclose(out);
	return text;
}

static void spoil_all(struct gct_facts *f)
{
	size_t i;

	good_facts(f);
	for (i = 0; i < ndoctor_faults; i++)
		doctor_faults[i].spoil(f);
}

static void text_fits(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	char *text, *line, *save;

	(void)state;
	spoil_all(&f);
	grid_needs(&n, FAT_GRID, NULL);
	check(&r, &f, &n);
	text = as_text(&r, &n, &f, 0);
	assert_non_null(strstr(text, "k1, Linux 6.1.0, for my.grid (not one of its hosts: "));
	assert_non_null(strstr(text, "\n  kyoto > tokyo "));
	assert_non_null(strstr(text, "\nproblem  net.ipv4.tcp_sack: 0, should be 1\n"));
	assert_non_null(strstr(text, "\n         $ sysctl -w net.ipv4.tcp_sack=1\n"));
	assert_non_null(strstr(text, "\n  net.ipv4.tcp_sack = 1\n"));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strlen(line) > 79 && strncmp(line, "         $ ", 11))
			fail_msg("%s", line);
	free(text);
	text = as_text(&r, &n, &f, 1);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		assert_int_equal(strncmp(line, "k1: ", 4), 0);
	free(text);
	gct_report_free(&r);
	gct_needs_free(&n);
}

static void json_keys(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	struct gci_buf text = {0};
	json_error_t why;
	json_t *o, *g;

	(void)state;
	spoil_all(&f);
	grid_needs(&n, FAT_GRID, "k1");
	check(&r, &f, &n);
	assert_int_equal(gct_doctor_json(&r, &n, &f, &text), 0);
	o = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &why);
	if (!o)
		fail_msg("%s", why.text);
	assert_string_equal(json_string_value(json_object_get(o, "host")), "k1");
	assert_string_equal(json_string_value(json_object_get(o, "grid")), "my.grid");
	assert_int_equal(json_integer_value(json_object_get(o, "problems")),
		gct_report_count(&r, GCT_PROBLEM));
	assert_int_equal(json_array_size(json_object_get(o, "findings")), r.n);
	g = json_array_get(json_object_get(o, "links"), 0);
	assert_int_equal(json_integer_value(json_object_get(g, "stream_bytes")), 6250000);
	g = json_array_get(json_object_get(o, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(g, "id")), r.list[0].id);
	assert_string_equal(json_string_value(json_object_get(g, "level")), "problem");
	assert_string_equal(json_string_value(json_object_get(g, "sysctl")), r.list[0].line);
	json_decref(o);
	gci_buf_free(&text);
	gct_report_free(&r);
	gct_needs_free(&n);
}

/* Every allocation fails once: an error, and nothing is left. */
static void out_of_memory(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	unsigned long i;
	int rc = -1;

	(void)state;
	spoil_all(&f);
	grid_needs(&n, FAT_GRID, "k1");
	for (i = 1; rc; i++) {
		r = (struct gct_report){0};
		gci_mem_fail_at(i);
		rc = gct_doctor_check(&f, &n, &r);
		assert_int_equal(rc, gci_mem_failed() ? GCOLL_ERR_NOMEM : 0);
		gci_mem_fail_at(0);
		gct_report_free(&r);
	}
	assert_in_range(i, 50, 1000);
	gct_needs_free(&n);
}

/* No reason to change anything, whatever there is; unknown where nobody has tried. */
static void kernel_tls(void **state)
{
	static const struct {
		int kernel, openssl;
		const char *is;
	} all[] = {{0, 2, "not used; the kernel has it, OpenSSL has it both ways"},
		{0, 1, "not used; the kernel has it, OpenSSL has it for sending only"},
		{ENOENT, 0, "not used; the kernel has none, OpenSSL has none"}, {-1, 0, NULL}};
	const struct gct_finding *g;
	struct gct_report r;
	struct gct_facts f;
	struct gct_needs n;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		good_facts(&f);
		f.tls_kernel = all[i].kernel;
		f.tls_openssl = all[i].openssl;
		grid_needs(&n, FAT_GRID, "k1");
		check(&r, &f, &n);
		g = find(&r, "kernel_tls");
		assert_int_equal(g->level, all[i].is ? GCT_FINE : GCT_NOT_KNOWN);
		assert_text(g->id, g->is, all[i].is);
		assert_null(g->should);
		gct_report_free(&r);
		gct_needs_free(&n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_change),
		cmocka_unit_test(one_finding_each),
		cmocka_unit_test(lossy_links),
		cmocka_unit_test(without_a_grid),
		cmocka_unit_test(needs_of_a_host),
		cmocka_unit_test(text_fits),
		cmocka_unit_test(json_keys),
		cmocka_unit_test(kernel_tls),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
