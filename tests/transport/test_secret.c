/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "transport/secret.h"

#include <string.h>

static const uint8_t none[GCI_SECRET_NBYTES];

static void there_and_back(void **state)
{
	uint8_t secret[GCI_SECRET_NBYTES], again[GCI_SECRET_NBYTES];
	char text[GCI_SECRET_TEXT], dressed[GCI_SECRET_MAX_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)(i * 37 + 5);
	gci_secret_format(secret, text);
	assert_int_equal(strlen(text), sizeof(text) - 1);
	assert_int_equal(gci_secret_parse(text, strlen(text), again), 0);
	assert_memory_equal(again, secret, sizeof(secret));
	for (i = 0; text[i]; i++) /* 'a' is 'A' */
		dressed[i + 2] = (char)(text[i] >= 'a' ? text[i] - 32 : text[i]);
	memcpy(dressed, " \t", 2);
	memcpy(dressed + 2 + i, "\r\n", 2);
	assert_int_equal(gci_secret_parse(dressed, i + 4, again), 0);
	assert_memory_equal(again, secret, sizeof(secret));
}

static void refused(const char *text, size_t len)
{
	uint8_t secret[GCI_SECRET_NBYTES];

	memset(secret, 7, sizeof(secret));
	assert_int_equal(gci_secret_parse(text, len, secret), -1);
	assert_memory_equal(secret, none, sizeof(none));
}

static void what_is_none(void **state)
{
	char text[2 * GCI_SECRET_NBYTES + 2];
	size_t i;

	(void)state;
	memset(text, 'a', sizeof(text));
	refused("", 0);
	refused(" \n", 2);
	refused(text, 2 * GCI_SECRET_NBYTES - 1);
	refused(text, 2 * GCI_SECRET_NBYTES + 1);
	for (i = 0; i < 2 * GCI_SECRET_NBYTES; i += 21) {
		text[i] = "g \0-"[i / 21];
		refused(text, 2 * GCI_SECRET_NBYTES);
		text[i] = 'a';
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
