/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/test.h"

#define N 5000

struct member {
	uint64_t name;
	struct gci_hash_node node;
};

static struct member *find(const struct gci_hash *t, uint64_t name)
{
	struct gci_hash_node *n;

	for (n = gci_hash_first(t, gci_mix64(name)); n; n = gci_hash_next(n))
		if (gci_container(n, struct member, node)->name == name)
			return gci_container(n, struct member, node);
	return NULL;
}

static size_t ndropped;

static void drop(struct gci_hash_node *n)
{
	n->next = NULL; /* as if it were freed */
	ndropped++;
}

/* However many there are, and whichever were taken out: a name finds its member at once. */
static void many_are_found(void **state)
{
	struct member *all = gci_calloc(N, sizeof(*all));
	size_t longest = 0, i, len;
	const struct gci_hash_node *n;
	struct gci_hash t = {0};
	uint32_t k;

	(void)state;
	assert_null(find(&t, 0));
	gci_hash_del(&t, &all[0].node);
	for (k = 0; k < N; k++) {
		all[k].name = 64 * k; /* as the numbers of communicators made by splits */
		assert_int_equal(gci_hash_add(&t, &all[k].node, gci_mix64(all[k].name)), 0);
	}
	for (i = 0; i < t.nslots; i++) {
		for (len = 0, n = t.slots[i]; n; n = n->next)
			len++;
		longest = len > longest ? len : longest;
	}
	assert_in_range(longest, 1, 12);
	for (k = 0; k < N; k += 3)
		gci_hash_del(&t, &all[k].node);
	for (k = 0; k < N; k++) {
		assert_ptr_equal(find(&t, 64 * k), k % 3 ? &all[k] : NULL);
		assert_null(find(&t, 64 * k + 1));
	}
	gci_hash_del(&t, &all[0].node); /* once more */
	assert_int_equal(t.n, N - (N + 2) / 3);
	ndropped = 0;
	gci_hash_free(&t, drop);
	assert_int_equal(ndropped, N - (N + 2) / 3);
	assert_int_equal(t.n, 0);
	gci_free(all);
}

static void one_hash_for_several(void **state)
{
	struct gci_hash_node n[3] = {0}, other = {0};
	struct gci_hash t = {0};
	int i, seen = 0;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(gci_hash_add(&t, &n[i], 7), 0);
	assert_int_equal(gci_hash_add(&t, &other, 7 + 16), 0); /* in the same slot */
	gci_hash_del(&t, &n[1]);
	for (const struct gci_hash_node *x = gci_hash_first(&t, 7); x; x = gci_hash_next(x)) {
		assert_true(x == &n[0] || x == &n[2]);
		seen++;
	}
	assert_int_equal(seen, 2);
	gci_hash_free(&t, NULL);
}

static void out_of_memory(void **state)
{
	static struct gci_hash_node n[17];
	struct gci_hash t = {0};
	int i;

	(void)state;
	gci_mem_fail_at(1);
	assert_int_equal(gci_hash_add(&t, &n[0], 0), -1);
	gci_mem_fail_at(0);
	for (i = 0; i < 16; i++)
		assert_int_equal(gci_hash_add(&t, &n[i], (uint64_t)i), 0);
	gci_mem_fail_at(1);
	assert_int_equal(gci_hash_add(&t, &n[16], 16), -1);
	gci_mem_fail_at(0);
	assert_int_equal(t.n, 16);
	for (i = 0; i < 16; i++)
		assert_ptr_equal(gci_hash_first(&t, (uint64_t)i), &n[i]);
	assert_null(gci_hash_first(&t, 16));
	assert_int_equal(gci_hash_add(&t, &n[16], 16), 0);
	gci_hash_free(&t, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_are_found),
		cmocka_unit_test(one_hash_for_several),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
