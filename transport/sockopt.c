/* SPDX-License-Identifier: MIT */
#include "transport/sockopt.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"
#include "base/units.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Unanswered ones that make a connection dead. */
#define LEAST_PROBES 3
#define MOST_PROBES  9
#define MOST_IDLE_S  32767 /* TCP_KEEPIDLE, as the kernel has it */

enum { SMALL = 1, SHORT_SEND = 2, SHORT_RECEIVE = 4, CONGESTION = 8 };

static void set(int fd, int level, int name, int value, const char *what)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		gci_log(GCI_LOG_INFO, "%s = %d: %s", what, value, strerror(errno));
}

/* True the first time. */
static int first(struct gci_sockopts *o, int what)
{
	int is = !(o->warned & what);

	o->warned |= what;
	return is;
}

/* An idle connection notices by keepalive that the other host has gone. One with data under way is
 * watched in tcp.c instead of by TCP_USER_TIMEOUT, which would also end a connection whose
 * peer is well, but has not read for a while (a full window).
 *
 * Thousands of connections that fall idle at the same time must not ask at the same time, and not
 * only a few times: at one tick's end Linux drops what does not fit into netdev_max_backlog, on the
 * loopback as well. So they begin at different seconds, and ask up to nine times. */
static void set_keepalive(int fd, uint64_t dead_ns)
{
	uint64_t half_s = dead_ns / GCI_NS_PER_S / 2;
	int probes, idle_s;

	if (half_s > MOST_IDLE_S)
		return;
	probes = half_s < LEAST_PROBES  ? LEAST_PROBES
		 : half_s > MOST_PROBES ? MOST_PROBES
					: (int)half_s;
	idle_s = (int)half_s - fd % ((int)half_s / 2 + 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s < 1 ? 1 : idle_s, "TCP_KEEPIDLE");
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, half_s < MOST_PROBES ? 1 : (int)half_s / MOST_PROBES,
		"TCP_KEEPINTVL");
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, probes, "TCP_KEEPCNT");
}

void gci_sockopt_control(int fd)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	set(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1, "TCP_THIN_LINEAR_TIMEOUTS");
}

/* ---- buffers */

static uint64_t buffer_of(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) || value < 0 ? 0 : (uint64_t)value;
}

/* Returns what the kernel made of it, in the same terms. */
static uint64_t set_buffer(int fd, int name, uint64_t nbytes)
{
	int value = nbytes < INT_MAX / 2 ? (int)nbytes : INT_MAX / 2;

	if (setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value)))
		return 0;
	return buffer_of(fd, name) / 2;
}

/* The size that the user wants. */
static void set_both(struct gci_sockopts *o, int fd, uint64_t nbytes)
{
	uint64_t sndbuf = set_buffer(fd, SO_SNDBUF, nbytes);
	uint64_t rcvbuf = set_buffer(fd, SO_RCVBUF, nbytes);

	if ((sndbuf >= nbytes && rcvbuf >= nbytes) || !first(o, SMALL))
		return;
	gci_log(GCI_LOG_WARN,
		"socket buffers of %llu bytes were asked for, the kernel gave %llu; going on with "
		"these, raise them with: sysctl -w net.core.%s=%llu",
		(unsigned long long)nbytes, (unsigned long long)(sndbuf < rcvbuf ? sndbuf : rcvbuf),
		sndbuf < nbytes ? (rcvbuf < nbytes ? "{r,w}mem_max" : "wmem_max") : "rmem_max",
		(unsigned long long)nbytes);
}

static void say_short(
	struct gci_sockopts *o, int peer, const struct gci_tp_link *l, uint64_t reach, int receives)
{
	char has[16], needs[16], rate[16], full[16];

