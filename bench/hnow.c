/* SPDX-License-Identifier: MIT
 * The simulation of Banikazemi, Moorthy and Panda 1998, 7.2: how much sooner a bcast is over that
 * goes down SPOC's or FNF's tree than one down a binomial tree in the order of ranks (DEF), on 64
 * hosts of two kinds in random order.
 *	bench_hnow [--check] [ORDERS]
 * prints mean latencies and factors of improvement over so many seeded orders (300; the paper has
 * 100), by speed factor, share of fast hosts, number of hosts and length of the message. With
 * --check the exit status is 1 if they are not what is said here.
 *
 * Latencies are those of the trees in the emitted schedules. The simulator must find the same of
 * the first orders of each row, with hosts of one port each way, or the exit status is 3.
 *
 * From the paper: 400 us to send a message from a fast host, 2, 4 or 6 times that from a slow one,
 * whatever its length; 12.5 ns per byte on the way, and 500 ns per switch (three are assumed),
 * which keep no host busy. Latencies are averaged first, then divided.
 *
 * The one pair of factors that its text names, 2.3 and 3.3 at speed factor 4, 25 % fast hosts and
 * 1 KB, does not all follow from these. With a fast source SPOC's is 2.2 to 2.3 as in the paper,
 * but FNF's is 2.9, and no order of hosts makes it more than 3.0: the binomial tree takes at most
 * 400 + 5 x 1600 us, and FNF 2800, which no tree can beat (after 1600 us the 16 fast hosts have the
 * message, and to the other 48 each of them must send three times). With a slow source the binomial
 * tree and SPOC's both take 9600. What it costs to receive, where it does, makes both factors
 * smaller. 3.3 is about what FNF gains from a fast source over the binomial tree from any one, and
 * what both gain where 50 % of the hosts are fast; the text does not tell how its figures were
 * read. Their best factor, "up to 4.5" in one place and 4.9 in another, is ours of speed factor 6
 * and 50 %: 4.55. */
#include "base/clock.h"
#include "base/units.h"
#include "bench/hnow_hosts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_HOSTS 65
#define NORDERS    300
#define NSIMULATED 50 /* orders of each row */
#define FAST_NS    (400 * GCI_NS_PER_US)
#define BYTE_PS    12500u /* picoseconds of a byte on the way */
#define ROUTE_NS   1500u

enum { DEF, SPOC, FNF, NTREES };

static const char *const rows[NTREES] = {"binomial", "spoc", "fnf"};

struct setting {
	int nhosts, percent;
	uint64_t factor, nbytes;
	enum hnow_source source;
	unsigned receive_percent; /* of what sending costs a host */
};

struct outcome {
	double us[NTREES];
};

/* ---- what schedules cost */

struct walk {
	const struct gci_sched *scheds;
	const uint64_t *tini_ns;
	uint64_t way_ns;
	unsigned receive_percent;
};

/* When all below rank `r`, who has the message at `at`, have it. */
static uint64_t arrival(const struct walk *w, int r, uint64_t at)
{
	uint64_t last = at, below;
	uint32_t i;

	for (i = 0; i < w->scheds[r].nsteps; i++) {
		const struct gci_step *p = &w->scheds[r].steps[i];

		if (p->kind != GCI_STEP_SEND)
			continue;
		at += w->tini_ns[r];
		below = arrival(w, p->peer,
			at + w->way_ns + w->tini_ns[p->peer] * w->receive_percent / 100);
		last = below > last ? below : last;
	}
	return last;
}

static uint64_t way_ns(const struct setting *s)
{
	return s->nbytes ? ROUTE_NS + s->nbytes * BYTE_PS / 1000 : 0;
}

/* The latency of a bcast; 0: out of memory. */
static uint64_t latency_ns(const char *row, const struct gci_topo *t, const struct setting *s)
{
	struct gci_coll c = {.kind = GCI_BCAST, .topo = t, .count = s->nbytes ? s->nbytes : 1};
	const struct gci_algorithm *a = gci_algorithm_find(GCI_BCAST, row);
	struct gci_sched scheds[MOST_HOSTS] = {{0}};
	struct walk w = {scheds, t->tini_ns, way_ns(s), s->receive_percent};
	uint64_t ns = 0;
	int r, rc = 0;

	c.esize = 1;
	for (r = 0; !rc && r < t->nranks; r++)
		rc = gci_emit(a, &c, r, &scheds[r]);
	if (!rc)
		ns = arrival(&w, 0, 0);
	while (r--)
		gci_sched_free(&scheds[r]);
	return ns;
}

