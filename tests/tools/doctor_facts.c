/* SPDX-License-Identifier: MIT */
#include "tests/tools/doctor_facts.h"

#include <stdio.h>
#include <string.h>

void good_facts(struct gct_facts *f)
{
	static const uint64_t sysctls[GCT_NSYSCTLS] = {[GCT_RMEM_MAX] = 212992,
		[GCT_WMEM_MAX] = 212992,
		[GCT_NO_METRICS_SAVE] = 1,
		[GCT_MTU_PROBING] = 1,
		[GCT_WINDOW_SCALING] = 1,
		[GCT_TIMESTAMPS] = 1,
		[GCT_SACK] = 1,
		[GCT_MODERATE_RCVBUF] = 1,
		[GCT_BPF_DISABLED] = 2};
	static const uint64_t rmem[3] = {4096, 131072, 32 << 20}, wmem[3] = {4096, 16384, 32 << 20};
	int i;

	*f = (struct gct_facts){.nofile_soft = 1024,
		.nofile_hard = 4096,
		.capabilities = 1ull << 39 | 1ull << 12,
		.bpffs = 1,
		.btf = 1,
		.nodes = 1,
		.aes = 1,
		.nnics = 1,
		.synced = 1,
		.clock_error_us = 300,
		.lab = 1};
	memcpy(f->sysctl, sysctls, sizeof(sysctls));
	memcpy(f->tcp_rmem, rmem, sizeof(rmem));
	memcpy(f->tcp_wmem, wmem, sizeof(wmem));
	strcpy(f->host, "k1");
	strcpy(f->kernel, "6.1.0");
	strcpy(f->congestion, "cubic");
	strcpy(f->congestions, "reno cubic");
	strcpy(f->qdisc, "fq");
	strcpy(f->clock, "tsc");
	strcpy(f->governor, "performance");
	f->nics[0] = (struct gct_nic){"eth0", 9000, 1000, 10000000000, 1, 0, {1, 1, 1}};
	for (i = 0; i < GCT_NMODULES; i++)
		f->module[i] = 1;
}

void grid_needs(struct gct_needs *n, const char *text, const char *host)
{
	struct gci_error e = {0};
	struct gci_grid g;

	*n = (struct gct_needs){.own_cluster = -1};
	if (gci_grid_parse(&g, text, strlen(text), "test", &e))
		fail_msg("%s", e.text);
	assert_int_equal(gct_needs_make(n, &g, host), 0);
	snprintf(n->file, sizeof(n->file), "my.grid");
	gci_grid_free(&g);
}

const struct gct_finding *find(const struct gct_report *r, const char *id)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->list[i].id, id))
			return &r->list[i];
	fail_msg("no finding %s", id);
	return NULL;
}
