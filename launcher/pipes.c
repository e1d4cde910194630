/* SPDX-License-Identifier: MIT */
#include "launcher/pipes.h"

#include "base/mem.h"

#include <string.h>

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
