/* SPDX-License-Identifier: MIT
 * The simulated network: TCP connections between hosts, as the system calls show them. Bytes that a
 * socket has taken are cut into pieces of any size, which arrive in order, each a while later; so
 * streams overtake each other, and reads end anywhere. A socket takes what its buffer has room for.
 *
 * Faults come in the middle of deliveries, which are counted: see struct net_faults. */
#ifndef GCI_TESTS_SIMULATE_NET_H
#define GCI_TESTS_SIMULATE_NET_H

#include "tests/simulate/file.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define NET_MAX_HOSTS  16
#define NET_FIRST_PORT 20000 /* rank 0's; the launcher listens below */

/* How many pieces arrive before each, about; 0: never. */
struct net_faults {
	uint64_t lose_every; /* a connection is lost, of those that may be */
	uint32_t most_losses;
	int only_replayed;           /* and of these, those whose loss must be survived */
	uint64_t lose_control_every; /* of pieces of control connections: one is lost, by RST */
	uint32_t most_control_losses;
	uint64_t stall_every; /* a direction of a connection stands still */
	uint64_t stall_ns;    /* at most */
	uint32_t most_stalls;
	uint64_t cut_at; /* all between clusters cut_a and cut_b stands still */
	int cut_a, cut_b;
	uint64_t cut_ns;
	uint64_t dark_at; /* the host `dark` is switched off */
	int dark;
	uint64_t flip_at;       /* bytes of ranks' connections, before one bit is another */
	uint64_t refuse_one_in; /* of connections that are made again, one in so many is not */
	uint32_t deaf;          /* so many accepts fail, for lack of descriptors */
	/* True if the loss of a connection between these ranks must be survived. */
	int (*may_lose)(int a, int b);
	/* Something has happened that may not be survived: between these ranks, or with -1 that
	 * was asked for by cut_at or dark_at. */
	void (*on_fault)(int a, int b);
};

struct net_config {
	int nhosts;
	int cluster[NET_MAX_HOSTS]; /* by host; the launcher's is one of its own */
	uint64_t near_ns, far_ns;   /* one way; within a cluster, between two */
	uint32_t most_piece;        /* bytes */
	uint32_t buffer_nbytes;     /* of a socket, at least; up to 16 times as much */
	int loopback;               /* all addresses are this machine's */
};

struct net_counts {
	uint64_t pieces, nbytes, losses, control_losses, stalls, flips, refused;
};

extern struct net_counts net_counts; /* of this run */

void net_begin(const struct net_config *config, const struct net_faults *faults);

/* The address of a host. */
struct sockaddr_in net_address(int host, uint16_t port);

/* The host is off. */
int net_is_dark(int host);

/* System calls; -1 with errno. */
int net_socket(int flags);
int net_bind(struct file *f, const struct sockaddr *addr);
int net_listen(struct file *f);
int net_connect(struct file *f, const struct sockaddr *addr);
int net_accept(struct file *f, struct sockaddr *addr, socklen_t *len, int flags);
int net_name(struct file *f, int of_peer, struct sockaddr *addr, socklen_t *len);
int net_getsockopt(struct file *f, int level, int name, void *value, socklen_t *len);
int net_setsockopt(struct file *f, int level, int name, const void *value, socklen_t len);
ssize_t net_receive(struct file *f, const struct iovec *iov, int niov, int flags);
ssize_t net_send(struct file *f, const struct iovec *iov, int niov, int flags);
int net_shutdown(struct file *f, int how);

#endif
