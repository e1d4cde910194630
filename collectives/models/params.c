/* SPDX-License-Identifier: MIT */
#include "collectives/models/params.h"

#include "base/buf.h"
#include "base/mem.h"
#include "collectives/models/params_json.h"
#include "collectives/models/ramp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- One line to a point, so that a change of one shows as one. */

static const char *comma(size_t i)
{
	return i ? ",\n" : "\n";
}

static void print_points(const struct gci_params_link *l, struct gci_buf *out)
{
	size_t i;

	if (!l->npoints)
		return;
	gci_buf_printf(out, ",\n      \"points\": [");
	for (i = 0; i < l->npoints; i++) {
		const struct gci_params_point *p = &l->points[i];

		gci_buf_printf(out,
			"%s        {\"nbytes\": %" PRIu64 ", \"os_ns\": %" PRIu64
			", \"or_ns\": %" PRIu64 ", \"gap_ns\": %" PRIu64 "}",
			comma(i), p->nbytes, p->os_ns, p->or_ns, p->gap_ns);
	}
	gci_buf_printf(out, "\n      ]");
}

static void print_rates(const char *key, const char *number, const struct gci_params_rate *r,
	size_t n, struct gci_buf *out)
{
	size_t i;

	if (!n)
		return;
	gci_buf_printf(out, ",\n      \"%s\": [", key);
	for (i = 0; i < n; i++)
		gci_buf_printf(out, "%s        {\"%s\": %" PRIu32 ", \"bps\": %" PRIu64 "}",
			comma(i), number, r[i].streams, r[i].bps);
	gci_buf_printf(out, "\n      ]");
}

static void print_isends(const struct gci_params_link *l, struct gci_buf *out)
{
	size_t i;

	if (!l->nisends)
		return;
	gci_buf_printf(out, ",\n      \"isends\": [");
	for (i = 0; i < l->nisends; i++) {
		const struct gci_params_isend *s = &l->isends[i];

		gci_buf_printf(out,
			"%s        {\"nbytes\": %" PRIu64
			", \"immediate\": %s, \"initial\": %" PRIu32 ", \"mid\": %" PRIu32
			", \"os_start_ns\": %" PRIu64 ", \"os_spike_ns\": %" PRIu64
			", \"os_mid_ns\": %" PRIu64 "}",
			comma(i), s->nbytes, s->immediate ? "true" : "false", s->initial, s->mid,
			s->os_start_ns, s->os_spike_ns, s->os_mid_ns);
	}
	gci_buf_printf(out, "\n      ]");
}

static void print_links(const struct gci_params *p, struct gci_buf *out)
{
	const struct gci_params_link *l;
	size_t n = 0;
	int a, b;

	for (a = 0; a < p->nclusters; a++)
		for (b = 0; b < p->nclusters; b++) {
			l = gci_params_link(p, a, b);
			if (!l->latency_ns && !l->npoints && !l->nrates && !l->nsenders &&
				!l->nisends)
				continue;
			gci_buf_printf(out,
				"%s    {\n      \"from\": \"%s\", \"to\": \"%s\",\n"
				"      \"latency_ns\": %" PRIu64,
				comma(n++), p->clusters[a], p->clusters[b], l->latency_ns);
			print_points(l, out);
			print_rates("rates", "streams", l->rates, l->nrates, out);
			print_rates("senders", "senders", l->senders, l->nsenders, out);
			print_isends(l, out);
			gci_buf_printf(out, "\n    }");
		}
}

void gci_params_print(const struct gci_params *p, struct gci_buf *out)
{
	int c;

	gci_buf_printf(out,
		"{\n  \"version\": 1,\n  \"date\": \"%s\",\n  \"grid_digest\": \"%016" PRIx64
		"\",\n  \"dilation\": %" PRIu32 ",\n  \"latency\": \"%s\",\n  \"clusters\": [",
		p->date, p->grid_digest, p->dilation,
		p->latency == GCI_LATENCY_ONE_WAY ? "one way" : "half a round trip");
	for (c = 0; c < p->nclusters; c++)
		gci_buf_printf(out, "%s\"%s\"", c ? ", " : "", p->clusters[c]);
	gci_buf_printf(out, "],\n  \"links\": [");
	print_links(p, out);
	gci_buf_printf(out, "\n  ]\n}\n");
}

