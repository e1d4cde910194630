/* SPDX-License-Identifier: MIT */
#include "netem/weather.h"

#include "base/mem.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

enum kind { RATE, TIME, BYTES, RATIO, COUNT, CODEL };

#define LEAST ", 1kbit at least"
#define MOST  ", at most 200s"

static const struct key {
	const char *name, *expected;
	enum kind kind;
	size_t at; /* in the model */
} keys[] = {
	{"rate", GCI_RATE_EXPECTED LEAST, RATE, offsetof(struct gci_wire_model, rate_bps)},
	{"flow_rate", GCI_RATE_EXPECTED LEAST, RATE,
		offsetof(struct gci_wire_model, flow_rate_bps)},
	{"delay", GCI_TIME_EXPECTED MOST, TIME, offsetof(struct gci_wire_model, delay_ns)},
	{"jitter", GCI_TIME_EXPECTED MOST, TIME, offsetof(struct gci_wire_model, jitter_ns)},
	{"queue", GCI_BYTES_EXPECTED, BYTES, offsetof(struct gci_wire_model, queue_nbytes)},
	{"loss", GCI_RATIO_EXPECTED, RATIO, offsetof(struct gci_wire_model, loss_ppm)},
	{"reorder", GCI_RATIO_EXPECTED, RATIO, offsetof(struct gci_wire_model, reorder_ppm)},
	{"duplicate", GCI_RATIO_EXPECTED, RATIO, offsetof(struct gci_wire_model, duplicate_ppm)},
	{"corrupt", GCI_RATIO_EXPECTED, RATIO, offsetof(struct gci_wire_model, corrupt_ppm)},
	{"burst", "a number from 1 to 10000", COUNT, offsetof(struct gci_wire_model, loss_burst)},
	{"codel", "off, or two times such as 5ms,100ms, the shorter one first", CODEL,
		offsetof(struct gci_wire_model, codel_target_ns)},
};

#define NKEYS (sizeof(keys) / sizeof(*keys))
#define KEY_NAMES \
	"rate, delay, queue, flow_rate, loss, jitter, burst, reorder, duplicate, corrupt or codel"
#define MOST_DELAY (200 * GCI_NS_PER_S)
#define MOST_AT    (UINT64_C(1000) * 3600 * 24 * GCI_NS_PER_S)
#define LEAST_RATE 1000
#define MAX_LINE   1024

struct parser {
	struct gci_weather *w;
	const struct gci_grid *g;
	const char *name;
	int line;
	struct gci_error *e;
};

