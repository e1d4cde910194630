/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "transport/address.h"

#include <stddef.h>

static void text_comes_back(void **state)
{
	static const char *const good[] = {
		"127.0.0.1:1", "10.1.0.3:65535", "[::1]:5000", "[2001:db8::7]:80"};
	char text[GCI_ADDRESS_TEXT];
	struct gci_address a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(gci_address_parse(&a, good[i]), 0);
		gci_address_format(&a, text);
		assert_string_equal(text, good[i]);
	}
	assert_int_equal(a.any.sa_family, AF_INET6);
}

static void nonsense_is_refused(void **state)
{
	static const char *const bad[] = {"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0",
		"1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4: 1", "1.2.3:x", "a.example:1", "::1:5",
		"[::1]", "[::1]5", "[::1:5", "::1]:5", "[]:5", "[1.2.3.4.5]:1",
		"111111111111111111111111111111111111111111111111111111111111111111111:1"};
	struct gci_address a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(gci_address_parse(&a, bad[i]), GCOLL_ERR_INVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_comes_back),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
