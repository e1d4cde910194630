/* SPDX-License-Identifier: MIT */
#include "netem/plan.h"

#include "base/buf.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAN         "gcl-wan"
#define PORT_NBYTES (512u << 10) /* a switch port's buffer */
#define MTU_WIRE    1514
#define GATEWAY     0xfffd /* number of the cluster's router: 10.C.255.254 */

/* What every namespace of hosts gets: the GridMPI paper's own settings (LAB.md). */
#define HOST_SYSCTLS                               \
	"net.ipv6.conf.default.disable_ipv6 1\n"   \
	"net.ipv4.tcp_slow_start_after_idle 0\n"   \
	"net.ipv4.tcp_no_metrics_save 1\n"         \
	"net.ipv4.tcp_rmem 4096 131072 33554432\n" \
	"net.ipv4.tcp_wmem 4096 16384 33554432\n"  \
	"net.ipv4.ip_local_port_range 10000 65000\n"

#define SWITCH_SYSCTLS                           \
	"net.ipv6.conf.default.disable_ipv6 1\n" \
	"net.ipv4.ip_forward 1\n"

struct planner {
	struct gci_lab_plan *plan;
	const struct gci_grid *g;
	uint32_t dilation;
	char **switches; /* namespace of each cluster's switch */
	int nomem;
};

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Ends `lines` as a step. */
static void add_step(
	struct planner *p, enum gci_lab_tool tool, const char *netns, struct gci_buf *lines)
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

static void sysctls(struct planner *p, const char *netns, const char *lines)
{
	struct gci_buf b = {0};

	gci_buf_printf(&b, "%s", lines);
	add_step(p, GCI_LAB_SYSCTL, netns, &b);
}

static void own_netns(struct planner *p, const char *name)
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

static unsigned byte_of(int v, int shift)
{
	return (unsigned)v >> shift & 255;
}

static void host_addr(char *out, size_t size, int cluster, int number)
{
	snprintf(out, size, "10.%u.%u.%u", byte_of(cluster + 1, 0), byte_of(number + 1, 8),
		byte_of(number + 1, 0));
}

static void host_mac(char *out, size_t size, int cluster, int number)
{
	snprintf(out, size, "02:00:0a:%02x:%02x:%02x", byte_of(cluster + 1, 0),
		byte_of(number + 1, 8), byte_of(number + 1, 0));
}

/* The device by which `from`'s switch goes to `to`. */
static void entry_mac(char *out, size_t size, int from, int to)
{
	snprintf(out, size, "02:01:00:00:%02x:%02x", byte_of(from + 1, 0), byte_of(to + 1, 0));
}

/* What may go at once after a pause: a millisecond of the undilated rate, but no more than one full
 * GSO packet with its 44 headers, lest short messages outrun the link (larger packets would be cut
 * up); and a quarter of a millisecond of the rate as it is, by which timers come late: without it
 * an undilated Gigabit passes 850 Mbit/s. */
static uint64_t burst(const struct planner *p, uint64_t rate_bps)
{
	uint64_t b = rate_bps * p->dilation / 8 / 1000, late = rate_bps / 8 / 4000;

	return (b < 16384 ? 16384 : b > 70000 ? 70000 : b) + late;
}

/* tc knows no nanoseconds. */
static void put_netem(struct gci_buf *b, const char *dev, uint64_t delay_ns)
{
	gci_buf_printf(
		b, "qdisc add dev %s root handle 2: netem delay %" PRIu64, dev, delay_ns / 1000);
	if (delay_ns % 1000)
		gci_buf_printf(b, ".%03u", (unsigned)(delay_ns % 1000));
	gci_buf_printf(b, "us limit 1000000");
}

static void put_tbf(const struct planner *p, struct gci_buf *b, const char *dev, const char *where,
	uint64_t rate_bps, uint64_t limit)
{
	gci_buf_printf(b,
		"qdisc add dev %s %s handle 1: tbf rate %" PRIu64 "bit burst %" PRIu64
		" limit %" PRIu64 "\n",
		dev, where, rate_bps, burst(p, rate_bps), max_u64(limit, burst(p, rate_bps)));
}

/* A host's own end: fq under the rate, which pacing and earliest departure times need. No netem:
 * as the sender's own qdisc it defeats TCP Small Queues. */
static void host_qdiscs(struct planner *p, const char *netns, uint64_t nic_bps)
{
	struct gci_buf b = {0};

	if (nic_bps)
		put_tbf(p, &b, "eth0", "root", nic_bps, PORT_NBYTES);
	gci_buf_printf(
		&b, "qdisc add dev eth0 %s handle 10: fq\n", nic_bps ? "parent 1:1" : "root");
	add_step(p, GCI_LAB_TC, netns, &b);
}

