/* SPDX-License-Identifier: MIT
 * Pipes to other processes, as libuv streams. Sending a buffer: the one way in which launcher and
 * agents do it.
 *
 *	gci_agent_msg_put_plain(&b, GCI_AGENT_MSG_KILL);
 *	gci_pipe_send(stream, &b, NULL);	// b is empty afterwards
 */
#ifndef GCI_LAUNCHER_PIPES_H
#define GCI_LAUNCHER_PIPES_H

#include "base/buf.h"
#include "launcher/spawn.h"

#include <uv.h>

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