/* ---- the parameters of a grid's links */

int gci_params_init(struct gci_params *p, const struct gci_grid *g, const char *date)
{
	size_t n = (size_t)g->nclusters;
	int c;

	*p = (struct gci_params){.grid_digest = gci_grid_digest(g),
		.dilation = g->dilation ? g->dilation : 1,
		.nclusters = g->nclusters};
	snprintf(p->date, sizeof(p->date), "%s", date);
	p->clusters = gci_calloc(n, sizeof(*p->clusters));
	p->links = gci_calloc(n * n, sizeof(*p->links));
	for (c = 0; p->clusters && c < p->nclusters; c++) {
		p->clusters[c] = gci_strdup(g->clusters[c].name);
		if (!p->clusters[c])
			break;
	}
	if (p->clusters && p->links && c == p->nclusters)
		return 0;
	gci_params_free(p);
	return GCOLL_ERR_NOMEM;
}

void gci_params_free(struct gci_params *p)
{
	int i;

	for (i = 0; p->clusters && i < p->nclusters; i++)
		gci_free(p->clusters[i]);
	for (i = 0; p->links && i < p->nclusters * p->nclusters; i++) {
		gci_free(p->links[i].points);
		gci_free(p->links[i].rates);
		gci_free(p->links[i].isends);
		gci_free(p->links[i].senders);
	}
	gci_free(p->clusters);
	gci_free(p->links);
	memset(p, 0, sizeof(*p));
}

/* One of the three curves, by where it is in a point. */
static uint64_t of_point(const struct gci_params_point *p, size_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)p + at, sizeof(v));
	return v;
}

/* The line through a and b at x, which is not left of a. A product of two 64-bit numbers plus one
 * such fits in 128 bits. */
static uint64_t on_line(
	const struct gci_params_point *a, const struct gci_params_point *b, size_t at, uint64_t x)
{
	uint64_t from = of_point(a, at), to = of_point(b, at), dx = b->nbytes - a->nbytes;
	unsigned __int128 rise;

	if (to < from) /* beyond b it is level */
		return x >= b->nbytes ? to
				      : from - (uint64_t)((unsigned __int128)(from - to) *
							  (x - a->nbytes) / dx);
	rise = (unsigned __int128)(to - from) * (x - a->nbytes) / dx;
	return rise > UINT64_MAX - from ? UINT64_MAX : from + (uint64_t)rise;
}

