/* SPDX-License-Identifier: MIT
 * Networks as the kernel's programs look them up: entries of an LPM trie, destination -> class, the
 * longest prefix first. IPv4 stands there as ::ffff:a.b.c.d, so one trie has both families. For
 * programs and their loaders. */
#ifndef GCI_SHAPING_TRIE_SHARED_H
#define GCI_SHAPING_TRIE_SHARED_H

#include <linux/types.h>

#define GCI_TRIE_MAX 4096

struct gci_trie_key {
	__u32 bits;
	__u8 ip[16];
};

struct gci_trie_value {
	__u32 class;
	__u32 bits; /* those of its key: whoever looks it up sees which entry it was */
};

/* Of the kernel's programs. */
#define GCI_TRIE_MAP(name)                            \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);  \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__uint(max_entries, GCI_TRIE_MAX);    \
		__type(key, struct gci_trie_key);     \
		__type(value, struct gci_trie_value); \
	} name SEC(".maps")

#endif
