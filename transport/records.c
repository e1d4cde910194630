/* SPDX-License-Identifier: MIT */
#include "transport/records.h"

#include "base/mem.h"
#include "transport/secret.h"

#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

/* ---- AES-128-GCM in pieces. One begins anew for each nonce.
 *
 *	rc = gci_gcm_init(&g, 1);				// seals
 *	rc = gci_gcm_key(&g, key);				// and again for the next key
 *	ok = gci_gcm_begin(&g, nonce, head, sizeof(head)) &&	// once per nonce
 *	     gci_gcm_update(&g, out, in, nbytes) &&		// as often as there are pieces
 *	     gci_gcm_finish(&g, tag);				// makes it; or compares, if g opens
 *	gci_gcm_deinit(&g);
 *
 * Keys are wiped by deinit; in children by fork they are not, since it is libcrypto's memory. */

/* Also of one that is zero. */
static void gci_gcm_deinit(struct gci_gcm *g)
{
	EVP_CIPHER_CTX_free(g->ctx); /* which wipes it */
	*g = (struct gci_gcm){0};
}

/* 0, or -1: out of memory. */
static int gci_gcm_init(struct gci_gcm *g, int seals)
{
	EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int ok = gcm && ctx && EVP_CipherInit_ex(ctx, gcm, NULL, NULL, NULL, seals);

	EVP_CIPHER_free(gcm);
	*g = (struct gci_gcm){.ctx = ctx, .seals = seals};
	if (!ok)
		gci_gcm_deinit(g);
	return ok ? 0 : -1;
}

/* 0, or -1: out of memory. */
static int gci_gcm_key(struct gci_gcm *g, const uint8_t key[GCI_GCM_KEY])
{
	return EVP_CipherInit_ex(g->ctx, NULL, NULL, key, NULL, g->seals) ? 0 : -1;
}

/* These: true, unless out of memory. `head` is authenticated along. */
static int gci_gcm_begin(
	struct gci_gcm *g, const uint8_t nonce[GCI_GCM_NONCE], const uint8_t *head, size_t n)
{
	int taken;

	return EVP_CipherInit_ex(g->ctx, NULL, NULL, NULL, nonce, g->seals) &&
	       EVP_CipherUpdate(g->ctx, NULL, &taken, head, (int)n);
}

static int gci_gcm_update(struct gci_gcm *g, uint8_t *out, const uint8_t *in, size_t n)
{
	int made;

	return !n || EVP_CipherUpdate(g->ctx, out, &made, in, (int)n);
}

/* Writes the tag; or, if g opens, true if this is it, found in constant time. */
static int gci_gcm_finish(struct gci_gcm *g, uint8_t tag[GCI_GCM_TAG])
{
	uint8_t none[GCI_GCM_TAG];
	int n;

	if (g->seals)
		return EVP_CipherFinal_ex(g->ctx, none, &n) &&
		       EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_GET_TAG, GCI_GCM_TAG, tag);
	return EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_SET_TAG, GCI_GCM_TAG, tag) &&
	       EVP_CipherFinal_ex(g->ctx, none, &n) > 0;
}

/* ---- Records. */

/* Key and iv of the present secret. */
static int set_key(struct gci_records *r)
{
	struct gci_record_keys *k = r->keys;
	uint8_t key[GCI_GCM_KEY];
	int ok = !gci_derive_label(k->secret, "key", NULL, 0, key, sizeof(key)) &&
		 !gci_derive_label(k->secret, "iv", NULL, 0, k->iv, sizeof(k->iv)) &&
		 !gci_gcm_key(&r->gcm, key);

	OPENSSL_cleanse(key, sizeof(key));
	k->nrecords = ok ? 0 : UINT64_MAX;
	return ok ? 0 : -1;
}

int gci_records_init(struct gci_records *r, const uint8_t secret[GCI_RECORD_SECRET], int seals)
{
	*r = (struct gci_records){.keys = gci_secret_alloc(sizeof(*r->keys))};
	if (r->keys && !gci_gcm_init(&r->gcm, seals)) {
		r->keys->ours = 1;
		memcpy(r->keys->secret, secret, sizeof(r->keys->secret));
		if (!set_key(r))
			return 0;
	}
	gci_records_deinit(r);
	return -1;
}

void gci_records_deinit(struct gci_records *r)
{
	gci_gcm_deinit(&r->gcm);
	gci_secret_free(r->keys);
	r->keys = NULL;
}

int gci_records_renew(struct gci_records *r)
{
	uint8_t next[GCI_RECORD_SECRET];

	if (gci_derive_label(r->keys->secret, "traffic upd", NULL, 0, next, sizeof(next))) {
		r->keys->nrecords = UINT64_MAX;
		return -1;
	}
	memcpy(r->keys->secret, next, sizeof(next));
	OPENSSL_cleanse(next, sizeof(next));
	return set_key(r);
}

