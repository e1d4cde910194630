/* SPDX-License-Identifier: MIT */
#include "collectives/imap.h"

#include "base/error.h"
#include "base/mem.h"

#include <string.h>

void gci_imap_init(struct gci_imap *m)
{
	memset(m, 0, sizeof(*m));
	m->n = 1;
}

void gci_imap_free(struct gci_imap *m)
{
	gci_free(m->nodes);
	memset(m, 0, sizeof(*m));
}

static int32_t new_node(struct gci_imap *m, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	struct gci_imap_node *node;
	int32_t i = m->unused;

	if (i) {
		m->unused = m->nodes[i].left;
	} else {
		if (m->n >= INT32_MAX || gci_grow(&m->nodes, &m->cap, m->n + 1, sizeof(*node))) {
			m->failed = 1;
			return 0;
		}
		i = (int32_t)m->n++;
	}
	node = &m->nodes[i];
	*node = (struct gci_imap_node){lo, hi, v, gci_prng_next(&m->prng), 0, 0};
	return i;
}

static int32_t merge(struct gci_imap *m, int32_t a, int32_t b)
{
	struct gci_imap_node *na, *nb;

	if (!a || !b)
		return a ? a : b;
	na = &m->nodes[a];
	nb = &m->nodes[b];
	if (na->priority > nb->priority) {
		na->right = merge(m, na->right, b);
		return a;
	}
	nb->left = merge(m, a, nb->left);
	return b;
}

/* Splits tree t into what lies below `at` and the rest; an interval across `at` is cut. */
static void split(struct gci_imap *m, int32_t t, uint64_t at, int32_t *below, int32_t *rest)
{
	int32_t part;

	if (!t) {
		*below = *rest = 0;
	} else if (m->nodes[t].hi <= at) {
		split(m, m->nodes[t].right, at, &part, rest);
		m->nodes[t].right = part;
		*below = t;
	} else if (m->nodes[t].lo >= at) {
		split(m, m->nodes[t].left, at, below, &part);
		m->nodes[t].left = part;
		*rest = t;
	} else {
		int32_t cut = new_node(m, at, m->nodes[t].hi, m->nodes[t].v);

		*rest = m->nodes[t].right;
		if (cut) {
			m->nodes[t].hi = at;
			*rest = merge(m, cut, *rest);
		}
		m->nodes[t].right = 0;
		*below = t;
	}
}

static void release(struct gci_imap *m, int32_t t)
{
	if (!t)
		return;
	release(m, m->nodes[t].left);
	release(m, m->nodes[t].right);
	m->nodes[t].left = m->unused;
	m->unused = t;
}

void gci_imap_set(struct gci_imap *m, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	int32_t below, inside, above, node;

	if (lo >= hi || m->failed)
		return;
	split(m, m->root, lo, &below, &inside);
	split(m, inside, hi, &inside, &above);
	release(m, inside);
	node = new_node(m, lo, hi, v);
	m->root = merge(m, merge(m, below, node), above);
}

struct walk {
	struct gci_imap *m;
	int (*fn)(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v);
	void *ctx;
};

static int visit(const struct walk *w, int32_t t)
{
	struct gci_imap_node *node;
	int rc;

	if (!t)
		return 0;
	node = &w->m->nodes[t];
	rc = visit(w, node->left);
	if (!rc)
		rc = w->fn(w->ctx, node->lo, node->hi, &node->v);
	return rc ? rc : visit(w, node->right);
}

/* The first gap within [lo, hi) of tree t: true with its bounds. */
static int find_gap(const struct gci_imap *m, int32_t t, uint64_t *lo, uint64_t *hi)
{
	const struct gci_imap_node *node;

	if (!t)
		return *lo < *hi;
	node = &m->nodes[t];
	if (*lo < node->lo) {
		uint64_t before = node->lo < *hi ? node->lo : *hi;

		if (find_gap(m, node->left, lo, &before)) {
			*hi = before;
			return 1;
		}
	}
	if (*lo < node->hi)
		*lo = node->hi;
	return *lo < *hi && find_gap(m, node->right, lo, hi);
}

int gci_imap_each(struct gci_imap *m, uint64_t lo, uint64_t hi, const struct gci_ival *fill,
	int (*fn)(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v), void *ctx)
{
	struct walk w = {m, fn, ctx};
	int32_t below, inside, above;
	int rc;

	if (lo >= hi)
		return 0;
	while (fill && !m->failed) {
		uint64_t gap_lo = lo, gap_hi = hi;

		if (!find_gap(m, m->root, &gap_lo, &gap_hi))
			break;
		gci_imap_set(m, gap_lo, gap_hi, *fill);
	}
	if (m->failed)
		return GCOLL_ERR_NOMEM;
	split(m, m->root, lo, &below, &inside);
	split(m, inside, hi, &inside, &above);
	rc = m->failed ? GCOLL_ERR_NOMEM : visit(&w, inside);
	m->root = merge(m, merge(m, below, inside), above);
	return rc;
}
