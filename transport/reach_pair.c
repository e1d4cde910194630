/* SPDX-License-Identifier: MIT
 * Between which of two ranks' addresses their connections run. */
#include "base/nics.h"
#include "transport/reach.h"

static int peer_six(const struct gci_reach *peer, unsigned i)
{
	return peer->six >> i & 1;
}

static int own_six(const struct gci_own *own, unsigned i)
{
	return own->at[i].any.sa_family == AF_INET6;
}

/* Whether own address i and the peer's address j are in one network. */
static int near(const struct gci_own *own, unsigned i, const struct gci_reach *peer, unsigned j)
{
	const void *ip = own_six(own, i) ? (const void *)&own->at[i].v6.sin6_addr
					 : (const void *)&own->at[i].v4.sin_addr;

	return own->bits[i] && gci_same_net(ip, peer->ip[j], own->bits[i]);
}

/* All pairs, each once; the first `alike` are used in turn. */
struct pairs {
	struct {
		unsigned from, to;
	} v[GCI_REACH_MAX * GCI_REACH_MAX];
	unsigned n, alike;
};

/* The addresses of one family, by their numbers. */
struct family {
	unsigned own[GCI_REACH_MAX], nown;
	unsigned peer[GCI_REACH_MAX], npeer;
};

static void list_family(
	struct family *f, const struct gci_own *own, const struct gci_reach *peer, int six)
{
	unsigned i;

	f->nown = f->npeer = 0;
	for (i = 0; i < own->n; i++)
		if (own_six(own, i) == six)
			f->own[f->nown++] = i;
	for (i = 0; i < peer->n; i++)
		if (peer_six(peer, i) == six)
			f->peer[f->npeer++] = i;
}

/* Equal numbers first, then those one apart, ...: of those near each other, or of the others. */
static void add_pairs(struct pairs *p, const struct family *f, const struct gci_own *own,
	const struct gci_reach *peer, int which)
{
	unsigned few = f->nown < f->npeer ? f->nown : f->npeer;
	unsigned many = f->nown < f->npeer ? f->npeer : f->nown;
	unsigned apart, i;
	int first = !p->alike;

	for (apart = 0; apart < few; apart++) {
		for (i = 0; i < many; i++) {
			unsigned k = (i + apart) % few;
			unsigned a = f->own[f->nown < f->npeer ? k : i];
			unsigned b = f->peer[f->nown < f->npeer ? i : k];

			if (near(own, a, peer, b) != which)
				continue;
			p->v[p->n].from = a;
			p->v[p->n++].to = b;
		}
		if (first && (which || !apart))
			p->alike = p->n;
	}
}

static void list_pairs(struct pairs *p, const struct gci_own *own, const struct gci_reach *peer)
{
	int six = own->n && own_six(own, 0), tries;
	struct family f;

	p->n = p->alike = 0;
	for (tries = 0; tries < 2; tries++, six = !six) {
		list_family(&f, own, peer, six);
		add_pairs(p, &f, own, peer, 1);
		add_pairs(p, &f, own, peer, 0);
	}
}

int gci_reach_pair(const struct gci_own *own, const struct gci_reach *peer, uint32_t turn,
	unsigned attempt, struct gci_address *from, struct gci_address *to)
{
	struct pairs p;
	unsigned i;

	list_pairs(&p, own, peer);
	if (attempt >= p.n)
		return -1;
	i = attempt < p.alike ? (turn + attempt) % p.alike : attempt;
	*from = own->at[p.v[i].from];
	gci_address_set_port(from, 0);
	gci_reach_get(peer, p.v[i].to, to);
	if (to->any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&to->v6.sin6_addr))
		to->v6.sin6_scope_id = from->v6.sin6_scope_id;
	return 0;
}

unsigned gci_reach_npairs(const struct gci_own *own, const struct gci_reach *peer)
{
	struct pairs p;

	list_pairs(&p, own, peer);
	return p.n;
}

static unsigned count_of(const struct gci_reach *r, int six)
{
	unsigned i, n = 0;

	for (i = 0; i < r->n; i++)
		n += peer_six(r, i) == six;
	return n;
}

unsigned gci_reach_lanes(const struct gci_reach *low, const struct gci_reach *high)
{
	int six = peer_six(low, 0);
	unsigned a, b;

	if (!count_of(high, six))
		six = !six;
	a = count_of(low, six);
	b = count_of(high, six);
	return a < b ? a : b;
}

/* Numbers the pairs of ranks as a triangle: (0,1) (0,2) (1,2) (0,3) (1,3) ... */
uint32_t gci_reach_turn(uint32_t a, uint32_t b)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;

	return (uint32_t)(high * (high - 1) / 2 + low);
}
