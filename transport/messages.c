/* SPDX-License-Identifier: MIT */
#include "transport/messages.h"

#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

#define FIRST_SLOTS 64
#define MAX_SPARE   4096

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

static struct gci_msg **slot_of(const struct gci_msgs *t, uint64_t h)
{
	return &t->slots[h & (t->nslots - 1)];
}

static struct gci_msg *find(
	const struct gci_msgs *t, uint64_t h, int peer, const struct gci_tp_key *key)
{
	struct gci_msg *m;

	if (!t->nslots)
		return NULL;
	for (m = *slot_of(t, h); m; m = m->next)
		if (is(m, peer, key))
			return m;
	return NULL;
}

struct gci_msg *gci_msgs_find(const struct gci_msgs *t, int peer, const struct gci_tp_key *key)
{
	return find(t, hash(peer, key), peer, key);
}

static void put(struct gci_msgs *t, struct gci_msg *m)
{
	struct gci_msg **slot = slot_of(t, m->hash);

	m->next = *slot;
	*slot = m;
}

static int double_slots(struct gci_msgs *t)
{
	struct gci_msgs bigger = *t;
	struct gci_msg *m, *next;
	size_t i;

	bigger.nslots = t->nslots ? 2 * t->nslots : FIRST_SLOTS;
	bigger.slots = gci_calloc(bigger.nslots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -1;
	for (i = 0; i < t->nslots; i++) {
		for (m = t->slots[i]; m; m = next) {
			next = m->next;
			put(&bigger, m);
		}
	}
	gci_free(t->slots);
	*t = bigger;
	return 0;
}

static struct gci_msg *add(struct gci_msgs *t, uint64_t h, int peer, const struct gci_tp_key *key)
{
	struct gci_msg *m;

	if (t->n >= t->nslots && double_slots(t))
		return NULL;
	m = t->spare;
	if (m) {
		t->spare = m->next;
		t->nspare--;
	} else {
		m = gci_calloc(1, sizeof(*m));
		if (!m)
			return NULL;
	}
	*m = (struct gci_msg){.hash = h, .peer = peer, .key = *key};
	put(t, m);
	t->n++;
	return m;
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
	struct gci_msg **p = slot_of(t, m->hash);

	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	t->n--;
	gci_list_del(&m->link);
	if (m->early)
		gci_free(m->early);
	if (t->nspare >= MAX_SPARE) {
		gci_free(m);
		return;
	}
	m->early = NULL;
	m->next = t->spare;
	t->spare = m;
	t->nspare++;
}

static void free_chain(struct gci_msg *m)
{
	struct gci_msg *next;

	for (; m; m = next) {
		next = m->next;
		gci_free(m->early);
		gci_free(m);
	}
}

void gci_msgs_free(struct gci_msgs *t)
{
	size_t i;

	for (i = 0; i < t->nslots; i++)
		free_chain(t->slots[i]);
	free_chain(t->spare);
	gci_free(t->slots);
	memset(t, 0, sizeof(*t));
}
