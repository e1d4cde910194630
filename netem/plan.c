/* SPDX-License-Identifier: MIT */
#include "netem/plan.h"

#include "base/buf.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static uint64_t gci_labplan_load_bps(const struct gci_grid *g);

/* ---- Commands, written down step by step. */

#define LEAST_BURST (2 * 1514)

/* Ends `lines` as a step. */
static void gci_labplan_step(
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

static void gci_labplan_sysctls(struct gci_planner *p, const char *netns, const char *lines)
{
	struct gci_buf b = {0};

	gci_buf_printf(&b, "%s", lines);
	gci_labplan_step(p, GCI_LAB_SYSCTL, netns, &b);
}

static void gci_labplan_own_netns(struct gci_planner *p, const char *name)
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

static void gci_labplan_addr(char *out, size_t size, int cluster, int number)
{
	snprintf(out, size, "10.%u.%u.%u", gci_labplan_byte(cluster + 1, 0),
		gci_labplan_byte(number + 1, 8), gci_labplan_byte(number + 1, 0));
}

static void gci_labplan_mac(char *out, size_t size, int cluster, int number)
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

/* A line for tc, which knows no nanoseconds; it is not ended. Where its rate is not 0, each packet is
 * late by its own length at that rate as well, and those that come faster queue without a limit. */
static void gci_labplan_put_netem(
	struct gci_buf *b, const char *dev, uint64_t delay_ns, uint64_t rate_bps)
{
	gci_buf_printf(
		b, "qdisc add dev %s root handle 2: netem delay %" PRIu64, dev, delay_ns / 1000);
	if (delay_ns % 1000)
		gci_buf_printf(b, ".%03u", (unsigned)(delay_ns % 1000));
	gci_buf_printf(b, "us limit 1000000");
	if (rate_bps)
		gci_buf_printf(b, " rate %" PRIu64 "bit", rate_bps);
}

/* A line for tc. */
static void gci_labplan_put_tbf(const struct gci_planner *p, struct gci_buf *b, const char *dev,
	const char *where, uint64_t rate_bps, uint64_t limit)
{
	gci_buf_printf(b,
		"qdisc add dev %s %s handle 1: tbf rate %" PRIu64 "bit burst %" PRIu64
		" limit %" PRIu64 "\n",
		dev, where, rate_bps, burst(p, rate_bps),
		gci_labplan_max(limit, burst(p, rate_bps)));
}

/* ---- A cluster of the lab: its switch, its hosts. */

#define FULL_SEGMENTS    44 /* 64 KiB */
#define LEAST_SEGMENTS   4
#define OWN_QUEUE_NBYTES (64u << 20) /* of a host: TCP keeps it short, and nothing else may */
#define MOST_RTO_MS      100000      /* Linux: 120 s */

/* What every namespace of hosts gets: the GridMPI paper's own settings (LAB.md). */
#define HOST_SYSCTLS                               \
	"net.ipv6.conf.default.disable_ipv6 1\n"   \
	"net.ipv4.tcp_slow_start_after_idle 0\n"   \
	"net.ipv4.tcp_no_metrics_save 1\n"         \
	"net.ipv4.tcp_rmem 4096 131072 33554432\n" \
	"net.ipv4.tcp_wmem 4096 16384 33554432\n"  \
	"net.ipv4.ip_local_port_range 10000 65000\n"

/* A host's own end: fq under the rate, which pacing and earliest departure times need. No netem:
 * as the sender's own qdisc it defeats TCP Small Queues. */
static void host_qdiscs(struct gci_planner *p, const char *netns, uint64_t nic_bps)
{
	struct gci_buf b = {0};

	if (nic_bps)
		gci_labplan_put_tbf(p, &b, "eth0", "root", nic_bps, OWN_QUEUE_NBYTES);
	if (p->how.has_fq)
		gci_buf_printf(&b, "qdisc add dev eth0 %s handle 10: fq\n",
			nic_bps ? "parent 1:1" : "root");
	gci_labplan_step(p, GCI_LAB_TC, netns, &b);
}

/* Whether packets have a way of their own into the switch. */
static int has_entry(
	const struct gci_planner *p, const struct gci_lab_host *h, const struct gci_cluster *c)
{
	return !p->how.taps && (h->nic_bps || c->lan_delay_ns);
}

/* What a host sends takes its own time and the LAN's delay on its way into the switch. TBF lets the
 * first packet after a pause go at once, be it 64 KiB long; netem's rate makes every packet as late
 * as it is long. A parent netem would act before its child TBF, so packets take a turn through an
 * ifb. They come at the NIC's rate from the host's own TBF: no queue grows here, and of a train
 * only the last packet's length is seen, as where switches cut through. */
static void entry_qdiscs(const struct gci_planner *p, struct gci_buf *b,
	const struct gci_lab_host *h, const struct gci_cluster *c)
{
	if (!has_entry(p, h, c))
		return;
	gci_labplan_put_netem(b, h->entry, c->lan_delay_ns, h->nic_bps);
	gci_buf_printf(b,
		"\n"
		"qdisc add dev %s ingress\n"
		"filter add dev %s parent ffff: protocol all matchall action "
		"mirred egress redirect dev %s\n",
		h->port, h->port, h->entry);
}

/* What reaches a host leaves the switch at the NIC's rate. */
static void port_qdiscs(
	const struct gci_planner *p, struct gci_buf *b, const struct gci_lab_host *h)
{
	if (h->nic_bps)
		gci_labplan_put_tbf(p, b, h->port, "root", h->nic_bps, GCI_LABPLAN_PORT_NBYTES);
}

/* The rate of the fastest connection that a host of this cluster can have; 0: not known. */
static uint64_t fastest_bps(const struct gci_grid *g, int cluster)
{
	uint64_t nic_bps = g->clusters[cluster].nic_bps, link_bps = 0;
	int i;

	if (g->clusters[cluster].nhosts > 1)
		return nic_bps;
	for (i = 0; i < g->nlinks; i++)
		if (g->links[i].from == cluster && !g->links[i].rate_bps)
			return nic_bps;
		else if (g->links[i].from == cluster)
			link_bps = gci_labplan_max(link_bps, g->links[i].rate_bps);
	return link_bps && link_bps < nic_bps ? link_bps : nic_bps;
}

/* How many segments a GSO packet can do with. On a wire they come one by one, here the whole packet
 * comes with its last one, so small packets are truer. But they cost the CPU: with all NICs at
 * 0.4 Gbit/s together, those of 64 KiB a fifth of what their bytes do. Time that is left beyond
 * that goes to smaller ones. */
static uint64_t spare_segments(const struct gci_grid *g)
{
	const uint64_t busy_bps = 400000000;
	uint64_t load_bps = gci_labplan_load_bps(g), n;

	if (load_bps >= busy_bps)
		return FULL_SEGMENTS;
	n = FULL_SEGMENTS * load_bps / (5 * busy_bps - 4 * load_bps);
	return n < LEAST_SEGMENTS ? LEAST_SEGMENTS : n;
}

/* TCP makes its GSO packets as large as a millisecond of the flow's rate, and time does not dilate
 * for it: at a rate divided by k, packets would be k times as many for the same bytes, and the CPU
 * k times less faithful. This asks for the packets of the undilated rate, or for smaller ones where
 * the CPU has time. The same undilated, where hosts and links share the processors: of several paced
 * connections each would send packets of its own rate. 0: as the kernel has it. */
static uint64_t tso_segments(const struct gci_planner *p, int cluster)
{
	uint64_t n = fastest_bps(p->g, cluster) * p->dilation / 8 / 1000 / 1448;
	uint64_t spare = spare_segments(p->g);

	n = n < spare ? n : spare;
	return (p->dilation == 1 && !p->how.taps) || n <= 2 ? 0 : n;
}

static void scale_tso(struct gci_planner *p, const char *netns, int cluster)
{
	uint64_t segments = tso_segments(p, cluster);
	struct gci_buf b = {0};

	if (!segments)
		return;
	gci_buf_printf(&b, "net.ipv4.tcp_min_tso_segs %" PRIu64 "\n", segments);
	gci_labplan_step(p, GCI_LAB_SYSCTL, netns, &b);
}

/* Host `number` of a cluster into *h, its namespace and what holds in it. */
static void gci_labplan_name_host(
	struct gci_planner *p, int cluster, int number, struct gci_lab_host *h)
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
	h->nic_bps = gci_grid_nic_bps(p->g, (int)(h - p->plan->hosts));
	gci_labplan_addr(h->addr, sizeof(h->addr), cluster, number);
	gci_labplan_addr(h->gateway, sizeof(h->gateway), cluster, GCI_LABPLAN_GATEWAY);
	gci_labplan_mac(h->mac, sizeof(h->mac), cluster, number);
	snprintf(h->port, sizeof(h->port), "p%d", number);
	snprintf(h->entry, sizeof(h->entry), "in%d", number);
	gci_labplan_own_netns(p, h->netns);
	gci_labplan_sysctls(p, h->netns, HOST_SYSCTLS);
	scale_tso(p, h->netns, cluster);
}

