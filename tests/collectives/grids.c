/* SPDX-License-Identifier: MIT */
#include "tests/collectives/grids.h"

#include "tests/test.h"

#include <string.h>

void grid_of(struct gci_grid *g, const char *text)
{
	struct gci_error e = {0};

	if (gci_grid_parse(g, text, strlen(text), "g.grid", &e))
		fail_msg("%s", e.text);
}

void grid_refused_bytes(const char *text, size_t len, const char *want)
{
	struct gci_error e = {0};
	struct gci_grid g;

	assert_int_equal(gci_grid_parse(&g, text, len, "g.grid", &e), GCOLL_ERR_PARSE);
	assert_string_equal(e.text, want);
	assert_null(g.clusters);
	assert_null(g.links);
	assert_null(g.wires);
	assert_null(g.routes);
}

void grid_refused(const char *text, const char *want)
{
	grid_refused_bytes(text, strlen(text), want);
}
