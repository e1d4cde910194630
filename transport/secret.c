/* SPDX-License-Identifier: MIT */
#include "transport/secret.h"

#include "base/units.h"

#include <ctype.h>
#include <string.h>

static int digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int gci_secret_parse(const void *text, size_t len, uint8_t secret[GCI_SECRET_NBYTES])
{
	const uint8_t *p = text;
	size_t i;
	int bad;

	while (len && isspace(p[len - 1]))
		len--;
	for (; len && isspace(*p); len--)
		p++;
	bad = len != 2 * GCI_SECRET_NBYTES;
	for (i = 0; i < GCI_SECRET_NBYTES && !bad; i++) {
		int high = digit(p[2 * i]), low = digit(p[2 * i + 1]);

		bad = high < 0 || low < 0;
		secret[i] = (uint8_t)(bad ? 0 : high << 4 | low);
	}
	if (bad)
		explicit_bzero(secret, GCI_SECRET_NBYTES);
	return bad ? -1 : 0;
}

void gci_secret_format(const uint8_t secret[GCI_SECRET_NBYTES], char text[GCI_SECRET_TEXT])
{
	gci_format_hex(secret, GCI_SECRET_NBYTES, text);
	memcpy(text + 2 * GCI_SECRET_NBYTES, "\n", 2);
}
