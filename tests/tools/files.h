/* SPDX-License-Identifier: MIT
 * Files for tests, in a directory of their own that goes with the test.
 *
 *	scratch_make();				// as a test's setup
 *	make_file(in_scratch("a"), 100, 1);
 *	assert_same_files(in_scratch("a"), in_scratch("out/1/a"));
 *	scratch_remove();			// as its teardown */
#ifndef GCI_TESTS_TOOLS_FILES_H
#define GCI_TESTS_TOOLS_FILES_H

#include "tests/test.h"

#include <sys/stat.h>

int scratch_make(void **state);
int scratch_remove(void **state);

/* A path below the directory; good for the next 15 calls. */
const char *in_scratch(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* Noise of this length, a different one for each seed. */
void make_file(const char *path, uint64_t nbytes, uint64_t seed);

/* The same, then zeros up to 8 GiB that take no disk space: more than a copy has moved before a
 * test has done its part. */
void make_endless(const char *path, uint64_t nbytes, uint64_t seed);

void make_text(const char *path, const char *text);
void make_dir(const char *path);

/* Changes a bit of the byte at `at`. */
void flip(const char *path, uint64_t at);

/* The same, but the size and the time are what they were. */
void flip_in_secret(const char *path, uint64_t at);

struct stat look(const char *path);
int is_there(const char *path);

/* Contents, mode and time. Byte by byte, but for holes that both have. */
void assert_same_files(const char *a, const char *b);
void assert_text(const char *path, const char *text);

/* How many entries a directory has, hidden ones counted; -1: it is not there. */
int entries(const char *path);

/* From now on this process, of one thread, makes no file without a name. 0, or it may not see to
 * that. */
int forbid_unnamed(void);

/* Does this directory's file system make files without a name? */
int makes_unnamed(const char *path);

/* Waits until somebody writes a file in this directory: one without a name, or under a temporary one. */
void await_writer(const char *path);

/* Waits until the directory has an entry whose name begins so. */
void await_entry(const char *path, const char *prefix);

#endif
