/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/candidate.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_NUMBER 65536 /* of senders or children: as many as a job has ranks */

static const struct parameter {
	const char *prefix;
	unsigned trait;
} parameters[] = {{"senders=", GCI_USES_SENDERS}, {"degree=", GCI_USES_DEGREE},
	{"segment=", GCI_USES_SEGMENT}};

void gci_candidate_print(const struct gci_candidate *w, char out[GCI_CANDIDATE_NBYTES])
{
	size_t n = 0, room = GCI_CANDIDATE_NBYTES;

	/* Names are far shorter than that; snprintf's result is what it would have liked to write.
	 */
	n += (size_t)snprintf(out, room, "%.40s", w->algorithm->name);
	if (w->senders)
		n += (size_t)snprintf(out + n, room - n, ":senders=%" PRIu32, w->senders);
	if (w->segment_nbytes)
		n += (size_t)snprintf(out + n, room - n, ":segment=%" PRIu64, w->segment_nbytes);
	if (w->degree)
		snprintf(out + n, room - n, ":degree=%" PRIu32, w->degree);
}

int gci_candidate_same(const struct gci_candidate *a, const struct gci_candidate *b)
{
	return a->algorithm == b->algorithm && a->senders == b->senders && a->degree == b->degree &&
	       a->segment_nbytes == b->segment_nbytes;
}

/* ---- text to candidate */

/* A part of the text, up to a colon or the end. */
struct word {
	const char *at;
	int len;
};

/* False when there is none left. */
static int next_word(const char **p, struct word *w)
{
	if (!*p)
		return 0;
	w->at = *p;
	w->len = (int)strcspn(*p, ":");
	*p = w->at[w->len] ? w->at + w->len + 1 : NULL;
	return 1;
}

static int unknown_algorithm(enum gci_kind kind, const struct word *name, struct gci_error *e)
{
	const struct gci_algorithm *a;
	char list[400] = "";

	gci_each_algorithm (a)
		if (a->kind == kind)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), " %s", a->name);
	return gci_error_set(e, GCOLL_ERR_INVAL,
		"%s: unknown algorithm \"%.*s\", expected auto or one of:%s", gci_kind_name(kind),
		name->len < 64 ? name->len : 64, name->at, list);
}

/* True of a parameter that was given before. */
static int has_value(const struct gci_candidate *w, unsigned trait)
{
	if (trait == GCI_USES_SEGMENT)
		return w->segment_nbytes != 0;
	return (trait == GCI_USES_SENDERS ? w->senders : w->degree) != 0;
}

static int set_value(struct gci_candidate *w, unsigned trait, const struct word *p,
	const char *value, struct gci_error *e)
{
	const char *expected = GCI_BYTES_EXPECTED;
	uint64_t v = 0;
	int wrong;

	if (trait == GCI_USES_SEGMENT) {
		wrong = gci_parse_bytes(value, &v);
	} else {
		wrong = gci_parse_uint(value, MOST_NUMBER, &v);
		expected = "a number from 1 to 65536";
	}
	if (wrong || !v)
		return gci_error_set(e, GCOLL_ERR_INVAL, "%s: \"%.*s\", expected %s",
			gci_kind_name(w->algorithm->kind), p->len, p->at, expected);
	if (trait == GCI_USES_SEGMENT)
		w->segment_nbytes = v;
	else if (trait == GCI_USES_SENDERS)
		w->senders = (uint32_t)v;
	else
		w->degree = (uint32_t)v;
	return 0;
}

static int set_parameter(struct gci_candidate *w, const struct word *p, struct gci_error *e)
{
	const char *kind = gci_kind_name(w->algorithm->kind);
	const struct parameter *k = parameters, *end = k + sizeof(parameters) / sizeof(*k);
	char value[64];

	while (k < end && strncmp(p->at, k->prefix, strlen(k->prefix)) != 0)
		k++;
	if (k == end || p->len >= (int)sizeof(value))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%s: unknown parameter \"%.*s\", "
			"expected senders=N, segment=BYTES or degree=D",
			kind, p->len < 64 ? p->len : 64, p->at);
	if (!(w->algorithm->traits & k->trait))
		return gci_error_set(e, GCOLL_ERR_INVAL, "%s: %s does not use \"%.*s\"", kind,
			w->algorithm->name, p->len, p->at);
	if (has_value(w, k->trait))
		return gci_error_set(e, GCOLL_ERR_INVAL, "%s: \"%.*s\", expected %.*s once", kind,
			p->len, p->at, (int)strlen(k->prefix) - 1, k->prefix);
	snprintf(value, sizeof(value), "%.*s", p->len - (int)strlen(k->prefix),
		p->at + strlen(k->prefix));
	return set_value(w, k->trait, p, value, e);
}

static int is_auto(const struct word *name)
{
	return name->len == 4 && !strncmp(name->at, "auto", 4);
}

static const struct gci_algorithm *find_algorithm(enum gci_kind kind, const struct word *name)
{
	char text[64];

	if (name->len >= (int)sizeof(text))
		return NULL;
	snprintf(text, sizeof(text), "%.*s", name->len, name->at);
	return gci_algorithm_find(kind, is_auto(name) ? NULL : text);
}

int gci_candidate_parse(
	struct gci_candidate *w, enum gci_kind kind, const char *text, struct gci_error *e)
{
	struct gci_candidate got = {0};
	struct word word = {"", 0};
	int rc = 0;

	next_word(&text, &word);
	got.algorithm = find_algorithm(kind, &word);
	if (!got.algorithm)
		return unknown_algorithm(kind, &word, e);
	if (is_auto(&word) && text)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "%s: auto takes no parameters", gci_kind_name(kind));
	while (!rc && next_word(&text, &word))
		rc = set_parameter(&got, &word, e);
	if (!rc)
		*w = got;
	return rc;
}

void gci_candidate_apply(const struct gci_candidate *w, struct gci_coll *c)
{
	c->senders = w->senders;
	c->degree = w->degree;
	c->segment = 0;
	if (w->algorithm->traits & GCI_PACKS && !c->like)
		c->like = c->count; /* all windows go by one packing */
	if (c->esize)
		c->segment = w->segment_nbytes / c->esize + !!(w->segment_nbytes % c->esize);
}
