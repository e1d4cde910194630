/* SPDX-License-Identifier: MIT
 * How a socket is doing. A file of its own: of struct tcp_info the kernel's header knows more than
 * the C library's, and the two cannot be read together. */
#include "transport/sockopt.h"

#include "base/clock.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define STATE_CLOSE 7 /* TCP_CLOSE; after an end of file it is CLOSE_WAIT */

static int number(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, level, name, &value, &len) ? 0 : value;
}

int gci_sockopt_was_reset(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state == STATE_CLOSE;
}

static uint64_t smaller(uint64_t a, int b)
{
	uint64_t v = b > 0 ? (uint64_t)b : 0;

	return !v || (a && a < v) ? a : v;
}

static uint64_t limit_of(int fd)
{
	unsigned long rate = ~0ul;
	socklen_t len = sizeof(rate);

	if (getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &len) || rate == ~0ul ||
		(len == sizeof(int) && (uint32_t)rate == UINT32_MAX))
		return UINT64_MAX;
	return rate;
}

void gci_sockopt_look(int fd, struct gci_tp_socket *s)
{
	int locked = number(fd, SOL_SOCKET, SO_BUF_LOCK);
	struct tcp_info info = {0};
	socklen_t len = sizeof(info), name_len = sizeof(s->congestion);
	uint64_t rtt_ns, limit = limit_of(fd);

	s->limit = limit > UINT64_MAX - s->limit ? UINT64_MAX : s->limit + limit;
	s->sndbuf_nbytes = smaller(s->sndbuf_nbytes, number(fd, SOL_SOCKET, SO_SNDBUF));
	s->rcvbuf_nbytes = smaller(s->rcvbuf_nbytes, number(fd, SOL_SOCKET, SO_RCVBUF));
	s->sndbuf_set |= !!(locked & GCI_SEND_LOCKED);
	s->rcvbuf_set |= !!(locked & GCI_RECEIVE_LOCKED);
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, s->congestion, &name_len))
		name_len = 0;
	s->congestion[name_len < sizeof(s->congestion) ? name_len : sizeof(s->congestion) - 1] =
		'\0';
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return;
	rtt_ns = info.tcpi_rtt * GCI_NS_PER_US;
	s->rtt_ns = rtt_ns > s->rtt_ns ? rtt_ns : s->rtt_ns;
	s->mss_nbytes = (uint32_t)smaller(s->mss_nbytes, (int)info.tcpi_snd_mss);
	s->resent += info.tcpi_total_retrans;
	s->busy_ns += info.tcpi_busy_time * GCI_NS_PER_US;
	s->window_limited_ns += info.tcpi_rwnd_limited * GCI_NS_PER_US;
	s->buffer_limited_ns += info.tcpi_sndbuf_limited * GCI_NS_PER_US;
}

/* UINT64_MAX: no limit. */
static uint64_t bits(uint64_t bytes_per_s)
{
	return bytes_per_s > UINT64_MAX / 8 ? 0 : 8 * bytes_per_s;
}

void gci_sockopt_flow(int fd, struct gci_flow *f)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return;
	f->sent_nbytes = info.tcpi_bytes_sent;
	f->resent_nbytes = info.tcpi_bytes_retrans;
	f->acked_nbytes = info.tcpi_bytes_acked;
	f->received_nbytes = info.tcpi_bytes_received;
	f->resent = info.tcpi_total_retrans;
	f->rtt_ns = info.tcpi_rtt * GCI_NS_PER_US;
	f->cwnd_nbytes = (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss;
	f->pacing_bps = bits(info.tcpi_pacing_rate);
	f->delivery_bps = bits(info.tcpi_delivery_rate);
}
