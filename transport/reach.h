/* SPDX-License-Identifier: MIT
 * How a rank is reached: at one port of up to four of its host's addresses, so that several network
 * cards carry its traffic.
 *
 *	struct gci_reach mine = {0};
 *	gci_reach_add(&mine, &a);		// 10.1.0.3:5000
 *	gci_reach_add(&mine, &b);		// 10.2.0.3:5000
 *	gci_reach_put(&message, &mine);		// and every rank learns it
 *	...
 *	if (gci_reach_pair(&own, &theirs, turn, 0, &from, &to))
 *		puts("no address family in common");
 *	bind(fd, from), connect(fd, to)
 *
 * Small, since each rank keeps one of every other: 68 bytes, and 7 in a message with one IPv4
 * address. Scopes (the %eth0 of a link-local address) are not in it: they mean something on one
 * host only. */
#ifndef GCI_TRANSPORT_REACH_H
#define GCI_TRANSPORT_REACH_H

#include "base/buf.h"
#include "base/nics.h"
#include "transport/address.h"

#define GCI_REACH_MAX  4
#define GCI_REACH_TEXT (GCI_REACH_MAX * GCI_ADDRESS_TEXT)

struct gci_reach {
	uint16_t port;
	uint8_t n;   /* addresses; 0: none yet */
	uint8_t six; /* bit i: ip[i] is IPv6; else IPv4, in its first four bytes */
	uint8_t ip[GCI_REACH_MAX][16];
};

/* The first brings the port along. -1: there are GCI_REACH_MAX already, or it is no IP address. */
int gci_reach_add(struct gci_reach *r, const struct gci_address *a);

/* An end of a connection, as accept and the like tell it, and its IPv4 address mapped, perhaps. n 0
 * and zeros: it is no IP address. */
struct gci_reach gci_reach_of(const struct gci_address *a);

/* Address number i, with the port and without a scope. */
void gci_reach_get(const struct gci_reach *r, unsigned i, struct gci_address *a);

/* Whether both have addresses of one family. */
int gci_reach_meet(const struct gci_reach *a, const struct gci_reach *b);

/* Whether all addresses are loopback ones, which lead nowhere from another host. */
int gci_reach_is_loopback(const struct gci_reach *r);

/* "10.1.0.3:5000, [fd00::3]:5000". Returns `text`. */
char *gci_reach_format(const struct gci_reach *r, char text[GCI_REACH_TEXT]);

/* u16 port, u8 n and `six` in one (low and high half), then 4 or 16 bytes of each address.
 * gci_reach_read takes 1 to GCI_REACH_MAX addresses that one can connect to, and a port; else it
 * fails the reader. */
void gci_reach_put(struct gci_buf *out, const struct gci_reach *r);
void gci_reach_read(struct gci_reader *in, struct gci_reach *r);

/* A process's own addresses. */
struct gci_own {
	struct gci_address at[GCI_REACH_MAX]; /* with scopes; ports do not matter */
	uint8_t bits[GCI_REACH_MAX];          /* of the network each is in; 0: unknown */
	unsigned n;
	int leave_from; /* by rules, or with a scope: connections must leave from them */
};

/* Between which addresses connection number `turn` runs, if those with numbers in a row shall use
 * all addresses alike. They are of one family, our first address's if the peer has it. Where some
 * of both are in the same networks, only those pairs are used, in turn; else the addresses of
 * equal numbers: hosts at different sites have them in the same order. A link-local address is
 * given our own one's scope. `from` has port 0.
 *
 * `attempt` 1, 2, ... are the others, each once, when those before it led nowhere. 0, or -1: no
 * more, for attempt 0 that no family is in common. */
int gci_reach_pair(const struct gci_own *own, const struct gci_reach *peer, uint32_t turn,
	unsigned attempt, struct gci_address *from, struct gci_address *to);

/* How many attempts there are. */
unsigned gci_reach_npairs(const struct gci_own *own, const struct gci_reach *peer);

/* How many connections of a pair of ranks have both their addresses to themselves: `low` is the
 * side that connects. */
unsigned gci_reach_lanes(const struct gci_reach *low, const struct gci_reach *high);

/* The turn of the first connection between two ranks: over many pairs of ranks, and over all those
 * of one rank, every address comes as often as the others. */
uint32_t gci_reach_turn(uint32_t a, uint32_t b);

/* ---- This host's addresses, and which of them this process takes connections at.
 *
 *	struct gci_own own;
 *	rc = gci_own_choose(&own, "eth1, eth2", "10.0.0.3", &e);
 *	gci_tcp_listen(own.at, own.n, ...); */

/* Chooses by `rules` (base/nics.h; NULL or "": none) among the addresses of the interfaces that are
 * up. `usual` is the one by which the launcher is reached: the choice without rules.
 * GCOLL_ERR_INVAL: no rules, or no address that they choose; `e` names those that there are. */
int gci_own_choose(struct gci_own *own, const char *rules, const char *usual, struct gci_error *e);

/* All addresses of the interfaces that are up, *have to be freed. GCOLL_ERR_*. */
int gci_own_list(struct gci_nic_addr **have, unsigned *n, struct gci_error *e);

#endif
