/* SPDX-License-Identifier: MIT
 * With a guest that runs: frames to and from it, jobs' input and output, its console. */
#include "base/log.h"
#include "netem/uml_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK      (GCI_FRAME_WINDOW - GCI_FRAME_HEADER) /* of standard input per frame */
#define LOG_NBYTES 8192
#define MAX_EXTRA  16

/* Writes all, also to a descriptor that someone made non-blocking. */
static int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);
		struct pollfd pfd = {fd, POLLOUT, 0};

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			poll(&pfd, 1, -1);
		} else if (errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

void gci_uml_send_frame(
	struct gci_uml *u, enum gci_frame_type type, unsigned id, const void *body, size_t len)
{
	struct gci_buf b = {0};

	gci_frame_put(&b, type, id, body, len);
	if (b.failed || write_all(u->to_guest, b.data, b.len))
		u->gone = 1;
	u->sent += b.len;
	gci_buf_free(&b);
}

void gci_uml_send_u32(struct gci_uml *u, enum gci_frame_type type, unsigned id, uint32_t v)
{
	uint8_t body[4];

	gci_store_u32(body, v);
	gci_uml_send_frame(u, type, id, body, sizeof(body));
}

void gci_uml_signal(struct gci_uml *u, int id, int sig)
{
	uint8_t body = (uint8_t)sig;

	gci_uml_send_frame(u, GCI_FRAME_SIGNAL, (unsigned)id, &body, 1);
}

static void on_output(struct gci_uml *u, const struct gci_frame *f, int which)
{
	struct gci_uml_session *s = &u->sessions[f->session];

	if (!s->used || s->fds[which] < 0 || !write_all(s->fds[which], f->body.data, f->body.len))
		return;
	/* Nobody reads any more: as a pipe would have it, the job gets SIGPIPE. */
	s->fds[which] = -1;
	gci_uml_signal(u, (int)f->session, SIGPIPE);
}

static void on_frame(struct gci_uml *u, const struct gci_frame *f)
{
	struct gci_uml_session *s = &u->sessions[f->session];
	struct gci_reader body = f->body;
	uint64_t begin;

	switch (f->type) {
	case GCI_FRAME_READY:
		begin = gci_read_u64(&body);
		u->network_ns = gci_read_u64(&body) - begin;
		u->ready = 1;
		break;
	case GCI_FRAME_FAILED:
		gci_error_set(
			&u->failure, GCOLL_ERR_IO, "%.*s", (int)body.len, (const char *)body.data);
		break;
	case GCI_FRAME_TAKEN:
		u->taken += gci_read_u32(&body);
		break;
	case GCI_FRAME_CREDIT_GIVEN:
		s->credit += gci_read_u32(&body);
		break;
	case GCI_FRAME_OUT:
		on_output(u, f, 1);
		break;
	case GCI_FRAME_ERR:
		on_output(u, f, 2);
		break;
	case GCI_FRAME_EXIT:
		s->end.status = gci_read_u8(&body);
		s->end.busy = gci_read_u64(&body);
		s->end.total = gci_read_u64(&body);
		s->ended = 1;
		break;
	default:
		break;
	}
}

static void receive(struct gci_uml *u)
{
	uint8_t chunk[65536];
	ssize_t n = read(u->from_guest, chunk, sizeof(chunk));
	struct gci_frame f;
	int len = 0;

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
		u->gone = 1;
		return;
	}
	if (n > 0)
		gci_buf_put(&u->received, chunk, (size_t)n);
	while ((len = gci_frame_get(&u->received, &f)) > 0) {
		on_frame(u, &f);
		gci_buf_consume(&u->received, (size_t)len);
	}
	if (len < 0 || u->received.failed) {
		gci_error_set(&u->failure, GCOLL_ERR_IO, "garbage on the guest's serial line");
		u->gone = 1;
	}
}

static void read_console(struct gci_uml *u)
{
	char chunk[4096];
	ssize_t n = read(u->console, chunk, sizeof(chunk));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
		close(u->console);
		u->console = -1;
	}
	if (n <= 0)
		return;
	if (gci_log_enabled(GCI_LOG_DEBUG))
		(void)!write(2, chunk, (size_t)n);
	gci_buf_put(&u->log, chunk, (size_t)n);
	if (u->log.len > LOG_NBYTES)
		gci_buf_consume(&u->log, u->log.len - LOG_NBYTES);
}

