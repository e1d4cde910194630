/* SPDX-License-Identifier: MIT
 * AES-128-GCM in pieces, for one direction of a connection.
 *
 *	rc = gci_gcm_init(&g, 1);				// seals
 *	rc = gci_gcm_key(&g, key);				// and again for the next key
 *	ok = gci_gcm_begin(&g, nonce, head, sizeof(head)) &&	// once per nonce
 *	     gci_gcm_update(&g, out, in, nbytes) &&		// as often as there are pieces
 *	     gci_gcm_finish(&g, tag);				// makes it; or compares, if g opens
 *	gci_gcm_deinit(&g);
 *
 * By libcrypto, or by Intel's Multi-Buffer Crypto library where gridcoll was built with it, the
 * processor has AES and carry-less products on wide registers (VAES, VPCLMULQDQ), and libcrypto is
 * older than 3.1, which makes use of them itself: on a Sapphire Rapids the former is 3.5 times as
 * fast as libcrypto 3.0. Both are one to their callers. Which it is, is the same for all of a
 * process. Keys are wiped by deinit; in children by fork those of the latter are, too (libcrypto's own
 * memory is out of reach). One thread at a time. */
#ifndef GCI_TRANSPORT_GCM_H
#define GCI_TRANSPORT_GCM_H

#include <stddef.h>
#include <stdint.h>

#define GCI_GCM_KEY   16
#define GCI_GCM_NONCE 12
#define GCI_GCM_TAG   16

struct gci_gcm_ops;

struct gci_gcm {
	const struct gci_gcm_ops *ops; /* NULL: not made, or given back */
	void *state;                   /* the library's */
	int seals;
};

/* Of a library. */
struct gci_gcm_ops {
	const char *name;
	int (*init)(struct gci_gcm *g);                    /* 0 or -1 */
	int (*key)(struct gci_gcm *g, const uint8_t *key); /* 0 or -1 */
	int (*begin)(struct gci_gcm *g, const uint8_t *nonce, const uint8_t *head, size_t n);
	int (*update)(struct gci_gcm *g, uint8_t *out, const uint8_t *in, size_t n);
	int (*finish)(struct gci_gcm *g, uint8_t *tag);
	void (*deinit)(struct gci_gcm *g);
};

/* 0, or -1: out of memory. */
int gci_gcm_init(struct gci_gcm *g, int seals);
void gci_gcm_deinit(struct gci_gcm *g); /* also of one that is zero */

/* 0, or -1: out of memory. */
static inline int gci_gcm_key(struct gci_gcm *g, const uint8_t key[GCI_GCM_KEY])
{
	return g->ops->key(g, key);
}

/* These: true, unless out of memory. `head` is authenticated along. */
static inline int gci_gcm_begin(
	struct gci_gcm *g, const uint8_t nonce[GCI_GCM_NONCE], const uint8_t *head, size_t n)
{
	return g->ops->begin(g, nonce, head, n);
}

static inline int gci_gcm_update(struct gci_gcm *g, uint8_t *out, const uint8_t *in, size_t n)
{
	return !n || g->ops->update(g, out, in, n);
}

/* Writes the tag; or, if g opens, true if this is it, found in constant time. */
static inline int gci_gcm_finish(struct gci_gcm *g, uint8_t tag[GCI_GCM_TAG])
{
	return g->ops->finish(g, tag);
}

/* Whose it is, for the log. */
const char *gci_gcm_by(void);

/* For tests: what is made from now on is made by libcrypto. */
void gci_gcm_only_libcrypto(int only);

/* gcm_wide.c: NULL if the other library is not to be had here, or no faster. */
const struct gci_gcm_ops *gci_gcm_wide(void);

#endif
