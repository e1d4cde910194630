/* SPDX-License-Identifier: MIT
 * What is written to standard error meanwhile, as the log is:
 *
 *	struct captured log = capture_begin();
 *	...
 *	capture_end(&log);	// log.text
 */
#ifndef GCI_TESTS_CAPTURED_H
#define GCI_TESTS_CAPTURED_H

#include "tests/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct captured {
	int log, err;
	char text[64 << 10];
};

static inline struct captured capture_begin(void)
{
	struct captured c = {.log = memfd_create("log", MFD_CLOEXEC), .err = dup(STDERR_FILENO)};

	assert_true(c.log >= 0 && c.err >= 0);
	assert_true(dup2(c.log, STDERR_FILENO) >= 0);
	return c;
}

/* What there is until now; more may come. */
static inline void capture_look(struct captured *c)
{
	ssize_t n = pread(c->log, c->text, sizeof(c->text) - 1, 0);

	c->text[n > 0 ? n : 0] = '\0';
}

static inline void capture_end(struct captured *c)
{
	dup2(c->err, STDERR_FILENO);
	capture_look(c);
	close(c->log);
	close(c->err);
}

/* How often `what` is in it. */
static inline int captured_times(const struct captured *c, const char *what)
{
	const char *at;
	int n = 0;

	for (at = c->text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

#endif
