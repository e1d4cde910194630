/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/subtree.h"

#include "collectives/blocks/order.h"

int gci_subtree_end(const struct gci_subtree *s, int child)
{
	switch (s->shape) {
	case GCI_TREE_FLAT:
		return child + 1;
	case GCI_TREE_BINARY:
		return child == s->a + 1 ? gci_middle(child, s->z) : s->z;
	default:
		return s->z;
	}
}

struct gci_subtree gci_subtree_of(enum gci_tree_shape shape, int n, int me)
{
	struct gci_subtree s = {shape, 0, n, -1};

	if (me == 0)
		return s;
	if (shape == GCI_TREE_FLAT)
		return (struct gci_subtree){shape, me, me + 1, 0};
	if (shape == GCI_TREE_CHAIN)
		return (struct gci_subtree){shape, me, n, me - 1};
	while (s.a != me) {
		int mid = gci_subtree_end(&s, s.a + 1);

		s.parent = s.a;
		if (me < mid) {
			s.a++;
			s.z = mid;
		} else {
			s.a = mid;
		}
	}
	return s;
}
