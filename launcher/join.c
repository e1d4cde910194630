/* SPDX-License-Identifier: MIT */
#include "launcher/join.h"

#include "launcher/secret.h"
#include "launcher/slurm.h"
#include "launcher/spawn.h"
#include "launcher/ssh.h"
#include "transport/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the variable that the option names, else of GRIDCOLL_`what`, else of the one that
 * GRIDCOLL_`what`_FROM names. 1: none is set, where that may be. */
static int number_of(const char *what, const char *option, const char *from, uint64_t max,
	int optional, uint64_t *out, struct gci_error *e)
{
	char plain[32], indirect[32];
	const char *value, *name = from;

	snprintf(plain, sizeof(plain), "GRIDCOLL_%s", what);
	snprintf(indirect, sizeof(indirect), "GRIDCOLL_%s_FROM", what);
	if (!name)
		name = getenv(plain) || !getenv(indirect) ? plain : getenv(indirect);
	value = getenv(name);
	if (!value && optional && !from)
		return 1;
	if (value && !gci_parse_uint(value, max, out))
		return 0;
	return gci_error_set(e, GCOLL_ERR_INVAL,
		"%s=%s: expected a number from 0 to %llu in that variable (see %s)", name,
		value ? value : "(not set)", (unsigned long long)max, option);
}

/* "HOST:PORT" says at which port rank 0 serves. */
static int serve_there(struct gci_options *o, struct gci_error *e)
{
	const char *colon = strrchr(o->guests.join, ':');
	uint64_t port;

	if (!colon || gci_parse_uint(colon + 1, 65535, &port) || !port)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "--join %s: expected HOST:PORT", o->guests.join);
	o->guests.serve_port = (uint16_t)port;
	return 1;
}

static int set(const char *name, const char *value)
{
	return value ? setenv(name, value, 1) : 0;
}

static int set_number(const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return setenv(name, text, 1);
}

/* In a pipe, as gridcoll-run hands it to its own ranks. */
static int pass_secret(const struct gci_options *o, struct gci_error *e)
{
	uint8_t secret[GCI_SECRET_NBYTES];
	int fds[2], rc = gci_job_secret(o, secret, e);

	if (rc)
		return rc;
	rc = gci_pipe(fds, e);
	if (!rc && (write(fds[1], secret, sizeof(secret)) != sizeof(secret) ||
			   fcntl(fds[0], F_SETFD, 0) ||
			   set_number("GRIDCOLL_SECRET_FD", (uint64_t)fds[0])))
		rc = gci_error_errno(e, "cannot hand over the job's secret");
	if (fds[1] >= 0)
		close(fds[1]);
	explicit_bzero(secret, sizeof(secret));
	unsetenv("GRIDCOLL_SECRET_FILE");
	return rc;
}

/* We may be a rank's command ourselves, with variables of its job. What gridcoll-run sets for its own
 * ranks alone, not for guests, goes; a time limit to join may be the user's, but not in such a job. */
static int forget_outer_job(void)
{
	static const char *const outer[] = {"GRIDCOLL_LAUNCH_RANK", "GRIDCOLL_LAUNCH_MACHINE",
		"GRIDCOLL_GRID", "GRIDCOLL_GRID_TEXT", "GRIDCOLL_CONTROL_TLS"};
	int bad = getenv("GRIDCOLL_CONTROL_TLS") ? unsetenv("GRIDCOLL_JOIN_TIMEOUT") : 0;
	size_t i;

	for (i = 0; i < sizeof(outer) / sizeof(*outer); i++)
		bad |= unsetenv(outer[i]);
	return bad;
}

