/* SPDX-License-Identifier: MIT */
#include "collectives/kernels.h"

#include <string.h>

/* Signed sums and products are made in the unsigned type: they wrap instead of being undefined.
 * Loads and stores go through memcpy, as offsets in a byte stream need not be aligned; compilers
 * make plain vector code of it. */
#define KERNEL(name, type, expr)                                                     \
	static void name(void *out, const void *left, const void *right, uint64_t n) \
	{                                                                            \
		char *o = out;                                                       \
		const char *l = left, *r = right;                                    \
		uint64_t i;                                                          \
                                                                                     \
		for (i = 0; i < n; i++) {                                            \
			type a, b, v;                                                \
                                                                                     \
			memcpy(&a, l + i * sizeof(a), sizeof(a));                    \
			memcpy(&b, r + i * sizeof(b), sizeof(b));                    \
			v = (type)(expr);                                            \
			memcpy(o + i * sizeof(v), &v, sizeof(v));                    \
		}                                                                    \
	}

#define ARITHMETIC(suffix, type, wide)                \
	KERNEL(sum_##suffix, type, (wide)a + (wide)b) \
	KERNEL(prod_##suffix, type, (wide)a *(wide)b) \
	KERNEL(min_##suffix, type, b < a ? b : a)     \
	KERNEL(max_##suffix, type, b > a ? b : a)

#define BITWISE(suffix, type)             \
	KERNEL(band_##suffix, type, a &b) \
	KERNEL(bor_##suffix, type, a | b) \
	KERNEL(bxor_##suffix, type, a ^ b)

ARITHMETIC(i8, int8_t, uint32_t)
ARITHMETIC(u8, uint8_t, uint32_t)
ARITHMETIC(i16, int16_t, uint32_t)
ARITHMETIC(u16, uint16_t, uint32_t)
ARITHMETIC(i32, int32_t, uint32_t)
ARITHMETIC(u32, uint32_t, uint32_t)
ARITHMETIC(i64, int64_t, uint64_t)
ARITHMETIC(u64, uint64_t, uint64_t)
ARITHMETIC(f32, float, float)
ARITHMETIC(f64, double, double)
BITWISE(8, uint8_t)
BITWISE(16, uint16_t)
BITWISE(32, uint32_t)
BITWISE(64, uint64_t)

#define ROW(a, bits)                                                                      \
	{                                                                                 \
		sum_##a, prod_##a, min_##a, max_##a, band_##bits, bor_##bits, bxor_##bits \
	}

static const gci_kernel kernels[GCOLL_NTYPES][GCOLL_NOPS] = {
	{NULL, NULL, NULL, NULL, band_8, bor_8, bxor_8},
	ROW(i8, 8),
	ROW(u8, 8),
	ROW(i16, 16),
	ROW(u16, 16),
	ROW(i32, 32),
	ROW(u32, 32),
	ROW(i64, 64),
	ROW(u64, 64),
	{sum_f32, prod_f32, min_f32, max_f32, NULL, NULL, NULL},
	{sum_f64, prod_f64, min_f64, max_f64, NULL, NULL, NULL},
};

static const struct {
	const char *name;
	size_t size;
} types[GCOLL_NTYPES] = {{"byte", 1}, {"int8", 1}, {"uint8", 1}, {"int16", 2}, {"uint16", 2},
	{"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8}, {"float32", 4}, {"float64", 8},
	{"float16", 2}, {"bfloat16", 2}};

static const char *const ops[GCOLL_NOPS] = {
	"sum", "prod", "min", "max", "band", "bor", "bxor", "avg"};

gci_kernel gci_kernel_find(enum gcoll_type type, enum gcoll_op op)
{
	if ((unsigned)type >= GCOLL_NTYPES || (unsigned)op >= GCOLL_NOPS)
		return NULL;
	return kernels[type][op];
}

size_t gcoll_type_size(enum gcoll_type type)
{
	return (unsigned)type < GCOLL_NTYPES ? types[type].size : 0;
}

const char *gci_type_name(enum gcoll_type type)
{
	return (unsigned)type < GCOLL_NTYPES ? types[type].name : "?";
}

const char *gci_op_name(enum gcoll_op op)
{
	return (unsigned)op < GCOLL_NOPS ? ops[op] : "?";
}

int gci_type_find(const char *name)
{
	int i;

	for (i = 0; i < GCOLL_NTYPES; i++)
		if (!strcmp(name, types[i].name))
			return i;
	return -1;
}

int gci_op_find(const char *name)
{
	int i;

	for (i = 0; i < GCOLL_NOPS; i++)
		if (!strcmp(name, ops[i]))
			return i;
	return -1;
}