static void put_port(const struct gci_planner *p, struct gci_buf *b, const struct gci_lab_host *h,
	const struct gci_cluster *c)
{
	gci_buf_printf(b,
		"link add %s mtu 1500 type veth peer name eth0 address %s mtu 1500 netns %s\n"
		"link set %s master br0 up\n"
		"neigh add %s lladdr %s dev br0 nud permanent\n",
		h->port, h->mac, h->netns, h->port, h->addr, h->mac);
	if (has_entry(p, h, c))
		gci_buf_printf(b, "link add %s type ifb\nlink set %s up\n", h->entry, h->entry);
}

/* The end of a route's line. Of connections' congestion control only init's namespace may choose the
 * default, but a route any. And TCP's least time-out (200 ms) as many times longer as all else, or
 * else acknowledgements behind a slow port's queue, or a host that has to wait for the processor,
 * would look like losses. */
static void put_tcp(const struct gci_planner *p, struct gci_buf *b)
{
	if (p->how.has_cubic)
		gci_buf_printf(b, " congctl cubic");
	if (p->dilation > 1)
		gci_buf_printf(b, " rto_min %" PRIu32 "ms",
			p->dilation < MOST_RTO_MS / 200 ? p->dilation * 200 : MOST_RTO_MS);
	gci_buf_printf(b, "\n");
}

