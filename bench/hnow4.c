/* SPDX-License-Identifier: MIT
 * Figures 4 to 6 of Banikazemi, Moorthy and Panda 1998, which were measured on 24 workstations of
 * two kinds, 8 of them fast: by simulation, how much sooner a bcast is over that goes down SPOC's or
 * FNF's tree than one down a binomial tree in the order of ranks (DEF). A multicast is a bcast among
 * those that take part.
 *	bench_hnow4 [ORDERS]
 * prints mean latencies and factors of improvement over so many seeded orders (100), by number of
 * hosts, how many of them are fast, and length. bench/papers says what agrees.
 *
 * From the paper (7.1.1): round trips of a short message of 1380 us between two fast hosts and
 * 2960 us between two slow ones. Half of that is what a message costs its sender here; receiving
 * costs nothing. Its network is ATM, of 155.52 Mbit/s with 48 of 53 bytes payload, that a message
 * keeps busy at both hosts, whatever their kind; the hosts' time for each byte is not told. */
#include "base/clock.h"
#include "base/units.h"
#include "bench/hnow_hosts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NORDERS 100
#define FAST_NS (690 * GCI_NS_PER_US)
#define SLOW_NS (1480 * GCI_NS_PER_US)
#define ATM_BPS (UINT64_C(155520000) / 53 * 48)

enum { DEF, SPOC, FNF, NTREES };

static const char *const rows[NTREES] = {"binomial", "spoc", "fnf"};
static const uint64_t lengths[] = {4, 256, 1024, 4096, 16384, 65536, 262144};

struct outcome {
	double us[NTREES];
};

static int measure(const struct hnow_hosts *h, uint64_t nbytes, int norders, struct outcome *o)
{
	static const struct hnow_wire atm = {ATM_BPS, 0};
	struct gci_prng prng = {1998};
	struct gci_topo t;
	int i, k, rc = hnow_topo(&t, h->n);

	if (rc)
		return rc;
	memset(o, 0, sizeof(*o));
	for (i = 0; !rc && i < norders; i++) {
		hnow_draw(&prng, h, t.tini_ns);
		for (k = 0; !rc && k < NTREES; k++) {
			struct gci_coll c = {
				.kind = GCI_BCAST, .topo = &t, .count = nbytes, .esize = 1};
			struct gci_sim_op op = {
				.algorithm = gci_algorithm_find(GCI_BCAST, rows[k]), .coll = &c};
			uint64_t ns = hnow_simulate(&atm, &op);

			rc = ns ? 0 : GCOLL_ERR_NOMEM;
			o->us[k] += (double)ns / 1e3 / norders;
		}
	}
	gci_topo_free(&t);
	return rc;
}

static int print_rows(
	const char *figure, int nhosts, int nfast, enum hnow_source source, int norders)
{
	const struct hnow_hosts h = {nhosts, nfast, FAST_NS, SLOW_NS, source};
	struct outcome o;
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < sizeof(lengths) / sizeof(*lengths); i++) {
		rc = measure(&h, lengths[i], norders, &o);
		if (!rc)
			printf("%6s %5d %5d %4s %8" PRIu64 " %8.0f %8.0f %8.0f %6.2f %6.2f\n",
				figure, nhosts, nfast, hnow_sources[source], lengths[i], o.us[DEF],
				o.us[SPOC], o.us[FNF], o.us[DEF] / o.us[SPOC],
				o.us[DEF] / o.us[FNF]);
	}
	return rc;
}

static int print_all(int norders)
{
	static const struct {
		const char *figure;
		int nhosts, nfast;
	} cells[] = {{"4", 16, 2}, {"4", 16, 4}, {"4", 16, 8}, {"5", 8, 1}, {"5", 8, 2},
		{"5,6", 8, 4}, {"6", 4, 2}, {"6", 16, 8}};
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < sizeof(cells) / sizeof(*cells); i++)
		rc = print_rows(
			cells[i].figure, cells[i].nhosts, cells[i].nfast, HNOW_FAST, norders);
	/* The text does not say of which kind the source was. */
	for (i = 0; !rc && i < 3; i++)
		rc = print_rows(
			cells[i].figure, cells[i].nhosts, cells[i].nfast, HNOW_ANY, norders);
	return rc;
}

int main(int argc, char **argv)
{
	uint64_t norders = NORDERS;

	if (argc > 2 || (argc > 1 && (gci_parse_uint(argv[1], 100000, &norders) || !norders))) {
		fprintf(stderr, "usage: bench_hnow4 [ORDERS]\n");
		return 2;
	}
	printf("%6s %5s %5s %4s %8s %8s %8s %8s %6s %6s\n", "figure", "hosts", "fast", "from",
		"bytes", "DEF us", "SPOC us", "FNF us", "SPOC", "FNF");
	if (!print_all((int)norders))
		return 0;
	fprintf(stderr, "out of memory\n");
	return 2;
}
