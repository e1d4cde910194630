/* SPDX-License-Identifier: MIT */
#include "collectives/schedule/imap.h"

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
	if (m->last == t)
		m->last = 0;
}

/* Of the nodes that overlap [lo, hi), the one nearest to the root; 0: none. What was used latest is
 * tried first: a step's slice is mostly looked up to be set, or read after it was written. */
static int32_t find(const struct gci_imap *m, uint64_t lo, uint64_t hi)
{
	const struct gci_imap_node *node = m->last ? &m->nodes[m->last] : NULL;
	int32_t t = m->root;

	if (node && node->lo == lo && node->hi == hi)
		return m->last;
	while (t) {
		node = &m->nodes[t];
		if (hi <= node->lo)
			t = node->left;
		else if (lo >= node->hi)
			t = node->right;
		else
			break;
	}
	return t;
}

static int is_exactly(const struct gci_imap *m, int32_t t, uint64_t lo, uint64_t hi)
{
	return m->nodes[t].lo == lo && m->nodes[t].hi == hi;
}

/* Puts a node where there is a gap: only the nodes below it change their places. */
static void insert(struct gci_imap *m, int32_t node)
{
	const struct gci_imap_node *n = &m->nodes[node];
	int32_t *at = &m->root, below, above;

	while (*at && m->nodes[*at].priority >= n->priority)
		at = n->lo < m->nodes[*at].lo ? &m->nodes[*at].left : &m->nodes[*at].right;
	split(m, *at, n->lo, &below, &above);
	m->nodes[node].left = below;
	m->nodes[node].right = above;
	*at = node;
}

static void replace(struct gci_imap *m, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	int32_t below, inside, above;

	split(m, m->root, lo, &below, &inside);
	split(m, inside, hi, &inside, &above);
	release(m, inside);
	m->last = new_node(m, lo, hi, v);
	m->root = merge(m, merge(m, below, m->last), above);
}

void gci_imap_set(struct gci_imap *m, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	int32_t t;

	if (lo >= hi || m->failed)
		return;
	t = find(m, lo, hi);
	if (!t) {
		m->last = new_node(m, lo, hi, v);
		if (m->last)
			insert(m, m->last);
	} else if (is_exactly(m, t, lo, hi)) {
		m->nodes[t].v = v;
		m->last = t;
	} else {
		replace(m, lo, hi, v);
	}
}

struct walk {
	struct gci_imap *m;
	int (*fn)(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v);
	void *ctx;
};

/* The nodes of tree t that overlap [lo, hi). */
static int visit(const struct walk *w, int32_t t, uint64_t lo, uint64_t hi)
{
	struct gci_imap_node *node;
	int rc = 0;

	if (!t)
		return 0;
	node = &w->m->nodes[t];
	if (lo < node->lo)
		rc = visit(w, node->left, lo, hi);
	if (!rc && lo < node->hi && hi > node->lo)
		rc = w->fn(w->ctx, node->lo, node->hi, &node->v);
	return rc || hi <= node->hi ? rc : visit(w, node->right, lo, hi);
}

/* Does `at` lie within an interval of tree t? */
static int cuts(const struct gci_imap *m, int32_t t, uint64_t at)
{
	while (t && (at <= m->nodes[t].lo || at >= m->nodes[t].hi))
		t = at <= m->nodes[t].lo ? m->nodes[t].left : m->nodes[t].right;
	return t != 0;
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

static void fill_gaps(struct gci_imap *m, uint64_t lo, uint64_t hi, const struct gci_ival *fill)
{
	int32_t t = find(m, lo, hi);

	if (!t || is_exactly(m, t, lo, hi)) {
		if (!t)
			gci_imap_set(m, lo, hi, *fill);
		return;
	}
	while (!m->failed) {
		uint64_t gap_lo = lo, gap_hi = hi;

		if (!find_gap(m, m->root, &gap_lo, &gap_hi))
			break;
		gci_imap_set(m, gap_lo, gap_hi, *fill);
	}
}

int gci_imap_each(struct gci_imap *m, uint64_t lo, uint64_t hi, const struct gci_ival *fill,
	int (*fn)(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v), void *ctx)
{
	struct walk w = {m, fn, ctx};
	int32_t below, inside, above, t;
	int rc;

	if (lo >= hi)
		return 0;
	if (fill)
		fill_gaps(m, lo, hi, fill);
	if (m->failed)
		return GCOLL_ERR_NOMEM;
	t = find(m, lo, hi);
	if (!t)
		return 0;
	if (is_exactly(m, t, lo, hi)) {
		m->last = t;
		return fn(ctx, lo, hi, &m->nodes[t].v);
	}
	if (!cuts(m, t, lo) && !cuts(m, t, hi))
		return visit(&w, t, lo, hi);
	split(m, m->root, lo, &below, &inside);
	split(m, inside, hi, &inside, &above);
	rc = m->failed ? GCOLL_ERR_NOMEM : visit(&w, inside, lo, hi);
	m->root = merge(m, merge(m, below, inside), above);
	return rc;
}
