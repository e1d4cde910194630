/* SPDX-License-Identifier: MIT
 * Wrong arguments of the commands that run as ranks: told once, whatever the number of ranks. */
#include "collectives/coll.h"
#include "tests/tools/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WHO "gridcoll-run: rank 0 on local0 failed: "

static const struct {
	const char *argv[7];
	const char *message;
} cases[] = {
	{{"cp"}, "gridcoll cp: expected SOURCE... DEST, see gridcoll cp --help"},
	{{"cp", "a"}, "gridcoll cp: expected SOURCE... DEST, see gridcoll cp --help"},
	{{"cp", "a", ""}, "gridcoll cp: DEST is empty, expected a path"},
	{{"cp", "a", "", "b"}, "gridcoll cp: a SOURCE is empty, expected a path"},
	{{"cp", "--scatter", "a", "b", "c"}, "gridcoll cp: --scatter with 2 sources, expected one"},
	{{"cp", "--scatter", "-r", "a", "b"},
		"gridcoll cp: --scatter, expected no --recursive with it"},
	{{"cp", "--gather", "--scatter", "a", "b"},
		"gridcoll cp: --scatter, expected no --gather with it"},
	{{"cp", "--gather", "a%x", "b"}, "gridcoll cp: path \"a%x\": expected %r (rank), "
					 "%h (host) or %% after %"},
	{{"cp", "--bwlimit", "5", "a", "b"}, "gridcoll cp: --bwlimit \"5\", "
					     "expected a rate such as 100Mbit, "
					     "or bytes per second such as 12MB"},
	{{"cp", "a", "/b/%x"},
		"gridcoll cp: path \"/b/%x\": expected %r (rank), %h (host) or %% after %"},
	{{"cp", "--bogus", "a", "b"},
		"gridcoll cp: unknown option --bogus, see gridcoll cp --help"},
	{{"cp", "-qZ", "a", "b"}, "gridcoll cp: unknown option -Z, see gridcoll cp --help"},
	{{"cp", "--streams"},
		"gridcoll cp: a value is missing after --streams, see gridcoll cp --help"},
	{{"cp", "a", "b", "-s"},
		"gridcoll cp: a value is missing after -s, see gridcoll cp --help"},
	{{"cp", "--quiet=yes", "a", "b"},
		"gridcoll cp: no value is expected after --quiet, see gridcoll cp --help"},
	{{"cp", "-s", "65", "a", "b"},
		"gridcoll cp: --streams \"65\", expected a number from 1 to 64"},
	{{"cp", "-a", "fastest", "a", "b"},
		"bcast: unknown algorithm \"fastest\", expected auto or one of: "},
	{{"cp", "-a", "chain:segment=big", "a", "b"},
		"bcast: \"segment=big\", expected a size such as "},
	{{"bench"}, "gridcoll bench: no operation, expected bcast, reduce, "
		    "allreduce, "},
	{{"bench", "bcst"}, "gridcoll bench: operation \"bcst\", expected bcast, reduce, "},
	{{"bench", "bcast", "--bytes", "1,x"},
		"gridcoll bench: --bytes \"x\", expected a size such as "},
	{{"bench", "bcast", "--bytes", ","},
		"gridcoll bench: --bytes \"\", expected a size such as "},
	{{"bench", "bcast", "--bytes", "1,,2"},
		"gridcoll bench: --bytes \"\", expected a size such as "},
	{{"bench", "bcast", "-a", "chain,"},
		"gridcoll bench: --algorithm \"\", expected names, auto or all"},
	{{"bench", "bcast", "-a", "chain:segment=64KiB:segment=1"},
		"bcast: \"segment=1\", expected segment once"},
	{{"bench", "allreduce", "barrier", "-f", "/f"},
		"gridcoll bench: --file \"/f\", expected bcast, which sends it, among the "
		"operations"},
	{{"cp", "--to", "k[1-99999999]", "a", "b"},
		"--to k[1-99999999]: more than 65536 hosts in \"k[1-99999999]\""},
	{{"bench", "bcast", "-i", "0"},
		"gridcoll bench: --iters \"0\", expected a number from 1 to 1000000"},
	{{"bench", "bcast", "-f", "/f", "-b", "1"},
		"gridcoll bench: --file \"/f\", expected no --bytes with it: it has a size"},
	{{"bench", "bcast", "-a", "auto,fastest"},
		"bcast: unknown algorithm \"fastest\", expected auto or one of: "},
	{{"bench", "scatter", "-r", "first"}, "gridcoll bench: --root \"first\", expected a rank"},
	{{"bench", "gather", "--root", "4"}, "--root \"4\", expected a rank from 0 to 1"},
	{{"cp", "-s", "0", "a", "b"},
		"gridcoll cp: --streams \"0\", expected a number from 1 to 64"},
	{{"cp", "--to", "1-0", "a", "b"}, "--to 1-0, expected the lower rank first"},
	{{"bench", "bcast", "-s", "none"},
		"gridcoll bench: --streams \"none\", expected a number from 1 to 64"},
	{{"bench", "bcast", "--socket-buffer", "1"},
		"socket_buffer: \"1\", expected auto or a size from 4KiB to 1GiB"},
	{{"probe", "-t", "0s"}, "gridcoll probe: --time \"0s\", expected a time such as "},
	{{"probe", "--bytes", "x"}, "gridcoll probe: --bytes \"x\", expected a size such as "},
	{{"probe", "-m", "1"},
		"gridcoll probe: --message \"1\", expected a size from 1KiB to 1GiB"},
	{{"probe", "-m", "2GiB"},
		"gridcoll probe: --message \"2GiB\", expected a size from 1KiB to 1GiB"},
	{{"probe", "-s", "65"}, "gridcoll probe: --streams \"65\", expected a number from 1 to 64"},
	{{"probe", "kyoto"}, "gridcoll probe: argument \"kyoto\", expected options only"},
	{{"probe", "--output"},
		"gridcoll probe: a value is missing after --output, see gridcoll probe --help"},
	{{"tune"}, "gridcoll tune: no operation, expected bcast, reduce, "},
	{{"tune", "bcast", "-b", "x"}, "gridcoll tune: --bytes \"x\", expected a size such as "},
	{{"tune", "bcast", "-i", "0"},
		"gridcoll tune: --iters \"0\", expected a number from 1 to 1000000"},
	{{"tune", "bcast", "-m", "101"},
		"gridcoll tune: --measure \"101\", expected a number from 0 to 100"},
	{{"tune", "bcast", "-S", "mgd,best"},
		"gridcoll tune: --search \"best\", expected simulate, exhaustive, "},
	{{"tune", "bcast", "-S", ","}, "gridcoll tune: --search \"\", expected simulate, "},
	{{"tune", "bcast", "-a", "chain,fastest"},
		"bcast: unknown algorithm \"fastest\", expected auto or one of: "},
	{{"tune", "bcast", "-r", "4"}, "--root \"4\", expected a rank from 0 to 1"},
	{{"tune", "bcast", "-s", "0"},
		"gridcoll tune: --streams \"0\", expected a number from 1 to 64"},
	{{"tune", "bcast", "--compare", "-o", "x"},
		"gridcoll tune: --compare makes no table: not with --output"},
	{{"tune", "bcast", "-b", "1025TiB"},
		"gridcoll tune: --bytes \"1025TiB\", expected a size such as "},
	{{"tune", "bcast", "--least-segment", "0"},
		"gridcoll tune: --least-segment \"0\", expected a size such as "},
	{{"tune", "bcast", "--grid", "g"},
		"gridcoll tune: --grid is for --simulated: a job has a grid"},
	{{"tune", "bcast", "-R", "r"},
		"gridcoll tune: operation \"bcast\": those of --recorded are tuned"},
	{{"tune", "-R", "/none"}, "cannot read /none: No such file or directory"},
	{{"tune", "bcast", "-q"}, "gridcoll tune: unknown option -q, see gridcoll tune --help"},
	{{"bench", "bcast", "-b", "1,2", "--trace", "x"},
		"gridcoll bench: --trace \"x\", expected one operation, one size and one "},
	{{"bench", "-W"}, "gridcoll bench: unknown option -W, see gridcoll bench --help"},
};

