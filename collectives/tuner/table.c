/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/table.h"

#include "base/buf.h"
#include "base/jsontext.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/layout.h"

#include <inttypes.h>
#include <string.h>

/* ---- Decision tables as text: strict, since a table that is misread makes every run of a job
 * slow. */

static int parse_entry(const struct gci_json_node *node, enum gci_kind kind,
	struct gci_table_entry *entry, uint64_t least)
{
	static const char *const keys[] = {
		"nbytes", "algorithm", "predicted_ns", "measured_ns", NULL};
	struct gci_error why = {0};
	const char *how = NULL;
	int rc = gci_json_keys(node, keys);

	*entry = (struct gci_table_entry){0};
	if (!rc)
		rc = gci_json_uint(node, "nbytes", least,
			kind == GCI_BARRIER ? 0 : GCI_TABLE_MAX_NBYTES, &entry->nbytes);
	if (!rc)
		rc = gci_json_string(node, "algorithm", GCI_CANDIDATE_NBYTES - 1, &how);
	if (!rc && gci_candidate_parse(&entry->how, kind, how, &why))
		rc = gci_json_fail(node, "algorithm",
			why.status == GCOLL_ERR_NOMEM ? why.status : GCOLL_ERR_PARSE, "%s",
			why.text);
	if (!rc && gci_json_has(node, "predicted_ns"))
		rc = gci_json_uint(node, "predicted_ns", 0, INT64_MAX, &entry->predicted_ns);
	if (!rc && gci_json_has(node, "measured_ns"))
		rc = gci_json_uint(node, "measured_ns", 0, INT64_MAX, &entry->measured_ns);
	return rc;
}

static int parse_kind(
	struct gci_table *t, const struct gci_json_node *operations, enum gci_kind kind)
{
	struct gci_json_node list, node;
	struct gci_table_entry entry;
	uint64_t least = 0;
	size_t i;
	int rc = gci_json_array(operations, gci_kind_name(kind), 1, GCI_TABLE_MAX_ENTRIES, &list);

	for (i = 0; !rc && i < list.n; i++) {
		rc = gci_json_item(&list, i, &node);
		if (!rc)
			rc = parse_entry(&node, kind, &entry, least);
		if (rc)
			return rc;
		rc = gci_table_add(t, kind, &entry);
		least = entry.nbytes + 1;
		if (rc == GCOLL_ERR_INVAL)
			rc = gci_json_fail(&node, NULL, GCOLL_ERR_PARSE,
				"too many entries, expected at most %d of all operations",
				GCI_TABLE_MAX_ENTRIES);
		else if (rc)
			rc = gci_json_fail(&node, NULL, rc, "out of memory");
	}
	return rc;
}

static int parse_operations(struct gci_table *t, const struct gci_json_node *root)
{
	const char *kinds[GCI_NKINDS + 1];
	struct gci_json_node operations;
	int k, rc;

	for (k = 0; k < GCI_NKINDS; k++)
		kinds[k] = gci_kind_name((enum gci_kind)k);
	kinds[k] = NULL;
	rc = gci_json_object(root, "operations", &operations);
	if (!rc)
		rc = gci_json_keys(&operations, kinds);
	for (k = 0; !rc && k < GCI_NKINDS; k++)
		if (gci_json_has(&operations, kinds[k]))
			rc = parse_kind(t, &operations, (enum gci_kind)k);
	return rc;
}

static int parse(struct gci_table *t, const struct gci_json_node *root, uint64_t grid_digest)
{
	static const char *const keys[] = {
		"version", "date", "grid_digest", "ranks", "clusters", "operations", NULL};
	uint64_t version, nranks = 0, nclusters = 0;
	const char *date = NULL;
	/* The version first: another one may have other keys. */
	int rc = gci_json_uint(root, "version", 1, 1, &version);

	if (!rc)
		rc = gci_json_keys(root, keys);
	if (!rc)
		rc = gci_json_date(root, "date", &date);
	if (!rc)
		strncpy(t->date, date, sizeof(t->date) - 1);
	if (!rc)
		rc = gci_json_digest(root, "grid_digest", &t->grid_digest);
	if (!rc && grid_digest && t->grid_digest != grid_digest)
		rc = gci_json_fail(root, "grid_digest", GCOLL_ERR_INVAL,
			"made for another grid: grid_digest %016" PRIx64 ", expected %016" PRIx64
			" as of this one; gridcoll tune makes one for it",
			t->grid_digest, grid_digest);
	if (!rc)
		rc = gci_json_uint(root, "ranks", 1, GCI_GRID_MAX_HOSTS, &nranks);
	if (!rc)
		rc = gci_json_uint(root, "clusters", 1,
			nranks < GCI_GRID_MAX_CLUSTERS ? nranks : GCI_GRID_MAX_CLUSTERS,
			&nclusters);
	t->nranks = (int)nranks;
	t->nclusters = (int)nclusters;
	return rc ? rc : parse_operations(t, root);
}

