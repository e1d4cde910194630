/* SPDX-License-Identifier: MIT
 * Reduction kernels against plain loops over the same arrays, one written for each type and
 * operation, compiled at -O3 for the best instruction set that this machine has.
 *
 *	bench_kernels			a table
 *	bench_kernels --check		exit status 1 where a kernel has less than 80 % of the rate
 *	bench_kernels avx2		not the best instruction set, but this one (plain, avx512)
 *
 * Runs of the two alternate, and their medians are compared. Three places: "L1" (8 KiB per array),
 * "in place" (the same, the result into the left operand, as executors do it), and "memory" (64 MiB
 * per array; larger than most caches). Rates count what is read and written. */
#include "base/clock.h"
#include "base/median.h"
#include "base/mem.h"
#include "collectives/kernels/half.h"
#include "collectives/kernels/kernels_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SMALL_NBYTES (8u << 10)
#define LARGE_NBYTES (64u << 20)
#define LEAST_RATIO  0.80
#define MOST_RUNS    31

#if defined(__clang__)
#define ANY_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#else
#define ANY_OVERLAP _Pragma("GCC ivdep")
#endif

/* What follows once per instruction set: `isa` is a suffix, `target` the attribute. */
#define LOOP(isa, target, name, type, expr)                                 \
	target static void name##_##isa(                                    \
		void *out, const void *left, const void *right, uint64_t n) \
	{                                                                   \
		const type *l = left, *r = right;                           \
		type *o = out;                                              \
		uint64_t i;                                                 \
                                                                            \
		ANY_OVERLAP                                                 \
		for (i = 0; i < n; i++) {                                   \
			type a = l[i], b = r[i];                            \
                                                                            \
			o[i] = (type)(expr);                                \
		}                                                           \
	}

