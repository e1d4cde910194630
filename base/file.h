/* SPDX-License-Identifier: MIT
 * Whole files, for the shells around pure parsers and printers.
 *
 *	struct gci_buf text = {0};
 *
 *	rc = gci_file_read(path, 1 << 20, &text, &e);
 *	...
 *	rc = gci_file_write(path, &text, &e);
 *	gci_buf_free(&text);
 *
 * All return 0 or GCOLL_ERR_* with the file's name and the reason in `e`. */
#ifndef GCI_BASE_FILE_H
#define GCI_BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

/* Into `out`, which is empty and the caller's to free whatever comes of it. More than `most` bytes
 * are GCOLL_ERR_PARSE. A pipe that nobody opens to write to is GCOLL_ERR_SYS after three seconds. */
int gci_file_read(const char *path, size_t most, struct gci_buf *out, struct gci_error *e);

/* The text in place of what was there, and of the same permissions: whoever reads the file at any
 * time finds the old one or the new one, whole. What is no file of its own (a device, a pipe, a
 * symbolic link) is written to. "-" is GCOLL_ERR_INVAL: it is rarely meant as a file's name. */
int gci_file_write(const char *path, const struct gci_buf *text, struct gci_error *e);

/* Better now than after an hour's work: could gci_file_write() write this? Changes nothing. */
int gci_file_check(const char *path, struct gci_error *e);

/* Which machine's files this process sees: the running kernel's boot and the root directory, which
 * containers of one machine do not share, though they may share its addresses. "": not to be told. */
#define GCI_FILE_MACHINE 96
void gci_file_machine(char out[GCI_FILE_MACHINE]);

/* Parts of those above, for files that others have opened: reads up to the end; writes all and closes
 * `fd`, -1 with errno where something goes wrong. */
int gci_file_read_from(
	int fd, const char *path, size_t most, struct gci_buf *out, struct gci_error *e);
int gci_file_write_to(int fd, const struct gci_buf *text);

#endif
