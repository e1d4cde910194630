/* SPDX-License-Identifier: MIT
 * What a task learns from Slurm's variables. */
#include "tests/test.h"

#include "launcher/slurm.h"

#include <string.h>

#define NVARIABLES 6
#define MORE       5 /* of heterogeneous jobs */

/* Names and values in turn. */
struct variables {
	const char *v[2 * (NVARIABLES + MORE)];
};

static const struct variables good = {
	{"SLURM_PROCID", "3", "SLURM_STEP_NUM_TASKS", "6", "SLURM_JOB_ID", "1234", "SLURM_STEP_ID",
		"5", "SLURM_STEP_NODELIST", "n[07-09,11],m1", "SLURMD_NODENAME", "n08"}};

static const char *get(void *user, const char *name)
{
	const struct variables *all = user;
	size_t i;

	for (i = 0; i < 2 * (NVARIABLES + MORE); i += 2)
		if (all->v[i] && !strcmp(all->v[i], name))
			return all->v[i + 1];
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
	assert_string_equal(s.cluster, "");
	assert_int_equal(s.ncomponents, 0);
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

/* `srun -p west ... : -p east ...`, where west's nodes come later by name. */
static const struct variables two = {{"SLURM_PROCID", "3", "SLURM_STEP_NUM_TASKS", "6",
	"SLURM_JOB_ID", "1234", "SLURM_STEP_ID", "0", "SLURM_STEP_NODELIST", "n[1-2,4-5]",
	"SLURMD_NODENAME", "n2", "SLURM_HET_SIZE", "2", "SLURM_JOB_NODELIST_PACK_GROUP_0", "n[3-5]",
	"SLURM_JOB_NODELIST_PACK_GROUP_1", "n[1-2]", "SLURM_JOB_PARTITION_PACK_GROUP_0", "west",
	"SLURM_JOB_PARTITION_PACK_GROUP_1", "east"}};

/* Rank 0 is on the first component's first node that the step is on, wherever the list has it. */
static void components(void **state)
{
	static const char *const as_documented[] = {"SLURM_JOB_NODELIST_HET_GROUP_0",
		"SLURM_JOB_NODELIST_HET_GROUP_1", "SLURM_JOB_PARTITION_HET_GROUP_0",
		"SLURM_JOB_PARTITION_HET_GROUP_1"};
	struct variables all = two;
	struct gci_slurm s;
	struct gci_error e = {0};
	size_t i;

	(void)state;
	assert_int_equal(gci_slurm_read(&s, get, &all, &e), 0);
	assert_string_equal(s.first, "n4");
	assert_string_equal(s.cluster, "east");
	assert_int_equal(s.ncomponents, 2);
	for (i = 0; i < 4; i++)
		all.v[14 + 2 * i] = as_documented[i];
	all.v[11] = "n4";
	assert_int_equal(gci_slurm_read(&s, get, &all, &e), 0);
	assert_string_equal(s.first, "n4");
	assert_string_equal(s.cluster, "west");
	/* A step on one component of the two. */
	all.v[9] = "n2";
	all.v[11] = "n2";
	assert_int_equal(gci_slurm_read(&s, get, &all, &e), 0);
	assert_string_equal(s.first, "n2");
	assert_string_equal(s.cluster, "east");
	assert_int_equal(s.ncomponents, 1);
}

/* What cannot be a cluster's name: the component has another, by which srun knows it. */
static void components_without_a_name(void **state)
{
	static const char *const partitions[] = {NULL, "", "a partition", "22-letters-is-too-many"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(partitions) / sizeof(*partitions); i++) {
		struct variables all = two;
		struct gci_error e = {0};
		struct gci_slurm s;

		all.v[21] = partitions[i];
		assert_int_equal(gci_slurm_read(&s, get, &all, &e), 0);
		assert_string_equal(s.cluster, "het-group-1");
	}
}

static void wrong_components(void **state)
{
	static const struct {
		int at;
		const char *value, *name;
	} bad[] = {
		{13, "x", "SLURM_HET_SIZE=x"},
		{13, "257", "SLURM_HET_SIZE=257"},
		{13, "3", "SLURM_JOB_NODELIST_HET_GROUP_2=(not set)"},
		{15, NULL, "SLURM_JOB_NODELIST_HET_GROUP_0=(not set)"},
		{17, "n[1-", "SLURM_JOB_NODELIST_PACK_GROUP_1=n[1-"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct variables all = two;
		struct gci_error e = {0};
		struct gci_slurm s;

		all.v[bad[i].at] = bad[i].value;
		assert_int_equal(gci_slurm_read(&s, get, &all, &e), GCOLL_ERR_INVAL);
		if (strncmp(e.text, bad[i].name, strlen(bad[i].name)) != 0)
			fail_msg("\"%s\", expected %s", e.text, bad[i].name);
	}
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
		cmocka_unit_test(components),
		cmocka_unit_test(components_without_a_name),
		cmocka_unit_test(wrong_components),
		cmocka_unit_test(what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
