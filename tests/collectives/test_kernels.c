/* SPDX-License-Identifier: MIT
 * Kernels: each set of loops that this machine runs against plain arithmetic, and against the other
 * sets bit by bit. */
#include "tests/test.h"

#include "base/prng.h"
#include "collectives/kernels/half.h"
#include "collectives/kernels/kernels_impl.h"

#include <math.h>
#include <string.h>

#define N 1003 /* no multiple of any vector */

/* The definition of binary16, by powers of two. */
static double value_of_half(unsigned h)
{
	int exponent = (int)(h >> 10 & 31), mantissa = (int)(h & 1023);
	double v = exponent == 31 ? (mantissa ? NAN : INFINITY)
		   : exponent     ? ldexp(1024 + mantissa, exponent - 25)
				  : ldexp(mantissa, -24);

	return h & 0x8000 ? -v : v;
}

static double value_of_bfloat(unsigned h)
{
	return (double)gci_float_of_bits(h << 16);
}

static void halves_one_by_one(void **state)
{
	unsigned h;

	(void)state;
	for (h = 0; h < 65536; h++) {
		float f = gci_float_of_half((uint16_t)h);
		double want = value_of_half(h);

		if (isnan(want)) {
			assert_true(isnan(f));
			assert_int_equal(gci_half_of_float(f), h | 0x200);
			continue;
		}
		assert_true((double)f == want && !signbit(f) == !signbit(want));
		assert_int_equal(gci_half_of_float(f), h);
	}
}

/* Between two neighbours: below, at and above the middle, where the even one is right. */
static void rounding(void **state)
{
	unsigned h;

	(void)state;
	for (h = 0; h < 0x7c00; h++) {
		double up = h == 0x7bff ? 65536 : value_of_half(h + 1);
		float middle = (float)((value_of_half(h) + up) / 2);
		unsigned even = h % 2 ? h + 1 : h;

		assert_int_equal(gci_half_of_float(middle), even);
		assert_int_equal(gci_half_of_float(nextafterf(middle, 0)), h);
		assert_int_equal(gci_half_of_float(nextafterf(middle, INFINITY)), h + 1);
		assert_int_equal(gci_half_of_float(-middle), even | 0x8000);
	}
	for (h = 0; h < 0x7f80; h++) {
		float middle = gci_float_of_bits(h << 16 | 0x8000);

		assert_int_equal(gci_bfloat_of_float(middle), h % 2 ? h + 1 : h);
		assert_int_equal(gci_bfloat_of_float(nextafterf(middle, 0)), h);
		assert_int_equal(gci_bfloat_of_float(nextafterf(middle, INFINITY)), h + 1);
	}
	assert_int_equal(gci_half_of_float(1e30f), 0x7c00);
	assert_int_equal(gci_half_of_float(1e-30f), 0);
	assert_int_equal(gci_half_of_float(-1e-30f), 0x8000);
	assert_int_equal(gci_bfloat_of_float(NAN) & 0x7fff, 0x7fc0);
}

static int is_nan(enum gcoll_type type, const void *p)
{
	uint16_t h;
	float f;
	double d;

	memcpy(&h, p, 2);
	switch (type) {
	case GCOLL_FLOAT16:
		return (h & 0x7fff) > 0x7c00;
	case GCOLL_BFLOAT16:
		return (h & 0x7fff) > 0x7f80;
	case GCOLL_FLOAT32:
		memcpy(&f, p, 4);
		return isnan(f);
	case GCOLL_FLOAT64:
		memcpy(&d, p, 8);
		return isnan(d);
	default:
		return 0;
	}
}

/* The same bits, or both NaN. */
static void assert_same(enum gcoll_type type, enum gcoll_op op, const char *set, const char *a,
	const char *b, size_t n)
{
	size_t i, size = gcoll_type_size(type);

	for (i = 0; i < n; i++, a += size, b += size)
		if (memcmp(a, b, size) && !(is_nan(type, a) && is_nan(type, b)))
			fail_msg("%s %s by %s: element %zu", gci_type_name(type), gci_op_name(op),
				set, i);
}

/* Any bits at all: infinities, NaNs, subnormals and zeros of both signs among them. */
static void fill(char *p, size_t nbytes, uint64_t seed)
{
	static const uint16_t special[] = {0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0x7d00, 1, 0x8001,
		0x7bff, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0x3c00, 0x3f80, 0x7f7f};
	struct gci_prng prng = {seed};
	size_t i;

	for (i = 0; i < nbytes; i++)
		p[i] = (char)gci_prng_next(&prng);
	for (i = 0; i + 2 <= nbytes; i += 2 + (unsigned char)p[i] % 32 / 2 * 2)
		memcpy(p + i, &special[(unsigned char)p[i + 1] % 16], 2);
}

