/* SPDX-License-Identifier: MIT
 * Budgets as users give them, also to a running job. */
#include "shaping/budget.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_budget_order o;
	struct gci_error e = {0};
	char text[256];

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (gci_budget_parse(&o, text, &e)) {
		if (!e.status || !*e.text)
			abort();
		return 0;
	}
	if (!*o.from || !*o.to || !strcmp(o.from, o.to) || strchr(o.from, '>') ||
		strchr(o.to, '=') || memchr(o.from, '\0', sizeof(o.from)) == NULL ||
		memchr(o.to, '\0', sizeof(o.to)) == NULL || (!o.bps && !strstr(text, "off")))
		abort();
	return 0;
}
