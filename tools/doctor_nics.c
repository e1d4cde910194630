/* SPDX-License-Identifier: MIT
 * Network cards. */
#include "base/units.h"
#include "tools/doctor_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FAST_BPS   10000000000u /* from here on packets are too many to be small */
#define JUMBO      9000
#define FAST_QUEUE 1000

static struct gct_finding *of(const struct gct_nic *nic, const char *id, const char *what,
	enum gct_level level, struct gct_report *r)
{
	char name[64];

	snprintf(name, sizeof(name), "%s %s", nic->name, what);
	return gct_finding(r, level, id, name);
}

static int is_fast(const struct gct_nic *nic)
{
	return nic->speed_bps != GCT_UNKNOWN && nic->speed_bps >= FAST_BPS;
}

static void check_mtu(const struct gct_nic *nic, struct gct_report *r)
{
	int small = is_fast(nic) && nic->mtu < JUMBO;
	struct gct_finding *g = of(nic, "mtu", "MTU",
		nic->mtu == GCT_UNKNOWN ? GCT_NOT_KNOWN
		: small                 ? GCT_ADVICE
					: GCT_FINE,
		r);
	char rate[16];

	if (nic->mtu == GCT_UNKNOWN)
		return;
	gct_say(r, &g->is, "%" PRIu64, nic->mtu);
	if (!small)
		return;
	gct_say(r, &g->should, "%d", JUMBO);
	gct_say(r, &g->why,
		"%s in packets of %" PRIu64 " B are %" PRIu64
		" a second; larger ones cost less CPU, if every switch on the path takes them",
		gci_format_rate(nic->speed_bps, rate, sizeof(rate)), nic->mtu,
		nic->mtu ? nic->speed_bps / 8 / nic->mtu : 0);
	gct_say(r, &g->command, "ip link set %s mtu %d", nic->name, JUMBO);
}

static void check_queue(const struct gct_nic *nic, struct gct_report *r)
{
	int small = is_fast(nic) && nic->txqueuelen < FAST_QUEUE;
	struct gct_finding *g = of(nic, "txqueuelen", "txqueuelen",
		nic->txqueuelen == GCT_UNKNOWN ? GCT_NOT_KNOWN
		: small                        ? GCT_ADVICE
					       : GCT_FINE,
		r);

	if (nic->txqueuelen != GCT_UNKNOWN)
		gct_say(r, &g->is, "%" PRIu64, nic->txqueuelen);
	if (!small)
		return;
	gct_say(r, &g->should, "%d", FAST_QUEUE);
	gct_say(r, &g->why, "a queue of packets that short drops at the host itself");
	gct_say(r, &g->command, "ip link set %s txqueuelen %d", nic->name, FAST_QUEUE);
}

static void check_offloads(const struct gct_nic *nic, struct gct_report *r)
{
	static const char *const names[] = {"tso", "gso", "gro"};
	struct gct_finding *g = of(nic, "offloads", "offloads", GCT_FINE, r);
	char on[16] = "", off[32] = "", change[48] = "";
	int i, n = 0;

	for (i = 0; i < GCT_NOFFLOADS; i++) {
		char *list = nic->offload[i] > 0 ? on : off;
		size_t size = nic->offload[i] > 0 ? sizeof(on) : sizeof(off);

		if (nic->offload[i] < 0)
			continue;
		n++;
		snprintf(list + strlen(list), size - strlen(list), "%s%s", *list ? " " : "",
			names[i]);
		if (!nic->offload[i])
			snprintf(change + strlen(change), sizeof(change) - strlen(change), " %s on",
				names[i]);
	}
	g->level = !n ? GCT_NOT_KNOWN : *off ? GCT_ADVICE : GCT_FINE;
	if (!n)
		return;
	gct_say(r, &g->is, "%s", *on ? on : "none");
	if (!*off)
		return;
	gct_say(r, &g->should, "tso gso gro");
	gct_say(r, &g->why,
		"without %s the kernel handles each packet on its own instead of 64 KiB at a time",
		off);
	gct_say(r, &g->command, "ethtool -K %s%s", nic->name, change);
}

static void check_numa(const struct gct_nic *nic, const struct gct_facts *f, struct gct_report *r)
{
	struct gct_finding *g;

	if (f->nodes < 2 || nic->numa_node < 0)
		return;
	g = of(nic, "numa", "NUMA node", GCT_FINE, r);
	gct_say(r, &g->is, "%d of %d", nic->numa_node, f->nodes);
	gct_say(r, &g->why,
		"ranks that run on its node move data without crossing to another: numactl "
		"--cpunodebind=%d",
		nic->numa_node);
}

/* The grid file's word against the card's. */
static void check_speed(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	const struct gct_nic *best = NULL;
	struct gct_finding *g;
	char is[16], should[16];
	int i, slow;

	for (i = 0; i < f->nnics; i++)
		if (f->nics[i].speed_bps != GCT_UNKNOWN &&
			(!best || f->nics[i].speed_bps > best->speed_bps))
			best = &f->nics[i];
	if (!best || !n->nic_bps)
		return;
	slow = best->speed_bps < n->nic_bps;
	g = of(best, "speed", "speed", slow ? GCT_PROBLEM : GCT_FINE, r);
	gct_say(r, &g->is, "%s", gci_format_rate(best->speed_bps, is, sizeof(is)));
	if (!slow)
		return;
	gct_say(r, &g->should, "%s", gci_format_rate(n->nic_bps, should, sizeof(should)));
	gct_say(r, &g->why,
		"the grid file says so (nic); either the cable or port is not what it should be, "
		"or all that gridcoll predicts is");
}

void gct_check_nics(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	int i;

	check_speed(f, n, r);
	for (i = 0; i < f->nnics; i++) {
		check_mtu(&f->nics[i], r);
		check_queue(&f->nics[i], r);
		check_offloads(&f->nics[i], r);
		check_numa(&f->nics[i], f, r);
	}
}
