/* SPDX-License-Identifier: MIT
 * Scratch memory of operations, kept from one to the next: the first touch of a page costs more
 * than a good deal of what is then done with it (op.c). One thread. */
#ifndef GCI_COMM_SCRATCH_H
#define GCI_COMM_SCRATCH_H

#include <stdint.h>

#define GCI_SCRATCH_KEPT 3 /* as many as instances of a schedule run at once */

struct gci_scratch {
	struct {
		char *data;
		uint64_t nbytes;
		int used;
	} kept[GCI_SCRATCH_KEPT];
};

void gci_scratch_free(struct gci_scratch *s);

#endif
