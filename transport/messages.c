/* SPDX-License-Identifier: MIT */
#include "transport/messages.h"

#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

#define MAX_SPARE 4096

static uint64_t hash(int peer, const struct gci_tp_key *key)
{
	uint64_t h = key->seq * 0x9e3779b97f4a7c15ull + (uint32_t)peer;

	return gci_mix64(h ^ ((uint64_t)key->tag << 32 | key->comm));
}

static int is(const struct gci_msg *m, int peer, const struct gci_tp_key *key)
{
	return m->peer == peer && m->key.tag == key->tag && m->key.seq == key->seq &&
	       m->key.comm == key->comm;
}

static struct gci_msg *find(
	const struct gci_msgs *t, uint64_t h, int peer, const struct gci_tp_key *key)
{
	struct gci_hash_node *n;

	for (n = gci_hash_first(&t->table, h); n; n = gci_hash_next(n))
		if (is(gci_container(n, struct gci_msg, node), peer, key))
			return gci_container(n, struct gci_msg, node);
	return NULL;
}

struct gci_msg *gci_msgs_find(const struct gci_msgs *t, int peer, const struct gci_tp_key *key)
{
	return find(t, hash(peer, key), peer, key);
}

static void give(struct gci_msg *m)
{
	gci_free(m->early);
	gci_free(m);
}

static void put_away(struct gci_msgs *t, struct gci_msg *m)
{
	if (t->nspare >= MAX_SPARE) {
		give(m);
		return;
	}
	m->early = NULL;
	m->node.next = t->spare;
	t->spare = &m->node;
	t->nspare++;
}

static struct gci_msg *take(struct gci_msgs *t)
{
	struct gci_hash_node *n = t->spare;

	if (!n)
		return gci_calloc(1, sizeof(struct gci_msg));
	t->spare = n->next;
	t->nspare--;
	return gci_container(n, struct gci_msg, node);
}

static struct gci_msg *add(struct gci_msgs *t, uint64_t h, int peer, const struct gci_tp_key *key)
{
	struct gci_msg *m = take(t);

	if (!m)
		return NULL;
	*m = (struct gci_msg){.peer = peer, .key = *key};
	if (!gci_hash_add(&t->table, &m->node, h))
		return m;
	put_away(t, m);
	return NULL;
}

struct gci_msg *gci_msgs_get(
	struct gci_msgs *t, int peer, const struct gci_tp_key *key, int *is_new)
{
	uint64_t h = hash(peer, key);
	struct gci_msg *m = find(t, h, peer, key);

	*is_new = !m;
	return m ? m : add(t, h, peer, key);
}

void gci_msgs_del(struct gci_msgs *t, struct gci_msg *m)
{
	gci_hash_del(&t->table, &m->node);
	gci_list_del(&m->link);
	if (m->early)
		gci_free(m->early);
	m->early = NULL;
	put_away(t, m);
}

static void drop(struct gci_hash_node *n)
{
	give(gci_container(n, struct gci_msg, node));
}

void gci_msgs_free(struct gci_msgs *t)
{
	gci_hash_free(&t->table, drop);
	while (t->spare)
		give(take(t));
	memset(t, 0, sizeof(*t));
}
