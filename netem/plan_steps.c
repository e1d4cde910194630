/* SPDX-License-Identifier: MIT
 * Commands, written down step by step. */
#include "netem/plan_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

#define LEAST_BURST (2 * 1514)

void gci_labplan_step(
	struct gci_planner *p, enum gci_lab_tool tool, const char *netns, struct gci_buf *lines)
{
	struct gci_lab_plan *plan = p->plan;
	struct gci_lab_step *s;

	if (!lines->len && !lines->failed)
		return;
	if (lines->failed ||
		gci_grow(&plan->steps, &plan->steps_cap, plan->nsteps + 1, sizeof(*s))) {
		p->nomem = 1;
		gci_buf_free(lines);
		return;
	}
	s = &plan->steps[plan->nsteps++];
	s->tool = tool;
	s->netns = netns ? gci_strdup(netns) : NULL;
	s->lines = gci_strdup(gci_buf_cstr(lines));
	if ((netns && !s->netns) || !s->lines)
		p->nomem = 1;
	gci_buf_free(lines);
}

void gci_labplan_sysctls(struct gci_planner *p, const char *netns, const char *lines)
{
	struct gci_buf b = {0};

	gci_buf_printf(&b, "%s", lines);
	gci_labplan_step(p, GCI_LAB_SYSCTL, netns, &b);
}

void gci_labplan_own_netns(struct gci_planner *p, const char *name)
{
	struct gci_lab_plan *plan = p->plan;
	char *copy = gci_strdup(name);

	if (!copy ||
		gci_grow(&plan->netns, &plan->netns_cap, plan->nnetns + 1, sizeof(*plan->netns))) {
		gci_free(copy);
		p->nomem = 1;
		return;
	}
	plan->netns[plan->nnetns++] = copy;
}

void gci_labplan_addr(char *out, size_t size, int cluster, int number)
{
	snprintf(out, size, "10.%u.%u.%u", gci_labplan_byte(cluster + 1, 0),
		gci_labplan_byte(number + 1, 8), gci_labplan_byte(number + 1, 0));
}

void gci_labplan_mac(char *out, size_t size, int cluster, int number)
{
	snprintf(out, size, "02:00:0a:%02x:%02x:%02x", gci_labplan_byte(cluster + 1, 0),
		gci_labplan_byte(number + 1, 8), gci_labplan_byte(number + 1, 0));
}

/* What may go at once after a pause: a millisecond of the undilated rate, but no more than one full
 * GSO packet with its 44 headers, lest short messages outrun the link (larger packets are cut up,
 * which takes processor time that slow links leave), and no less than two packets; and a quarter of
 * a millisecond of the rate as it is, by which timers come late: without it an undilated Gigabit
 * passes 850 Mbit/s. */
static uint64_t burst(const struct gci_planner *p, uint64_t rate_bps)
{
	uint64_t b = rate_bps * p->dilation / 8 / 1000, late = rate_bps / 8 / 4000;

	return (b < LEAST_BURST ? LEAST_BURST : b > 70000 ? 70000 : b) + late;
}

/* tc knows no nanoseconds. */
void gci_labplan_put_netem(struct gci_buf *b, const char *dev, uint64_t delay_ns, uint64_t rate_bps)
{
	gci_buf_printf(
		b, "qdisc add dev %s root handle 2: netem delay %" PRIu64, dev, delay_ns / 1000);
	if (delay_ns % 1000)
		gci_buf_printf(b, ".%03u", (unsigned)(delay_ns % 1000));
	gci_buf_printf(b, "us limit 1000000");
	if (rate_bps)
		gci_buf_printf(b, " rate %" PRIu64 "bit", rate_bps);
}

void gci_labplan_put_tbf(const struct gci_planner *p, struct gci_buf *b, const char *dev,
	const char *where, uint64_t rate_bps, uint64_t limit)
{
	gci_buf_printf(b,
		"qdisc add dev %s %s handle 1: tbf rate %" PRIu64 "bit burst %" PRIu64
		" limit %" PRIu64 "\n",
		dev, where, rate_bps, burst(p, rate_bps),
		gci_labplan_max(limit, burst(p, rate_bps)));
}
