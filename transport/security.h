/* SPDX-License-Identifier: MIT
 * What protects connections between ranks, by the user's word. Pure.
 *
 *	rc = gci_security_parse("encrypt", &s);
 *	link.encrypted = gci_security_encrypts(s, far);
 *
 * OFF: nothing; whoever speaks the protocol is believed. AUTH: both sides show in their HELLO that
 * they know the job's secret. That keeps strangers out; whoever can change packets on their way can
 * still take a connection over, and whoever sees them reads along. ENCRYPT: TLS 1.3, against these,
 * too. AUTO: ENCRYPT between clusters and AUTH within. */
#ifndef GCI_TRANSPORT_SECURITY_H
#define GCI_TRANSPORT_SECURITY_H

enum gci_security { GCI_SECURITY_AUTO, GCI_SECURITY_OFF, GCI_SECURITY_AUTH, GCI_SECURITY_ENCRYPT };

#define GCI_SECURITY_EXPECTED "auto, off, auth or encrypt"

/* 0 or GCOLL_ERR_INVAL. */
int gci_security_parse(const char *name, enum gci_security *out);

/* `far`: to a rank of another cluster. */
int gci_security_encrypts(enum gci_security s, int far);

#endif
