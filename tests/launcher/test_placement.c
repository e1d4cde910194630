/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "launcher/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char grid[512];

/* A plan, with its budgets and its text for people. */
static int plan(const struct gci_options *given, struct gci_error *e)
{
	char command[] = "a program", *argv[] = {command, NULL};
	struct gci_options all = *given, *o = &all;
	struct gci_placement p;
	struct gci_buf text = {0};
	int rc;

	all.argv = argv;
	all.ssh.remote_path = "gridcoll-run";
	rc = gci_placement_make(&p, o, e);
	if (rc)
		return rc;
	rc = gci_placement_budgets(&p, o, e);
	gci_dry_run(&p, o, &text);
	if (!rc && text.failed)
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_buf_free(&text);
	gci_placement_free(&p);
	return rc;
}

/* Where ranks are that others start: two hosts of two clusters, as the ranks say. */
static int arrivals(struct gci_error *e)
{
	static const char *const clusters[] = {"west", "east", "west"};
	static const struct gci_options o = {
		.guests.serve = "7", .guests.serve_port = 7, .nranks = 3};
	static const char *const hosts[] = {"n2", "n1", "n2"};
	struct gci_placement p;
	char why[200] = "";
	uint32_t i;
	int rc = gci_placement_make(&p, &o, e);

	for (i = 0; !rc && i < 3; i++)
		if (gci_placement_arrive(&p, i, hosts[i], clusters[i], why, sizeof(why)))
			rc = gci_error_set(e, GCOLL_ERR_NOMEM, "%s", why);
	if (!rc && !gci_placement_settle(&p, why, sizeof(why)))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "%s", why);
	if (!rc) {
		assert_int_equal(p.grid.nhosts, 2);
		assert_int_equal(p.grid.nclusters, 2);
		assert_string_equal(p.grid.clusters[0].name, "east");
		assert_non_null(gci_grid_link(&p.grid, 0, 1));
		assert_string_equal(gci_grid_host(&p.grid, (int)p.hosts[1]), "n1");
		assert_int_equal(p.hosts[0], p.hosts[2]);
		assert_string_equal(p.names[2], "n2");
	}
	if (p.size)
		gci_placement_free(&p);
	return rc;
}

