/* SPDX-License-Identifier: MIT
 * gridcoll cp as its users run it, when all goes well: every copy is compared with its source. */
#include "collectives/coll.h"
#include "tests/tools/jobs.h"
#include "tools/cp/cp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_KIB (256 << 10) /* the promise, per rank */
#define SOURCE_KIB (48 << 10)  /* of rank 0, which reads no further ahead than links need */

static const char *self; /* this program, as the command that measures another */

/* To out/%r/ on `n` ranks, quietly: exit 0 and no word. */
static void cp(const char *n, const char *source)
{
	RUN(0, "", "-n", n, GRIDCOLL, "cp", "-q", source, in_scratch("out/%%r/"));
}

static void sizes(void **state)
{
	static const uint64_t of[] = {0, 1, 2, 4095, 65536, GCT_CP_CHUNK_NBYTES - GCT_CP_TRAILER,
		GCT_CP_CHUNK_NBYTES - 1, GCT_CP_CHUNK_NBYTES, GCT_CP_CHUNK_NBYTES + 1,
		(16 << 20) - 1, 16 << 20, (16 << 20) + 1,
		(uint64_t)GCT_CP_CHUNK_NBYTES * GCT_CP_CHUNKS * 2 + 5};
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < sizeof(of) / sizeof(*of); i++) {
		make_file(in_scratch("a"), of[i], i);
		cp("3", in_scratch("a"));
		for (r = 1; r < 3; r++)
			assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
		assert_false(is_there(in_scratch("out/0")));
	}
}

/* Beyond what 32 bits count; the holes' zeros do go over the network. */
static void sparse_file_stays_sparse(void **state)
{
	const off_t size = TEST_SANITIZED ? (off_t)100 << 20 : ((off_t)4 << 30) + 12345;
	struct stat st;
	int fd;

	(void)state;
	make_file(in_scratch("a"), 100000, 1);
	fd = open(in_scratch("a"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "in the middle", 13, size / 4 * 3), 13);
	assert_int_equal(pwrite(fd, "at the end", 10, size), 10);
	close(fd);
	cp("2", in_scratch("a"));
	assert_same_files(in_scratch("a"), in_scratch("out/1/a"));
	st = look(in_scratch("out/1/a"));
	assert_true(st.st_size == size + 10);
	assert_true(st.st_blocks * 512 < 4 << 20);
}

static void thousand_files(void **state)
{
	char command[2048];
	int i, r;

	(void)state;
	make_dir(in_scratch("in"));
	for (i = 0; i < 1000; i++)
		make_file(in_scratch("in/%d", i), (uint64_t)i * 7 % 5000, (uint64_t)i);
	snprintf(command, sizeof(command), "exec %s cp -q %s/* '%s'", GRIDCOLL, in_scratch("in"),
		in_scratch("out/%%r"));
	RUN(0, "", "-n", "3", "sh", "-c", command);
	for (r = 1; r < 3; r++) {
		assert_int_equal(entries(in_scratch("out/%d", r)), 1000);
		for (i = 0; i < 1000; i++)
			assert_same_files(in_scratch("in/%d", i), in_scratch("out/%d/%d", r, i));
	}
}

static void large_and_small_together(void **state)
{
	static const char *const names[] = {"x", "y", "z"};
	size_t i;

	(void)state;
	make_file(in_scratch("x"), 0, 1);
	make_file(in_scratch("y"), 3 * GCT_CP_CHUNK_NBYTES + 11, 2);
	make_file(in_scratch("z"), 3, 3);
	RUN(0, "", "-n", "4", GRIDCOLL, "cp", "-q", in_scratch("x"), in_scratch("y"),
		in_scratch("z"), in_scratch("out/deep/%%r"));
	for (i = 0; i < 3; i++)
		assert_same_files(
			in_scratch("%s", names[i]), in_scratch("out/deep/3/%s", names[i]));
}

/* Whatever the umask says of new files. */
static void mode_and_time(void **state)
{
	static const mode_t modes[] = {0, 0400, 0444, 0644, 0755, 0777, 04755};
	const struct timespec times[2] = {
		{.tv_sec = 5}, {.tv_sec = 1234567890, .tv_nsec = 987654321}};
	mode_t was = umask(077);
	struct stat st;
	size_t i;

	(void)state;
	make_file(in_scratch("a"), 1000, 1);
	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		chmod(in_scratch("a"), modes[i]);
		assert_int_equal(utimensat(AT_FDCWD, in_scratch("a"), times, 0), 0);
		if (geteuid() && !(modes[i] & 0400))
			continue;
		cp("2", in_scratch("a"));
		st = look(in_scratch("out/1/a"));
		assert_int_equal(st.st_mode & 07777, modes[i] & 0777);
		assert_int_equal(st.st_mtim.tv_sec, times[1].tv_sec);
		assert_int_equal(st.st_mtim.tv_nsec, times[1].tv_nsec);
		st = look(in_scratch("out/1"));
		assert_int_equal(st.st_mode & 0777, 0700);
	}
	umask(was);
}

