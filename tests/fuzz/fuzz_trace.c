/* SPDX-License-Identifier: MIT
 * Recorded runs. What it takes must print to what parses to the same print. */
#include "tools/lib/trace_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_buf first = {0}, second = {0};
	struct gci_error e = {0};
	struct gct_trace t;

	if (gct_trace_parse(&t, (const char *)data, size, "f", &e)) {
		if (!e.status || !*e.text)
			abort(); /* refused without a word */
		return 0;
	}
	gct_trace_print(&t, &first);
	gct_trace_free(&t);
	if (gct_trace_parse(&t, (const char *)first.data, first.len, "f", &e))
		abort();
	gct_trace_print(&t, &second);
	gct_trace_free(&t);
	if (first.len != second.len || memcmp(first.data, second.data, first.len))
		abort();
	gci_buf_free(&first);
	gci_buf_free(&second);
	return 0;
}
