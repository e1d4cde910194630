/* SPDX-License-Identifier: MIT
 * For tests of gridcoll-run elsewhere: a directory of the test's own, and a server of ssh on loopback,
 * which the `ssh` that stands first in PATH then knows as any gct-NAME; gct-far by way of gct-a. gct-dark
 * never answers, and gct-mute tells its version only. gct-void* are gct-silent, which the file `by`, a
 * command that such an ssh is run by, is to know.
 *
 *	need_ssh();					// in a test
 *	job_start(&j, NULL, "--hosts", "gct-1,gct-2", "--remote-path", run, "true", NULL);
 *
 *	return cmocka_run_group_tests(tests, places_up, places_down);
 */
#ifndef GCI_TESTS_LAUNCHER_PLACES_H
#define GCI_TESTS_LAUNCHER_PLACES_H

int places_up(void **state);

/* Ends the server, and removes the directory with all that is in it. */
int places_down(void **state);

/* Skips the test where no server can be run. */
void need_ssh(void);

/* The path of a file there; the last four stay. */
const char *in_dir(const char *name);

/* Makes one. */
const char *write_file(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A gridcoll-run for other hosts, from which the same `ssh` can be used; each use of it adds a line to
 * the file `started`: the rank by whose host, and to which host. */
const char *remote_run(void);

/* For ssh_config: a server that hangs once it has told its version. */
#define SAYS_HELLO "sh -c 'echo SSH-2.0-hello; exec sleep 1000'"

#endif
