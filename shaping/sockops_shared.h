/* SPDX-License-Identifier: MIT
 * What the kernel's program (sockops.bpf.c) and its loader have in common: the maps. Networks:
 * sop_nets, see trie_shared.h. */
#ifndef GCI_SHAPING_SOCKOPS_SHARED_H
#define GCI_SHAPING_SOCKOPS_SHARED_H

#include <linux/types.h>

#define GCI_SOCKOPS_PROGRAM   "gci_sockops"
#define GCI_SOCKOPS_MAX_CLASS 64
#define GCI_SOCKOPS_MAX_CONNS 4096

/* sop_wants: by class; what a new connection is told. 0, "": nothing. */
struct gci_sockops_setting {
	char congestion[16];
	__u32 initial_window; /* packets */
	__u32 rto_min_us;
	__u32 pacing; /* bytes per second */
	__u32 pad;
};

/* Bits of what the kernel refused. */
#define GCI_SOCKOPS_CONGESTION 1
#define GCI_SOCKOPS_WINDOW     2
#define GCI_SOCKOPS_RTO        4
#define GCI_SOCKOPS_PACING     8

/* sop_counts: by class. */
struct gci_sockops_count {
	__u64 opened, closed;
	__u64 retransmitted; /* packets, of all its connections */
	__u64 refused;       /* connections that were not told everything */
};

/* sop_conns: by the socket's cookie; the least recently used give way. */
struct gci_sockops_conn {
	__u8 local_ip[16], remote_ip[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u32 local_port, remote_port;
	__u32 class;
	__u32 refused; /* GCI_SOCKOPS_... */
	__u64 retransmitted;
	__u32 closed;
	__u32 pad;
};

#endif
