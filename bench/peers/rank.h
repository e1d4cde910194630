/* SPDX-License-Identifier: MIT
 * One rank of a comparison: the same buffers, the same start, the same checks for every library.
 * rank.c is the program; each library is a table of functions.
 *
 * A library that polls would take the processors from one that sleeps, so those have programs of
 * their own (rank_mpi.c). gridcoll and Gloo share one and take turns, iteration by iteration. */
#ifndef GCB_RANK_H
#define GCB_RANK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where this rank is; the first library of a program fills in rank and size, rank.c the rest. */
struct gcb_place {
	int rank, size;
	int one_net;     /* all ranks see the same interfaces: traffic is loopback's */
	const char *dir; /* of this job, empty at first, shared by all ranks */
	int argc;
	char **argv;
};

/* All return 0, or -1 after saying why on standard error. NULL: the library has no such operation. */
struct gcb_lib {
	const char *name;
	int (*open)(struct gcb_place *p);
	int (*bcast)(void *buf, uint64_t nbytes); /* from rank 0 */
	int (*allreduce)(const float *in, float *out, uint64_t n);
	int (*allgather)(const void *in, void *out, uint64_t nbytes); /* of each rank */
	int (*barrier)(void);
	void (*close)(void);
};

extern const struct gcb_lib *const gcb_libs[]; /* ended by NULL */
extern const struct gcb_lib gcb_lib_gridcoll, gcb_lib_gloo, gcb_lib_mpi, gcb_lib_bare;

#ifdef __cplusplus
}
#endif
#endif
