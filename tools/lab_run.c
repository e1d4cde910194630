/* SPDX-License-Identifier: MIT
 * gridcoll lab run: the grid for one command. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "netem/uml.h"
#include "tools/lab.h"
#include "tools/tools.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CPU_BUSY_PERCENT 70
#define CPU_MIN_TICKS    100 /* shorter runs say nothing about the CPU */
#define PATIENCE_NS      (10 * GCI_NS_PER_S)

static const char usage[] = "run [--backend auto|host|uml] [--dilate K|auto] [--mem SIZE] [--fast] "
			    "[--quiet] GRID -- CMD ARGS...";

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void warn_cpu(const struct gci_uml_end *end)
{
	unsigned percent;

	if (end->total < CPU_MIN_TICKS)
		return;
	percent = (unsigned)(end->busy * 100 / end->total);
	if (percent > CPU_BUSY_PERCENT)
		fprintf(stderr,
			"gridcoll lab: warning: the guest's CPU was busy %u %% of this run: "
			"times are the CPU's, not the network's; a larger --dilate helps\n",
			percent);
}

/* Until the job ends; signals go to it. A job that does not heed one is given up after a while, or
 * at the third. The exit status. */
static int wait_job(struct gci_uml *u, int id, int signals, struct gci_error *e)
{
	struct pollfd extra = {signals, POLLIN, 0};
	struct signalfd_siginfo si = {0};
	struct gci_uml_end end;
	uint64_t deadline = GCI_NEVER;
	int nsignals = 0;

	while (!gci_uml_ended(u, id, &end)) {
		extra.revents = 0;
		if (gci_uml_pump(u, &extra, 1, deadline == GCI_NEVER ? -1 : 100, e))
			return GCT_FAILED;
		if (extra.revents && read(signals, &si, sizeof(si)) == sizeof(si)) {
			gci_uml_signal(u, id, (int)si.ssi_signo);
			deadline = gci_now_ns() + PATIENCE_NS;
			nsignals++;
		}
		if (nsignals > 2 || gci_now_ns() > deadline)
			return 128 + (int)si.ssi_signo;
	}
	warn_cpu(&end);
	return end.status;
}

static int run_in_uml(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e)
{
	struct gci_buf grid = {0};
	struct gci_job job = {0};
	struct gci_uml *u = NULL;
	int signals = open_signals(), id, status = GCT_FAILED;
	uint64_t network_ns, all_ns;

	if (g)
		gci_grid_print(g, &grid);
	if (lab_make_job(o, &job, e))
		goto out;
	u = gci_uml_boot(
		&(struct gci_uml_options){gci_buf_cstr(&grid), o->dilation, lab_memory(o, g)},
		signals, e);
	if (!u)
		goto out;
	gci_uml_boot_times(u, &network_ns, &all_ns);
	if (!o->quiet)
		fprintf(stderr,
			"gridcoll lab: %d hosts in %d clusters, dilation %u, backend uml "
			"(up in %.1f s)\n",
			g->nhosts, g->nclusters, o->dilation, (double)all_ns / 1e9);
	id = gci_uml_start(u, &job, (const int[]){0, 1, 2}, e);
	if (id >= 0)
		status = wait_job(u, id, signals, e);
out:
	gci_uml_stop(u);
	gci_job_free(&job);
	gci_buf_free(&grid);
	close(signals);
	return status;
}

int lab_run(int argc, char **argv)
{
	struct lab_options o;
	struct gci_error e = {0};
	struct gci_grid g;
	int rc = lab_parse(&o, argc, argv, 1, usage);

	if (rc)
		return rc - 1;
	if (!*o.command) {
		fprintf(stderr, "gridcoll lab: no command, expected GRID -- CMD ARGS...\n");
		return GCT_USAGE;
	}
	rc = lab_load_grid(&o, &g);
	if (rc)
		return rc;
	rc = run_in_uml(&o, &g, &e);
	if (e.status)
		rc = lab_complain(&e);
	gci_grid_free(&g);
	return rc;
}
