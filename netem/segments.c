/* SPDX-License-Identifier: MIT */
#include "netem/segments.h"

#include "base/prng.h"

#include <netinet/in.h>
#include <string.h>

#define ETHERNET 14
#define IPV6     40

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

/* The Internet checksum's sum (RFC 1071), not yet folded; of few bytes, or 64 KiB. */
static uint64_t add_up(uint64_t sum, const uint8_t *p, size_t n)
{
	for (; n > 1; p += 2, n -= 2)
		sum += get16(p);
	return n ? sum + (uint64_t)(*p << 8) : sum;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Where IP's header ends and what follows; 0: it is none, or too short. */
static size_t read_network(const uint8_t *ip, size_t have, uint8_t *protocol)
{
	if (have >= 20 && ip[0] >> 4 == 4 && (ip[0] & 15) >= 5) {
		*protocol = ip[9];
		return (size_t)(ip[0] & 15) * 4;
	}
	if (have >= IPV6 && ip[0] >> 4 == 6) { /* extensions: none that TCP's packets have here */
		*protocol = ip[6];
		return IPV6;
	}
	return 0;
}

static uint64_t hash_sender(const uint8_t *ip)
{
	return ip[0] >> 4 == 6 ? gci_digest_bytes(6, ip + 8, 16) : gci_digest_bytes(4, ip + 12, 4);
}

/* Addresses, and ports where there are some. */
static uint64_t hash_flow(const uint8_t *ip, size_t length, uint8_t protocol, size_t have)
{
	int v6 = ip[0] >> 4 == 6;
	uint64_t h = gci_digest_bytes(protocol, v6 ? ip + 8 : ip + 12, v6 ? 32 : 8);
	int fragment = !v6 && (get16(ip + 6) & 0x1fff);

	if ((protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) && !fragment && have >= length + 4)
		h = gci_digest(h, get32(ip + length));
	return h;
}

void gci_segments_read(struct gci_segments *s, const struct virtio_net_hdr *vnet,
	const uint8_t *frame, size_t have, size_t nbytes)
{
	uint8_t type = vnet->gso_type & 0x7f, protocol = 0; /* but for ECN */
	size_t network = ETHERNET, length, headers, data;
	uint64_t n;

	*s = (struct gci_segments){.nbytes = (uint32_t)nbytes,
		.n = 1,
		.segment_nbytes = (uint32_t)nbytes,
		.last_nbytes = (uint32_t)nbytes};
	if (have <= network)
		return;
	length = read_network(frame + network, have - network, &protocol);
	if (!length || have < network + length)
		return;
	s->flow = hash_flow(frame + network, length, protocol, have - network);
	s->sender = hash_sender(frame + network);
	if ((type != VIRTIO_NET_HDR_GSO_TCPV4 && type != VIRTIO_NET_HDR_GSO_TCPV6) ||
		protocol != IPPROTO_TCP || !vnet->gso_size || have < network + length + 20)
		return;
	headers = network + length + (size_t)(frame[network + length + 12] >> 4) * 4;
	if (headers < network + length + 20 || headers > GCI_SEGMENTS_HEADERS || headers > have ||
		headers >= nbytes)
		return;
	data = nbytes - headers;
	n = (data + vnet->gso_size - 1) / vnet->gso_size;
	if (n < 2 || n > UINT16_MAX)
		return;
	s->headers = (uint16_t)headers;
	s->network = (uint16_t)network;
	s->transport = (uint16_t)(network + length);
	s->data = vnet->gso_size;
	s->n = (uint16_t)n;
	s->segment_nbytes = (uint32_t)(headers + s->data);
	s->last_nbytes = (uint32_t)(headers + data - (n - 1) * s->data);
}

/* TCP's length is part of the sum that the kernel leaves unfinished, in the place of the checksum. */
static void set_sum(struct gci_segments_cut *out, const struct gci_segments *s, uint32_t length)
{
	const uint8_t *ip = out->headers + s->network;
	uint64_t sum = IPPROTO_TCP + length;

	sum = *ip >> 4 == 6 ? add_up(sum, ip + 8, 32) : add_up(sum, ip + 12, 8);
	put16(out->headers + s->transport + 16, fold(sum));
	out->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	out->vnet.csum_start = s->transport;
	out->vnet.csum_offset = 16;
}

static void set_network(struct gci_segments_cut *out, const struct gci_segments *s, uint16_t first)
{
	uint8_t *ip = out->headers + s->network;
	uint32_t length = (uint32_t)(s->headers - s->network) + out->nbytes;

	if (*ip >> 4 == 6) {
		put16(ip + 4, length - IPV6);
		return;
	}
	put16(ip + 2, length);
	put16(ip + 4, (uint32_t)get16(ip + 4) + first);
	put16(ip + 10, 0);
	put16(ip + 10, (uint16_t)~fold(add_up(0, ip, (size_t)(s->transport - s->network))));
}

void gci_segments_cut(const struct gci_segments *s, const struct virtio_net_hdr *vnet,
	const uint8_t *frame, uint16_t first, uint16_t count, struct gci_segments_cut *out)
{
	enum { FIN = 1, PSH = 8, CWR = 128 };
	int is_last = first + count == s->n;
	uint8_t *tcp;
	uint32_t seq;

	memset(out, 0, sizeof(*out));
	out->vnet = *vnet;
	out->nbytes = s->nbytes;
	if (count == s->n)
		return;
	out->nheaders = s->headers;
	out->offset = s->headers + (uint32_t)first * s->data;
	out->nbytes = is_last ? s->nbytes - out->offset : (uint32_t)count * s->data;
	memcpy(out->headers, frame, s->headers);
	set_network(out, s, first);
	tcp = out->headers + s->transport;
	seq = get32(tcp + 4) + (uint32_t)first * s->data;
	put16(tcp + 4, seq >> 16);
	put16(tcp + 6, seq);
	if (!is_last)
		tcp[13] &= (uint8_t) ~(FIN | PSH);
	if (first)
		tcp[13] &= (uint8_t)~CWR;
	set_sum(out, s, (uint32_t)(s->headers - s->transport) + out->nbytes);
	if (count == 1) {
		out->vnet.gso_type = VIRTIO_NET_HDR_GSO_NONE;
		out->vnet.gso_size = out->vnet.hdr_len = 0;
	}
}

void gci_segments_corrupt(
	struct virtio_net_hdr *vnet, uint8_t *frame, size_t nbytes, uint64_t random)
{
	size_t start = vnet->csum_start, at = start + vnet->csum_offset, bit;

	if (vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && start < nbytes && at + 2 <= nbytes) {
		uint16_t sum = (uint16_t)~fold(add_up(0, frame + start, nbytes - start));

		put16(frame + at, sum ? sum : 0xffff); /* UDP: 0 means none */
	}
	memset(vnet, 0, sizeof(*vnet));
	if (nbytes <= ETHERNET)
		return;
	bit = (size_t)(random % ((nbytes - ETHERNET) * 8));
	frame[ETHERNET + bit / 8] ^= (uint8_t)(1 << bit % 8);
}
