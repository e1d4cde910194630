/* SPDX-License-Identifier: MIT
 * Packets of many segments, cut: what comes out must be what a card would have sent. */
#include "tests/test.h"

#include "base/prng.h"
#include "netem/segments.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define DATA 1448
#define SEGS 20

static uint8_t frame[65536];
static size_t nbytes;
static struct virtio_net_hdr vnet;

static unsigned at16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static uint32_t at32(const uint8_t *p)
{
	return (uint32_t)at16(p) << 16 | at16(p + 2);
}

/* The Internet checksum over a pseudo header and what follows, byte by byte: 0xffff where right. */
static unsigned sum_of(const uint8_t *ip, size_t begin, size_t n)
{
	int v6 = *ip >> 4 == 6;
	const uint8_t *addresses = ip + (v6 ? 8 : 12);
	uint64_t sum = n + IPPROTO_TCP;
	size_t i;

	for (i = 0; i < (v6 ? 32u : 8u); i++)
		sum += (uint64_t)addresses[i] << (i % 2 ? 0 : 8);
	for (i = 0; i < n; i++)
		sum += (uint64_t)ip[begin + i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (unsigned)sum;
}

static void make(int v6, size_t data)
{
	size_t ip = v6 ? 40 : 20, tcp = 32, i;
	uint8_t *h = frame + 14, *t = h + ip;
	unsigned sum;

	memset(frame, 0, sizeof(frame));
	nbytes = 14 + ip + tcp + data;
	for (i = 0; i < data; i++)
		t[tcp + i] = (uint8_t)(i * 7 + i / 251);
	if (v6) {
		h[0] = 0x60;
		h[6] = IPPROTO_TCP;
		h[4] = (uint8_t)((tcp + data) >> 8);
		h[5] = (uint8_t)(tcp + data);
		h[23] = 1, h[39] = 2;
	} else {
		h[0] = 0x45;
		h[2] = (uint8_t)((ip + tcp + data) >> 8);
		h[3] = (uint8_t)(ip + tcp + data);
		h[4] = 0xff, h[5] = 0xf0; /* so that the number goes over its end */
		h[8] = 64, h[9] = IPPROTO_TCP;
		h[12] = 10, h[15] = 1, h[16] = 10, h[19] = 2;
	}
	t[1] = 80, t[3] = 81;
	t[4] = 0xff, t[5] = 0xff, t[6] = 0xf0; /* so does this one */
	t[12] = 8 << 4;
	t[13] = 0x10 | 0x08 | 0x01 | 0x80;
	sum = sum_of(h, ip, 0);
	sum += (unsigned)(tcp + data); /* what the kernel leaves: of the pseudo header alone */
	sum = (sum & 0xffff) + (sum >> 16);
	t[16] = (uint8_t)(sum >> 8);
	t[17] = (uint8_t)sum;
	vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = (uint16_t)(14 + ip + tcp),
		.gso_size = DATA,
		.csum_start = (uint16_t)(14 + ip),
		.csum_offset = 16};
}

/* The cut as one piece of memory. */
static size_t assemble(const struct gci_segments_cut *cut, uint8_t *out)
{
	memcpy(out, cut->headers, cut->nheaders);
	memcpy(out + cut->nheaders, frame + cut->offset, cut->nbytes);
	return cut->nheaders + cut->nbytes;
}

