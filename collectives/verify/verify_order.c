/* SPDX-License-Identifier: MIT
 * The verifier's race pass: any two accesses of a rank to one element, of which one writes, must
 * have an order by the rank's own dependencies. An order that only follows by way of other ranks
 * does not count: no emitter needs one, and a schedule stays correct if the peers' change. */
#include "collectives/verify/verify_impl.h"

#include "base/mem.h"

struct race_check {
	struct gci_at at;
	const uint64_t *before; /* bits of the steps that come before at.step */
	struct access *accesses;
	size_t n, cap;
	enum gci_buffer buffer;
	int write;
};

/* In the interval map: a = last writer + 1, b = newest read since then, as an index + 1 into
 * accesses, which are chained. */
struct access {
	uint32_t step;
	size_t next;
};

static int ordered(const struct race_check *rc, uint32_t earlier)
{
	return earlier == rc->at.step || (rc->before[earlier / 64] >> (earlier % 64) & 1);
}

static int on_access(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct race_check *rc = ctx;
	size_t i;

	if (v->a && !ordered(rc, (uint32_t)v->a - 1))
		return gci_verify_fault_at(&rc->at, GCI_FAULT_RACE,
			"%s %s[%" PRIu64 "..%" PRIu64 ") without order to step %u, which writes it",
			rc->write ? "writes" : "reads", gci_buffer_name(rc->buffer), lo, hi,
			(uint32_t)v->a - 1);
	if (!rc->write) {
		if (gci_grow(&rc->accesses, &rc->cap, rc->n + 1, sizeof(*rc->accesses)))
			return gci_verify_nomem(rc->at.v);
		rc->accesses[rc->n++] = (struct access){rc->at.step, v->b};
		v->b = rc->n;
		return 0;
	}
	for (i = v->b; i; i = rc->accesses[i - 1].next)
		if (!ordered(rc, rc->accesses[i - 1].step))
			return gci_verify_fault_at(&rc->at, GCI_FAULT_RACE,
				"writes %s[%" PRIu64 "..%" PRIu64
				") without order to step %u, which reads it",
				gci_buffer_name(rc->buffer), lo, hi, rc->accesses[i - 1].step);
	return 0;
}

static int check_access(
	struct race_check *rc, struct gci_imap *maps, const struct gci_slice *s, int write)
{
	static const struct gci_ival untouched = {0, 0};
	int status;

	rc->buffer = s->buffer;
	rc->write = write;
	status = gci_imap_each(
		&maps[s->buffer], s->offset, s->offset + s->length, &untouched, on_access, rc);
	if (status || !write)
		return status;
	gci_imap_set(&maps[s->buffer], s->offset, s->offset + s->length,
		(struct gci_ival){(uint64_t)rc->at.step + 1, 0});
	return maps[s->buffer].failed ? gci_verify_nomem(rc->at.v) : 0;
}

/* Pieces of a message come in any order, and kernels go through elements as they like: a step's
 * own slices must be the same or apart. */
static int overlap_in_part(const struct gci_step *p)
{
	const struct gci_slice *a = &p->src, *b = &p->dst;

	return gci_reads_src(p) && gci_writes_dst(p) && a->buffer == b->buffer &&
	       a->offset != b->offset && a->offset < b->offset + b->length &&
	       b->offset < a->offset + a->length;
}

static int check_step_order(struct race_check *rc, struct gci_imap *maps)
{
	const struct gci_step *p = gci_at_step(&rc->at);
	int status = 0;

	if (overlap_in_part(p))
		return gci_verify_fault_at(
			&rc->at, GCI_FAULT_RACE, "source and destination overlap in part");
	if (gci_reads_src(p))
		status = check_access(rc, maps, &p->src, 0);
	if (!status && p->kind == GCI_STEP_REDUCE)
		status = check_access(rc, maps, &p->dst, 0);
	if (!status && gci_writes_dst(p))
		status = check_access(rc, maps, &p->dst, 1);
	return status;
}

/* Fills row `step` of the matrix: its dependencies and all that come before those. */
static void fill_before(const struct gci_sched *s, uint32_t step, uint64_t *matrix, size_t nwords)
{
	uint64_t *row = matrix + step * nwords;
	uint32_t i;
	size_t w;

	for (i = 0; i < s->steps[step].ndeps; i++) {
		uint32_t d = s->deps[s->steps[step].deps + i];

		for (w = 0; w <= d / 64; w++)
			row[w] |= matrix[d * nwords + w];
		row[d / 64] |= 1ull << (d % 64);
	}
}

int gci_verify_order(struct gci_verifier *v, int rank)
{
	const struct gci_sched *s = v->scheds[rank];
	size_t nwords = ((size_t)s->nsteps + 63) / 64;
	struct race_check rc = {.at = {v, rank, 0}};
	struct gci_imap maps[GCI_NBUFFERS];
	uint64_t *matrix = gci_calloc(s->nsteps, nwords * sizeof(*matrix));
	int i, status = matrix ? 0 : gci_verify_nomem(v);

	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_init(&maps[i]);
	for (; !status && rc.at.step < s->nsteps; rc.at.step++) {
		fill_before(s, rc.at.step, matrix, nwords);
		rc.before = matrix + rc.at.step * nwords;
		status = check_step_order(&rc, maps);
	}
	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_free(&maps[i]);
	gci_free(rc.accesses);
	gci_free(matrix);
	return status;
}
