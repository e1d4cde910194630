/* SPDX-License-Identifier: MIT
 * A short message there and back between two processes over loopback: a bare epoll loop, gridcoll's
 * transport, gcoll_send and gcoll_recv. In turns, for each size.
 *
 *	bench_pingpong [--bytes 8[,SIZE...]] [--round-trips 20000] [--rounds 9] [--only WAY]
 *		[--json FILE] */
#include "bench/peers/series.h"

#include "base/units.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZES 32

static const struct gcb_way *const ways[] = {&gcb_bare_pingpong, &gcb_transport_pingpong,
	&gcb_unchecked_pingpong, &gcb_tls_pingpong, &gcb_uring_pingpong, &gcb_comm_pingpong};
#define NWAYS ((int)(sizeof(ways) / sizeof(*ways)))

struct options {
	uint64_t sizes[MAX_SIZES], trips, rounds;
	int nsizes;
	const char *only, *json; /* NULL: all ways; none */
};

static void print(const struct gcb_series *s, uint64_t nbytes, uint64_t trips)
{
	double each = (double)trips * 1000;
	char bytes[16];
	int i;

	printf("%s over loopback, %llu round trips, medians of %d runs in turns\n",
		gci_format_bytes(nbytes, bytes, sizeof(bytes)), (unsigned long long)trips,
		s->rounds);
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

static void add_json(const struct gcb_series *s, uint64_t nbytes, uint64_t trips, json_t *list)
{
	int i;

	for (i = 0; i < s->nways; i++)
		if (!s->skipped[i][0])
			json_array_append_new(
				list, json_pack("{s:s, s:I, s:i, s:I, s:f, s:f, s:f, s:f}", "way",
					      s->ways[i]->name, "bytes", (json_int_t)nbytes,
					      "rounds", s->rounds, "round_trips", (json_int_t)trips,
					      "median_ns", gcb_series_ns(s, i) / (double)trips,
					      "cpu_ns", gcb_series_cpu_ns(s, i) / (double)trips,
					      "time_to_bare", gcb_series_ratio(s, i), "cpu_to_bare",
					      gcb_series_cpu_ratio(s, i)));
}

static int measure(const struct options *o, uint64_t nbytes, json_t *list)
{
	static struct gcb_series s;
	struct gci_error e = {0};
	struct gcb_pair p;
	int i, rc;

	s = (struct gcb_series){.ways = ways, .nways = NWAYS, .rounds = (int)o->rounds};
	for (i = 0; i < NWAYS; i++)
		if (o->only && strcmp(o->only, ways[i]->name) != 0)
			strcpy(s.skipped[i], "not asked for");
	rc = gcb_pair_open(&p, nbytes, NULL, &e);
	p.rounds = o->trips;
	if (!rc)
		rc = gcb_series_run(&s, &p, &e);
	gcb_pair_close(&p);
	if (rc) {
		fprintf(stderr, "bench_pingpong: %s\n", e.text);
		return 1;
	}
	print(&s, nbytes, o->trips);
	add_json(&s, nbytes, o->trips, list);
	return 0;
}

/* "8,1KiB". */
static int parse_sizes(char *text, struct options *o)
{
	char *save = NULL, *size;

	o->nsizes = 0;
	for (size = strtok_r(text, ",", &save); size; size = strtok_r(NULL, ",", &save)) {
		uint64_t *nbytes = &o->sizes[o->nsizes];

		if (o->nsizes == MAX_SIZES || gci_parse_bytes(size, nbytes) || !*nbytes ||
			*nbytes > GCB_MAX_BOUNCE_NBYTES)
			return -1;
		o->nsizes++;
	}
	return o->nsizes ? 0 : -1;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"bytes", 1, NULL, 'b'},
		{"round-trips", 1, NULL, 't'}, {"rounds", 1, NULL, 'r'}, {"only", 1, NULL, 'o'},
		{"json", 1, NULL, 'j'}, {NULL, 0, NULL, 0}};
	int c, bad = 0;

	while ((c = getopt_long(argc, argv, "b:t:r:o:j:", longs, NULL)) != -1) {
		if (c == 'b')
			bad |= parse_sizes(optarg, o);
		else if (c == 't')
			bad |= gci_parse_uint(optarg, 100000000, &o->trips) || !o->trips;
		else if (c == 'r')
			bad |= gci_parse_uint(optarg, GCB_MAX_ROUNDS, &o->rounds) || !o->rounds;
		else if (c == 'o')
			o->only = optarg;
		else if (c == 'j')
			o->json = optarg;
		else
			bad = 1;
	}
	return bad || optind < argc;
}

int main(int argc, char **argv)
{
	struct options o = {.sizes = {8}, .nsizes = 1, .trips = 20000, .rounds = 9};
	json_t *list;
	int i, rc = 0;

	if (parse(argc, argv, &o)) {
		fprintf(stderr, "usage: bench_pingpong [--bytes SIZE[,SIZE...]] [--round-trips N] "
				"[--rounds N]\n"
				"                      [--only WAY] [--json FILE]\n");
		return 2;
	}
	list = json_array();
	for (i = 0; i < o.nsizes && !rc; i++)
		rc = measure(&o, o.sizes[i], list);
	if (!rc && o.json && json_dump_file(list, o.json, JSON_INDENT(1))) {
		perror(o.json);
		rc = 1;
	}
	json_decref(list);
	return rc;
}
