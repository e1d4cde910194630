/* SPDX-License-Identifier: MIT */
#include "collectives/schedule/schedule.h"

#include "base/buf.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

/* What stands in builder.written for an interval: a = last writer + 1 (0: nobody yet), b = first
 * cell + 1 of the list of its readers since then (0: none). Lists share their tails. */
struct gci_reader_cell {
	uint32_t step;
	size_t next; /* + 1; 0: end */
};

/* More steps than this are joined by one empty step, that the next round waits for in their place:
 * edges stay proportional to steps. */
#define ROUND_WITHOUT_JOIN 8

static const char *const step_names[] = {"SEND", "RECV", "RECV_REDUCE", "COPY", "REDUCE"};
static const char *const buffer_names[] = {"IN", "OUT", "TMP"};

const char *gci_step_name(enum gci_step_kind kind)
{
	return kind <= GCI_STEP_REDUCE ? step_names[kind] : "?";
}

const char *gci_buffer_name(enum gci_buffer buffer)
{
	return buffer < GCI_NBUFFERS ? buffer_names[buffer] : "?";
}

void gci_builder_init(struct gci_builder *b, int rank, int nranks)
{
	int i;

	memset(b, 0, sizeof(*b));
	b->rank = rank;
	b->nranks = nranks;
	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_init(&b->written[i]);
}

void gci_builder_drop(struct gci_builder *b)
{
	int i;

	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_free(&b->written[i]);
	gci_free(b->steps);
	gci_free(b->deps);
	gci_free(b->readers);
	gci_free(b->marks);
	memset(b, 0, sizeof(*b));
}

/* The latest step waits for step `earlier`; said twice is said once. */
static void depend(struct gci_builder *b, uint32_t earlier)
{
	if (b->failed || earlier == b->nsteps - 1 || b->marks[earlier] == b->nsteps)
		return;
	b->marks[earlier] = (uint32_t)b->nsteps;
	if (gci_grow(&b->deps, &b->deps_cap, b->ndeps + 1, sizeof(*b->deps))) {
		b->failed = 1;
		return;
	}
	b->deps[b->ndeps++] = earlier;
	b->steps[b->nsteps - 1].ndeps++;
}

void gci_not_before(struct gci_builder *b, uint64_t ns)
{
	if (b->nsteps && !b->failed)
		b->steps[b->nsteps - 1].due_ns = ns;
}

void gci_after(struct gci_builder *b, uint32_t earlier)
{
	depend(b, earlier);
}

void gci_fence(struct gci_builder *b, uint32_t earlier)
{
	b->fence = earlier + 1;
}

static int on_read(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct gci_builder *b = ctx;
	struct gci_reader_cell *cell;

	(void)lo;
	(void)hi;
	if (v->a)
		depend(b, (uint32_t)v->a - 1);
	if (gci_grow(&b->readers, &b->readers_cap, b->nreaders + 1, sizeof(*cell)))
		return -1;
	cell = &b->readers[b->nreaders++];
	cell->step = (uint32_t)b->nsteps - 1;
	cell->next = v->b;
	v->b = b->nreaders;
	return 0;
}

static int on_write(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct gci_builder *b = ctx;
	size_t cell;

	(void)lo;
	(void)hi;
	if (v->a && !v->b) /* else the readers wait for it */
		depend(b, (uint32_t)v->a - 1);
	for (cell = v->b; cell; cell = b->readers[cell - 1].next)
		depend(b, b->readers[cell - 1].step);
	return 0;
}

static void reads(struct gci_builder *b, struct gci_slice s)
{
	static const struct gci_ival nobody = {0, 0};

	/* Nobody writes IN, so its readers need no order. */
	if (s.buffer != GCI_IN && gci_imap_each(&b->written[s.buffer], s.offset,
					  s.offset + s.length, &nobody, on_read, b))
		b->failed = 1;
}

