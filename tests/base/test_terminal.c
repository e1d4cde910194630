/* SPDX-License-Identifier: MIT */
#include "base/terminal.h"
#include "tests/test.h"

#include <pty.h>
#include <stdlib.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_is_one_if_it_is_said),
		cmocka_unit_test(a_terminal_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
