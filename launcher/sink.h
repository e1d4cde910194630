/* SPDX-License-Identifier: MIT
 * Standard output and error, written from the loop whatever they are (terminal, pipe, file):
 * blocking writes on libuv's worker threads, one at a time, since making them non-blocking would
 * change them for the other programs that share them. The same for reading standard input.
 *
 *	gci_sink_open(&s, loop, STDOUT_FILENO, on_drained, user);
 *	gci_output_put(&s.o, line, data, n);
 *	gci_sink_flush(&s);		// returns at once; on_drained when all is written
 */
#ifndef GCI_LAUNCHER_SINK_H
#define GCI_LAUNCHER_SINK_H

#include "launcher/output.h"

#include <uv.h>

struct gci_sink {
	struct gci_output o;
	uv_loop_t *loop;
	uv_work_t work;
	struct gci_buf writing;
	int fd;
	int busy;
	int work_error;
	int error; /* errno of a failed write: from then on output is dropped */
	void (*on_drained)(struct gci_sink *s);
	void *user;
};

void gci_sink_open(struct gci_sink *s, uv_loop_t *loop, int fd,
	void (*on_drained)(struct gci_sink *s), void *user);
void gci_sink_flush(struct gci_sink *s);

/* Bytes not written yet. */
size_t gci_sink_backlog(const struct gci_sink *s);

struct gci_source {
	uv_loop_t *loop;
	uv_work_t work;
	int fd;
	int busy;
	size_t want;
	long got; /* as read() has it */
	char bytes[32u << 10];
	/* nbytes 0: the end. */
	void (*on_data)(struct gci_source *s, const char *data, size_t nbytes);
	void *user;
};

void gci_source_open(struct gci_source *s, uv_loop_t *loop, int fd,
	void (*on_data)(struct gci_source *s, const char *data, size_t nbytes), void *user);

/* Reads once, at most `room` bytes (and at most sizeof(bytes)); nothing while a read is under
 * way. A terminal that we are in the background of is left alone. */
void gci_source_read(struct gci_source *s, size_t room);

#endif