static void put_routes(const struct gci_planner *p, struct gci_buf *b, const struct gci_lab_host *h)
{
	if (p->dilation > 1 || p->how.has_cubic) {
		gci_buf_printf(b,
			"route change 10.%d.0.0/16 dev eth0 proto kernel scope link src %s",
			h->cluster + 1, h->addr);
		put_tcp(p, b);
	}
	gci_buf_printf(b, "route add default via %s", h->gateway);
	put_tcp(p, b);
}

static void make_host(struct gci_planner *p, const struct gci_lab_host *h)
{
	uint64_t segments = tso_segments(p, h->cluster);
	struct gci_buf b = {0};
	char gateway_mac[20];

	if (segments && segments < FULL_SEGMENTS)
		gci_buf_printf(&b, "link set eth0 gso_max_segs %" PRIu64 "\n", segments);
	gci_labplan_mac(gateway_mac, sizeof(gateway_mac), h->cluster, GCI_LABPLAN_GATEWAY);
	gci_buf_printf(&b,
		"link set lo up\n"
		"address add %s/16 dev eth0\n"
		"link set eth0 up\n"
		"neigh add %s lladdr %s dev eth0 nud permanent\n",
		h->addr, h->gateway, gateway_mac);
	put_routes(p, &b, h);
	gci_labplan_step(p, GCI_LAB_IP, h->netns, &b);
	host_qdiscs(p, h->netns, h->nic_bps);
}

