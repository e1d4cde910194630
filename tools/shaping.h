/* SPDX-License-Identifier: MIT
 * Verbs of `gridcoll shape` with options of their own. */
#ifndef GCT_SHAPING_H
#define GCT_SHAPING_H

/* argv[0] is "run". Returns the exit status. */
int gct_shape_run(int argc, char **argv);

#endif