/* The same by simulation; receiving costs nothing. 0: out of memory. */
static uint64_t simulated_ns(const char *row, const struct gci_topo *t, const struct setting *s)
{
	struct gci_coll c = {.kind = GCI_BCAST, .topo = t, .count = s->nbytes ? s->nbytes : 1};
	struct gci_sim_op op = {.algorithm = gci_algorithm_find(GCI_BCAST, row), .coll = &c};
	struct hnow_wire wire = {UINT64_C(8000000000000) / BYTE_PS, ROUTE_NS};

	c.esize = 1;
	return hnow_simulate(s->nbytes ? &wire : &(struct hnow_wire){0, 0}, &op);
}

/* ---- means over orders */

static int differs(const char *row, const struct gci_topo *t, const struct setting *s, uint64_t ns)
{
	uint64_t other = simulated_ns(row, t, s);

	/* Numbers are rounded once for each piece of the way. */
	if (other + 100 >= ns && other <= ns + 100)
		return 0;
	fprintf(stderr, "%s: %" PRIu64 " ns, but simulated %" PRIu64 "\n", row, ns, other);
	return 1;
}

static int measure(const struct setting *s, int norders, struct outcome *o)
{
	const struct hnow_hosts hosts = {s->nhosts, (s->nhosts * s->percent + 50) / 100, FAST_NS,
		FAST_NS * s->factor, s->source};
	struct gci_prng prng = {1998};
	struct gci_topo t;
	int i, k, rc = hnow_topo(&t, s->nhosts);

	if (rc)
		return rc;
	memset(o, 0, sizeof(*o));
	for (i = 0; !rc && i < norders; i++) {
		hnow_draw(&prng, &hosts, t.tini_ns);
		for (k = 0; k < NTREES; k++) {
			uint64_t ns = latency_ns(rows[k], &t, s);

			rc = ns ? rc : GCOLL_ERR_NOMEM;
			if (!rc && i < NSIMULATED && !s->receive_percent)
				rc = differs(rows[k], &t, s, ns);
			o->us[k] += (double)ns / 1e3 / norders;
		}
	}
	gci_topo_free(&t);
	return rc;
}

static double factor(const struct outcome *o, int tree)
{
	return o->us[DEF] / o->us[tree];
}

static int print_row(const struct setting *s, int norders, const char *papers, struct outcome *o)
{
	int rc = measure(s, norders, o);

	if (!rc)
		printf("%5d %3d %% %6" PRIu64 " %5" PRIu64 " B %4s %5u %% %8.0f %8.0f %8.0f %6.2f "
		       "%6.2f  %s\n",
			s->nhosts, s->percent, s->factor, s->nbytes, hnow_sources[s->source],
			s->receive_percent, o->us[DEF], o->us[SPOC], o->us[FNF], factor(o, SPOC),
			factor(o, FNF), papers);
	return rc;
}

static void print_head(const char *what)
{
	printf("\n%s\n%5s %5s %6s %7s %4s %7s %8s %8s %8s %6s %6s  %s\n", what, "hosts", "fast",
		"factor", "length", "from", "receive", "DEF us", "SPOC us", "FNF us", "SPOC", "FNF",
		"paper");
}

static int print_cells(int norders, struct outcome cells[3][3])
{
	static const uint64_t factors[] = {2, 4, 6};
	static const int percents[] = {10, 25, 50};
	int f, p, rc = 0;

	print_head("speed factor and share of fast hosts (figures 7 and 8)");
	for (f = 0; f < 3; f++)
		for (p = 0; !rc && p < 3; p++) {
			struct setting s = {64, percents[p], factors[f], 1024, HNOW_FAST, 0};

			rc = print_row(
				&s, norders, f == 1 && p == 1 ? "2.3, 3.3" : "", &cells[f][p]);
		}
	return rc;
}

