/* SPDX-License-Identifier: MIT
 * Eight bytes there and back between two processes over loopback: a bare epoll loop, gridcoll's
 * transport, gcoll_send and gcoll_recv. In turns.
 *
 *	bench_pingpong [--round-trips 20000] [--rounds 9] [--json FILE] */
#include "bench/peers/series.h"

#include "base/units.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>

static const struct gcb_way *const ways[] = {&gcb_bare_pingpong, &gcb_transport_pingpong,
	&gcb_unchecked_pingpong, &gcb_tls_pingpong, &gcb_uring_pingpong, &gcb_comm_pingpong};
#define NWAYS ((int)(sizeof(ways) / sizeof(*ways)))

static void print(const struct gcb_series *s, uint64_t rounds)
{
	double each = (double)rounds * 1000;
	int i;

	printf("8 bytes over loopback, %llu round trips, medians of %d runs in turns\n",
		(unsigned long long)rounds, s->rounds);
	printf("%-20s %8s %7s %8s %7s\n", "", "us", "x bare", "CPU us", "x bare");
	for (i = 0; i < s->nways; i++) {
		if (s->skipped[i][0]) {
			printf("%-20s skipped: %s\n", s->ways[i]->name, s->skipped[i]);
			continue;
		}
		printf("%-20s %8.2f %7.2f %8.2f %7.2f  %s\n", s->ways[i]->name,
			gcb_series_ns(s, i) / each, gcb_series_ratio(s, i),
			gcb_series_cpu_ns(s, i) / each, gcb_series_cpu_ratio(s, i),
			s->ways[i]->what);
	}
}

static int write_json(const struct gcb_series *s, uint64_t rounds, const char *path)
{
	json_t *list = json_array();
	int i, rc;

	for (i = 0; i < s->nways; i++)
		if (!s->skipped[i][0])
			json_array_append_new(
				list, json_pack("{s:s, s:i, s:I, s:f, s:f, s:f, s:f}", "way",
					      s->ways[i]->name, "rounds", s->rounds, "round_trips",
					      (json_int_t)rounds, "median_ns",
					      gcb_series_ns(s, i) / (double)rounds, "cpu_ns",
					      gcb_series_cpu_ns(s, i) / (double)rounds,
					      "time_to_bare", gcb_series_ratio(s, i), "cpu_to_bare",
					      gcb_series_cpu_ratio(s, i)));
	rc = json_dump_file(list, path, JSON_INDENT(1));
	if (rc)
		perror(path);
	json_decref(list);
	return rc != 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"round-trips", 1, NULL, 't'},
		{"rounds", 1, NULL, 'r'}, {"json", 1, NULL, 'j'}, {NULL, 0, NULL, 0}};
	static struct gcb_series s;
	uint64_t trips = 20000, rounds = 9;
	struct gci_error e = {0};
	const char *json = NULL;
	struct gcb_pair p;
	int c, rc;

	while ((c = getopt_long(argc, argv, "t:r:j:", longs, NULL)) != -1) {
		if (c == 't' && !gci_parse_uint(optarg, 100000000, &trips) && trips)
			continue;
		if (c == 'r' && !gci_parse_uint(optarg, GCB_MAX_ROUNDS, &rounds) && rounds)
			continue;
		if (c != 'j') {
			fprintf(stderr, "usage: bench_pingpong [--round-trips N] [--rounds N] "
					"[--json FILE]\n");
			return 2;
		}
		json = optarg;
	}
	s = (struct gcb_series){.ways = ways, .nways = NWAYS, .rounds = (int)rounds};
	rc = gcb_pair_open(&p, 4096, NULL, &e);
	p.rounds = trips;
	if (!rc)
		rc = gcb_series_run(&s, &p, &e);
	gcb_pair_close(&p);
	if (rc) {
		fprintf(stderr, "bench_pingpong: %s\n", e.text);
		return 1;
	}
	print(&s, trips);
	return json ? write_json(&s, trips, json) : 0;
}
