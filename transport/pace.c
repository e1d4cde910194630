/* SPDX-License-Identifier: MIT */
#include "transport/pace.h"

#include "base/clock.h"

#define ETHERNET     14
#define IPV4         20
#define IPV6         40
#define TCP          20
#define TIMESTAMPS   12 /* RFC 7323, with its padding */
#define MTU          1500
#define LEAST_NBYTES (2 * (MTU + ETHERNET))
#define GSO_NBYTES   (64u << 10) /* the longest packet that a socket makes */
#define TSO_RTT_LOG  9           /* net.ipv4.tcp_tso_rtt_log: halved for each so many us */
#define FEWER        2           /* times as few packets are worth a timer of ours */

/* a * b / c, as far as it goes. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 v = (unsigned __int128)a * b / c;

	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

struct gci_wire gci_wire_of(uint32_t mss_nbytes, int ipv6, int timestamps)
{
	uint32_t ip = ipv6 ? IPV6 : IPV4, tcp = TCP + (timestamps ? TIMESTAMPS : 0);

	return (struct gci_wire){mss_nbytes ? mss_nbytes : MTU - ip - tcp, ETHERNET + ip + tcp};
}

uint64_t gci_wire_nbytes(const struct gci_wire *w, uint64_t payload_nbytes)
{
	return scale(payload_nbytes, (uint64_t)w->mss_nbytes + w->head_nbytes, w->mss_nbytes);
}

uint64_t gci_wire_payload(const struct gci_wire *w, uint64_t wire_nbytes)
{
	return scale(wire_nbytes, w->mss_nbytes, (uint64_t)w->mss_nbytes + w->head_nbytes);
}

uint64_t gci_pace_socket_rate(enum gci_paced_by by, uint64_t bps, const struct gci_wire *w)
{
	uint64_t rate = bps / 8;

	if (by != GCI_PACED_BY_FQ && by != GCI_PACED_BY_TCP)
		return UINT64_MAX;
	rate = gci_wire_payload(w, rate);
	return rate ? rate : 1;
}

enum gci_paced_by gci_pace_pair_by(uint64_t bps, uint32_t burst_nbytes, uint64_t rtt_ns)
{
	uint64_t packet_nbytes = scale(bps, GCI_NS_PER_MS, 8 * GCI_NS_PER_S);
	uint64_t halved = rtt_ns / 1000 >> TSO_RTT_LOG;

	packet_nbytes += halved < 32 ? GSO_NBYTES >> halved : 0;
	if (packet_nbytes < LEAST_NBYTES)
		packet_nbytes = LEAST_NBYTES;
	return burst_nbytes / FEWER > packet_nbytes ? GCI_PACED_BY_US : GCI_PACED_BY_TCP;
}

uint64_t gci_pace_share(uint64_t bps, unsigned n)
{
	return n > 1 ? bps / n : bps;
}

uint64_t gci_bucket_wait_ns(const struct gci_bucket *b, uint64_t now_ns)
{
	return b->paid_ns > now_ns ? b->paid_ns - now_ns : 0;
}

uint64_t gci_bucket_room(const struct gci_bucket *b, uint64_t now_ns)
{
	uint64_t nbytes;

	if (gci_bucket_wait_ns(b, now_ns))
		return 0;
	nbytes = scale(b->bps, GCI_NS_PER_MS, 8 * GCI_NS_PER_S);
	return nbytes > LEAST_NBYTES ? nbytes : LEAST_NBYTES;
}

void gci_bucket_take(struct gci_bucket *b, uint64_t nbytes, uint64_t now_ns)
{
	uint64_t from = b->paid_ns, ns = scale(nbytes, 8 * GCI_NS_PER_S, b->bps ? b->bps : 1);

	if (now_ns > GCI_BUCKET_CREDIT_NS && from < now_ns - GCI_BUCKET_CREDIT_NS)
		from = now_ns - GCI_BUCKET_CREDIT_NS;
	b->paid_ns = from > UINT64_MAX - ns ? UINT64_MAX : from + ns;
}

void gci_bucket_set(struct gci_bucket *b, uint64_t bps, uint64_t now_ns)
{
	uint64_t owed_ns = gci_bucket_wait_ns(b, now_ns);

	if (owed_ns)
		b->paid_ns = now_ns + scale(owed_ns, b->bps, bps ? bps : 1);
	b->bps = bps ? bps : 1;
}

int gci_pace_trim(struct iovec *iov, int n, uint64_t most)
{
	int i;

	for (i = 0; i < n; i++) {
		if (iov[i].iov_len >= most) {
			iov[i].iov_len = (size_t)most;
			return most ? i + 1 : i;
		}
		most -= iov[i].iov_len;
	}
	return n;
}
