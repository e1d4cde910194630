/* SPDX-License-Identifier: MIT
 * 16-bit floats in plain C that compilers can vectorise: no branches, no tables. The bits are those
 * of the instructions VCVTPH2PS and VCVTPS2PH, those of NaNs included; of bfloat16 there is one
 * NaN.
 *
 * One sum, difference, product or quotient made in float32 and then rounded to 16 bits is the same
 * as if it had been rounded once: float32 has at least 2 p + 2 bits of p = 11 (Figueroa 1995, "When
 * is double rounding innocuous?"). */
#ifndef GCI_COLLECTIVES_KERNELS_HALF_H
#define GCI_COLLECTIVES_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float gci_float_of_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static inline uint32_t gci_bits_of_float(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

/* yes ? a : b, which gcc may turn into branches and then not vectorise. */
static inline uint32_t gci_pick(int yes, uint32_t a, uint32_t b)
{
	uint32_t mask = 0u - (uint32_t)yes;

	return (a & mask) | (b & ~mask);
}

static inline float gci_float_of_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, size = h & 0x7fff;
	uint32_t normal = (size << 13) + (112u << 23);         /* biases 15 and 127 */
	uint32_t special = (size << 13) | 0x7f800000;          /* inf, NaN */
	float tiny = (float)(int32_t)size * (1.0f / 16777216); /* subnormal: units of 2^-24 */

	special |= gci_pick(size > 0x7c00, 0x400000, 0); /* a signalling NaN becomes a quiet one */
	normal = gci_pick(size >= 0x7c00, special, normal);
	return gci_float_of_bits(sign | gci_pick(size < 0x400, gci_bits_of_float(tiny), normal));
}

static inline uint16_t gci_half_of_float(float f)
{
	uint32_t u = gci_bits_of_float(f), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
	/* Ties to even: just under a half, and one more where the last bit that stays is odd. */
	uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
	/* Adding 1/2 moves a subnormal's 2^-24 to the last bit, and the addition rounds it. */
	uint32_t tiny = gci_bits_of_float(gci_float_of_bits(size) + 0.5f) - (126u << 23);
	uint32_t nan = 0x7e00 | (size >> 13 & 0x3ff);

	normal = gci_pick(size < 0x38800000, tiny, normal);    /* 2^-14 */
	normal = gci_pick(size >= 0x477ff000, 0x7c00, normal); /* 65520 and more: infinity */
	return (uint16_t)(sign | gci_pick(size > 0x7f800000, nan, normal));
}

static inline float gci_float_of_bfloat(uint16_t h)
{
	return gci_float_of_bits((uint32_t)h << 16);
}

static inline uint16_t gci_bfloat_of_float(float f)
{
	uint32_t u = gci_bits_of_float(f), rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	return (uint16_t)(f != f ? 0x7fc0 : rounded);
}

/* In the order of the numbers, both zeros being 0. What lies beyond +-`inf` is NaN. */
static inline int16_t gci_half_key(uint16_t h)
{
	int16_t sign = (int16_t) - (h >> 15);

	return (int16_t)(((h & 0x7fff) ^ sign) - sign);
}

#endif