static void names_of_destinations(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 10, 1);
	make_dir(in_scratch("there"));
	RUN(0, "", "-n", "2", GRIDCOLL, "cp", "-q", in_scratch("a"), in_scratch("%%h-%%r-%%%%-x"));
	assert_same_files(in_scratch("a"), in_scratch("local1-1-%%-x"));
	/* A directory that is there, with and without its slash. */
	RUN(0, "", "-n", "2", GRIDCOLL, "cp", "-q", in_scratch("a"), in_scratch("there"));
	assert_same_files(in_scratch("a"), in_scratch("there/a"));
	unlink(in_scratch("there/a"));
	RUN(0, "", "-n", "2", GRIDCOLL, "cp", "-q", in_scratch("a"), in_scratch("there///"));
	assert_same_files(in_scratch("a"), in_scratch("there/a"));
	/* One by a symbolic link. */
	unlink(in_scratch("there/a"));
	assert_int_equal(symlink("there", in_scratch("link")), 0);
	RUN(0, "", "-n", "2", GRIDCOLL, "cp", "-q", in_scratch("a"), in_scratch("link"));
	assert_same_files(in_scratch("a"), in_scratch("there/a"));
	/* Below the working directory. */
	assert_int_equal(chdir(in_scratch("there")), 0);
	RUN(0, "", "-n", "2", GRIDCOLL, "cp", "-q", "../a", "bare");
	assert_same_files(in_scratch("a"), in_scratch("there/bare"));
	RUN(0, "", "-n", "2", GRIDCOLL, "cp", "-q", "--", "../a", "-dash");
	assert_same_files(in_scratch("a"), in_scratch("there/-dash"));
	assert_int_equal(chdir("/"), 0);
}

static void odd_names(void **state)
{
	static const char *const names[] = {" ", "a b", "new\nline", "\xff\xfe", "\"quote'", "%r",
		"-q", "\\", "*", "\x1b[31m", "\xc3\xa9t\xc3\xa9"};
	char longest[256];
	size_t i;

	(void)state;
	make_dir(in_scratch("in"));
	memset(longest, 'n', sizeof(longest));
	longest[255] = '\0';
	for (i = 0; i <= sizeof(names) / sizeof(*names); i++) {
		const char *name = i < sizeof(names) / sizeof(*names) ? names[i] : longest;

		make_file(in_scratch("in/%s", name), 100, i);
		cp("2", in_scratch("in/%s", name));
		assert_same_files(in_scratch("in/%s", name), in_scratch("out/1/%s", name));
	}
	assert_int_equal(entries(in_scratch("out/1")), i);
}

/* The old file stays whole for who has it open; the new one comes at once. */
static void overwriting(void **state)
{
	char text[32] = "";
	struct stat before, after;
	int fd;

	(void)state;
	make_file(in_scratch("a"), 1 << 20, 1);
	make_dir(in_scratch("out"));
	make_dir(in_scratch("out/1"));
	make_text(in_scratch("out/1/a"), "the old one");
	before = look(in_scratch("out/1/a"));
	fd = open(in_scratch("out/1/a"), O_RDONLY | O_CLOEXEC);
	cp("2", in_scratch("a"));
	assert_same_files(in_scratch("a"), in_scratch("out/1/a"));
	after = look(in_scratch("out/1/a"));
	assert_true(before.st_ino != after.st_ino);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 11);
	assert_string_equal(text, "the old one");
	close(fd);
}

/* A copy onto the source is refused, and leaves it alone. */
static void refuses_itself(
	const char *option, const char *source, const char *dest, const char *same)
{
	const struct stat before = look(in_scratch("a"));
	struct stat after;
	char message[1024];

	snprintf(message, sizeof(message),
		"gridcoll-run: rank 0 on local0 failed: %s and %s of rank 1 on local1 are the same "
		"file\n",
		source, same);
	RUN(2, message, "-n", "3", GRIDCOLL, "cp", option, source, dest);
	after = look(in_scratch("a"));
	assert_true(before.st_ino == after.st_ino && before.st_nlink == after.st_nlink);
	assert_same_files(in_scratch("a"), in_scratch("was"));
}

static void onto_itself(void **state)
{
	char a[100], link[100], hard[100];

	(void)state;
	snprintf(a, sizeof(a), "%s", in_scratch("a"));
	snprintf(hard, sizeof(hard), "%s", in_scratch("hard"));
	snprintf(link, sizeof(link), "%s", in_scratch("to/link"));
	make_file(a, 3 << 20, 1);
	assert_int_equal(run_shell("cp -p %s %s", a, in_scratch("was")), 0);
	make_dir(in_scratch("to"));
	assert_int_equal(symlink("../a", link), 0);
	assert_int_equal(symlink(".", in_scratch("here")), 0);
	assert_int_equal(run_shell("ln %s %s", a, hard), 0);
	refuses_itself("-q", a, a, a);
	refuses_itself("--resume", a, in_scratch("."), in_scratch("./a"));
	refuses_itself("--scatter", a, in_scratch("here/"), in_scratch("here/a"));
	refuses_itself("-r", a, in_scratch("to/../a"), in_scratch("to/../a"));
	refuses_itself("-q", a, link, link);
	refuses_itself("-q", link, a, a);
	refuses_itself("-q", a, hard, hard);
	assert_int_equal(entries(in_scratch("to")), 1);
	RUN(2,
		"gridcoll-run: rank 0 on local0 failed: a and a of rank 1 on local1 are the same "
		"file\n",
		"-n", "2", "--chdir", in_scratch("."), GRIDCOLL, "cp", "a", "a");
}

