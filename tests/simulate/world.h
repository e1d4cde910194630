/* SPDX-License-Identifier: MIT
 * How simulated ranks join their job. */
#ifndef GCI_TESTS_SIMULATE_WORLD_H
#define GCI_TESTS_SIMULATE_WORLD_H

#include "comm/comm.h"

struct world_settings {
	int size;
	const char *rendezvous;
	uint8_t secret[GCI_SECRET_NBYTES];
	enum gci_security security;
	uint32_t eager_nbytes;  /* 0: as the product has it */
	uint64_t replay_nbytes; /* 0: likewise */
	uint64_t rekey_records;
};

/* For all ranks, as long as they live. */
void world_set(const struct world_settings *s);

/* gcoll_init. */
int world_join(gcoll_comm **c);

#endif
