/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "launcher/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char grid[512];

/* A plan, with its budgets and its text for people. */
static int plan(const struct gci_options *o, struct gci_error *e)
{
	struct gci_placement p;
	struct gci_buf text = {0};
	int rc = gci_placement_make(&p, o, e);

	if (rc)
		return rc;
	rc = gci_placement_budgets(&p, o, e);
	gci_placement_print(&p, &text);
	if (!rc && text.failed)
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_buf_free(&text);
	gci_placement_free(&p);
	return rc;
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
	static const struct gci_options by_list = {.hosts = "127.0.0.[1-3]", .per_host = 2};
	struct gci_options by_grid = {.grid = grid,
		.hosts = "k[1-3], t2",
		.nbudgets = 1,
		.budgets = {"kyoto>tokyo=1Gbit"}};

	(void)state;
	each_allocation_fails(&flat);
	each_allocation_fails(&by_list);
	each_allocation_fails(&by_grid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_allocation_may_fail),
	};
	const char *grids = getenv("GRIDCOLL_GRIDS");

	snprintf(grid, sizeof(grid), "%s/quickstart.grid", grids ? grids : "netem/grids");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