/* All hosts of a cluster, with their switch. */
static void gci_labplan_cluster(
	struct gci_planner *p, int cluster, const struct gci_lab_host *hosts)
{
	const struct gci_cluster *c = &p->g->clusters[cluster];
	struct gci_buf ip = {0}, tc = {0};
	char addr[16], mac[20];
	int i;

	gci_labplan_addr(addr, sizeof(addr), cluster, GCI_LABPLAN_GATEWAY);
	gci_labplan_mac(mac, sizeof(mac), cluster, GCI_LABPLAN_GATEWAY);
	gci_buf_printf(&ip,
		"link set lo up\n"
		"link add br0 address %s type bridge forward_delay 0 mcast_snooping 0\n"
		"address add %s/16 dev br0\n"
		"link set br0 up\n",
		mac, addr);
	for (i = 0; i < c->nhosts; i++) {
		put_port(p, &ip, &hosts[i], c);
		entry_qdiscs(p, &tc, &hosts[i], c);
		port_qdiscs(p, &tc, &hosts[i]);
	}
	gci_labplan_step(p, GCI_LAB_IP, p->switches[cluster], &ip);
	gci_labplan_step(p, GCI_LAB_TC, p->switches[cluster], &tc);
	for (i = 0; i < c->nhosts; i++)
		make_host(p, &hosts[i]);
}

/* ---- The wires between the clusters of the lab. */

#define MTU_WIRE 1514

/* The device by which `from`'s switch goes to `to`. */
static void entry_mac(char *out, size_t size, int from, int to)
{
	snprintf(out, size, "02:01:00:00:%02x:%02x", gci_labplan_byte(from + 1, 0),
		gci_labplan_byte(to + 1, 0));
}

/* The end of the way from `there` to `here`; what the device sends goes to `here`. */
static void put_wan_port(struct gci_planner *p, struct gci_buf *b, int here, int there)
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
static void make_entry(struct gci_planner *p, int here, int there)
{
	struct gci_buf b = {0};
	char router[16], mac[20];

	gci_labplan_addr(router, sizeof(router), there, GCI_LABPLAN_GATEWAY);
	entry_mac(mac, sizeof(mac), there, here);
	if (p->how.taps) {
		char own[20];

		entry_mac(own, sizeof(own), here, there);
		gci_buf_printf(&b,
			"tuntap add dev w%d mode tap vnet_hdr\n"
			"link set w%d address %s mtu 1500\n",
			there, there, own);
	} else if (gci_grid_link(p->g, here, there)
			   ->loss_ppm) /* it hits packets, not GSO packets */
		gci_buf_printf(&b, "link set w%d gso_max_segs 1\n", there);
	gci_buf_printf(&b,
		"link set w%d up\n"
		"neigh add %s lladdr %s dev w%d nud permanent\n"
		"route add 10.%d.0.0/16 via %s dev w%d onlink\n",
		there, router, mac, there, there + 1, router, there);
	gci_labplan_step(p, GCI_LAB_IP, p->switches[here], &b);
}

/* Both cables between two switches, joined in gcl-wan by a bridge of two ports that learns nothing:
 * a wire. */
static void make_cables(struct gci_planner *p, int a, int b)
{
	struct gci_buf wan = {0};

	if (p->how.taps) {
		make_entry(p, a, b);
		make_entry(p, b, a);
		return;
	}
	gci_buf_printf(&wan,
		"link add br-%d-%d type bridge forward_delay 0 mcast_snooping 0\n"
		"link set br-%d-%d up\n",
		a, b, a, b);
	put_wan_port(p, &wan, a, b);
	put_wan_port(p, &wan, b, a);
	gci_labplan_step(p, GCI_LAB_IP, GCI_LABPLAN_WAN, &wan);
	make_entry(p, a, b);
	make_entry(p, b, a);
}