static void told_once(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i += TEST_SANITIZED ? 3 : 1) {
		const char *argv[12] = {"-n", "2", GRIDCOLL}, *said;
		struct job j = {0};

		for (k = 0; cases[i].argv[k]; k++)
			argv[3 + k] = cases[i].argv[k];
		job_startv(&j, NULL, argv);
		assert_int_equal(job_wait(&j), 2);
		/* Both ranks find it, and either may be the first. */
		assert_one_line(job_err(&j), "gridcoll-run: rank ", "");
		said = strstr(job_err(&j), " failed: ");
		assert_non_null(said);
		assert_one_line(said + strlen(" failed: "), cases[i].message, "");
		job_free(&j);
	}
}

/* A report is none of the job's lines. */
static void no_file_called_dash(void **state)
{
	static const char *const options[][2] = {{"cp", "--json"}, {"cp", "--manifest"},
		{"bench", "--json"}, {"probe", "--output"}, {"tune", "--output"}};
	static const char why[] =
		"cannot write -, expected a file: /dev/stdout is standard output, "
		"./- is called so";
	size_t i;

	(void)state;
	make_file(in_scratch("a"), 5, 1);
	for (i = 0; i < sizeof(options) / sizeof(*options); i++) {
		int is_cp = !strcmp(options[i][0], "cp"),
		    is_probe = !strcmp(options[i][0], "probe");

		RUN_LINE(2, "gridcoll-run: rank 0 on local0 failed: ", why, "-n", "2", "--chdir",
			in_scratch("."), GRIDCOLL, options[i][0], options[i][1], "-",
			is_probe ? NULL
			: is_cp  ? "a"
				 : "barrier",
			is_cp ? "out/" : NULL);
	}
	RUN_LINE(2, "gridcoll-run: --stats: ", why, "--stats", "-", "true");
	assert_int_equal(entries(in_scratch(".")), 1);
}

