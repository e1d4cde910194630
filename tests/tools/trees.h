/* SPDX-License-Identifier: MIT
 * Directories with all kinds of things in them. */
#ifndef GCI_TESTS_TOOLS_TREES_H
#define GCI_TESTS_TOOLS_TREES_H

/* At `path`, which is not there: files of many sizes, directories in each other, an empty one, one
 * that may not be written to, links to files, to directories, to nothing and out of the tree; names
 * with odd characters; times that are long ago. */
void make_tree(const char *path);

/* Everything of the trees `a` and `b` is the same: names, kinds, contents, modes, times, what links
 * point at. */
void assert_same_trees(const char *a, const char *b);

#endif
