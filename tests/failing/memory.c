/* SPDX-License-Identifier: MIT
 * base/mem.h. Where a vector has room already, nothing is asked for, and nothing fails. */
#include "tests/failing/failing.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

/* What else failed, as gci_mem_fail_at says, is put down as well. */
#define WRAP(type, name, params, args, asks, bad)                                      \
	type __real_##name params;                                                     \
	type __wrap_##name params;                                                     \
	type __wrap_##name params                                                      \
	{                                                                              \
		type got;                                                              \
                                                                                       \
		if ((asks) && failing_must(FAILING_##name))                            \
			return bad;                                                    \
		got = __real_##name args;                                              \
		if (got == (bad))                                                      \
			failing_put_down(FAILING_##name, __builtin_return_address(0)); \
		return got;                                                            \
	}

/* clang-format off */
WRAP(void *, gci_calloc, (size_t n, size_t size), (n, size), 1, NULL)
WRAP(void *, gci_reallocarray, (void *p, size_t n, size_t size), (p, n, size), 1, NULL)
WRAP(char *, gci_strdup, (const char *s), (s), 1, NULL)
WRAP(char *, gci_strndup, (const char *s, size_t n), (s, n), 1, NULL)
WRAP(int, gci_grow, (void *vec, size_t *cap, size_t need, size_t size), (vec, cap, need, size),
	need > *cap, -1)
WRAP(int, gci_grow_by_one, (void *vec, size_t n, size_t size), (vec, n, size), !(n & (n - 1)), -1)
WRAP(void *, gci_secret_alloc, (size_t nbytes), (nbytes), 1, NULL)
WRAP(void *, gci_blocks_take, (struct gci_blocks *blocks), (blocks), !blocks->spare, NULL)
/* clang-format on */

char *__wrap_gci_asprintf(const char *fmt, ...);

char *__wrap_gci_asprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	int len;

	if (failing_must(FAILING_gci_asprintf))
		return NULL;
	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len >= 0)
		s = __real_gci_calloc((size_t)len + 1, 1);
	va_start(ap, fmt);
	if (s)
		vsnprintf(s, (size_t)len + 1, fmt, ap);
	else
		failing_put_down(FAILING_gci_asprintf, __builtin_return_address(0));
	va_end(ap);
	return s;
}