/* Where it is not known: one round trip of the rate. */
static uint64_t queue_nbytes(const struct gci_link *l)
{
	uint64_t trip = (uint64_t)((unsigned __int128)l->rate_bps * l->delay_ns / 4 / 1000000000u);

	return l->queue_nbytes ? l->queue_nbytes : gci_labplan_max(trip, GCI_LABPLAN_PORT_NBYTES);
}

/* The bottleneck, counted in bytes. */
static void entry_qdisc(struct gci_planner *p, const struct gci_link *l, const char *dev)
{
	struct gci_buf b = {0};

	if (!l->rate_bps)
		return;
	gci_labplan_put_tbf(p, &b, dev, "root", l->rate_bps, queue_nbytes(l));
	gci_labplan_step(p, GCI_LAB_TC, p->switches[l->from], &b);
}

/* The rate at which a packet's length is time on this link that the sender's NIC has not taken:
 * none (0) where the link is the faster one, since a switch that cuts through adds nothing. */
static uint64_t extra_time_bps(const struct gci_link *l, uint64_t nic_bps)
{
	if (!l->rate_bps || !nic_bps)
		return l->rate_bps;
	if (l->rate_bps >= nic_bps)
		return 0;
	return (uint64_t)((unsigned __int128)l->rate_bps * nic_bps / (nic_bps - l->rate_bps));
}

struct gci_wire_model gci_lab_wire_model(const struct gci_grid *g, const struct gci_link *w)
{
	int from_hosts = w->from >= 0 && w->from < GCI_GRID_MAX_CLUSTERS;

	return (struct gci_wire_model){.rate_bps = w->rate_bps,
		.delay_ns = w->delay_ns,
		.sender_bps = from_hosts ? g->clusters[w->from].nic_bps : 0,
		.queue_nbytes = queue_nbytes(w),
		.flow_rate_bps = w->flow_rate_bps,
		.loss_ppm = w->loss_ppm};
}

/* The way: delay and loss, and what one connection may take of it. The grid's delay is from host to
 * host, of which the sender's way into its switch has the LAN's part. The limit never drops: GSO
 * packets count as one there. */
static void wire_qdiscs(struct gci_planner *p, const struct gci_link *l, const char *dev)
{
	struct gci_buf b = {0};
	const struct gci_cluster *from = &p->g->clusters[l->from];
	uint64_t lan_ns = from->lan_delay_ns, rate_bps = extra_time_bps(l, from->nic_bps);
	uint64_t delay_ns = l->delay_ns > lan_ns ? l->delay_ns - lan_ns : 0;

	if (delay_ns || l->loss_ppm || rate_bps) {
		gci_labplan_put_netem(&b, dev, delay_ns, rate_bps);
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
			dev, delay_ns || l->loss_ppm || rate_bps ? "parent 2:1" : "root",
			l->flow_rate_bps, packets);
	}
	gci_labplan_step(p, GCI_LAB_TC, GCI_LABPLAN_WAN, &b);
}

/* Cables between all clusters, with what the grid's links are like. */
static void gci_labplan_wires(struct gci_planner *p)
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
		w->netns = gci_strdup(p->how.taps ? p->switches[l->to] : GCI_LABPLAN_WAN);
		w->entry_netns = gci_strdup(p->switches[l->from]);
		w->counter = p->how.taps ? "rx" : "tx";
		p->nomem |= !w->netns || !w->entry_netns;
		snprintf(w->entry, sizeof(w->entry), "w%d", l->to);
		if (p->how.taps) {
			snprintf(w->dev, sizeof(w->dev), "w%d", l->from);
			continue;
		}
		snprintf(w->dev, sizeof(w->dev), "wan-%d-%d", l->from, l->to);
		entry_qdisc(p, l, w->entry);
		wire_qdiscs(p, l, w->dev);
	}
}

