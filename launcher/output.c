/* SPDX-License-Identifier: MIT */
#include "launcher/output.h"

#include "base/terminal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define WIPE "\033[K"

void gci_output_init(struct gci_output *o)
{
	memset(o, 0, sizeof(*o));
	gci_list_init(&o->waiting);
}

void gci_output_free(struct gci_output *o)
{
	gci_buf_free(&o->out);
}

void gci_line_free(struct gci_line *l)
{
	gci_list_del(&l->waiting);
	gci_buf_free(&l->part);
}

/* A progress line that is wider than the terminal would leave its beginning there each time. What
 * is more than plain characters is its program's own affair. */
static size_t fit(const struct gci_output *o, const uint8_t *p, size_t n)
{
	size_t i, most = o->columns > 0 ? (size_t)o->columns - 1 : SIZE_MAX;

	for (i = 0; i + 1 < n; i++)
		if (p[i] < ' ' || p[i] > '~')
			return n;
	return n > 0 && n - 1 > most ? most : n;
}

/* `n` bytes of l's line; `end` is how it ends: '\n', '\r', or 0 for a piece of a longer one. */
static void emit(struct gci_output *o, struct gci_line *l, const uint8_t *p, size_t n, char end)
{
	int goes_on = o->midline && o->last == l;

	if (n == 1 && *p == '\n' && l->after_cr) {
		l->after_cr = 0;
		if (o->last == l)
			gci_buf_put(&o->out, p, n); /* the rest of a "\r\n" cut in two */
		o->progress = 0;
		return;
	}
	if (o->midline && !goes_on)
		gci_buf_put_u8(&o->out, '\n');
	if (o->terminal && (o->progress || (o->beside && o->beside->progress)) && end != '\r') {
		gci_buf_printf(&o->out, WIPE);
		if (o->beside)
			o->beside->progress = 0;
	}
	if (o->prefix && !goes_on && !(o->terminal && end == '\r'))
		gci_buf_printf(&o->out, "[%u] ", l->rank);
	if (o->terminal && end == '\r' && !goes_on && fit(o, p, n) < n) {
		gci_buf_put(&o->out, p, fit(o, p, n));
		gci_buf_put_u8(&o->out, '\r');
	} else {
		gci_buf_put(&o->out, p, n);
	}
	o->last = l;
	o->midline = !end;
	o->progress = l->after_cr = end == '\r';
}

/* Length of the line at `p` with its end, or 0 when there is no end in `n` bytes. */
static size_t line_length(const uint8_t *p, size_t n, size_t from, char *end)
{
	size_t i;

	for (i = from; i < n; i++) {
		if (p[i] != '\n' && p[i] != '\r')
			continue;
		*end = (char)p[i];
		if (p[i] == '\r' && i + 1 < n && p[i + 1] == '\n') {
			*end = '\n';
			i++;
		}
		return i + 1;
	}
	return 0;
}

static void take_lines(struct gci_output *o, struct gci_line *l)
{
	const uint8_t *p = l->part.data;
	size_t left = l->part.len, n;
	char end;

	while (left && (n = line_length(p, left, l->scanned, &end))) {
		emit(o, l, p, n, end);
		if (o->owner == l)
			o->owner = NULL;
		l->scanned = 0;
		p += n;
		left -= n;
	}
	l->scanned = left;
	if (left > GCI_LINE_NBYTES || (left && (o->solo || o->owner == l))) {
		emit(o, l, p, left, 0);
		if (!o->solo)
			o->owner = l;
		left = l->scanned = 0;
	}
	gci_buf_consume(&l->part, l->part.len - left);
}

static void finish_line(struct gci_output *o, struct gci_line *l)
{
	if (l->part.len) {
		if (o->prefix)
			gci_buf_put_u8(&l->part, '\n');
		emit(o, l, l->part.data, l->part.len, o->prefix ? '\n' : 0);
		gci_buf_consume(&l->part, l->part.len);
	} else if (o->prefix && o->midline && o->last == l) {
		gci_buf_put_u8(&o->out, '\n');
		o->midline = 0;
	}
	l->scanned = 0;
	if (o->owner == l)
		o->owner = NULL;
}

/* Those who waited, until one of them begins a long line in turn. */
static void release(struct gci_output *o)
{
	while (!o->owner && !gci_list_empty(&o->waiting)) {
		struct gci_line *l = gci_container(o->waiting.next, struct gci_line, waiting);

		gci_list_del(&l->waiting);
		o->held -= l->part.len;
		take_lines(o, l);
		if (l->ended)
			finish_line(o, l);
	}
}