static void bench_files(void **state)
{
	char message[600];

	(void)state;
	snprintf(message, sizeof(message), WHO "cannot read %s: No such file or directory\n",
		in_scratch("none"));
	RUN(1, message, "-n", "3", GRIDCOLL, "bench", "bcast", "-f", in_scratch("none"));
	snprintf(message, sizeof(message), WHO "%s is no regular file, expected one\n",
		in_scratch("."));
	RUN(1, message, "-n", "3", GRIDCOLL, "bench", "bcast", "-f", in_scratch("."));
	assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
	snprintf(message, sizeof(message), WHO "%s is no regular file, expected one\n",
		in_scratch("fifo"));
	RUN(1, message, "-n", "3", GRIDCOLL, "bench", "bcast", "-f", in_scratch("fifo"));
	snprintf(message, sizeof(message), WHO "cannot write %s: No such file or directory\n",
		in_scratch("none/x"));
	RUN(1, message, "-n", "3", GRIDCOLL, "bench", "bcast", "-j", in_scratch("none/x"));
	snprintf(message, sizeof(message), WHO "--report %s: No such file or directory\n",
		in_scratch("none/x"));
	RUN(1, message, "-n", "3", GRIDCOLL, "bench", "bcast", "--report", in_scratch("none/x"));
	make_text(in_scratch("file"), "x");
	snprintf(message, sizeof(message), WHO "cannot write %s: Not a directory\n",
		in_scratch("file/report.html"));
	RUN(1, message, "-n", "3", GRIDCOLL, "bench", "bcast", "--report", in_scratch("file"));
}

/* Help is asked for: it goes to standard output, once, and all is well. */
static void help(void **state)
{
	static const char *const tools[] = {"cp", "bench", "probe", "tune"};
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct job j = {0};
		char begin[64];
		const char *out;

		job_start(
			&j, NULL, "-n", "3", "--quiet-prefix", GRIDCOLL, tools[i], "--help", NULL);
		assert_int_equal(job_wait(&j), 0);
		assert_string_equal(job_err(&j), "");
		snprintf(begin, sizeof(begin), "usage: gridcoll-run ... gridcoll %s ", tools[i]);
		out = job_out(&j);
		assert_int_equal(strncmp(out, begin, strlen(begin)), 0);
		assert_null(strstr(out + 1, "usage: "));
		job_free(&j);
	}
}

