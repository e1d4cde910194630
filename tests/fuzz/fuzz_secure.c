/* SPDX-License-Identifier: MIT
 * TLS before anybody is authenticated: what a stranger sends to one that accepts, or a stranger
 * that is connected to answers. The first byte says which, and how the rest comes in pieces.
 * Without the key none is ever let in, whatever it sends, and none gets more than a few KiB. */
#include "transport/secure.h"

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
	/* A secret that no input knows. */
	static const struct gci_secure_config config = {
		.secret = "\x8d\x11\x0f\xe2\x5c\x74", .epoch = 1, .self = 1, .size = 2};
	static struct gci_secure_ctx *ctx;

	if (!ctx && gci_secure_ctx_create(&ctx, &config, NULL))
		abort();
	return ctx;
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
	if (!gci_secure_identify(data + 1, size - 1, &told) && told.client >= told.server)
		abort();
	rc = gci_secure_glance(context(), data + 1, size - 1);
	if (rc < -1 || rc > 1 || (rc == 0 && size - 1 >= GCI_SECURE_FIRST))
		abort();
	rc = 0;
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
