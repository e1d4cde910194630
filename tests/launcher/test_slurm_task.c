/* SPDX-License-Identifier: MIT
 * What a task learns from Slurm's variables. */
#include "tests/test.h"

#include "launcher/slurm.h"

#include <string.h>

#define NVARIABLES 6

/* Names and values in turn. */
struct variables {
	const char *v[2 * NVARIABLES];
};

static const struct variables good = {
	{"SLURM_PROCID", "3", "SLURM_STEP_NUM_TASKS", "6", "SLURM_JOB_ID", "1234", "SLURM_STEP_ID",
		"5", "SLURM_STEP_NODELIST", "n[07-09,11],m1", "SLURMD_NODENAME", "n08"}};

static const char *get(void *user, const char *name)
{
	const struct variables *all = user;
	size_t i;

	for (i = 0; i < 2 * NVARIABLES; i += 2)
		if (!strcmp(all->v[i], name))
			return all->v[i + 1];
	fail_msg("%s is not of these", name);
	return NULL;
}

static void who_and_where(void **state)
{
	struct variables all = good;
	struct gci_slurm s, other;
	struct gci_error e = {0};

	(void)state;
	assert_int_equal(gci_slurm_read(&s, get, &all, &e), 0);
	assert_int_equal(s.rank, 3);
	assert_int_equal(s.size, 6);
	assert_string_equal(s.host, "n08");
	assert_string_equal(s.first, "n07");
	assert_in_range(s.port, GCI_SLURM_PORT, GCI_SLURM_PORT + GCI_SLURM_NPORTS - 1);
	all.v[1] = "0"; /* all tasks of a step meet at one port, other steps' elsewhere */
	all.v[11] = "n07";
	assert_int_equal(gci_slurm_read(&other, get, &all, &e), 0);
	assert_int_equal(other.port, s.port);
	all.v[7] = "6";
	assert_int_equal(gci_slurm_read(&other, get, &all, &e), 0);
	assert_int_not_equal(other.port, s.port);
	all.v[5] = "1235";
	all.v[7] = "5";
	assert_int_equal(gci_slurm_read(&other, get, &all, &e), 0);
	assert_int_not_equal(other.port, s.port);
}

/* The variable is named, and how it should have been started. */
static void what_is_wrong(void **state)
{
	static const char *const bad[NVARIABLES][5] = {
		{NULL, "", "-1", "6", "65536"},
		{NULL, "", "x", "3", "65537"},
		{NULL, "", "12+1", "4294967296", "0x1"},
		{NULL, "", " 5", "5 ", "batch"},
		{NULL, "", "n[1-", "n[2-1]", "a/b"},
		{NULL, "", "", "", ""},
	};
	struct gci_slurm s;
	size_t i, k;

	(void)state;
	for (i = 0; i < NVARIABLES; i++) {
		for (k = 0; k < 5; k++) {
			struct variables all = good;
			struct gci_error e = {0};
			const char *name;

			all.v[2 * i + 1] = bad[i][k];
			assert_int_equal(gci_slurm_read(&s, get, &all, &e), GCOLL_ERR_INVAL);
			name = i == 1 && k == 3 ? all.v[0] : all.v[2 * i]; /* 3 of 3 */
			if (strncmp(e.text, name, strlen(name)) != 0 ||
				!strstr(e.text, GCI_SLURM_EXAMPLE))
				fail_msg("%s=%s: %s", all.v[2 * i], bad[i][k], e.text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_and_where),
		cmocka_unit_test(what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