static void define_int(
	enum gcoll_type type, enum gcoll_op op, void *out, const void *l, const void *r)
{
	int is_signed = type == GCOLL_INT8 || type == GCOLL_INT16 || type == GCOLL_INT32 ||
			type == GCOLL_INT64;
	size_t size = gcoll_type_size(type);
	uint64_t a = 0, b = 0, flip = is_signed ? UINT64_C(1) << (8 * size - 1) : 0;
	uint64_t v[GCOLL_NOPS];

	memcpy(&a, l, size);
	memcpy(&b, r, size);
	v[GCOLL_SUM] = v[GCOLL_AVG] = a + b;
	v[GCOLL_PROD] = a * b;
	v[GCOLL_MIN] = (a ^ flip) < (b ^ flip) ? a : b;
	v[GCOLL_MAX] = (a ^ flip) > (b ^ flip) ? a : b;
	v[GCOLL_BAND] = a & b;
	v[GCOLL_BOR] = a | b;
	v[GCOLL_BXOR] = a ^ b;
	memcpy(out, &v[op], size);
}

/* To `bits` of mantissa, but no finer than 2^least: nearest, ties to even. */
static float rounded(double d, int bits, int least)
{
	int exponent;

	if (!isfinite(d) || d == 0)
		return (float)d;
	frexp(d, &exponent);
	exponent = exponent - bits < least ? least : exponent - bits;
	return (float)ldexp(rint(ldexp(d, -exponent)), exponent);
}

static double combine(enum gcoll_op op, double a, double b)
{
	return op == GCOLL_PROD  ? a * b
	       : op == GCOLL_MIN ? (a < b ? a : b)
	       : op == GCOLL_MAX ? (a > b ? a : b)
				 : a + b;
}

/* The operation's definition, on one element. */
static void define(enum gcoll_type type, enum gcoll_op op, void *out, const void *l, const void *r)
{
	uint16_t x, y, z;
	float f, g;
	double d, e;

	memcpy(&x, l, 2);
	memcpy(&y, r, 2);
	if (type == GCOLL_FLOAT16) {
		z = gci_half_of_float(
			rounded(combine(op, value_of_half(x), value_of_half(y)), 11, -24));
		memcpy(out, &z, 2);
	} else if (type == GCOLL_BFLOAT16) {
		z = gci_bfloat_of_float(
			rounded(combine(op, value_of_bfloat(x), value_of_bfloat(y)), 8, -133));
		memcpy(out, &z, 2);
	} else if (type == GCOLL_FLOAT32) {
		memcpy(&f, l, 4);
		memcpy(&g, r, 4);
		f = (float)combine(op, (double)f, (double)g);
		memcpy(out, &f, 4);
	} else if (type == GCOLL_FLOAT64) {
		memcpy(&d, l, 8);
		memcpy(&e, r, 8);
		d = combine(op, d, e);
		memcpy(out, &d, 8);
	} else {
		define_int(type, op, out, l, r);
	}
}

/* Unaligned arrays, odd lengths, the result in a place of its own and in either operand. */
static void try_kernel(const struct gci_kernel_set *set, enum gcoll_type type, enum gcoll_op op)
{
	static char l[8 * N + 16], r[8 * N + 16], out[8 * N + 16], want[8 * N + 16];
	gci_kernel k = set->kernels[type][op];
	size_t size = gcoll_type_size(type), n, i, at;

	for (n = 0; n <= N; n = n < 20 ? n + 1 : n * 2 + 1)
		for (at = 0; at < 4; at++) {
			fill(l, sizeof(l), n * 4 + at);
			fill(r, sizeof(r), n * 4 + at + 77777);
			for (i = 0; i < n; i++)
				define(type, op, want + i * size, l + at + i * size,
					r + 3 + i * size);
			memset(out, 0x55, sizeof(out));
			k(out + at, l + at, r + 3, n);
			assert_same(type, op, set->name, out + at, want, n);
			assert_int_equal(out[at + n * size], 0x55);
			memcpy(out + at, l + at, n * size);
			k(out + at, out + at, r + 3, n);
			assert_same(type, op, set->name, out + at, want, n);
			memcpy(out + at, r + 3, n * size);
			k(out + at, l + at, out + at, n);
			assert_same(type, op, set->name, out + at, want, n);
		}
}

static void every_kernel(void **state)
{
	const struct gci_kernel_set *set;
	int i, type, op;

	(void)state;
	assert_non_null(gci_kernel_set(0));
	for (i = 0; (set = gci_kernel_set(i)); i++)
		for (type = 0; type < GCOLL_NTYPES; type++)
			for (op = 0; op < GCOLL_NOPS; op++) {
				gci_kernel plain = gci_kernels_plain.kernels[type][op];

				assert_int_equal(!set->kernels[type][op], !plain);
				if (plain)
					try_kernel(set, (enum gcoll_type)type, (enum gcoll_op)op);
			}
}

