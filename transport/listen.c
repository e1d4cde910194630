/* SPDX-License-Identifier: MIT */
#include "transport/listen.h"

#include <errno.h>
#include <unistd.h>

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
