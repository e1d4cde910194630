/* SPDX-License-Identifier: MIT
 * The wires between the clusters of the lab. */
#include "netem/plan_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

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

struct gci_wire_model gci_lab_wire_model(const struct gci_grid *g, const struct gci_link *l)
{
	return (struct gci_wire_model){.rate_bps = l->rate_bps,
		.delay_ns = l->delay_ns,
		.sender_bps = g->clusters[l->from].nic_bps,
		.queue_nbytes = queue_nbytes(l),
		.flow_rate_bps = l->flow_rate_bps,
		.loss_ppm = l->loss_ppm};
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

void gci_labplan_wires(struct gci_planner *p)
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