static void check_cut(const struct gci_segments *s, uint16_t first, uint16_t count)
{
	static uint8_t out[65536];
	struct gci_segments_cut cut;
	const uint8_t *ip = out + 14, *tcp = out + s->transport;
	size_t data = (size_t)count * DATA, n, headers = s->headers;
	int last = first + count == s->n;
	uint64_t sum;

	gci_segments_cut(s, &vnet, frame, first, count, &cut);
	n = assemble(&cut, out);
	if (last)
		data = nbytes - headers - (size_t)first * DATA;
	assert_int_equal(n, headers + data);
	assert_memory_equal(out + headers, frame + headers + (size_t)first * DATA, data);
	assert_int_equal(cut.vnet.gso_type, count == 1 ? VIRTIO_NET_HDR_GSO_NONE : vnet.gso_type);
	assert_int_equal(at32(tcp + 4), 0xfffff000u + (uint32_t)first * DATA);
	assert_int_equal(tcp[13], 0x10 | (last ? 0x09 : 0) | (first ? 0 : 0x80));
	if (*ip >> 4 == 4) {
		assert_int_equal(at16(ip + 2), n - 14);
		assert_int_equal(at16(ip + 4), (0xfff0u + first) & 0xffff);
		for (sum = 0, n = 0; n < 20; n += 2)
			sum += at16(ip + n);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal(sum, 0xffff);
	} else {
		assert_int_equal(at16(ip + 4), n - 14 - 40);
	}
	/* Finished as whoever needs it would, it is right. */
	n = headers + data;
	assert_int_equal(cut.vnet.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	gci_segments_corrupt(&cut.vnet, out, n, 5);
	out[14] ^= 1 << 5; /* the bit that was flipped */
	assert_int_equal(cut.vnet.flags, 0);
	assert_int_equal(sum_of(ip, s->transport - 14u, n - s->transport), 0xffff);
}

static void every_cut(int v6, size_t data)
{
	struct gci_segments s;
	uint16_t first, count;

	make(v6, data);
	gci_segments_read(&s, &vnet, frame, 2048, nbytes);
	assert_int_equal(s.n, (data + DATA - 1) / DATA);
	assert_int_equal(s.segment_nbytes, s.headers + DATA);
	assert_int_equal(s.last_nbytes, s.headers + (data - 1) % DATA + 1);
	for (first = 0; first < s.n; first++)
		for (count = 1; first + count <= s.n && count < s.n; count++)
			check_cut(&s, first, count);
}

static void cuts(void **state)
{
	(void)state;
	every_cut(0, DATA * SEGS);
	every_cut(0, DATA * SEGS - 1);
	every_cut(0, DATA * SEGS + 1);
	every_cut(1, DATA * SEGS + 700);
	every_cut(0, DATA + 1);
}

static void whole(void **state)
{
	struct gci_segments_cut cut;
	struct gci_segments s;

	(void)state;
	make(0, DATA * SEGS);
	gci_segments_read(&s, &vnet, frame, 2048, nbytes);
	gci_segments_cut(&s, &vnet, frame, 0, SEGS, &cut);
	assert_int_equal(cut.nheaders, 0);
	assert_int_equal(cut.offset, 0);
	assert_int_equal(cut.nbytes, nbytes);
	assert_memory_equal(&cut.vnet, &vnet, sizeof(vnet));
}

/* Whatever it is, it has a length, and nothing is looked for where it does not reach. */
static void what_cannot_be_cut(void **state)
{
	struct gci_segments s;
	uint64_t flow;
	size_t have;

	(void)state;
	make(0, DATA * SEGS);
	for (have = 0; have < 66; have++) {
		gci_segments_read(&s, &vnet, frame, have, nbytes);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.last_nbytes, nbytes);
	}
	gci_segments_read(&s, &vnet, frame, 66, nbytes);
	assert_int_equal(s.n, SEGS);
	flow = s.flow;
	frame[14 + 20 + 3]++; /* another port */
	gci_segments_read(&s, &vnet, frame, 66, nbytes);
	assert_true(s.flow != flow);
	frame[14 + 20 + 12] = 4 << 4; /* TCP's header: too short */
	gci_segments_read(&s, &vnet, frame, 66, nbytes);
	assert_int_equal(s.n, 1);
	make(0, DATA * SEGS);
	vnet.gso_size = 0;
	gci_segments_read(&s, &vnet, frame, 66, nbytes);
	assert_int_equal(s.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts),
		cmocka_unit_test(whole),
		cmocka_unit_test(what_cannot_be_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
