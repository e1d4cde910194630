/* SPDX-License-Identifier: MIT
 * Keys for one purpose each, out of the job's secret: HKDF with SHA-256 (RFC 5869). Pure.
 *
 *	const uint32_t pair[] = {epoch, from, to};
 *	rc = gci_derive(secret, "gridcoll data 3", pair, 3, key);
 *
 * Who knows one key learns neither the secret nor another key from it. The caller wipes the key. */
#ifndef GCI_TRANSPORT_DERIVE_H
#define GCI_TRANSPORT_DERIVE_H

#include <stddef.h>
#include <stdint.h>

#define GCI_SECRET_NBYTES  32
#define GCI_DERIVE_NUMBERS 8
#define GCI_DERIVE_PURPOSE 32

/* `purpose` (shorter than GCI_DERIVE_PURPOSE) and `n` numbers (at most GCI_DERIVE_NUMBERS) say what
 * the key is for. 0, or GCOLL_ERR_NOMEM. */
int gci_derive(const uint8_t secret[GCI_SECRET_NBYTES], const char *purpose,
	const uint32_t *numbers, unsigned n, uint8_t key[32]);

/* HKDF-Expand-Label of TLS 1.3 (RFC 8446, 7.1), with SHA-256: n bytes for this label (at most 12
 * characters) and context (at most 32 bytes; NULL if ncontext is 0), out of a secret that came the
 * same way. 0, or GCOLL_ERR_NOMEM. */
int gci_derive_label(const uint8_t secret[32], const char *label, const uint8_t *context,
	size_t ncontext, uint8_t *out, size_t n);

#endif
