/* SPDX-License-Identifier: MIT */
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

void gct_wrapped(FILE *out, const char *text, int at, int indent)
{
	int begun = 0;

	for (;;) {
		int len;

		text += strspn(text, " ");
		len = (int)strcspn(text, " ");
		if (!len)
			break;
		if (begun && at + 1 + len > GCT_COLUMNS) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		} else if (begun) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", len, text);
		text += len;
		at += len;
		begun = 1;
	}
	fputc('\n', out);
}
