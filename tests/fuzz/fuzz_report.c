/* SPDX-License-Identifier: MIT
 * The files of a report: what bench and plan wrote as JSON. What is refused leaves nothing behind. */
#include "tools/report/impl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gct_html r = {.title = ""};
	struct gci_error e = {0};
	size_t i;

	if (gct_html_json(&r, "f", (const char *)data, size, &e)) {
		if (!e.status || !*e.text || r.ncases || r.nplans || r.nsources)
			abort();
	} else if (r.nsources + r.nplans != 1) {
		abort();
	}
	for (i = 0; i < r.ncases; i++)
		if (!r.cases[i].asked || !r.cases[i].algorithm || !r.cases[i].dilation)
			abort();
	gct_html_free(&r);
	return 0;
}