/* All pairs of one operand with a few others: float16 has few enough. */
static void all_halves(void **state)
{
	static uint16_t l[65536], r[65536], out[65536], want[65536];
	static const uint16_t others[] = {0, 0x8000, 1, 0x3ff, 0x400, 0x3555, 0x3c00, 0xbc01,
		0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x1234};
	static const enum gcoll_op ops[] = {GCOLL_SUM, GCOLL_PROD, GCOLL_MIN, GCOLL_MAX};
	const struct gci_kernel_set *set;
	size_t i, k, o;
	int s;

	(void)state;
	for (k = 0; k < sizeof(others) / sizeof(*others); k++)
		for (o = 0; o < 4; o++) {
			for (i = 0; i < 65536; i++) {
				l[i] = (uint16_t)i;
				r[i] = others[k];
				define(GCOLL_FLOAT16, ops[o], &want[i], &l[i], &r[i]);
			}
			for (s = 0; (set = gci_kernel_set(s)); s++) {
				set->kernels[GCOLL_FLOAT16][ops[o]](out, l, r, 65536);
				assert_same(GCOLL_FLOAT16, ops[o], set->name, (char *)out,
					(char *)want, 65536);
			}
		}
}

/* NaN never stays unseen in a sum; of an unordered pair, and of two zeros, MIN takes the right. */
static void not_a_number(void **state)
{
	const float l[4] = {NAN, 1, 0.0f, -0.0f}, r[4] = {1, NAN, -0.0f, 0.0f};
	static const enum gcoll_op ops[] = {GCOLL_MIN, GCOLL_MAX};
	float out[4];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		gci_kernel_find(GCOLL_FLOAT32, ops[i])(out, l, r, 4);
		assert_true(out[0] == 1 && isnan(out[1]));
		assert_true(signbit(out[2]) && !signbit(out[3]));
	}
	gci_kernel_find(GCOLL_FLOAT32, GCOLL_SUM)(out, l, r, 4);
	assert_true(isnan(out[0]) && isnan(out[1]) && out[2] == 0);
}

static void averages(void **state)
{
	int8_t i8[] = {-128, -7, -1, 0, 1, 7, 127};
	int64_t i64[] = {INT64_MIN, -7, INT64_MAX};
	uint64_t u64[] = {UINT64_MAX, 7};
	float f32[] = {1, -10};
	uint16_t half[] = {0x3c00, 0x4200}, bfloat[] = {0x3f80, 0x4040}; /* 1, 3 */

	(void)state;
	gci_kernel_scale(GCOLL_INT8, i8, 7, 3);
	assert_memory_equal(i8, ((int8_t[]){-42, -2, 0, 0, 0, 2, 42}), 7);
	gci_kernel_scale(GCOLL_INT8, i8, 7, 1000); /* more ranks than the type can count */
	assert_memory_equal(i8, ((int8_t[7]){0}), 7);
	gci_kernel_scale(GCOLL_INT64, i64, 3, 1);
	assert_memory_equal(i64, ((int64_t[]){INT64_MIN, -7, INT64_MAX}), 24);
	gci_kernel_scale(GCOLL_INT64, i64, 3, 2);
	assert_memory_equal(i64, ((int64_t[]){INT64_MIN / 2, -3, INT64_MAX / 2}), 24);
	gci_kernel_scale(GCOLL_UINT64, u64, 2, 4);
	assert_memory_equal(u64, ((uint64_t[]){UINT64_MAX / 4, 1}), 16);
	gci_kernel_scale(GCOLL_FLOAT32, f32, 2, 4);
	assert_memory_equal(f32, ((float[]){0.25f, -2.5f}), 8);
	gci_kernel_scale(GCOLL_FLOAT16, half, 2, 3);
	assert_memory_equal(half, ((uint16_t[]){0x3555, 0x3c00}), 4);
	gci_kernel_scale(GCOLL_BFLOAT16, bfloat, 2, 3);
	assert_memory_equal(bfloat, ((uint16_t[]){0x3eab, 0x3f80}), 4);
}

static void names(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < GCOLL_NTYPES; i++) {
		for (k = 0; k < i; k++)
			assert_string_not_equal(gci_type_name((enum gcoll_type)i),
				gci_type_name((enum gcoll_type)k));
		assert_in_range(gcoll_type_size((enum gcoll_type)i), 1, 8);
	}
	for (i = 0; i < GCOLL_NOPS; i++)
		for (k = 0; k < i; k++)
			assert_string_not_equal(
				gci_op_name((enum gcoll_op)i), gci_op_name((enum gcoll_op)k));
	assert_string_equal(gci_type_name((enum gcoll_type)GCOLL_NTYPES), "?");
	assert_null(gci_kernel_find(GCOLL_BYTE, GCOLL_SUM));
	assert_null(gci_kernel_find(GCOLL_BYTE, GCOLL_AVG));
	assert_null(gci_kernel_find(GCOLL_FLOAT16, GCOLL_BXOR));
	assert_null(gci_kernel_find(GCOLL_NTYPES, GCOLL_SUM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_one_by_one),
		cmocka_unit_test(rounding),
		cmocka_unit_test(every_kernel),
		cmocka_unit_test(all_halves),
		cmocka_unit_test(not_a_number),
		cmocka_unit_test(averages),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
