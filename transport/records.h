/* SPDX-License-Identifier: MIT
 * TLS 1.3's record protection (RFC 8446, 5.2 to 5.4) after the handshake, with
 * TLS_AES_128_GCM_SHA256, for one direction of a connection. No I/O: a traffic secret and bytes in,
 * bytes out. What OpenSSL's SSL_read and SSL_write would copy on the way goes straight from and to
 * the caller's memory here. The other end may be any TLS 1.3.
 *
 *	rc = gci_records_init(&tx, secret, 1);			// seals
 *	n = gci_records_seal(&tx, GCI_RECORD_DATA, iov, niov, skip, nbytes, out);
 *	rc = gci_records_renew(&tx);				// behind a KeyUpdate
 *	gci_records_deinit(&tx);
 *
 *	rc = gci_records_init(&rx, secret, 0);			// opens
 *	n = gci_records_glance(in, nin);		// a record's length, once it is known
 *	nbytes = gci_records_open(&rx, in, n, iov, niov, skip, &type);
 *
 * Keys are wiped by deinit, and in children by fork: there nothing is sealed or opened, since two
 * processes that seal with one key use each nonce twice. One thread at a time. */
#ifndef GCI_TRANSPORT_RECORDS_H
#define GCI_TRANSPORT_RECORDS_H

#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define GCI_RECORD_HEAD   5
#define GCI_RECORD_TAIL   17          /* the content's type and the tag */
#define GCI_RECORD_NBYTES (16u << 10) /* most content of one */
#define GCI_RECORD_WHOLE  (GCI_RECORD_HEAD + GCI_RECORD_NBYTES + GCI_RECORD_TAIL)
#define GCI_RECORD_SECRET 32
#define GCI_RECORDS_MOST  (1ull << 24) /* sealed with one key; AES-GCM's limit is 2^24.5 (5.5) */

enum gci_record_type {
	GCI_RECORD_ALERT = 21,
	GCI_RECORD_HANDSHAKE = 22,
	GCI_RECORD_DATA = 23,
};

/* AES-128-GCM for one direction, by libcrypto. */
#define GCI_GCM_KEY   16
#define GCI_GCM_NONCE 12
#define GCI_GCM_TAG   16

struct gci_gcm {
	EVP_CIPHER_CTX *ctx; /* NULL: not made, or given back */
	int seals;
};

/* In memory for secrets: to a child by fork it is zero. */
struct gci_record_keys {
	uint8_t secret[GCI_RECORD_SECRET];
	uint8_t iv[GCI_GCM_NONCE];
	uint64_t nrecords; /* with this key: the next one's number */
	int ours;
};

struct gci_records {
	struct gci_gcm gcm;
	struct gci_record_keys *keys;
};

/* From CLIENT_ or SERVER_TRAFFIC_SECRET_0. 0, or -1: out of memory. */
int gci_records_init(struct gci_records *r, const uint8_t secret[GCI_RECORD_SECRET], int seals);
void gci_records_deinit(struct gci_records *r); /* also of one that is zero */

/* The next generation of keys (7.2): the sender of a KeyUpdate renews behind it, its receiver
 * likewise. 0, or -1, and then no record will pass any more. */
int gci_records_renew(struct gci_records *r);

/* Makes a record of `nbytes`, at most GCI_RECORD_NBYTES, of the iovecs behind their first `skip`.
 * `out` has room for GCI_RECORD_HEAD + nbytes + GCI_RECORD_TAIL bytes, and this is what it returns;
 * or -EINVAL: there are not so many, or -ENOMEM, -EOVERFLOW: too many records with one key, or
 * -EOWNERDEAD: this process is a child by fork of the key's. */
ssize_t gci_records_seal(struct gci_records *r, enum gci_record_type type, const struct iovec *iov,
	int niov, size_t skip, size_t nbytes, uint8_t *out);

/* How long the record is that begins here, header and all; 0: that is not known yet; -1: no
 * protected record begins like this. The header is not authenticated before the record is. */
ssize_t gci_records_glance(const uint8_t *bytes, size_t n);

/* Opens a whole record of `nbytes` into the iovecs behind their first `skip`, where there is room
 * for gci_records_room of it. How much content there is (0 is legal of data only), with its type;
 * or -EBADMSG: it was not made with this key as the next record, or has no type; -ENOMEM, -EINVAL:
 * there is less room, -EOVERFLOW: the key could not be renewed, -EOWNERDEAD. Memory behind the
 * content, and after a failure all of it, may have been written to: it means nothing. */
ssize_t gci_records_open(struct gci_records *r, const uint8_t *record, size_t nbytes,
	const struct iovec *iov, int niov, size_t skip, int *type);

static inline size_t gci_records_room(size_t nbytes)
{
	return nbytes - GCI_RECORD_HEAD - GCI_RECORD_TAIL;
}

#endif
