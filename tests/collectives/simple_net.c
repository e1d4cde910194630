/* SPDX-License-Identifier: MIT */
#include "tests/collectives/simple_net.h"

#include "tests/collectives/topologies.h"
#include "tests/test.h"

void net_open(struct gci_simnet *net, struct gci_topo *t, const int *sizes, int wan_gbit)
{
	topology_make(t, sizes, 0, wan_gbit);
	assert_int_equal(gci_simnet_init(net, t, NULL), 0);
}

void net_close(struct gci_simnet *net, struct gci_topo *t)
{
	gci_simnet_free(net);
	gci_topo_free(t);
}

void simple_open(struct gci_simnet *net, struct gci_topo *t, const int *sizes, int wan_gbit)
{
	int i, r;

	net_open(net, t, sizes, wan_gbit);
	for (i = 0; i < t->nclusters; i++)
		net->nic_bps[i] = 1000000000;
	for (i = 0; i < t->nclusters * t->nclusters; i++) {
		net->links[i].latency_ns = i % (t->nclusters + 1) ? SIMPLE_WAN_NS : 0;
		net->links[i].bps = net->links[i].pair_bps = 0;
		net->links[i].queue_nbytes = 0;
	}
	for (r = 0; r < t->nranks; r++)
		net->send_ns[r] = 0;
	net->recv_ns = 0;
	net->local_bps = 0;
	net->ack_ppm = 0;
}

struct gci_coll bytes(const struct gci_topo *t, enum gci_kind kind, uint64_t count)
{
	return (struct gci_coll){.kind = kind, .topo = t, .count = count, .esize = 1};
}

uint64_t simulate(const struct gci_simnet *net, const struct gci_coll *c, const char *name)
{
	struct gci_sim_op op = {.algorithm = gci_algorithm_find(c->kind, name), .coll = c};
	struct gci_sim_result r;
	uint64_t ns;

	assert_non_null(op.algorithm);
	assert_int_equal(gci_simulate(net, &op, &r), 0);
	ns = r.ns;
	gci_sim_result_free(&r);
	return ns;
}