const char *gci_uml_last_words(struct gci_uml *u)
{
	static const char *const signs[] = {"Kernel panic", "failed, errno", "annot"};
	const char *log = gci_buf_cstr(&u->log), *at = NULL, *line;
	static char out[256];
	size_t i;

	for (i = 0; i < sizeof(signs) / sizeof(*signs) && !at; i++)
		at = strstr(log, signs[i]);
	for (line = log; !at && *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (line[strcspn(line, "\n")] && !line[strcspn(line, "\n") + 1])
			at = line;
	while (at && at > log && at[-1] != '\n')
		at--;
	snprintf(out, sizeof(out), "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
	return *out ? out : "it said nothing";
}

static int gone(struct gci_uml *u, struct gci_error *e)
{
	while (u->console >= 0) /* the rest of what it said: it is dead, so this ends */
		read_console(u);
	if (u->failure.status)
		return gci_error_set(e, GCOLL_ERR_IO, "%s", u->failure.text);
	return gci_error_set(e, GCOLL_ERR_IO,
		"the lab's guest %s: %s (GRIDCOLL_LOG=debug shows all)",
		u->ready ? "died" : "did not boot", gci_uml_last_words(u));
}

/* Input is not read from a terminal that belongs to another job: that would stop us. */
static int may_read(int fd)
{
	pid_t owner = tcgetpgrp(fd);

	return owner < 0 || owner == getpgrp();
}

/* How much of a job's input may be sent now. */
static size_t input_room(const struct gci_uml *u, const struct gci_uml_session *s)
{
	uint64_t ahead = u->sent - u->taken;

	if (!s->used || s->ended || s->fds[0] < 0 || ahead + GCI_FRAME_HEADER >= GCI_FRAME_WINDOW)
		return 0;
	ahead = GCI_FRAME_WINDOW - GCI_FRAME_HEADER - ahead;
	return ahead < s->credit ? (size_t)ahead : s->credit;
}

static void read_input(struct gci_uml *u, unsigned id)
{
	struct gci_uml_session *s = &u->sessions[id];
	char chunk[CHUNK];
	size_t room = input_room(u, s);
	ssize_t n;

	if (!room) /* another job's input has just filled the line */
		return;
	n = read(s->fds[0], chunk, room);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		s->credit -= (uint32_t)n;
		gci_uml_send_frame(u, GCI_FRAME_IN, id, chunk, (size_t)n);
	} else {
		s->fds[0] = -1;
		gci_uml_send_frame(u, GCI_FRAME_IN_END, id, NULL, 0);
	}
}

int gci_uml_pump(
	struct gci_uml *u, struct pollfd *extra, int nextra, int timeout_ms, struct gci_error *e)
{
	struct pollfd fds[2 + GCI_MAX_SESSIONS + MAX_EXTRA];
	const int nown = 2 + GCI_MAX_SESSIONS;
	unsigned i;

	fds[0] = (struct pollfd){u->from_guest, POLLIN, 0};
	fds[1] = (struct pollfd){u->console, POLLIN, 0};
	for (i = 0; i < GCI_MAX_SESSIONS; i++) {
		const struct gci_uml_session *s = &u->sessions[i];
		int wanted = input_room(u, s) > 0;

		fds[2 + i] =
			(struct pollfd){wanted && may_read(s->fds[0]) ? s->fds[0] : -1, POLLIN, 0};
	}
	if (nextra > MAX_EXTRA)
		nextra = MAX_EXTRA;
	for (i = 0; i < (unsigned)nextra; i++)
		fds[nown + (int)i] = extra[i];
	if (poll(fds, (nfds_t)(nown + nextra), timeout_ms) < 0)
		return errno == EINTR ? 0 : gci_error_errno(e, "poll");
	for (i = 0; i < (unsigned)nextra; i++)
		extra[i].revents = fds[nown + (int)i].revents;
	if (fds[1].revents)
		read_console(u);
	for (i = 0; i < GCI_MAX_SESSIONS; i++)
		if (fds[2 + i].revents)
			read_input(u, i);
	if (fds[0].revents)
		receive(u);
	return u->gone || u->failure.status ? gone(u, e) : 0;
}
