/* SPDX-License-Identifier: MIT
 * The grid file's parser. What it takes must print to what parses to the same print. */
#include "base/buf.h"
#include "collectives/grid/grid.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_buf first = {0}, second = {0};
	struct gci_error e = {0};
	struct gci_grid g;

	if (gci_grid_parse(&g, (const char *)data, size, "f", &e)) {
		if (!e.status || !*e.text)
			abort(); /* refused without a word */
		return 0;
	}
	gci_grid_print(&g, &first);
	gci_grid_free(&g);
	if (gci_grid_parse(&g, (const char *)first.data, first.len, "f", &e))
		abort();
	gci_grid_print(&g, &second);
	if (first.len != second.len || memcmp(first.data, second.data, first.len))
		abort();
	gci_grid_dilate(&g, 20);
	gci_grid_free(&g);
	gci_buf_free(&first);
	gci_buf_free(&second);
	return 0;
}
