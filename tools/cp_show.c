/* SPDX-License-Identifier: MIT
 * The progress bar. No line of its own: the launcher wipes it from the terminal when there is
 * something to say. */
#include "tools/cp_copy.h"

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "tools/cp_impl.h"
#include "tools/progress.h"

#include <stdio.h>

#define EVERY_NS (100 * GCI_NS_PER_MS)

/* True if it is time for another look at the line. */
static int is_due(struct gct_cp_copy *c, uint64_t *now_ns)
{
	*now_ns = gci_now_ns();
	if (!c->has_bar || *now_ns - c->shown_ns < EVERY_NS)
		return 0;
	c->shown_ns = *now_ns;
	return 1;
}

void gct_cp_show_compared(struct gct_cp_copy *c, uint64_t n)
{
	uint64_t now;
	char line[60];

	if (!is_due(c, &now))
		return;
	snprintf(line, sizeof(line), "%3d %% compared", (int)(100 * n / c->nwanted));
	gct_progress_line(line);
}

int gct_cp_look_around(void *user, uint64_t n, struct gci_error *e)
{
	struct gct_cp_copy *c = user;

	(void)n;
	return gct_cp_progress(c->comm, 0, e);
}

const char *gct_cp_cluster_name(const gcoll_comm *comm, int cluster)
{
	const struct gci_grid *g = comm->engine->grid;

	return g ? g->clusters[comm->topo.in_grid[cluster]].name : "all";
}

void gct_cp_show(void *user, uint64_t done, const uint64_t *reached)
{
	struct gct_cp_copy *c = user;
	int i, n = reached ? gcoll_clusters(c->comm) : 0;
	struct gct_cp_seen *seen;
	uint64_t now;
	char line[120];

	if (!is_due(c, &now))
		return;
	seen = gci_calloc((size_t)n, sizeof(*seen));
	for (i = 0; seen && i < n; i++) {
		int last = GCT_CP_REACHED_RANK(reached[i]);

		if (!reached[i])
			continue;
		seen[i] = (struct gct_cp_seen){gct_cp_cluster_name(c->comm, i),
			gcoll_host(c->comm, last), GCT_CP_REACHED_NS(reached[i])};
	}
	gct_cp_progress_line(line, sizeof(line), done, c->manifest.stream_nbytes, now - c->begun_ns,
		seen, seen ? n : 0);
	gci_free(seen);
	gct_progress_line(line);
}
