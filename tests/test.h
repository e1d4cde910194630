/* SPDX-License-Identifier: MIT
 * cmocka, with the headers it needs before it. */
#ifndef GCI_TESTS_TEST_H
#define GCI_TESTS_TEST_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

#endif
