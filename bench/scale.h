/* SPDX-License-Identifier: MIT
 * What a rank costs its machine, as the kernel counts it.
 *
 *	struct scale_usage u;
 *	scale_usage_read(&u, user_nbytes);
 *	u.connections = scale_connections(comm);
 *	gather all ranks' in all[] ...
 *	bad = scale_report(all, size, &limits);
 */
#ifndef GCI_BENCH_SCALE_H
#define GCI_BENCH_SCALE_H

#include "comm/comm.h"

/* Of one rank; sent as it is, so of one size everywhere. */
struct scale_usage {
	uint64_t connections; /* open streams to other ranks */
	uint64_t descriptors, descriptors_before;
	uint64_t threads;
	uint64_t memory_nbytes; /* private and written to, besides the program's own buffers */
	uint64_t peak_nbytes;   /* the most of it so far */
	uint64_t pss_nbytes;    /* that, and this rank's share of what processes share */
	uint64_t started_ns, joined_ns;  /* since the machine was booted */
	uint64_t idle_ns, idle_switches; /* processor time and waits while nothing happened */
};

struct scale_limits {
	uint64_t connections, memory_nbytes; /* per rank; 0: any */
};

/* Threads and memory. `own_nbytes`: what the program has allocated and written to. */
void scale_usage_read(struct scale_usage *u, uint64_t own_nbytes);

uint64_t scale_descriptors(void);
uint64_t scale_connections(gcoll_comm *c);

/* Nanoseconds from boot to the start of this process, and to now. */
uint64_t scale_started_ns(void);
uint64_t scale_now_ns(void);

/* Prints the figures of all ranks. Returns how many limits do not hold, each with a line on
 * standard error. */
int scale_report(const struct scale_usage *all, int n, const struct scale_limits *limits);

#endif
