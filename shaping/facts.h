/* SPDX-License-Identifier: MIT
 * What shaping/ladder.h must know of the device by which this process sends.
 *
 *	struct gci_ladder_facts facts;
 *
 *	gci_ladder_look(&facts, &own);
 */
#ifndef GCI_SHAPING_FACTS_H
#define GCI_SHAPING_FACTS_H

#include "shaping/ladder.h"

struct gci_own;

/* `own`: the addresses by which connections leave; the first one's device counts, and `other` is
 * one that the others leave by. What cannot be
 * found out is not to be had. Needs no rights. */
void gci_ladder_look(struct gci_ladder_facts *f, const struct gci_own *own);

#endif
