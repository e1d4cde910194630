/* SPDX-License-Identifier: MIT */
#include "tests/transport/mem_world.h"

struct gci_mem_faults mem_faults;
uint64_t mem_seed = 1;

static void mem_close(struct world *w)
{
	gci_mem_net_free(w->private);
}

static int mem_open(struct world *w)
{
	struct gci_mem_net *net;
	int i, rc = gci_mem_net_create(&net, w->size, &mem_faults, mem_seed);

	if (rc)
		return rc;
	w->private = net;
	for (i = 0; i < w->size && !rc; i++)
		rc = gci_mem_create(&w->tp[i], net, &w->config[i]);
	if (rc)
		world_close(w);
	return rc;
}

static int mem_step(struct world *w)
{
	return gci_mem_net_step(w->private);
}

const struct backend mem_backend = {
	.name = "mem", .open = mem_open, .close = mem_close, .step = mem_step};
