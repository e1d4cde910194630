/* SPDX-License-Identifier: MIT */
#include "testing/random_grid.h"

#include <inttypes.h>

static uint64_t pick(struct gci_prng *r, const uint64_t *list, size_t n)
{
	return list[gci_prng_below(r, n)];
}

#define PICK(r, ...)                             \
	pick(r, (const uint64_t[]){__VA_ARGS__}, \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void put_link(
	struct gci_buf *out, uint64_t a, const char *arrow, uint64_t b, uint64_t mbit, uint64_t us)
{
	gci_buf_printf(out,
		"[link c%" PRIu64 "%sc%" PRIu64 "]\nrate = %" PRIu64 "Mbit\ndelay = %" PRIu64
		"us\n",
		a, arrow, b, mbit, us);
}

void gci_random_grid(struct gci_prng *r, struct gci_buf *out)
{
	uint64_t n = PICK(r, 2, 2, 3, 3, 4, 5, 6, 8), nic[8], a, b;

	for (a = 0; a < n; a++) {
		uint64_t hosts = PICK(r, 1, 2, 3, 4, 5, 6, 7, 8, 12);

		nic[a] = PICK(r, 500, 1000, 1000, 1000, 2000, 10000);
		gci_buf_printf(out,
			"[cluster c%" PRIu64 "]\nhosts = c%" PRIu64 "h[1-%" PRIu64
			"]\nnic = %" PRIu64 "Mbit\nlan_delay = %" PRIu64 "us\n",
			a, a, hosts, nic[a], PICK(r, 30, 50, 70, 100));
	}
	for (a = 0; a < n; a++)
		for (b = a + 1; b < n; b++) {
			uint64_t least = nic[a] < nic[b] ? nic[a] : nic[b];
			uint64_t mbit = least * PICK(r, 3, 6, 10, 17, 30, 50) / 10;
			uint64_t us = 500 + gci_prng_below(r, 39500), back;

			if (gci_prng_below(r, 4)) {
				put_link(out, a, " ", b, mbit, us);
				continue;
			}
			back = mbit * PICK(r, 3, 5) / 10;
			put_link(out, a, " > ", b, mbit, us);
			put_link(out, b, " > ", a, back < 50 ? 50 : back,
				us + us * gci_prng_below(r, 60) / 100);
		}
}