/* The first of the two points whose line counts at this size; there are two or more. */
static size_t segment_of(const struct gci_params_link *l, uint64_t nbytes)
{
	size_t lo = 0, hi = l->npoints - 2, mid;

	while (lo < hi) {
		mid = (lo + hi + 1) / 2;
		if (l->points[mid].nbytes <= nbytes)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

void gci_params_at(const struct gci_params_link *l, uint64_t nbytes, struct gci_params_point *at)
{
	const struct gci_params_point *a;

	*at = (struct gci_params_point){.nbytes = nbytes};
	if (!l->npoints)
		return;
	a = l->points;
	if (l->npoints == 1 || nbytes <= a->nbytes) {
		*at = *a;
		at->nbytes = nbytes;
		return;
	}
	a += segment_of(l, nbytes);
	at->os_ns = on_line(a, a + 1, offsetof(struct gci_params_point, os_ns), nbytes);
	at->or_ns = on_line(a, a + 1, offsetof(struct gci_params_point, or_ns), nbytes);
	at->gap_ns = on_line(a, a + 1, offsetof(struct gci_params_point, gap_ns), nbytes);
	if (nbytes <= a[1].nbytes)
		return;
	/* Kielmann 2001, 2.1: the gap covers the overheads. */
	at->gap_ns = at->gap_ns < at->os_ns ? at->os_ns : at->gap_ns;
	at->gap_ns = at->gap_ns < at->or_ns ? at->or_ns : at->gap_ns;
}

uint64_t gci_params_rate(const struct gci_params_link *l, uint32_t streams)
{
	size_t i = l->nrates;

	while (i > 1 && l->rates[i - 1].streams > streams)
		i--;
	return i ? l->rates[i - 1].bps : 0;
}

size_t gci_params_rate_knee(const struct gci_params_rate *r, size_t n)
{
	uint64_t best = 0;
	size_t i;

	for (i = 0; i < n; i++)
		best = r[i].bps > best ? r[i].bps : best;
	for (i = 0; i + 1 < n && r[i].bps < best - best / 20; i++)
		;
	return i;
}

uint32_t gci_params_knee(const struct gci_params_link *l)
{
	uint32_t n =
		l->nrates < 2 ? 0 : l->rates[gci_params_rate_knee(l->rates, l->nrates)].streams;

	return n < GCI_GRID_MAX_STREAMS ? n : GCI_GRID_MAX_STREAMS;
}

int gci_params_streams(const struct gci_params *p, struct gci_grid *g)
{
	int i, n = 0;

	for (i = 0; i < g->nlinks; i++) {
		struct gci_link *l = &g->links[i];

		if (l->streams)
			continue;
		l->streams = gci_params_knee(gci_params_link(p, l->from, l->to));
		n += !!l->streams;
	}
	g->amended |= n > 0;
	return n;
}

int gci_params_senders(const struct gci_params *p, struct gci_grid *g)
{
	int i, n = 0;

	for (i = 0; i < g->nlinks; i++) {
		struct gci_link *l = &g->links[i];
		const struct gci_params_link *m = gci_params_link(p, l->from, l->to);
		size_t knee = m->nsenders ? gci_params_rate_knee(m->senders, m->nsenders) : 0;

		if (l->senders || knee + 1 >= m->nsenders)
			continue;
		l->senders = m->senders[knee].streams;
		n++;
	}
	g->amended |= n > 0;
	return n;
}

static uint64_t longer(uint64_t ns, uint32_t k)
{
	return ns > UINT64_MAX / k ? UINT64_MAX : ns * k;
}

static uint64_t shorter(uint64_t ns, uint32_t k)
{
	return ns / k + (ns % k >= k - ns % k);
}

struct scaling {
	uint32_t k;
	uint64_t (*time)(uint64_t ns, uint32_t k);
	uint64_t (*rate)(uint64_t bps, uint32_t k);
};

static void scale_times(struct gci_params_link *l, const struct scaling *s)
{
	size_t i;

	l->latency_ns = s->time(l->latency_ns, s->k);
	for (i = 0; i < l->npoints; i++) {
		l->points[i].os_ns = s->time(l->points[i].os_ns, s->k);
		l->points[i].or_ns = s->time(l->points[i].or_ns, s->k);
		l->points[i].gap_ns = s->time(l->points[i].gap_ns, s->k);
	}
	for (i = 0; i < l->nisends; i++) {
		l->isends[i].os_start_ns = s->time(l->isends[i].os_start_ns, s->k);
		l->isends[i].os_spike_ns = s->time(l->isends[i].os_spike_ns, s->k);
		l->isends[i].os_mid_ns = s->time(l->isends[i].os_mid_ns, s->k);
	}
}

static void scale_rates(struct gci_params_rate *r, size_t n, const struct scaling *s)
{
	size_t i;

	for (i = 0; i < n; i++) {
		r[i].bps = s->rate(r[i].bps, s->k);
		r[i].bps += !r[i].bps; /* 0 is not measured */
	}
}

static void scale(struct gci_params *p, const struct scaling *s)
{
	int i;

	for (i = 0; s->k > 1 && i < p->nclusters * p->nclusters; i++) {
		scale_times(&p->links[i], s);
		scale_rates(p->links[i].rates, p->links[i].nrates, s);
		scale_rates(p->links[i].senders, p->links[i].nsenders, s);
	}
}

void gci_params_dilate(struct gci_params *p, uint32_t k)
{
	scale(p, &(struct scaling){k, longer, shorter});
}

void gci_params_undilate(struct gci_params *p, uint32_t k)
{
	scale(p, &(struct scaling){k, shorter, longer});
}
