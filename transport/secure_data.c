/* SPDX-License-Identifier: MIT
 * What follows a handshake: data in records, from the caller's memory to a batch that is sent, and
 * from what was taken to the caller's memory; and the few messages of TLS among them. */
#include "base/mem.h"
#include "transport/secure_impl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <string.h>

#define REKEY_RECORDS    (1ull << 22)
#define CLOSE_NOTIFY     0
#define KEY_UPDATE       24
#define KEY_UPDATE_BYTES 5
#define MOST_CONTROL     8 /* of a message that is no data, as much as is looked at */

int gci_secure_begin_data(struct gci_secure *s, struct gci_error *e)
{
	if (!s->has_traffic[0] || !s->has_traffic[1] || SSL_has_pending(s->ssl)) {
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: the handshake did not end where it should");
		return -EPROTO;
	}
	if (!gci_records_init(&s->tx, s->traffic[!s->connects], 1) &&
		!gci_records_init(&s->rx, s->traffic[s->connects], 0))
		return 0;
	ERR_clear_error();
	gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	return -ENOMEM;
}

void gci_secure_end_data(struct gci_secure *s)
{
	gci_records_deinit(&s->tx);
	gci_records_deinit(&s->rx);
	if (s->spill)
		OPENSSL_cleanse(s->spill, GCI_RECORD_NBYTES);
	gci_free(s->spill);
	gci_free(s->in);
}

unsigned gci_secure_nrekeys(const struct gci_secure *s)
{
	return s->nrekeys;
}

static size_t iov_nbytes(const struct iovec *iov, int niov)
{
	size_t n = 0;
	int i;

	for (i = 0; i < niov; i++)
		n += iov[i].iov_len;
	return n;
}

/* Nothing goes on. Returns `rc`. */
static int broken(struct gci_secure *s, int rc, const char *why, struct gci_error *e)
{
	s->broken = rc;
	s->why = why;
	if (rc == -ENOMEM)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for TLS");
	else
		gci_error_set(e, GCOLL_ERR_PROTO, "TLS: %s", why);
	ERR_clear_error();
	return rc;
}

/* ---- out */

/* 0 or a negative errno. */
static int seal(struct gci_secure *s, enum gci_record_type type, const struct iovec *iov, int niov,
	size_t skip, size_t n)
{
	ssize_t nbytes =
		gci_records_seal(&s->tx, type, iov, niov, skip, n, s->out.data + s->out.len);

	if (nbytes < 0)
		return (int)nbytes;
	s->out.len += (size_t)nbytes;
	return 0;
}

/* A new key, when this one has served long enough. That it comes is said with the old one. */
static int renew(struct gci_secure *s)
{
	uint8_t update[KEY_UPDATE_BYTES] = {KEY_UPDATE, 0, 0, 1, 0 /* yours may stay */};
	const struct iovec iov = {update, sizeof(update)};
	uint64_t most = s->ctx->config.rekey_records;
	int rc;

	if (!most || most > REKEY_RECORDS)
		most = REKEY_RECORDS;
	if (!s->asked && s->tx.keys->nrecords < most)
		return 0;
	rc = seal(s, GCI_RECORD_HANDSHAKE, &iov, 1, 0, sizeof(update));
	if (rc || gci_records_renew(&s->tx))
		return rc ? rc : -ENOMEM;
	s->asked = 0;
	s->nrekeys++;
	return 0;
}

ssize_t gci_secure_write(
	struct gci_secure *s, const struct iovec *iov, int niov, size_t skip, struct gci_error *e)
{
	const size_t frame = GCI_RECORD_HEAD + GCI_RECORD_TAIL, update = frame + KEY_UPDATE_BYTES;
	size_t all = iov_nbytes(iov, niov), done, n;
	int rc = s->broken;

	all = skip < all ? all - skip : 0;
	if (all > GCI_SECURE_BATCH) /* a short rest goes along, not with a system call of its own */
		all = GCI_SECURE_BATCH - GCI_RECORD_NBYTES;
	if (!gci_buf_room(&s->out, all + (all / GCI_RECORD_NBYTES + 1) * (frame + update)))
		rc = -ENOMEM;
	for (done = 0; done < all && !rc; done += n) {
		n = all - done < GCI_RECORD_NBYTES ? all - done : GCI_RECORD_NBYTES;
		rc = renew(s);
		if (!rc)
			rc = seal(s, GCI_RECORD_DATA, iov, niov, skip + done, n);
	}
	if (rc)
		return broken(s, rc, s->broken ? s->why : "nothing more can be encrypted", e);
	return (ssize_t)all;
}

/* ---- in */

