/* SPDX-License-Identifier: MIT */
#include "launcher/slurm.h"

#include "base/mem.h"
#include "base/units.h"
#include "collectives/grid/grid.h"
#include "transport/control.h"

#include <stdio.h>
#include <string.h>

struct source {
	const char *(*get)(void *user, const char *name);
	void *user;
	struct gci_error *e;
};

static int wrong(const struct source *s, const char *name, const char *value, const char *expected)
{
	return gci_error_set(s->e, GCOLL_ERR_INVAL,
		"%s=%.100s, expected %s (--slurm is for tasks of srun: " GCI_SLURM_EXAMPLE ")",
		name, value ? value : "(not set)", expected);
}

static int number(const struct source *s, const char *name, uint64_t max, uint64_t *out)
{
	const char *value = s->get(s->user, name);

	return value && !gci_parse_uint(value, max, out) ? 0 : wrong(s, name, value, "a number");
}

/* The first name of a list such as "n[01-16,20],m7"; -1: it is none. */
static int first_of(const char *list, char out[GCI_SLURM_HOST])
{
	char **hosts = NULL;
	int n = 0, i, rc = gci_hosts_expand(list, &hosts, &n, NULL);

	if (!rc && (!n || strlen(hosts[0]) >= GCI_SLURM_HOST))
		rc = -1;
	if (!rc)
		strcpy(out, hosts[0]);
	for (i = 0; i < n; i++)
		gci_free(hosts[i]);
	gci_free(hosts);
	return rc;
}

/* The step's own list, or that of a job of one step. */
static int read_first(const struct source *s, char out[GCI_SLURM_HOST])
{
	const char *name = "SLURM_STEP_NODELIST", *list = s->get(s->user, name);

	return list && !first_of(list, out) ? 0 : wrong(s, name, list, "a list of nodes");
}

int gci_slurm_read(struct gci_slurm *out, const char *(*get)(void *user, const char *name),
	void *user, struct gci_error *e)
{
	const struct source s = {get, user, e};
	uint64_t rank, size, job, step;
	const char *host;

	memset(out, 0, sizeof(*out));
	if (number(&s, "SLURM_PROCID", GCI_CTL_MAX_RANKS - 1, &rank) ||
		number(&s, "SLURM_STEP_NUM_TASKS", GCI_CTL_MAX_RANKS, &size) ||
		number(&s, "SLURM_JOB_ID", UINT32_MAX, &job) ||
		number(&s, "SLURM_STEP_ID", UINT32_MAX, &step) || read_first(&s, out->first))
		return GCOLL_ERR_INVAL;
	if (rank >= size)
		return wrong(&s, "SLURM_PROCID", get(user, "SLURM_PROCID"),
			"a number below SLURM_STEP_NUM_TASKS");
	host = get(user, "SLURMD_NODENAME");
	if (!host || !*host || strlen(host) >= sizeof(out->host))
		return wrong(&s, "SLURMD_NODENAME", host, "the name of this node");
	strcpy(out->host, host);
	out->rank = (uint32_t)rank;
	out->size = (uint32_t)size;
	out->port = (uint16_t)(GCI_SLURM_PORT + (job * 17 + step) % GCI_SLURM_NPORTS);
	return 0;
}