static void one_rank(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 1 << 20, 1);
	RUN_LINE(0, "[0] nothing copied: the job's one rank has the file (expected ",
		"or --include-source)", "-n", "1", GRIDCOLL, "cp", in_scratch("a"),
		in_scratch("out/"));
	assert_false(is_there(in_scratch("out")));
	RUN(0, "", "-n", "1", GRIDCOLL, "cp", "-0q", in_scratch("a"), in_scratch("out/"));
	assert_same_files(in_scratch("a"), in_scratch("out/a"));
}

static void source_included(void **state)
{
	int r;

	(void)state;
	make_file(in_scratch("a"), (20 << 20) + 1, 1);
	RUN(0, "", "-n", "3", GRIDCOLL, "cp", "-q", "--sync", "--include-source", in_scratch("a"),
		in_scratch("out/%%r/"));
	for (r = 0; r < 3; r++)
		assert_same_files(in_scratch("a"), in_scratch("out/%d/a", r));
}

static void summary(void **state)
{
	(void)state;
	make_file(in_scratch("a"), 1500, 1);
	make_file(in_scratch("b"), 500, 1);
	RUN_LINE(0, "[0] copied 2.00 kB in 2 files from local0 to 3 ranks in ",
		"/s each: 6 copies verified", "-n", "4", GRIDCOLL, "cp", in_scratch("a"),
		in_scratch("b"), in_scratch("out/%%r"));
}

static void with_algorithm(const char *algorithm, int in_clusters)
{
	const char *a = in_scratch("a"), *out = in_scratch("out/%%r/");
	int r;

	if (in_clusters)
		RUN(0, "", "--grid", two_clusters(), "--per-host", "3", GRIDCOLL, "cp", "-qa",
			algorithm, a, out);
	else
		RUN(0, "", "-n", "5", GRIDCOLL, "cp", "-q", "-a", algorithm, a, out);
	for (r = 1; r < (in_clusters ? 6 : 5); r++) {
		assert_same_files(a, in_scratch("out/%d/a", r));
		unlink(in_scratch("out/%d/a", r));
	}
}

static void every_algorithm(void **state)
{
	const struct gci_algorithm *a;
	char text[100];
	int n = 0;

	(void)state;
	make_file(in_scratch("a"), 2 * GCT_CP_CHUNK_NBYTES + 12345, 1);
	gci_each_algorithm (a) {
		if (a->kind != GCI_BCAST)
			continue;
		if (!TEST_SANITIZED)
			with_algorithm(a->name, 0);
		with_algorithm(a->name, 1);
		if ((a->traits & GCI_USES_SENDERS)) {
			snprintf(text, sizeof(text), "%s:senders=2", a->name);
			with_algorithm(text, 1);
		}
		n++;
	}
	assert_true(n >= 7);
}

/* Prints the largest memory that a command had. */
static int measure(char **argv)
{
	struct rusage usage;
	pid_t pid = fork();
	int status;

	if (!pid) {
		execv(argv[0], argv);
		_exit(99);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 98;
	printf("peak %ld\n", usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

static void memory(void **state)
{
	long least = MEMORY_KIB;
	struct job j = {0};
	const char *p;
	int n = 0;

	(void)state;
	if (TEST_SANITIZED)
		skip(); /* its memory is not the program's */
	make_file(in_scratch("a"), 1, 1);
	assert_int_equal(truncate(in_scratch("a"), (off_t)2 << 30), 0);
	job_start(&j, NULL, "-n", "3", self, "measure", GRIDCOLL, "cp", "-q", in_scratch("a"),
		in_scratch("out/%%r/"), NULL);
	assert_int_equal(job_wait(&j), 0);
	for (p = job_out(&j); (p = strstr(p, "peak ")); p += 5) {
		long kib = atol(p + 5);

		print_message("peak %ld KiB\n", kib);
		assert_in_range(kib, 1, MEMORY_KIB);
		least = kib < least ? kib : least;
		n++;
	}
	assert_int_equal(n, 3);
	assert_true(least <= SOURCE_KIB);
	job_free(&j);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(sizes),
		TEST(sparse_file_stays_sparse),
		TEST(thousand_files),
		TEST(large_and_small_together),
		TEST(mode_and_time),
		TEST(names_of_destinations),
		TEST(odd_names),
		TEST(overwriting),
		TEST(onto_itself),
		TEST(one_rank),
		TEST(source_included),
		TEST(summary),
		TEST(every_algorithm),
		TEST(memory),
	};

	self = argv[0];
	if (argc > 2 && !strcmp(argv[1], "measure"))
		return measure(argv + 2);
	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
