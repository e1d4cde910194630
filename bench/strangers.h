/* SPDX-License-Identifier: MIT
 * Connections of people who are not of the job: silent ones, garbage, the first half of a
 * handshake, a whole one that was heard before, and one that names a rank without its key.
 *
 *	pid = junk_start(&j);		// a process of its own, until it is killed
 *	j.state->at = JUNK_AT_JOB;	// it makes j.rate connections a second while this is set
 *
 * Decoys are listening sockets of that process, one for each of the ports. Nobody accepts what comes
 * there before the calls end, so all that the job has of it is what it has of any program that is
 * busy with the network on another processor of the machine. */
#ifndef GCI_BENCH_STRANGERS_H
#define GCI_BENCH_STRANGERS_H

#include "transport/secret.h"

#include <stdint.h>
#include <sys/types.h>

#define JUNK_KINDS 5

enum junk_at { JUNK_NOWHERE, JUNK_AT_DECOYS, JUNK_AT_JOB };

/* Shared between both processes. */
struct junk_state {
	volatile int at;                    /* enum junk_at */
	volatile uint64_t made[JUNK_KINDS]; /* at the job */
	volatile uint64_t refused;          /* by the kernel, or for lack of descriptors */
};

struct junk {
	const uint16_t *ports; /* at 127.0.0.1, in turn */
	unsigned nports;
	unsigned rate;
	int only;                          /* one kind, by number; -1: all in turn */
	int cpu;                           /* to run on */
	uint8_t secret[GCI_SECRET_NBYTES]; /* for what is heard and sent again */
	uint32_t size;                     /* of the job */
	struct junk_state *state;
};

extern const char *const junk_kinds[JUNK_KINDS];

/* -1: errno tells why. */
pid_t junk_start(struct junk *j);

#endif