/* `command` by the shell: exit status, and its standard error or output in `text`. */
static int shell(const char *command, char *text, size_t size)
{
	FILE *f = popen(command, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	return WEXITSTATUS(pclose(f));
}

static void without_launcher(void **state)
{
	char command[600], text[1000];

	(void)state;
	snprintf(command, sizeof(command), "%s cp a b 2>&1 >/dev/null", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 2);
	assert_string_equal(
		text, "gridcoll cp: not started by gridcoll-run, see gridcoll cp --help\n");
	snprintf(command, sizeof(command), "%s bench bcast 2>&1 >/dev/null", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 2);
	assert_string_equal(
		text, "gridcoll bench: not started by gridcoll-run, see gridcoll bench --help\n");
	snprintf(command, sizeof(command), "%s cp --nonsense 2>&1 >/dev/null", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 2);
	assert_string_equal(
		text, "gridcoll cp: unknown option --nonsense, see gridcoll cp --help\n");
	snprintf(command, sizeof(command), "%s bench --list 2>&1 >/dev/full", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 1);
	assert_string_equal(text, "gridcoll: standard output: No space left on device\n");
	snprintf(command, sizeof(command), "%s cp --help 2>/dev/null", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 0);
	assert_int_equal(strncmp(text, "usage: ", 7), 0);
}

/* Both programs tell the same version, what is built in, and what is not. */
static void version(void **state)
{
	static const char *const features[] = {"bpf", "io_uring"};
	char command[600], text[1000], other[1000];
	size_t i;

	(void)state;
	snprintf(command, sizeof(command), "%s --version 2>&1", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 0);
	snprintf(command, sizeof(command), "%s --version 2>&1", env_path("GRIDCOLL_RUN"));
	assert_int_equal(shell(command, other, sizeof(other)), 0);
	assert_int_equal(strncmp(text, "gridcoll 0.", 11), 0);
	assert_int_equal(strncmp(other, "gridcoll-run 0.", 15), 0);
	assert_string_equal(text + strlen("gridcoll"), other + strlen("gridcoll-run"));
	assert_non_null(strstr(text, "\nbuilt with: isa-l "));
	assert_non_null(strstr(text, "\nschedules: "));
	for (i = 0; i < sizeof(features) / sizeof(*features); i++) {
		const char *at = strstr(text, features[i]);

		if (!at || (at[-1] != '+' && at[-1] != '-'))
			fail_msg("%s is neither in nor out: %s", features[i], text);
	}
	assert_int_equal(strstr(text, "+io_uring") != NULL, strstr(text, "liburing ") != NULL);
}

static void assert_fits(const char *program, const char *args)
{
	char command[600], text[20000], *line, *save;

	snprintf(command, sizeof(command), "%s %s 2>&1", program, args);
	assert_int_equal(shell(command, text, sizeof(text)), 0);
	assert_in_range(strlen(text), 30, sizeof(text) - 2);
	if (strstr(args, "--help") && !strstr(text, "\nexample: gridcoll"))
		fail_msg("%s: no example", command);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strlen(line) > 79)
			fail_msg("%s: %s", command, line);
}

/* Lists and help fit a terminal of 80 columns, and all help has an example: of each command that there
 * is, too. */
static void lines_fit(void **state)
{
	static const char *const texts[] = {"--help", "bench --list", "lab run --help",
		"lab up --help", "lab down --help", "lab doctor --help", "lab plan --help",
		"lab link --help", "shape run --help", "ctl status --help", "ctl budget --help"};
	char command[600], list[4000], args[64], *line, *save;
	size_t i, n = 0;

	(void)state;
	assert_fits(env_path("GRIDCOLL_RUN"), "--help");
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_fits(GRIDCOLL, texts[i]);
	snprintf(command, sizeof(command), "%s --help", GRIDCOLL);
	assert_int_equal(shell(command, list, sizeof(list)), 0);
	for (line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (*line != ' ')
			continue;
		snprintf(args, sizeof(args), "%.*s --help", (int)strcspn(line + 2, " "), line + 2);
		assert_fits(GRIDCOLL, args);
		n++;
	}
	assert_in_range(n, 3, 100);
}

