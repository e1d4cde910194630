/* SPDX-License-Identifier: MIT
 * Collective operations of gridcoll beside those of Gloo, Open MPI and MPICH, over the
 * loopback of a network namespace of its own, or in the lab.
 *
 *	bench_peers [--ranks 4,8] [--ops LIST] [--bytes LIST] [--iters N] [--json FILE]
 *	bench_peers --lab netem/grids/gridmpi.grid --dilate 20 --bytes 32MiB
 *
 * gridcoll, Gloo and bare sockets take turns in one job; ratios are medians over pairs. MPIs poll, so each has a
 * job of its own, right after; ratios are of medians. A row whose interfaces did not move the bytes
 * that the operation must move is refused: it was not measured over the network. */
#include "bench/peers/table.h"
#include "bench/peers/veth.h"

#include "base/buf.h"
#include "base/units.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	const char *ranks, *ops, *bytes, *lab, *dilate, *json, *only;
	uint64_t iters;
};

/* How the programs of rank.c are started; the job's own arguments follow. */
static const struct {
	const char *name, *rank, *command, *in_lab;
} jobs[] = {
	{"gridcoll, gloo", GCB_DIR "/peers_rank", GCB_RUN " --quiet-prefix -n %s %s",
		GCB_RUN " --quiet-prefix"},
	{"openmpi", GCB_DIR "/peers_rank_openmpi",
		"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi "
		"--oversubscribe --bind-to none --mca pml ob1 --mca btl tcp,self "
		"--mca btl_tcp_if_include lo --mca mpi_yield_when_idle 1 -n %s %s",
		GCB_SOURCE "/lab_mpi.sh openmpi"},
	{"mpich", GCB_DIR "/peers_rank_mpich",
		"UCX_TLS=tcp,self UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1 mpiexec.mpich -n %s %s",
		GCB_SOURCE "/lab_mpi.sh mpich"},
};
#define NJOBS ((int)(sizeof(jobs) / sizeof(*jobs)))

static void command_of(const struct options *o, int job, const char *ranks, struct gci_buf *b)
{
	char start[600];

	if (o->lab)
		gci_buf_printf(b,
			"timeout 900 " GCB_GRIDCOLL " lab run --quiet --dilate %s %s -- %s %s",
			o->dilate, o->lab, jobs[job].in_lab, jobs[job].rank);
	else {
		snprintf(start, sizeof(start), jobs[job].command, ranks, jobs[job].rank);
		gci_buf_printf(b, "%s", start);
	}
	gci_buf_printf(b, " --iters %llu --bytes %s", (unsigned long long)o->iters, o->bytes);
	if (o->ops)
		gci_buf_printf(b, " --ops %s", o->ops);
	if (o->only)
		gci_buf_printf(b, " --libs %s", o->only);
}

static int run_job(const struct options *o, int job, const char *ranks, struct gcb_table *t)
{
	struct gci_buf command = {0};
	char line[1 << 16];
	FILE *f;
	int rc;

	if (access(jobs[job].rank, X_OK)) {
		printf("skipped: %s was not built (is it installed? -Dpeers=enabled?)\n",
			jobs[job].name);
		return 0;
	}
	command_of(o, job, ranks, &command);
	fflush(NULL);
	f = popen(gci_buf_cstr(&command), "re");
	while (f && fgets(line, sizeof(line), f))
		if (gcb_table_add(t, line))
			fputs(line, stderr);
	rc = f ? pclose(f) : -1;
	if (rc)
		fprintf(stderr, "failed: %s\n", gci_buf_cstr(&command));
	gci_buf_free(&command);
	return rc;
}

static int run_all(const struct options *o, struct gcb_table *t)
{
	char list[64], *n, *rest = NULL;
	int job, rc = 0;

	snprintf(list, sizeof(list), "%s", o->lab ? "all" : o->ranks);
	for (n = strtok_r(list, ",", &rest); n; n = strtok_r(NULL, ",", &rest))
		for (job = 0; job < NJOBS; job++)
			if (!job || !o->only)
				rc |= run_job(o, job, n, t);
	return rc;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench_peers [--ranks LIST] [--ops LIST] [--bytes LIST] [--iters N]\n"
		"                   [--libs LIST] [--json FILE] [--lab GRID [--dilate K]]\n");
	return 2;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"ranks", 1, NULL, 'r'}, {"ops", 1, NULL, 'o'},
		{"bytes", 1, NULL, 'b'}, {"iters", 1, NULL, 'i'}, {"json", 1, NULL, 'j'},
		{"lab", 1, NULL, 'L'}, {"dilate", 1, NULL, 'd'}, {"libs", 1, NULL, 'l'},
		{NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "r:o:b:i:j:L:d:l:", longs, NULL)) != -1) {
		const char **text = c == 'r'   ? &o->ranks
				    : c == 'o' ? &o->ops
				    : c == 'b' ? &o->bytes
				    : c == 'j' ? &o->json
				    : c == 'L' ? &o->lab
				    : c == 'd' ? &o->dilate
				    : c == 'l' ? &o->only
					       : NULL;

		if (text)
			*text = optarg;
		else if (c != 'i' || gci_parse_uint(optarg, 1000, &o->iters) || !o->iters)
			return -1;
	}
	if (o->only && !strstr(o->only, "gridcoll")) {
		fprintf(stderr, "bench_peers: --libs %s, expected gridcoll among them\n", o->only);
		return -1;
	}
	return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct options o = {.ranks = "4,8",
		.bytes = "1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB",
		.dilate = "20",
		.iters = 15};
	struct gci_error e = {0};
	struct gcb_table t = {0};
	int rc;

	if (parse(&o, argc, argv))
		return usage();
	if (!o.lab && gcb_net_own(&e))
		printf("over the loopback that all use, whose counters others may move: %s\n",
			e.text);
	t.dilation = o.lab ? (unsigned)strtoul(o.dilate, NULL, 10) : 1;
	rc = run_all(&o, &t);
	gcb_table_print(&t);
	if (o.json && gcb_table_write(&t, o.json))
		rc = 1;
	gcb_table_free(&t);
	return rc != 0;
}
