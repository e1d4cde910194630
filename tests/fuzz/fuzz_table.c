/* SPDX-License-Identifier: MIT
 * The parser of decision tables. What it takes must print to what parses to the same print and
 * digest, and answer for any size. */
#include "base/buf.h"
#include "collectives/tuner/table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct gci_table *t)
{
	struct gci_candidate how;
	int kind, bit;

	for (kind = 0; kind < GCI_NKINDS; kind++)
		for (bit = 0; bit < 64; bit++) {
			uint64_t nbytes = (UINT64_C(1) << bit) + (uint64_t)bit;

			gci_table_ns(t, (enum gci_kind)kind, t->nranks, nbytes);
			if (!gci_table_find(t, (enum gci_kind)kind, t->nranks, nbytes, &how)) {
				if (t->nentries[kind])
					abort();
				continue;
			}
			if (how.algorithm->kind != (enum gci_kind)kind)
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_buf first = {0}, second = {0};
	struct gci_error e = {0};
	struct gci_table t;
	uint64_t digest;

	if (gci_table_parse(&t, (const char *)data, size, "f", 0, &e)) {
		if (!e.status || strncmp(e.text, "f:", 2) || t.nranks)
			abort(); /* refused without a word */
		return 0;
	}
	digest = gci_table_digest(&t);
	gci_table_print(&t, &first);
	gci_table_free(&t);
	if (gci_table_parse(&t, (const char *)first.data, first.len, "f", 0, &e) ||
		gci_table_digest(&t) != digest)
		abort();
	gci_table_print(&t, &second);
	if (first.len != second.len || memcmp(first.data, second.data, first.len))
		abort();
	use(&t);
	gci_table_dilate(&t, 20);
	use(&t);
	gci_table_free(&t);
	gci_buf_free(&first);
	gci_buf_free(&second);
	return 0;
}
