/* SPDX-License-Identifier: MIT
 * Who is told that another job paces the same device. Each open stands for a job. */
#include "tests/test.h"

#include "flow/pacing.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
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

	assert_int_equal(gci_pacing_host_open(&h, device, holds, GCI_PACING_MARK, NULL), expected);
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
	assert_int_equal(
		gci_pacing_host_open(&b, device, GCI_PACE_FQ, GCI_PACING_NO_MARK, NULL), 0);
	gci_pacing_host_close(b);
	gci_pacing_host_close(a);
}

/* The mark may be that of a rank which the job went on without. */
static void a_later_epoch_is_not_refused(void **state)
{
	struct gci_pacing_host *a = joins(GCI_PACE_FQ, 0), *b;
	struct gci_error e = {0};

	(void)state;
	gci_pacing_host_open(&b, device, GCI_PACE_HTB, GCI_PACING_MARK, &e);
	assert_null(b);
	assert_non_null(strstr(e.text, "another job"));
	e = (struct gci_error){0};
	gci_pacing_host_open(&b, device, GCI_PACE_HTB, GCI_PACING_MARK_AGAIN, &e);
	assert_null(strstr(e.text, "another job")); /* but there is no such device */
	assert_int_equal(
		gci_pacing_host_open(&b, device, GCI_PACE_FQ, GCI_PACING_MARK_AGAIN, &e), 0);
	gci_pacing_host_close(b);
	gci_pacing_host_close(a);
	/* Where there is none any more, it takes it. */
	assert_int_equal(
		gci_pacing_host_open(&b, device, GCI_PACE_FQ, GCI_PACING_MARK_AGAIN, &e), 0);
	a = joins(GCI_PACE_FQ, 1);
	gci_pacing_host_close(a);
	gci_pacing_host_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_that_do_not_share_are_warned),
		cmocka_unit_test(jobs_that_share_are_not),
		cmocka_unit_test(a_later_epoch_is_not_refused),
		cmocka_unit_test(one_rank_of_a_host_looks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
