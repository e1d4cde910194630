/* SPDX-License-Identifier: MIT */
#include "netem/cpu.h"

#include <stdio.h>

void gci_cpu_read(uint64_t *busy, uint64_t *total)
{
	unsigned long long v[8] = {0};
	FILE *f = fopen("/proc/stat", "re");
	int i;

	*busy = *total = 0;
	if (!f)
		return;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		    &v[4], &v[5], &v[6], &v[7]) >= 4)
		for (i = 0; i < 8; i++) {
			*total += v[i];
			*busy += i == 3 || i == 4 ? 0 : v[i]; /* idle, iowait */
		}
	fclose(f);
}
