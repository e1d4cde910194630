/* SPDX-License-Identifier: MIT */
#include "launcher/pipes.h"

#include "base/mem.h"

#include <string.h>
#include <unistd.h>

struct sending {
	uv_write_t req;
	struct gci_buf b;
	void (*done)(uv_stream_t *to, size_t nbytes, int status);
};

static void on_written(uv_write_t *req, int status)
{
	struct sending *s = req->data;

	if (s->done)
		s->done(req->handle, s->b.len, status);
	gci_buf_free(&s->b);
	gci_free(s);
}

int gci_pipe_send(uv_stream_t *to, struct gci_buf *b,
	void (*done)(uv_stream_t *to, size_t nbytes, int status))
{
	struct sending *s = b->failed ? NULL : gci_calloc(1, sizeof(*s));
	uv_buf_t bytes;
	int rc = UV_ENOMEM;

	if (s) {
		s->b = *b;
		s->done = done;
		s->req.data = s;
		bytes = uv_buf_init((char *)s->b.data, (unsigned)s->b.len);
		rc = uv_write(&s->req, to, &bytes, 1, on_written);
	}
	if (rc) {
		gci_buf_free(b);
		gci_free(s);
	}
	memset(b, 0, sizeof(*b));
	return rc;
}

static void close_all(const int *fds, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int gci_pipe_spawn(uv_loop_t *loop, struct gci_spawn *s, uv_pipe_t *const p[3], pid_t *pid,
	struct gci_error *e)
{
	int ours[3] = {-1, -1, -1}, fds[2], i, rc = 0;

	*pid = 0;
	memset(s->fds, 0xff, sizeof(s->fds));
	for (i = 0; i < 3 && !rc; i++) {
		rc = gci_pipe(fds, e);
		if (rc)
			break;
		s->fds[i] = fds[i > 0];
		ours[i] = fds[!i];
	}
	if (!rc)
		rc = gci_spawn(s, pid, e);
	close_all(s->fds, 3);
	if (rc) {
		*pid = 0;
		close_all(ours, 3);
		return rc;
	}
	for (i = 0; i < 3; i++) {
		int bad = uv_pipe_init(loop, p[i], 0) || uv_pipe_open(p[i], ours[i]);

		if (bad)
			close(ours[i]);
		rc |= bad;
	}
	return rc ? gci_error_set(e, GCOLL_ERR_SYS, "cannot use a pipe") : 0;
}

void gci_pipe_drain(uv_pipe_t *p, uv_read_cb on_read)
{
	static char space[16384];
	uv_buf_t buf = uv_buf_init(space, sizeof(space));
	uv_os_fd_t fd;
	ssize_t n;

	while (!uv_is_closing((uv_handle_t *)p) && !uv_fileno((uv_handle_t *)p, &fd)) {
		n = read(fd, space, sizeof(space));
		if (n <= 0)
			return;
		on_read((uv_stream_t *)p, n, &buf);
	}
}
