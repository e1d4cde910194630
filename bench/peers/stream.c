/* SPDX-License-Identifier: MIT
 * One stream between two processes, over loopback and between two network namespaces: the bare
 * socket, gridcoll with and without payload checksums, plain and encrypted, its bcast, iperf3. In
 * turns, so that all see the same machine.
 *
 *	bench_stream [--bytes 1GiB] [--rounds 5] [--net lo|veth|both] [--only WAY] [--json FILE] */
#include "bench/peers/series.h"

#include "base/units.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct gcb_way *const ways[] = {&gcb_bare_stream, &gcb_unchecked_stream,
	&gcb_transport_stream, &gcb_tls_unchecked_stream, &gcb_tls_stream, &gcb_bcast_stream,
	&gcb_tls_bcast_stream, &gcb_uring_unchecked_stream, &gcb_uring_stream, &gcb_iperf_stream};
#define NWAYS ((int)(sizeof(ways) / sizeof(*ways)))

struct options {
	uint64_t nbytes, rounds;
	const char *net, *json, *only; /* NULL: all ways */
};

static void print(const struct gcb_series *s, const char *net, uint64_t nbytes)
{
	char bytes[16];
	int i;

	printf("\n%s, %s of distinct memory, medians of %d runs in turns\n", net,
		gci_format_bytes(nbytes, bytes, sizeof(bytes)), s->rounds);
	printf("%-18s %8s %7s %10s %7s\n", "", "GB/s", "x bare", "CPU s/GB", "x bare");
	for (i = 0; i < s->nways; i++) {
		if (s->skipped[i][0]) {
			printf("%-18s skipped: %s\n", s->ways[i]->name, s->skipped[i]);
			continue;
		}
		printf("%-18s %8.2f %7.2f %10.3f %7.2f  %s\n", s->ways[i]->name,
			(double)nbytes / gcb_series_ns(s, i), 1 / gcb_series_ratio(s, i),
			gcb_series_cpu_ns(s, i) / (double)nbytes, gcb_series_cpu_ratio(s, i),
			s->ways[i]->what);
	}
}

static json_t *to_json(const struct gcb_series *s, const char *net, uint64_t nbytes)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < s->nways; i++) {
		json_t *row = json_pack("{s:s, s:s, s:I}", "net", net, "way", s->ways[i]->name,
			"bytes", (json_int_t)nbytes);

		if (s->skipped[i][0])
			json_object_set_new(row, "skipped", json_string(s->skipped[i]));
		else
			json_object_update_new(
				row, json_pack("{s:i, s:f, s:f, s:f, s:f}", "rounds", s->rounds,
					     "median_ns", gcb_series_ns(s, i), "cpu_ns",
					     gcb_series_cpu_ns(s, i), "rate_to_bare",
					     1 / gcb_series_ratio(s, i), "cpu_to_bare",
					     gcb_series_cpu_ratio(s, i)));
		json_array_append_new(list, row);
	}
	return list;
}

/* In a process of its own: there is no way back out of a namespace. */
static int measure(const struct options *o, int veth, FILE *out)
{
	static struct gcb_series s;
	struct gcb_veth v = {0};
	struct gci_error e = {0};
	struct gcb_pair p = {0};
	json_t *rows;
	int i, rc = veth ? gcb_veth_enter(&v, &e) : 0;

	s = (struct gcb_series){.ways = ways, .nways = NWAYS, .rounds = (int)o->rounds};
	for (i = 0; i < NWAYS; i++)
		if (o->only && strcmp(o->only, ways[i]->name) != 0)
			strcpy(s.skipped[i], "not asked for");
	if (!rc)
		rc = gcb_pair_open(&p, o->nbytes, veth ? &v : NULL, &e);
	if (!rc)
		rc = gcb_series_run(&s, &p, &e);
	gcb_veth_leave(&v);
	gcb_pair_close(&p);
	if (rc) {
		printf("\n%s: %s: %s\n", veth ? "veth" : "lo",
			rc == GCOLL_ERR_UNSUPPORTED ? "skipped" : "failed", e.text);
		return rc != GCOLL_ERR_UNSUPPORTED;
	}
	print(&s, veth ? "veth" : "lo", o->nbytes);
	rows = to_json(&s, veth ? "veth" : "lo", o->nbytes);
	json_dumpf(rows, out, JSON_INDENT(1));
	json_decref(rows);
	return 0;
}

static int measure_apart(const struct options *o, int veth, json_t *all)
{
	json_t *rows;
	FILE *f = tmpfile();
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = f ? fork() : -1;
	if (!pid) {
		int rc = measure(o, veth, f);

		fflush(NULL);
		_exit(rc);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("bench_stream");
		return 1;
	}
	rewind(f);
	rows = json_loadf(f, 0, NULL);
	if (rows)
		json_array_extend(all, rows);
	json_decref(rows);
	fclose(f);
	return status != 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_stream [--bytes SIZE] [--rounds N] [--net lo|veth|both] "
			"[--only WAY] [--json FILE]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"bytes", 1, NULL, 'b'}, {"rounds", 1, NULL, 'r'},
		{"net", 1, NULL, 'n'}, {"json", 1, NULL, 'j'}, {"only", 1, NULL, 'o'},
		{NULL, 0, NULL, 0}};
	struct options o = {.nbytes = 1u << 30, .rounds = 5, .net = "both"};
	json_t *all = json_array();
	int c, rc = 0;

	while ((c = getopt_long(argc, argv, "b:r:n:j:o:", longs, NULL)) != -1) {
		if (c == 'b' && !gci_parse_bytes(optarg, &o.nbytes) && o.nbytes)
			continue;
		if (c == 'r' && !gci_parse_uint(optarg, GCB_MAX_ROUNDS, &o.rounds) && o.rounds)
			continue;
		if (c != 'n' && c != 'j' && c != 'o')
			return usage();
		*(c == 'n' ? &o.net : c == 'j' ? &o.json : &o.only) = optarg;
	}
	if (optind < argc || (strcmp(o.net, "lo") != 0 && strcmp(o.net, "veth") != 0 &&
				     strcmp(o.net, "both") != 0))
		return usage();
	if (strcmp(o.net, "veth") != 0)
		rc |= measure_apart(&o, 0, all);
	if (strcmp(o.net, "lo") != 0)
		rc |= measure_apart(&o, 1, all);
	if (o.json && json_dump_file(all, o.json, JSON_INDENT(1))) {
		perror(o.json);
		rc = 1;
	}
	json_decref(all);
	return rc;
}
