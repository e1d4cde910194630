/* SPDX-License-Identifier: MIT
 * A job's secret as other managers hand it over. What is taken prints as it was, but for case and
 * the white space around. */
#include "transport/secret.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t secret[GCI_SECRET_NBYTES];
	char text[GCI_SECRET_TEXT];
	size_t at = 0, i;

	if (gci_secret_parse(data, size, secret))
		return 0;
	gci_secret_format(secret, text);
	while (isspace(data[at]))
		at++;
	for (i = 0; i < 2 * GCI_SECRET_NBYTES; i++)
		if (tolower(data[at + i]) != text[i])
			abort();
	for (at += i; at < size; at++)
		if (!isspace(data[at]))
			abort();
	return 0;
}
