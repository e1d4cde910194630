/* SPDX-License-Identifier: MIT
 * What one run is made of, all drawn from its seed: the grid, its ranks and their settings, what
 * they call, and what goes wrong.
 *
 *	plan_draw(&p, seed);
 *	...
 *	plan_free(&p); */
#ifndef GCI_TESTS_SIMULATE_PLAN_H
#define GCI_TESTS_SIMULATE_PLAN_H

#include "launcher/rendezvous.h"
#include "tests/comm/trial_data.h"
#include "tests/simulate/net.h"
#include "tests/simulate/world.h"

#define PLAN_MAX_RANKS    12
#define PLAN_MAX_CLUSTERS 4
#define PLAN_MAX_STEPS    20
#define PLAN_MAX_MESSAGES 8

/* Communicators: the world, its duplicate, and the odd or even ranks, the last one first. */
enum plan_comm { ON_WORLD, ON_TWIN, ON_PART, PLAN_NCOMMS };

struct plan_call {
	enum plan_comm on;
	struct trial trial;
	char how[96]; /* algorithm */
};

struct plan_message {
	int from, to, tag;
	uint32_t nbytes;
};

/* One or two collectives, or messages; all ranks take part. */
struct plan_step {
	int ncalls;
	struct plan_call calls[2];
	int nmessages;
	struct plan_message messages[PLAN_MAX_MESSAGES];
	uint64_t late_ns; /* before it a rank computes for so long, at most */
	int tests;        /* it asks now and then instead of waiting */
};

/* What has gone wrong, of what is not survived: whom errors may name. */
struct plan_damage {
	int done; /* it has happened, first at: */
	uint64_t at_ns;
	int guilty[PLAN_MAX_RANKS];
	uint64_t bound_ns; /* from then on until all have heard of it */
	int any_status;    /* else GCOLL_ERR_PEER */
};

struct plan {
	uint64_t seed;
	int n, nclusters;
	int cluster[PLAN_MAX_RANKS]; /* as the network has them */
	int host[PLAN_MAX_RANKS];
	const char *names[PLAN_MAX_RANKS];
	uint32_t hosts[PLAN_MAX_RANKS];
	char grid[1024];
	struct gci_grid parsed;
	struct gci_topo topo[PLAN_NCOMMS + 1]; /* by enum plan_comm; the last one: of odd ranks */
	struct gci_rdv_config rdv;
	struct world_settings world;
	uint32_t window_nbytes;
	int fixed_order;
	const char *replay, *checksum, *tuning, *spin;
	int nsteps;
	struct plan_step steps[PLAN_MAX_STEPS];
	struct net_config net;
	struct net_faults faults;
	struct os_fate fates[PLAN_MAX_RANKS];
	int unseen; /* whose host dies: nobody tells the launcher of its processes' ends */
	struct plan_damage damage;
	char summary[400];
};

void plan_draw(struct plan *p, uint64_t seed);
void plan_free(struct plan *p);

/* Operations of its first so many steps. */
int plan_count(const struct plan *p, int nsteps);

/* The part of a communicator that a rank is in: an index of plan.topo, and its rank there. */
int plan_topo_of(enum plan_comm on, int rank);
int plan_rank_in(const struct plan *p, enum plan_comm on, int rank);

/* The loss of a connection between these ranks is survived. */
int plan_replays(const struct plan *p, int a, int b);

/* plan_faults.c */
void plan_draw_faults(struct plan *p, struct gci_prng *prng);

#endif
