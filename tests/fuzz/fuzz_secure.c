/* SPDX-License-Identifier: MIT
 * TLS before anybody is authenticated: what a stranger sends to one that accepts, or a stranger
 * that is connected to answers. The first byte says which, and how the rest comes in pieces.
 * Without the key none is ever let in, whatever it sends, and none gets more than a few KiB. And
 * the same bytes behind a handshake: as they are, and as a script for a peer that has the key. */
#include "transport/secure_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OUT 2048 /* of a handshake without certificates */

struct input {
	const uint8_t *data;
	size_t left, piece, taken;
	int dry; /* hands over nothing every other time */
};

static ssize_t take(void *user, void *buf, size_t n)
{
	struct input *in = user;

	in->dry ^= 1;
	if (in->dry && in->left)
		return -EAGAIN;
	if (n > in->piece)
		n = in->piece;
	if (n > in->left)
		n = in->left;
	memcpy(buf, in->data, n);
	in->data += n;
	in->left -= n;
	in->taken += n;
	return (ssize_t)n; /* 0: it has hung up */
}

static struct gci_secure_ctx *context(void)
{
	/* Of all inputs only the hello among the seeds was made with this secret. */
	static const struct gci_secure_config config = {
		.secret = "\x8d\x11\x0f\xe2\x5c\x74", .epoch = 1, .self = 1, .size = 2};
	static struct gci_secure_ctx *ctx;

	if (!ctx && gci_secure_ctx_create(&ctx, &config, NULL))
		abort();
	return ctx;
}

/* ---- behind the handshake */

#define STREAM_NBYTES (128u << 10)

static const uint8_t traffic[GCI_RECORD_SECRET] = "of one direction";

/* Reads all of the input, and checks that it ends as expected, with these bytes before. */
static void expect(struct input in, ssize_t end, const uint8_t *bytes, size_t n)
{
	static uint8_t got[STREAM_NBYTES + 300];
	struct gci_secure *s;
	size_t have = 0;
	ssize_t k;

	if (gci_secure_create(&s, context(), NULL, take, &in, NULL))
		return;
	s->ready = !gci_records_init(&s->rx, traffic, 0);
	if (!s->ready)
		abort();
	do {
		struct iovec v[2] = {{got + have, 1 + in.piece % 299}};

		v[1].iov_base = got + have + v[0].iov_len;
		v[1].iov_len = sizeof(got) - have - v[0].iov_len;
		k = gci_secure_read(s, v, 1 + (have & 1), NULL);
		if (k > 0)
			have += (size_t)k;
	} while (k > 0 || k == -EAGAIN);
	if (k != end || have != n || memcmp(got, bytes, n) != 0)
		abort();
	gci_secure_free(s);
}

struct script {
	const uint8_t *p;
	size_t left;
};

static uint8_t next(struct script *s)
{
	if (!s->left)
		return 0;
	s->left--;
	return *s->p++;
}

/* How a reader must take a record: 1, it goes on; 0, the end; or -EBADMSG. Data are appended. */
static ssize_t meaning(int type, const uint8_t *content, size_t n, uint8_t *data, size_t *ndata,
	struct gci_records *tx)
{
	while (!type && n)
		type = content[--n];
	if (type == GCI_RECORD_DATA) {
		memcpy(data + *ndata, content, n);
		*ndata += n;
		return 1;
	}
	if (type == GCI_RECORD_ALERT && n == 2 && !content[1])
		return 0;
	if (type != GCI_RECORD_HANDSHAKE || n != 5 || content[4] > 1 ||
		memcmp(content, "\x18\0\0\1", 4) != 0)
		return -EBADMSG;
	if (gci_records_renew(tx))
		abort();
	return 1;
}

