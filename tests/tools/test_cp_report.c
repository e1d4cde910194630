/* SPDX-License-Identifier: MIT
 * What gridcoll cp tells, and how fast it may go: --json, --manifest, --bwlimit, the progress bar. */
#include "base/clock.h"
#include "tests/tools/jobs.h"
#include "tests/tools/trees.h"
#include "tools/cp/cp.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *load(const char *path)
{
	json_error_t why;
	json_t *o = json_load_file(path, 0, &why);

	if (!o)
		fail_msg("%s:%d: %s", path, why.line, why.text);
	return o;
}

static json_int_t whole(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v))
		fail_msg("%s is not a number", key);
	return json_integer_value(v);
}

static const char *word(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v))
		fail_msg("%s is not a text", key);
	return json_string_value(v);
}

/* The number of things in the list `key`. */
static size_t length(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_array(v))
		fail_msg("%s is not a list", key);
	return json_array_size(v);
}

static const json_t *item(const json_t *o, const char *key, size_t i)
{
	return json_array_get(json_object_get(o, key), i);
}

static void a_report(void **state)
{
	const json_t *one;
	struct job j = {0};
	json_t *o;

	(void)state;
	make_tree(in_scratch("t"));
	assert_int_equal(mkfifo(in_scratch("t/p"), 0600), 0);
	make_file(in_scratch("t/\xff"), 3, 1);
	job_start(&j, NULL, "--grid", two_clusters(), "--per-host", "2", GRIDCOLL, "cp", "-qr",
		"--json", in_scratch("json"), "--manifest", in_scratch("sums"), in_scratch("t"),
		in_scratch("out/%%r"), NULL);
	assert_int_equal(job_wait(&j), 23);
	job_free(&j);
	o = load(in_scratch("json"));
	assert_int_equal(whole(o, "version"), 1);
	assert_int_equal(whole(o, "files"), 25);
	assert_int_equal(whole(o, "directories"), 6);
	assert_int_equal(whole(o, "links"), 4);
	assert_int_equal(whole(o, "skipped"), 1);
	assert_int_equal(whole(o, "receivers"), 3);
	assert_int_equal(whole(o, "copies"), 75);
	assert_int_equal(whole(o, "resumed_bytes"), 0);
	assert_true(whole(o, "duration_ns") > 0 && whole(o, "bytes_per_s") > 0);
	assert_int_equal(length(o, "left_out"), 0);
	assert_int_equal(length(o, "ranks"), 3);
	assert_int_equal(length(o, "clusters"), 2);
	one = item(o, "clusters", 1);
	assert_string_equal(word(one, "name"), "far");
	assert_int_equal(whole(one, "receivers"), 2);
	assert_true(whole(one, "duration_ns") <= whole(o, "duration_ns"));
	assert_string_equal(word(json_object_get(one, "slowest"), "host"), "127.0.0.2");
	assert_non_null(json_object_get(o, "slowest"));
	assert_int_equal(length(o, "checksums"), 25);
	one = item(o, "checksums", 0);
	assert_string_equal(word(one, "path"), "t/top");
	assert_int_equal(whole(one, "bytes"), 70000);
	assert_int_equal(strlen(word(one, "crc32c")), 8);
	assert_int_equal(strlen(word(one, "sha256")), 64);
	assert_null(json_object_get(one, "path_hex"));
	assert_string_equal(word(item(o, "checksums", 1), "path"), "t/?");
	assert_string_equal(word(item(o, "checksums", 1), "path_hex"), "742fff");
	json_decref(o);
	if (run_shell("command -v sha256sum >/dev/null"))
		skip();
	assert_int_equal(run_shell("cd %s && sha256sum --status -c %s", in_scratch("out/3"),
				 in_scratch("sums")),
		0);
	flip(in_scratch("out/3/t/a/deep/9"), 5);
	assert_int_not_equal(run_shell("cd %s && sha256sum --status -c %s", in_scratch("out/3"),
				     in_scratch("sums")),
		0);
}

