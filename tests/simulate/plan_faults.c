/* SPDX-License-Identifier: MIT
 * What goes wrong in a run. */
#include "tests/simulate/plan.h"

#include <stdio.h>
#include <string.h>

#define MOST_PAUSE_NS (4 * GCI_NS_PER_S)

enum fault {
	FINE,
	LOSSES,    /* connections are lost: survived where links have replay */
	STALLS,    /* connections stand still for a while */
	SHORT_CUT, /* two clusters do not reach each other for a while */
	PAUSE,     /* a process stands still for a while */
	DEATH,     /* a process dies */
	LONG_PAUSE,
	LONG_CUT,
	DARK, /* a host is switched off */
	FLIP, /* a bit */
	NFAULTS
};

/* How often each is drawn. */
static const unsigned weights[NFAULTS] = {3, 8, 4, 2, 2, 5, 1, 1, 1, 3};
static const char *const fault_names[NFAULTS] = {"none", "losses", "stalls", "a short cut",
	"a pause", "a death", "a long pause", "a long cut", "a dark host", "a flipped bit"};

static uint64_t below(struct gci_prng *prng, uint64_t n)
{
	return gci_prng_below(prng, n);
}

/* 1 to 2^bits, about as often of each length. */
static uint64_t of_any_size(struct gci_prng *prng, unsigned bits)
{
	uint64_t most = 1ull << below(prng, bits + 1);

	return 1 + below(prng, most);
}

static enum fault draw_fault(struct gci_prng *prng)
{
	unsigned all = 0, i;
	uint64_t at;

	for (i = 0; i < NFAULTS; i++)
		all += weights[i];
	at = below(prng, all);
	for (i = 0; at >= weights[i]; i++)
		at -= weights[i];
	return (enum fault)i;
}

static int replays(const struct plan *p, int far)
{
	return !strcmp(p->replay, "always") || (!strcmp(p->replay, "wan") && far) ||
	       (!strcmp(p->replay, "auto") && (far || !p->net.loopback)) ||
	       gci_security_encrypts(p->world.security, far);
}

int plan_replays(const struct plan *p, int a, int b)
{
	return replays(p, p->cluster[a] != p->cluster[b]);
}

static void draw_losses(struct plan *p, struct gci_prng *prng)
{
	p->faults.lose_every = 4 + below(prng, 400);
	p->faults.most_losses = (uint32_t)of_any_size(prng, 6);
	/* Else the first loss is the end, mostly. */
	if (replays(p, p->nclusters > 1))
		p->faults.only_replayed = below(prng, 8) != 0;
	if (below(prng, 2))
		p->faults.refuse_one_in = 2 + below(prng, 4);
}

static void draw_stalls(struct plan *p, struct gci_prng *prng)
{
	p->faults.stall_every = 10 + below(prng, 1000);
	p->faults.most_stalls = 1 + (uint32_t)below(prng, 10);
	p->faults.stall_ns = p->rdv.dead_ns / 2;
}

/* Two different ones of several. */
static void draw_cut(struct plan *p, struct gci_prng *prng)
{
	p->faults.cut_a = (int)below(prng, (uint64_t)p->nclusters);
	p->faults.cut_b = (int)below(prng, (uint64_t)p->nclusters - 1);
	p->faults.cut_b += p->faults.cut_b >= p->faults.cut_a;
	p->faults.cut_at = of_any_size(prng, 12);
}

static void blame(struct plan *p, int rank)
{
	p->damage.guilty[rank] = 1;
}

/* Silence counts as death; then all hear of it. */
static uint64_t silence_ns(const struct plan *p)
{
	return p->rdv.dead_ns + 4 * p->rdv.beat_ns + p->rdv.grace_ns;
}

