/* SPDX-License-Identifier: MIT
 * What the verifier's passes share. verify.c calls them one after the other, and each relies on
 * what those before it have proved:
 *	verify_shape.c	steps are well formed, messages pair off
 *	verify_order.c	conflicting accesses have an order
 *	verify_exec.c	symbolic execution with rendezvous
 *	verify_result.c	what the buffers hold then, and what was sent */
#ifndef GCI_COLLECTIVES_VERIFY_VERIFY_IMPL_H
#define GCI_COLLECTIVES_VERIFY_VERIFY_IMPL_H

#include "collectives/blocks/layout.h"
#include "collectives/blocks/order.h"
#include "collectives/schedule/ready.h"
#include "collectives/verify/expr.h"
#include "collectives/verify/verify.h"

#include <inttypes.h>

struct gci_verify_rank {
	uint32_t *match; /* [step]: its counterpart at the peer, for messages */
	struct gci_ready ready;
	unsigned char *started;
	/* What an element holds: a = expression, b = offset of the contributions' element in
	 * their ranks' input, less its own offset (modulo 2^64). Undefined elements are not in
	 * the map. */
	struct gci_imap held[GCI_NBUFFERS];
	uint64_t *known; /* barrier: [step * nwords] ranks known to have come */
};

struct gci_verifier {
	const struct gci_sched *const *scheds;
	const struct gci_coll *c;
	int nranks;
	struct gci_verify_rank *ranks;
	struct gci_exprs exprs;
	/* Results by their elements' offset in the input: all ranks' bits must be equal. */
	struct gci_imap reference;
	int64_t canonical; /* the expression of a fixed order; -1: any order will do */
	struct gci_verify_report *report;
	struct gci_error *e;
	/* Worklist of ranks that may have something to start. */
	int *queue;
	unsigned char *queued;
	int queue_head, queue_len;
};

/* Where in the schedules a pass is, for messages. */
struct gci_at {
	struct gci_verifier *v;
	int rank;
	uint32_t step;
};

/* Each returns the status to be passed up. */
int gci_verify_fault(struct gci_verifier *v, enum gci_fault kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, with rank and step in front. */
int gci_verify_fault_at(const struct gci_at *at, enum gci_fault kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int gci_verify_nomem(struct gci_verifier *v);

/* The passes: 0 or a status. */
int gci_verify_shape(struct gci_verifier *v);
int gci_verify_matching(struct gci_verifier *v); /* fills ranks[].match */
int gci_verify_order(struct gci_verifier *v, int rank);
int gci_verify_execute(struct gci_verifier *v);   /* fills ranks[].held and .known */
int gci_verify_canonical(struct gci_verifier *v); /* fills canonical */
int gci_verify_result(struct gci_verifier *v, int rank);
int gci_verify_traffic(struct gci_verifier *v, int check_senders);

static inline const struct gci_step *gci_at_step(const struct gci_at *at)
{
	return &at->v->scheds[at->rank]->steps[at->step];
}

static inline int gci_is_message(const struct gci_step *s)
{
	return s->kind <= GCI_STEP_RECV_REDUCE;
}

static inline int gci_reads_src(const struct gci_step *s)
{
	return s->kind != GCI_STEP_RECV;
}

static inline int gci_writes_dst(const struct gci_step *s)
{
	return s->kind != GCI_STEP_SEND;
}

#endif
