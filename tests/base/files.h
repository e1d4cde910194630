/* SPDX-License-Identifier: MIT
 * Tests of files, each in an empty directory of its own, which is the current one meanwhile.
 *
 *	cmocka_unit_test_setup_teardown(a_test, files_setup, files_teardown) */
#ifndef GCI_TESTS_BASE_FILES_H
#define GCI_TESTS_BASE_FILES_H

#include "tests/test.h"

#include "base/file.h"

int files_setup(void **state);
/* Fails where anything but "a", "d", "link" and "pipe" was left behind. */
int files_teardown(void **state);

/* gci_file_write of a text. */
int files_put(const char *path, const char *text, struct gci_error *e);

/* How many there are. */
int files_count(void);

#endif
