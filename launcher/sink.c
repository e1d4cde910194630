/* SPDX-License-Identifier: MIT */
#include "launcher/sink.h"

#include "base/terminal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

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
