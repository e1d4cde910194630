/* SPDX-License-Identifier: MIT
 * The launcher of the simulated job: its rendezvous and verdict (launcher/rendezvous.h) behind
 * simulated sockets. */
#ifndef GCI_TESTS_SIMULATE_LAUNCHER_H
#define GCI_TESTS_SIMULATE_LAUNCHER_H

#include "launcher/rendezvous.h"

#include "tests/simulate/os.h"

#define LAUNCHER_ADDRESS_NBYTES 32

/* Runs in `p` until all ranks' processes have ended. `config` as it is for them; `rendezvous`:
 * filled, where it listens. */
void launcher_begin(struct os_process *p, const struct gci_rdv_config *config,
	char rendezvous[LAUNCHER_ADDRESS_NBYTES]);

/* Its agents tell it of a process's end. */
void launcher_exited(uint32_t rank, int code, int signal);

/* NULL: there was none. */
const struct gci_rdv_verdict *launcher_verdict(void);

#endif
