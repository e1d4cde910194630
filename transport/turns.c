/* SPDX-License-Identifier: MIT */
#include "transport/turns.h"

#define FEW_NS (GCI_TURNS_FEW * GCI_TURNS_APART_NS)

/* It is over as soon as with twice as many: however many come, a moment later they are forgotten. */
void gci_turns_refused(struct gci_turns *t, uint64_t now_ns)
{
	if (t->crowded_ns < now_ns)
		t->crowded_ns = now_ns;
	t->crowded_ns += GCI_TURNS_APART_NS;
	if (t->crowded_ns > now_ns + 2 * FEW_NS)
		t->crowded_ns = now_ns + 2 * FEW_NS;
}

uint64_t gci_turns_wait(struct gci_turns *t, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - t->began_ns;

	if (now_ns >= t->crowded_ns || t->crowded_ns - now_ns <= FEW_NS || since_ns >= GCI_TURN_NS)
		t->began_ns = now_ns;
	else if (since_ns >= GCI_TURN_LASTS_NS)
		return GCI_TURN_NS - since_ns;
	return 0;
}