#define NUMBERS(isa, target, name, type, wide)                 \
	LOOP(isa, target, sum_##name, type, (wide)a + (wide)b) \
	LOOP(isa, target, prod_##name, type, (wide)a *(wide)b) \
	LOOP(isa, target, min_##name, type, a < b ? a : b)     \
	LOOP(isa, target, max_##name, type, a > b ? a : b)

#define BITS(isa, target, name, type)              \
	LOOP(isa, target, band_##name, type, a &b) \
	LOOP(isa, target, bor_##name, type, a | b) \
	LOOP(isa, target, bxor_##name, type, a ^ b)

#define BF(h) gci_float_of_bits((uint32_t)(h) << 16)

static inline uint16_t bf_of(float f)
{
	uint32_t u = gci_bits_of_float(f);

	return (uint16_t)(f != f ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#define ALL_LOOPS(isa, target)                                           \
	NUMBERS(isa, target, int8, int8_t, uint32_t)                     \
	NUMBERS(isa, target, uint8, uint8_t, uint32_t)                   \
	NUMBERS(isa, target, int16, int16_t, uint32_t)                   \
	NUMBERS(isa, target, uint16, uint16_t, uint32_t)                 \
	NUMBERS(isa, target, int32, int32_t, uint32_t)                   \
	NUMBERS(isa, target, uint32, uint32_t, uint32_t)                 \
	NUMBERS(isa, target, int64, int64_t, uint64_t)                   \
	NUMBERS(isa, target, uint64, uint64_t, uint64_t)                 \
	NUMBERS(isa, target, float32, float, float)                      \
	NUMBERS(isa, target, float64, double, double)                    \
	LOOP(isa, target, sum_bfloat16, uint16_t, bf_of(BF(a) + BF(b)))  \
	LOOP(isa, target, prod_bfloat16, uint16_t, bf_of(BF(a) * BF(b))) \
	LOOP(isa, target, min_bfloat16, uint16_t, BF(b) < BF(a) ? b : a) \
	LOOP(isa, target, max_bfloat16, uint16_t, BF(b) > BF(a) ? b : a) \
	BITS(isa, target, int8, uint8_t)                                 \
	BITS(isa, target, int16, uint16_t)                               \
	BITS(isa, target, int32, uint32_t)                               \
	BITS(isa, target, int64, uint64_t)

/* float16 by the instructions for it, where there are some; n is a multiple of 8. */
#define F16C(isa, target, name, op)                                                              \
	target static void name##_float16_##isa(                                                 \
		void *out, const void *left, const void *right, uint64_t n)                      \
	{                                                                                        \
		const uint16_t *l = left, *r = right;                                            \
		uint16_t *o = out;                                                               \
		uint64_t i;                                                                      \
                                                                                                 \
		for (i = 0; i < n; i += 8) {                                                     \
			__m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(l + i)));   \
			__m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(r + i)));   \
                                                                                                 \
			_mm_storeu_si128(                                                        \
				(__m128i *)(o + i), _mm256_cvtps_ph(_mm256_##op##_ps(a, b), 0)); \
		}                                                                                \
	}
#define ALL_F16C(isa, target)        \
	F16C(isa, target, sum, add)  \
	F16C(isa, target, prod, mul) \
	F16C(isa, target, min, min)  \
	F16C(isa, target, max, max)

#define HF(h) gci_float_of_half(h)
#define ALL_F16(isa, target)                                                        \
	LOOP(isa, target, sum_float16, uint16_t, gci_half_of_float(HF(a) + HF(b)))  \
	LOOP(isa, target, prod_float16, uint16_t, gci_half_of_float(HF(a) * HF(b))) \
	LOOP(isa, target, min_float16, uint16_t, HF(b) < HF(a) ? b : a)             \
	LOOP(isa, target, max_float16, uint16_t, HF(b) > HF(a) ? b : a)

#define ARITHMETIC_ROW(name, isa) \
	sum_##name##_##isa, prod_##name##_##isa, min_##name##_##isa, max_##name##_##isa
#define ROW(name, bits, isa)                                                        \
	{                                                                           \
		ARITHMETIC_ROW(name, isa), band_##bits##_##isa, bor_##bits##_##isa, \
			bxor_##bits##_##isa, NULL                                   \
	}
#define FLOAT_ROW(name, isa)                                      \
	{                                                         \
		ARITHMETIC_ROW(name, isa), NULL, NULL, NULL, NULL \
	}
#define TABLE(isa)                                                                       \
	static const gci_kernel table_##isa[GCOLL_NTYPES][GCOLL_NOPS] = {                \
		[GCOLL_BYTE] = {NULL, NULL, NULL, NULL, band_int8_##isa, bor_int8_##isa, \
			bxor_int8_##isa, NULL},                                          \
		[GCOLL_INT8] = ROW(int8, int8, isa),                                     \
		[GCOLL_UINT8] = ROW(uint8, int8, isa),                                   \
		[GCOLL_INT16] = ROW(int16, int16, isa),                                  \
		[GCOLL_UINT16] = ROW(uint16, int16, isa),                                \
		[GCOLL_INT32] = ROW(int32, int32, isa),                                  \
		[GCOLL_UINT32] = ROW(uint32, int32, isa),                                \
		[GCOLL_INT64] = ROW(int64, int64, isa),                                  \
		[GCOLL_UINT64] = ROW(uint64, int64, isa),                                \
		[GCOLL_FLOAT32] = FLOAT_ROW(float32, isa),                               \
		[GCOLL_FLOAT64] = FLOAT_ROW(float64, isa),                               \
		[GCOLL_FLOAT16] = FLOAT_ROW(float16, isa),                               \
		[GCOLL_BFLOAT16] = FLOAT_ROW(bfloat16, isa)};

#define PLAIN_TARGET
ALL_LOOPS(plain, PLAIN_TARGET)
ALL_F16(plain, PLAIN_TARGET)
TABLE(plain)

#if defined(__x86_64__)
#define AVX2_TARGET __attribute__((target("avx2,f16c")))
ALL_LOOPS(avx2, AVX2_TARGET)
ALL_F16C(avx2, AVX2_TARGET)
TABLE(avx2)

#define AVX512_TARGET __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
ALL_LOOPS(avx512, AVX512_TARGET)
ALL_F16C(avx512, AVX512_TARGET)
TABLE(avx512)
#endif

/* The plain loops that go with a set of kernels. */
static const gci_kernel (*plain_loops(const struct gci_kernel_set *set))[GCOLL_NOPS]
{
#if defined(__x86_64__)
	if (set == &gci_kernels_avx512)
		return table_avx512;
	if (set == &gci_kernels_avx2)
		return table_avx2;
#endif
	return set == &gci_kernels_plain ? table_plain : NULL;
}

struct place {
	const char *name;
	uint64_t nbytes; /* of one array */
	int in_place, runs;
	uint64_t loops; /* calls in a run */
};

static const struct place places[] = {{"L1", SMALL_NBYTES, 0, 15, 400},
	{"in place", SMALL_NBYTES, 1, 15, 400}, {"memory", LARGE_NBYTES, 0, 5, 1}};

#define NPLACES (sizeof(places) / sizeof(*places))

struct arrays {
	char *out, *left, *right;
};

/* Values that stay finite and normal in each type, however often they meet: a product's right
 * operand is one. */
static void fill(const struct arrays *a, enum gcoll_type type, enum gcoll_op op, uint64_t nbytes)
{
	static const float f = 1.0f;
	static const double d = 1.0;
	static const uint16_t half = 0x3c00, bfloat = 0x3f80;
	static const unsigned char one[8] = {1};
	const void *value = type == GCOLL_FLOAT32    ? (const void *)&f
			    : type == GCOLL_FLOAT64  ? (const void *)&d
			    : type == GCOLL_FLOAT16  ? (const void *)&half
			    : type == GCOLL_BFLOAT16 ? (const void *)&bfloat
						     : (const void *)one;
	size_t i, size = gcoll_type_size(type);

	for (i = 0; i + size <= nbytes; i += size) {
		memcpy(a->left + i, value, size);
		memcpy(a->right + i, value, size);
	}
	if (op != GCOLL_PROD && type >= GCOLL_FLOAT32)
		memset(a->right, 0, nbytes);
}

static double run_ns(gci_kernel k, const struct place *p, const struct arrays *a, size_t size)
{
	uint64_t i, begin = gci_now_ns();

	for (i = 0; i < p->loops; i++)
		k(p->in_place ? a->left : a->out, a->left, a->right, p->nbytes / size);
	return (double)(gci_now_ns() - begin) / (double)p->loops;
}

struct figure {
	double ours, plain; /* GB/s */
};

static struct figure compare(gci_kernel ours, gci_kernel plain, const struct place *p,
	const struct arrays *a, size_t size)
{
	double t[2][MOST_RUNS];
	int i;

	run_ns(plain, p, a, size);
	run_ns(ours, p, a, size);
	for (i = 0; i < p->runs; i++) {
		t[0][i] = run_ns(ours, p, a, size);
		t[1][i] = run_ns(plain, p, a, size);
	}
	return (struct figure){3 * (double)p->nbytes / gci_median(t[0], (size_t)p->runs),
		3 * (double)p->nbytes / gci_median(t[1], (size_t)p->runs)};
}

/* One row; false when a rate is too low. Other work on the machine can make it so once. */
static int measure(enum gcoll_type type, enum gcoll_op op, gci_kernel ours, gci_kernel plain,
	const struct arrays *a)
{
	int fine = 1, tries;
	size_t i;

	printf("%-9s %-5s", gci_type_name(type), gci_op_name(op));
	for (i = 0; i < NPLACES; i++) {
		struct figure f = {0, 1};

		fill(a, type, op, places[i].nbytes);
		for (tries = 0; tries < 4 && f.ours < LEAST_RATIO * f.plain; tries++)
			f = compare(ours, plain, &places[i], a, gcoll_type_size(type));
		printf("  %6.1f %6.1f %5.2f", f.ours, f.plain, f.ours / f.plain);
		fine &= f.ours >= LEAST_RATIO * f.plain;
	}
	printf("%s\n", fine ? "" : "  TOO SLOW");
	fflush(stdout);
	return fine;
}

static int measure_all(const struct gci_kernel_set *set)
{
	const gci_kernel(*plain)[GCOLL_NOPS] = plain_loops(set);
	struct arrays a = {gci_calloc(LARGE_NBYTES, 1), gci_calloc(LARGE_NBYTES, 1),
		gci_calloc(LARGE_NBYTES, 1)};
	int type, op, slow = 0;
	size_t i;

	if (!a.out || !a.left || !a.right) {
		fprintf(stderr, "bench_kernels: out of memory\n");
		exit(1);
	}
	memset(a.out, 0, LARGE_NBYTES);
	printf("%s: GB/s of the kernel, of a plain loop, and their ratio\n%-15s", set->name, "");
	for (i = 0; i < NPLACES; i++)
		printf("  %-19s", places[i].name);
	printf("\n");
	for (type = 0; type < GCOLL_NTYPES; type++)
		for (op = 0; op < GCOLL_NOPS; op++)
			if (plain[type][op])
				slow += !measure((enum gcoll_type)type, (enum gcoll_op)op,
					set->kernels[type][op], plain[type][op], &a);
	gci_free(a.out);
	gci_free(a.left);
	gci_free(a.right);
	return slow;
}

int main(int argc, char **argv)
{
	const struct gci_kernel_set *set = gci_kernel_set(0);
	int i, k, check = 0, slow;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--check"))
			check = 1;
		else
			for (k = 0; (set = gci_kernel_set(k)) && strcmp(set->name, argv[i]); k++)
				;
	if (!set) {
		fprintf(stderr,
			"usage: bench_kernels [--check] [SET], SET one that this machine runs\n");
		return 2;
	}
	slow = measure_all(set);
	if (slow)
		printf("%d below %.2f\n", slow, LEAST_RATIO);
	return check && slow;
}
