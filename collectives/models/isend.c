/* SPDX-License-Identifier: MIT */
#include "collectives/models/isend.h"

uint64_t gci_isend_pending(uint64_t gap_ns, uint64_t previous, uint64_t since_first_ns)
{
	uint64_t carried = gap_ns ? since_first_ns / gap_ns : previous;

	return previous > carried ? previous - carried : 0;
}

uint64_t gci_isend_ns(const struct gci_params_isend *p, uint64_t gap_ns, uint64_t previous,
	uint64_t since_first_ns)
{
	uint64_t pending = gci_isend_pending(gap_ns, previous, since_first_ns);

	if (!p->immediate || pending < p->initial)
		return p->os_start_ns;
	if ((pending - p->initial) % (UINT64_C(1) + p->mid))
		return p->os_mid_ns;
	return p->os_spike_ns;
}

uint64_t gci_isend_next(
	const struct gci_params_isend *p, uint64_t gap_ns, struct gci_isends *row, uint64_t now_ns)
{
	if (!gci_isend_pending(gap_ns, row->n, now_ns - row->first_ns))
		*row = (struct gci_isends){0, now_ns};
	return gci_isend_ns(p, gap_ns, row->n++, now_ns - row->first_ns);
}

const struct gci_params_isend *gci_isend_at(const struct gci_params_link *l, uint64_t nbytes)
{
	size_t i = 0;

	if (!l->nisends)
		return NULL;
	while (i + 1 < l->nisends && l->isends[i + 1].nbytes <= nbytes)
		i++;
	return &l->isends[i];
}
