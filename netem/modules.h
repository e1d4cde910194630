/* SPDX-License-Identifier: MIT
 * Loading kernel modules by path, without depmod and modprobe: in the lab's guest the modules lie
 * where the distribution put them, not where modprobe looks. */
#ifndef GCI_NETEM_MODULES_H
#define GCI_NETEM_MODULES_H

#include "base/error.h"

/* Loads NULL-terminated `names` ("sch_netem") and what they need from `dir`, which has a
 * modules.dep. One that is not there is passed over: the kernel may have it built in, and what uses
 * it fails with a better message. */
int gci_modules_load(const char *dir, const char *const *names, struct gci_error *e);

#endif
