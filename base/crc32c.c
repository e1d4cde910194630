/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <limits.h>

uint32_t gci_crc32c(uint32_t crc, const void *data, size_t nbytes)
{
	const unsigned char *p = data;

	/* ISA-L takes an int, is not const-correct, and leaves both inversions to the caller. */
	crc = ~crc;
	while (nbytes) {
		int n = nbytes > INT_MAX / 2 ? INT_MAX / 2 : (int)nbytes;

		crc = crc32_iscsi((unsigned char *)p, n, crc);
		p += n;
		nbytes -= (size_t)n;
	}
	return ~crc;
}

/* Polynomials over GF(2) below degree 32 modulo Castagnoli's, bit 31 - k the coefficient of x^k. */
#define POLY 0x82f63b78u
#define ONE  0x80000000u

static uint32_t times(uint32_t a, uint32_t b)
{
	uint32_t product = 0, m;

	for (m = ONE; m; m >>= 1) {
		if (a & m)
			product ^= b;
		b = b >> 1 ^ (POLY & (0 - (b & 1)));
	}
	return product;
}

/* x to the power of 8 times 2^k, by k. Known ones of constant length could be built in; this way
 * there is nothing to get wrong. */
static uint32_t power_of(unsigned k)
{
	static const uint32_t x8 = ONE >> 8;
	static _Atomic uint32_t known[64];
	uint32_t p = known[k];

	if (p)
		return p;
	p = k ? power_of(k - 1) : x8;
	if (k)
		p = times(p, p);
	known[k] = p;
	return p;
}

uint32_t gci_crc32c_join(uint32_t a, uint32_t b, uint64_t nbytes)
{
	unsigned k;

	/* A sum is the remainder of its bytes times x^32. More bytes behind them multiply it by x
	 * to the power of their bits; the inversions at both ends cancel out. */
	for (k = 0; a && nbytes; k++, nbytes >>= 1)
		if (nbytes & 1)
			a = times(a, power_of(k));
	return a ^ b;
}
