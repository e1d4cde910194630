/* SPDX-License-Identifier: MIT
 * A cluster of the lab: its switch, its hosts. */
#include "netem/plan_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

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
static int has_entry(const struct gci_planner *p, const struct gci_cluster *c)
{
	return !p->how.taps && (c->nic_bps || c->lan_delay_ns);
}

/* What a host sends takes its own time and the LAN's delay on its way into the switch. TBF lets the
 * first packet after a pause go at once, be it 64 KiB long; netem's rate makes every packet as late
 * as it is long. A parent netem would act before its child TBF, so packets take a turn through an
 * ifb. They come at the NIC's rate from the host's own TBF: no queue grows here, and of a train
 * only the last packet's length is seen, as where switches cut through. */
static void entry_qdiscs(const struct gci_planner *p, struct gci_buf *b,
	const struct gci_lab_host *h, const struct gci_cluster *c)
{
	if (!has_entry(p, c))
		return;
	gci_labplan_put_netem(b, h->entry, c->lan_delay_ns, c->nic_bps);
	gci_buf_printf(b,
		"\n"
		"qdisc add dev %s ingress\n"
		"filter add dev %s parent ffff: protocol all matchall action "
		"mirred egress redirect dev %s\n",
		h->port, h->port, h->entry);
}

/* What reaches a host leaves the switch at the NIC's rate. */
static void port_qdiscs(const struct gci_planner *p, struct gci_buf *b,
	const struct gci_lab_host *h, const struct gci_cluster *c)
{
	if (c->nic_bps)
		gci_labplan_put_tbf(p, b, h->port, "root", c->nic_bps, GCI_LABPLAN_PORT_NBYTES);
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

void gci_labplan_name_host(struct gci_planner *p, int cluster, int number, struct gci_lab_host *h)
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
	if (has_entry(p, c))
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
	host_qdiscs(p, h->netns, p->g->clusters[h->cluster].nic_bps);
}

void gci_labplan_cluster(struct gci_planner *p, int cluster, const struct gci_lab_host *hosts)
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
		port_qdiscs(p, &tc, &hosts[i], c);
	}
	gci_labplan_step(p, GCI_LAB_IP, p->switches[cluster], &ip);
	gci_labplan_step(p, GCI_LAB_TC, p->switches[cluster], &tc);
	for (i = 0; i < c->nhosts; i++)
		make_host(p, &hosts[i]);
}
