/* SPDX-License-Identifier: MIT */
#include "base/terminal.h"
#include "tests/test.h"

#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void a_pipe_is_one_if_it_is_said(void **state)
{
	char name[GCI_TERMINAL_SIZE];
	int said[2], other[2];

	(void)state;
	assert_int_equal(pipe(said), 0);
	assert_int_equal(pipe(other), 0);
	unsetenv(GCI_TERMINAL);
	assert_false(gci_is_terminal(said[1]));
	setenv(GCI_TERMINAL, "", 1);
	assert_false(gci_is_terminal(said[1]));
	assert_int_equal(gci_terminal_name(said[1], name), 0);
	setenv(GCI_TERMINAL, name, 1);
	assert_true(gci_is_terminal(said[1]));
	assert_false(gci_is_terminal(other[1]));
	dup2(other[1], said[1]);
	assert_false(gci_is_terminal(said[1]));
	close(said[0]);
	close(said[1]);
	close(other[0]);
	close(other[1]);
	assert_int_equal(gci_terminal_name(said[1], name), -1);
	assert_false(gci_is_terminal(said[1]));
	unsetenv(GCI_TERMINAL);
}

static void a_terminal_is_one(void **state)
{
	int master, slave;

	(void)state;
	if (openpty(&master, &slave, NULL, NULL, NULL)) { /* a container without /dev/pts */
		print_message("no pseudo-terminal\n");
		skip();
	}
	assert_true(gci_is_terminal(slave));
	close(master);
	close(slave);
}

/* Of a pipe COLUMNS tells it, where it is a number. */
static void how_wide_it_is(void **state)
{
	static const struct winsize narrow = {.ws_row = 9, .ws_col = 31}, unknown = {0};
	static const char *const bad[] = {"", "x", "0", "-3"};
	int fds[2], master, slave;
	size_t i;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	setenv("COLUMNS", "47", 1);
	assert_int_equal(gci_terminal_columns(fds[1]), 47);
	if (!openpty(&master, &slave, NULL, NULL, NULL)) {
		assert_int_equal(ioctl(slave, TIOCSWINSZ, &narrow), 0);
		assert_int_equal(gci_terminal_columns(slave), 31);
		assert_int_equal(ioctl(slave, TIOCSWINSZ, &unknown), 0);
		assert_int_equal(gci_terminal_columns(slave), 47);
		close(master);
		close(slave);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("COLUMNS", bad[i], 1);
		assert_int_equal(gci_terminal_columns(fds[1]), 80);
	}
	unsetenv("COLUMNS");
	assert_int_equal(gci_terminal_columns(fds[1]), 80);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_is_one_if_it_is_said),
		cmocka_unit_test(a_terminal_is_one),
		cmocka_unit_test(how_wide_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
