/* SPDX-License-Identifier: MIT
 * What programs have compiled in: sizes, places and values of the headers, where pointers have 64 bits.
 * abidiff looks more closely, but is not everywhere. */
#include "gridcoll/gridcoll.h"

#include <stdio.h>

#define SIZE(type, n)                            \
	{                                        \
		"sizeof " #type, sizeof(type), n \
	}
#define PLACE(type, member, n)                                               \
	{                                                                    \
		"offset of " #member " in " #type, offsetof(type, member), n \
	}
#define VALUE(name, n)                   \
	{                                \
#name, (size_t)(name), n \
	}

static const struct {
	const char *what;
	size_t is, was;
} facts[] = {
	SIZE(struct gcoll_options, 16),
	PLACE(struct gcoll_options, progress_thread, 0),
	PLACE(struct gcoll_options, uv_loop, 8),
	SIZE(struct gcoll_multicast, 40),
	PLACE(struct gcoll_multicast, buf, 0),
	PLACE(struct gcoll_multicast, count, 8),
	PLACE(struct gcoll_multicast, type, 16),
	PLACE(struct gcoll_multicast, root, 20),
	PLACE(struct gcoll_multicast, dests, 24),
	PLACE(struct gcoll_multicast, ndests, 32),
	SIZE(enum gcoll_type, 4),
	VALUE(GCOLL_BYTE, 0),
	VALUE(GCOLL_UINT64, 8),
	VALUE(GCOLL_BFLOAT16, 12),
	VALUE(GCOLL_ELEMENT(3), 0x40000003),
	SIZE(enum gcoll_op, 4),
	VALUE(GCOLL_SUM, 0),
	VALUE(GCOLL_AVG, 7),
	VALUE(GCOLL_OP_USER, 0x40000000),
	VALUE(-GCOLL_ERR_INVAL, 1),
	VALUE(-GCOLL_ERR_VERIFY, 14),
	VALUE(-GCOLL_ERR_FORKED, 15),
};

int main(void)
{
	size_t i;
	int rc = 0;

	if (sizeof(void *) != 8)
		return puts("skipped: pointers do not have 64 bits"), 77;
	for (i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (facts[i].is != facts[i].was) {
			printf("%s: %zu, was %zu\n", facts[i].what, facts[i].is, facts[i].was);
			rc = 1;
		}
	return rc;
}
