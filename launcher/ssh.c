/* SPDX-License-Identifier: MIT */
#include "launcher/ssh.h"

#include "gridcoll/gridcoll.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_S    86400              /* for an address; ssh counts in milliseconds, of 31 bits */
#define WAITED_NS (GCI_NS_PER_S / 2) /* for a name; else whoever answers was asked */

/* For a shell. */
static void quote(struct gci_buf *out, const char *s)
{
	gci_buf_put_u8(out, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			gci_buf_printf(out, "'\\''");
		else
			gci_buf_put_u8(out, (uint8_t)*s);
	}
	gci_buf_put_u8(out, '\'');
}

void gci_quote_if_needed(struct gci_buf *out, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=:,./@%";

	if (*s && !s[strspn(s, plain)])
		gci_buf_printf(out, "%s", s);
	else
		quote(out, s);
}

int gci_ssh_make(struct gci_ssh *s, const char *host, const char *remote_path, uint64_t timeout_ns)
{
	static char ssh[] = "ssh", batch[] = "-oBatchMode=yes", t[] = "-T";
	/* A master connection made by us would end with us, with others' sessions on it. */
	static char master[] = "-oControlMaster=no";
	static char once[] = "-oConnectionAttempts=1";
	/* A line on standard output once the host has let us in, however long its login scripts take. */
	static char permit[] = "-oPermitLocalCommand=yes", local[] = "-oLocalCommand=echo";
	uint64_t s_left = timeout_ns / GCI_NS_PER_S;
	char **arg = s->argv;

	memset(s, 0, sizeof(*s));
	/* ssh says more than we would about an address that is silent: it has the first word. */
	s_left = s_left < 2 ? 1 : s_left > MOST_S ? MOST_S : s_left - 1;
	snprintf(s->timeout, sizeof(s->timeout), "-oConnectTimeout=%u", (unsigned)s_left);
	quote(&s->far, remote_path);
	gci_buf_printf(&s->far, " --agent");
	*arg++ = ssh;
	*arg++ = batch;
	*arg++ = master;
	*arg++ = s->timeout;
	*arg++ = once;
	*arg++ = permit;
	*arg++ = local;
	*arg++ = t;
	*arg++ = (char *)(uintptr_t)host;
	*arg++ = (char *)(uintptr_t)gci_buf_cstr(&s->far);
	return s->far.failed ? GCOLL_ERR_NOMEM : 0;
}

void gci_ssh_free(struct gci_ssh *s)
{
	gci_buf_free(&s->far);
}

void gci_ssh_print(
	struct gci_buf *out, const char *host, const char *remote_path, uint64_t timeout_ns)
{
	struct gci_ssh ssh;
	char **s;

	if (gci_ssh_make(&ssh, host, remote_path, timeout_ns))
		out->failed = 1;
	for (s = ssh.argv; *s; s++) {
		gci_buf_printf(out, "%s", s == ssh.argv ? "" : " ");
		gci_quote_if_needed(out, *s);
	}
	gci_ssh_free(&ssh);
}

/* The way to an address of this machine begins at that address; to 127.0.1.1, at 127.0.0.1. */
static int is_own_address(const struct sockaddr *to, const struct sockaddr_storage *from)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)to,
				 *from_v4 = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)to,
				  *from_v6 = (const struct sockaddr_in6 *)from;

	if (to->sa_family == AF_INET)
		return v4->sin_addr.s_addr == from_v4->sin_addr.s_addr ||
		       ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return to->sa_family == AF_INET6 && IN6_ARE_ADDR_EQUAL(&v6->sin6_addr, &from_v6->sin6_addr);
}

int gci_route_to(const char *host, char *ip, size_t size, int *is_own)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL, *it;
	struct sockaddr_storage self;
	socklen_t len;
	const char *at = strrchr(host, '@');
	uint64_t begin_ns = gci_now_ns();
	int fd, rc = getaddrinfo(at ? at + 1 : host, "9", &hints, &list);

	if (rc == EAI_AGAIN && gci_now_ns() - begin_ns > WAITED_NS)
		return GCOLL_ERR_TIMEOUT;
	if (rc)
		return GCOLL_ERR_SYS;
	rc = GCOLL_ERR_SYS;
	*is_own = 0;
	for (it = list; it && rc; it = it->ai_next) {
		fd = socket(it->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		len = sizeof(self);
		/* Connecting a datagram socket sends nothing, but looks the route up. */
		if (!connect(fd, it->ai_addr, it->ai_addrlen) &&
			!getsockname(fd, (struct sockaddr *)&self, &len)) {
			*is_own = is_own_address(it->ai_addr, &self);
			rc = getnameinfo((struct sockaddr *)&self, len, ip, (socklen_t)size, NULL,
				     0, NI_NUMERICHOST)
				     ? GCOLL_ERR_SYS
				     : 0;
		}
		close(fd);
	}
	freeaddrinfo(list);
	return rc;
}
