/* SPDX-License-Identifier: MIT */
#include "comm/calls.h"

#include "collectives/kernels/kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *op_name(enum gcoll_op op)
{
	return op >= GCOLL_OP_USER ? "an operation of the user's" : gci_op_name(op);
}

void gci_sign_print(const struct gci_sign *s, char *out, size_t size)
{
	int to = s->kind == GCI_REDUCE || s->kind == GCI_GATHER;
	size_t n;

	snprintf(out, size, "%s", s->name ? s->name : gci_kind_name(s->kind));
	n = strlen(out);
	/* Of alltoallv no rank knows all lengths. */
	if (s->kind == GCI_ALLTOALL && s->has_counts)
		n += (size_t)snprintf(out + n, size - n, " of %s", gci_type_name(s->type));
	else if (s->kind != GCI_BARRIER)
		n += (size_t)snprintf(
			out + n, size - n, " of %" PRIu64 " %s", s->count, gci_type_name(s->type));
	if (s->type >= GCOLL_ELEMENT_BASE)
		n += (size_t)snprintf(out + n, size - n, " of %" PRIu32 " bytes", s->esize);
	if (s->kind != GCI_ALLTOALL && s->has_counts)
		n += (size_t)snprintf(out + n, size - n, " in blocks #%08" PRIx32, s->blocks);
	if (gci_kind_has_root(s->kind))
		n += (size_t)snprintf(
			out + n, size - n, " %s rank %d", to ? "to" : "from", s->root);
	if (gci_kind_reduces(s->kind))
		n += (size_t)snprintf(out + n, size - n, " with %s", op_name(s->op));
	if (s->algorithm)
		snprintf(out + n, size - n, " by %s", s->algorithm);
}

void gci_calls_init(struct gci_calls *c)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
}

void gci_calls_free(struct gci_calls *c)
{
	pthread_mutex_destroy(&c->lock);
}

void gci_calls_note(struct gci_calls *c, uint32_t comm, uint64_t op, const struct gci_sign *sign)
{
	pthread_mutex_lock(&c->lock);
	c->kept[op % GCI_CALLS_KEPT] = (struct gci_noted_call){comm, 1, op, *sign};
	pthread_mutex_unlock(&c->lock);
}

int gci_calls_find(struct gci_calls *c, uint32_t comm, uint64_t op, struct gci_sign *sign)
{
	const struct gci_noted_call *k = &c->kept[op % GCI_CALLS_KEPT];
	int found;

	pthread_mutex_lock(&c->lock);
	found = k->set && k->comm == comm && k->op == op;
	if (found)
		*sign = k->sign;
	pthread_mutex_unlock(&c->lock);
	return found;
}
