/* SPDX-License-Identifier: MIT
 * The grid's digest, and the section by which a dilated grid keeps it. */
#include "base/buf.h"
#include "base/prng.h"
#include "base/units.h"
#include "collectives/grid/grid_impl.h"

#include <stdlib.h>
#include <string.h>

#define fail(p, ...) gci_grid_fail_at(p, (p)->line, __VA_ARGS__)

uint64_t gci_grid_digest(const struct gci_grid *g)
{
	return g->digest;
}

int gci_grid_open_dilated(struct gci_grid_parser *p)
{
	if (p->dilated_line)
		return fail(p, "[dilated] is there twice (first in line %d)", p->dilated_line);
	p->dilated_line = p->line;
	p->in_dilated = 1;
	return 0;
}

static int digest_key(struct gci_grid_parser *p, const char *value)
{
	char *end;

	if (strlen(value) != 16 || strspn(value, "0123456789abcdef") != 16)
		return fail(p, "digest = %s, expected 16 digits from 0 to f", value);
	p->g->digest = strtoull(value, &end, 16);
	return 0;
}

int gci_grid_dilated_key(struct gci_grid_parser *p, const char *key, const char *value)
{
	uint64_t k;

	if (!strcmp(key, "digest"))
		return digest_key(p, value);
	if (strcmp(key, "times"))
		return fail(p, "unknown key \"%s\" in [dilated], expected times or digest", key);
	if (gci_parse_uint(value, UINT32_MAX, &k) || !k)
		return fail(p, "times = %s, expected a number from 1", value);
	p->g->dilation = (uint32_t)k;
	p->g->amended = k == 1;
	return 0;
}

/* Of the canonical text; a dilated grid brings its digest along. */
int gci_grid_set_digest(struct gci_grid_parser *p)
{
	struct gci_grid *g = p->g;
	struct gci_buf text = {0};

	if (p->dilated_line && (!g->dilation || !g->digest))
		return gci_grid_fail_at(
			p, p->dilated_line, "[dilated], expected times and digest in it");
	if (p->dilated_line)
		return 0;
	g->dilation = 1;
	gci_grid_print_model(g, &text);
	g->digest = gci_digest_bytes(1, text.data, text.len);
	g->digest += !g->digest; /* 0 is none */
	if (text.failed)
		gci_grid_nomem(p);
	gci_buf_free(&text);
	return p->e->status;
}
