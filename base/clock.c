/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * GCI_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t gci_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t gci_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

void gci_sleep_ns(uint64_t ns)
{
	struct timespec left = {
		.tv_sec = (time_t)(ns / GCI_NS_PER_S), .tv_nsec = (long)(ns % GCI_NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}