static void draw_one(struct plan *p, enum fault f, struct gci_prng *prng)
{
	int r = (int)below(prng, (uint64_t)p->n), i;
	uint64_t most_pause = p->rdv.dead_ns / 2;

	switch (f) {
	case LOSSES:
		draw_losses(p, prng);
		break;
	case STALLS:
		draw_stalls(p, prng);
		break;
	case SHORT_CUT:
		draw_cut(p, prng);
		if (most_pause > MOST_PAUSE_NS) /* connecting has its own patience */
			most_pause = MOST_PAUSE_NS;
		p->faults.cut_ns = below(prng, most_pause);
		break;
	case LONG_CUT:
		draw_cut(p, prng);
		p->faults.cut_ns = GCI_NEVER;
		for (i = 0; i < p->n; i++)
			if (p->cluster[i] == p->faults.cut_a || p->cluster[i] == p->faults.cut_b)
				blame(p, i);
		p->damage.bound_ns = 2 * p->rdv.dead_ns + silence_ns(p) + 20 * GCI_NS_PER_S;
		break;
	case PAUSE:
	case LONG_PAUSE:
		p->fates[r] = (struct os_fate){.at_call = of_any_size(prng, 12),
			.stop = 1,
			/* Until it has joined the launcher's patience is 5 s. */
			.stop_ns = f == PAUSE
					   ? below(prng, most_pause < MOST_PAUSE_NS ? most_pause
										    : MOST_PAUSE_NS)
					   : GCI_NEVER};
		if (f == PAUSE)
			break;
		blame(p, r);
		p->damage.bound_ns = silence_ns(p);
		break;
	case DEATH:
		p->fates[r] = (struct os_fate){.at_call = of_any_size(prng, 12)};
		blame(p, r);
		p->damage.bound_ns = p->rdv.grace_ns + GCI_NS_PER_S + 4 * p->net.far_ns;
		break;
	case DARK:
		p->faults.dark = p->host[r];
		p->faults.dark_at = of_any_size(prng, 12);
		p->unseen = 1;
		for (i = 0; i < p->n; i++)
			if (p->host[i] == p->host[r])
				blame(p, i);
		p->damage.bound_ns = silence_ns(p) + p->rdv.dead_ns;
		break;
	case FLIP:
		p->faults.flip_at = of_any_size(prng, 17);
		p->checksum = "on";
		p->damage.any_status = 1;
		/* Half a handshake is waited for as long as silence may last. */
		p->damage.bound_ns = p->rdv.dead_ns + 30 * GCI_NS_PER_S;
		break;
	default:
		break;
	}
}

static int fits(const struct plan *p, enum fault f)
{
	if (f == SHORT_CUT || f == LONG_CUT)
		return p->nclusters > 1;
	/* On one machine silence is no sign of death. */
	return !p->net.loopback || (f != DARK && f != LONG_PAUSE && f != FLIP);
}

static void summarize(struct plan *p, const int *drawn)
{
	size_t n;
	int f;

	n = (size_t)snprintf(p->summary, sizeof(p->summary),
		"%d ranks in %d clusters, replay %s, security %d, checksum %s, "
		"windows of %u, eager %u, pieces of %u at most; faults:",
		p->n, p->nclusters, p->replay, (int)p->world.security, p->checksum,
		p->window_nbytes, p->world.eager_nbytes, p->net.most_piece);
	for (f = 0; f < NFAULTS; f++)
		if (drawn[f] && n < sizeof(p->summary))
			n += (size_t)snprintf(
				p->summary + n, sizeof(p->summary) - n, " %s,", fault_names[f]);
	if (n && n < sizeof(p->summary))
		p->summary[n - 1] = '\0';
	if (p->faults.lose_control_every && n < sizeof(p->summary))
		snprintf(p->summary + n - 1, sizeof(p->summary) - n + 1,
			"; %u control connections lost at most", p->faults.most_control_losses);
}

/* They are survived, whatever else happens. Drawn apart, so that a seed's other faults stay. */
static void draw_control_losses(struct plan *p)
{
	struct gci_prng prng = {gci_mix64(p->seed ^ 0xc0)};

	if (below(&prng, 3))
		return;
	p->faults.lose_control_every = 1 + below(&prng, 60);
	p->faults.most_control_losses = 1 + (uint32_t)below(&prng, 8);
	/* The verdict comes by a connection that may have to be made again. */
	p->damage.bound_ns += p->rdv.dead_ns / 2;
}

/* One that ends the job at most, and others that do not. */
void plan_draw_faults(struct plan *p, struct gci_prng *prng)
{
	int drawn[NFAULTS] = {0}, ends = 0, i, n = 1 + (int)below(prng, 2);

	p->faults.cut_a = p->faults.cut_b = -1;
	if (!below(prng, 20))
		p->faults.deaf = 1 + (uint32_t)below(prng, 4);
	for (i = 0; i < n; i++) {
		enum fault f = draw_fault(prng);

		if (drawn[f] || !fits(p, f) || (f >= DEATH && ends) ||
			((f == SHORT_CUT || f == LONG_CUT) && p->faults.cut_at))
			continue;
		if ((f == DEATH || f == LONG_PAUSE || f == PAUSE) &&
			(drawn[DEATH] || drawn[PAUSE] ||
				drawn[LONG_PAUSE])) /* a process has one fate */
			continue;
		drawn[f] = 1;
		ends |= f >= DEATH;
		draw_one(p, f, prng);
	}
	/* Each takes its part of the time after which silence is death. */
	if (drawn[LOSSES] && (drawn[STALLS] || drawn[SHORT_CUT] || drawn[PAUSE])) {
		p->faults.refuse_one_in = 0;
		p->faults.stall_ns /= 8;
		if (drawn[SHORT_CUT])
			p->faults.cut_ns /= 8;
	}
	draw_control_losses(p);
	summarize(p, drawn);
}
