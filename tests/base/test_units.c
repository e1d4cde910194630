/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/units.h"

static uint64_t rate(const char *s)
{
	uint64_t v = 42;

	return gci_parse_rate(s, &v) ? UINT64_MAX : v;
}

static uint64_t time_ns(const char *s)
{
	uint64_t v = 42;

	return gci_parse_time(s, &v) ? UINT64_MAX : v;
}

static uint64_t bytes(const char *s)
{
	uint64_t v = 42;

	return gci_parse_bytes(s, &v) ? UINT64_MAX : v;
}

static void good(void **state)
{
	uint32_t ppm = 1;

	(void)state;
	assert_true(rate("1Gbit") == 1000000000);
	assert_true(rate("1.4Mbit") == 1400000);
	assert_true(rate("10 Gbit") == 10000000000ull);
	assert_true(time_ns("10ms") == 10000000);
	assert_true(time_ns("50us") == 50000);
	assert_true(time_ns("0ms") == 0);
	assert_true(bytes("25MB") == 25000000);
	assert_true(bytes("64KiB") == 65536);
	assert_true(bytes("64K") == 65536);
	assert_true(bytes("0") == 0);
	assert_true(bytes("18446744073709551615") == UINT64_MAX);
	assert_int_equal(gci_parse_ratio("0.01%", &ppm), 0);
	assert_int_equal(ppm, 100);
}

static void bad(void **state)
{
	static const char *const wrong[] = {"", "Gbit", "1", "-1Gbit", "1gbit ", "1e3bit",
		"1..2Gbit", "1.Gbit", "0.5bit", "99999999999999999999bit", "20000000Tbit",
		"1 Gbit x"};
	uint32_t ppm = 1;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_true(rate(wrong[i]) == UINT64_MAX);
	assert_true(bytes("18446744073709551616") == UINT64_MAX);
	assert_true(bytes("17000000TiB") == UINT64_MAX);
	assert_true(time_ns("10") == UINT64_MAX);
	assert_int_equal(gci_parse_ratio("101%", &ppm), -1);
	assert_int_equal(gci_parse_ratio("5", &ppm), -1);
	assert_int_equal(ppm, 1);
}

static void whole_numbers(void **state)
{
	uint64_t v = 7;

	(void)state;
	assert_int_equal(gci_parse_uint("64", 64, &v), 0);
	assert_true(v == 64);
	assert_int_equal(gci_parse_uint("65", 64, &v), -1);
	assert_int_equal(gci_parse_uint("", 64, &v), -1);
	assert_int_equal(gci_parse_uint("+1", 64, &v), -1);
	assert_int_equal(gci_parse_uint("99999999999999999999999", UINT64_MAX, &v), -1);
	assert_true(v == 64);
}

static void port_ranges(void **state)
{
	static const char *const wrong[] = {"", "-", "1", "0-5", "5-4", "1-65536", "5000-", "-5000",
		"a-b", "1-2-3", "1 - 2", "123456789-2"};
	struct gci_ports p = {1, 2};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(gci_parse_ports(wrong[i], &p), -1);
	assert_true(p.lo == 1 && p.hi == 2);
	assert_int_equal(gci_parse_ports("5000-65535", &p), 0);
	assert_true(p.lo == 5000 && p.hi == 65535);
	assert_int_equal(gci_parse_ports("7-7", &p), 0);
	assert_true(p.lo == 7 && p.hi == 7);
}

static void formats(void **state)
{
	char s[16];

	(void)state;
	assert_string_equal(gci_format_bytes(0, s, sizeof(s)), "0 B");
	assert_string_equal(gci_format_bytes(999, s, sizeof(s)), "999 B");
	assert_string_equal(gci_format_bytes(1050000000, s, sizeof(s)), "1.05 GB");
	assert_string_equal(gci_format_bytes(999999, s, sizeof(s)), "1.00 MB");
	assert_string_equal(gci_format_rate(1000000000, s, sizeof(s)), "1.00 Gbit/s");
	assert_string_equal(gci_format_time(291000000, s, sizeof(s)), "291 ms");
	assert_string_equal(gci_format_time(2400000000u, s, sizeof(s)), "2.40 s");
}

static void digits(void **state)
{
	char s[] = "untouched";

	(void)state;
	assert_string_equal(gci_format_hex("\x00\x9a\xff", 3, s), "009aff");
	assert_string_equal(s + 7, "ed");
	assert_string_equal(gci_format_hex("", 0, s), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(port_ranges),
		cmocka_unit_test(formats),
		cmocka_unit_test(digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
