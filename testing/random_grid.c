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

/* Two ends by kind (c or s) and number. */
static void put_wire(struct gci_buf *out, const char *ends, uint64_t a, const char *arrow,
	uint64_t b, uint64_t mbit, uint64_t us)
{
	gci_buf_printf(out,
		"[link %c%" PRIu64 "%s%c%" PRIu64 "]\nrate = %" PRIu64 "Mbit\ndelay = %" PRIu64
		"us\n",
		ends[0], a, arrow, ends[1], b, mbit, us);
}

static void put_link(
	struct gci_buf *out, uint64_t a, const char *arrow, uint64_t b, uint64_t mbit, uint64_t us)
{
	put_wire(out, "cc", a, arrow, b, mbit, us);
}

/* Of about so many hosts, or (0) a few. Returns what its NICs have; its uplink has so many tenths of that, or (0) there
 * is none. In Mbit/s. */
static uint64_t put_cluster(struct gci_prng *r, struct gci_buf *out, uint64_t number,
	uint64_t about, uint64_t uplink_tenths)
{
	uint64_t hosts = about ? about / 2 + gci_prng_below(r, about) + 1
			       : PICK(r, 1, 2, 3, 4, 5, 6, 7, 8, 12);
	uint64_t nic = PICK(r, 500, 1000, 1000, 1000, 2000, 10000);

	gci_buf_printf(out,
		"[cluster c%" PRIu64 "]\nhosts = c%" PRIu64 "h[1-%" PRIu64 "]\nnic = %" PRIu64
		"Mbit\nlan_delay = %" PRIu64 "us\n",
		number, number, hosts, nic, PICK(r, 30, 50, 70, 100));
	if (uplink_tenths)
		gci_buf_printf(out, "uplink = %" PRIu64 "Mbit\n", nic * uplink_tenths / 10);
	return nic;
}

void gci_random_grid(struct gci_prng *r, unsigned nclusters, unsigned nhosts, struct gci_buf *out)
{
	uint64_t n = PICK(r, 2, 2, 3, 3, 4, 5, 6, 8), nic[GCI_RANDOM_CLUSTERS], a, b;

	n = nclusters ? nclusters : n;
	for (a = 0; a < n; a++) {
		nic[a] = put_cluster(r, out, a, nhosts / n, 0);
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

void gci_random_switched_grid(
	struct gci_prng *r, unsigned nclusters, unsigned nhosts, struct gci_buf *out)
{
	uint64_t n = PICK(r, 2, 3, 3, 4, 5, 6, 8), nswitches = 1 + gci_prng_below(r, 4), a, b;
	uint64_t nic[GCI_RANDOM_CLUSTERS];

	n = nclusters ? nclusters : n;
	for (a = 0; a < n; a++)
		nic[a] = put_cluster(r, out, a, nhosts / n, PICK(r, 0, 0, 0, 7, 15, 30));
	for (a = 0; a < n; a++)
		if (!gci_prng_below(r, 6))
			gci_buf_printf(out, "[host c%" PRIu64 "h1]\nnic = %" PRIu64 "Mbit\n", a,
				nic[a] / PICK(r, 2, 4, 10));
	for (a = 0; a < nswitches; a++)
		gci_buf_printf(out, "[switch s%" PRIu64 "]\n", a);
	for (a = 1; a < nswitches; a++)
		put_wire(out, "ss", a, " ", gci_prng_below(r, a),
			PICK(r, 300, 1000, 2000, 5000, 10000), 500 + gci_prng_below(r, 19500));
	for (a = 0; a < n; a++) {
		uint64_t mbit = nic[a] * PICK(r, 3, 6, 10, 17, 30, 50) / 10;
		uint64_t us = PICK(r, 20, 100, 1000, 5000, 10000);

		if (a && !gci_prng_below(r, 4)) {
			put_link(out, a, " ", gci_prng_below(r, a), mbit, us);
			continue;
		}
		b = gci_prng_below(r, nswitches);
		put_wire(out, "cs", a, " ", b, mbit, us);
		if (nswitches > 1 && !gci_prng_below(r, 3))
			put_wire(out, "cs", a, " ", (b + 1) % nswitches, mbit, 2 * us);
	}
}
