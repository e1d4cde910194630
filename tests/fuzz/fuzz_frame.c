/* SPDX-License-Identifier: MIT
 * Everything that a peer's bytes can reach: frame headers, hellos, and an endpoint with requests
 * under way, fed through a stream, which may be lost and made again. The input is a program of
 * small instructions; where it gives a frame's fields, the sums are put right, or no input would
 * ever get past them. */
#include "base/buf.h"
#include "base/crc32c.h"
#include "transport/frame.h"
#include "transport/stream.h"

#include <stdlib.h>
#include <string.h>

#define NREQS 64
#define MOST  5000
#define ROOM  6000 /* for copies */

struct run {
	struct gci_ep ep;
	struct gci_stream stream;
	struct gci_tp_req reqs[NREQS];
	int ndone[NREQS];
	unsigned nreqs;
	uint8_t bufs[NREQS][MOST];
	uint64_t handed[NREQS]; /* bytes by piece() */
	int doomed;             /* the peer has lost the stream */
};

static int replays;

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	(void)user;
	(void)peer;
	*out = (struct gci_tp_link){
		.streams = 2, .eager_nbytes = 4096, .replay_nbytes = replays ? ROOM : 0};
}

static void nothing(void *user, int peer)
{
	(void)user;
	(void)peer;
}

static void on_close(void *user, int peer, const struct gci_life *life)
{
	struct run *u = user;

	(void)peer;
	u->doomed |= life == u->stream.life;
}

static void on_done(struct gci_tp_req *r, int status)
{
	struct run *u = r->user;
	size_t i = (size_t)(r - u->reqs);

	if (++u->ndone[i] > 1)
		abort();
	if (!status && r->piece && u->handed[i] != r->nbytes)
		abort();
}

static void on_piece(struct gci_tp_req *r, uint64_t offset, const void *data, size_t nbytes)
{
	struct run *u = r->user;
	size_t i = (size_t)(r - u->reqs);

	if (offset % r->align || offset + nbytes > r->nbytes || u->ndone[i])
		abort();
	memcpy(u->bufs[i] + offset, data, nbytes);
	u->handed[i] += nbytes;
}

static void start(struct run *u, struct gci_reader *in)
{
	uint8_t how = gci_read_u8(in), tag = gci_read_u8(in);
	uint16_t nbytes = gci_read_u16(in);
	struct gci_tp_req *r = &u->reqs[u->nreqs];

	if (u->nreqs == NREQS)
		return;
	*r = (struct gci_tp_req){.peer = 1,
		.key = {.tag = tag % 8},
		.buf = u->bufs[u->nreqs],
		.patient = u->nreqs & 1,
		.nbytes = nbytes % (MOST + 1),
		.align = how & 2 ? 8 : 1,
		.done = on_done,
		.piece = (how & 5) == 4 ? on_piece : NULL,
		.user = u};
	u->nreqs++;
	if (how & 1)
		gci_ep_isend(&u->ep, r);
	else
		gci_ep_irecv(&u->ep, r);
}

static void open_stream(struct run *u)
{
	uint32_t life = gci_ep_next_life(&u->ep, 1, 0);

	if (gci_stream_init(&u->stream, &u->ep, 1, 0, life) && !gci_ep_status(&u->ep))
		abort();
	u->doomed = 0;
}

static void reopen(struct run *u)
{
	gci_stream_lose(&u->stream);
	gci_stream_deinit(&u->stream);
	if (!gci_ep_status(&u->ep))
		open_stream(u);
}

static void feed(struct run *u, const uint8_t *p, size_t n)
{
	struct iovec iov[GCI_STREAM_IN];

	while (n && !gci_ep_status(&u->ep)) {
		size_t part;

		gci_stream_in(&u->stream, iov);
		part = n < iov[0].iov_len ? n : iov[0].iov_len;
		if (!part)
			abort();
		memcpy(iov[0].iov_base, p, part);
		if (gci_stream_received(&u->stream, part) == GCI_STREAM_LOST) {
			reopen(u); /* corrupted */
			return;
		}
		p += part;
		n -= part;
	}
}

/* Up to *n bytes of the input; *n is then how many. */
static const uint8_t *take(struct gci_reader *in, size_t *n)
{
	if (in->failed)
		*n = 0;
	else if (*n > in->len)
		*n = in->len;
	return *n ? gci_read(in, *n) : (const uint8_t *)"";
}

