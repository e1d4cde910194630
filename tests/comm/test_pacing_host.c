/* SPDX-License-Identifier: MIT
 * Who is told that another job paces the same device. Each open stands for a job. */
#include "tests/test.h"

#include "comm/pacing_host.h"

#include <glob.h>
#include <stdio.h>
#include <unistd.h>

static char device[16];

static int setup(void **state)
{
	(void)state;
	snprintf(device, sizeof(device), "no%d", (int)getpid()); /* nobody else's */
	return 0;
}

/* Marks stay where they are; nobody needs this one. */
static int teardown(void **state)
{
	char pattern[64];
	glob_t found;
	size_t i;

	(void)state;
	snprintf(pattern, sizeof(pattern), "{/run/lock,/tmp}/gridcoll-pace-*-%s", device);
	if (glob(pattern, GLOB_BRACE, NULL, &found))
		return 0;
	for (i = 0; i < found.gl_pathc; i++)
		unlink(found.gl_pathv[i]);
	globfree(&found);
	return 0;
}

static struct gci_pacing_host *joins(enum gci_pace_how holds, int expected)
{
	struct gci_pacing_host *h;

	assert_int_equal(gci_pacing_host_open(&h, device, holds, 1, NULL), expected);
	assert_non_null(h);
	return h;
}

static void jobs_that_do_not_share_are_warned(void **state)
{
	struct gci_pacing_host *a, *b, *c;

	(void)state;
	a = joins(GCI_PACE_FQ, 0);
	b = joins(GCI_PACE_TCP, 1);
	c = joins(GCI_PACE_EDT, 1);
	gci_pacing_host_close(a);
	gci_pacing_host_close(b);
	gci_pacing_host_close(c);
}

static void jobs_that_share_are_not(void **state)
{
	struct gci_pacing_host *a = joins(GCI_PACE_EDT, 0), *b = joins(GCI_PACE_EDT, 0), *c;

	(void)state;
	c = joins(GCI_PACE_USER, 1);
	gci_pacing_host_close(c);
	gci_pacing_host_close(a);
	c = joins(GCI_PACE_FQ, 1); /* one is left */
	gci_pacing_host_close(c);
	gci_pacing_host_close(b);
	c = joins(GCI_PACE_FQ, 0);
	gci_pacing_host_close(c);
}

/* Its other ranks do not take the job for another one. */
static void one_rank_of_a_host_looks(void **state)
{
	struct gci_pacing_host *a = joins(GCI_PACE_FQ, 0), *b;

	(void)state;
	assert_int_equal(gci_pacing_host_open(&b, device, GCI_PACE_FQ, 0, NULL), 0);
	gci_pacing_host_close(b);
	gci_pacing_host_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_that_do_not_share_are_warned),
		cmocka_unit_test(jobs_that_share_are_not),
		cmocka_unit_test(one_rank_of_a_host_looks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