/* Takes what has come. 1, 0 for the end, or a negative errno. */
static int refill(struct gci_secure *s, struct gci_error *e)
{
	ssize_t got;

	if (!s->in)
		s->in = gci_reallocarray(NULL, GCI_SECURE_IN, 1);
	if (!s->in)
		return broken(s, -ENOMEM, NULL, e);
	if (s->lo)
		memmove(s->in, s->in + s->lo, s->hi - s->lo);
	s->hi -= s->lo;
	s->lo = 0;
	got = s->take(s->user, s->in + s->hi, GCI_SECURE_IN - s->hi);
	if (got > 0)
		s->hi += (size_t)got;
	else if (got < 0 && got != -EAGAIN)
		gci_error_set(e, GCOLL_ERR_SYS, "TLS: %s", strerror((int)-got));
	return got > 0 ? 1 : (int)got;
}

/* A message of TLS itself. As step. */
static int control(struct gci_secure *s, int type, const uint8_t *p, size_t n, struct gci_error *e)
{
	static const uint8_t update[KEY_UPDATE_BYTES - 1] = {KEY_UPDATE, 0, 0, 1};

	if (type == GCI_RECORD_ALERT && n == 2 && p[1] == CLOSE_NOTIFY) {
		s->ended = 1;
		return 0;
	}
	if (type == GCI_RECORD_ALERT && n == 2)
		return broken(s, -EBADMSG, "the peer has ended the connection by an alert", e);
	if (type != GCI_RECORD_HANDSHAKE || n != KEY_UPDATE_BYTES ||
		memcmp(p, update, sizeof(update)) != 0 || p[4] > 1)
		return broken(s, -EBADMSG, "a message that has no place behind the handshake", e);
	if (gci_records_renew(&s->rx))
		return broken(s, -ENOMEM, NULL, e);
	s->asked |= p[4];
	return 1;
}

/* Copies n bytes between the iovecs, behind their first `skip`, and a buffer. */
static void copy(const struct iovec *iov, size_t skip, uint8_t *buf, size_t n, int out)
{
	size_t off, k;

	for (; n; iov++, n -= k, buf += k) {
		off = skip < iov->iov_len ? skip : iov->iov_len;
		skip -= off;
		k = iov->iov_len - off < n ? iov->iov_len - off : n;
		if (out)
			memcpy((uint8_t *)iov->iov_base + off, buf, k);
		else
			memcpy(buf, (uint8_t *)iov->iov_base + off, k);
	}
}

/* Opens the record that stands at s->lo: where data goes, if there is room for all of it. */
static int open_record(struct gci_secure *s, size_t nbytes, const struct iovec *iov, int niov,
	size_t room, size_t *total, struct gci_error *e)
{
	const struct iovec spill = {s->spill, GCI_RECORD_NBYTES};
	const uint8_t *record = s->in + s->lo;
	int fits = gci_records_room(nbytes) <= room - *total, type = 0;
	size_t skip = fits ? *total : 0;
	uint8_t bytes[MOST_CONTROL];
	ssize_t n;

	if (!fits) {
		iov = &spill;
		niov = 1;
	}
	n = gci_records_open(&s->rx, record, nbytes, iov, niov, skip, &type);
	if (n < 0)
		return broken(s, (int)n, "a record that was not made with the connection's key", e);
	s->lo += nbytes;
	if (type != GCI_RECORD_DATA) {
		copy(iov, skip, bytes, (size_t)n < sizeof(bytes) ? (size_t)n : sizeof(bytes), 0);
		return control(s, type, bytes, (size_t)n, e);
	}
	if (fits) {
		*total += (size_t)n;
	} else {
		s->spill_lo = 0;
		s->spill_hi = (size_t)n;
	}
	return 1;
}

/* One step towards `room` bytes. 1: go on; 0: the end; a negative errno. */
static int step(struct gci_secure *s, const struct iovec *iov, int niov, size_t room, size_t *total,
	struct gci_error *e)
{
	size_t n = s->spill_hi - s->spill_lo;
	ssize_t nbytes;

	if (n) {
		if (n > room - *total)
			n = room - *total;
		copy(iov, *total, s->spill + s->spill_lo, n, 1);
		s->spill_lo += n;
		*total += n;
		return 1;
	}
	if (s->ended)
		return 0;
	if (s->broken)
		return broken(s, s->broken, s->why, e);
	nbytes = s->in ? gci_records_glance(s->in + s->lo, s->hi - s->lo) : 0;
	if (nbytes < 0)
		return broken(s, -EBADMSG, "what came is no record", e);
	if (!nbytes || (size_t)nbytes > s->hi - s->lo)
		return refill(s, e);
	if (!s->spill && gci_records_room((size_t)nbytes) > room - *total) {
		s->spill = gci_reallocarray(NULL, GCI_RECORD_NBYTES, 1);
		if (!s->spill)
			return broken(s, -ENOMEM, NULL, e);
	}
	return open_record(s, (size_t)nbytes, iov, niov, room, total, e);
}

ssize_t gci_secure_read(
	struct gci_secure *s, const struct iovec *iov, int niov, struct gci_error *e)
{
	const size_t room = iov_nbytes(iov, niov);
	size_t total = 0;
	int rc = 1;

	while (total < room && rc > 0)
		rc = step(s, iov, niov, room, &total, total ? NULL : e);
	return total || rc > 0 ? (ssize_t)total : rc;
}
