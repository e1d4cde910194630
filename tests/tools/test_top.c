/* SPDX-License-Identifier: MIT
 * gridcoll top: what it draws, in whatever room; and a running job that is asked, whose file of
 * statistics and bench's picture are looked at in the end. */
#include "tests/tools/jobs.h"

#include "base/file.h"
#include "tools/ctl/client.h"
#include "tools/top/top.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the drawing */

static json_t *pair(const char *from, const char *to, json_int_t link_bps, json_int_t rate_bps)
{
	json_t *bytes = json_array();
	int i;

	for (i = 0; i < 100; i++) /* nothing at first, then 800 Mbit/s */
		json_array_append_new(bytes, json_integer(i < 50 ? 0 : 1000000));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:I, s:I, s:I}", "from", from, "to", to,
		"link_bps", link_bps, "rate_bps", rate_bps, "first_bin", (json_int_t)1000, "bytes",
		bytes, "sent_bytes", (json_int_t)50000000, "resent_segments", (json_int_t)7,
		"rtt_ns", (json_int_t)20000000);
}

static json_t *flow(int rank, json_int_t resent, json_int_t rate_bps)
{
	return json_pack("{s:i, s:s, s:i, s:i, s:s, s:s, s:I, s:I}", "rank", rank, "host", "k1",
		"peer", rank + 100, "stream", 3, "from", "kyoto", "to", "tokyo", "resent_segments",
		resent, "rate_bps", rate_bps);
}

struct view {
	json_t *job, *traffic;
	struct gct_top_view v;
	struct gci_buf out;
};

static void make_view(struct view *w, int columns, int rows)
{
	*w = (struct view){json_pack("{s:i, s:s, s:i, s:i, s:i}", "pid", 4711, "command",
				   "./program -x", "ranks", 16, "clusters", 2, "dilation", 20),
		json_pack("{s:I, s:I, s:I, s:[o, o, o], s:[o, o], s:[o, o, o]}", "time_ns",
			(json_int_t)1700000000 * 1000000000, "bin_ns", (json_int_t)10000000,
			"end_bin", (json_int_t)1100, "pairs", pair("kyoto", "kyoto", 0, 5),
			pair("tokyo", "kyoto", 0, 0), pair("kyoto", "tokyo", 1000000000, 478203435),
			"ranks", flow(5, 0, 300), flow(4, 0, 200), "connections", flow(1, 0, 1),
			flow(2, 9, 1), flow(3, 4, 1)),
		{NULL, NULL, columns, rows, 0}, {0}};
	w->v.job = w->job;
	w->v.traffic = w->traffic;
}

static const char *drawn(struct view *w)
{
	w->out.len = 0;
	gct_top_print(&w->v, &w->out);
	return gci_buf_cstr(&w->out);
}

static void free_view(struct view *w)
{
	json_decref(w->job);
	json_decref(w->traffic);
	gci_buf_free(&w->out);
}

static const char *line_of(const char *text, const char *begin)
{
	const char *at = strstr(text, begin);

	assert_non_null(at);
	return at;
}

static void shows_pairs_and_ranks(void **state)
{
	struct view w;
	const char *s;

	(void)state;
	make_view(&w, 80, 0);
	s = drawn(&w);
	assert_non_null(strstr(s, "job 4711: ./program -x, 16 ranks in 2 clusters, a lab"));
	/* Half of what the link leaves for payload. */
	assert_non_null(strstr(line_of(s, "kyoto > tokyo"), "478 Mbit/s ######......  50%"));
	/* Between clusters first; what has no known rate has no bar. */
	assert_true(line_of(s, "kyoto > tokyo") < line_of(s, "tokyo > kyoto"));
	assert_true(line_of(s, "tokyo > kyoto") < line_of(s, "kyoto inside"));
	assert_null(strchr(line_of(s, "kyoto inside"), '%'));
	/* The last half second at four fifths of the link and more, before it nothing. */
	assert_non_null(strstr(line_of(s, "the last"), "     #####| 800 Mbit/s\n"));
	s = line_of(s, "slowest senders");
	assert_true(line_of(s, " 4 k1") < line_of(s, " 5 k1"));
	free_view(&w);
}

