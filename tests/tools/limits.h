/* SPDX-License-Identifier: MIT
 * What a test takes from itself and from those it starts. */
#ifndef GCI_TESTS_TOOLS_LIMITS_H
#define GCI_TESTS_TOOLS_LIMITS_H

/* Processes started from here on cannot read and write what the permissions do not say, even as
 * root. It does not come back. */
void drop_override(void);

/* A file system of this size ("size=30m") in `dir`, for us and those we start; false if we may not.
 * To be unmounted. */
int small_disk(const char *dir, const char *size);

#endif
