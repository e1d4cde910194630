/* SPDX-License-Identifier: MIT
 * The files that models are made from, by path: the grid and what was measured of it. The parsers
 * are pure; this is the shell that reads.
 *
 *	rc = gct_read_grid(path, &grid, &e);
 *	if (!rc && params_path)
 *		rc = gct_read_params(params_path, &grid, &params, &e);
 *	if (rc)
 *		fprintf(stderr, "gridcoll plan: error: %s\n", e.text);
 *
 * All return 0 or GCOLL_ERR_* with the file's name and the reason in `e`; then there is nothing to
 * free. */
#ifndef GCT_MODEL_FILES_H
#define GCT_MODEL_FILES_H

#include "collectives/models/params.h"

int gct_read_grid(const char *path, struct gci_grid *g, struct gci_error *e);

/* Measured on this grid, else GCOLL_ERR_INVAL. In the grid's own times: dilated as it is. */
int gct_read_params(
	const char *path, const struct gci_grid *g, struct gci_params *p, struct gci_error *e);

#endif