static void writes(struct gci_builder *b, struct gci_slice s)
{
	struct gci_imap *m = &b->written[s.buffer];

	if (gci_imap_each(m, s.offset, s.offset + s.length, NULL, on_write, b))
		b->failed = 1;
	gci_imap_set(m, s.offset, s.offset + s.length, (struct gci_ival){b->nsteps, 0});
	if (m->failed)
		b->failed = 1;
}

static uint32_t add(struct gci_builder *b, struct gci_step step)
{
	uint32_t i;

	if (b->failed || b->nsteps >= UINT32_MAX - 1 ||
		gci_grow(&b->steps, &b->steps_cap, b->nsteps + 1, sizeof(step)) ||
		gci_grow(&b->marks, &b->marks_cap, b->nsteps + 1, sizeof(*b->marks))) {
		b->failed = 1;
		return 0;
	}
	step.deps = (uint32_t)b->ndeps;
	step.tag += b->tag_at;
	b->marks[b->nsteps] = 0;
	b->steps[b->nsteps++] = step;
	if (b->fence)
		depend(b, b->fence - 1);
	for (i = b->last_round; i < b->round; i++)
		depend(b, i);
	if (step.kind != GCI_STEP_RECV)
		reads(b, step.src);
	if (step.kind == GCI_STEP_REDUCE)
		reads(b, step.dst);
	if (step.kind != GCI_STEP_SEND)
		writes(b, step.dst);
	return (uint32_t)b->nsteps - 1;
}

uint32_t gci_send(struct gci_builder *b, int peer, uint32_t tag, struct gci_slice src)
{
	return add(
		b, (struct gci_step){.kind = GCI_STEP_SEND, .peer = peer, .tag = tag, .src = src});
}

uint32_t gci_recv(struct gci_builder *b, int peer, uint32_t tag, struct gci_slice dst)
{
	return add(
		b, (struct gci_step){.kind = GCI_STEP_RECV, .peer = peer, .tag = tag, .dst = dst});
}

uint32_t gci_recv_reduce(struct gci_builder *b, int peer, uint32_t tag, struct gci_slice dst,
	struct gci_slice src, int swapped)
{
	return add(b, (struct gci_step){.kind = GCI_STEP_RECV_REDUCE,
			      .peer = peer,
			      .tag = tag,
			      .dst = dst,
			      .src = src,
			      .swapped = swapped});
}

uint32_t gci_copy(struct gci_builder *b, struct gci_slice dst, struct gci_slice src)
{
	return add(b, (struct gci_step){.kind = GCI_STEP_COPY, .peer = -1, .dst = dst, .src = src});
}

uint32_t gci_reduce(struct gci_builder *b, struct gci_slice dst, struct gci_slice src, int swapped)
{
	return add(b, (struct gci_step){.kind = GCI_STEP_REDUCE,
			      .peer = -1,
			      .dst = dst,
			      .src = src,
			      .swapped = swapped});
}

void gci_round(struct gci_builder *b)
{
	static const struct gci_slice nothing = {0, 0, GCI_OUT};
	uint32_t first = b->round, i, join;

	if (b->nsteps == first)
		return;
	if (b->nsteps - first > ROUND_WITHOUT_JOIN) {
		join = gci_copy(b, nothing, nothing);
		for (i = first; i < join; i++)
			depend(b, i);
		first = join;
	}
	b->last_round = first;
	b->round = (uint32_t)b->nsteps;
}

void gci_no_rounds(struct gci_builder *b)
{
	b->last_round = b->round = (uint32_t)b->nsteps;
	b->fence = 0;
}

