/* SPDX-License-Identifier: MIT
 * One run of the simulation, from its seed, and whether all was as it must be. */
#ifndef GCI_TESTS_SIMULATE_RUN_H
#define GCI_TESTS_SIMULATE_RUN_H

#include <stddef.h>
#include <stdint.h>

struct run_result {
	int operations;  /* that were begun */
	uint64_t digest; /* of what happened: the same in each run of a seed */
	uint64_t simulated_ns;
	int failed; /* ranks whose calls ended in an error, as they had to */
	uint64_t losses, flips;
	uint64_t late_ns; /* from a fault that ends the job to the last rank's knowledge of it */
	char wrong[1200]; /* "": nothing */
};

void run_seed(uint64_t seed, struct run_result *out);

#endif
