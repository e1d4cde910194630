/* SPDX-License-Identifier: MIT
 * What goes wrong on the way. */
#include "tests/simulate/net_impl.h"

#include <errno.h>
#include <string.h>

#define MOST_VAIN      3    /* connections in a row that a pair of ranks has in vain */
#define YOUNG_NBYTES   2048 /* until so many have come, greetings may be under way */
#define YOUNG_STALL_NS (4 * GCI_NS_PER_S) /* strangers have 5 s to say who they are */
#define RANKS          64

static uint64_t cut_until_ns;
static int dark[NET_MAX_HOSTS + 1];
static uint32_t lost_between[RANKS][RANKS], vain_between[RANKS][RANKS];

void net_forget_faults(void)
{
	cut_until_ns = 0;
	memset(dark, 0, sizeof(dark));
	memset(lost_between, 0, sizeof(lost_between));
	memset(vain_between, 0, sizeof(vain_between));
}

int net_is_dark(int host)
{
	return dark[host];
}

static int is_cut(int a, int b)
{
	int ca = net_cluster(a), cb = net_cluster(b);

	return (ca == net_faults.cut_a && cb == net_faults.cut_b) ||
	       (cb == net_faults.cut_a && ca == net_faults.cut_b);
}

/* 0: it is open; else when it will be, GCI_NEVER. */
uint64_t net_shut_until_ns(int a, int b)
{
	if (dark[a] || dark[b])
		return GCI_NEVER;
	return is_cut(a, b) && cut_until_ns > os_now ? cut_until_ns : 0;
}

/* A connection that no data go over asks whether the other end is there; also when its end is on its
 * way, but does not come through. */
static void on_keepalive(void *arg, uint64_t n)
{
	struct stream *s = arg;

	(void)n;
	if (s->closed || s->state != OPEN || !net_shut_until_ns(s->host, s->other->host) ||
		s->flight_nbytes)
		return;
	os_trace("rank %d: keepalive finds the connection to %d dead", s->rank, s->other->rank);
	s->error = ETIMEDOUT;
	s->state = RESET;
	file_changed(s->file);
}

static void watch_idle(void)
{
	struct gci_list *it;

	gci_list_each (it, &net_streams) {
		struct stream *s = gci_container(it, struct stream, all);
		uint64_t s_idle = s->keep_idle_s + (uint64_t)s->keep_interval_s * s->keep_count;

		if (s->state == OPEN && !s->closed && s->keep_idle_s &&
			net_shut_until_ns(s->host, s->other->host))
			os_at(os_now + s_idle * GCI_NS_PER_S, on_keepalive, s, 0);
	}
}

static void end_one(struct stream *s, enum segment_kind kind)
{
	net_cut_short(s);
	net_put(s, kind, NULL, 0, 0);
	s->vain = 1;
}

/* In a row, of a pair. */
uint32_t *net_vain_of(int a, int b)
{
	return &vain_between[a < b ? a : b][a < b ? b : a];
}

int net_is_young(const struct stream *s)
{
	return s->come_nbytes < YOUNG_NBYTES || s->other->come_nbytes < YOUNG_NBYTES;
}

/* This end hears of the connection's end when it sends something, or at last by keepalive. */
static void lose_half(struct stream *s)
{
	end_one(s, RST);
	net_cut_short(s->other);
	s->other->vain = 1;
	s->forgotten = 1;
	os_at(os_now + s->keep_idle_s * GCI_NS_PER_S, net_on_reset, s, 0);
}

/* Something in the middle has forgotten the connection, or ends it. */
static void lose(struct stream *s)
{
	enum segment_kind kind = os_chance(2) ? RST : FIN;
	int half = s->keep_idle_s && !net_is_young(s) && os_chance(3);

	os_trace("lost: a connection between ranks %d and %d", s->rank, s->other->rank);
	net_counts.losses++;
	lost_between[s->rank][s->other->rank]++;
	lost_between[s->other->rank][s->rank]++;
	*net_vain_of(s->rank, s->other->rank) += net_is_young(s);
	if (half) {
		lose_half(s);
		return;
	}
	end_one(s, kind);
	end_one(s->other, kind);
}

