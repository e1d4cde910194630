/* SPDX-License-Identifier: MIT
 * A small seeded generator (splitmix64, Steele et al. 2014): the same seed gives the same run on
 * every machine. Not for secrets. */
#ifndef GCI_BASE_PRNG_H
#define GCI_BASE_PRNG_H

#include <stdint.h>

struct gci_prng {
	uint64_t state;
};

static inline uint64_t gci_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t gci_prng_next(struct gci_prng *p)
{
	p->state += 0x9e3779b97f4a7c15ull;
	return gci_mix64(p->state);
}

/* 0 <= result < n; n must not be 0. The bias is below n / 2^64. */
static inline uint64_t gci_prng_below(struct gci_prng *p, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)gci_prng_next(p) * n) >> 64);
}

/* A running 64-bit digest: feed values in order. For cache keys and mismatch checks. */
static inline uint64_t gci_digest(uint64_t digest, uint64_t value)
{
	return gci_mix64(digest * 0x9e3779b97f4a7c15ull + value + 1);
}

uint64_t gci_digest_bytes(uint64_t digest, const void *data, uint64_t nbytes);

#endif
