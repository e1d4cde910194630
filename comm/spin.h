/* SPDX-License-Identifier: MIT
 * How long to look again and again before sleeping (the setting "spin"). A sleeping thread wakes up
 * some microseconds later than a polling one sees the event. It pays where answers come soon, so a
 * spin in vain halves the time and a successful one restores it.
 *
 *	end = now + gci_spin_budget(&s);
 *	while (!(hit = look()) && gci_now_ns() < end)
 *		;
 *	gci_spin_learn(&s, hit); */
#ifndef GCI_COMM_SPIN_H
#define GCI_COMM_SPIN_H

#include <stdint.h>

#define GCI_SPIN_MOST_NS 100000 /* that may be set */
#define GCI_SPIN_LEAST   16     /* after much in vain: this part of what was set */

struct gci_spin {
	uint64_t most_ns; /* 0: off */
	uint64_t now_ns;
};

static inline void gci_spin_set(struct gci_spin *s, uint64_t most_ns)
{
	s->most_ns = s->now_ns = most_ns;
}

static inline uint64_t gci_spin_budget(const struct gci_spin *s)
{
	return s->now_ns;
}

static inline void gci_spin_learn(struct gci_spin *s, int hit)
{
	if (hit)
		s->now_ns = s->most_ns;
	else if (s->now_ns / 2 >= s->most_ns / GCI_SPIN_LEAST)
		s->now_ns /= 2;
}

#endif
