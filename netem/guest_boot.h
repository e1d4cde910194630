/* SPDX-License-Identifier: MIT
 * The guest's start: from a bare kernel to a lab. */
#ifndef GCI_NETEM_GUEST_BOOT_H
#define GCI_NETEM_GUEST_BOOT_H

#include "base/error.h"

/* Mounts what programs expect and sets limits. `dirfd` was opened before: mounts may hide it. */
int gci_guest_mount(struct gci_error *e);

/* Loads modules and builds what file "boot" in `dirfd` describes. */
int gci_guest_build(int dirfd, struct gci_error *e);

/* All of a small file in `dirfd`. */
struct gci_buf;
int gci_guest_read_file(
	int dirfd, const char *name, size_t max, struct gci_buf *out, struct gci_error *e);

#endif
