/* SPDX-License-Identifier: MIT */
#include "transport/reach.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/nics.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

/* ---- This host's addresses, and which of them this process takes connections at. */

static unsigned count_bits(const uint8_t *mask, size_t nbytes)
{
	unsigned n = 0;

	while (n < 8 * nbytes && mask[n / 8] >> (7 - n % 8) & 1)
		n++;
	return n;
}

/* 1, or 0: it is no IP address, or its interface is down. */
static int take(struct gci_nic_addr *a, const struct ifaddrs *it)
{
	const struct sockaddr_in6 *six = (const void *)it->ifa_addr;
	const struct sockaddr_in *four = (const void *)it->ifa_addr;

	memset(a, 0, sizeof(*a));
	if (!it->ifa_addr || !(it->ifa_flags & IFF_UP))
		return 0;
	snprintf(a->nic, sizeof(a->nic), "%s", it->ifa_name);
	a->nic[strcspn(a->nic, ":")] = '\0'; /* "eth0:1" is an address of eth0 */
	if (it->ifa_addr->sa_family == AF_INET6) {
		a->six = 6;
		memcpy(a->ip, &six->sin6_addr, 16);
		a->scope = six->sin6_scope_id;
		six = (const void *)it->ifa_netmask;
		a->bits = (uint8_t)(six ? count_bits(six->sin6_addr.s6_addr, 16) : 128);
		return 1;
	}
	if (it->ifa_addr->sa_family != AF_INET)
		return 0;
	a->six = 4;
	memcpy(a->ip, &four->sin_addr, 4);
	four = (const void *)it->ifa_netmask;
	a->bits = (uint8_t)(four ? count_bits((const void *)&four->sin_addr, 4) : 32);
	return 1;
}

int gci_own_list(struct gci_nic_addr **have, unsigned *n, struct gci_error *e)
{
	struct ifaddrs *list, *it;
	size_t all = 0;

	*have = NULL;
	*n = 0;
	if (getifaddrs(&list))
		return gci_error_errno(e, "cannot list this host's addresses");
	for (it = list; it; it = it->ifa_next)
		all++;
	*have = gci_calloc(all, sizeof(**have));
	for (it = list; it && *have; it = it->ifa_next)
		*n += (unsigned)take(&(*have)[*n], it);
	freeifaddrs(list);
	return *have ? 0 : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

static void to_address(const struct gci_nic_addr *from, struct gci_address *to)
{
	memset(to, 0, sizeof(*to));
	if (from->six == 6) {
		to->v6.sin6_family = AF_INET6;
		memcpy(&to->v6.sin6_addr, from->ip, 16);
		to->v6.sin6_scope_id = from->scope;
		to->len = sizeof(to->v6);
	} else {
		to->v4.sin_family = AF_INET;
		memcpy(&to->v4.sin_addr, from->ip, 4);
		to->len = sizeof(to->v4);
	}
}

static int find(const struct gci_nic_addr *have, unsigned n, const struct gci_address *a)
{
	struct gci_address b;
	unsigned i;

	for (i = 0; i < n; i++) {
		to_address(&have[i], &b);
		if (b.len == a->len && !memcmp(&b.v6, &a->v6, a->len))
			return (int)i;
	}
	return -1;
}

static void take_chosen(struct gci_own *own, unsigned i, const struct gci_nic_addr *a)
{
	to_address(a, &own->at[i]);
	own->bits[i] = a->bits;
}

static int choose(
	struct gci_own *own, const struct gci_nics *nics, const char *rules, struct gci_error *e)
{
	struct gci_nic_addr *have;
	unsigned n, chosen[GCI_REACH_MAX], i;
	char list[300];
	int rc = gci_own_list(&have, &n, e);

	if (rc)
		return rc;
	own->n = gci_nics_choose(nics, have, n, find(have, n, &own->at[0]), chosen, GCI_REACH_MAX);
	for (i = 0; i < own->n; i++)
		take_chosen(own, i, &have[chosen[i]]);
	if (!own->n)
		rc = gci_error_set(e, GCOLL_ERR_INVAL,
			"no address of this host matches the interfaces \"%.100s\"; there are: %s",
			rules, gci_nics_list(have, n, list, sizeof(list)));
	gci_free(have);
	return rc;
}

static void say(const struct gci_own *own)
{
	char ip[GCI_ADDRESS_TEXT];
	unsigned i;

	for (i = 0; i < own->n && gci_log_enabled(GCI_LOG_INFO); i++) {
		gci_address_ip(&own->at[i], ip);
		gci_log(GCI_LOG_INFO, "takes connections at %s", ip);
	}
}

int gci_own_choose(struct gci_own *own, const char *rules, const char *usual, struct gci_error *e)
{
	struct gci_error why = {0};
	struct gci_nics nics = {.n = 0};
	int rc = 0;

	memset(own, 0, sizeof(*own));
	if (gci_nics_parse(&nics, rules ? rules : "", &why))
		return gci_error_set(e, why.status, "interfaces: %s", why.text);
	if (gci_address_make(&own->at[0], usual, 0))
		return gci_error_set(e, GCOLL_ERR_INVAL, "\"%s\" is no IP address", usual);
	own->n = 1;
	if (nics.n)
		rc = choose(own, &nics, rules, e);
	own->leave_from = nics.n || (own->at[0].any.sa_family == AF_INET6 &&
					    IN6_IS_ADDR_LINKLOCAL(&own->at[0].v6.sin6_addr));
	if (!rc)
		say(own);
	return rc;
}

/* ---- How a rank is reached. */

static int is_six(const struct gci_reach *r, unsigned i)
{
	return r->six >> i & 1;
}

static size_t ip_nbytes(const struct gci_reach *r, unsigned i)
{
	return is_six(r, i) ? 16 : 4;
}

int gci_reach_add(struct gci_reach *r, const struct gci_address *a)
{
	int six = a->any.sa_family == AF_INET6;

	if (r->n == GCI_REACH_MAX || (!six && a->any.sa_family != AF_INET))
		return -1;
	if (!r->n)
		r->port = gci_address_port(a);
	if (six)
		memcpy(r->ip[r->n], &a->v6.sin6_addr, 16);
	else
		memcpy(r->ip[r->n], &a->v4.sin_addr, 4);
	r->six = (uint8_t)(r->six | six << r->n);
	r->n++;
	return 0;
}

struct gci_reach gci_reach_of(const struct gci_address *a)
{
	struct gci_address plain = *a;
	struct gci_reach r = {0};

	gci_address_unmap(&plain);
	gci_reach_add(&r, &plain);
	return r;
}

void gci_reach_get(const struct gci_reach *r, unsigned i, struct gci_address *a)
{
	memset(a, 0, sizeof(*a));
	gci_address_set_port(a, r->port);
	if (is_six(r, i)) {
		a->any.sa_family = AF_INET6;
		a->len = sizeof(a->v6);
		memcpy(&a->v6.sin6_addr, r->ip[i], 16);
	} else {
		a->any.sa_family = AF_INET;
		a->len = sizeof(a->v4);
		memcpy(&a->v4.sin_addr, r->ip[i], 4);
	}
}

/* Bit 0: it has IPv4 addresses, bit 1: IPv6. */
static unsigned families(const struct gci_reach *r)
{
	unsigned all = (1u << r->n) - 1;

	return ((~r->six & all) != 0) | ((r->six & all) != 0) << 1;
}

int gci_reach_meet(const struct gci_reach *a, const struct gci_reach *b)
{
	return (families(a) & families(b)) != 0;
}

int gci_reach_is_loopback(const struct gci_reach *r)
{
	struct gci_address a;
	unsigned i;

	for (i = 0; i < r->n; i++) {
		gci_reach_get(r, i, &a);
		if (is_six(r, i) ? !IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr) : r->ip[i][0] != 127)
			return 0;
	}
	return 1;
}

