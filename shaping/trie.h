/* SPDX-License-Identifier: MIT
 * A map of networks to classes (trie_shared.h), from the loader's side.
 *
 *	int other;
 *
 *	if (gci_trie_find_other(map_fd, nets, n, number, &other) < n)
 *		... nets[...] is class `other`'s
 *	rc = gci_trie_add(map_fd, nets, n, number, &e);
 *	n = gci_trie_list(map_fd, number, nets, max);
 *	gci_trie_remove(map_fd, number);
 */
#ifndef GCI_SHAPING_TRIE_H
#define GCI_SHAPING_TRIE_H

#include "shaping/net.h"

#include <stddef.h>

/* The first of `nets` that another class has, *other, or n: none. */
size_t gci_trie_find_other(
	int map_fd, const struct gci_net *nets, size_t n, int number, int *other);

int gci_trie_add(int map_fd, const struct gci_net *nets, size_t n, int number, struct gci_error *e);

/* At most `max` of a class's; returns how many there are. */
unsigned gci_trie_list(int map_fd, int number, struct gci_net *out, unsigned max);

void gci_trie_remove(int map_fd, int number);

#endif
