/* SPDX-License-Identifier: MIT */
#include "netem/plan.h"

#include "base/mem.h"
#include "netem/plan_impl.h"

#include <stdlib.h>
#include <string.h>

#define SWITCH_SYSCTLS                           \
	"net.ipv6.conf.default.disable_ipv6 1\n" \
	"net.ipv4.ip_forward 1\n"

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_names(struct gci_planner *p, struct gci_error *e)
{
	size_t i, n = p->plan->nnetns;
	char **sorted = gci_calloc(n, sizeof(*sorted));
	int rc = 0;

	if (!sorted) {
		p->nomem = 1;
		return 0;
	}
	memcpy(sorted, p->plan->netns, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_names);
	for (i = 0; i < n && !rc; i++) {
		if (i && !strcmp(sorted[i - 1], sorted[i]))
			rc = gci_error_set(e, GCOLL_ERR_INVAL,
				"the host name \"%s\" is one the lab uses for itself, "
				"expected another",
				sorted[i] + 4);
		else if (strlen(sorted[i]) > 255)
			rc = gci_error_set(e, GCOLL_ERR_INVAL,
				"host name \"%s\": longer than 251 characters", sorted[i] + 4);
	}
	gci_free(sorted);
	return rc;
}

#define TOO_SLOW "a rate below 1 kbit/s, expected more in the lab (a smaller --dilate helps)"

static int is_too_slow(uint64_t bps)
{
	return bps && bps < GCI_LAB_LEAST_BPS;
}

static int check_size(
	const struct gci_grid *g, uint32_t dilation, struct gci_lab_how how, struct gci_error *e)
{
	const uint64_t lan_ns = (uint64_t)GCI_LAB_LAN_OF_TAPS_NS * dilation;
	int c;

	if (g->nclusters > GCI_LAB_MAX_CLUSTERS)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%d clusters, expected at most %d in the lab", g->nclusters,
			GCI_LAB_MAX_CLUSTERS);
	for (c = 0; c < g->nlinks; c++) {
		const struct gci_link *l = &g->links[c];
		const char *why =
			l->delay_ns > GCI_LAB_MAX_DELAY_NS ? "delay longer than the lab's 200 s"
			: is_too_slow(l->rate_bps) || is_too_slow(l->flow_rate_bps) ? TOO_SLOW
										    : NULL;

		if (why)
			return gci_error_set(e, GCOLL_ERR_INVAL, "link %s > %s: %s",
				g->clusters[l->from].name, g->clusters[l->to].name, why);
	}
	for (c = 0; c < g->nclusters; c++) {
		if (is_too_slow(g->clusters[c].nic_bps))
			return gci_error_set(
				e, GCOLL_ERR_INVAL, "cluster %s: " TOO_SLOW, g->clusters[c].name);
		if (g->clusters[c].lan_delay_ns > GCI_LAB_MAX_DELAY_NS)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"cluster %s: lan_delay longer than the lab's 200 s",
				g->clusters[c].name);
		if (how.taps && g->clusters[c].lan_delay_ns > lan_ns)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"cluster %s: lan_delay of more than 100 us, expected less where "
				"the "
				"kernel has no netem (or --backend uml)",
				g->clusters[c].name);
		if (g->clusters[c].nhosts > GCI_LAB_MAX_PORTS)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"cluster %s has %d hosts, expected at most %d in the lab",
				g->clusters[c].name, g->clusters[c].nhosts, GCI_LAB_MAX_PORTS);
	}
	return 0;
}

static void make_all(struct gci_planner *p)
{
	const struct gci_grid *g = p->g;
	struct gci_buf names = {0};
	size_t i;
	int c, h, first = 0;

	/* The first step makes the namespaces, which are known only at the end. */
	gci_buf_printf(&names, "\n");
	gci_labplan_step(p, GCI_LAB_IP, NULL, &names);
	for (c = 0; c < g->nclusters; c++) {
		p->switches[c] = gci_asprintf("gcl-sw-%s", g->clusters[c].name);
		if (!p->switches[c]) {
			p->nomem = 1;
			return;
		}
		gci_labplan_own_netns(p, p->switches[c]);
		gci_labplan_sysctls(p, p->switches[c], SWITCH_SYSCTLS);
		for (h = 0; h < g->clusters[c].nhosts; h++)
			gci_labplan_name_host(p, c, h, &p->plan->hosts[first++]);
	}
	if (g->nclusters > 1 && !p->how.taps) {
		gci_labplan_own_netns(p, GCI_LABPLAN_WAN);
		gci_labplan_sysctls(p, GCI_LABPLAN_WAN, "net.ipv6.conf.default.disable_ipv6 1\n");
	}
	for (c = first = 0; c < g->nclusters && !p->nomem; first += g->clusters[c++].nhosts)
		gci_labplan_cluster(p, c, &p->plan->hosts[first]);
	if (p->nomem)
		return;
	gci_labplan_wires(p);
	for (i = 0; i < p->plan->nnetns; i++)
		gci_buf_printf(&names, "netns add %s\n", p->plan->netns[i]);
	gci_free(p->plan->steps[0].lines);
	p->plan->steps[0].lines = gci_strdup(gci_buf_cstr(&names));
	if (names.failed || !p->plan->steps[0].lines)
		p->nomem = 1;
	gci_buf_free(&names);
}

