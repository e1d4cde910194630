/* SPDX-License-Identifier: MIT
 * Two processes, one connection between them, one measurement: what bench_stream and bench_pingpong
 * share. Both processes are children of one that has the memory, so that what arrived can be
 * compared with what was sent.
 *
 *	gcb_pair_open(&p, 1 << 30, net);
 *	rc = gcb_pair_run(&p, &gcb_bare_stream, &result, &e);
 *	... result.ns, result.cpu_ns[0] + result.cpu_ns[1] ...
 *	gcb_pair_close(&p);
 *
 * A way to measure is a function that both sides run. It connects (the sides tell each other
 * addresses by gcb_pair_tell and gcb_pair_told), moves something to warm the connection, calls
 * gcb_pair_begin, does what is measured, and calls gcb_pair_end. Times are those of the one
 * machine's monotonic clock, CPU times those of getrusage: user and system, of each process alone.
 */
#ifndef GCB_PAIR_H
#define GCB_PAIR_H

#include "base/error.h"
#include "bench/peers/veth.h"
#include "transport/path.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define GCB_ADDR_NBYTES  64
#define GCB_WARM_NBYTES  (64u << 20) /* of a stream, before it is measured */
#define GCB_WARM_ROUNDS  500         /* of a ping-pong */
#define GCB_BCAST_NBYTES (64u << 20) /* of each of a stream's bcasts */

#define GCB_MAX_BOUNCE_NBYTES (64u << 10) /* of its messages */

struct gcb_pair_shared {
	atomic_int arrived, told[2];
	atomic_int failed;
	char addr[2][GCB_ADDR_NBYTES];
	char why[200];
	uint64_t start_ns, end_ns; /* of the side that said so */
	uint64_t cpu_ns[2];
};

struct gcb_pair {
	struct gcb_pair_shared *shared;
	const struct gcb_veth *veth; /* NULL: loopback */
	uint8_t *from, *to;          /* nbytes each, shared by both sides */
	uint64_t nbytes;             /* of a stream, or of each message of a ping-pong */
	uint64_t rounds;             /* of a ping-pong */
	/* Of one side. */
	int rank; /* 0 sends, or sends first */
	uint64_t cpu_from_ns;
};

struct gcb_pair_result {
	uint64_t ns;        /* from rank 0's begin to the end that was said last */
	uint64_t cpu_ns[2]; /* of either side */
};

struct gcb_way {
	const char *name, *what;
	/* 0, or a failure that gcb_pair_fail has told. */
	int (*side)(struct gcb_pair *p);
	/* The whole measurement in another program; instead of `side`. */
	int (*alone)(struct gcb_pair *p, struct gcb_pair_result *r, struct gci_error *e);
	int checks; /* what came is compared with what was sent */
	/* Not 0, and the reason: this cannot be had here. NULL: it always can. */
	int (*missing)(char why[GCI_PATH_WHY]);
};

/* Memory for a stream of nbytes each way, all of it touched, no two words of it alike. */
int gcb_pair_open(
	struct gcb_pair *p, uint64_t nbytes, const struct gcb_veth *veth, struct gci_error *e);
void gcb_pair_close(struct gcb_pair *p);

/* One measurement. GCOLL_ERR_SYS when a side failed, GCOLL_ERR_CORRUPT when what came is not what
 * was sent. */
int gcb_pair_run(struct gcb_pair *p, const struct gcb_way *way, struct gcb_pair_result *r,
	struct gci_error *e);

/* The numeric address of a side. */
const char *gcb_pair_ip(const struct gcb_pair *p, int rank);

/* One text from either side to the other; told waits for it, NULL: the other one failed. */
void gcb_pair_tell(struct gcb_pair *p, const char *text);
const char *gcb_pair_told(struct gcb_pair *p);

/* Both sides leave at once; 0, or -1 when the other one failed. Faults in this side's memory. */
int gcb_pair_begin(struct gcb_pair *p);
void gcb_pair_end(struct gcb_pair *p);

/* Ends both sides; returns -1. */
int gcb_pair_fail(struct gcb_pair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

uint64_t gcb_now_ns(void);

/* A wait for something that comes soon, without a syscall of its own that would be measured. */
void gcb_nap(void);

extern const struct gcb_way gcb_bare_stream, gcb_bare_pingpong, gcb_iperf_stream;
extern const struct gcb_way gcb_transport_stream, gcb_unchecked_stream, gcb_transport_pingpong,
	gcb_unchecked_pingpong, gcb_comm_pingpong, gcb_uring_stream, gcb_uring_unchecked_stream,
	gcb_uring_pingpong, gcb_tls_stream, gcb_tls_unchecked_stream, gcb_tls_pingpong,
	gcb_bcast_stream, gcb_tls_bcast_stream;

#endif