static void connections_with_losses_first(void **state)
{
	struct view w;
	const char *s;

	(void)state;
	make_view(&w, 80, 0);
	w.v.connections = 1;
	s = drawn(&w);
	assert_true(line_of(s, "2 > 102") < line_of(s, "3 > 103"));
	assert_true(line_of(s, "3 > 103") < line_of(s, "1 > 101"));
	assert_null(strstr(s, "slowest"));
	free_view(&w);
}

static void fits_any_screen(void **state)
{
	int columns, rows, connections;

	(void)state;
	for (columns = 1; columns < 400; columns += columns < 100 ? 7 : 97)
		for (rows = 0; rows < 30; rows++)
			for (connections = 0; connections < 2; connections++) {
				struct view w;
				const char *s, *end;
				int n = 0;

				make_view(&w, columns, rows);
				w.v.connections = connections;
				for (s = drawn(&w); *s; s = end + 1, n++) {
					end = strchr(s, '\n');
					assert_non_null(end);
					assert_true(end - s <= columns);
					assert_true(end == s || end[-1] != ' ');
				}
				assert_true(!rows || n <= rows);
				free_view(&w);
			}
}

static void strange_replies_do_no_harm(void **state)
{
	static const char *const replies[] = {"{}", "[]", "{\"pairs\": 5}",
		"{\"pairs\": [1, {}, {\"from\": 7, \"to\": [], \"rate_bps\": -1}], \"bin_ns\": 1}",
		"{\"pairs\": [{\"from\": \"a\", \"to\": \"b\", \"link_bps\": 9223372036854775807, "
		"\"rate_bps\": 9223372036854775807, \"first_bin\": 9, \"bytes\": [\"x\", -5]}], "
		"\"end_bin\": 10, \"bin_ns\": 1, \"ranks\": [{}], \"connections\": [[]]}"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		json_t *reply = json_loads(replies[i], 0, NULL);
		struct gct_top_view v = {reply, reply, 80, 24, (int)i % 2};
		struct gci_buf out = {0};

		assert_non_null(reply);
		gct_top_print(&v, &out);
		assert_false(out.failed);
		gci_buf_free(&out);
		json_decref(reply);
	}
}

/* ---- a job */

static const char grid[] = "[cluster kyoto]\nhosts = 127.0.0.1\n"
			   "[cluster tokyo]\nhosts = 127.0.0.2\n"
			   "[link kyoto tokyo]\nrate = 1Gbit\ndelay = 1ms\n";

static json_int_t figure(const json_t *array, const char *from, const char *to, const char *key)
{
	const json_t *o;
	size_t i;

	json_array_foreach (array, i, o)
		if (!strcmp(json_string_value(json_object_get(o, "from")), from) &&
			!strcmp(json_string_value(json_object_get(o, "to")), to))
			return json_integer_value(json_object_get(o, key));
	return -1;
}

/* Asks until the job has reported that so much went both ways. */
static json_t *ask_until_sent(struct gct_ctl *c, json_int_t nbytes)
{
	struct gci_error e = {0};
	const json_t *pairs;
	json_t *reply;
	int i;

	for (i = 0; i < 1000; i++) {
		reply = gct_ctl_ask(
			c, json_pack("{s:s, s:b}", "cmd", "traffic", "connections", 1), &e);
		assert_non_null(reply);
		pairs = json_object_get(reply, "pairs");
		if (figure(pairs, "kyoto", "tokyo", "sent_bytes") > nbytes &&
			figure(pairs, "tokyo", "kyoto", "sent_bytes") > nbytes)
			return reply;
		json_decref(reply);
		usleep(20000);
	}
	fail_msg("the job has not told of its traffic");
	return NULL;
}

static void check_socket(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 077, 0);
}