/* The next record's nonce (5.3), and its header, which is authenticated along. */
static int begin(struct gci_records *r, const uint8_t head[GCI_RECORD_HEAD])
{
	uint64_t number = htobe64(r->keys->nrecords);
	uint8_t nonce[GCI_GCM_NONCE], *p = (uint8_t *)&number;
	int i;

	memcpy(nonce, r->keys->iv, sizeof(nonce));
	for (i = 0; i < 8; i++)
		nonce[4 + i] ^= p[i];
	return gci_gcm_begin(&r->gcm, nonce, head, GCI_RECORD_HEAD);
}

ssize_t gci_records_seal(struct gci_records *r, enum gci_record_type type, const struct iovec *iov,
	int niov, size_t skip, size_t nbytes, uint8_t *out)
{
	const size_t body = nbytes + GCI_RECORD_TAIL;
	const uint8_t head[GCI_RECORD_HEAD] = {
		GCI_RECORD_DATA, 3, 3, (uint8_t)(body >> 8), (uint8_t)body};
	const uint8_t what = (uint8_t)type;
	size_t left = nbytes, off, n;
	uint8_t *p = out;
	int i;

	if (!r->keys->ours)
		return -EOWNERDEAD;
	if (r->keys->nrecords >= GCI_RECORDS_MOST)
		return -EOVERFLOW;
	if (nbytes > GCI_RECORD_NBYTES)
		return -EINVAL;
	if (!begin(r, head))
		return -ENOMEM;
	memcpy(p, head, sizeof(head));
	p += sizeof(head);
	for (i = 0; i < niov && left; i++, left -= n, p += n) {
		off = skip < iov[i].iov_len ? skip : iov[i].iov_len;
		skip -= off;
		n = iov[i].iov_len - off < left ? iov[i].iov_len - off : left;
		if (!gci_gcm_update(&r->gcm, p, (const uint8_t *)iov[i].iov_base + off, n))
			return -ENOMEM;
	}
	if (left)
		return -EINVAL;
	if (!gci_gcm_update(&r->gcm, p, &what, 1) || !gci_gcm_finish(&r->gcm, p + 1))
		return -ENOMEM;
	r->keys->nrecords++;
	return (ssize_t)(GCI_RECORD_HEAD + body);
}

ssize_t gci_records_glance(const uint8_t *bytes, size_t n)
{
	static const uint8_t begins[] = {GCI_RECORD_DATA, 3, 3};
	size_t body;

	if (n && memcmp(bytes, begins, n < sizeof(begins) ? n : sizeof(begins)) != 0)
		return -1;
	if (n < GCI_RECORD_HEAD)
		return 0;
	body = (size_t)(bytes[3] << 8 | bytes[4]);
	if (body < GCI_RECORD_TAIL || body > GCI_RECORD_NBYTES + GCI_RECORD_TAIL)
		return -1;
	return (ssize_t)(GCI_RECORD_HEAD + body);
}

/* Where content, in the iovecs from `from` on, ends: behind it come its type and padding, which is
 * zeros (5.4), up to `end`. `type` is what follows `end`, and stays 0 if there is none. */
static size_t strip(const struct iovec *iov, int niov, size_t from, size_t end, int *type)
{
	size_t start = 0;
	int i;

	for (i = 0; i < niov; i++)
		start += iov[i].iov_len;
	for (i = niov - 1; i >= 0 && !*type; i--) {
		const uint8_t *p = iov[i].iov_base;

		start -= iov[i].iov_len;
		while (end > start && end > from && !*type)
			*type = p[--end - start];
	}
	return end - from;
}

ssize_t gci_records_open(struct gci_records *r, const uint8_t *record, size_t nbytes,
	const struct iovec *iov, int niov, size_t skip, int *type)
{
	const size_t room = gci_records_room(nbytes);
	const uint8_t *in = record + GCI_RECORD_HEAD;
	uint8_t tag[GCI_GCM_TAG], last;
	size_t left = room, before = skip, off, n;
	int i;

	if (!r->keys->ours)
		return -EOWNERDEAD;
	if (r->keys->nrecords == UINT64_MAX)
		return -EOVERFLOW;
	if (!begin(r, record))
		return -ENOMEM;
	for (i = 0; i < niov && left; i++, left -= n, in += n) {
		off = before < iov[i].iov_len ? before : iov[i].iov_len;
		before -= off;
		n = iov[i].iov_len - off < left ? iov[i].iov_len - off : left;
		if (!gci_gcm_update(&r->gcm, (uint8_t *)iov[i].iov_base + off, in, n))
			return -ENOMEM;
	}
	if (left)
		return -EINVAL;
	memcpy(tag, in + 1, sizeof(tag));
	if (!gci_gcm_update(&r->gcm, &last, in, 1))
		return -ENOMEM;
	if (!gci_gcm_finish(&r->gcm, tag))
		return -EBADMSG;
	r->keys->nrecords++;
	*type = last;
	n = *type ? room : strip(iov, niov, skip, skip + room, type);
	return *type && (n || *type == GCI_RECORD_DATA) ? (ssize_t)n : -EBADMSG;
}
