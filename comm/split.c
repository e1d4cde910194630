/* SPDX-License-Identifier: MIT
 * Communicators made from others. Their number, which is in every message's key, must differ from
 * that of any other one that two of the ranks share: the highest that any rank of the parent has
 * free. Parts of one split share no ranks, and so have the same. */
#include "base/mem.h"
#include "comm/collective.h"

#include <stdlib.h>
#include <string.h>

struct vote {
	int64_t color, key;
	uint64_t next_id;
	int64_t rank;
};

static int compare(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;

	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int exchange(gcoll_comm *c, const char *name, const struct vote *mine, struct vote *votes)
{
	const struct gci_call call = {.kind = GCI_ALLGATHER,
		.name = name,
		.internal = 1,
		.send = mine,
		.recv = votes,
		.count = 1,
		.type = GCOLL_ELEMENT(sizeof(*mine))};
	gcoll_req *req;
	int rc = gci_collective_make(&call, c, &req);

	return rc ? rc : gci_req_run(&req);
}

static int derive(gcoll_comm *c, struct vote *votes, uint32_t id, int64_t color, gcoll_comm **out)
{
	int *ranks = gci_calloc((size_t)c->size, sizeof(*ranks));
	int i, n = 0, me = -1;

	if (!ranks)
		return -1;
	qsort(votes, (size_t)c->size, sizeof(*votes), compare);
	for (i = 0; i < c->size; i++) {
		if (votes[i].color != color)
			continue;
		if (votes[i].rank == c->rank)
			me = n;
		ranks[n++] = (int)votes[i].rank;
	}
	*out = gci_comm_derive(c, id, ranks, n, me);
	gci_free(ranks);
	return *out ? 0 : -1;
}

static int split(gcoll_comm *c, const char *name, int color, int key, gcoll_comm **out)
{
	struct vote mine = {color < 0 ? -1 : color, key, 0, 0}, *votes;
	struct gci_engine *e;
	uint64_t id = 0;
	int i, rc;

	if (!out || !c)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", out ? "the communicator" : "out");
	*out = NULL;
	e = c->engine;
	mine.next_id = e->next_id;
	mine.rank = c->rank;
	votes = gci_calloc((size_t)c->size, sizeof(*votes));
	if (!votes)
		return gci_req_error(e, gci_engine_nomem(e));
	rc = exchange(c, name, &mine, votes);
	for (i = 0; i < c->size && !rc; i++)
		id = votes[i].next_id > id ? votes[i].next_id : id;
	if (!rc && id >= UINT32_MAX)
		rc = gci_comm_error(GCOLL_ERR_UNSUPPORTED, "too many communicators were made");
	if (!rc) {
		e->next_id = (uint32_t)id + 1;
		if (mine.color >= 0 && derive(c, votes, (uint32_t)id, mine.color, out))
			rc = gci_req_error(e, gci_engine_nomem(e));
	}
	gci_free(votes);
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
	if (!c || !*c)
		return 0;
	if (*c == (*c)->engine->world)
		return gci_comm_error(GCOLL_ERR_INVAL, "the world is freed by gcoll_finalize");
	if ((*c)->nrequests)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"%u requests on the communicator are not freed", (*c)->nrequests);
	gci_comm_drop(*c);
	*c = NULL;
	return 0;
}
