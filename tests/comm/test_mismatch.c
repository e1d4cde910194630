/* SPDX-License-Identifier: MIT
 * Rank 1 calls something else than the others: of every kind, every field that can differ. Nobody
 * waits for ever, and every rank is told what both have called. Without GCI_ALL=1, some of them. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT    1u
#define REDUCES 2u
#define VARIES  4u /* blocks of different lengths */
#define EMPTY   8u

static const struct kind {
	const char *name;
	unsigned traits;
} kinds[] = {{"bcast", ROOT}, {"reduce", ROOT | REDUCES}, {"allreduce", REDUCES},
	{"reduce_scatter", REDUCES}, {"scatter", ROOT}, {"gather", ROOT}, {"allgather", 0},
	{"alltoall", 0}, {"barrier", EMPTY}, {"reduce_scatterv", REDUCES | VARIES},
	{"scatterv", ROOT | VARIES}, {"gatherv", ROOT | VARIES}, {"allgatherv", VARIES},
	{"alltoallv", VARIES}};

static const char *const fields[] = {"kind", "type", "root", "op", "count"};

static int applies(const struct kind *k, const char *field)
{
	if (!strcmp(field, "kind"))
		return 1;
	if (!strcmp(field, "root"))
		return !!(k->traits & ROOT);
	if (!strcmp(field, "op"))
		return !!(k->traits & REDUCES);
	return !(k->traits & EMPTY);
}

/* What each of the two calls is told by. */
static void words(const struct kind *k, const char *field, const char *elements, const char *fewer,
	const char *out[2])
{
	int to = !strncmp(k->name, "reduce", 6) || !strncmp(k->name, "gather", 6);
	static char name[32];

	snprintf(name, sizeof(name), " %s", k->name); /* "reduce" is in "allreduce" */
	out[0] = name;
	out[1] = strcmp(k->name, "allreduce") != 0 ? " allreduce of " : " bcast of ";
	if (!strcmp(field, "type")) {
		out[0] = " int32";
		out[1] = " float32";
	} else if (!strcmp(field, "root")) {
		out[0] = to ? " to rank 0" : " from rank 0";
		out[1] = to ? " to rank 1" : " from rank 1";
	} else if (!strcmp(field, "op")) {
		out[0] = " with sum";
		out[1] = " with max";
	} else if (!strcmp(field, "count")) {
		out[0] = k->traits & VARIES ? " in blocks #" : elements;
		out[1] = k->traits & VARIES ? " in blocks #" : fewer;
	}
}

/* Both sides, in the one line that all are told. */
static int tells_both(const char *line, const char *const word[2])
{
	if (occurrences(line, "\n") != 1)
		return 0;
	if (!strcmp(word[0], word[1]))
		return occurrences(line, word[0]) == 2;
	return strstr(line, word[0]) && strstr(line, word[1]);
}

static void try_one(const struct kind *k, const char *field, int large)
{
	/* Of alltoallv each rank's counts are its own: those of a pair must fit. */
	static const char *const pair[2] = {" sends ", " expects "};
	int is_pair = !strcmp(k->name, "alltoallv") && !strcmp(field, "count");
	const char *word[2];
	struct job j = {0};

	words(k, field, large ? "200000 int32" : "64 int32", large ? "199999 int32" : "63 int32",
		word);
	job_start(&j, NULL, "-n", "3", env_path("GRIDCOLL_TEST_MISMATCH"), k->name, field,
		large ? "200000" : "64", NULL);
	assert_int_not_equal(job_wait(&j), 0);
	if (!tells_both(job_err(&j), is_pair ? pair : word))
		fail_msg("%s, %s: expected \"%s\" and \"%s\", got: %s", k->name, field, word[0],
			word[1], job_err(&j));
	if (occurrences(job_out(&j), "ranks called different operations: ") != 3)
		fail_msg("%s, %s: not all ranks tell it: %s", k->name, field, job_out(&j));
	job_free(&j);
}

static void both_are_named(void **state)
{
	size_t i, f, n = 0;

	(void)state;
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		for (f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
			if (!applies(&kinds[i], fields[f]))
				continue;
			n++;
			if (getenv("GCI_ALL")) {
				try_one(&kinds[i], fields[f], 0);
				try_one(&kinds[i], fields[f], 1);
			} else if (n % 5 == 0) {
				try_one(&kinds[i], fields[f], n % 2 == 0);
			}
		}
	assert_int_equal(n, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
