/* SPDX-License-Identifier: MIT */
#include "tools/explain.h"

#include <string.h>

static int not_the_same(const struct gct_trace_window *w, const char *name, struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_PARSE,
		"%s: rank %d's %u steps of window %u are not those of this algorithm on this grid",
		name, w->rank, w->nsteps, w->window);
}

static int join_window(struct gct_timeline *actual, const struct gct_timeline *predicted,
	const struct gct_trace_window *w, const char *name, struct gci_error *e)
{
	uint32_t i;

	/* Windows in the middle of a long message are not simulated. */
	if (!gct_timeline_find(predicted, w->rank, w->window, 0))
		return 0;
	if (gct_timeline_find(predicted, w->rank, w->window, w->nsteps))
		return not_the_same(w, name, e);
	for (i = 0; i < w->nsteps; i++) {
		const struct gct_span *p = gct_timeline_find(predicted, w->rank, w->window, i);
		struct gct_span s;

		if (!p)
			return not_the_same(w, name, e);
		s = *p;
		s.ready_ns = s.from_ns = w->at[2 * i];
		s.to_ns = w->at[2 * i + 1];
		gct_timeline_add(actual, &s);
	}
	return 0;
}

/* When the first byte of a message can have come: its sender had begun, and was asked for what is
 * too long to be sent unasked. */
static uint64_t first_byte(const struct gct_timeline *t, const struct gci_simnet *net,
	const struct gct_span *send, const struct gct_span *recv)
{
	const int *cluster = t->topo->cluster;
	int n = t->topo->nclusters, from = cluster[send->rank], to = cluster[recv->rank];
	const struct gci_simnet_link *link = &net->links[from * n + to];
	uint64_t begun = send->ready_ns,
		 asked = recv->ready_ns + net->links[to * n + from].latency_ns;

	if (recv->nbytes > link->eager_nbytes && asked > begun)
		begun = asked;
	return begun + link->latency_ns;
}

/* A RECV was recorded from when it was asked for: its bytes came later. */
static void mend_starts(struct gct_timeline *actual, const struct gci_simnet *net)
{
	size_t i;

	for (i = 0; i < actual->n; i++) {
		struct gct_span *s = &actual->spans[i];
		uint64_t first;

		if (gct_span_lane(s) != GCT_LANE_RECV || !s->other)
			continue;
		first = first_byte(actual, net, &actual->spans[s->other - 1], s);
		if (first > s->from_ns)
			s->from_ns = first < s->to_ns ? first : s->to_ns;
	}
}

static int same_step_twice(const struct gct_timeline *t)
{
	size_t i;

	for (i = 1; i < t->n; i++)
		if (t->spans[i].rank == t->spans[i - 1].rank &&
			t->spans[i].window == t->spans[i - 1].window &&
			t->spans[i].step == t->spans[i - 1].step)
			return 1;
	return 0;
}

int gct_explain_join(struct gct_timeline *actual, const struct gct_timeline *predicted,
	const struct gci_simnet *net, const struct gct_trace *t, const char *name,
	struct gci_error *e)
{
	size_t i;
	int rc = 0;

	*actual = (struct gct_timeline){.topo = predicted->topo, .esize = predicted->esize};
	for (i = 0; i < t->nwindows && !rc; i++)
		rc = join_window(actual, predicted, &t->windows[i], name, e);
	if (!rc && (actual->failed || gct_timeline_sort(actual)))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!rc && (actual->n != predicted->n || same_step_twice(actual)))
		rc = gci_error_set(e, GCOLL_ERR_PARSE,
			"%s: %zu steps, "
			"expected each of the %zu of this algorithm on this grid once",
			name, actual->n, predicted->n);
	if (rc) {
		gct_timeline_free(actual);
		return rc;
	}
	mend_starts(actual, net);
	return 0;
}
