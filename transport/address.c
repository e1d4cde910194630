/* SPDX-License-Identifier: MIT */
#include "transport/address.h"

#include "base/units.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

int gci_address_make(struct gci_address *a, const char *ip, uint16_t port)
{
	struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char service[8];

	/* getaddrinfo rather than inet_pton: it knows scopes, as in fe80::1%eth0. */
	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(ip, service, &hints, &found))
		return GCOLL_ERR_INVAL;
	memset(a, 0, sizeof(*a));
	if (found->ai_addrlen <= sizeof(a->v6)) {
		memcpy(&a->v6, found->ai_addr, found->ai_addrlen);
		a->len = found->ai_addrlen;
	}
	freeaddrinfo(found);
	return a->len ? 0 : GCOLL_ERR_INVAL;
}

int gci_address_parse(struct gci_address *a, const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char ip[GCI_ADDRESS_TEXT];
	uint64_t port;

	if (!len || len >= sizeof(ip) || gci_parse_uint(colon + 1, 65535, &port) || !port)
		return GCOLL_ERR_INVAL;
	if (text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return GCOLL_ERR_INVAL; /* where does the IPv6 address end? */
	}
	memcpy(ip, text, len);
	ip[len] = '\0';
	return len ? gci_address_make(a, ip, (uint16_t)port) : GCOLL_ERR_INVAL;
}

void gci_address_unmap(struct gci_address *a)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
		return;
	v4.sin_port = a->v6.sin6_port;
	memcpy(&v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, 4);
	a->v4 = v4;
	a->len = sizeof(v4);
}

void gci_address_ip(const struct gci_address *a, char text[GCI_ADDRESS_TEXT])
{
	if (getnameinfo(&a->any, a->len, text, GCI_ADDRESS_TEXT, NULL, 0, NI_NUMERICHOST))
		snprintf(text, GCI_ADDRESS_TEXT, "?");
}

void gci_address_format(const struct gci_address *a, char text[GCI_ADDRESS_TEXT])
{
	char ip[GCI_ADDRESS_TEXT];

	gci_address_ip(a, ip);
	if (*ip == '?')
		snprintf(text, GCI_ADDRESS_TEXT, "?");
	else
		snprintf(text, GCI_ADDRESS_TEXT, strchr(ip, ':') ? "[%.55s]:%u" : "%.55s:%u", ip,
			gci_address_port(a));
}
