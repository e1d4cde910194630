/* SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/units.h"
#include "tests/test.h"

#include <string.h>

struct settings {
	int json;
	const char *file;
	uint64_t iterations, nbytes, ns, bps;
	uint32_t ranks;
	unsigned words;
};

static int take_words(void *settings, char *list, struct gci_error *e)
{
	struct settings *s = settings;

	while (strsep(&list, ","))
		s->words++;
	return s->words < 4 ? 0 : gci_option_wrong(e, "words", "...", "three at most");
}

static const struct gci_option options[] = {
	{'i', "iterations", "N", "how often", GCI_OPTION_NUMBER(struct settings, iterations, 1, 9)},
	{'j', "json", NULL, "for programs", GCI_OPTION_FLAG(struct settings, json)},
	{'f', "file", "FILE",
		"one that has a name which is of interest to nobody, and whose explanation takes "
		"more than a line",
		GCI_OPTION_TEXT(struct settings, file)},
	{0, "bytes", "B", "a size", GCI_OPTION_BYTES(struct settings, nbytes, 1, 1 << 20)},
	{0, "time", "T", "a time", GCI_OPTION_TIME(struct settings, ns, 1, UINT64_MAX),
		.expected = "one that is not nothing"},
	{0, "rate", "R", "a rate", GCI_OPTION_RATE(struct settings, bps, 0, UINT64_MAX)},
	{'n', "ranks", "N", "so many", GCI_OPTION_NUMBER(struct settings, ranks, 0, 100)},
	{0, "words", "a-list-of-words-with-commas-between", "up to three", .take = take_words},
	{0, "own", NULL, NULL, GCI_OPTION_FLAG(struct settings, json)}, {0}};

/* `line` is cut up at blanks; "_" stands for nothing. */
static int read_line(const char *line, struct settings *s, char *argv[24], char *text, size_t size,
	enum gci_options_order order, struct gci_error *e)
{
	static char program[] = "x", nothing[] = "";
	char *save, *word;
	int argc = 1;

	memset(s, 0, sizeof(*s));
	snprintf(text, size, "%s", line);
	argv[0] = program;
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(word, "_") ? word : nothing;
	argv[argc] = NULL;
	return gci_options_read(options, s, argc, argv, order, "x", e);
}

static void fields_are_filled(void **state)
{
	char text[200], *argv[24];
	struct gci_error e = {0};
	struct settings s;
	int n;

	(void)state;
	n = read_line("a -i 3 --json b --bytes=4KiB --time 10ms --rate 1Gbit -n7 --words x,y -f -",
		&s, argv, text, sizeof(text), GCI_OPTIONS_ANYWHERE, &e);
	assert_string_equal(e.text, "");
	assert_string_equal(argv[n], "a");
	assert_string_equal(argv[n + 1], "b");
	assert_null(argv[n + 2]);
	assert_int_equal(s.iterations, 3);
	assert_int_equal(s.json, 1);
	assert_int_equal(s.nbytes, 4096);
	assert_int_equal(s.ns, 10000000);
	assert_int_equal(s.bps, 1000000000);
	assert_int_equal(s.ranks, 7);
	assert_int_equal(s.words, 2);
	assert_string_equal(s.file, "-");
}

/* What follows a command is the command's. */
static void a_command_ends_them(void **state)
{
	char text[200], *argv[24];
	struct gci_error e = {0};
	struct settings s;
	int n;

	(void)state;
	n = read_line("-j ls -i 5", &s, argv, text, sizeof(text), GCI_OPTIONS_FIRST, &e);
	assert_int_equal(n, 2);
	assert_string_equal(argv[n], "ls");
	assert_int_equal(s.iterations, 0);
	n = read_line("-j -- -i 5", &s, argv, text, sizeof(text), GCI_OPTIONS_FIRST, &e);
	assert_string_equal(argv[n], "-i");
	assert_int_equal(read_line("-jh", &s, argv, text, sizeof(text), GCI_OPTIONS_FIRST, &e),
		GCI_OPTIONS_HELP);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *line, *error;
	} cases[] = {
		{"-i 0", "--iterations \"0\", expected a number from 1 to 9"},
		{"-i 10", "--iterations \"10\", expected a number from 1 to 9"},
		{"-i x", "--iterations \"x\", expected a number from 1 to 9"},
		{"-n 101", "--ranks \"101\", expected a number from 0 to 100"},
		{"--bytes 2MiB", "--bytes \"2MiB\", expected " GCI_BYTES_EXPECTED},
		{"--time 0s", "--time \"0s\", expected one that is not nothing"},
		{"--rate x", "--rate \"x\", expected " GCI_RATE_EXPECTED},
		{"--words a,b,c,d", "--words \"...\", expected three at most"},
		{"-f _", "--file \"\", expected a value that is not empty"},
		{"-f", "a value is missing after -f, see x --help"},
		{"--file", "a value is missing after --file, see x --help"},
		{"--json=1", "no value is expected after --json, see x --help"},
		{"--nonsense", "unknown option --nonsense, see x --help"},
		{"-jz", "unknown option -z, see x --help"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[200], *argv[24];
		struct gci_error e = {0};
		struct settings s;

		assert_int_equal(read_line(cases[i].line, &s, argv, text, sizeof(text),
					 GCI_OPTIONS_ANYWHERE, &e),
			GCI_OPTIONS_WRONG);
		assert_int_equal(e.status, GCOLL_ERR_INVAL);
		assert_string_equal(e.text, cases[i].error);
	}
}

static void help_is_printed(void **state)
{
	char text[2000] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	(void)state;
	assert_non_null(out);
	gci_options_print(options, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text,
		"  -i, --iterations N  how often\n"
		"  -j, --json          for programs\n"
		"  -f, --file FILE     one that has a name which is of interest to nobody, and\n"
		"                      whose explanation takes more than a line\n"
		"      --bytes B       a size\n"
		"      --time T        a time\n"
		"      --rate R        a rate\n"
		"  -n, --ranks N       so many\n"
		"      --words a-list-of-words-with-commas-between up to three\n"
		"  -h, --help          this text\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_filled),
		cmocka_unit_test(a_command_ends_them),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(help_is_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
