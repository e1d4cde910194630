/* SPDX-License-Identifier: MIT */
#include "tests/simulate/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NBYTES (400u << 10) /* of a vector on all ranks together */

static const char *const names[] = {
	"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", "h10", "h11"};

static uint64_t below(struct gci_prng *prng, uint64_t n)
{
	return gci_prng_below(prng, n);
}

static int one_in(struct gci_prng *prng, uint64_t n)
{
	return !below(prng, n);
}

/* ---- the grid */

static void put(struct plan *p, const char *text, uint64_t a, uint64_t b, uint64_t c)
{
	size_t len = strlen(p->grid);

	snprintf(p->grid + len, sizeof(p->grid) - len, text, a, b, c);
}

/* Host i has rank i, or ranks i and i + nhosts. */
static void draw_grid(struct plan *p, struct gci_prng *prng)
{
	int nhosts, c, d, h, r, first, size[PLAN_MAX_CLUSTERS] = {0};
	uint64_t far_ms = 1 + below(prng, one_in(prng, 3) ? 100 : 10);

	p->n = 2 + (int)below(prng, one_in(prng, 4) ? PLAN_MAX_RANKS - 1 : 5);
	nhosts = one_in(prng, 4) ? (p->n + 1) / 2 : p->n;
	p->nclusters =
		1 + (int)below(prng,
			    (uint64_t)(nhosts < PLAN_MAX_CLUSTERS ? nhosts : PLAN_MAX_CLUSTERS));
	for (h = 0; h < nhosts; h++)
		size[h < p->nclusters ? h : (int)below(prng, (uint64_t)p->nclusters)]++;
	for (c = h = 0; c < p->nclusters; c++) {
		first = h;
		for (; h < first + size[c]; h++)
			p->net.cluster[h] = c;
		put(p, "[cluster c%llu]\nhosts = h[%llu-%llu]\nnic = 1Gbit\n", (uint64_t)c,
			(uint64_t)first, (uint64_t)(h - 1));
	}
	for (d = 0; d < p->nclusters; d++)
		for (c = 0; c < d; c++) {
			put(p, "[link c%llu c%llu]\nrate = 3Gbit\ndelay = %llums\n", (uint64_t)c,
				(uint64_t)d, far_ms);
			put(p, "streams = %llu\n", 1 + below(prng, 4), 0, 0);
		}
	p->net.nhosts = nhosts + 1;
	p->net.cluster[nhosts] = p->nclusters; /* the launcher's */
	p->net.near_ns = GCI_NS_PER_US * (10 + below(prng, 200));
	p->net.far_ns = GCI_NS_PER_MS * far_ms;
	p->net.loopback = p->nclusters == 1 && one_in(prng, 4);
	p->net.most_piece = 1u << below(prng, 17);
	p->net.buffer_nbytes = 512u << below(prng, 6);
	for (r = 0; r < p->n; r++) {
		p->host[r] = r % nhosts;
		p->hosts[r] = (uint32_t)p->host[r];
		p->names[r] = names[p->host[r]];
		p->cluster[r] = p->net.cluster[p->host[r]];
	}
}

static void make_topos(struct plan *p)
{
	struct gci_error e = {0};
	int odd, r, n, host[PLAN_MAX_RANKS], ranks[PLAN_MAX_RANKS];

	for (r = 0; r < p->n; r++)
		host[r] = p->host[r];
	if (gci_grid_parse(&p->parsed, p->grid, strlen(p->grid), "grid", &e) ||
		gci_topo_create(&p->topo[ON_WORLD], &p->parsed, host, p->n)) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	for (r = 0; r < p->n; r++)
		ranks[r] = r;
	if (gci_topo_sub(&p->topo[ON_TWIN], &p->topo[ON_WORLD], ranks, p->n))
		abort();
	for (odd = 0; odd < 2; odd++) {
		for (r = p->n - 1, n = 0; r >= 0; r--)
			if (r % 2 == odd)
				ranks[n++] = r;
		if (gci_topo_sub(&p->topo[ON_PART + odd], &p->topo[ON_WORLD], ranks, n))
			abort();
	}
}

int plan_topo_of(enum plan_comm on, int rank)
{
	return on == ON_PART ? ON_PART + rank % 2 : (int)on;
}

int plan_rank_in(const struct plan *p, enum plan_comm on, int rank)
{
	return on == ON_PART ? (p->n - 1 - rank) / 2 : rank;
}

