/* SPDX-License-Identifier: MIT */
#include "tools/lib/markup.h"

void gct_markup_text(struct gci_buf *out, const char *s)
{
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '<')
			gci_buf_printf(out, "&lt;");
		else if (c == '>')
			gci_buf_printf(out, "&gt;");
		else if (c == '&')
			gci_buf_printf(out, "&amp;");
		else if (c == '"')
			gci_buf_printf(out, "&quot;");
		else
			gci_buf_put_u8(out, c < ' ' || c > '~' ? '?' : c);
	}
}