static void feed_frame(struct run *u, struct gci_reader *in)
{
	uint8_t bytes[GCI_FRAME_HEAD_NBYTES + 1024] = {0};
	struct gci_frame f = {
		.type = gci_read_u8(in) % (GCI_FRAME_WAIT + 1), .epoch = 1, .source = 1};
	const uint8_t *payload;
	uint8_t how;
	size_t n;

	f.key.tag = gci_read_u8(in) % 8;
	f.length = gci_read_u16(in);
	f.offset = gci_read_u16(in);
	f.nbytes = gci_read_u16(in) % 1024;
	if (replays) {
		how = gci_read_u8(in);
		f.ack = how & 15;
		f.flags = how >> 4 & GCI_FRAME_ASK;
		f.key.comm = how >> 5;
	}
	how = gci_read_u8(in);
	f.id = how & 7;
	f.back = how >> 2 & 7;
	f.nback = how >> 5 & 1;
	f.flags |= how >> 6 & GCI_FRAME_EAGER;
	f.flags |= how >> 5 & GCI_FRAME_LATER;
	n = f.nbytes;
	payload = take(in, &n);
	memcpy(bytes + GCI_FRAME_HEAD_NBYTES, payload, n);
	f.crc = gci_crc32c(0, bytes + GCI_FRAME_HEAD_NBYTES, f.nbytes);
	gci_frame_encode(&f, bytes);
	feed(u, bytes, GCI_FRAME_HEAD_NBYTES + f.nbytes);
}

static void send_some(struct run *u, size_t most)
{
	struct iovec iov[GCI_STREAM_OUT];
	size_t n = 0;
	int i, niov = gci_stream_out(&u->stream, iov);

	for (i = 0; i < niov; i++)
		n += iov[i].iov_len;
	gci_stream_sent(&u->stream, n < most ? n : most);
}

/* The connection ends, and there is a new one. */
static void lose(struct run *u)
{
	if (!u->stream.life || u->stream.bye_seen || gci_ep_status(&u->ep))
		return;
	if (gci_stream_end(&u->stream, NULL, 0) != GCI_STREAM_LOST)
		abort();
	reopen(u);
}

static void detach(struct run *u, struct gci_reader *in)
{
	size_t n = gci_read_u8(in), i = n & 127;

	if (i >= u->nreqs || u->ndone[i] || u->reqs[i].piece)
		return;
	if (n & 128)
		gci_ep_ask(&u->ep, &u->reqs[i]);
	else
		gci_ep_detach(&u->ep, &u->reqs[i]);
}

static void step(struct run *u, struct gci_reader *in)
{
	const uint8_t *p;
	size_t n;

	if (u->doomed)
		lose(u);
	switch (gci_read_u8(in) % 8) {
	case 0:
		n = gci_read_u8(in);
		p = take(in, &n);
		feed(u, p, n);
		break;
	case 1:
	case 2:
		feed_frame(u, in);
		break;
	case 3:
		start(u, in);
		break;
	case 4:
		send_some(u, gci_read_u16(in));
		break;
	case 5:
		gci_ep_run(&u->ep);
		break;
	case 6:
		lose(u);
		break;
	case 7:
		detach(u, in);
		break;
	}
}

static void try_decoders(const uint8_t *data, size_t size)
{
	uint8_t bytes[GCI_HELLO_NBYTES] = {0}, secret[32] = {0};
	struct gci_hello h;
	struct gci_frame f;

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	gci_store_u32(
		bytes + GCI_FRAME_HEAD_NBYTES - 4, gci_crc32c(0, bytes, GCI_FRAME_HEAD_NBYTES - 4));
	if (!gci_frame_decode(bytes, &f, NULL) && f.type == GCI_FRAME_DATA &&
		(f.offset > f.length || f.nbytes > f.length - f.offset))
		abort();
	gci_hello_decode(bytes, secret, &h, NULL);
}

static int is_bounded(const struct run *u)
{
	const struct gci_ep_peer *p = u->ep.peers[1];

	return p->early_nbytes <= 4096 && (!p->replay || p->replay->nbytes <= ROOM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gci_tp_config config = {
		.rank = 0, .size = 2, .epoch = 1, .link = on_link};
	struct gci_ep_io io = {.need = nothing, .kick = nothing, .close = on_close};
	struct gci_reader in = {data, size, 0};
	struct run *u = calloc(1, sizeof(*u));
	unsigned i;

	try_decoders(data, size);
	replays = size && data[size - 1] & 1; /* so that seeds mean what they did */
	io.user = u;
	if (!u || gci_ep_init(&u->ep, &config, &io) || !gci_ep_peer(&u->ep, 1))
		abort();
	open_stream(u);
	while (in.len && !in.failed && is_bounded(u) && u->stream.staging)
		step(u, &in);
	if (!is_bounded(u))
		abort();
	gci_ep_fail(&u->ep, GCOLL_ERR_ABORTED, -1, "the end");
	for (i = 0; i < 3; i++)
		gci_ep_run(&u->ep);
	for (i = 0; i < u->nreqs; i++)
		if (u->ndone[i] != 1)
			abort();
	gci_stream_deinit(&u->stream);
	gci_ep_free(&u->ep);
	free(u);
	return 0;
}