/* What ranks say of their clusters must fit. */
static void what_arrivals_say_of_clusters(void **state)
{
	static const struct {
		const char *hosts[3], *clusters[3], *why;
	} cases[] = {
		{{"n1", "n1", "n2"}, {"east", "west", "west"},
			"n1 is in cluster east as rank 0 has it, but in west as rank 1 has it: "
			"expected one GRIDCOLL_CLUSTER for each host"},
		{{"n1", "n2", "n3"}, {"east", "west", ""},
			"rank 2 on n3 tells no cluster, but rank 0 does: "
			"expected GRIDCOLL_CLUSTER for all ranks or for none"},
		{{"n1", "n2", "n3"}, {"", "west", ""},
			"rank 0 on n1 tells no cluster, but rank 1 does: "
			"expected GRIDCOLL_CLUSTER for all ranks or for none"},
		{{"n1", "n2", "n3"}, {"east", "a]b", "east"},
			"rank 1 on n2 says that its cluster is \"a]b\": "
			"expected letters, digits and -_. in GRIDCOLL_CLUSTER"},
		{{"n1", "a!b", "n3"}, {"", "", ""},
			"rank 1: bad character '!' in host name \"a!b\", expected letters, digits "
			"and ._:@%-, no - in front, and neither . nor .. (see GRIDCOLL_HOST)"},
		{{"n1", "n2", ".."}, {"", "", ""},
			"rank 2: bad host name \"..\", expected letters, digits and ._:@%-, no - "
			"in "
			"front, and neither . nor .. (see GRIDCOLL_HOST)"},
		{{"n1", "n2,n3", "n3"}, {"", "", ""},
			"rank 1: bad character ',' in host name \"n2,n3\", expected letters, "
			"digits "
			"and ._:@%-, no - in front, and neither . nor .. (see GRIDCOLL_HOST)"},
		{{"n1", "n1", "n2"}, {"..", "..", "east"},
			"rank 0 on n1 says that its cluster is \"..\": "
			"expected letters, digits and -_. in GRIDCOLL_CLUSTER"},
		{{"n1", "n1", "n2"},
			{"21-characters-it-may.", "21-characters-it-may.", "and-another-such-one."},
			""},
		{{"n1", "n1", "n2"}, {"", "", ""}, ""},
	};
	static const struct gci_options o = {
		.guests.serve = "7", .guests.serve_port = 7, .nranks = 3};
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		char why[GCI_CTL_TEXT] = "";
		struct gci_placement p;
		struct gci_error e = {0};
		uint32_t i;
		int rc = gci_placement_make(&p, &o, &e);

		assert_int_equal(rc, 0);
		for (i = 0; !rc && i < 3; i++)
			rc = gci_placement_arrive(
				&p, i, cases[k].hosts[i], cases[k].clusters[i], why, sizeof(why));
		if (!rc && !gci_placement_settle(&p, why, sizeof(why)))
			rc = -1;
		assert_int_equal(rc, *cases[k].why ? -1 : 0);
		assert_string_equal(why, cases[k].why);
		if (!rc) {
			int n = *cases[k].clusters[0] ? 2 : 1;

			assert_int_equal(p.grid.nclusters, n);
			assert_int_equal(p.grid.nhosts, 2);
			if (n == 1)
				assert_string_equal(p.grid.clusters[0].name, "hosts");
		}
		gci_placement_free(&p);
	}
}

static void any_allocation_of_arrivals_may_fail(void **state)
{
	struct gci_error e;
	unsigned long n;
	int rc;

	(void)state;
	for (n = 1;; n++) {
		gci_error_clear(&e);
		gci_mem_fail_at(n);
		rc = arrivals(&e);
		if (!gci_mem_failed())
			break;
		if (rc != GCOLL_ERR_NOMEM || !strstr(e.text, "out of memory"))
			fail_msg("allocation %lu: %d, \"%s\"", n, rc, e.text);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
}

static void each_allocation_fails(const struct gci_options *o)
{
	struct gci_error e;
	unsigned long n;
	int rc;

	for (n = 1;; n++) {
		gci_error_clear(&e);
		gci_mem_fail_at(n);
		rc = plan(o, &e);
		if (!gci_mem_failed())
			break;
		if (rc != GCOLL_ERR_NOMEM || !*e.text)
			fail_msg("allocation %lu: %d, \"%s\"", n, rc, e.text);
	}
	gci_mem_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(n > 10);
}

static void any_allocation_may_fail(void **state)
{
	static const struct gci_options flat = {.nranks = 5};
	static const struct gci_options guests = {.guests.serve = "10.1.0.1:7",
		.guests.serve_ip = "10.1.0.1",
		.guests.serve_port = 7,
		.nranks = 4};
	static const struct gci_options by_list = {.hosts = "127.0.0.[1-3]", .per_host = 2};
	struct gci_options by_grid = {.grid = grid,
		.ssh.fanout = 2,
		.hosts = "k[1-3], t2",
		.net.nbudgets = 1,
		.net.budgets = {"kyoto>tokyo=1Gbit"}};

	(void)state;
	each_allocation_fails(&flat);
	each_allocation_fails(&guests);
	each_allocation_fails(&by_list);
	each_allocation_fails(&by_grid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(what_arrivals_say_of_clusters),
		cmocka_unit_test(any_allocation_of_arrivals_may_fail),
	};
	const char *grids = getenv("GRIDCOLL_GRIDS");

	snprintf(grid, sizeof(grid), "%s/quickstart.grid", grids ? grids : "netem/grids");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
