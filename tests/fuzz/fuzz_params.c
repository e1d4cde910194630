/* SPDX-License-Identifier: MIT
 * The parser of parameter files. What it takes must print to what parses to the same print, and
 * give times at any size. */
#include "base/buf.h"
#include "base/jsontext.h"
#include "collectives/models/params_json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct gci_params *p)
{
	struct gci_params_point at;
	int i, bit;

	for (i = 0; i < p->nclusters * p->nclusters; i++) {
		gci_params_rate(&p->links[i], (uint32_t)i);
		for (bit = 0; bit < 64; bit++) {
			gci_params_at(&p->links[i], UINT64_C(1) << bit, &at);
			if (at.gap_ns < at.os_ns || at.gap_ns < at.or_ns)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct gci_buf first = {0}, second = {0};
	struct gci_error e = {0};
	struct gci_params p;

	gci_json_line(text, size, "links[1].points[2].gap_ns");
	if (gci_params_parse(&p, text, size, "f", NULL, &e)) {
		if (!e.status || strncmp(e.text, "f:", 2) || p.links || p.clusters)
			abort(); /* refused without a word */
		return 0;
	}
	gci_params_print(&p, &first);
	gci_params_free(&p);
	if (gci_params_parse(&p, (const char *)first.data, first.len, "f", NULL, &e))
		abort();
	gci_params_print(&p, &second);
	if (first.len != second.len || memcmp(first.data, second.data, first.len))
		abort();
	use(&p);
	gci_params_dilate(&p, 20);
	gci_params_undilate(&p, 7);
	use(&p);
	gci_params_free(&p);
	gci_buf_free(&first);
	gci_buf_free(&second);
	return 0;
}
