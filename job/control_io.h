/* SPDX-License-Identifier: MIT
 * The bytes of a rank's connection to the launcher: plain, or by TLS.
 *
 *	rc = gci_control_io_open(&io, "10.1.0.1:7000", ip, &e);		// or "head:7000"
 *	rc = gci_control_io_secure(&io, secret, rank, size, &e);	// or not at all
 *	n = gci_control_io_send(&io, data, nbytes, MSG_DONTWAIT);
 *	n = gci_control_io_recv(&io, buf, sizeof(buf), MSG_DONTWAIT);
 *	gci_control_io_close(&io);
 *
 * One thread at a time. Its functions are in control_client.c. */
#ifndef GCI_JOB_CONTROL_IO_H
#define GCI_JOB_CONTROL_IO_H

#include "transport/address.h"
#include "transport/secure.h"

struct gci_control_io {
	int fd;               /* -1: none */
	int flags;            /* of recv, for the engine */
	int got;              /* it got something */
	int heard;            /* ever, other than in a handshake that went well */
	int hung_up;          /* whoever is there */
	uint64_t patience_ns; /* for a handshake; open sets it to 30 s */
	struct gci_address peer;
	struct gci_secure_name name; /* by TLS */
	struct gci_secure_ctx *ctx;
	struct gci_secure *tls; /* NULL: plain */
};

/* Connects, within 30 s. `ip`: the address it has here. 0 or GCOLL_ERR_*, with nothing to close. */
int gci_control_io_open(struct gci_control_io *io, const char *rendezvous,
	char ip[GCI_ADDRESS_TEXT], struct gci_error *e);

/* Shakes hands; blocks for io->patience_ns at most, however the other side feeds it. */
int gci_control_io_secure(struct gci_control_io *io, const uint8_t secret[GCI_SECRET_NBYTES],
	uint32_t rank, uint32_t size, struct gci_error *e);

/* As recv and send, -1 with errno; by TLS there may be more that no poll tells of until recv has
 * said EAGAIN. send with 0 bytes goes on with what was sent and waits for room in the socket. */
ssize_t gci_control_io_recv(struct gci_control_io *io, void *buf, size_t n, int flags);
ssize_t gci_control_io_send(struct gci_control_io *io, const void *data, size_t n, int flags);

void gci_control_io_close(struct gci_control_io *io);

#endif