/* Records of any type, length and content; a bit of one may be another. */
static void play(struct script script, size_t piece)
{
	static uint8_t stream[STREAM_NBYTES], content[GCI_RECORD_NBYTES], data[STREAM_NBYTES];
	size_t nstream = 0, ndata = 0, n, i;
	const struct iovec v = {content, sizeof(content)};
	struct gci_records tx;
	ssize_t end = 1;

	if (gci_records_init(&tx, traffic, 1))
		abort();
	while (script.left && end == 1 && sizeof(stream) - nstream >= GCI_RECORD_WHOLE) {
		int type = next(&script), bit;

		n = next(&script);
		n = n < 192 ? n : (n - 191) * 256;
		memset(content, next(&script), n);
		for (i = 0; i < 6 && i < n; i++)
			content[i] = next(&script);
		bit = next(&script);
		if (gci_records_seal(
			    &tx, (enum gci_record_type)type, &v, 1, 0, n, stream + nstream) < 0)
			abort();
		n += GCI_RECORD_TAIL;
		if (bit < 128) {
			end = meaning(type, content, n - GCI_RECORD_TAIL, data, &ndata, &tx);
		} else {
			stream[nstream + GCI_RECORD_HEAD + (size_t)(bit - 128) * n / 128] ^=
				(uint8_t)(1 << bit % 8);
			end = -EBADMSG;
		}
		nstream += GCI_RECORD_HEAD + n;
	}
	gci_records_deinit(&tx);
	expect((struct input){.data = stream, .left = nstream, .piece = piece + nstream / 512},
		end == 1 ? 0 : end, data, ndata);
}

/* Nothing passes that was not sealed with the key. */
static void forge(const uint8_t *data, size_t size, size_t piece)
{
	struct input in = {.data = data, .left = size, .piece = piece};
	size_t nbytes = 0;
	ssize_t n = gci_records_glance(data, size);

	if (n > 0)
		nbytes = (size_t)n;
	if (n < -1 || nbytes > GCI_RECORD_WHOLE || (n > 0 && n < GCI_RECORD_HEAD + GCI_RECORD_TAIL))
		abort();
	expect(in, n < 0 || (nbytes && nbytes <= size) ? -EBADMSG : 0, data, 0);
}

/* That hello, by its random bytes: with others nobody can make its binder. */
static int is_seed(const uint8_t *bytes, size_t n)
{
	static const uint8_t random[] = {0xfb, 0xb9, 0x35, 0x04, 0xec, 0x36, 0xf8, 0x73, 0x4b, 0xba,
		0x14, 0x2e, 0xa0, 0x17, 0x28, 0x68, 0xe2, 0x00, 0x5f, 0xb8, 0x67, 0x52, 0x43, 0x7d,
		0xb8, 0xad, 0xd1, 0x96, 0xcd, 0x1a, 0x62, 0x5e};

	return n >= 11 + sizeof(random) && !memcmp(bytes + 11, random, sizeof(random));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gci_secure_name name = {.epoch = 1, .client = 0, .server = 1};
	struct gci_secure_name told;
	struct gci_secure *s;
	struct input in;
	size_t n, total = 0;
	int rc = 0;

	if (!size)
		return 0;
	in = (struct input){.data = data + 1, .left = size - 1, .piece = 1u + (data[0] >> 1) * 33u};
	if (!gci_secure_identify(data + 1, size - 1, &told) && told.client == told.server)
		abort();
	rc = gci_secure_glance(context(), data + 1, size - 1);
	if (rc < GCI_SECURE_NO_KEY || rc > 1 || (rc == 0 && size - 1 >= GCI_SECURE_FIRST) ||
		(rc == 1 && !is_seed(data + 1, size - 1)))
		abort();
	rc = 0;
	forge(in.data, in.left, in.piece);
	play((struct script){in.data, in.left}, in.piece);
	if (gci_secure_create(&s, context(), data[0] & 1 ? &name : NULL, take, &in, NULL))
		return 0;
	while (!rc && total < MOST_OUT) {
		rc = gci_secure_shake(s, NULL);
		gci_secure_out(s, &n);
		gci_secure_sent(s, n);
		total += n;
	}
	if (rc >= 0 || total >= MOST_OUT || in.taken > GCI_SECURE_MAX_HANDSHAKE)
		abort();
	gci_secure_free(s);
	return 0;
}
