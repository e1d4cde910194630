/* SPDX-License-Identifier: MIT */
#include "tests/tools/timelines.h"

#include "base/buf.h"
#include "base/mem.h"

void made_grid(struct made *m, int nclusters, int nhosts)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	int i, k;

	*m = (struct made){.names = NULL};
	for (i = 0; i < nclusters; i++)
		gci_buf_printf(&text,
			"[cluster c%d]\nhosts = c%dh[0-%d]\nnic = 1Gbit\nlan_delay = 50us\n", i, i,
			nhosts - 1);
	for (i = 0; i < nclusters; i++)
		for (k = i + 1; k < nclusters; k++)
			gci_buf_printf(
				&text, "[link c%d c%d]\nrate = 10Gbit\ndelay = 10ms\n", i, k);
	if (gci_grid_parse(&m->grid, gci_buf_cstr(&text), text.len, "made", &e))
		fail_msg("%s", e.text);
	gci_buf_free(&text);
	m->names = gci_calloc((size_t)m->grid.nhosts, sizeof(*m->names));
	m->clusters = gci_calloc((size_t)nclusters, sizeof(*m->clusters));
	for (i = 0; i < m->grid.nhosts; i++)
		m->names[i] = gci_grid_host(&m->grid, i);
	for (i = 0; i < nclusters; i++)
		m->clusters[i] = m->grid.clusters[i].name;
	assert_int_equal(gci_topo_create(&m->topo, &m->grid, NULL, m->grid.nhosts), 0);
	m->timeline.topo = &m->topo;
	m->timeline.esize = 1;
}

void made_free(struct made *m)
{
	gct_timeline_free(&m->timeline);
	gci_topo_free(&m->topo);
	gci_grid_free(&m->grid);
	gci_free(m->names);
	gci_free(m->clusters);
}

static uint32_t next_step(const struct made *m, int rank)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < m->timeline.n; i++)
		n += m->timeline.spans[i].rank == rank;
	return n;
}

void made_message(struct made *m, int from, int to, uint32_t tag, uint64_t nbytes,
	uint64_t ready_ns, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t delay =
		gci_topo_link(&m->topo, m->topo.cluster[from], m->topo.cluster[to])->delay_ns;
	struct gct_span s = {.rank = from,
		.peer = to,
		.step = next_step(m, from),
		.tag = tag,
		.kind = GCI_STEP_SEND,
		.nbytes = nbytes,
		.ready_ns = ready_ns,
		.from_ns = from_ns,
		.to_ns = to_ns};

	gct_timeline_add(&m->timeline, &s);
	s.rank = to;
	s.peer = from;
	s.kind = GCI_STEP_RECV;
	s.step = next_step(m, to);
	s.ready_ns = 0;
	s.from_ns += delay;
	s.to_ns += delay;
	gct_timeline_add(&m->timeline, &s);
}

void made_compute(struct made *m, int rank, uint64_t from_ns, uint64_t to_ns)
{
	struct gct_span s = {.rank = rank,
		.peer = rank,
		.step = next_step(m, rank),
		.kind = GCI_STEP_REDUCE,
		.ready_ns = from_ns,
		.from_ns = from_ns,
		.to_ns = to_ns};

	gct_timeline_add(&m->timeline, &s);
}
