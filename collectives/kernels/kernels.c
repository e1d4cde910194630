/* SPDX-License-Identifier: MIT */
#include "collectives/kernels/kernels_impl.h"

#include <stdatomic.h>

#ifdef GCI_KERNELS_X86
#include <cpuid.h>
#endif

#ifdef GCI_KERNELS_X86
static int has_f16c(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

const struct gci_kernel_set *gci_kernel_set(int i)
{
#ifdef GCI_KERNELS_X86
	int avx2 = __builtin_cpu_supports("avx2") && has_f16c();
	int avx512 = avx2 && __builtin_cpu_supports("avx512vl") &&
		     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");

	if (avx512 && !i--)
		return &gci_kernels_avx512;
	if (avx2 && !i--)
		return &gci_kernels_avx2;
#endif
	return i ? NULL : &gci_kernels_plain;
}

/* Asked once: CPUID is slow in virtual machines. Two threads may both ask, for the same answer. */
static const struct gci_kernel_set *best(void)
{
	static const struct gci_kernel_set *_Atomic found;
	const struct gci_kernel_set *set = atomic_load_explicit(&found, memory_order_relaxed);

	if (!set) {
		set = gci_kernel_set(0);
		atomic_store_explicit(&found, set, memory_order_relaxed);
	}
	return set;
}

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
	return best()->kernels[type][op];
}

void gci_kernel_scale(enum gcoll_type type, void *buf, uint64_t n, int nranks)
{
	if ((unsigned)type < GCOLL_NTYPES && best()->scalers[type])
		best()->scalers[type](buf, n, nranks);
}

static int is_element(enum gcoll_type type)
{
	return type > GCOLL_ELEMENT_BASE && type <= GCOLL_TYPE_MAX;
}

size_t gcoll_type_size(enum gcoll_type type)
{
	if (is_element(type))
		return (size_t)type - GCOLL_ELEMENT_BASE;
	return (unsigned)type < GCOLL_NTYPES ? types[type].size : 0;
}

const char *gci_type_name(enum gcoll_type type)
{
	if (is_element(type))
		return "elements";
	return (unsigned)type < GCOLL_NTYPES ? types[type].name : "?";
}

const char *gci_op_name(enum gcoll_op op)
{
	return (unsigned)op < GCOLL_NOPS ? ops[op] : "?";
}
