/* SPDX-License-Identifier: MIT
 * AES-128-GCM in pieces, for one direction of a connection, by libcrypto.
 *
 *	rc = gci_gcm_init(&g, 1);				// seals
 *	rc = gci_gcm_key(&g, key);				// and again for the next key
 *	ok = gci_gcm_begin(&g, nonce, head, sizeof(head)) &&	// once per nonce
 *	     gci_gcm_update(&g, out, in, nbytes) &&		// as often as there are pieces
 *	     gci_gcm_finish(&g, tag);				// makes it; or compares, if g opens
 *	gci_gcm_deinit(&g);
 *
 * Keys are wiped by deinit; in children by fork they are not, since it is libcrypto's memory. One thread
 * at a time. */
#ifndef GCI_TRANSPORT_GCM_H
#define GCI_TRANSPORT_GCM_H

#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>

#define GCI_GCM_KEY   16
#define GCI_GCM_NONCE 12
#define GCI_GCM_TAG   16

struct gci_gcm {
	EVP_CIPHER_CTX *ctx; /* NULL: not made, or given back */
	int seals;
};

/* 0, or -1: out of memory. */
int gci_gcm_init(struct gci_gcm *g, int seals);
void gci_gcm_deinit(struct gci_gcm *g); /* also of one that is zero */

/* 0, or -1: out of memory. */
int gci_gcm_key(struct gci_gcm *g, const uint8_t key[GCI_GCM_KEY]);

/* These: true, unless out of memory. `head` is authenticated along. */
int gci_gcm_begin(
	struct gci_gcm *g, const uint8_t nonce[GCI_GCM_NONCE], const uint8_t *head, size_t n);
int gci_gcm_update(struct gci_gcm *g, uint8_t *out, const uint8_t *in, size_t n);

/* Writes the tag; or, if g opens, true if this is it, found in constant time. */
int gci_gcm_finish(struct gci_gcm *g, uint8_t tag[GCI_GCM_TAG]);

#endif