char *gci_reach_format(const struct gci_reach *r, char text[GCI_REACH_TEXT])
{
	char one[GCI_ADDRESS_TEXT];
	struct gci_address a;
	size_t len = 0;
	unsigned i;

	*text = '\0';
	for (i = 0; i < r->n; i++) {
		gci_reach_get(r, i, &a);
		gci_address_format(&a, one);
		len += (size_t)snprintf(
			text + len, GCI_REACH_TEXT - len, "%s%s", i ? ", " : "", one);
	}
	return text;
}

void gci_reach_put(struct gci_buf *out, const struct gci_reach *r)
{
	unsigned i;

	gci_buf_put_u16(out, r->port);
	gci_buf_put_u8(out, (uint8_t)(r->n | r->six << 4));
	for (i = 0; i < r->n; i++)
		gci_buf_put(out, r->ip[i], ip_nbytes(r, i));
}

/* Not "any address", and not one of many listeners. */
static int connectable(const struct gci_reach *r, unsigned i)
{
	static const uint8_t none[16];

	if (!memcmp(r->ip[i], none, ip_nbytes(r, i)))
		return 0;
	return is_six(r, i) ? r->ip[i][0] != 0xff : r->ip[i][0] < 224;
}

void gci_reach_read(struct gci_reader *in, struct gci_reach *r)
{
	const uint8_t *ip;
	unsigned n, i;

	memset(r, 0, sizeof(*r));
	r->port = gci_read_u16(in);
	n = gci_read_u8(in);
	r->six = (uint8_t)(n >> 4);
	n &= 15;
	if (!r->port || !n || n > GCI_REACH_MAX || r->six >> n)
		in->failed = 1;
	for (i = 0; i < n && !in->failed; i++) {
		ip = gci_read(in, ip_nbytes(r, i));
		if (ip)
			memcpy(r->ip[i], ip, ip_nbytes(r, i));
		if (!connectable(r, i))
			in->failed = 1;
	}
	r->n = (uint8_t)(in->failed ? 0 : n);
}

/* ---- Between which of two ranks' addresses their connections run. */

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
