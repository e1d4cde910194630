/* SPDX-License-Identifier: MIT
 * Lists of ranks and hosts as a person wants to read them: "ranks 4-7 on t1-t4".
 *
 *	char who[GCI_RANKLIST_NBYTES];
 *	gci_ranklist(ranks, 4, names, who);	// names[rank] is the rank's host
 */
#ifndef GCI_LAUNCHER_RANKLIST_H
#define GCI_LAUNCHER_RANKLIST_H

#include <stdint.h>

#define GCI_RANKLIST_NBYTES 320

/* `ranks` in rising order, at least one. Long lists end in "...". Returns `out`. */
char *gci_ranklist(const uint32_t *ranks, uint32_t nranks, const char *const *names,
	char out[GCI_RANKLIST_NBYTES]);

#endif
