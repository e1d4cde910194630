/* SPDX-License-Identifier: MIT
 * What the parts of a lab's plan share: plan.c puts it together, plan_steps.c writes down commands,
 * plan_cluster.c plans switches and hosts, plan_wan.c what joins the clusters. */
#ifndef GCI_NETEM_PLAN_IMPL_H
#define GCI_NETEM_PLAN_IMPL_H

#include "base/buf.h"
#include "netem/plan.h"

#define GCI_LABPLAN_WAN         "gcl-wan"
#define GCI_LABPLAN_PORT_NBYTES (512u << 10) /* a switch port's buffer */
#define GCI_LABPLAN_GATEWAY     0xfffd       /* number of the cluster's router: 10.C.255.254 */

struct gci_planner {
	struct gci_lab_plan *plan;
	const struct gci_grid *g;
	uint32_t dilation;
	struct gci_lab_how how;
	char **switches; /* namespace of each cluster's switch */
	int nomem;
};

static inline uint64_t gci_labplan_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline unsigned gci_labplan_byte(int v, int shift)
{
	return (unsigned)v >> shift & 255;
}

/* What all hosts can send together, or the WAN when their NICs are not known. */
uint64_t gci_labplan_load_bps(const struct gci_grid *g);

/* Ends `lines` as a step. */
void gci_labplan_step(
	struct gci_planner *p, enum gci_lab_tool tool, const char *netns, struct gci_buf *lines);
void gci_labplan_sysctls(struct gci_planner *p, const char *netns, const char *lines);
void gci_labplan_own_netns(struct gci_planner *p, const char *name);

void gci_labplan_addr(char *out, size_t size, int cluster, int number);
void gci_labplan_mac(char *out, size_t size, int cluster, int number);

/* Lines for tc; put_netem's is not ended. Where its rate is not 0, each packet is late by its own
 * length at that rate as well, and those that come faster queue without a limit. */
void gci_labplan_put_netem(
	struct gci_buf *b, const char *dev, uint64_t delay_ns, uint64_t rate_bps);
void gci_labplan_put_tbf(const struct gci_planner *p, struct gci_buf *b, const char *dev,
	const char *where, uint64_t rate_bps, uint64_t limit);

/* Host `number` of a cluster into *h, its namespace and what holds in it; then all hosts of one,
 * with their switch. */
void gci_labplan_name_host(struct gci_planner *p, int cluster, int number, struct gci_lab_host *h);
void gci_labplan_cluster(struct gci_planner *p, int cluster, const struct gci_lab_host *hosts);

/* Cables between all clusters, with what the grid's links are like. */
void gci_labplan_wires(struct gci_planner *p);

#endif
