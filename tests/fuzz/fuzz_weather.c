/* SPDX-License-Identifier: MIT
 * A file of changes of links. What is taken is in order, and each change is of a link of the grid and
 * within its bounds. */
#include "netem/weather.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static const struct gci_grid *grid(void)
{
	static const char text[] = "[cluster a]\nhosts = a\n[cluster b]\nhosts = b\n[cluster c]\n"
				   "hosts = c\n[link a b]\nrate = 1Gbit\n[link a c]\nrate = 1Gbit\n"
				   "[link b c]\nrate = 1Gbit\n";
	static struct gci_grid g;

	if (!g.nclusters)
		check(!gci_grid_parse(&g, text, strlen(text), "grid", NULL));
	return &g;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_wire_model m = {.rate_bps = 1000, .queue_nbytes = 1, .loss_burst = 1};
	const struct gci_grid *g = grid();
	struct gci_error e = {0};
	struct gci_weather w;
	size_t i;

	if (gci_weather_parse(&w, (const char *)data, size, "fuzz", g, &e)) {
		check(e.status && !strncmp(e.text, "fuzz:", 5) && !w.changes);
		return 0;
	}
	check(!e.status);
	for (i = 0; i < w.nchanges; i++) {
		check(w.changes[i].wire >= 0 && w.changes[i].wire < g->nwires && w.changes[i].set);
		check(!i || w.changes[i - 1].at_ns <= w.changes[i].at_ns);
		gci_weather_apply(&w.changes[i], &m);
		check(m.rate_bps >= 1000 && m.queue_nbytes && m.loss_burst);
		check(m.loss_ppm <= 1000000 && m.reorder_ppm <= 1000000);
		check(!m.codel_target_ns == !m.codel_interval_ns);
	}
	gci_weather_dilate(&w, 7);
	gci_weather_free(&w);
	return 0;
}
