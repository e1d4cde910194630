/* SPDX-License-Identifier: MIT */
#include "base/bins.h"

#include "base/mem.h"

#include <string.h>

int gci_bins_init(struct gci_bins *b, uint64_t bin_ns, uint32_t cap)
{
	*b = (struct gci_bins){.bin_ns = bin_ns, .cap = cap};
	b->at = gci_calloc(cap, sizeof(*b->at));
	return b->at ? 0 : -1;
}

void gci_bins_free(struct gci_bins *b)
{
	gci_free(b->at);
	*b = (struct gci_bins){0};
}

/* Makes room up to and with this bin. */
static void reach(struct gci_bins *b, uint64_t number)
{
	if (!b->end || number - b->end >= b->cap) {
		memset(b->at, 0, b->cap * sizeof(*b->at));
		b->end = number + 1;
		return;
	}
	while (b->end <= number)
		b->at[b->end++ % b->cap] = 0;
}

static int is_old(const struct gci_bins *b, uint64_t number)
{
	return number < b->end && b->end - number > b->cap;
}

void gci_bins_put(struct gci_bins *b, uint64_t number, uint64_t nbytes)
{
	if (!nbytes || is_old(b, number) || number == UINT64_MAX) {
		b->missed += nbytes;
		return;
	}
	if (number >= b->end)
		reach(b, number);
	b->at[number % b->cap] += nbytes;
}

void gci_bins_add(struct gci_bins *b, uint64_t from_ns, uint64_t to_ns, uint64_t nbytes)
{
	uint64_t reach_ns = (b->cap - 1) * b->bin_ns, length, put = 0, number, upto;

	/* What is longer ago than the ring reaches back need not be told apart. */
	if (to_ns > from_ns && to_ns - from_ns > reach_ns)
		from_ns = to_ns - reach_ns;
	length = to_ns > from_ns ? to_ns - from_ns : 0;
	for (number = from_ns / b->bin_ns; length && (number + 1) * b->bin_ns < to_ns; number++) {
		/* What had gone by the bin's end, less what is in bins already. */
		upto = (uint64_t)((double)nbytes *
				  ((double)((number + 1) * b->bin_ns - from_ns) / (double)length));
		upto = upto > nbytes ? nbytes : upto;
		gci_bins_put(b, number, upto - put);
		put = upto;
	}
	gci_bins_put(b, number, nbytes - put);
}

uint64_t gci_bins_get(const struct gci_bins *b, uint64_t number)
{
	return number >= b->end || is_old(b, number) ? 0 : b->at[number % b->cap];
}

uint64_t gci_bins_sum(const struct gci_bins *b, uint64_t first, uint64_t end)
{
	uint64_t sum = 0;

	if (end > b->end)
		end = b->end;
	if (b->end > b->cap && first < b->end - b->cap)
		first = b->end - b->cap;
	for (; first < end; first++)
		sum += b->at[first % b->cap];
	return sum;
}