/* What was not read for the stream is read for its sums; who is missing is named. */
static void resumed_and_left_out(void **state)
{
	struct job j = {0};
	const json_t *one;
	json_t *o;

	(void)state;
	make_file(in_scratch("a"), 5 << 20, 1);
	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-q", "--manifest", in_scratch("first"),
		in_scratch("a"), in_scratch("out/%%r/"));
	make_text(in_scratch("out/3"), "in the way");
	job_start(&j, NULL, "-n", "4", "--survive", GRIDCOLL, "cp", "-q", "--resume",
		"--keep-going", "--json", in_scratch("json"), "--manifest", in_scratch("second"),
		in_scratch("a"), in_scratch("out/%%r/"), NULL);
	assert_int_equal(job_wait(&j), 23);
	job_free(&j);
	assert_int_equal(run_shell("cmp %s %s", in_scratch("first"), in_scratch("second")), 0);
	o = load(in_scratch("json"));
	assert_int_equal(whole(o, "receivers"), 2);
	assert_true(whole(o, "resumed_bytes") >= 10 << 20);
	assert_int_equal(length(o, "left_out"), 1);
	one = item(o, "left_out", 0);
	assert_int_equal(whole(one, "rank"), 3);
	assert_string_equal(word(one, "host"), "local3");
	json_decref(o);
}

/* Before anything is sent, not after an hour's work. */
static void a_report_that_cannot_be_written(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 5, 1);
	RUN_LINE(1, "gridcoll-run: rank 0 on local0 failed: ", "No such file or directory", "-n",
		"2", GRIDCOLL, "cp", "--json", in_scratch("none/json"), in_scratch("a"),
		in_scratch("out/"));
	assert_false(is_there(in_scratch("out/a")));
}

static uint64_t time_of_copy(const char *limit)
{
	uint64_t begin = gci_now_ns();

	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-q", "--bwlimit", limit, in_scratch("a"),
		in_scratch("out/%%r/"));
	return gci_now_ns() - begin;
}

/* It takes what the limit says, and a hundred times the limit takes less. */
static void a_limit(void **state)
{
	uint64_t slow;

	(void)state;
	make_file(in_scratch("a"), 2 << 20, 1);
	slow = time_of_copy("8Mbit");
	print_message("%llu ms\n", (unsigned long long)(slow / GCI_NS_PER_MS));
	assert_true(slow >= (uint64_t)(2 << 20) * GCI_NS_PER_S / 1000000);
	assert_true(time_of_copy("100MB") < slow);
	assert_same_files(in_scratch("a"), in_scratch("out/2/a"));
}

/* The bar's last line before the end, as the terminal shows it. */
static void the_bar(void **state)
{
	char command[1024];
	struct job j = {0};

	(void)state;
	make_file(in_scratch("a"), 4 << 20, 1);
	snprintf(command, sizeof(command), "GRIDCOLL_PROGRESS=1 exec %s cp --bwlimit 4MB %s '%s'",
		GRIDCOLL, in_scratch("a"), in_scratch("out/%%r/"));
	job_start(&j, NULL, "--grid", two_clusters(), "--per-host", "2", "--quiet-prefix", "sh",
		"-c", command, NULL);
	assert_int_equal(job_wait(&j), 0);
	/* The slowest cluster, with its last host, and the other. */
	if (!strstr(job_err(&j), " left  far ") && !strstr(job_err(&j), " left  near "))
		fail_msg("%s", job_err(&j));
	assert_non_null(strstr(job_err(&j), "B/s (127.0.0."));
	assert_same_files(in_scratch("a"), in_scratch("out/3/a"));
	job_free(&j);
}

/* A report in the place of the file that is copied: that stays what it was. */
static void a_source_is_no_report(void **state)
{
	static const char *const options[] = {"--json", "--manifest"};
	char message[600];
	size_t i;

	(void)state;
	make_text(in_scratch("kept"), "what is to be copied");
	for (i = 0; i < 2; i++) {
		snprintf(message, sizeof(message),
			"gridcoll-run: rank 0 on local0 failed: gridcoll cp: %s %s, expected a "
			"file that "
			"is no SOURCE\n",
			options[i], in_scratch("kept"));
		RUN(2, message, "-n", "2", GRIDCOLL, "cp", "-q", options[i], in_scratch("kept"),
			in_scratch("kept"), in_scratch("copy-%%r"));
	}
	assert_text(in_scratch("kept"), "what is to be copied");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_report),
		TEST(resumed_and_left_out),
		TEST(a_report_that_cannot_be_written),
		TEST(a_limit),
		TEST(the_bar),
		TEST(a_source_is_no_report),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