/* ---- settings */

static void draw_settings(struct plan *p, struct gci_prng *prng)
{
	static const char *const replays[] = {"auto", "wan", "always", "off"};
	struct world_settings *w = &p->world;
	int fast = one_in(prng, 2), i;
	uint64_t held;

	w->size = p->n;
	for (i = 0; i < GCI_SECRET_NBYTES; i++)
		w->secret[i] = (uint8_t)below(prng, 256);
	w->security = one_in(prng, 6) ? GCI_SECURITY_ENCRYPT
				      : (one_in(prng, 6) ? GCI_SECURITY_OFF : GCI_SECURITY_AUTH);
	w->eager_nbytes = one_in(prng, 4) ? 0 : 64u << below(prng, 10);
	w->replay_nbytes = one_in(prng, 2) ? 0 : 1024u << below(prng, 8);
	w->rekey_records = one_in(prng, 2) ? 1 + below(prng, 20) : 0;
	p->window_nbytes = 256u << below(prng, 8);
	if (one_in(prng, 20))
		p->window_nbytes = 256u << 10;
	p->fixed_order = one_in(prng, 4);
	p->replay = replays[below(prng, 4)];
	p->checksum = one_in(prng, 4) ? "auto" : "on";
	p->tuning = one_in(prng, 30) ? "simulate" : "off";
	p->spin = one_in(prng, 10) ? "50us" : "off";
	held = gci_grid_held_ns(&p->parsed);
	p->rdv = (struct gci_rdv_config){.size = (uint32_t)p->n,
		.names = p->names,
		.hosts = p->hosts,
		.grid = p->grid,
		.beat_ns = fast ? GCI_NS_PER_S / 4 : GCI_NS_PER_S,
		.dead_ns = (fast ? 4 : 20) * GCI_NS_PER_S + 2 * held,
		.start_ns = 60 * GCI_NS_PER_S,
		.grace_ns = GCI_NS_PER_S / 2 + 2 * p->net.far_ns};
	memcpy(p->rdv.secret, w->secret, sizeof(p->rdv.secret));
}

/* ---- calls */

static int has_blocks(enum gci_kind kind)
{
	return kind == GCI_REDUCE_SCATTER || (kind >= GCI_SCATTER && kind <= GCI_ALLTOALL);
}

static const struct gci_algorithm *draw_algorithm(
	struct gci_prng *prng, const struct gci_topo *topo, enum gci_kind kind, int fixed)
{
	struct gci_coll c = {
		.kind = kind, .topo = topo, .order = fixed ? GCI_CLUSTER_ORDER : GCI_ANY_ORDER};
	const struct gci_algorithm *a, *chosen = NULL;
	uint64_t n = 0;

	gci_each_algorithm (a)
		if (a->kind == kind && !gci_ineligible(a, &c) && !below(prng, ++n))
			chosen = a;
	return chosen;
}

static void draw_how(struct plan_call *c, const struct gci_algorithm *a, struct gci_prng *prng)
{
	size_t n, size = sizeof(c->how);

	if (!a || c->on == ON_PART || one_in(prng, 6)) {
		snprintf(c->how, size, "auto");
		return;
	}
	n = (size_t)snprintf(c->how, size, "%s", a->name);
	if (a->traits & GCI_USES_SENDERS && one_in(prng, 2))
		n += (size_t)snprintf(c->how + n, size - n, ":senders=%d", 1 + (int)below(prng, 3));
	if (a->traits & GCI_USES_DEGREE && one_in(prng, 2))
		n += (size_t)snprintf(c->how + n, size - n, ":degree=%d", 1 + (int)below(prng, 4));
	if (a->traits & GCI_USES_SEGMENT && one_in(prng, 2))
		snprintf(c->how + n, size - n, ":segment=%d", 4 << below(prng, 10));
}