/* The examples that need no other hosts do what they say, as they stand. */
static void examples_run(void **state)
{
	static const char *const commands[] = {
		"", "cp", "bench", "tune", "plan", "report", "doctor", "lab plan"};
	static const char script[] =
		"cd %s || exit 1; gridcoll=%s run=%s; PATH=${gridcoll%%/*}:${run%%/*}:$PATH; "
		"gridcoll %s --help | sed -n '/^example: /,$p' | sed -e 's/^example: //' "
		"-e '/gridcoll-run --grid/d' -e \"s|/tmp/|$PWD/|\" >example; "
		"grep -c gridcoll example >/dev/null && sh -e example 2>&1";
	static const char *const made[] = {
		"out/3/FILE", "bcast.svg", "my.table", "out/report.html"};
	char command[1200], text[40000];
	size_t i;

	(void)state;
	make_file(in_scratch("FILE"), 100000, 1);
	make_text(in_scratch("my.grid"), "[cluster kyoto]\nhosts = k[1-4]\nnic = 1Gbit\n"
					 "[cluster tokyo]\nhosts = t[1-4]\nnic = 1Gbit\n"
					 "[link kyoto tokyo]\nrate = 10Gbit\ndelay = 10ms\n");
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		int status;

		snprintf(command, sizeof(command), script, in_scratch("."), GRIDCOLL,
			env_path("GRIDCOLL_RUN"), commands[i]);
		status = shell(command, text, sizeof(text));
		/* doctor: there are problems */
		if (status && (status != 1 || strcmp(commands[i], "doctor")))
			fail_msg("%s: status %d, %s", commands[i], status, text);
	}
	for (i = 0; i < sizeof(made) / sizeof(*made); i++)
		assert_true(is_there(in_scratch("%s", made[i])));
}

