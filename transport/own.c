/* SPDX-License-Identifier: MIT */
#include "transport/own.h"

#include "base/log.h"
#include "base/mem.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

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
