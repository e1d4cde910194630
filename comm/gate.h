/* SPDX-License-Identifier: MIT
 * The one lock of a world with a progress thread: who comes first enters first, so that neither a
 * busy thread of ours nor one of the program's keeps the others out.
 *
 *	gci_gate_enter(&g);
 *	while (!request->over)
 *		gci_gate_wait(&g);	// leaves, until gci_gate_tell, and enters again
 *	gci_gate_leave(&g);
 *
 * Not recursive. */
#ifndef GCI_COMM_GATE_H
#define GCI_COMM_GATE_H

#include <pthread.h>
#include <stdint.h>

struct gci_gate {
	pthread_mutex_t mutex; /* held for moments only */
	pthread_cond_t turn, news;
	uint64_t next, serving; /* numbers that were drawn, and the one that may be inside */
	uint64_t told;
};

void gci_gate_init(struct gci_gate *g);
void gci_gate_deinit(struct gci_gate *g);

void gci_gate_enter(struct gci_gate *g);
void gci_gate_leave(struct gci_gate *g);

/* From inside. */
void gci_gate_wait(struct gci_gate *g);

/* From inside: all who wait look again. */
void gci_gate_tell(struct gci_gate *g);

#endif
