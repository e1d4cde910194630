/* SPDX-License-Identifier: MIT
 * Trees in which every subtree is a range of members, the first of which is its root: then a
 * subtree's blocks go in one message. Scatter and gather walk them:
 *
 *	struct gci_subtree s = gci_subtree_of(GCI_TREE_BINARY, g.n, g.me);
 *	int child, end;
 *
 *	for (child = s.a + 1; child < s.z; child = end)
 *		end = gci_subtree_end(&s, child);	// subtree [child, end)
 */
#ifndef GCI_COLLECTIVES_BLOCKS_SUBTREE_H
#define GCI_COLLECTIVES_BLOCKS_SUBTREE_H

enum gci_tree_shape {
	GCI_TREE_FLAT, /* member 0 is the parent of all others */
	GCI_TREE_CHAIN,
	GCI_TREE_BINARY /* two halves below each root */
};

/* Members [a, z), whose root is member a; `parent` is -1 for member 0. */
struct gci_subtree {
	enum gci_tree_shape shape;
	int a, z, parent;
};

/* The subtree whose root is `me`, of the tree over members [0, n). Cost: O(its depth), 1 for
 * flat trees and chains. */
struct gci_subtree gci_subtree_of(enum gci_tree_shape shape, int n, int me);

/* The end of the range of a's child `child`. */
int gci_subtree_end(const struct gci_subtree *s, int child);

#endif