int gci_table_parse(struct gci_table *t, const char *text, size_t len, const char *name,
	uint64_t grid_digest, struct gci_error *e)
{
	struct gci_json_node root;
	struct gci_json doc;
	int rc;

	memset(t, 0, sizeof(*t));
	rc = gci_json_open(&doc, &root, text, len, GCI_TABLE_MAX_TEXT, name, e);
	if (!rc)
		rc = parse(t, &root, grid_digest);
	gci_json_close(&doc);
	if (rc)
		gci_table_free(t);
	return rc;
}

/* ---- tables: their entries, and what they say */

typedef unsigned __int128 u128;

void gci_table_free(struct gci_table *t)
{
	int k;

	for (k = 0; k < GCI_NKINDS; k++)
		gci_free(t->entries[k]);
	memset(t, 0, sizeof(*t));
}

static size_t all_entries(const struct gci_table *t)
{
	size_t n = 0;
	int k;

	for (k = 0; k < GCI_NKINDS; k++)
		n += t->nentries[k];
	return n;
}

/* The first entry of at least this size. */
static size_t lower_bound(const struct gci_table *t, enum gci_kind kind, uint64_t nbytes)
{
	size_t lo = 0, hi = t->nentries[kind];

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->entries[kind][mid].nbytes < nbytes)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int gci_table_add(struct gci_table *t, enum gci_kind kind, const struct gci_table_entry *entry)
{
	size_t at = lower_bound(t, kind, entry->nbytes), n = t->nentries[kind];
	struct gci_table_entry *v;

	if (entry->nbytes > GCI_TABLE_MAX_NBYTES)
		return GCOLL_ERR_INVAL;
	if (at < n && t->entries[kind][at].nbytes == entry->nbytes) {
		t->entries[kind][at] = *entry;
		return 0;
	}
	if (all_entries(t) >= GCI_TABLE_MAX_ENTRIES)
		return GCOLL_ERR_INVAL;
	if (gci_grow_by_one(&t->entries[kind], n, sizeof(*v)))
		return GCOLL_ERR_NOMEM;
	v = t->entries[kind] + at;
	memmove(v + 1, v, (n - at) * sizeof(*v));
	*v = *entry;
	t->nentries[kind]++;
	return 0;
}

static void print_entry(const struct gci_table_entry *e, struct gci_buf *out)
{
	char how[GCI_CANDIDATE_NBYTES];

	gci_candidate_print(&e->how, how);
	gci_buf_printf(out, "\n   {\"nbytes\": %" PRIu64 ", \"algorithm\": \"%s\"", e->nbytes, how);
	if (e->predicted_ns)
		gci_buf_printf(out, ", \"predicted_ns\": %" PRIu64, e->predicted_ns);
	if (e->measured_ns)
		gci_buf_printf(out, ", \"measured_ns\": %" PRIu64, e->measured_ns);
	gci_buf_printf(out, "}");
}

void gci_table_print(const struct gci_table *t, struct gci_buf *out)
{
	const char *comma = "";
	size_t i;
	int k;

	gci_buf_printf(out,
		"{\"version\": 1, \"date\": \"%s\", \"grid_digest\": \"%016" PRIx64 "\",\n"
		" \"ranks\": %d, \"clusters\": %d,\n \"operations\": {",
		t->date, t->grid_digest, t->nranks, t->nclusters);
	for (k = 0; k < GCI_NKINDS; k++) {
		if (!t->nentries[k])
			continue;
		gci_buf_printf(out, "%s\n  \"%s\": [", comma, gci_kind_name((enum gci_kind)k));
		for (i = 0; i < t->nentries[k]; i++) {
			gci_buf_printf(out, "%s", i ? "," : "");
			print_entry(&t->entries[k][i], out);
		}
		gci_buf_printf(out, "]");
		comma = ",";
	}
	gci_buf_printf(out, "}}\n");
}

uint64_t gci_table_digest(const struct gci_table *t)
{
	uint64_t d = gci_digest(gci_digest(0, (uint64_t)t->nranks), (uint64_t)t->nclusters);
	char how[GCI_CANDIDATE_NBYTES];
	size_t i;
	int k;

	d = gci_digest(d, t->grid_digest);
	for (k = 0; k < GCI_NKINDS; k++) {
		const char *kind = gci_kind_name((enum gci_kind)k);

		if (t->nentries[k])
			d = gci_digest_bytes(d, kind, strlen(kind));
		for (i = 0; i < t->nentries[k]; i++) {
			gci_candidate_print(&t->entries[k][i].how, how);
			d = gci_digest(d, t->entries[k][i].nbytes);
			d = gci_digest_bytes(d, how, strlen(how));
		}
	}
	return d;
}

static uint64_t times(uint64_t ns, uint32_t k)
{
	uint64_t out;

	return __builtin_mul_overflow(ns, (uint64_t)k, &out) ? UINT64_MAX : out;
}

