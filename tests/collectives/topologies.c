/* SPDX-License-Identifier: MIT */
#include "tests/collectives/topologies.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parse(struct gci_grid *g, const char *text, size_t len, const char *name)
{
	struct gci_error e = {0};

	if (!gci_grid_parse(g, text, len, name, &e))
		return;
	fprintf(stderr, "%s\n", e.text);
	abort();
}

static void deal(int *host, const int *sizes, int nranks)
{
	int round, c, first, rank = 0;

	for (round = 0; rank < nranks; round++)
		for (c = 0, first = 0; sizes[c]; first += sizes[c++])
			if (round < sizes[c])
				host[rank++] = first + round;
}

void topology_make(struct gci_topo *t, const int *sizes, int shuffle, int wan_gbit)
{
	struct gci_buf text = {0};
	struct gci_grid g;
	int c, d, i, n = 0, *host;

	for (c = 0; sizes[c]; n += sizes[c++])
		gci_buf_printf(
			&text, "[cluster c%d]\nhosts = c%dh[1-%d]\nnic = 1Gbit\n", c, c, sizes[c]);
	for (d = 0; d < c; d++)
		for (i = 0; i < d; i++)
			gci_buf_printf(&text, "[link c%d c%d]\nrate = %dGbit\ndelay = %dms\n", i, d,
				wan_gbit, 10 + d);
	parse(&g, gci_buf_cstr(&text), text.len, "test.grid");
	host = gci_calloc((size_t)n, sizeof(*host));
	for (i = 0; i < n; i++)
		host[i] = i;
	if (shuffle)
		deal(host, sizes, n);
	if (gci_topo_create(t, &g, host, n))
		abort();
	gci_free(host);
	gci_buf_free(&text);
	gci_grid_free(&g);
}

static void of_grid(struct gci_topo *t, struct gci_grid *g, int nranks)
{
	if (gci_topo_create(t, g, NULL, nranks ? nranks : g->nhosts))
		abort();
	gci_grid_free(g);
}

void topology_parse(struct gci_topo *t, const char *text)
{
	struct gci_grid g;

	parse(&g, text, strlen(text), "test.grid");
	of_grid(t, &g, 0);
}

void topology_read(struct gci_topo *t, const char *path, int nranks)
{
	static char text[1 << 16];
	FILE *f = path ? fopen(path, "re") : NULL;
	struct gci_grid g;
	size_t len;

	if (!f)
		abort();
	len = fread(text, 1, sizeof(text), f);
	fclose(f);
	parse(&g, text, len, path);
	of_grid(t, &g, nranks);
}
