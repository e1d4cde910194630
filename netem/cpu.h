/* SPDX-License-Identifier: MIT
 * How busy the CPUs were, so that a lab's user knows whether times are the network's. */
#ifndef GCI_NETEM_CPU_H
#define GCI_NETEM_CPU_H

#include <stdint.h>

#define GCI_CPU_BUSY_PERCENT 70
#define GCI_CPU_MIN_TICKS    100 /* less says nothing */

/* Ticks of all CPUs since the start of the system, by /proc/stat; zeros where it is not there. */
void gci_cpu_read(uint64_t *busy, uint64_t *total);

/* Percent, or -1 when there were too few ticks to say. */
static inline int gci_cpu_percent(uint64_t busy, uint64_t total)
{
	return total < GCI_CPU_MIN_TICKS ? -1 : (int)(busy * 100 / total);
}

#endif
