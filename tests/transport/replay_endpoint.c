/* SPDX-License-Identifier: MIT */
#include "tests/transport/replay_endpoint.h"

#include "base/crc32c.h"

#include <string.h>

#define ROOM 1000 /* for copies */

struct gci_ep ep;
struct gci_stream stream[2];
const struct gci_life *closed;
int ndone, last_status;

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	(void)user;
	(void)peer;
	*out = (struct gci_tp_link){.streams = 2, .eager_nbytes = 1 << 20, .replay_nbytes = ROOM};
}

static void nothing(void *user, int peer)
{
	(void)user;
	(void)peer;
}

static void on_close(void *user, int peer, const struct gci_life *life)
{
	(void)user;
	(void)peer;
	closed = life;
}

static void on_done(struct gci_tp_req *r, int status)
{
	(void)r;
	ndone++;
	last_status = status;
}

static const struct gci_tp_config config = {.rank = 1, .size = 2, .epoch = 5, .link = on_link};

int setup(void **state)
{
	static const struct gci_ep_io io = {.need = nothing, .kick = nothing, .close = on_close};
	unsigned i;

	(void)state;
	closed = NULL;
	ndone = last_status = 0;
	assert_int_equal(gci_ep_init(&ep, &config, &io), 0);
	assert_non_null(gci_ep_peer(&ep, 0));
	for (i = 0; i < 2; i++) {
		assert_int_equal(gci_stream_init(&stream[i], &ep, 0, i, 1), 0);
		/* Not new: a frame holds all that it may. */
		ep.peers[0]->stats.tx_stream_nbytes[i] = 4 * GCI_TP_FRAME_NBYTES;
	}
	return 0;
}

int teardown(void **state)
{
	(void)state;
	gci_stream_deinit(&stream[0]);
	gci_stream_deinit(&stream[1]);
	gci_ep_free(&ep);
	return 0;
}

#define MOST_NBYTES 20000 /* of a frame that is fed */

static int feed_bytes(struct gci_stream *s, const uint8_t *p, size_t n)
{
	struct iovec iov[GCI_STREAM_IN];
	int rc = 0;

	while (n && !rc) {
		size_t part;

		gci_stream_in(s, iov);
		part = n < iov[0].iov_len ? n : iov[0].iov_len;
		memcpy(iov[0].iov_base, p, part);
		rc = gci_stream_received(s, part);
		p += part;
		n -= part;
	}
	return rc;
}

int feed(struct gci_stream *s, struct gci_frame f, size_t nbytes)
{
	uint8_t bytes[GCI_FRAME_HEAD_NBYTES + MOST_NBYTES];

	memset(bytes, 7, sizeof(bytes));
	f.epoch = 5;
	f.crc = gci_crc32c(0, bytes, f.nbytes);
	gci_frame_encode(&f, bytes);
	return feed_bytes(s, bytes, GCI_FRAME_HEAD_NBYTES + nbytes);
}

int feed_flipped(struct gci_stream *s, struct gci_frame f, size_t at)
{
	uint8_t bytes[GCI_FRAME_HEAD_NBYTES + MOST_NBYTES];

	memset(bytes, 7, sizeof(bytes));
	f.epoch = 5;
	f.crc = gci_crc32c(0, bytes, f.nbytes);
	gci_frame_encode(&f, bytes);
	bytes[at] ^= 16;
	return feed_bytes(s, bytes, GCI_FRAME_HEAD_NBYTES + f.nbytes);
}

struct gci_frame data(uint32_t tag, uint64_t length, uint64_t offset, uint32_t nbytes)
{
	return (struct gci_frame){.type = GCI_FRAME_DATA,
		.flags = GCI_FRAME_EAGER,
		.key.tag = tag,
		.length = length,
		.offset = offset,
		.nbytes = nbytes};
}

struct gci_frame lost(uint32_t which, uint32_t life, uint64_t count)
{
	return (struct gci_frame){
		.type = GCI_FRAME_LOST, .key = {.comm = life, .tag = which}, .length = count};
}

struct gci_tp_req request(uint32_t tag, void *buf, uint64_t nbytes)
{
	return (struct gci_tp_req){
		.key.tag = tag, .buf = buf, .nbytes = nbytes, .align = 1, .done = on_done};
}

struct gci_frame sends(struct gci_stream *s)
{
	struct iovec iov[GCI_STREAM_OUT];
	int i, n = gci_stream_out(s, iov);
	size_t nbytes = 0;
	struct gci_frame f = {0};

	if (n)
		assert_int_equal(gci_frame_decode(iov[0].iov_base, &f, NULL), 0);
	for (i = 0; i < n; i++)
		nbytes += iov[i].iov_len;
	gci_stream_sent(s, nbytes);
	return f;
}
