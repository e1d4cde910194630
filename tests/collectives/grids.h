/* SPDX-License-Identifier: MIT
 * Texts of grid files that must parse, or must not. Their name is g.grid. */
#ifndef GCI_TESTS_COLLECTIVES_GRIDS_H
#define GCI_TESTS_COLLECTIVES_GRIDS_H

#include "collectives/grid/grid.h"

#define AB  "[cluster a]\nhosts = a1\n[cluster b]\nhosts = b1\n"   /* four lines */
#define ABC AB "[cluster c]\nhosts = c1\n[link a b]\n[link b c]\n" /* eight lines */

void grid_of(struct gci_grid *g, const char *text);

/* The text is refused with exactly this sentence, and nothing is kept. */
void grid_refused_bytes(const char *text, size_t len, const char *want);
void grid_refused(const char *text, const char *want);

#endif
