/* SPDX-License-Identifier: MIT */
#include "transport/reach.h"

#include <stdio.h>
#include <string.h>

static int is_six(const struct gci_reach *r, unsigned i)
{
	return r->six >> i & 1;
}

static size_t ip_nbytes(const struct gci_reach *r, unsigned i)
{
	return is_six(r, i) ? 16 : 4;
}

int gci_reach_add(struct gci_reach *r, const struct gci_address *a)
{
	int six = a->any.sa_family == AF_INET6;

	if (r->n == GCI_REACH_MAX || (!six && a->any.sa_family != AF_INET))
		return -1;
	if (!r->n)
		r->port = gci_address_port(a);
	if (six)
		memcpy(r->ip[r->n], &a->v6.sin6_addr, 16);
	else
		memcpy(r->ip[r->n], &a->v4.sin_addr, 4);
	r->six = (uint8_t)(r->six | six << r->n);
	r->n++;
	return 0;
}

struct gci_reach gci_reach_of(const struct gci_address *a)
{
	struct gci_address plain = *a;
	struct gci_reach r = {0};

	gci_address_unmap(&plain);
	gci_reach_add(&r, &plain);
	return r;
}

void gci_reach_get(const struct gci_reach *r, unsigned i, struct gci_address *a)
{
	memset(a, 0, sizeof(*a));
	gci_address_set_port(a, r->port);
	if (is_six(r, i)) {
		a->any.sa_family = AF_INET6;
		a->len = sizeof(a->v6);
		memcpy(&a->v6.sin6_addr, r->ip[i], 16);
	} else {
		a->any.sa_family = AF_INET;
		a->len = sizeof(a->v4);
		memcpy(&a->v4.sin_addr, r->ip[i], 4);
	}
}

/* Bit 0: it has IPv4 addresses, bit 1: IPv6. */
static unsigned families(const struct gci_reach *r)
{
	unsigned all = (1u << r->n) - 1;

	return ((~r->six & all) != 0) | ((r->six & all) != 0) << 1;
}

int gci_reach_meet(const struct gci_reach *a, const struct gci_reach *b)
{
	return (families(a) & families(b)) != 0;
}

int gci_reach_is_loopback(const struct gci_reach *r)
{
	struct gci_address a;
	unsigned i;

	for (i = 0; i < r->n; i++) {
		gci_reach_get(r, i, &a);
		if (is_six(r, i) ? !IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr) : r->ip[i][0] != 127)
			return 0;
	}
	return 1;
}

char *gci_reach_format(const struct gci_reach *r, char text[GCI_REACH_TEXT])
{
	char one[GCI_ADDRESS_TEXT];
	struct gci_address a;
	size_t len = 0;
	unsigned i;

	*text = '\0';
	for (i = 0; i < r->n; i++) {
		gci_reach_get(r, i, &a);
		gci_address_format(&a, one);
		len += (size_t)snprintf(
			text + len, GCI_REACH_TEXT - len, "%s%s", i ? ", " : "", one);
	}
	return text;
}

void gci_reach_put(struct gci_buf *out, const struct gci_reach *r)
{
	unsigned i;

	gci_buf_put_u16(out, r->port);
	gci_buf_put_u8(out, (uint8_t)(r->n | r->six << 4));
	for (i = 0; i < r->n; i++)
		gci_buf_put(out, r->ip[i], ip_nbytes(r, i));
}

/* Not "any address", and not one of many listeners. */
static int connectable(const struct gci_reach *r, unsigned i)
{
	static const uint8_t none[16];

	if (!memcmp(r->ip[i], none, ip_nbytes(r, i)))
		return 0;
	return is_six(r, i) ? r->ip[i][0] != 0xff : r->ip[i][0] < 224;
}

void gci_reach_read(struct gci_reader *in, struct gci_reach *r)
{
	const uint8_t *ip;
	unsigned n, i;

	memset(r, 0, sizeof(*r));
	r->port = gci_read_u16(in);
	n = gci_read_u8(in);
	r->six = (uint8_t)(n >> 4);
	n &= 15;
	if (!r->port || !n || n > GCI_REACH_MAX || r->six >> n)
		in->failed = 1;
	for (i = 0; i < n && !in->failed; i++) {
		ip = gci_read(in, ip_nbytes(r, i));
		if (ip)
			memcpy(r->ip[i], ip, ip_nbytes(r, i));
		if (!connectable(r, i))
			in->failed = 1;
	}
	r->n = (uint8_t)(in->failed ? 0 : n);
}
