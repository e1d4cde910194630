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

#endif