static void draw_type(struct trial *t, int fixed, struct gci_prng *prng)
{
	static const enum gcoll_type ints[] = {GCOLL_UINT32, GCOLL_INT8, GCOLL_UINT8, GCOLL_INT16,
		GCOLL_INT32, GCOLL_INT64, GCOLL_UINT64};
	static const enum gcoll_op ops[] = {
		GCOLL_SUM, GCOLL_PROD, GCOLL_MIN, GCOLL_MAX, GCOLL_BXOR, GCOLL_BAND, GCOLL_AVG};

	t->type = ints[below(prng, 7)];
	t->op = ops[below(prng, t->type == GCOLL_UINT32 ? 7 : 6)];
	if (gci_kind_reduces(t->kind) && fixed && one_in(prng, 2)) {
		t->type = one_in(prng, 2) ? GCOLL_FLOAT32 : GCOLL_FLOAT64;
		t->op = t->type == GCOLL_FLOAT32 && one_in(prng, 3) ? GCOLL_AVG : GCOLL_SUM;
	}
	if (!gci_kind_reduces(t->kind) && one_in(prng, 3))
		t->type = GCOLL_ELEMENT(1 + below(prng, 40));
}

/* From nothing to a few windows. */
static uint64_t draw_count(
	const struct plan *p, const struct trial *t, int n, struct gci_prng *prng)
{
	uint64_t most = 4 * (uint64_t)p->window_nbytes, count;

	if (one_in(prng, 5))
		return below(prng, 4);
	if (most > MOST_NBYTES / (uint64_t)p->n)
		most = MOST_NBYTES / (uint64_t)p->n;
	most /= gcoll_type_size(t->type);
	count = below(prng, (most >> below(prng, 5)) + 1);
	return has_blocks(t->kind) ? count / (uint64_t)n : count;
}

static void draw_call(struct plan *p, struct plan_call *c, enum plan_comm on, struct gci_prng *prng)
{
	struct trial *t = &c->trial;
	int least = on == ON_PART ? p->n / 2 : p->n;

	c->on = on;
	*t = (struct trial){
		.kind = (enum gci_kind)below(prng, GCI_NKINDS), .seed = gci_prng_next(prng)};
	draw_type(t, p->fixed_order, prng);
	t->count = draw_count(p, t, least, prng);
	t->root = (int)below(prng, (uint64_t)least);
	t->in_place = t->kind != GCI_BCAST && t->kind != GCI_BARRIER && one_in(prng, 3);
	t->v = has_blocks(t->kind) && one_in(prng, 3) ? 1 + (int)below(prng, 2) : 0;
	draw_how(c, draw_algorithm(prng, &p->topo[on], t->kind, p->fixed_order), prng);
}

static void draw_messages(struct plan *p, struct plan_step *s, struct gci_prng *prng)
{
	int i;

	s->nmessages = 1 + (int)below(prng, PLAN_MAX_MESSAGES);
	for (i = 0; i < s->nmessages; i++)
		s->messages[i] = (struct plan_message){.from = (int)below(prng, (uint64_t)p->n),
			.to = (int)below(prng, (uint64_t)p->n),
			.tag = (int)below(prng, 3),
			.nbytes = (uint32_t)below(
				prng, one_in(prng, 8) ? 200000 : 1u << below(prng, 14))};
}

static void draw_step(struct plan *p, struct plan_step *s, struct gci_prng *prng)
{
	if (one_in(prng, 3))
		s->late_ns = GCI_NS_PER_MS * (1 + below(prng, 100));
	s->tests = one_in(prng, 6);
	if (one_in(prng, 8)) {
		draw_messages(p, s, prng);
		return;
	}
	draw_call(p, &s->calls[s->ncalls++], one_in(prng, 8) ? ON_PART : ON_WORLD, prng);
	if (one_in(prng, 5))
		draw_call(p, &s->calls[s->ncalls++], ON_TWIN, prng);
}

int plan_count(const struct plan *p, int nsteps)
{
	int i, n = 0;

	for (i = 0; i < nsteps && i < p->nsteps; i++)
		n += p->steps[i].ncalls + p->steps[i].nmessages;
	return n;
}

void plan_draw(struct plan *p, uint64_t seed)
{
	struct gci_prng prng = {gci_mix64(seed + 1)};
	int i;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	draw_grid(p, &prng);
	make_topos(p);
	draw_settings(p, &prng);
	p->nsteps = 4 + (int)below(&prng, PLAN_MAX_STEPS - 3);
	for (i = 0; i < p->nsteps; i++)
		draw_step(p, &p->steps[i], &prng);
	plan_draw_faults(p, &prng);
}

void plan_free(struct plan *p)
{
	int i;

	for (i = 0; i <= PLAN_NCOMMS; i++)
		gci_topo_free(&p->topo[i]);
	gci_grid_free(&p->parsed);
}
