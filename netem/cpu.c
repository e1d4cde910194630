/* SPDX-License-Identifier: MIT */
#include "netem/cpu.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { NICE = 1, IDLE = 3, IOWAIT = 4, STEAL = 7, NKINDS = 8 }; /* of proc_stat(5) */

static void read_ticks(unsigned long long v[NKINDS])
{
	FILE *f = fopen("/proc/stat", "re");

	memset(v, 0, NKINDS * sizeof(*v));
	if (!f)
		return;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		    &v[4], &v[5], &v[6], &v[7]) < 4)
		memset(v, 0, NKINDS * sizeof(*v));
	fclose(f);
}

void gci_cpu_read(uint64_t *busy, uint64_t *total)
{
	unsigned long long v[NKINDS];
	int i, goes_first = getpriority(PRIO_PROCESS, 0) <= 0;

	read_ticks(v);
	*busy = *total = 0;
	for (i = 0; i < NKINDS; i++) {
		*total += v[i];
		*busy += (i == NICE && goes_first) || i == IDLE || i == IOWAIT ? 0 : v[i];
	}
}

uint64_t gci_cpu_stolen(void)
{
	unsigned long long v[NKINDS];

	read_ticks(v);
	return v[STEAL];
}
