/* SPDX-License-Identifier: MIT */
#include "shaping/trie.h"

#include "shaping/trie_shared.h"

#include <bpf/bpf.h>
#include <string.h>

static struct gci_trie_key to_key(const struct gci_net *net)
{
	struct gci_trie_key k = {.bits = net->bits};

	if (net->six == 6) {
		memcpy(k.ip, net->ip, 16);
	} else {
		k.bits += 96;
		k.ip[10] = k.ip[11] = 0xff;
		memcpy(k.ip + 12, net->ip, 4);
	}
	return k;
}

static struct gci_net to_net(const struct gci_trie_key *k)
{
	struct gci_net net = gci_net_of_ip(k->ip);

	if (net.six == 4 && k->bits < 96) { /* ::/80, say: no IPv4 at all */
		net.six = 6;
		memcpy(net.ip, k->ip, 16);
	}
	net.bits = (uint8_t)(net.six == 4 ? k->bits - 96 : k->bits);
	return net;
}

/* The class of exactly this entry, or -1. */
static int class_of(int map_fd, const struct gci_trie_key *key)
{
	struct gci_trie_value v;

	if (bpf_map_lookup_elem(map_fd, key, &v) || v.bits != key->bits)
		return -1;
	return (int)v.class;
}

size_t gci_trie_find_other(int map_fd, const struct gci_net *nets, size_t n, int number, int *other)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct gci_trie_key key = to_key(&nets[i]);

		*other = class_of(map_fd, &key);
		if (*other >= 0 && *other != number)
			break;
	}
	return i;
}

int gci_trie_add(int map_fd, const struct gci_net *nets, size_t n, int number, struct gci_error *e)
{
	char text[GCI_NET_TEXT];
	size_t i;

	for (i = 0; i < n; i++) {
		struct gci_trie_key key = to_key(&nets[i]);
		struct gci_trie_value v = {(uint32_t)number, key.bits};

		if (bpf_map_update_elem(map_fd, &key, &v, BPF_ANY))
			return gci_error_errno(e, "cannot add %s (at most %d networks)",
				gci_net_text(&nets[i], text), GCI_TRIE_MAX);
	}
	return 0;
}

/* Entries of a class; they are taken away where `forget` says so. */
static unsigned walk(int map_fd, int number, struct gci_net *out, unsigned max, int forget)
{
	struct gci_trie_key key, next;
	unsigned n = 0;
	int rc = bpf_map_get_next_key(map_fd, NULL, &next);

	while (!rc) {
		key = next;
		rc = bpf_map_get_next_key(map_fd, &key, &next);
		if (class_of(map_fd, &key) != number)
			continue;
		if (n < max)
			out[n] = to_net(&key);
		n++;
		if (forget)
			bpf_map_delete_elem(map_fd, &key);
	}
	return n;
}

unsigned gci_trie_list(int map_fd, int number, struct gci_net *out, unsigned max)
{
	return walk(map_fd, number, out, max, 0);
}

void gci_trie_remove(int map_fd, int number)
{
	walk(map_fd, number, NULL, 0, 1);
}