/* The switch's end: what reaches this host, after the LAN's delay and at the NIC's rate. */
static void port_qdiscs(
	const struct planner *p, struct gci_buf *b, const char *port, const struct gci_cluster *c)
{
	if (c->lan_delay_ns) {
		put_netem(b, port, c->lan_delay_ns);
		gci_buf_printf(b, "\n");
	}
	if (c->nic_bps)
		put_tbf(p, b, port, c->lan_delay_ns ? "parent 2:1" : "root", c->nic_bps,
			PORT_NBYTES);
}

/* TCP makes its GSO packets as large as a millisecond of the flow's rate, and time does not dilate
 * for it: at a rate divided by k, packets would be k times as many for the same bytes, and the CPU
 * k times less faithful. This asks for the packets of the undilated rate. */
static void scale_tso(struct planner *p, const char *netns, uint64_t nic_bps)
{
	uint64_t segments = nic_bps * p->dilation / 8 / 1000 / 1448;
	struct gci_buf b = {0};

	if (segments > 44) /* 64 KiB */
		segments = 44;
	if (p->dilation == 1 || segments <= 2)
		return;
	gci_buf_printf(&b, "net.ipv4.tcp_min_tso_segs %" PRIu64 "\n", segments);
	add_step(p, GCI_LAB_SYSCTL, netns, &b);
}

static void name_host(struct planner *p, int cluster, int number, struct gci_lab_host *h)
{
	const char *name = p->g->clusters[cluster].hosts[number];

	h->name = gci_strdup(name);
	h->netns = gci_asprintf("gcl-%s", name);
	h->port_netns = gci_strdup(p->switches[cluster]);
	if (!h->name || !h->netns || !h->port_netns) {
		p->nomem = 1;
		return;
	}
	h->cluster = cluster;
	host_addr(h->addr, sizeof(h->addr), cluster, number);
	host_addr(h->gateway, sizeof(h->gateway), cluster, GATEWAY);
	host_mac(h->mac, sizeof(h->mac), cluster, number);
	snprintf(h->port, sizeof(h->port), "p%d", number);
	own_netns(p, h->netns);
	sysctls(p, h->netns, HOST_SYSCTLS);
	scale_tso(p, h->netns, p->g->clusters[cluster].nic_bps);
}

static void put_port(struct gci_buf *b, const struct gci_lab_host *h)
{
	gci_buf_printf(b,
		"link add %s mtu 1500 type veth peer name eth0 address %s mtu 1500 netns %s\n"
		"link set %s master br0 up\n"
		"neigh add %s lladdr %s dev br0 nud permanent\n",
		h->port, h->mac, h->netns, h->port, h->addr, h->mac);
}

static void make_host(struct planner *p, const struct gci_lab_host *h)
{
	struct gci_buf b = {0};
	char gateway_mac[20];

	host_mac(gateway_mac, sizeof(gateway_mac), h->cluster, GATEWAY);
	gci_buf_printf(&b,
		"link set lo up\n"
		"address add %s/16 dev eth0\n"
		"link set eth0 up\n"
		"neigh add %s lladdr %s dev eth0 nud permanent\n"
		"route add default via %s\n",
		h->addr, h->gateway, gateway_mac, h->gateway);
	add_step(p, GCI_LAB_IP, h->netns, &b);
	host_qdiscs(p, h->netns, p->g->clusters[h->cluster].nic_bps);
}

static void make_cluster(struct planner *p, int cluster, const struct gci_lab_host *hosts)
{
	const struct gci_cluster *c = &p->g->clusters[cluster];
	struct gci_buf ip = {0}, tc = {0};
	char addr[16], mac[20];
	int i;

	host_addr(addr, sizeof(addr), cluster, GATEWAY);
	host_mac(mac, sizeof(mac), cluster, GATEWAY);
	gci_buf_printf(&ip,
		"link set lo up\n"
		"link add br0 address %s type bridge forward_delay 0 mcast_snooping 0\n"
		"address add %s/16 dev br0\n"
		"link set br0 up\n",
		mac, addr);
	for (i = 0; i < c->nhosts; i++) {
		put_port(&ip, &hosts[i]);
		port_qdiscs(p, &tc, hosts[i].port, c);
	}
	add_step(p, GCI_LAB_IP, p->switches[cluster], &ip);
	add_step(p, GCI_LAB_TC, p->switches[cluster], &tc);
	for (i = 0; i < c->nhosts; i++)
		make_host(p, &hosts[i]);
}

/* The end of the way from `there` to `here`; what the device sends goes to `here`. */
static void put_wan_port(struct planner *p, struct gci_buf *b, int here, int there)
{
	char mac[20];

	entry_mac(mac, sizeof(mac), here, there);
	gci_buf_printf(b,
		"link add wan-%d-%d mtu 1500 type veth peer name w%d address %s mtu 1500 netns %s\n"
		"link set wan-%d-%d master br-%d-%d up\n"
		"link set wan-%d-%d type bridge_slave learning off\n",
		there, here, there, mac, p->switches[here], there, here,
		here < there ? here : there, here < there ? there : here, there, here);
}