static void a_running_job_is_asked(void **state)
{
	struct gci_error e = {0};
	struct gct_ctl c;
	struct job j = {0};
	json_t *reply;
	char pid[24];

	(void)state;
	setenv("XDG_RUNTIME_DIR", in_scratch("."), 1);
	assert_int_equal(gct_ctl_open(&c, NULL, &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "no job of this user is running"));
	make_text(in_scratch("two.grid"), grid);
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--quiet-prefix", GRIDCOLL, "bench",
		"allreduce", "-b", "256KiB", "-i", "1000000", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)j.pid);
	do /* it is the only one, when it is there */
		gci_error_clear(&e);
	while (gct_ctl_open(&c, NULL, &e) && !usleep(20000));
	assert_non_null(strstr(c.path, pid));
	check_socket(c.path);
	reply = ask_until_sent(&c, 256 << 10);
	assert_true(json_array_size(json_object_get(reply, "ranks")) >= 2);
	assert_int_equal(
		figure(json_object_get(reply, "pairs"), "kyoto", "tokyo", "link_bps"), 1000000000);
	json_decref(reply);
	reply = gct_ctl_ask(&c, json_pack("{s:s}", "cmd", "prometheus"), &e);
	assert_non_null(strstr(json_string_value(json_object_get(reply, "text")),
		"from=\"kyoto\",to=\"tokyo\"} 125000000\n"));
	json_decref(reply);
	assert_null(gct_ctl_ask(&c, json_pack("{s:s}", "cmd", "nonsense"), &e));
	assert_non_null(strstr(e.text, "expected one of job, "));
	kill(j.pid, SIGTERM);
	job_wait(&j);
	assert_false(is_there(c.path)); /* it has tidied up */
	gci_error_clear(&e);
	assert_null(gct_ctl_ask(&c, json_pack("{s:s}", "cmd", "job"), &e));
	assert_int_equal(e.status, GCOLL_ERR_ABORTED);
	gct_ctl_close(&c);
	job_free(&j);
}

/* What the lines of the file say of a pair: bytes in bins, and the total. */
static void add_up(
	char *text, const char *from, const char *to, json_int_t *bins, json_int_t *total)
{
	char *line, *rest = text;

	*bins = *total = 0;
	while ((line = strtok_r(rest, "\n", &rest))) {
		json_t *o = json_loads(line, 0, NULL), *list = json_pack("[O]", o);
		const char *type = json_string_value(json_object_get(o, "type"));
		const json_t *bytes = json_object_get(o, "bytes"), *v;
		size_t i;

		assert_non_null(type);
		if (json_object_get(o, "from") && figure(list, from, to, "sent_bytes") >= 0) {
			if (!strcmp(type, "total"))
				*total = figure(list, from, to, "sent_bytes");
			if (!strcmp(type, "pair"))
				json_array_foreach (bytes, i, v)
					*bins += json_integer_value(v);
		}
		json_decref(list);
		json_decref(o);
	}
}

static void check_file(const char *from, const char *to, json_int_t least)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	json_int_t bins, total;

	assert_int_equal(gci_file_read(in_scratch("stats"), 1 << 24, &text, &e), 0);
	add_up((char *)(uintptr_t)gci_buf_cstr(&text), from, to, &bins, &total);
	assert_true(total > least);
	/* All but what was sent in the last bin, and a goodbye. */
	assert_true(bins <= total && bins > total - total / 10);
	gci_buf_free(&text);
}

static void statistics(void **state)
{
	struct job j = {0};

	(void)state;
	make_text(in_scratch("two.grid"), grid);
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--quiet-prefix", "--stats",
		in_scratch("stats"), GRIDCOLL, "bench", "bcast", "-b", "64KiB,1MiB", "-i", "2",
		"-a", "farfirst,auto", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), " resent "));
	job_free(&j);
	check_file("kyoto", "tokyo", 3 * 2 * (65536 + 1048576));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_pairs_and_ranks),
		cmocka_unit_test(connections_with_losses_first),
		cmocka_unit_test(fits_any_screen),
		cmocka_unit_test(strange_replies_do_no_harm),
		TEST(a_running_job_is_asked),
		TEST(statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
