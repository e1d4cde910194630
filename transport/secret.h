/* SPDX-License-Identifier: MIT
 * The job's secret as text, where people or other managers hand it over: 64 hexadecimal digits, and
 * white space around them. Pure. */
#ifndef GCI_TRANSPORT_SECRET_H
#define GCI_TRANSPORT_SECRET_H

#include <stddef.h>
#include <stdint.h>

#define GCI_SECRET_NBYTES   32
#define GCI_SECRET_TEXT     (2 * GCI_SECRET_NBYTES + 2) /* "...\n" */
#define GCI_SECRET_MAX_TEXT 256                         /* with what may stand around it */
#define GCI_SECRET_EXPECTED "64 hexadecimal digits (gridcoll-run --new-secret makes such a line)"

/* 0, or -1 with `secret` wiped. */
int gci_secret_parse(const void *text, size_t len, uint8_t secret[GCI_SECRET_NBYTES]);

/* A line. The caller wipes it. */
void gci_secret_format(const uint8_t secret[GCI_SECRET_NBYTES], char text[GCI_SECRET_TEXT]);

/* ---- Keys for one purpose each, out of the job's secret: HKDF with SHA-256 (RFC 5869). Pure.
 *
 *	const uint32_t pair[] = {epoch, from, to};
 *	rc = gci_derive(secret, "gridcoll data 3", pair, 3, key);
 *
 * One key reveals neither the secret nor another key. The caller wipes the key. */

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

/* ---- What protects connections between ranks, by the user's word. Pure.
 *
 *	rc = gci_security_parse("encrypt", &s);
 *	link.encrypted = gci_security_encrypts(s, far);
 *
 * OFF: nothing; any peer that speaks the protocol is believed. AUTH: both sides show in their HELLO that
 * they know the job's secret. That keeps strangers out; an attacker who can change packets on their way can
 * still take a connection over, and one who sees them reads along. ENCRYPT: TLS 1.3, against these,
 * too. AUTO: ENCRYPT between clusters and AUTH within. */

enum gci_security { GCI_SECURITY_AUTO, GCI_SECURITY_OFF, GCI_SECURITY_AUTH, GCI_SECURITY_ENCRYPT };

#define GCI_SECURITY_EXPECTED "auto, off, auth or encrypt"

/* 0 or GCOLL_ERR_INVAL. */
int gci_security_parse(const char *name, enum gci_security *out);

/* `far`: to a rank of another cluster. */
int gci_security_encrypts(enum gci_security s, int far);

#endif