static void tell(int a, int b)
{
	if (net_faults.on_fault)
		net_faults.on_fault(a, b);
}

static void maybe_lose(struct stream *s)
{
	const struct net_faults *f = &net_faults;

	if (!f->lose_every || net_counts.losses >= f->most_losses || !os_chance(f->lose_every) ||
		s->vain || s->other->vain || s->closed || s->other->closed)
		return;
	/* What never gets through is not to be survived. */
	if (net_is_young(s) && *net_vain_of(s->rank, s->other->rank) >= MOST_VAIN)
		return;
	if (!f->may_lose(s->rank, s->other->rank)) {
		if (f->only_replayed)
			return;
		tell(s->rank, s->other->rank);
	}
	lose(s);
}

static void maybe_stall(struct stream *s)
{
	const struct net_faults *f = &net_faults;
	uint64_t most = f->stall_ns;

	if (!f->stall_every || net_counts.stalls >= f->most_stalls || !os_chance(f->stall_every))
		return;
	net_counts.stalls++;
	if (net_is_young(s) && (s->stalled_until_ns || s->other->stalled_until_ns))
		return;
	if (net_is_young(s) && most > YOUNG_STALL_NS)
		most = YOUNG_STALL_NS;
	s->stalled_until_ns = os_now + gci_prng_below(&os_prng, most);
	os_trace("stalled: from rank %d to rank %d until %.3f s", s->rank, s->other->rank,
		(double)(s->stalled_until_ns - 1000 * GCI_NS_PER_S) / (double)GCI_NS_PER_S);
}

static void maybe_flip(const struct stream *s, struct segment *g)
{
	uint64_t before = net_counts.nbytes, bit;

	net_counts.nbytes += g->nbytes;
	if (before >= net_faults.flip_at || net_counts.nbytes < net_faults.flip_at)
		return;
	bit = gci_prng_below(&os_prng, 8 * g->nbytes);
	g->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	net_counts.flips++;
	os_trace("flipped: bit %d of byte %llu from rank %d to rank %d", (int)(bit % 8),
		(unsigned long long)(s->other->come_nbytes + bit / 8), s->rank, s->other->rank);
	tell(s->rank, s->other->rank);
}

void net_fault_piece(struct stream *s, struct segment *g)
{
	const struct net_faults *f = &net_faults;

	net_counts.pieces++;
	maybe_flip(s, g);
	maybe_stall(s);
	maybe_lose(s);
	if (net_counts.pieces == f->cut_at) {
		os_trace("cut: between clusters %d and %d", f->cut_a, f->cut_b);
		cut_until_ns = f->cut_ns == GCI_NEVER ? GCI_NEVER : os_now + f->cut_ns;
		watch_idle();
		tell(-1, -1);
	}
	if (net_counts.pieces == f->dark_at) {
		os_trace("dark: host %d", f->dark);
		dark[f->dark] = 1;
		watch_idle();
		tell(-1, -1);
	}
}

/* Of a rank and the launcher. One side may hear of it only when it says something. */
void net_fault_control(struct stream *s)
{
	const struct net_faults *f = &net_faults;

	if (!f->lose_control_every || net_counts.control_losses >= f->most_control_losses ||
		!os_chance(f->lose_control_every) || s->vain || s->other->vain || s->closed ||
		s->other->closed)
		return;
	net_counts.control_losses++;
	os_trace("lost: the control connection of rank %d",
		s->rank == OS_LAUNCHER ? s->other->rank : s->rank);
	end_one(s, RST);
	if (os_chance(3)) {
		net_cut_short(s->other);
		s->other->vain = 1;
		s->forgotten = 1;
	} else {
		end_one(s->other, RST);
	}
}

/* One that is made again, in place of one that was lost. */
int net_is_refused(const struct stream *s, int to)
{
	if (!net_faults.refuse_one_in || to < 0 || s->rank < 0 || !lost_between[s->rank][to] ||
		*net_vain_of(s->rank, to) >= MOST_VAIN || !os_chance(net_faults.refuse_one_in))
		return 0;
	++*net_vain_of(s->rank, to);
	return 1;
}
