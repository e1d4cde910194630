/* SPDX-License-Identifier: MIT */
#include "transport/address.h"

#include "base/units.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* ---- listening */

#define BACKLOG 4096

static int is_any6(const struct gci_address *at)
{
	return at->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr);
}

static int make_socket(struct gci_address *at)
{
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int fd = socket(at->any.sa_family, type, 0);

	if (fd < 0 && errno == EAFNOSUPPORT && is_any6(at) && !gci_address_make(at, "0.0.0.0", 0))
		fd = socket(AF_INET, type, 0); /* no IPv6 here */
	return fd;
}

static int set_options(int fd, const struct gci_address *at)
{
	int yes = 1, no = 0;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); /* or some port is taken */
	if (!is_any6(at))
		return 0;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)); /* IPv4, too */
}

/* A new socket for each port: two processes may both bind one, and only one of them listen. */
static int listen_at(struct gci_address *at, uint32_t port)
{
	int fd = make_socket(at), error;
	struct gci_address bound;

	if (fd < 0)
		return -1;
	bound = *at;
	gci_address_set_port(&bound, (uint16_t)port);
	if (!set_options(fd, at) && !bind(fd, &bound.any, bound.len) && !listen(fd, BACKLOG) &&
		!getsockname(fd, &bound.any, &bound.len)) {
		gci_address_set_port(at, gci_address_port(&bound));
		return fd;
	}
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int gci_listen(struct gci_address *at, const struct gci_ports *ports, uint32_t turn, int *fd,
	struct gci_error *e)
{
	uint32_t n = (uint32_t)(ports->hi - ports->lo) + 1, i;
	char ip[GCI_ADDRESS_TEXT];

	for (i = 0; i < n; i++) {
		*fd = listen_at(at, ports->lo + (turn % n + i) % n);
		if (*fd >= 0)
			return 0;
		if (errno != EADDRINUSE && errno != EACCES)
			break;
	}
	gci_address_ip(at, ip);
	if (!ports->lo || i < n)
		return gci_error_errno(e, "cannot listen on %s", ip);
	return gci_error_errno(e,
		"no port from %u to %u can be had on %s (expected one for each rank of a host, and "
		"one for gridcoll-run)",
		ports->lo, ports->hi, ip);
}
