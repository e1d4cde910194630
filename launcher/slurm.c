/* SPDX-License-Identifier: MIT */
#include "launcher/slurm.h"

#include "base/mem.h"
#include "base/units.h"
#include "collectives/grid/grid.h"

#include <stdio.h>
#include <stdlib.h>
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

struct nodes {
	char **names;
	int n;
};

static void free_nodes(struct nodes *l)
{
	int i;

	for (i = 0; i < l->n; i++)
		gci_free(l->names[i]);
	gci_free(l->names);
}

/* Of a list such as "n[01-16,20],m7". */
static int read_nodes(const struct source *s, const char *name, const char *list, struct nodes *l)
{
	if (list && !gci_hosts_expand(list, &l->names, &l->n, NULL) && l->n &&
		strlen(l->names[0]) < GCI_SLURM_HOST)
		return 0;
	return wrong(s, name, list, "a list of nodes");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int has(const struct nodes *sorted, const char *name)
{
	return bsearch(&name, sorted->names, (size_t)sorted->n, sizeof(name), by_name) != NULL;
}

/* A variable of one component. srun that makes the allocation itself has long called them packs. */
static const char *of_component(
	const struct source *s, const char *what, unsigned k, char *name, size_t size)
{
	const char *value;

	snprintf(name, size, "%s_PACK_GROUP_%u", what, k);
	value = s->get(s->user, name);
	if (value)
		return value;
	snprintf(name, size, "%s_HET_GROUP_%u", what, k);
	return s->get(s->user, name);
}

static void name_cluster(const struct source *s, unsigned k, struct gci_slurm *out)
{
	char name[64];
	const char *partition = of_component(s, "SLURM_JOB_PARTITION", k, name, sizeof(name));

	if (partition && strlen(partition) < sizeof(out->cluster) &&
		gci_grid_is_cluster_name(partition))
		strcpy(out->cluster, partition);
	else
		snprintf(out->cluster, sizeof(out->cluster), "het-group-%u", k);
}

/* Of a heterogeneous job, in whose steps ranks are numbered by component, while their node lists are
 * in the order of names; and SLURM_JOB_PARTITION may be another component's. `step`: sorted. */
static int read_components(const struct source *s, const struct nodes *step, struct gci_slurm *out)
{
	uint64_t n = 0;
	unsigned k;

	if (s->get(s->user, "SLURM_HET_SIZE") &&
		number(s, "SLURM_HET_SIZE", GCI_GRID_MAX_CLUSTERS, &n))
		return GCOLL_ERR_INVAL;
	for (k = 0; k < n; k++) {
		struct nodes l = {0};
		char name[64];
		const char *list = of_component(s, "SLURM_JOB_NODELIST", k, name, sizeof(name));
		int i, took_part = 0, rc = read_nodes(s, name, list, &l);

		for (i = 0; !rc && i < l.n; i++) {
			if (!has(step, l.names[i]))
				continue;
			if (!out->ncomponents && !took_part && strlen(l.names[i]) < GCI_SLURM_HOST)
				strcpy(out->first, l.names[i]);
			if (!strcmp(l.names[i], out->host))
				name_cluster(s, k, out);
			took_part = 1;
		}
		free_nodes(&l);
		if (rc)
			return rc;
		out->ncomponents += took_part;
	}
	return 0;
}

/* Who is where: by the step's own nodes. */
static int read_places(const struct source *s, struct gci_slurm *out)
{
	const char *name = "SLURM_STEP_NODELIST", *host;
	struct nodes step = {0};
	int rc = read_nodes(s, name, s->get(s->user, name), &step);

	host = rc ? NULL : s->get(s->user, "SLURMD_NODENAME");
	if (!rc && (!host || !*host || strlen(host) >= sizeof(out->host)))
		rc = wrong(s, "SLURMD_NODENAME", host, "the name of this node");
	if (!rc) {
		strcpy(out->host, host);
		strcpy(out->first, step.names[0]);
		qsort(step.names, (size_t)step.n, sizeof(*step.names), by_name);
		rc = read_components(s, &step, out);
	}
	free_nodes(&step);
	return rc;
}

int gci_slurm_read(struct gci_slurm *out, const char *(*get)(void *user, const char *name),
	void *user, struct gci_error *e)
{
	const struct source s = {get, user, e};
	uint64_t rank, size, job, step;

	memset(out, 0, sizeof(*out));
	if (number(&s, "SLURM_PROCID", GCI_CTL_MAX_RANKS - 1, &rank) ||
		number(&s, "SLURM_STEP_NUM_TASKS", GCI_CTL_MAX_RANKS, &size) ||
		number(&s, "SLURM_JOB_ID", UINT32_MAX, &job) ||
		number(&s, "SLURM_STEP_ID", UINT32_MAX, &step) || read_places(&s, out))
		return GCOLL_ERR_INVAL;
	if (rank >= size)
		return wrong(&s, "SLURM_PROCID", get(user, "SLURM_PROCID"),
			"a number below SLURM_STEP_NUM_TASKS");
	out->rank = (uint32_t)rank;
	out->size = (uint32_t)size;
	out->port = (uint16_t)(GCI_SLURM_PORT + (job * 17 + step) % GCI_SLURM_NPORTS);
	return 0;
}
