/* SPDX-License-Identifier: MIT */
#include "comm/user_op.h"

#include "base/mem.h"
#include "comm/comm.h"

#include <pthread.h>

struct user_op {
	gcoll_op_fn *fn; /* NULL: free for use */
	void *ctx;
	int commutative;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct user_op *table;
static size_t ntable, table_cap;

static struct user_op *find(enum gcoll_op op)
{
	size_t i = (size_t)op - GCOLL_OP_USER;

	return op >= GCOLL_OP_USER && i < ntable && table[i].fn ? &table[i] : NULL;
}

int gci_user_op_find(enum gcoll_op op, gcoll_op_fn **fn, void **ctx, int *commutative)
{
	struct user_op *u;

	pthread_mutex_lock(&lock);
	u = find(op);
	if (u) {
		*fn = u->fn;
		*ctx = u->ctx;
		*commutative = u->commutative;
	}
	pthread_mutex_unlock(&lock);
	return u ? 0 : -1;
}

int gcoll_op_create(gcoll_op_fn *fn, int commutative, void *ctx, enum gcoll_op *op)
{
	size_t i;
	int rc = 0;

	if (!fn || !op)
		return gci_comm_error(GCOLL_ERR_INVAL, "%s is NULL", fn ? "op" : "fn");
	pthread_mutex_lock(&lock);
	for (i = 0; i < ntable && table[i].fn; i++)
		;
	if (i == ntable)
		rc = gci_grow(&table, &table_cap, ntable + 1, sizeof(*table));
	if (!rc) {
		ntable += i == ntable;
		table[i] = (struct user_op){fn, ctx, commutative != 0};
		*op = (enum gcoll_op)(GCOLL_OP_USER + (int)i);
	}
	pthread_mutex_unlock(&lock);
	return rc ? gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for an operation") : 0;
}

int gcoll_op_free(enum gcoll_op op)
{
	struct user_op *u;
	size_t i, left = 0;

	pthread_mutex_lock(&lock);
	u = find(op);
	if (u)
		u->fn = NULL;
	for (i = 0; i < ntable; i++)
		left += table[i].fn != NULL;
	if (!left) {
		gci_free(table);
		table = NULL;
		ntable = table_cap = 0;
	}
	pthread_mutex_unlock(&lock);
	return u ? 0 : gci_comm_error(GCOLL_ERR_INVAL, "no such operation of the user's");
}
