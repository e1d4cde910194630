/* SPDX-License-Identifier: MIT */
#include "tests/captured.h"
#include "tests/failing/failing.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

/* Those who log because of an error may still want to know which. */
static struct captured two_lines(int error)
{
	struct captured c = capture_begin();

	failing_at(FAILING_write, 1, error);
	errno = EMLINK;
	gci_log(GCI_LOG_WARN, "the first of %d", 2);
	gci_log(GCI_LOG_INFO, "this is not asked for");
	gci_log(GCI_LOG_ERROR, "the last");
	assert_int_equal(errno, EMLINK);
	capture_end(&c);
	assert_true(failing_happened(FAILING_write));
	return c;
}

static void a_line_that_cannot_be_written(void **state)
{
	struct captured c = two_lines(EIO);

	(void)state;
	assert_string_equal(c.text, "gridcoll: error: the last\n");
}

static void a_signal_costs_no_line(void **state)
{
	struct captured c = two_lines(EINTR);

	(void)state;
	assert_string_equal(c.text, "gridcoll: warn: the first of 2\ngridcoll: error: the last\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_that_cannot_be_written),
		cmocka_unit_test(a_signal_costs_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
