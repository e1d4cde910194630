/* SPDX-License-Identifier: MIT
 * What ranks print, made into one stream of whole lines. The first part is without I/O: the result gathers in
 * `out`.
 *
 *	struct gci_output o;
 *	struct gci_line l0 = {.rank = 0}, l1 = {.rank = 1};
 *	gci_output_init(&o);
 *	o.prefix = 1;
 *	gci_output_put(&o, &l0, "one\ntw", 6);		// "[0] one\n"
 *	gci_output_put(&o, &l1, "three\n", 6);		// "[1] three\n"
 *	gci_output_end(&o, &l0);			// "[0] tw\n"
 *	write(1, o.out.data, o.out.len); ...
 *	gci_output_free(&o);
 *
 * '\r' ends a line too and passes through, so that progress bars work. A line longer than
 * GCI_LINE_NBYTES is passed on in pieces; meanwhile the other ranks' lines are held back (in
 * `held`: the caller's flow control bounds it), until it ends or gci_output_break says that they
 * have waited long enough. */
#ifndef GCI_LAUNCHER_OUTPUT_H
#define GCI_LAUNCHER_OUTPUT_H

#include "base/buf.h"
#include "base/list.h"

#include <uv.h>

#define GCI_LINE_NBYTES (64u << 10)

/* One rank's end. Zeroed but for its rank. */
struct gci_line {
	uint32_t rank;
	struct gci_buf part;     /* not printed yet */
	size_t scanned;          /* of it: no end of a line there */
	int after_cr;            /* a '\n' now belongs to the '\r' before */
	int ended;               /* while held back */
	struct gci_list waiting; /* held back */
};

struct gci_output {
	int prefix;                /* "[rank] " before each line */
	int solo;                  /* one rank, no prefix: bytes pass as they come */
	int terminal;              /* progress lines are not prefixed, and wiped before a line */
	int columns;               /* of the terminal: a longer progress line is cut; 0: none is */
	struct gci_output *beside; /* what else that terminal shows; NULL: nothing */
	struct gci_buf out;
	size_t held;
	struct gci_line *last;  /* whose bytes are the last ones */
	struct gci_line *owner; /* whose long line is under way */
	int midline;            /* the last bytes did not end a line */
	int progress;           /* a '\r' line stands on the terminal */
	struct gci_list waiting;
};

void gci_output_init(struct gci_output *o);
void gci_output_free(struct gci_output *o);

void gci_output_put(struct gci_output *o, struct gci_line *l, const void *data, size_t nbytes);

/* The rank prints no more; a last line without its end is completed. */
void gci_output_end(struct gci_output *o, struct gci_line *l);

/* Ends the long line under way, so that others get their turn. */
void gci_output_break(struct gci_output *o);

/* A line of our own. */
void gci_output_say(struct gci_output *o, const char *text);

void gci_line_free(struct gci_line *l);

/* ---- to and from files
 *
 * Standard output and error, written from the loop whatever they are (terminal, pipe, file):
 * blocking writes on libuv's worker threads, one at a time, since making them non-blocking would
 * change them for the other programs that share them. The same for reading standard input.
 *
 *	gci_sink_open(&s, loop, STDOUT_FILENO, on_drained, user);
 *	gci_output_put(&s.o, line, data, n);
 *	gci_sink_flush(&s);		// returns at once; on_drained when all is written
 */

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