static int nomem(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

static int parse_codel(char *value, struct gci_wire_model *m)
{
	char *comma = strchr(value, ',');

	m->codel_target_ns = m->codel_interval_ns = 0;
	if (!strcmp(value, "off"))
		return 0;
	if (!comma)
		return -1;
	*comma = '\0';
	if (gci_parse_time(value, &m->codel_target_ns) ||
		gci_parse_time(comma + 1, &m->codel_interval_ns) || !m->codel_target_ns ||
		m->codel_target_ns > m->codel_interval_ns || m->codel_interval_ns > MOST_DELAY) {
		*comma = ',';
		return -1;
	}
	return 0;
}

static int parse_value(const struct key *k, char *value, struct gci_wire_model *m)
{
	void *at = (char *)m + k->at;
	uint64_t *wide = at, count;
	uint32_t *narrow = at;

	switch (k->kind) {
	case RATE:
		return gci_parse_rate(value, wide) || *wide < LEAST_RATE;
	case TIME:
		return gci_parse_time(value, wide) || *wide > MOST_DELAY;
	case BYTES:
		return gci_parse_bytes(value, wide) || !*wide;
	case RATIO:
		return gci_parse_ratio(value, narrow);
	case COUNT:
		if (gci_parse_uint(value, 10000, &count) || !count)
			return -1;
		*narrow = (uint32_t)count;
		return 0;
	default:
		return parse_codel(value, m);
	}
}

static int parse_setting(struct parser *p, char *word, struct gci_weather_change *c)
{
	char *value = strchr(word, '=');
	size_t i;

	if (value)
		*value++ = '\0';
	for (i = 0; value && i < NKEYS && strcmp(keys[i].name, word) != 0; i++)
		;
	if (!value || i == NKEYS)
		return gci_error_set(p->e, GCOLL_ERR_PARSE,
			"%s:%d: \"%s\", expected KEY=VALUE with " KEY_NAMES, p->name, p->line,
			word);
	if (parse_value(&keys[i], value, &c->to))
		return gci_error_set(p->e, GCOLL_ERR_PARSE, "%s:%d: %s=%s, expected %s", p->name,
			p->line, word, value, keys[i].expected);
	if (c->set & 1u << i)
		return gci_error_set(p->e, GCOLL_ERR_PARSE, "%s:%d: %s twice, expected once a line",
			p->name, p->line, word);
	c->set |= 1u << i;
	return 0;
}

static int is_end(const char *name, int end)
{
	return end != GCI_GRID_UPLINK || !strcmp(name, "uplink");
}

/* The first of two words that should be a link's end, and is none of the grid; NULL: they are, or look like none. */
static const char *unknown(const struct parser *p, char *const *words, int n)
{
	int i;

	for (i = 0; i < n && !strchr(words[i], '='); i++)
		if (strcmp(words[i], ">") != 0 &&
			!is_end(words[i], gci_grid_find_end(p->g, words[i])))
			return words[i];
	return NULL;
}

/* Reads "A > B", "A B" or "all" from `words`: how many words that were, with what it means in *from and
 * *to (the same: all) and *both; 0 and an error. */
static int parse_way(struct parser *p, char *const *words, int n, int *from, int *to, int *both)
{
	int arrow = n > 2 && !strcmp(words[1], ">");
	const char *not = unknown(p, words, n < 2 + arrow ? n : 2 + arrow);

	*from = *to = -1;
	*both = !arrow;
	if (n && !strcmp(words[0], "all"))
		return 1;
	if (n >= 2 + arrow) {
		*from = gci_grid_find_end(p->g, words[0]);
		*to = gci_grid_find_end(p->g, words[1 + arrow]);
		if (*from != *to && is_end(words[0], *from) && is_end(words[1 + arrow], *to))
			return 2 + arrow;
	}
	gci_error_set(p->e, GCOLL_ERR_PARSE,
		"%s:%d: %s%s%sexpected two ends of a link, as A B, A > B or A > uplink, or all",
		p->name, p->line, not ? "\"" : "", not ? not : "",
		not ? "\" is none of the grid's clusters and switches, " : "");
	return 0;
}

static int add_changes(
	struct parser *p, const struct gci_weather_change *c, int from, int to, int both)
{
	struct gci_weather *w = p->w;
	size_t before = w->nchanges;
	int i;

	for (i = 0; i < p->g->nwires; i++) {
		const struct gci_link *l = &p->g->wires[i];

		if (from != to && !(l->from == from && l->to == to) &&
			!(both && l->from == to && l->to == from))
			continue;
		if (w->nchanges >= GCI_WEATHER_MAX_CHANGES)
			return gci_error_set(p->e, GCOLL_ERR_PARSE, "%s:%d: more than %d changes",
				p->name, p->line, GCI_WEATHER_MAX_CHANGES);
		if (gci_grow(&w->changes, &w->cap, w->nchanges + 1, sizeof(*w->changes)))
			return nomem(p->e);
		w->changes[w->nchanges] = *c;
		w->changes[w->nchanges++].wire = i;
	}
	if (w->nchanges > before || from == to)
		return 0;
	return gci_error_set(p->e, GCOLL_ERR_PARSE,
		"%s:%d: no link %s > %s, expected one of the grid's", p->name, p->line,
		gci_grid_end(p->g, from), gci_grid_end(p->g, to));
}

static int parse_line(struct parser *p, char *line)
{
	struct gci_weather_change c = {0};
	char *words[64], *save = NULL, *word;
	int n = 0, at, from, to, both;

	line[strcspn(line, "#")] = '\0';
	for (word = strtok_r(line, " \t\r", &save); word && n < 64;
		word = strtok_r(NULL, " \t\r", &save))
		words[n++] = word;
	if (!n)
		return 0;
	if (word)
		return gci_error_set(p->e, GCOLL_ERR_PARSE, "%s:%d: expected no more than 64 words",
			p->name, p->line);
	if (gci_parse_time(words[0], &c.at_ns) || c.at_ns > MOST_AT)
		return gci_error_set(p->e, GCOLL_ERR_PARSE,
			"%s:%d: \"%s\", expected " GCI_TIME_EXPECTED, p->name, p->line, words[0]);
	at = parse_way(p, words + 1, n - 1, &from, &to, &both);
	if (!at)
		return p->e->status;
	if (at + 1 == n)
		return gci_error_set(p->e, GCOLL_ERR_PARSE,
			"%s:%d: nothing changes, expected KEY=VALUE with " KEY_NAMES, p->name,
			p->line);
	for (at++; at < n; at++)
		if (parse_setting(p, words[at], &c))
			return p->e->status;
	return add_changes(p, &c, from, to, both);
}

/* Changes of one time stay in the order of the file. */
static int compare(const void *a, const void *b)
{
	const struct gci_weather_change *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return 0;
}

/* qsort would not keep that order. */
static int sort(struct gci_weather *w)
{
	struct gci_weather_change *from = w->changes, *to, *spare;
	size_t n = w->nchanges, width, i, a, b, k;

	spare = to = gci_calloc(n, sizeof(*to));
	if (!spare)
		return -1;
	for (width = 1; width < n; width *= 2) {
		for (i = 0, k = 0; i < n; i += 2 * width) {
			size_t middle = i + width < n ? i + width : n;
			size_t end = i + 2 * width < n ? i + 2 * width : n;

			for (a = i, b = middle; k < end; k++)
				to[k] = a < middle && (b >= end || compare(&from[a], &from[b]) <= 0)
						? from[a++]
						: from[b++];
		}
		spare = from;
		from = to;
		to = spare;
	}
	w->changes = from;
	w->cap = n;
	gci_free(spare);
	return 0;
}

int gci_weather_parse(struct gci_weather *w, const char *text, size_t len, const char *name,
	const struct gci_grid *g, struct gci_error *e)
{
	struct gci_error own = {0};
	struct parser p = {w, g, name, 0, e ? e : &own};
	const char *end = text + len, *eol;
	char line[MAX_LINE];
	int rc = 0;

	memset(w, 0, sizeof(*w));
	for (; text < end && !rc; text = eol < end ? eol + 1 : end) {
		eol = memchr(text, '\n', (size_t)(end - text));
		eol = eol ? eol : end;
		p.line++;
		if (eol - text >= MAX_LINE || memchr(text, '\0', (size_t)(eol - text))) {
			rc = gci_error_set(p.e, GCOLL_ERR_PARSE,
				"%s:%d: expected a line of text of less than %d characters", name,
				p.line, MAX_LINE);
			break;
		}
		memcpy(line, text, (size_t)(eol - text));
		line[eol - text] = '\0';
		rc = parse_line(&p, line);
	}
	if (!rc && w->nchanges && sort(w))
		rc = nomem(p.e);
	if (rc)
		gci_weather_free(w);
	return rc;
}

static uint64_t slower(uint64_t v, uint32_t k)
{
	return v > UINT64_MAX / k ? UINT64_MAX : v * k;
}

void gci_weather_dilate(struct gci_weather *w, uint32_t k)
{
	size_t i;

	for (i = 0; i < w->nchanges; i++) {
		struct gci_weather_change *c = &w->changes[i];

		c->at_ns = slower(c->at_ns, k);
		c->to.delay_ns = slower(c->to.delay_ns, k);
		c->to.jitter_ns = slower(c->to.jitter_ns, k);
		c->to.codel_target_ns = slower(c->to.codel_target_ns, k);
		c->to.codel_interval_ns = slower(c->to.codel_interval_ns, k);
		c->to.rate_bps = c->to.rate_bps && c->to.rate_bps < k ? 1 : c->to.rate_bps / k;
		c->to.flow_rate_bps = c->to.flow_rate_bps && c->to.flow_rate_bps < k
					      ? 1
					      : c->to.flow_rate_bps / k;
	}
}

void gci_weather_apply(const struct gci_weather_change *c, struct gci_wire_model *model)
{
	size_t i;

	for (i = 0; i < NKEYS; i++) {
		char *to = (char *)model + keys[i].at;
		const char *from = (const char *)&c->to + keys[i].at;

		if (!(c->set & 1u << i))
			continue;
		if (keys[i].kind == RATIO || keys[i].kind == COUNT)
			memcpy(to, from, sizeof(uint32_t));
		else
			memcpy(to, from, sizeof(uint64_t));
		if (keys[i].kind == CODEL)
			model->codel_interval_ns = c->to.codel_interval_ns;
	}
}

void gci_weather_free(struct gci_weather *w)
{
	gci_free(w->changes);
	memset(w, 0, sizeof(*w));
}
