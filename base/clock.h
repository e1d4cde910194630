/* SPDX-License-Identifier: MIT
 * Time. Core code gets it passed in; only shells ask these. */
#ifndef GCI_BASE_CLOCK_H
#define GCI_BASE_CLOCK_H

#include <stdint.h>

#define GCI_NS_PER_US UINT64_C(1000)
#define GCI_NS_PER_MS UINT64_C(1000000)
#define GCI_NS_PER_S  UINT64_C(1000000000)
#define GCI_NEVER     UINT64_MAX

/* Nanoseconds of CLOCK_MONOTONIC: durations and deadlines within one machine. */
uint64_t gci_now_ns(void);

/* Nanoseconds of CLOCK_REALTIME: start times agreed upon between machines. */
uint64_t gci_wall_ns(void);

/* Sleeps for `ns`, also through signals. */
void gci_sleep_ns(uint64_t ns);

#endif
