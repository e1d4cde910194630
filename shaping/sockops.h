/* SPDX-License-Identifier: MIT
 * Settings of a job's connections to other clusters, made by the kernel when a connection opens: by
 * a sock_ops program (sockops.bpf.c) at the job's cgroup. It reaches sockets of whatever program,
 * sets what setsockopt cannot, and counts what each connection sends again.
 *
 *	struct gci_sockops *s;
 *	struct gci_sockops_want want = {.congestion = "bbr", .initial_window = 40};
 *	struct gci_sockops_counters c;
 *	int tokyo;
 *
 *	rc = gci_sockops_open(&s, "/sys/fs/cgroup/job-7", &e);
 *	tokyo = gci_sockops_class(s, nets, 1, &want, &e);
 *	...	connections to nets that processes in there open, or accept
 *	gci_sockops_count(s, tokyo, &c);
 *	gci_sockops_close(s);
 *
 * What plain setsockopt can do for a socket of one's own: congestion control and pacing, as
 * transport/sockopt.h does. The initial window and the least time-out it cannot (before
 * Linux 6.15); without this program they are the route's (ip route ... initcwnd, rto_min) or the
 * kernel's.
 *
 * The program goes with the process that opened it, however that ends. All return 0 (or what is
 * said) or GCOLL_ERR_* with a sentence in `e`: GCOLL_ERR_UNSUPPORTED with what is missing. */
#ifndef GCI_SHAPING_SOCKOPS_H
#define GCI_SHAPING_SOCKOPS_H

#include "shaping/net.h"

#include <stddef.h>
#include <stdint.h>

#define GCI_SOCKOPS_CLASSES 64

struct gci_sockops;

/* 0 and "": as it was. */
struct gci_sockops_want {
	char congestion[16];
	uint32_t initial_window; /* packets */
	uint64_t rto_min_ns;     /* the least retransmission time-out: two ticks to 200 ms */
	uint64_t pacing_bps;     /* the most; at most 34 Gbit/s, what is more is that */
};

struct gci_sockops_counters {
	uint64_t opened, closed;
	uint64_t retransmitted; /* packets */
	uint64_t refused;       /* connections to which the kernel refused a setting */
};

struct gci_sockops_seen {
	struct gci_net local, remote; /* addresses */
	uint16_t local_port, remote_port;
	int number;             /* of its class */
	uint64_t cookie;        /* SO_COOKIE */
	uint64_t retransmitted; /* packets */
	unsigned refused;       /* GCI_SOCKOPS_... of sockops_shared.h */
	int closed;
};

/* For connections of processes in this cgroup, and in those below it, from now on. */
int gci_sockops_open(struct gci_sockops **s, const char *cgroup, struct gci_error *e);

/* NULL is fine. */
void gci_sockops_close(struct gci_sockops *s);

/* Connections to `nets` are told this. Returns the class's number. */
int gci_sockops_class(struct gci_sockops *s, const struct gci_net *nets, size_t n,
	const struct gci_sockops_want *want, struct gci_error *e);

/* Connections that open later are told this. */
int gci_sockops_set(struct gci_sockops *s, int number, const struct gci_sockops_want *want,
	struct gci_error *e);

int gci_sockops_count(struct gci_sockops *s, int number, struct gci_sockops_counters *c);

/* Connections, the open ones and those that ended not long ago; at most `max`, returns how many. */
unsigned gci_sockops_list(struct gci_sockops *s, struct gci_sockops_seen *out, unsigned max);

#endif
