/* SPDX-License-Identifier: MIT */
#include "transport/sockopt.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* More than this that waits in the kernel, not sent, belongs rather to another stream. */
#define NOTSENT_NBYTES (256 << 10)

#define PROBES 3 /* unanswered ones that make a connection dead */

static void set(int fd, int level, int name, int value, const char *what)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		gci_log(GCI_LOG_INFO, "%s = %d: %s", what, value, strerror(errno));
}

/* Sets a buffer's size and returns what the kernel made of it. It doubles the value, for its own
 * bookkeeping, and reads back as doubled. */
static uint64_t set_buffer(int fd, int name, uint64_t nbytes)
{
	int value = nbytes < INT_MAX / 2 ? (int)nbytes : INT_MAX / 2;
	socklen_t len = sizeof(value);

	if (setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value)) ||
		getsockopt(fd, SOL_SOCKET, name, &value, &len))
		return 0;
	return (uint64_t)value / 2;
}

static void set_buffers(int fd, int peer, uint64_t nbytes, struct gci_sockopt_said *said)
{
	uint64_t sndbuf = set_buffer(fd, SO_SNDBUF, nbytes);
	uint64_t rcvbuf = set_buffer(fd, SO_RCVBUF, nbytes);

	if (!said->buffers) {
		said->buffers = 1;
		gci_log(GCI_LOG_INFO,
			"socket buffers to rank %d: asked for %llu bytes, send %llu, receive %llu",
			peer, (unsigned long long)nbytes, (unsigned long long)sndbuf,
			(unsigned long long)rcvbuf);
	}
	if (said->small || (sndbuf >= nbytes && rcvbuf >= nbytes))
		return;
	said->small = 1;
	gci_log(GCI_LOG_WARN,
		"socket buffers of %llu bytes were asked for, the kernel gave %llu; "
		"raise it with: sysctl -w net.core.%s=%llu",
		(unsigned long long)nbytes, (unsigned long long)(sndbuf < rcvbuf ? sndbuf : rcvbuf),
		sndbuf < nbytes ? (rcvbuf < nbytes ? "{r,w}mem_max" : "wmem_max") : "rmem_max",
		(unsigned long long)nbytes);
}

/* An idle connection notices by keepalive that the other host has gone. One with data under way is
 * watched in tcp_watch.c instead of by TCP_USER_TIMEOUT, which would also end a connection whose
 * peer is well, but has not read for a while (a full window). */
static void set_keepalive(int fd, uint64_t dead_ns)
{
	uint64_t s = dead_ns / GCI_NS_PER_S;
	int probe_s = (int)(s / (2 * PROBES) < 1 ? 1 : s / (2 * PROBES));
	int idle_s = (int)(s / 2 < 1 ? 1 : s / 2);

	if (s > 86400)
		return;
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s, "TCP_KEEPIDLE");
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_s, "TCP_KEEPINTVL");
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES, "TCP_KEEPCNT");
}

void gci_sockopt_data(int fd, int peer, const struct gci_tp_link *link, const char *congestion,
	struct gci_sockopt_said *said)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_NBYTES, "TCP_NOTSENT_LOWAT");
	if (link->dead_ns)
		set_keepalive(fd, link->dead_ns);
	if (link->sockbuf_nbytes)
		set_buffers(fd, peer, link->sockbuf_nbytes, said);
	if (!congestion || link->streams < 2)
		return;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion)) &&
		!said->congestion) {
		said->congestion = 1;
		gci_log(GCI_LOG_WARN,
			"congestion control \"%s\": %s; see "
			"net.ipv4.tcp_available_congestion_control",
			congestion, strerror(errno));
	}
}