	if (reach >= l->flight_nbytes || !first(o, receives ? SHORT_RECEIVE : SHORT_SEND))
		return;
	gci_log(GCI_LOG_WARN,
		"connections such as those to rank %d need %s in flight each, and socket buffers "
		"let them %s %s: %s together instead of %s; raise the third figure of "
		"net.ipv4.%s to %llu (gridcoll doctor tells how)",
		peer, gci_format_bytes(l->flight_nbytes, needs, sizeof(needs)),
		receives ? "receive" : "send", gci_format_bytes(reach, has, sizeof(has)),
		gci_format_rate(gci_sockbuf_rate(reach, l->streams, l->rtt_ns), rate, sizeof(rate)),
		gci_format_rate(gci_sockbuf_rate(l->flight_nbytes, l->streams, l->rtt_ns), full,
			sizeof(full)),
		receives ? "tcp_rmem" : "tcp_wmem",
		(unsigned long long)gci_sockbuf_sysctl(l->flight_nbytes));
}

/* As large as the link needs: by the kernel's own growth, or by setsockopt. */
static void set_needed(struct gci_sockopts *o, int fd, int peer, const struct gci_tp_link *l)
{
	struct gci_sockbuf snd, rcv;

	if (!o->knows_max)
		gci_sockmax_read(&o->max);
	o->knows_max = 1;
	gci_sockbuf_send(&snd, l->flight_nbytes, &o->max);
	gci_sockbuf_receive(&rcv, l->flight_nbytes, &o->max);
	if (snd.set_nbytes)
		set_buffer(fd, SO_SNDBUF, snd.set_nbytes);
	if (rcv.set_nbytes)
		set_buffer(fd, SO_RCVBUF, rcv.set_nbytes);
	say_short(o, peer, l, snd.reach_nbytes, 0);
	say_short(o, peer, l, rcv.reach_nbytes, 1);
}

/* A buffer grows by itself only as the window does, and that does not grow while the buffer holds it back: it
 * begins anew with as much as a process may ask for, or this. */
#define FREE_NBYTES (1u << 20)

int gci_sockopt_window(int fd, uint64_t nbytes)
{
	int locked = 0;
	socklen_t len = sizeof(locked);

	if (getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, &len))
		return 0;
	set_buffer(fd, SO_SNDBUF, nbytes ? nbytes / 2 : FREE_NBYTES); /* the kernel doubles it */
	locked &= ~GCI_SEND_LOCKED;
	return nbytes || !setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, sizeof(locked));
}

/* ---- congestion control */

static int set_congestion(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

static void congestion_list(const char *which, char *out, size_t size)
{
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/tcp_%s_congestion_control", which);
	f = fopen(path, "re");
	if (!f || !fgets(out, (int)size, f))
		snprintf(out, size, "?");
	out[strcspn(out, "\n")] = '\0';
	if (f)
		fclose(f);
}

int gci_sockopt_congestion(const char *name, struct gci_error *e)
{
	int fd = gci_sockbuf_ask(), error = 0;
	char list[256];

	if (fd < 0)
		return gci_error_errno(e, "no socket to try congestion control on");
	if (strlen(name) > 15 || set_congestion(fd, name))
		error = strlen(name) > 15 ? ENOENT : errno;
	close(fd);
	if (!error)
		return 0;
	congestion_list(error == EPERM ? "allowed" : "available", list, sizeof(list));
	if (error == EPERM)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"\"%s\" is for privileged users only (see "
			"net.ipv4.tcp_allowed_congestion_control), expected one of: %s",
			name, list);
	return gci_error_set(e, GCOLL_ERR_INVAL,
		"\"%.40s\" is not in this kernel (perhaps modprobe tcp_%.40s helps), "
		"expected one of: %s",
		name, name, list);
}

/* ---- slow start */

#define SEGMENT      1448       /* bytes, on Ethernet */
#define FIRST_WINDOW 10         /* segments, RFC 6928 */
#define NO_THRESHOLD 0x7fffffff /* as the kernel shows that slow start has not ended */

static int is_cubic(int fd)
{
	char name[17] = "";
	socklen_t len = sizeof(name) - 1;

	return !getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) && !strcmp(name, "cubic");
}

