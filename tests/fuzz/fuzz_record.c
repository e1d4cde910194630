/* SPDX-License-Identifier: MIT
 * The parser of recorded runs. What it takes must print to what parses to the same print, and go on
 * counting. */
#include "base/buf.h"
#include "collectives/tuner/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_buf first = {0}, second = {0};
	struct gci_error e = {0};
	struct gci_record r;
	size_t i;

	if (gci_record_parse(&r, (const char *)data, size, "f", &e)) {
		if (!e.status || strncmp(e.text, "f:", 2) || r.entries)
			abort(); /* refused without a word */
		return 0;
	}
	gci_record_print(&r, &first);
	gci_record_free(&r);
	if (gci_record_parse(&r, (const char *)first.data, first.len, "f", &e))
		abort();
	gci_record_print(&r, &second);
	if (first.len != second.len || memcmp(first.data, second.data, first.len))
		abort();
	for (i = 0; i < size; i++)
		gci_record_count(&r, (enum gci_kind)(data[i] % GCI_NKINDS), 1 + data[i] / 16,
			UINT64_C(1) << (data[i] & 63));
	gci_record_free(&r);
	gci_buf_free(&first);
	gci_buf_free(&second);
	return 0;
}
