/* SPDX-License-Identifier: MIT
 * Starting a process and ending a whole tree of them. libuv's uv_spawn can do neither: a child
 * must ask for a signal at its parent's death before it runs anything else.
 *
 *	struct gci_spawn s = {.argv = argv, .fds = {0, out, err, -1}, .death_signal = SIGKILL};
 *	rc = gci_spawn(&s, &pid, &e);
 *	...
 *	gci_tree_end(GCI_NS_PER_S);	// and everything it left behind
 */
#ifndef GCI_LAUNCHER_SPAWN_H
#define GCI_LAUNCHER_SPAWN_H

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#define GCI_SPAWN_FDS 4

struct gci_spawn {
	char *const *argv; /* ends in NULL; searched in PATH; the environment is ours */
	const char *cwd;   /* NULL: ours */
	/* What the child has as 0 ... 3; others are not inherited. -1: /dev/null, or closed for 3.
	 * They stay the caller's. */
	int fds[GCI_SPAWN_FDS];
	int death_signal; /* when the calling thread's process dies; 0: none */
	int new_session;  /* else a new process group */
};

/* Returns when the program runs. GCOLL_ERR_SYS with "cannot run X: ..." in `e` and errno as the
 * child had it. The caller reaps. */
int gci_spawn(const struct gci_spawn *s, pid_t *pid, struct gci_error *e);

/* What is told of an exec of `program` that failed with errno; GCOLL_ERR_SYS. Names without a slash
 * were looked for in PATH: that is told, too. */
int gci_cannot_run(const char *program, struct gci_error *e);

/* A pipe, both ends not inherited. */
int gci_pipe(int fds[2], struct gci_error *e);

/* Lets us hold as many descriptors as the system allows; children get the old limit. */
void gci_raise_fd_limit(void);

/* Orphans among our descendants become our children, so that none can escape. */
void gci_tree_adopt(void);

/* SIGKILL to every descendant there is now (its process group does not matter), but for those that
 * `spared` is true of (NULL: none) and theirs. Returns how many were found, dead ones that nobody has
 * reaped yet not counted. */
int gci_tree_kill(int (*spared)(void *user, pid_t pid), void *user);

/* Kills and reaps until there are none left, at most `timeout_ns` long. 0, or how many are left. */
int gci_tree_end(uint64_t timeout_ns);

/* ---- Pipes to processes, as libuv streams. Sending a buffer: the one way in which launcher and agents do
 * it.
 *
 *	gci_agent_msg_put_plain(&b, GCI_AGENT_MSG_KILL);
 *	gci_pipe_send(stream, &b, NULL);	// b is empty afterwards
 */

/* Takes the buffer over. `done` (may be NULL) is told of the end with libuv's status. A buffer
 * that lacked memory is not sent and gives UV_ENOMEM at once; so do other immediate failures. */
int gci_pipe_send(uv_stream_t *to, struct gci_buf *b,
	void (*done)(uv_stream_t *to, size_t nbytes, int status));

/* Starts a process with pipes as its standard input, output and error, whose other ends p[0 ... 2]
 * are; `s` needs no fds. When it could not start, *pid is 0 and they are not initialised. */
int gci_pipe_spawn(uv_loop_t *loop, struct gci_spawn *s, uv_pipe_t *const p[3], pid_t *pid,
	struct gci_error *e);

/* Reads what still stands in a pipe when its writer is dead already. */
void gci_pipe_drain(uv_pipe_t *p, uv_read_cb on_read);

#endif
