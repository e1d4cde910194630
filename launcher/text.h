/* SPDX-License-Identifier: MIT */
#ifndef GCI_LAUNCHER_TEXT_H
#define GCI_LAUNCHER_TEXT_H

#include "base/error.h"

#include <stddef.h>

struct gci_buf;

/* Appends a file's bytes to `out`; of one with more than `most` bytes, a few more than that, which
 * its parser then refuses. 0, GCOLL_ERR_SYS or _NOMEM with the reason in `e`. */
int gci_text_read(const char *path, size_t most, struct gci_buf *out, struct gci_error *e);

#endif
