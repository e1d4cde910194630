/* SPDX-License-Identifier: MIT
 * Errors: a status code and one sentence that a person can act on. */
#ifndef GCI_BASE_ERROR_H
#define GCI_BASE_ERROR_H

#include <gridcoll/gridcoll.h>

#include <stddef.h>

/* Filled in at the place that knows most, passed up unchanged. Zero-initialise it. The text has no room
 * for a long path: such is shortened, so that what and why stay. */
struct gci_error {
	int status;
	char text[512];
};

/* Sets `e` (may be NULL) and returns `status`. Keeps an error that is already there: the first
 * cause is the one that matters. Texts often quote files and their names: the error is made
 * printable. */
int gci_error_set(struct gci_error *e, int status, const char *fmt, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* As gci_error_set, with GCOLL_ERR_SYS and ": " and errno's text behind. */
int gci_error_errno(struct gci_error *e, const char *fmt, ...)
	__attribute__((cold, format(printf, 2, 3)));

/* Room for a text with two paths, before it is shortened. */
#define GCI_ERROR_WHOLE (2 * 4096 + 512)

/* Shortens a text to `most` bytes (at least 64): the middle of its longest words, which are paths, gives
 * way to "...". */
void gci_shorten(char *text, size_t most);

/* Replaces control characters by '?': no terminal obeys what is left. */
void gci_make_printable(char *text);

/* Exit status of a command that has done what it could, for all but some: as rsync's. */
#define GCI_EXIT_PARTIAL 23

/* Makes `e` empty again. */
void gci_error_clear(struct gci_error *e);

#endif