void gci_table_dilate(struct gci_table *t, uint32_t k)
{
	size_t i;
	int kind;

	for (kind = 0; kind < GCI_NKINDS; kind++)
		for (i = 0; i < t->nentries[kind]; i++) {
			struct gci_table_entry *e = &t->entries[kind][i];

			e->predicted_ns = times(e->predicted_ns, k);
			e->measured_ns = times(e->measured_ns, k);
		}
}

/* ---- looking up */

/* log2(n) in 1/65536, rounded down: n > 0. By squaring: no table, no floating point. */
static uint64_t log2_q16(uint64_t n)
{
	unsigned whole = 63u - (unsigned)__builtin_clzll(n);
	uint64_t m = n << (63 - whole), l = whole;
	int i;

	for (i = 0; i < 16; i++) {
		u128 square = (u128)m * m >> 63;
		unsigned carry = (unsigned)(square >> 64);

		m = (uint64_t)(square >> carry);
		l = l << 1 | carry;
	}
	return l;
}

/* The largest number whose log2_q16 is at most l. */
static uint64_t exp2_q16(uint64_t l)
{
	uint64_t lo = 1, hi = GCI_TABLE_MAX_NBYTES;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo + 1) / 2;

		if (log2_q16(mid) <= l)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/* From x, at size a, to y, at size b: as the sizes go by ratio, so does it. a < n < b. */
static uint64_t between(uint64_t x, uint64_t y, uint64_t a, uint64_t b, uint64_t n)
{
	uint64_t la = log2_q16(a ? a : 1), span = log2_q16(b) - la, part = log2_q16(n) - la;
	uint64_t lx = log2_q16(x), ly = log2_q16(y);
	uint64_t least = x < y ? x : y, most = x < y ? y : x, v;

	if (!span)
		return x;
	/* Up to 60 x 65536 each: the products fit. */
	v = exp2_q16(lx < ly ? lx + (ly - lx) * part / span : lx - (lx - ly) * part / span);
	return v < least ? least : v > most ? most : v;
}

int gci_table_find(const struct gci_table *t, enum gci_kind kind, int nranks, uint64_t nbytes,
	struct gci_candidate *out)
{
	const struct gci_table_entry *v = t->entries[kind], *a, *b;
	size_t n = t->nentries[kind], at;

	if (nranks != t->nranks || !n)
		return 0;
	at = lower_bound(t, kind, nbytes);
	if (at == n || !at || v[at].nbytes == nbytes) {
		*out = v[at == n ? n - 1 : at].how;
		return 1;
	}
	a = &v[at - 1];
	b = &v[at];
	/* The nearer by ratio: n/a <= b/n. */
	*out = (u128)nbytes * nbytes <= (u128)(a->nbytes ? a->nbytes : 1) * b->nbytes ? a->how
										      : b->how;
	if (a->how.algorithm == b->how.algorithm && a->how.segment_nbytes && b->how.segment_nbytes)
		out->segment_nbytes = between(
			a->how.segment_nbytes, b->how.segment_nbytes, a->nbytes, b->nbytes, nbytes);
	return 1;
}

static uint64_t expected(const struct gci_table_entry *e)
{
	return e->measured_ns ? e->measured_ns : e->predicted_ns;
}

static uint64_t proportion(uint64_t x, uint64_t part, uint64_t whole)
{
	u128 v = (u128)x * part / whole;

	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

uint64_t gci_table_ns(const struct gci_table *t, enum gci_kind kind, int nranks, uint64_t nbytes)
{
	const struct gci_table_entry *v = t->entries[kind];
	size_t n = t->nentries[kind], at;
	uint64_t x, y, part, whole;

	if (nranks != t->nranks || !n)
		return 0;
	at = lower_bound(t, kind, nbytes);
	if (at < n && (!at || v[at].nbytes == nbytes))
		return expected(&v[at]);
	x = expected(&v[at - 1]);
	if (at == n)
		return v[n - 1].nbytes ? proportion(x, nbytes, v[n - 1].nbytes) : x;
	y = expected(&v[at]);
	part = nbytes - v[at - 1].nbytes;
	whole = v[at].nbytes - v[at - 1].nbytes;
	if (!x || !y)
		return 0;
	return x < y ? x + proportion(y - x, part, whole) : x - proportion(x - y, part, whole);
}

uint64_t gci_table_nbytes(const struct gci_coll *c)
{
	uint64_t nbytes;

	if (c->kind == GCI_BARRIER)
		return 0;
	if (__builtin_mul_overflow(gci_total(c), (uint64_t)c->esize, &nbytes))
		return UINT64_MAX;
	return nbytes;
}

uint64_t gci_table_round(uint64_t nbytes)
{
	/* log2 + 1/2, in 1/65536. */
	uint64_t l = nbytes ? log2_q16(nbytes) + (1u << 15) : 0;

	if (nbytes > GCI_TABLE_MAX_NBYTES)
		return GCI_TABLE_MAX_NBYTES;
	return nbytes ? UINT64_C(1) << (l >> 16) : 0;
}
