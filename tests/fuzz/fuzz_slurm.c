/* SPDX-License-Identifier: MIT
 * Slurm's variables, a line each in the order in which they are asked for. */
#include "launcher/slurm.h"

#include <stdlib.h>
#include <string.h>

#define LINES 8

struct lines {
	char *v[LINES];
	size_t n;
};

static const char *get(void *user, const char *name)
{
	static const char *const names[] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID",
		"SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURMD_NODENAME"};
	struct lines *l = user;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return i < l->n ? l->v[i] : NULL;
	abort();
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
		s.port >= GCI_SLURM_PORT + GCI_SLURM_NPORTS)
		abort();
	return 0;
}