/* Neighbours are fixed, so that nothing but the hosts' packets crosses. */
static void make_entry(struct planner *p, int here, int there)
{
	struct gci_buf b = {0};
	char router[16], mac[20];

	host_addr(router, sizeof(router), there, GATEWAY);
	entry_mac(mac, sizeof(mac), there, here);
	if (gci_grid_link(p->g, here, there)->loss_ppm) /* it hits packets, not GSO packets */
		gci_buf_printf(&b, "link set w%d gso_max_segs 1\n", there);
	gci_buf_printf(&b,
		"link set w%d up\n"
		"neigh add %s lladdr %s dev w%d nud permanent\n"
		"route add 10.%d.0.0/16 via %s dev w%d onlink\n",
		there, router, mac, there, there + 1, router, there);
	add_step(p, GCI_LAB_IP, p->switches[here], &b);
}

/* Both cables between two switches, joined in gcl-wan by a bridge of two ports that learns nothing:
 * a wire. */
static void make_cables(struct planner *p, int a, int b)
{
	struct gci_buf wan = {0};

	gci_buf_printf(&wan,
		"link add br-%d-%d type bridge forward_delay 0 mcast_snooping 0\n"
		"link set br-%d-%d up\n",
		a, b, a, b);
	put_wan_port(p, &wan, a, b);
	put_wan_port(p, &wan, b, a);
	add_step(p, GCI_LAB_IP, WAN, &wan);
	make_entry(p, a, b);
	make_entry(p, b, a);
}

/* The bottleneck, counted in bytes. */
static void entry_qdisc(struct planner *p, const struct gci_link *l, const char *dev)
{
	struct gci_buf b = {0};
	uint64_t queue = l->queue_nbytes;

	if (!l->rate_bps)
		return;
	if (!queue) /* unknown: one round trip of the rate */
		queue = max_u64(
			(uint64_t)((unsigned __int128)l->rate_bps * l->delay_ns / 4 / 1000000000u),
			PORT_NBYTES);
	put_tbf(p, &b, dev, "root", l->rate_bps, queue);
	add_step(p, GCI_LAB_TC, p->switches[l->from], &b);
}

/* The way: delay and loss, and what one connection may take of it. The grid's delay is from host to
 * host, of which the receiver's port adds the LAN's part. Its limit never drops: GSO packets count
 * as one there. */
static void wire_qdiscs(struct planner *p, const struct gci_link *l, const char *dev)
{
	struct gci_buf b = {0};
	uint64_t lan_ns = p->g->clusters[l->to].lan_delay_ns;
	uint64_t delay_ns = l->delay_ns > lan_ns ? l->delay_ns - lan_ns : 0;

	if (delay_ns || l->loss_ppm) {
		put_netem(&b, dev, delay_ns);
		if (l->loss_ppm)
			gci_buf_printf(
				&b, " loss %u.%04u%%", l->loss_ppm / 10000, l->loss_ppm % 10000);
		gci_buf_printf(&b, "\n");
	}
	if (l->flow_rate_bps) {
		/* A round trip of the flow's rate may wait here, then it drops. */
		uint64_t packets = (uint64_t)((unsigned __int128)l->flow_rate_bps * l->delay_ns /
					      4 / 1000000000u / MTU_WIRE);

		packets = packets < 32 ? 32 : packets > 100000 ? 100000 : packets;
		gci_buf_printf(&b,
			"qdisc add dev %s %s handle 10: fq maxrate %" PRIu64
			"bit flow_limit %" PRIu64 " limit 1000000 orphan_mask 65535\n",
			dev, delay_ns || l->loss_ppm ? "parent 2:1" : "root", l->flow_rate_bps,
			packets);
	}
	add_step(p, GCI_LAB_TC, WAN, &b);
}

static void make_wires(struct planner *p)
{
	const struct gci_grid *g = p->g;
	int a, b, i;

	for (a = 0; a < g->nclusters; a++)
		for (b = a + 1; b < g->nclusters; b++)
			make_cables(p, a, b);
	for (i = 0; i < g->nlinks; i++) {
		const struct gci_link *l = &g->links[i];
		struct gci_lab_wire *w = &p->plan->wires[i];

		w->from = l->from;
		w->to = l->to;
		snprintf(w->dev, sizeof(w->dev), "wan-%d-%d", l->from, l->to);
		snprintf(w->entry, sizeof(w->entry), "w%d", l->to);
		entry_qdisc(p, l, w->entry);
		wire_qdiscs(p, l, w->dev);
	}
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_names(struct planner *p, struct gci_error *e)
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
				"the host name \"%s\" is one the lab uses for itself, expected "
				"another",
				sorted[i] + 4);
		else if (strlen(sorted[i]) > 255)
			rc = gci_error_set(e, GCOLL_ERR_INVAL,
				"host name \"%s\": longer than 251 characters", sorted[i] + 4);
	}
	gci_free(sorted);
	return rc;
}

