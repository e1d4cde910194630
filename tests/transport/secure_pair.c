/* SPDX-License-Identifier: MIT */
#include "tests/transport/secure_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static ssize_t take(void *user, void *buf, size_t n)
{
	struct pipe *p = user;

	if (p->lo == p->hi)
		return p->ended ? 0 : -EAGAIN;
	if (n > p->piece)
		n = p->piece;
	if (n > p->hi - p->lo)
		n = p->hi - p->lo;
	memcpy(buf, p->bytes + p->lo, n);
	p->lo += n;
	if (p->lo == p->hi)
		p->lo = p->hi = 0;
	return (ssize_t)n;
}

void put(struct pipe *p, const void *bytes, size_t n)
{
	assert_true(n <= sizeof(p->bytes) - p->hi);
	memcpy(p->bytes + p->hi, bytes, n);
	p->hi += n;
}

void carry(struct pair *w, int from)
{
	const uint8_t *p;
	size_t n;

	while ((p = gci_secure_out(w->end[from], &n)) != NULL) {
		put(w->to[!from], p, n);
		gci_secure_sent(w->end[from], n);
	}
}

const struct gci_secure_config right = {.secret = "the job's", .epoch = 3, .self = 1, .size = 2};
const struct gci_secure_name zero_to_one = {.epoch = 3, .client = 0, .server = 1};

void open_pair(struct pair *w, const struct gci_secure_config *client,
	const struct gci_secure_config *server, const struct gci_secure_name *name)
{
	int i;

	memset(w, 0, sizeof(*w));
	for (i = 0; i < 2; i++) {
		w->to[i] = calloc(1, sizeof(*w->to[i]));
		assert_non_null(w->to[i]);
		w->to[i]->piece = SIZE_MAX;
		assert_int_equal(gci_secure_ctx_create(&w->ctx[i], i ? server : client, NULL), 0);
		assert_int_equal(gci_secure_create(&w->end[i], w->ctx[i], i ? NULL : name, take,
					 w->to[i], NULL),
			0);
	}
}

void close_pair(struct pair *w)
{
	int i;

	for (i = 0; i < 2; i++) {
		gci_secure_free(w->end[i]);
		gci_secure_ctx_free(w->ctx[i]);
		free(w->to[i]);
	}
}

void accept_anew(struct pair *w)
{
	gci_secure_free(w->end[1]);
	w->to[1]->lo = w->to[1]->hi = 0;
	assert_int_equal(gci_secure_create(&w->end[1], w->ctx[1], NULL, take, w->to[1], NULL), 0);
}

int shake(struct pair *w)
{
	int i, turn, rc[2] = {0, 0};

	for (turn = 0; turn < 20 && !(rc[0] > 0 && rc[1] > 0); turn++)
		for (i = 0; i < 2; i++) {
			rc[i] = gci_secure_shake(w->end[i], &w->e[i]);
			carry(w, i);
			if (rc[i] < 0)
				return rc[i];
		}
	assert_true(rc[0] > 0 && rc[1] > 0);
	return 1;
}