static int print_growth(int norders)
{
	static const int hosts[] = {8, 16, 32, 48, 64};
	static const uint64_t lengths[] = {64, 1024, 4096};
	struct outcome o;
	int i, rc = 0;

	print_head("number of hosts (figure 7)");
	for (i = 0; !rc && i < 5; i++)
		rc = print_row(
			&(struct setting){hosts[i], 25, 4, 1024, HNOW_FAST, 0}, norders, "", &o);
	if (!rc)
		print_head("length (figure 9)");
	for (i = 0; !rc && i < 3; i++)
		rc = print_row(&(struct setting){64, 25, 4, lengths[i], HNOW_FAST, 0}, norders,
			i == 1 ? "2.3, 3.3" : "", &o);
	return rc;
}

static int print_readings(int norders)
{
	struct setting s = {64, 25, 4, 1024, HNOW_FAST, 0};
	struct outcome fast, o;
	int rc = 0;

	print_head(
		"other readings: who is the source, what receiving costs, 64 besides the source");
	for (s.source = HNOW_FAST; !rc && s.source <= HNOW_ANY; s.source++)
		for (s.receive_percent = 0; !rc && s.receive_percent <= 100;
			s.receive_percent += 50)
			rc = print_row(&s, norders, "", &o);
	if (rc)
		return rc;
	rc = print_row(&(struct setting){65, 25, 4, 1024, HNOW_FAST, 0}, norders, "", &o);
	if (!rc)
		rc = measure(&(struct setting){64, 25, 4, 1024, HNOW_FAST, 0}, norders, &fast);
	if (!rc)
		rc = measure(&(struct setting){64, 25, 4, 1024, HNOW_ANY, 0}, norders, &o);
	if (!rc)
		printf("DEF from any source over SPOC and FNF from a fast one: %.2f, %.2f\n",
			o.us[DEF] / fast.us[SPOC], o.us[DEF] / fast.us[FNF]);
	return rc;
}

/* ---- checks */

static int expect(int holds, const char *what)
{
	if (!holds)
		fprintf(stderr, "not so: %s\n", what);
	return !holds;
}

static int check_cells(struct outcome c[3][3])
{
	int f, p, wrong = 0;

	for (f = 0; f < 3; f++)
		for (p = 0; p < 3; p++) {
			wrong += expect(factor(&c[f][p], FNF) > factor(&c[f][p], SPOC) - 0.001,
				"FNF is no slower than SPOC");
			wrong += expect(!f || factor(&c[f][p], SPOC) > factor(&c[f - 1][p], SPOC),
				"SPOC gains with the speed factor");
			wrong += expect(!f || factor(&c[f][p], FNF) > factor(&c[f - 1][p], FNF),
				"FNF gains with the speed factor");
		}
	wrong += expect(factor(&c[1][1], SPOC) > 2.15 && factor(&c[1][1], SPOC) < 2.35,
		"SPOC's factor is the paper's 2.3");
	wrong += expect(factor(&c[1][1], FNF) > 2.7 && factor(&c[1][1], FNF) < 3.0,
		"FNF's factor is 2.7 to 3.0");
	wrong += expect(factor(&c[1][2], FNF) / factor(&c[1][2], SPOC) < 1.001,
		"SPOC and FNF agree when half of the hosts are fast (6.4)");
	wrong += expect(factor(&c[2][2], FNF) > 4.4 && factor(&c[2][2], FNF) < 4.9,
		"the best factor is the paper's 4.5 to 4.9");
	return wrong;
}

int main(int argc, char **argv)
{
	int check = argc > 1 && !strcmp(argv[1], "--check"), rc;
	struct outcome cells[3][3];
	uint64_t norders = check ? 100 : NORDERS;

	if (argc > 2 + check ||
		(argc > 1 + check &&
			(gci_parse_uint(argv[1 + check], 1000000, &norders) || !norders))) {
		fprintf(stderr, "usage: bench_hnow [--check] [ORDERS]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = print_cells((int)norders, cells);
	if (!rc && !check)
		rc = print_growth((int)norders);
	if (!rc && !check)
		rc = print_readings((int)norders);
	if (rc < 0)
		fprintf(stderr, "out of memory\n");
	if (rc)
		return rc < 0 ? 2 : 3;
	return check && check_cells(cells) ? 1 : 0;
}
