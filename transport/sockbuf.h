/* SPDX-License-Identifier: MIT
 * How large socket buffers must be for what a connection has in flight, and who makes them so: the
 * kernel's autotuning where it may reach that, else we, where that reaches further.
 *
 *	struct gci_sockmax max;
 *	struct gci_sockbuf snd, rcv;
 *	gci_sockmax_read(&max);
 *	gci_sockbuf_send(&snd, flight_nbytes, &max);
 *	gci_sockbuf_receive(&rcv, flight_nbytes, &max);
 *	if (snd.set_nbytes)
 *		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, ...);
 *	if (snd.reach_nbytes < flight_nbytes)
 *		... the connection gets no more than snd.reach_nbytes per round trip
 *
 * Pure, but for gci_sockbuf_ask and gci_sockmax_read.
 *
 * What a buffer holds (Linux; measured on 6.18 at an MTU of 1500 with large writes): the sender's
 * takes as many bytes in flight as it has. Of the receiver's, half is offered as window at first
 * (tcp_adv_win_scale 1), and more only as far as packets turn out to fill their pages; so a half
 * counts. SO_SNDBUF and SO_RCVBUF make a buffer twice the size asked for, at most twice
 * net.core.wmem_max or rmem_max, and end its autotuning. */
#ifndef GCI_TRANSPORT_SOCKBUF_H
#define GCI_TRANSPORT_SOCKBUF_H

#include <stdint.h>

/* Bytes; 0: unknown. */
struct gci_sockmax {
	uint64_t tcp_rmem, tcp_wmem; /* the largest that autotuning makes (their third figures) */
	uint64_t rmem_max, wmem_max; /* the largest that may be asked for */
};

/* A TCP socket that only asks what sockets can have, by whichever of IPv4 and IPv6 there is; -1 with
 * errno. The caller closes it. */
int gci_sockbuf_ask(void);

/* Of this kernel, in this network namespace. */
void gci_sockmax_read(struct gci_sockmax *max);

struct gci_sockbuf {
	uint64_t set_nbytes;   /* to ask for; 0: autotuning is left on */
	uint64_t reach_nbytes; /* in flight, at most; UINT64_MAX: unknown */
};

/* For `flight` bytes; 0: unknown, autotuning stays on. */
void gci_sockbuf_send(struct gci_sockbuf *b, uint64_t flight, const struct gci_sockmax *max);
void gci_sockbuf_receive(struct gci_sockbuf *b, uint64_t flight, const struct gci_sockmax *max);

/* The third figure of tcp_rmem or tcp_wmem that is enough for `flight` bytes, and to spare: twice
 * as many, in whole MiB, at most what the kernel takes. */
uint64_t gci_sockbuf_sysctl(uint64_t flight);

/* How many bytes may wait in the kernel unsent (TCP_NOTSENT_LOWAT): what is more belongs rather to
 * another stream, where there are several, and what is less leaves a stream idle until we are back.
 * 256 KiB; of several streams half of what each has in flight, where that is less; a 32nd of it,
 * where that is more. */
uint32_t gci_sockbuf_unsent(uint64_t flight, uint32_t streams);

/* Bits per second of connections that have `nbytes` in flight each; UINT64_MAX where rtt_ns is 0 or
 * it is more. */
uint64_t gci_sockbuf_rate(uint64_t nbytes, uint32_t streams, uint64_t rtt_ns);

#endif