/* How far they are is for terminals only; gridcoll-run says where there is one. */
static void progress(void **state)
{
	static const char *const jobs[][2] = {
		{"bench bcast -b 1MiB -i 2", "bcast of 1.05 MB by "},
		{"tune bcast -b 1MiB -i 2", "bcast of 1.05 MB by "},
		{"probe -t 100ms", "link local, after "},
	};
	static const char *const alone[] = {"tune --simulated", "plan"};
	char command[600], text[8000];
	const char *cut;
	size_t i, k;

	(void)state;
	unsetenv("COLUMNS");
	for (i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
		for (k = 0; k < 2; k++) {
			struct job j = {0};

			snprintf(command, sizeof(command), "%s exec %s %s",
				k ? "GRIDCOLL_PROGRESS=1" : "", GRIDCOLL, jobs[i][0]);
			job_start(&j, NULL, "-n", "2", "--quiet-prefix", "sh", "-c", command, NULL);
			if (job_wait(&j))
				fail_msg("%s: %s", command, job_err(&j));
			if (k && (!strstr(job_err(&j), jobs[i][1]) ||
					 !strstr(job_err(&j), " \r\033[K\r")))
				fail_msg("%s: %s", jobs[i][0], job_err(&j));
			if (!k)
				assert_null(strchr(job_err(&j), '\r'));
			job_free(&j);
		}
	make_text(in_scratch("g"), "[cluster a]\nhosts = a[1-8]\nnic = 1Gbit\n");
	for (i = 0; i < sizeof(alone) / sizeof(*alone); i++)
		for (k = 0; k < 2; k++) {
			snprintf(command, sizeof(command),
				"%s %s %s -g %s bcast -b 1MiB 2>&1 >/dev/null",
				k ? "GRIDCOLL_PROGRESS=1" : "", GRIDCOLL, alone[i],
				in_scratch("g"));
			assert_int_equal(shell(command, text, sizeof(text)), 0);
			assert_int_equal(strstr(text, "bcast: simulating ") != NULL, k);
			assert_int_equal(strstr(text, " \r\033[K\r") != NULL, k);
		}
	snprintf(command, sizeof(command),
		"COLUMNS=20 GRIDCOLL_PROGRESS=1 %s plan -g %s bcast -b 1MiB 2>&1 >/dev/null",
		GRIDCOLL, in_scratch("g"));
	assert_int_equal(shell(command, text, sizeof(text)), 0);
	cut = strstr(text, "bcast: simulating ");
	assert_non_null(cut);
	assert_int_equal(cut[19], '\r');
}

/* No word is lost, and none of them stands twice. */
static void the_list_is_whole(void **state)
{
	char command[600], text[20000];
	const struct gci_algorithm *a;
	int n = 0, lines = 0;
	char *line, *save;

	(void)state;
	snprintf(command, sizeof(command), "%s bench --list | tr -s ' \\n' ' '", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 0);
	gci_each_algorithm (a) {
		char want[300];

		snprintf(want, sizeof(want), "%s %s %s ", gci_kind_name(a->kind), a->name,
			a->summary);
		if (!strstr(text, want))
			fail_msg("not in --list: %s", want);
		n++;
	}
	snprintf(command, sizeof(command), "%s bench --list", GRIDCOLL);
	assert_int_equal(shell(command, text, sizeof(text)), 0);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		lines += *line != ' ';
	assert_int_equal(lines, n);
}

/* Nothing that was typed is passed over in silence. */
static void too_much(void **state)
{
	static const struct {
		const char *args, *message;
	} wrong[] = {
		{"lab plan grid x", "gridcoll lab: \"x\" is too much\nusage: gridcoll lab plan "},
		{"lab plan grid -- x",
			"gridcoll lab: \"x\" is too much\nusage: gridcoll lab plan "},
		{"lab up grid x", "gridcoll lab: \"x\" is too much\nusage: gridcoll lab up "},
		{"lab down x", "gridcoll lab: \"x\" is too much\nusage: gridcoll lab down\n"},
		{"lab down --mem 1GiB", "gridcoll lab: unknown option --mem, see gridcoll lab VERB "
					"--help\nusage: "},
		{"lab run --bogus grid", "gridcoll lab: unknown option --bogus, see "},
		{"lab run -Z grid", "gridcoll lab: unknown option -Z, see "},
		{"lab run --mem", "gridcoll lab: a value is missing after --mem, see "},
		{"ctl --bogus", "gridcoll ctl: unknown option --bogus, expected none (see "},
		{"lab plan --keep-awake grid", "gridcoll lab: unknown option --keep-awake, see "},
		{"lab doctor grid x",
			"gridcoll lab: \"x\" is too much\nusage: gridcoll lab doctor "},
		{"bench --list x",
			"gridcoll bench: \"x\" after --list, see gridcoll bench --help\n"},
		{"bench --list --bogus", "gridcoll bench: unknown option --bogus, see "},
	};
	char command[600], text[1000];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(command, sizeof(command), "%s %s 2>&1", GRIDCOLL, wrong[i].args);
		assert_int_equal(shell(command, text, sizeof(text)), 2);
		assert_int_equal(strncmp(text, wrong[i].message, strlen(wrong[i].message)), 0);
	}
}

/* A rank that has what no other has still ends all of them. */
static void one_rank_only(void **state)
{
	char command[600];
	struct job j = {0};

	(void)state;
	snprintf(command, sizeof(command),
		"[ $GRIDCOLL_RANK = 2 ] && x=--nonsense; exec %s cp $x /etc/passwd %s", GRIDCOLL,
		in_scratch("out/%%r/"));
	job_start(&j, NULL, "-n", "4", "sh", "-c", command, NULL);
	assert_in_range(job_wait(&j), 1, 2); /* whoever notices first */
	/* The rank's own word, or the others' of what it calls instead. */
	assert_one_line(job_err(&j), "gridcoll-run: ", "");
	assert_non_null(strstr(job_err(&j), "rank 2 "));
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_once),
		TEST(no_file_called_dash),
		TEST(bench_files),
		cmocka_unit_test(help),
		cmocka_unit_test(without_launcher),
		cmocka_unit_test(version),
		cmocka_unit_test(lines_fit),
		TEST(examples_run),
		TEST(progress),
		cmocka_unit_test(the_list_is_whole),
		cmocka_unit_test(too_much),
		TEST(one_rank_only),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
