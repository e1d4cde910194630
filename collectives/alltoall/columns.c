/* SPDX-License-Identifier: MIT */
#include "collectives/alltoall/alltoall.h"

uint64_t gci_column_len(const struct gci_coll *c, const struct gci_group *from, int to)
{
	uint64_t sum = 0;
	int i;

	if (!c->counts)
		return c->count * (unsigned)from->n;
	for (i = 0; i < from->n; i++)
		sum += gci_block_len(c, gci_group_rank(from, i), to);
	return sum;
}

/* The blocks from members [*at, end) as far as they stand one after the other in OUT. */
static struct gci_slice next_run(const struct gci_builder *b, const struct gci_coll *c,
	const struct gci_group *from, int *at, int end)
{
	struct gci_slice run = gci_slice(GCI_OUT, 0, 0);

	for (; *at < end; ++*at) {
		struct gci_slice s = gci_out_block(c, b->rank, gci_group_rank(from, *at));

		if (s.length && run.length && run.offset + run.length != s.offset)
			break;
		if (s.length && !run.length)
			run.offset = s.offset;
		run.length += s.length;
	}
	return run;
}

struct gci_slice gci_column_slice(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *from)
{
	uint64_t len = gci_column_len(c, from, b->rank);
	int at = 0;
	struct gci_slice run = next_run(b, c, from, &at, from->n);

	return at == from->n ? run : gci_slice(GCI_TMP, gci_tmp(b, len), len);
}

void gci_column_place(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *from,
	int a, int z, struct gci_slice packed)
{
	while (a < z && packed.buffer != GCI_OUT) {
		struct gci_slice run = next_run(b, c, from, &a, z), src = packed;

		src.length = run.length;
		packed.offset += run.length;
		gci_copy_some(b, run, src);
	}
}
