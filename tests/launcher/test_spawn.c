/* SPDX-License-Identifier: MIT */
#include "launcher/spawn.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

#define CHILDREN 100
#define PARENT   1000 /* its number in a namespace of its own; its children's are lower */

/* The next process is number `pid`. */
static int number_next(int pid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "we");
	int rc = f ? fprintf(f, "%d", pid - 1) < 0 : -1;

	return f ? rc | fclose(f) : rc;
}

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

/* Has children, says so, and says when one dies. */
static void be_parent(int tell)
{
	int i;

	if (number_next(PARENT - 2 * CHILDREN))
		_exit(1);
	for (i = 0; i < CHILDREN; i++)
		if (!fork())
			sleep_for_ever();
	(void)!write(tell, "+", 1);
	if (wait(NULL) > 0)
		(void)!write(tell, "died", 4);
	sleep_for_ever();
}

/* In a namespace of processes of its own. 0: as it should be, 2: this machine has none. */
static int kill_a_parent_of_many(void)
{
	char text[16] = "";
	int ends[2];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("proc", "/proc", "proc", 0, NULL) || number_next(PARENT))
		return 2;
	if (pipe(ends))
		return 1;
	if (!fork())
		be_parent(ends[1]);
	close(ends[1]);
	if (read(ends[0], text, 1) != 1 || gci_tree_kill(NULL, NULL) != CHILDREN + 1)
		return 1;
	while (wait(NULL) > 0)
		;
	return read(ends[0], text, sizeof(text) - 1) != 0;
}

/* Numbers begin anew when the highest was given, so a child's may be lower than its parent's. */
static void parents_die_first(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWPID))
			_exit(2);
		pid = fork();
		if (!pid)
			_exit(kill_a_parent_of_many());
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parents_die_first)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
