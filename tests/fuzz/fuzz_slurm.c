/* SPDX-License-Identifier: MIT
 * Slurm's variables, a line each in this order; an empty one of the last is not set. */
#include "collectives/grid/grid.h"
#include "launcher/slurm.h"

#include <stdlib.h>
#include <string.h>

#define LINES 16

struct lines {
	char *v[LINES];
	size_t n;
};

static const char *get(void *user, const char *name)
{
	static const char *const names[] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID",
		"SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURMD_NODENAME", "SLURM_HET_SIZE",
		"SLURM_JOB_NODELIST_PACK_GROUP_0", "SLURM_JOB_NODELIST_HET_GROUP_1",
		"SLURM_JOB_NODELIST_PACK_GROUP_2", "SLURM_JOB_PARTITION_HET_GROUP_0",
		"SLURM_JOB_PARTITION_PACK_GROUP_1"};
	struct lines *l = user;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return i < l->n && (i < 6 || *l->v[i]) ? l->v[i] : NULL;
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_error e = {0};
	struct lines l = {0};
	struct gci_slurm s;
	char text[4096], *at;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (at = text; at && l.n < LINES; l.n++)
		l.v[l.n] = strsep(&at, "\n");
	if (gci_slurm_read(&s, get, &l, &e)) {
		if (!e.status || !*e.text)
			abort();
		return 0;
	}
	if (s.rank >= s.size || !*s.host || !*s.first ||
		strcspn(s.first, " ,[]/\t") != strlen(s.first) || s.port < GCI_SLURM_PORT ||
		s.port >= GCI_SLURM_PORT + GCI_SLURM_NPORTS ||
		(*s.cluster && (!gci_grid_is_cluster_name(s.cluster) || !s.ncomponents)))
		abort();
	return 0;
}
