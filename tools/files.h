/* SPDX-License-Identifier: MIT
 * Files, for the shells around pure printers; launcher/text.h reads them. */
#ifndef GCT_FILES_H
#define GCT_FILES_H

#include "base/buf.h"
#include "base/error.h"

/* The whole text, in place of what was there. 0, or GCOLL_ERR_SYS or _NOMEM. */
int gct_write_file(const char *path, const struct gci_buf *text, struct gci_error *e);

#endif