/* Turns the edges round, by counting. */
static int link_forwards(struct gci_sched *s, size_t ndeps)
{
	uint32_t i, d, *fill;

	s->next_at = gci_calloc((size_t)s->nsteps + 1, sizeof(*s->next_at));
	s->next = gci_calloc(ndeps, sizeof(*s->next));
	fill = gci_calloc(s->nsteps, sizeof(*fill));
	if (!s->next_at || !s->next || !fill) {
		gci_free(fill);
		return GCOLL_ERR_NOMEM;
	}
	for (i = 0; i < ndeps; i++)
		s->next_at[s->deps[i] + 1]++;
	for (i = 0; i < s->nsteps; i++)
		s->next_at[i + 1] += s->next_at[i];
	for (i = 0; i < s->nsteps; i++)
		for (d = 0; d < s->steps[i].ndeps; d++) {
			uint32_t from = s->deps[s->steps[i].deps + d];

			s->next[s->next_at[from] + fill[from]++] = i;
		}
	gci_free(fill);
	return 0;
}

int gci_builder_end(struct gci_builder *b, struct gci_sched *s)
{
	memset(s, 0, sizeof(*s));
	if (b->failed) {
		gci_builder_drop(b);
		return GCOLL_ERR_NOMEM;
	}
	s->rank = b->rank;
	s->nranks = b->nranks;
	s->in_len = b->in_len;
	s->out_len = b->out_len;
	s->tmp_len = b->tmp_len;
	s->steps = b->steps;
	s->nsteps = (uint32_t)b->nsteps;
	s->deps = b->deps;
	b->steps = NULL;
	b->deps = NULL;
	if (link_forwards(s, b->ndeps)) {
		gci_builder_drop(b);
		gci_sched_free(s);
		return GCOLL_ERR_NOMEM;
	}
	gci_builder_drop(b);
	return 0;
}

void gci_sched_free(struct gci_sched *s)
{
	gci_free(s->steps);
	gci_free(s->deps);
	gci_free(s->next);
	gci_free(s->next_at);
	memset(s, 0, sizeof(*s));
}

static void print_slice(const struct gci_slice *s, struct gci_buf *out)
{
	gci_buf_printf(out, " %s[%" PRIu64 " +%" PRIu64 "]", gci_buffer_name(s->buffer), s->offset,
		s->length);
}

static void print_step(const struct gci_step *p, struct gci_buf *out)
{
	int message = p->kind <= GCI_STEP_RECV_REDUCE;

	gci_buf_printf(out, "%s", gci_step_name(p->kind));
	if (message)
		gci_buf_printf(out, " %d tag 0x%08x", p->peer, p->tag);
	if (p->kind != GCI_STEP_SEND)
		print_slice(&p->dst, out);
	if (p->kind == GCI_STEP_RECV_REDUCE && p->swapped) {
		gci_buf_printf(out, " = incoming OP");
		print_slice(&p->src, out);
	} else if (p->kind == GCI_STEP_RECV_REDUCE) {
		gci_buf_printf(out, " =");
		print_slice(&p->src, out);
		gci_buf_printf(out, " OP incoming");
	} else if (p->kind == GCI_STEP_SEND) {
		print_slice(&p->src, out);
		if (p->due_ns)
			gci_buf_printf(out, " from %" PRIu64 " us on", p->due_ns / 1000);
	} else if (p->kind != GCI_STEP_RECV) {
		gci_buf_printf(out, p->kind == GCI_STEP_COPY ? " =" : p->swapped ? " =OP" : " OP=");
		print_slice(&p->src, out);
	}
}

void gci_sched_print(const struct gci_sched *s, struct gci_buf *out)
{
	uint32_t i, k;

	gci_buf_printf(out,
		"rank %d of %d: IN %" PRIu64 ", OUT %" PRIu64 ", TMP %" PRIu64 " elements\n",
		s->rank, s->nranks, s->in_len, s->out_len, s->tmp_len);
	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		gci_buf_printf(out, "%u: ", i);
		print_step(p, out);
		for (k = 0; k < p->ndeps; k++)
			gci_buf_printf(out, "%s %u", k ? "" : " after", s->deps[p->deps + k]);
		gci_buf_printf(out, "\n");
	}
}
