/* SPDX-License-Identifier: MIT */
#include "comm/pacing_edt.h"

#include "base/log.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "shaping/edt.h"
#include "transport/control.h"

#include <stdio.h>
#include <string.h>

struct gci_pacing_edt {
	struct gci_edt *edt;
	int n;
	int classes[]; /* [cluster]; -1: none */
};

/* All addresses at which ranks of a cluster are reached; to be freed. */
static struct gci_net *nets_of(
	const struct gci_topo *t, int cluster, const struct gci_ctl_rank *ranks, size_t *n)
{
	const int *members = gci_topo_members(t, cluster);
	int size = gci_topo_size(t, cluster), i;
	struct gci_net *nets = gci_calloc((size_t)size * GCI_REACH_MAX, sizeof(*nets));
	unsigned k;

	*n = 0;
	for (i = 0; nets && i < size; i++) {
		const struct gci_reach *r = &ranks[members[i]].reach;

		for (k = 0; k < r->n; k++) {
			int six = r->six >> k & 1;

			nets[*n] = (struct gci_net){.six = six ? 6 : 4, .bits = six ? 128 : 32};
			memcpy(nets[(*n)++].ip, r->ip[k], six ? 16 : 4);
		}
	}
	return nets;
}

/* Counted, and not limited yet. */
static int add_class(struct gci_pacing_edt *p, const struct gci_engine *engine, int to,
	const struct gci_ctl_rank *ranks, struct gci_error *e)
{
	const struct gci_topo *t = &engine->world->topo;
	char name[GCI_EDT_NAME];
	struct gci_net *nets;
	size_t n;

	/* Of a longer name the beginning; where two begin alike, the kernel's trie refuses them. */
	snprintf(name, sizeof(name), "%s", engine->grid->clusters[t->in_grid[to]].name);
	nets = nets_of(t, to, ranks, &n);
	p->classes[to] = nets ? gci_edt_class(p->edt, name, nets, n, 0, e)
			      : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(nets);
	return p->classes[to] < 0 ? p->classes[to] : 0;
}

int gci_pacing_edt_open(struct gci_pacing_edt **out, const struct gci_engine *engine,
	const struct gci_ctl_rank *ranks, const char *device, struct gci_error *e)
{
	const struct gci_topo *t = &engine->world->topo;
	int to, rc, mine = t->cluster[engine->rank];
	struct gci_pacing_edt *p =
		gci_calloc(1, sizeof(*p) + (size_t)t->nclusters * sizeof(*p->classes));

	*out = NULL;
	if (!p)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	p->n = t->nclusters;
	for (to = 0; to < p->n; to++)
		p->classes[to] = -1;
	rc = *device ? gci_edt_open(&p->edt, device, 0, e)
		     : gci_error_set(
			       e, GCOLL_ERR_UNSUPPORTED, "no device has this process's address");
	for (to = 0; !rc && engine->grid && to < p->n; to++)
		if (to != mine)
			rc = add_class(p, engine, to, ranks, e);
	if (!rc)
		*out = p;
	else
		gci_pacing_edt_close(p);
	return rc;
}

void gci_pacing_edt_close(struct gci_pacing_edt *p)
{
	if (!p)
		return;
	gci_edt_close(p->edt);
	gci_free(p);
}

unsigned gci_pacing_edt_senders(
	const struct gci_engine *engine, const struct gci_ctl_rank *ranks, int senders)
{
	const struct gci_topo *t = &engine->world->topo;
	int mine = t->cluster[engine->rank], size = gci_topo_size(t, mine), i, k;
	const int *members = gci_topo_members(t, mine);
	unsigned hosts = 0;

	for (i = 0; i < size; i++) {
		for (k = 0; k < i && ranks[members[k]].host != ranks[members[i]].host; k++)
			;
		hosts += k == i;
	}
	return senders > 0 && (unsigned)senders < hosts ? (unsigned)senders : hosts;
}

void gci_pacing_edt_rate(struct gci_pacing_edt *p, int to, uint64_t bps)
{
	struct gci_error e = {0};

	if (p && to < p->n && p->classes[to] >= 0 &&
		gci_edt_set_rate(p->edt, p->classes[to], bps, &e))
		gci_log(GCI_LOG_WARN, "pacing by edt: %s", e.text);
}
