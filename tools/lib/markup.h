/* SPDX-License-Identifier: MIT
 * Text in HTML and SVG. */
#ifndef GCT_MARKUP_H
#define GCT_MARKUP_H

#include "base/buf.h"

/* Escaped, for between tags and in attributes in double quotes; what may not stand there, or is no
 * ASCII, is a "?". NULL is nothing. */
void gct_markup_text(struct gci_buf *out, const char *s);

#endif