static int must_wait(struct gci_output *o, struct gci_line *l)
{
	if (!o->owner || o->owner == l)
		return 0;
	if (!l->waiting.next) {
		gci_list_push(&o->waiting, &l->waiting);
		o->held += l->part.len;
	}
	return 1;
}

void gci_output_put(struct gci_output *o, struct gci_line *l, const void *data, size_t nbytes)
{
	size_t before;
	int wait = must_wait(o, l);

	before = l->part.len;
	gci_buf_put(&l->part, data, nbytes);
	if (wait) {
		o->held += l->part.len - before;
		return;
	}
	take_lines(o, l);
	release(o);
}

void gci_output_end(struct gci_output *o, struct gci_line *l)
{
	l->ended = 1;
	if (must_wait(o, l))
		return;
	finish_line(o, l);
	release(o);
}

void gci_output_break(struct gci_output *o)
{
	o->owner = NULL;
	release(o);
}

void gci_output_say(struct gci_output *o, const char *text)
{
	gci_output_break(o);
	if (o->midline)
		gci_buf_put_u8(&o->out, '\n');
	if (o->terminal && o->progress)
		gci_buf_printf(&o->out, WIPE);
	gci_buf_printf(&o->out, "%s\n", text);
	o->midline = o->progress = 0;
	o->last = NULL;
}

/* ---- to and from files */

void gci_sink_open(struct gci_sink *s, uv_loop_t *loop, int fd,
	void (*on_drained)(struct gci_sink *s), void *user)
{
	memset(s, 0, sizeof(*s));
	gci_output_init(&s->o);
	s->o.terminal = gci_is_terminal(fd);
	if (s->o.terminal)
		s->o.columns = gci_terminal_columns(fd);
	s->loop = loop;
	s->fd = fd;
	s->on_drained = on_drained;
	s->user = user;
	s->work.data = s;
}

/* On a worker thread: nothing but writing, fd and work_error may be touched. */
static void write_all(uv_work_t *w)
{
	struct gci_sink *s = w->data;
	size_t at = 0;

	while (at < s->writing.len) {
		ssize_t n = write(s->fd, s->writing.data + at, s->writing.len - at);

		if (n >= 0) {
			at += (size_t)n;
		} else if (errno == EAGAIN) {
			/* Somebody else made it non-blocking. */
			struct pollfd p = {.fd = s->fd, .events = POLLOUT};

			poll(&p, 1, -1);
		} else if (errno != EINTR) {
			s->work_error = errno;
			return;
		}
	}
}

static void on_written(uv_work_t *w, int status)
{
	struct gci_sink *s = w->data;

	(void)status;
	s->busy = 0;
	s->error = s->work_error;
	gci_buf_consume(&s->writing, s->writing.len);
	gci_sink_flush(s);
	s->on_drained(s);
}

void gci_sink_flush(struct gci_sink *s)
{
	struct gci_buf empty;

	if (s->o.terminal)
		s->o.columns = gci_terminal_columns(s->fd); /* it may have changed */
	if (s->error)
		gci_buf_consume(&s->o.out, s->o.out.len);
	if (s->busy || !s->o.out.len)
		return;
	empty = s->writing;
	s->writing = s->o.out;
	s->o.out = empty;
	s->busy = 1;
	uv_queue_work(s->loop, &s->work, write_all, on_written);
}

size_t gci_sink_backlog(const struct gci_sink *s)
{
	return s->o.out.len + s->o.held + (s->busy ? s->writing.len : 0);
}

void gci_source_open(struct gci_source *s, uv_loop_t *loop, int fd,
	void (*on_data)(struct gci_source *s, const char *data, size_t nbytes), void *user)
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
	s->fd = fd;
	s->on_data = on_data;
	s->user = user;
	s->work.data = s;
}

static void read_once(uv_work_t *w)
{
	struct gci_source *s = w->data;

	for (;;) {
		s->got = read(s->fd, s->bytes, s->want);
		if (s->got >= 0 || (errno != EINTR && errno != EAGAIN))
			return;
		if (errno == EAGAIN) {
			struct pollfd p = {.fd = s->fd, .events = POLLIN};

			poll(&p, 1, -1);
		}
	}
}

static void on_read(uv_work_t *w, int status)
{
	struct gci_source *s = w->data;

	(void)status;
	s->busy = 0;
	s->on_data(s, s->bytes, s->got > 0 ? (size_t)s->got : 0);
}

void gci_source_read(struct gci_source *s, size_t room)
{
	if (s->busy || !room)
		return;
	if (isatty(s->fd) && tcgetpgrp(s->fd) != getpgrp())
		return; /* to be asked again when we are continued */
	s->want = room < sizeof(s->bytes) ? room : sizeof(s->bytes);
	s->busy = 1;
	uv_queue_work(s->loop, &s->work, read_once, on_read);
}
