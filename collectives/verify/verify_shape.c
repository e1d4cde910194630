/* SPDX-License-Identifier: MIT
 * The verifier's first passes: every step alone, then messages with their counterparts. */
#include "collectives/verify/verify_impl.h"

#include "base/mem.h"

#include <stdlib.h>

static uint64_t buffer_length(const struct gci_sched *s, enum gci_buffer buffer)
{
	return buffer == GCI_IN ? s->in_len : buffer == GCI_OUT ? s->out_len : s->tmp_len;
}

static int check_slice(const struct gci_at *at, const struct gci_slice *s)
{
	uint64_t length;

	if ((unsigned)s->buffer >= GCI_NBUFFERS)
		return gci_verify_fault_at(
			at, GCI_FAULT_SHAPE, "no such buffer: %d", (int)s->buffer);
	length = buffer_length(at->v->scheds[at->rank], s->buffer);
	if (s->length > length || s->offset > length - s->length)
		return gci_verify_fault_at(at, GCI_FAULT_SHAPE,
			"%s[%" PRIu64 " +%" PRIu64 "] is out of bounds, which are %" PRIu64,
			gci_buffer_name(s->buffer), s->offset, s->length, length);
	return 0;
}

static int check_step(const struct gci_at *at)
{
	const struct gci_sched *s = at->v->scheds[at->rank];
	const struct gci_step *p = gci_at_step(at);
	uint32_t i;
	int rc = 0;

	if ((unsigned)p->kind > GCI_STEP_REDUCE)
		return gci_verify_fault(at->v, GCI_FAULT_SHAPE,
			"rank %d step %u: no such kind of step: %d", at->rank, at->step,
			(int)p->kind);
	if (gci_is_message(p) && (p->peer < 0 || p->peer >= at->v->nranks || p->peer == at->rank))
		return gci_verify_fault_at(at, GCI_FAULT_SHAPE, "no such peer: %d", p->peer);
	if (gci_reads_src(p))
		rc = check_slice(at, &p->src);
	if (!rc && gci_writes_dst(p))
		rc = check_slice(at, &p->dst);
	if (rc)
		return rc;
	if (gci_writes_dst(p) && p->dst.buffer == GCI_IN)
		return gci_verify_fault_at(at, GCI_FAULT_SHAPE, "writes to IN");
	if (gci_reads_src(p) && gci_writes_dst(p) && p->src.length != p->dst.length)
		return gci_verify_fault_at(
			at, GCI_FAULT_SHAPE, "source and destination differ in length");
	for (i = 0; i < p->ndeps; i++)
		if (s->deps[p->deps + i] >= at->step)
			return gci_verify_fault_at(at, GCI_FAULT_SHAPE,
				"waits for step %u, not an earlier one", s->deps[p->deps + i]);
	return 0;
}

static int check_lengths(struct gci_verifier *v, int rank)
{
	const struct gci_coll *c = v->c;
	const struct gci_sched *s = v->scheds[rank];

	if (s->rank != rank || s->nranks != v->nranks)
		return gci_verify_fault(v, GCI_FAULT_SHAPE, "rank %d: schedule of rank %d of %d",
			rank, s->rank, s->nranks);
	if (s->in_len != gci_in_extent(c, rank) || s->out_len != gci_out_extent(c, rank))
		return gci_verify_fault(v, GCI_FAULT_SHAPE,
			"rank %d: IN is %" PRIu64 ", OUT %" PRIu64 " elements: not the operation's",
			rank, s->in_len, s->out_len);
	if (s->nsteps > GCI_VERIFY_MAX_STEPS)
		return gci_verify_fault(v, GCI_FAULT_LIMIT, "rank %d: %u steps, more than %d", rank,
			s->nsteps, GCI_VERIFY_MAX_STEPS);
	return 0;
}

/* The readiness core walks the edges forwards, the race pass backwards: they must be the same. All
 * of them stand in deps[] in the order of steps, next_at[nsteps] in number. */
