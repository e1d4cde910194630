/* SPDX-License-Identifier: MIT
 * gridcoll-run: starts a job's ranks and connects them. */
#include "base/buf.h"
#include "base/log.h"
#include "collectives/coll.h"
#include "launcher/agent.h"
#include "launcher/join.h"
#include "launcher/run.h"
#include "launcher/secret.h"
#include "launcher/start.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Nothing that we open later may take the place of standard input, output or error. What goes to an
 * output that is closed is an error, as it was: that descriptor is not for writing. */
static void fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd == STDOUT_FILENO) {
			close(fd);
			fd = open("/dev/null", O_RDONLY);
		}
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* What was asked for must have got somewhere. An exit status. */
static int printed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "gridcoll-run: standard output: %s\n", strerror(errno));
	return 1;
}

static int dry_run(const struct gci_placement *p, const struct gci_options *o)
{
	struct gci_buf text = {0};

	gci_dry_run(p, o, &text);
	fputs(gci_buf_cstr(&text), stdout);
	gci_buf_free(&text);
	return printed();
}

static int complain(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll-run: %s\n", e->text);
	return e->status == GCOLL_ERR_NOMEM ? 1 : GCI_USAGE_STATUS;
}

/* What was measured elsewhere helps nobody, and a job runs without. But who names a file means it: one
 * that is missing or damaged is an error. An exit status, or 0. */
static int go_without(const struct gci_error *e, int is_named, const char *how)
{
	if (is_named && e->status != GCOLL_ERR_INVAL)
		return complain(e);
	fprintf(stderr, "gridcoll-run: %s; %s\n", e->text, how);
	return 0;
}

static int start_job(struct gci_options *o)
{
	struct gci_placement plan;
	struct gci_error e = {0};
	int status = 0;

	if (gci_placement_make(&plan, o, &e))
		return complain(&e);
	if (gci_placement_check(&plan, o, &e) || gci_placement_budgets(&plan, o, &e)) {
		gci_placement_free(&plan);
		return complain(&e);
	}
	if (gci_placement_table(&plan, o, &e))
		status = go_without(&e, !o->table_from_environment, "running with defaults");
	gci_error_clear(&e);
	if (!status && gci_placement_params(&plan, o, &e))
		status = go_without(&e, 1, "running without them");
	if (status) {
		gci_placement_free(&plan);
		return status;
	}
	status = o->dry_run ? dry_run(&plan, o) : gci_run(o, &plan);
	if (!o->dry_run)
		_exit(status); /* a thread may wait for standard input */
	gci_placement_free(&plan);
	return status;
}

int main(int argc, char **argv)
{
	struct gci_options o;
	struct gci_error e = {0};
	int status = 0;

	fill_standard_fds();
	gci_log_init("gridcoll-run");
	if (gci_options_parse(&o, argc, argv, &e))
		return complain(&e);
	if (o.help || o.version) {
		if (o.help)
			gci_options_help(stdout);
		else
			printf("gridcoll-run %s\nschedules: %016" PRIx64 "\n", GCI_VERSION,
				gci_build.schedules);
		return printed();
	}
	if (o.agent)
		return gci_agent_main(o.netns);
	if (o.new_secret) {
		if (gci_new_secret(&e))
			complain(&e);
		return e.status != 0;
	}
	if (o.guests.join || o.guests.slurm) {
		int rc = gci_join(&o, &status, &e);

		if (rc < 0)
			complain(&e);
		if (rc <= 0)
			return rc < 0 && !status ? GCI_USAGE_STATUS : status;
	}
	return start_job(&o);
}
