/* SPDX-License-Identifier: MIT
 * cmocka, with the headers it needs before it, and what tests of all rooms use. */
#ifndef GCI_TESTS_TEST_H
#define GCI_TESTS_TEST_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

/* cmocka's macro fail() takes a name that is a member of the transport's vtable. */
#undef fail
#undef fail_msg
#define fail_msg(...)                               \
	do {                                        \
		print_error("ERROR: " __VA_ARGS__); \
		print_error("\n");                  \
		_fail(__FILE__, __LINE__);          \
	} while (0)

/* How often `what` is in the text, not counting where it would overlap itself. */
static inline int occurrences(const char *text, const char *what)
{
	size_t len = strlen(what);
	int n = 0;

	/* Not strstr, for which AddressSanitizer measures all that follows, every time. */
	while ((text = strchr(text, *what))) {
		int is_one = !strncmp(text, what, len);

		n += is_one;
		text += is_one ? len : 1;
	}
	return n;
}

/* Sanitizers make everything several times slower: long tests take smaller samples then. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

#endif
