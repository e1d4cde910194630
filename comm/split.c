/* SPDX-License-Identifier: MIT
 * Communicators made from others. Their number, which is in every message's key, must differ from
 * that of any other one that two of the ranks share: the highest that any rank of the parent has
 * free. Parts of one split share no ranks, and so have the same. */
#include "comm/split.h"

#include "base/mem.h"
#include "comm/collective.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct gci_vote *x = a, *y = b;

	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int derive(struct gci_split *s, uint32_t id, gcoll_comm **out)
{
	gcoll_comm *c = s->parent;
	const struct gci_vote *votes = s->votes;
	int *ranks = gci_calloc((size_t)c->size, sizeof(*ranks));
	int i, n = 0, me = -1;

	if (!ranks)
		return -1;
	qsort(s->votes, (size_t)c->size, sizeof(*votes), compare);
	for (i = 0; i < c->size; i++) {
		if (votes[i].color != s->mine.color)
			continue;
		if (votes[i].rank == c->rank)
			me = n;
		ranks[n++] = (int)votes[i].rank;
	}
	*out = gci_comm_derive(c, id, ranks, n, me);
	gci_free(ranks);
	return *out ? 0 : -1;
}

int gci_split_start(struct gci_split *s, gcoll_comm *c, const char *name, int color, int key)
{
	struct gci_call call = {.kind = GCI_ALLGATHER,
		.name = name,
		.internal = 1,
		.send = &s->mine,
		.count = 1,
		.type = GCOLL_ELEMENT(sizeof(s->mine))};
	int rc;

	*s = (struct gci_split){
		.parent = c, .mine = {color < 0 ? -1 : color, key, c->engine->next_id, c->rank}};
	s->votes = gci_calloc((size_t)c->size, sizeof(*s->votes));
	if (!s->votes)
		return gci_req_error(c->engine, gci_engine_nomem(c->engine));
	call.recv = s->votes;
	rc = gci_collective_make(&call, c, &s->req);
	return rc ? rc : gci_req_launch(&s->req);
}

int gci_split_end(struct gci_split *s, int status, gcoll_comm **out)
{
	gcoll_comm *c = s->parent;
	struct gci_engine *e = c->engine;
	uint64_t id = 0;
	int i;

	*out = NULL;
	for (i = 0; i < c->size && !status; i++)
		id = s->votes[i].next_id > id ? s->votes[i].next_id : id;
	if (!status && id >= UINT32_MAX)
		status = gci_comm_error(GCOLL_ERR_UNSUPPORTED, "too many communicators were made");
	if (!status) {
		e->next_id = (uint32_t)id + 1;
		if (s->mine.color >= 0 && derive(s, (uint32_t)id, out))
			status = gci_req_error(e, gci_engine_nomem(e));
	}
	gci_free(s->votes);
	return status;
}

/* Numbers are agreed upon for one communicator at a time. */
static int may_split(const struct gci_engine *e)
{
	if (!e->splitting)
		return gci_req_may_wait(e);
	return gci_comm_error(GCOLL_ERR_INVAL,
		"another thread is in gcoll_comm_split or gcoll_comm_dup, expected one at a time");
}

static int split(gcoll_comm *c, const char *name, int color, int key, gcoll_comm **out)
{
	struct gci_split s;
	int rc;

	if (!out || !c)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", out ? "the communicator" : "out");
	rc = gci_enter(c->engine);
	if (rc)
		return rc;
	rc = may_split(c->engine);
	if (!rc) {
		c->engine->splitting = 1;
		rc = gci_split_start(&s, c, name, color, key);
		if (!rc)
			rc = gci_req_wait(&s.req);
		rc = gci_split_end(&s, rc, out);
		c->engine->splitting = 0;
	}
	gci_leave(c->engine);
	return rc;
}

int gcoll_comm_split(gcoll_comm *c, int color, int key, gcoll_comm **out)
{
	return split(c, "split", color, key, out);
}

int gcoll_comm_dup(gcoll_comm *c, gcoll_comm **out)
{
	return split(c, "dup", 0, 0, out);
}

int gcoll_comm_free(gcoll_comm **c)
{
	struct gci_engine *e;
	int rc;

	if (!c || !*c)
		return 0;
	e = (*c)->engine;
	rc = gci_enter(e);
	if (rc)
		return rc;
	if (*c == e->world) {
		rc = gci_comm_error(GCOLL_ERR_INVAL, "the world is freed by gcoll_finalize");
	} else if ((*c)->nrequests) {
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%u requests on the communicator are not freed", (*c)->nrequests);
	} else {
		gci_comm_drop(*c);
		*c = NULL;
	}
	gci_leave(e);
	return rc;
}
