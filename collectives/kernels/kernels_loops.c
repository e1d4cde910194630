/* SPDX-License-Identifier: MIT
 * The loops, compiled once per instruction set (collectives/meson.build) with GCI_KERNEL_SET and
 * GCI_KERNEL_NAME, and with options that let the compiler vectorise them. */
#include "collectives/kernels/half.h"
#include "collectives/kernels/kernels_impl.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

/* `out` may be `left` or `right`. Compilers test for overlap and would then take the slow loop,
 * but an element is only ever made from those at its own place. */
#if defined(__clang__)
#define NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#define UNROLL     _Pragma("clang loop unroll_count(4)")
#else
#define NO_OVERLAP _Pragma("GCC ivdep")
#define UNROLL     _Pragma("GCC unroll 4")
#endif

/* Elements as they stand in a byte stream: not always aligned. */
#define UNALIGNED(type) type __attribute__((aligned(1), may_alias))

/* Signed sums and products are made in the unsigned type: they wrap instead of being undefined. */
#define KERNEL(name, type, expr) KERNEL_FROM(name, type, 0, expr)
#define KERNEL_FROM(name, type, start, expr)                                         \
	static void name(void *out, const void *left, const void *right, uint64_t n) \
	{                                                                            \
		typedef UNALIGNED(type) element;                                     \
		const element *l = left, *r = right;                                 \
		element *o = out;                                                    \
		uint64_t i = (start);                                                \
                                                                                     \
		NO_OVERLAP                                                           \
		for (; i < n; i++) {                                                 \
			type a = l[i], b = r[i];                                     \
                                                                                     \
			o[i] = (type)(expr);                                         \
		}                                                                    \
	}

/* buf[i] = expr of a, which is buf[i], and d, the number of ranks. */
#define SCALER(name, type, divisor, expr)                   \
	static void name(void *buf, uint64_t n, int nranks) \
	{                                                   \
		typedef UNALIGNED(type) element;            \
		divisor d = (divisor)nranks;                \
		element *p = buf;                           \
		uint64_t i;                                 \
                                                            \
		for (i = 0; i < n; i++) {                   \
			type a = p[i];                      \
                                                            \
			p[i] = (type)(expr);                \
		}                                           \
	}

