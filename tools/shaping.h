/* SPDX-License-Identifier: MIT
 * Verbs of `gridcoll shape` with options of their own. */
#ifndef GCT_SHAPING_H
#define GCT_SHAPING_H

#endif