/* ---- The whole plan. */

#define SWITCH_SYSCTLS                            \
	"net.ipv6.conf.default.disable_ipv6 1\n"  \
	"net.bridge.bridge-nf-call-arptables 0\n" \
	"net.bridge.bridge-nf-call-ip6tables 0\n" \
	"net.bridge.bridge-nf-call-iptables 0\n"  \
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

	if (!how.taps && !gci_grid_is_simple(g))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"paths share links or uplinks, expected a link of its own for each two "
			"clusters (or --backend tap)");
	if (g->nclusters > GCI_LAB_MAX_CLUSTERS)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%d clusters, expected at most %d in the lab", g->nclusters,
			GCI_LAB_MAX_CLUSTERS);
	for (c = 0; c < g->nwires; c++) {
		const struct gci_link *l = &g->wires[c];
		const char *why =
			l->delay_ns > GCI_LAB_MAX_DELAY_NS ? "delay longer than the lab's 200 s"
			: is_too_slow(l->rate_bps) || is_too_slow(l->flow_rate_bps) ? TOO_SLOW
										    : NULL;

		if (why)
			return gci_error_set(e, GCOLL_ERR_INVAL, "link %s > %s: %s",
				gci_grid_end(g, l->from), gci_grid_end(g, l->to), why);
	}
	for (c = 0; c < g->nhosts; c++)
		if (is_too_slow(gci_grid_nic_bps(g, c)))
			return gci_error_set(
				e, GCOLL_ERR_INVAL, "host %s: " TOO_SLOW, gci_grid_host(g, c));
	for (c = 0; c < g->nclusters; c++) {
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

/* What all hosts of the cluster can send together; 0: their NICs are not known. */
static uint64_t nics_bps(const struct gci_cluster *c)
{
	uint64_t sum = 0;
	int h;

	for (h = 0; h < c->nhosts; h++)
		sum += c->own && c->own[h].nic_bps ? c->own[h].nic_bps : c->nic_bps;
	return sum;
}

/* What a cluster can send to others. */
static uint64_t outwards_bps(const struct gci_grid *g, int cluster)
{
	uint64_t nics = nics_bps(&g->clusters[cluster]), uplink = g->clusters[cluster].uplink_bps;
	uint64_t wires = 0;
	int i;

	for (i = 0; i < g->nwires; i++)
		if (g->wires[i].from == cluster && g->wires[i].to != GCI_GRID_UPLINK)
			wires += g->wires[i].rate_bps;
	wires = uplink && uplink < wires ? uplink : wires;
	return nics && nics < wires ? nics : wires;
}

/* What all hosts can send together, or the WAN when their NICs are not known. */
static uint64_t gci_labplan_load_bps(const struct gci_grid *g)
{
	uint64_t nics = 0, links = 0;
	int i;

	for (i = 0; i < g->nclusters; i++)
		nics += nics_bps(&g->clusters[i]);
	for (i = 0; i < g->nwires; i++)
		links += g->wires[i].rate_bps;
	return nics ? nics : links;
}

uint32_t gci_lab_choose_dilation(const struct gci_grid *g, uint64_t bps, uint64_t late_ns)
{
	const uint64_t max_rtt_ns = 900000000, parts = 10, most_for_late = 20;
	uint64_t load = gci_labplan_load_bps(g), rtt_ns = 0, shortest_ns = UINT64_MAX, k, k_max,
		 late;
	int l;

	/* What goes between clusters is encrypted, and passes the lab's own links. */
	for (l = 0; l < g->nclusters; l++)
		load += g->clusters[l].nic_bps ? outwards_bps(g, l) : 0;
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
