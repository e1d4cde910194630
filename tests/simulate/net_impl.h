/* SPDX-License-Identifier: MIT
 * Between net.c (bytes on their way), net_faults.c and net_calls.c (system calls). */
#ifndef GCI_TESTS_SIMULATE_NET_IMPL_H
#define GCI_TESTS_SIMULATE_NET_IMPL_H

#include "tests/simulate/net.h"

enum stream_state { IDLE, CONNECTING, OPEN, RESET };

/* What ends a direction of a connection, or does not. */
enum segment_kind { DATA, FIN, RST };

struct segment {
	struct gci_list link;
	enum segment_kind kind;
	size_t nbytes;
	uint64_t at_ns;
	uint8_t data[];
};

/* One end of a connection. */
struct stream {
	struct gci_list all;
	struct file *file;
	enum stream_state state;
	int host;
	int rank; /* of its process; OS_LAUNCHER */
	struct sockaddr_in local, remote;
	struct stream *other; /* NULL: not connected yet */
	int inner;            /* between ranks */

	/* What has come. */
	uint8_t *in;
	size_t in_lo, in_hi, in_cap;
	uint64_t come_nbytes;
	int eof, error; /* an errno, told once */

	/* What goes. */
	struct gci_list flight;
	size_t flight_nbytes, buffer_nbytes;
	uint64_t last_at_ns, stalled_until_ns;
	unsigned npieces;
	int moving;        /* an event is coming for the first of them */
	int window_closed; /* the other end has not read for a while */
	int forgotten;     /* by what is in the middle; nobody has told this end */
	int vain;          /* what is sent does not arrive any more */
	int shut;          /* behind FIN */
	int aborts;        /* closing it resets the connection */
	int closed;

	uint64_t acked_ns, heard_ns, receive_timeout_ns;
	uint32_t keep_idle_s, keep_interval_s, keep_count;
};

struct listener {
	struct sockaddr_in local;
	struct stream *queue[64]; /* to be accepted */
	int nqueue, listens;
	uint32_t deaf;
};

extern struct net_config net_config;
extern struct net_faults net_faults;
extern struct gci_list net_streams;

/* net.c */
struct stream *net_stream_new(struct file *f);
void net_connect_at(struct stream *s, const struct sockaddr_in *to);
void net_put(struct stream *s, enum segment_kind kind, const struct iovec *iov, int niov, size_t n);
void net_pump(struct stream *s);
/* Loses what of a direction's bytes has not come so far, from some byte on. */
void net_cut_short(struct stream *s);
uint64_t net_delay_ns(int host, int other);
int net_cluster(int host);
void net_on_reset(void *stream, uint64_t n);

/* net_faults.c */
void net_forget_faults(void);
/* 0: nothing is between these hosts; else when it will not be any more, GCI_NEVER. */
uint64_t net_shut_until_ns(int a, int b);
/* A piece is about to arrive: what happens now, if anything. */
void net_fault_piece(struct stream *s, struct segment *g);
void net_fault_control(struct stream *s);
/* So little has come that greetings may be under way. */
int net_is_young(const struct stream *s);
/* Connections in a row that a pair of ranks has had in vain. */
uint32_t *net_vain_of(int a, int b);
/* Whether a connection to that rank, in place of one that was lost, does not come about. */
int net_is_refused(const struct stream *s, int to);
size_t net_unread(const struct stream *s);

/* net_calls.c */
void net_forget_listeners(void);
struct listener *net_listener(const struct sockaddr_in *at);
struct stream *net_incoming(struct stream *from, struct listener *l);

#endif