/* There and back, before a connection depends on it. */
static int may_start(struct gci_sockopts *o)
{
	int fd;

	if (o->may_start)
		return o->may_start > 0;
	fd = gci_sockbuf_ask();
	o->may_start =
		fd >= 0 && !set_congestion(fd, "reno") && !set_congestion(fd, "cubic") ? 1 : -1;
	if (fd >= 0)
		close(fd);
	return o->may_start > 0;
}

int gci_sockopt_start(struct gci_sockopts *o, int fd, const struct gci_tp_link *link)
{
	return link->flight_nbytes > FIRST_WINDOW * SEGMENT && is_cubic(fd) && may_start(o) &&
	       !set_congestion(fd, "reno");
}

int gci_sockopt_has_started(int fd, const struct gci_tp_link *link)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
		info.tcpi_snd_ssthresh >= NO_THRESHOLD &&
		(uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss < link->flight_nbytes)
		return 0;
	set_congestion(fd, "cubic");
	return 1;
}

/* ---- all of a connection, as its link wants it */

/* The same for all links that are treated alike. */
static uint64_t kind_of(const struct gci_tp_link *l)
{
	uint64_t d = gci_digest(l->streams, l->flight_nbytes);

	d = gci_digest(gci_digest(d, l->rtt_ns), l->sockbuf_nbytes);
	return gci_digest(
		d, l->congestion ? gci_digest_bytes(1, l->congestion, strlen(l->congestion)) : 0);
}

static int is_told(struct gci_sockopts *o, uint64_t kind)
{
	unsigned i;

	for (i = 0; i < o->ntold; i++)
		if (o->told[i] == kind)
			return 1;
	if (o->ntold < GCI_SOCKOPT_KINDS)
		o->told[o->ntold++] = kind;
	else
		return 1;
	return 0;
}

static void tell(struct gci_sockopts *o, int fd, int peer, const struct gci_tp_link *l)
{
	struct gci_tp_socket s = {0};
	char each[16], snd[16], rcv[16];

	if (!gci_log_enabled(GCI_LOG_INFO) || is_told(o, kind_of(l)))
		return;
	gci_sockopt_look(fd, &s);
	gci_log(GCI_LOG_INFO,
		"connections such as those to rank %d: %u stream%s, %s in flight each; send buffer "
		"%s%s, receive buffer %s%s, congestion control %s",
		peer, (unsigned)l->streams, l->streams == 1 ? "" : "s",
		l->flight_nbytes ? gci_format_bytes(l->flight_nbytes, each, sizeof(each))
				 : "an unknown number of bytes",
		gci_format_bytes(s.sndbuf_nbytes, snd, sizeof(snd)),
		s.sndbuf_set ? " (set)" : " at first",
		gci_format_bytes(s.rcvbuf_nbytes, rcv, sizeof(rcv)),
		s.rcvbuf_set ? " (set)" : " at first", s.congestion);
}

void gci_sockopt_unsent(int fd, const struct gci_tp_link *link, uint32_t most)
{
	uint32_t unsent = gci_sockbuf_unsent(link->flight_nbytes, link->streams);

	set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, (int)(most && most < unsent ? most : unsent),
		"TCP_NOTSENT_LOWAT");
}

void gci_sockopt_data(struct gci_sockopts *o, int fd, int peer, const struct gci_tp_link *link)
{
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	gci_sockopt_unsent(fd, link, 0);
	if (link->dead_ns)
		set_keepalive(fd, link->dead_ns);
	if (link->sockbuf_nbytes)
		set_both(o, fd, link->sockbuf_nbytes);
	else if (link->flight_nbytes)
		set_needed(o, fd, peer, link);
	if (link->congestion && set_congestion(fd, link->congestion) && first(o, CONGESTION))
		gci_log(GCI_LOG_WARN,
			"congestion control \"%s\": %s; using the system's own, see "
			"net.ipv4.tcp_available_congestion_control",
			link->congestion, strerror(errno));
	tell(o, fd, peer, link);
}
