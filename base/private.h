/* SPDX-License-Identifier: MIT
 * Files that only their owner may read, for secrets.
 *
 *	struct gci_buf text = {.secret = 1};
 *
 *	rc = gci_private_read(path, 100, &text, &e);
 *	...
 *	gci_buf_free(&text);
 *
 * Both return 0 or GCOLL_ERR_* with the file's name, the reason and what to do about it in `e`. */
#ifndef GCI_BASE_PRIVATE_H
#define GCI_BASE_PRIVATE_H

#include "base/buf.h"
#include "base/error.h"

/* Into `out`, which is empty and the caller's to free whatever comes of it. GCOLL_ERR_INVAL: it is
 * no regular file, or not the user's (or root's) own, or others may read or write it; the group may
 * read it where it is root's, as Kubernetes hands secrets to those who are not root. GCOLL_ERR_PARSE:
 * more than `most` bytes. */
int gci_private_read(const char *path, size_t most, struct gci_buf *out, struct gci_error *e);

/* A new file of mode 0600 with the text in it; one that is there already is GCOLL_ERR_SYS. */
int gci_private_create(const char *path, const struct gci_buf *text, struct gci_error *e);

#endif