static int check_size(const struct gci_grid *g, struct gci_error *e)
{
	int c;

	if (g->nclusters > GCI_LAB_MAX_CLUSTERS)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%d clusters, expected at most %d in the lab", g->nclusters,
			GCI_LAB_MAX_CLUSTERS);
	for (c = 0; c < g->nlinks; c++)
		if (g->links[c].delay_ns > GCI_LAB_MAX_DELAY_NS)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"link %s > %s: delay longer than the lab's 200 s",
				g->clusters[g->links[c].from].name,
				g->clusters[g->links[c].to].name);
	for (c = 0; c < g->nclusters; c++) {
		if (g->clusters[c].lan_delay_ns > GCI_LAB_MAX_DELAY_NS)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"cluster %s: lan_delay longer than the lab's 200 s",
				g->clusters[c].name);
		if (g->clusters[c].nhosts > GCI_LAB_MAX_PORTS)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"cluster %s has %d hosts, expected at most %d in the lab",
				g->clusters[c].name, g->clusters[c].nhosts, GCI_LAB_MAX_PORTS);
	}
	return 0;
}

static void make_all(struct planner *p)
{
	const struct gci_grid *g = p->g;
	struct gci_buf names = {0};
	size_t i;
	int c, h, first = 0;

	/* The first step makes the namespaces, which are known only at the end. */
	gci_buf_printf(&names, "\n");
	add_step(p, GCI_LAB_IP, NULL, &names);
	for (c = 0; c < g->nclusters; c++) {
		p->switches[c] = gci_asprintf("gcl-sw-%s", g->clusters[c].name);
		if (!p->switches[c]) {
			p->nomem = 1;
			return;
		}
		own_netns(p, p->switches[c]);
		sysctls(p, p->switches[c], SWITCH_SYSCTLS);
		for (h = 0; h < g->clusters[c].nhosts; h++)
			name_host(p, c, h, &p->plan->hosts[first++]);
	}
	if (g->nclusters > 1) {
		own_netns(p, WAN);
		sysctls(p, WAN, "net.ipv6.conf.default.disable_ipv6 1\n");
	}
	for (c = first = 0; c < g->nclusters && !p->nomem; first += g->clusters[c++].nhosts)
		make_cluster(p, c, &p->plan->hosts[first]);
	if (p->nomem)
		return;
	make_wires(p);
	for (i = 0; i < p->plan->nnetns; i++)
		gci_buf_printf(&names, "netns add %s\n", p->plan->netns[i]);
	gci_free(p->plan->steps[0].lines);
	p->plan->steps[0].lines = gci_strdup(gci_buf_cstr(&names));
	if (names.failed || !p->plan->steps[0].lines)
		p->nomem = 1;
	gci_buf_free(&names);
}

int gci_lab_plan_make(
	struct gci_lab_plan *plan, const struct gci_grid *g, uint32_t dilation, struct gci_error *e)
{
	struct planner p = {.plan = plan, .g = g, .dilation = dilation};
	int c, rc;

	memset(plan, 0, sizeof(*plan));
	rc = check_size(g, e);
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

/* What all hosts can send together, or the WAN when their NICs are not known. */
static uint64_t load_bps(const struct gci_grid *g)
{
	uint64_t nics = 0, links = 0;
	int i;

	for (i = 0; i < g->nclusters; i++)
		nics += g->clusters[i].nic_bps * (uint64_t)g->clusters[i].nhosts;
	for (i = 0; i < g->nlinks; i++)
		links += g->links[i].rate_bps;
	return nics ? nics : links;
}

uint32_t gci_lab_choose_dilation(const struct gci_grid *g)
{
	static const uint32_t steps[] = {
		1, 2, 3, 5, 10, 20, 25, 30, 40, 50, 75, 100, 200, 500, 1000};
	const uint64_t cpu_bps = 1400000000, max_rtt_ns = 900000000;
	uint64_t load = load_bps(g), rtt_ns = 0, k_max;
	size_t i = 0;
	int l;

	for (l = 0; l < g->nlinks; l++)
		rtt_ns = max_u64(rtt_ns, 2 * g->links[l].delay_ns);
	k_max = rtt_ns ? max_u64(max_rtt_ns / rtt_ns, 1) : 1000;
	while (i + 1 < sizeof(steps) / sizeof(*steps) && load / steps[i] > cpu_bps)
		i++;
	return steps[i] < k_max ? steps[i] : (uint32_t)k_max;
}