#define ARITHMETIC(suffix, type, wide, divisor)       \
	KERNEL(sum_##suffix, type, (wide)a + (wide)b) \
	KERNEL(prod_##suffix, type, (wide)a *(wide)b) \
	KERNEL(min_##suffix, type, a < b ? a : b)     \
	KERNEL(max_##suffix, type, a > b ? a : b)     \
	SCALER(scale_##suffix, type, divisor, a / d)

#define BITWISE(suffix, type)             \
	KERNEL(band_##suffix, type, a &b) \
	KERNEL(bor_##suffix, type, a | b) \
	KERNEL(bxor_##suffix, type, a ^ b)

ARITHMETIC(i8, int8_t, uint32_t, int32_t)
ARITHMETIC(u8, uint8_t, uint32_t, uint32_t)
ARITHMETIC(i16, int16_t, uint32_t, int32_t)
ARITHMETIC(u16, uint16_t, uint32_t, uint32_t)
ARITHMETIC(i32, int32_t, uint32_t, int32_t)
ARITHMETIC(u32, uint32_t, uint32_t, uint32_t)
ARITHMETIC(i64, int64_t, uint64_t, int64_t)
ARITHMETIC(u64, uint64_t, uint64_t, uint64_t)
ARITHMETIC(f32, float, float, float)
ARITHMETIC(f64, double, double, double)
BITWISE(8, uint8_t)
BITWISE(16, uint16_t)
BITWISE(32, uint32_t)
BITWISE(64, uint64_t)

/* Compilers make no F16C of plain C; what is left at the end goes the plain way. */
#ifdef __F16C__
#define HALF_VECTORS(op)                                                                         \
	static uint64_t op##_vectors(                                                            \
		uint16_t *o, const uint16_t *l, const uint16_t *r, uint64_t n)                   \
	{                                                                                        \
		uint64_t i;                                                                      \
                                                                                                 \
		UNROLL                                                                           \
		for (i = 0; i + 8 <= n; i += 8) {                                                \
			__m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(l + i)));      \
			__m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(r + i)));      \
			__m256 v = _mm256_##op##_ps(a, b);                                       \
                                                                                                 \
			_mm_storeu_si128(                                                        \
				(void *)(o + i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); \
		}                                                                                \
		return i;                                                                        \
	}
HALF_VECTORS(add)
HALF_VECTORS(mul)
HALF_VECTORS(min)
HALF_VECTORS(max)
#define VECTORS(op) op##_vectors(out, left, right, n)
#else
#define VECTORS(op) 0
#endif

#define HALF(h)   gci_float_of_half(h)
#define BFLOAT(h) gci_float_of_bfloat(h)

/* `left` is the result where it is beyond `right` and neither is NaN. */
#define BEYOND(than, inf)                                                                          \
	gci_half_key(a) than gci_half_key(b) && (a & 0x7fff) <= (inf) && (b & 0x7fff) <= (inf) ? a \
											       : b

KERNEL_FROM(sum_f16, uint16_t, VECTORS(add), gci_half_of_float(HALF(a) + HALF(b)))
KERNEL_FROM(prod_f16, uint16_t, VECTORS(mul), gci_half_of_float(HALF(a) * HALF(b)))
KERNEL_FROM(min_f16, uint16_t, VECTORS(min), BEYOND(<, 0x7c00))
KERNEL_FROM(max_f16, uint16_t, VECTORS(max), BEYOND(>, 0x7c00))
SCALER(scale_f16, uint16_t, float, gci_half_of_float(HALF(a) / d))
KERNEL(sum_bf16, uint16_t, gci_bfloat_of_float(BFLOAT(a) + BFLOAT(b)))
KERNEL(prod_bf16, uint16_t, gci_bfloat_of_float(BFLOAT(a) * BFLOAT(b)))
KERNEL(min_bf16, uint16_t, BEYOND(<, 0x7f80))
KERNEL(max_bf16, uint16_t, BEYOND(>, 0x7f80))
SCALER(scale_bf16, uint16_t, float, gci_bfloat_of_float(BFLOAT(a) / d))

/* The average is a sum, scaled afterwards. */
#define ROW(a, bits)                                                                               \
	{                                                                                          \
		sum_##a, prod_##a, min_##a, max_##a, band_##bits, bor_##bits, bxor_##bits, sum_##a \
	}
#define FLOAT_ROW(a)                                                           \
	{                                                                      \
		sum_##a, prod_##a, min_##a, max_##a, NULL, NULL, NULL, sum_##a \
	}

const struct gci_kernel_set GCI_KERNEL_SET = {.name = GCI_KERNEL_NAME,
	.kernels = {[GCOLL_BYTE] = {NULL, NULL, NULL, NULL, band_8, bor_8, bxor_8, NULL},
		[GCOLL_INT8] = ROW(i8, 8),
		[GCOLL_UINT8] = ROW(u8, 8),
		[GCOLL_INT16] = ROW(i16, 16),
		[GCOLL_UINT16] = ROW(u16, 16),
		[GCOLL_INT32] = ROW(i32, 32),
		[GCOLL_UINT32] = ROW(u32, 32),
		[GCOLL_INT64] = ROW(i64, 64),
		[GCOLL_UINT64] = ROW(u64, 64),
		[GCOLL_FLOAT32] = FLOAT_ROW(f32),
		[GCOLL_FLOAT64] = FLOAT_ROW(f64),
		[GCOLL_FLOAT16] = FLOAT_ROW(f16),
		[GCOLL_BFLOAT16] = FLOAT_ROW(bf16)},
	.scalers = {[GCOLL_INT8] = scale_i8,
		[GCOLL_UINT8] = scale_u8,
		[GCOLL_INT16] = scale_i16,
		[GCOLL_UINT16] = scale_u16,
		[GCOLL_INT32] = scale_i32,
		[GCOLL_UINT32] = scale_u32,
		[GCOLL_INT64] = scale_i64,
		[GCOLL_UINT64] = scale_u64,
		[GCOLL_FLOAT32] = scale_f32,
		[GCOLL_FLOAT64] = scale_f64,
		[GCOLL_FLOAT16] = scale_f16,
		[GCOLL_BFLOAT16] = scale_bf16}};
