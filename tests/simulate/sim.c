/* SPDX-License-Identifier: MIT
 * A deterministic simulation of whole jobs: ranks, their control connections and the launcher's
 * verdict in one process, over simulated sockets and time, with faults. See README.md.
 *
 *	sim --seed S --runs N	seeds S .. S + N - 1
 *	sim --ops N		as many as have so many operations
 *	sim --seed S --trace	says what happens
 *	sim --twice		each run twice, which must be the same
 *	sim --first		stops at the first run that is not as it must be */
#include "tests/simulate/os.h"
#include "tests/simulate/run.h"

#include "base/units.h"

#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MOST_BAD 10 /* runs that are not as they must be, and no more */

struct options {
	uint64_t seed, runs, ops;
	int twice, first;
};

struct sums {
	uint64_t runs, ops, losses, flips, failed_runs, late_ns;
};

/* OpenSSL's random numbers come from the seed, too. */
static struct gci_prng secrets;

static int random_bytes(unsigned char *out, int n)
{
	int i;

	for (i = 0; i < n; i++)
		out[i] = (unsigned char)gci_prng_next(&secrets);
	return 1;
}

static int random_status(void)
{
	return 1;
}

static void make_deterministic(void)
{
	static const RAND_METHOD method = {
		.bytes = random_bytes, .pseudorand = random_bytes, .status = random_status};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	RAND_set_rand_method(&method);
#pragma GCC diagnostic pop
	setenv("GRIDCOLL_WARM", "off", 1);
	setenv("GRIDCOLL_LOG", "error", 0);
	unsetenv("GRIDCOLL_INTERFACES");
	unsetenv("GRIDCOLL_RECORD");
}

static int usage(void)
{
	fprintf(stderr,
		"usage: sim [--seed S] [--runs N | --ops N] [--twice] [--first] [--trace]\n");
	return 2;
}

static int read_options(int argc, char **argv, struct options *o)
{
	int i;

	for (i = 1; i < argc; i++) {
		uint64_t *number = !strcmp(argv[i], "--seed")   ? &o->seed
				   : !strcmp(argv[i], "--runs") ? &o->runs
				   : !strcmp(argv[i], "--ops")  ? &o->ops
								: NULL;

		if (!strcmp(argv[i], "--twice"))
			o->twice = 1;
		else if (!strcmp(argv[i], "--first"))
			o->first = 1;
		else if (!strcmp(argv[i], "--trace"))
			os_traces = 1;
		else if (!number || ++i == argc || gci_parse_uint(argv[i], UINT64_MAX, number))
			return -1;
	}
	return 0;
}

static int one(uint64_t seed, const struct options *o, const char *self, struct sums *s)
{
	struct run_result r, again;

	secrets.state = seed;
	run_seed(seed, &r);
	if (!*r.wrong && o->twice) {
		secrets.state = seed;
		run_seed(seed, &again);
		if (again.digest != r.digest)
			snprintf(r.wrong, sizeof(r.wrong), "another run of the seed was different");
	}
	s->runs++;
	s->ops += (uint64_t)r.operations;
	s->losses += r.losses;
	s->flips += r.flips;
	s->failed_runs += r.failed > 0;
	s->late_ns = r.late_ns > s->late_ns ? r.late_ns : s->late_ns;
	if (!*r.wrong)
		return 0;
	fprintf(stderr, "seed %" PRIu64 ": %s\n  replay: %s --seed %" PRIu64 " --trace\n", seed,
		r.wrong, self, seed);
	return 1;
}

int main(int argc, char **argv)
{
	struct options o = {.seed = 1};
	struct sums s = {0};
	struct rusage use;
	int bad = 0;

	if (read_options(argc, argv, &o))
		return usage();
	if (!o.runs && !o.ops)
		o.runs = 1;
	make_deterministic();
	while ((s.runs < o.runs || s.ops < o.ops) && bad < (o.first ? 1 : MOST_BAD))
		bad += one(o.seed + s.runs, &o, argv[0], &s);
	getrusage(RUSAGE_SELF, &use);
	printf("%" PRIu64 " runs, %" PRIu64 " operations: %" PRIu64 " connections lost, %" PRIu64
	       " bits flipped, %" PRIu64 " runs ended in the error they had to, the last rank knew "
	       "after %.3f s; %.1f s of CPU\n",
		s.runs, s.ops, s.losses, s.flips, s.failed_runs, (double)s.late_ns / 1e9,
		(double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6 +
			(double)use.ru_stime.tv_sec + (double)use.ru_stime.tv_usec / 1e6);
	return bad != 0;
}
