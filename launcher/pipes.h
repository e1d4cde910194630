/* SPDX-License-Identifier: MIT
 * Sending a buffer down a libuv stream: the one way in which launcher and agents do it.
 *
 *	gci_frame_put_plain(&b, GCI_FRAME_KILL);
 *	gci_pipe_send(stream, &b, NULL);	// b is empty afterwards
 */
#ifndef GCI_LAUNCHER_PIPES_H
#define GCI_LAUNCHER_PIPES_H

#include "base/buf.h"

#include <uv.h>

/* Takes the buffer over. `done` (may be NULL) is told of the end with libuv's status. A buffer
 * that lacked memory is not sent and gives UV_ENOMEM at once; so do other immediate failures. */
int gci_pipe_send(uv_stream_t *to, struct gci_buf *b,
	void (*done)(uv_stream_t *to, size_t nbytes, int status));

#endif