static int check_edges(struct gci_verifier *v, int rank)
{
	const struct gci_sched *s = v->scheds[rank];
	uint32_t *fill = gci_calloc(s->nsteps, sizeof(*fill));
	uint64_t ndeps = 0;
	uint32_t i, k, bad = 0;

	if (!fill)
		return gci_verify_nomem(v);
	for (i = 0; i < s->nsteps && !bad; i++) {
		bad = s->next_at[i] > s->next_at[i + 1] || s->steps[i].deps != ndeps;
		ndeps += s->steps[i].ndeps;
	}
	bad = bad || s->next_at[0] || s->next_at[s->nsteps] != ndeps;
	for (i = 0; i < s->nsteps && !bad; i++)
		for (k = 0; k < s->steps[i].ndeps && !bad; k++) {
			uint32_t d = s->deps[s->steps[i].deps + k], at;

			if (d >= i) /* check_step says so */
				continue;
			at = s->next_at[d] + fill[d]++;
			bad = at >= s->next_at[d + 1] || s->next[at] != i;
		}
	gci_free(fill);
	return bad ? gci_verify_fault(v, GCI_FAULT_SHAPE,
			     "rank %d: edges backwards and forwards are not the same", rank)
		   : 0;
}

int gci_verify_shape(struct gci_verifier *v)
{
	struct gci_at at = {v, 0, 0};
	int rc = 0;

	for (; at.rank < v->nranks && !rc; at.rank++) {
		rc = check_lengths(v, at.rank);
		if (!rc)
			rc = check_edges(v, at.rank);
		for (at.step = 0; !rc && at.step < v->scheds[at.rank]->nsteps; at.step++)
			rc = check_step(&at);
	}
	return rc;
}

struct message {
	int from, to;
	uint32_t tag, step;
	int sent; /* as seen by the sender */
};

static int compare_messages(const void *a, const void *b)
{
	const struct message *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return y->sent - x->sent;
}

static int same_message(const struct message *x, const struct message *y)
{
	return x->from == y->from && x->to == y->to && x->tag == y->tag;
}

static uint64_t message_length(const struct gci_step *s)
{
	return s->kind == GCI_STEP_SEND ? s->src.length : s->dst.length;
}

static int match_one(struct gci_verifier *v, const struct message *list, size_t left)
{
	const struct message *m = list, *o = left > 1 ? list + 1 : NULL;
	struct gci_at here = {v, m->sent ? m->from : m->to, m->step}, there;

	if (!o || !same_message(m, o))
		return gci_verify_fault_at(&here, GCI_FAULT_UNMATCHED,
			"tag 0x%x: the peer, rank %d, has no step for it", m->tag,
			m->sent ? m->to : m->from);
	there = (struct gci_at){v, o->sent ? o->from : o->to, o->step};
	if (m->sent == o->sent || (left > 2 && same_message(m, list + 2)))
		return gci_verify_fault_at(&there, GCI_FAULT_DUPLICATE,
			"tag 0x%x from %d to %d is used twice", m->tag, m->from, m->to);
	if (message_length(gci_at_step(&here)) != message_length(gci_at_step(&there)))
		return gci_verify_fault_at(&there, GCI_FAULT_LENGTH,
			"receives %" PRIu64 " elements, rank %d step %u sends %" PRIu64,
			message_length(gci_at_step(&there)), here.rank, here.step,
			message_length(gci_at_step(&here)));
	v->ranks[m->from].match[m->step] = o->step;
	v->ranks[m->to].match[o->step] = m->step;
	return 0;
}

int gci_verify_matching(struct gci_verifier *v)
{
	struct message *list = NULL;
	size_t n = 0, cap = 0, i;
	uint32_t k;
	int r, rc = 0;

	for (r = 0; r < v->nranks; r++)
		for (k = 0; k < v->scheds[r]->nsteps; k++) {
			const struct gci_step *s = &v->scheds[r]->steps[k];
			int sent = s->kind == GCI_STEP_SEND;

			if (!gci_is_message(s))
				continue;
			if (gci_grow(&list, &cap, n + 1, sizeof(*list))) {
				gci_free(list);
				return gci_verify_nomem(v);
			}
			list[n++] = (struct message){
				sent ? r : s->peer, sent ? s->peer : r, s->tag, k, sent};
		}
	if (n)
		qsort(list, n, sizeof(*list), compare_messages);
	for (i = 0; i < n && !rc; i += 2)
		rc = match_one(v, list + i, n - i);
	v->report->nmessages = n / 2;
	gci_free(list);
	return rc;
}
