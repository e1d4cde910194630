/* SPDX-License-Identifier: MIT
 * The first process of the lab's guest: mounts, modules, the grid's network, then the jobs that it
 * is sent over the serial line (netem/guest_msg.h).
 *
 * `dir` is the private directory of this lab on the host's file system: file "boot" says what to
 * build, files "job-N" what to run. */
#ifndef GCI_NETEM_GUEST_H
#define GCI_NETEM_GUEST_H

#include "base/buf.h"

#define GCI_GUEST_BOOT_VERSION 1
#define GCI_GUEST_LAB          "/run/gridcoll/guest-lab.json"
#define GCI_GUEST_BOOT_MAX     (16u << 20)

/* What "boot" holds: version, dilation, the dilated grid's text ("" for a guest without one). */
static inline void gci_guest_boot_put(struct gci_buf *out, uint32_t dilation, const char *grid)
{
	gci_buf_put_u32(out, GCI_GUEST_BOOT_VERSION);
	gci_buf_put_u32(out, dilation);
	gci_buf_put_str(out, grid);
}

/* Returns only when we are not the first process of a guest: an exit status. */
int gci_guest_main(const char *dir);

#endif