int gci_lab_plan_make(struct gci_lab_plan *plan, const struct gci_grid *g, uint32_t dilation,
	struct gci_lab_how how, struct gci_error *e)
{
	struct gci_planner p = {.plan = plan, .g = g, .dilation = dilation, .how = how};
	int c, rc;

	memset(plan, 0, sizeof(*plan));
	rc = check_size(g, dilation, how, e);
	if (rc)
		return rc;
	plan->hosts = gci_calloc((size_t)g->nhosts, sizeof(*plan->hosts));
	plan->wires = gci_calloc((size_t)g->nlinks, sizeof(*plan->wires));
	p.switches = gci_calloc((size_t)g->nclusters, sizeof(*p.switches));
	if (plan->hosts && plan->wires && p.switches) {
		plan->nhosts = g->nhosts;
		plan->nwires = g->nlinks;
		make_all(&p);
		if (!p.nomem)
			rc = check_names(&p, e);
	} else {
		p.nomem = 1;
	}
	for (c = 0; p.switches && c < g->nclusters; c++)
		gci_free(p.switches[c]);
	gci_free(p.switches);
	if (p.nomem)
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (rc)
		gci_lab_plan_free(plan);
	return rc;
}

void gci_lab_plan_free(struct gci_lab_plan *plan)
{
	size_t i;
	int h;

	for (i = 0; i < plan->nsteps; i++) {
		gci_free(plan->steps[i].netns);
		gci_free(plan->steps[i].lines);
	}
	for (i = 0; i < plan->nnetns; i++)
		gci_free(plan->netns[i]);
	for (h = 0; h < plan->nhosts; h++) {
		gci_free(plan->hosts[h].name);
		gci_free(plan->hosts[h].netns);
		gci_free(plan->hosts[h].port_netns);
	}
	gci_free(plan->steps);
	gci_free(plan->netns);
	gci_free(plan->hosts);
	for (h = 0; h < plan->nwires; h++) {
		gci_free(plan->wires[h].netns);
		gci_free(plan->wires[h].entry_netns);
	}
	gci_free(plan->wires);
	memset(plan, 0, sizeof(*plan));
}

void gci_lab_plan_print(const struct gci_lab_plan *plan, struct gci_buf *out)
{
	static const char *const tools[] = {"sysctl", "ip", "tc"};
	size_t i;

	for (i = 0; i < plan->nsteps; i++) {
		const struct gci_lab_step *s = &plan->steps[i];
		const char *line = s->lines;

		while (*line) {
			int len = (int)strcspn(line, "\n");

			if (len)
				gci_buf_printf(out, "%s: %s %.*s\n", s->netns ? s->netns : "-",
					tools[s->tool], len, line);
			line += len + (line[len] == '\n');
		}
	}
}

uint64_t gci_labplan_load_bps(const struct gci_grid *g)
{
	uint64_t nics = 0, links = 0;
	int i;

	for (i = 0; i < g->nclusters; i++)
		nics += g->clusters[i].nic_bps * (uint64_t)g->clusters[i].nhosts;
	for (i = 0; i < g->nlinks; i++)
		links += g->links[i].rate_bps;
	return nics ? nics : links;
}

uint32_t gci_lab_choose_dilation(const struct gci_grid *g, uint64_t bps, uint64_t late_ns)
{
	const uint64_t max_rtt_ns = 900000000, parts = 10, most_for_late = 20;
	uint64_t load = gci_labplan_load_bps(g), rtt_ns = 0, shortest_ns = UINT64_MAX, k, k_max,
		 late;
	int l;

	for (l = 0; l < g->nlinks; l++) {
		rtt_ns = gci_labplan_max(rtt_ns, 2 * g->links[l].delay_ns);
		if (g->links[l].delay_ns && g->links[l].delay_ns < shortest_ns)
			shortest_ns = g->links[l].delay_ns;
	}
	k_max = rtt_ns ? gci_labplan_max(max_rtt_ns / rtt_ns, 1) : 1000;
	k = gci_labplan_max(load / bps + !!(load % bps), 1);
	late = late_ns / (shortest_ns / parts + 1) + 1;
	k = gci_labplan_max(k, late < most_for_late ? late : most_for_late);
	return (uint32_t)(k < k_max ? k : k_max);
}