static int set_environment(
	const struct gci_options *o, uint64_t rank, uint64_t size, struct gci_error *e)
{
	char ports[16];
	int bad = forget_outer_job();

	snprintf(ports, sizeof(ports), "%u-%u", o->net.ports.lo, o->net.ports.hi);
	bad |= set("GRIDCOLL_RENDEZVOUS", o->guests.join);
	bad |= set_number("GRIDCOLL_RANK", rank);
	bad |= size ? set_number("GRIDCOLL_SIZE", size) : unsetenv("GRIDCOLL_SIZE");
	bad |= set("GRIDCOLL_SECURITY", o->net.security);
	bad |= set("GRIDCOLL_DATA_PATH", o->net.data_path);
	bad |= set("GRIDCOLL_CONGESTION", o->net.congestion);
	bad |= set("GRIDCOLL_PACE", o->net.pace);
	bad |= set("GRIDCOLL_INTERFACES", o->net.interfaces);
	bad |= set("GRIDCOLL_PORT_RANGE", o->net.ports.lo ? ports : NULL);
	return bad ? gci_error_errno(e, "cannot set the environment") : 0;
}

static const char *from_environment(void *user, const char *name)
{
	(void)user;
	return getenv(name);
}

/* Where and who we are as Slurm has it. */
static int ask_slurm(struct gci_options *o, uint64_t *rank, struct gci_error *e)
{
	static char where[GCI_SLURM_HOST + 8];
	struct gci_slurm task;
	const char *host = getenv("GRIDCOLL_HOST"), *cluster = getenv("GRIDCOLL_CLUSTER");

	if (gci_slurm_read(&task, from_environment, NULL, e))
		return e->status;
	snprintf(where, sizeof(where), "%s:%u", task.first, task.port);
	if (!o->guests.join)
		o->guests.join = where;
	o->nranks = task.size;
	o->guests.rank_0_serves = 1;
	*rank = task.rank;
	if (((!host || !*host) && setenv("GRIDCOLL_HOST", task.host, 1)) ||
		((!cluster || !*cluster) && *task.cluster &&
			setenv("GRIDCOLL_CLUSTER", task.cluster, 1)))
		return gci_error_errno(e, "cannot set the environment");
	if (task.ncomponents > 1 && !strcmp(o->guests.secret_file, "-"))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--slurm: srun hands its standard input to one component of a "
			"heterogeneous step only: expected --secret-file FILE, which all nodes "
			"can read");
	return 0;
}

static int ask_environment(struct gci_options *o, uint64_t *rank, struct gci_error *e)
{
	uint64_t size = o->nranks;
	int rc = 0;

	if (!size)
		rc = number_of(
			"SIZE", "--size-from", o->guests.size_from, GCI_CTL_MAX_RANKS, 1, &size, e);
	if (rc >= 0)
		rc = number_of("RANK", "--rank-from", o->guests.rank_from,
			(size ? size : GCI_CTL_MAX_RANKS) - 1, 0, rank, e);
	if (rc < 0)
		return rc;
	if (o->guests.rank_0_serves && !*rank && !size && !o->grid && !o->hosts)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--rank-0-serves: expected -n, --size-from, --grid or --hosts with it");
	o->nranks = (uint32_t)size;
	return 0;
}

/* --dry-run. */
static int print_rank(const struct gci_options *o, uint64_t rank)
{
	struct gci_buf out = {0};
	char **s;

	gci_buf_printf(&out, "rank %llu", (unsigned long long)rank);
	if (o->nranks)
		gci_buf_printf(&out, " of %u", o->nranks);
	gci_buf_printf(&out, ": joins the job at %s\ncommand:", o->guests.join);
	for (s = o->argv; *s; s++) {
		gci_buf_printf(&out, " ");
		gci_quote_if_needed(&out, *s);
	}
	puts(gci_buf_cstr(&out));
	gci_buf_free(&out);
	return fflush(stdout) != 0;
}

int gci_join(struct gci_options *o, int *exit_status, struct gci_error *e)
{
	uint64_t rank = 0;
	int rc = o->guests.slurm ? ask_slurm(o, &rank, e) : ask_environment(o, &rank, e);

	if (rc)
		return rc;
	if (o->guests.rank_0_serves && !rank)
		return serve_there(o, e);
	if (o->dry_run) {
		*exit_status = print_rank(o, rank);
		return 0;
	}
	if (set_environment(o, rank, o->nranks, e) || pass_secret(o, e))
		return e->status;
	execvp(*o->argv, o->argv);
	*exit_status = errno == ENOENT ? 127 : 126;
	return gci_cannot_run(*o->argv, e);
}
