/* SPDX-License-Identifier: MIT
 * The public calls: arguments are checked here, work is done in comm.c. */
#include "base/mem.h"
#include "base/units.h"
#include "comm/comm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[GCI_CTL_TEXT + 64];

const char *gcoll_last_error(void)
{
	return last_error;
}

int gci_comm_error(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	return status;
}

int gcoll_rank(const gcoll_comm *c)
{
	return c->rank;
}

int gcoll_size(const gcoll_comm *c)
{
	return c->size;
}

const char *gcoll_host(const gcoll_comm *c, int rank)
{
	return rank >= 0 && rank < c->size ? c->hosts[rank] : "";
}

int gcoll_cluster(const gcoll_comm *c, int rank)
{
	return rank >= 0 && rank < c->size ? c->topo.cluster[rank] : -1;
}

int gcoll_clusters(const gcoll_comm *c)
{
	return c->topo.nclusters;
}

/* ---- settings */

static int set_parameter(const char *key, const char *p, struct gci_choice *choice)
{
	uint64_t v;

	const struct gci_algorithm *a = choice->algorithm;

	if ((!strncmp(p, "senders=", 8) && !(a->traits & GCI_USES_SENDERS)) ||
		(!strncmp(p, "segment=", 8) && !(a->traits & GCI_USES_SEGMENT)))
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s: %s does not use \"%s\"", key, a->name, p);
	if (!strncmp(p, "senders=", 8)) {
		if (gci_parse_uint(p + 8, GCI_CTL_MAX_RANKS, &v))
			return gci_comm_error(
				GCOLL_ERR_INVAL, "%s: \"%s\", expected a number", key, p);
		choice->senders = (uint32_t)v;
		return 0;
	}
	if (!strncmp(p, "segment=", 8)) {
		if (gci_parse_bytes(p + 8, &v))
			return gci_comm_error(GCOLL_ERR_INVAL,
				"%s: \"%s\", expected " GCI_BYTES_EXPECTED, key, p);
		choice->segment_nbytes = v;
		return 0;
	}
	return gci_comm_error(GCOLL_ERR_INVAL,
		"%s: unknown parameter \"%s\", expected senders=N or segment=BYTES", key, p);
}

static int unknown_algorithm(enum gci_kind kind, const char *name)
{
	const struct gci_algorithm *a;
	char list[256] = "";

	gci_each_algorithm (a)
		if (a->kind == kind)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), " %s", a->name);
	return gci_comm_error(GCOLL_ERR_INVAL,
		"%s: unknown algorithm \"%s\", expected auto or one of:%s", gci_kind_name(kind),
		name, list);
}

static int set_algorithm(gcoll_comm *c, enum gci_kind kind, const char *value)
{
	struct gci_choice choice = {0};
	char *copy = gci_strdup(value), *save = NULL, *p;
	int rc = 0;

	if (!copy)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	p = strtok_r(copy, ":", &save);
	choice.algorithm = gci_algorithm_find(kind, p && strcmp(p, "auto") ? p : NULL);
	if (!p || !choice.algorithm)
		rc = unknown_algorithm(kind, p ? p : "");
	while (!rc && (p = strtok_r(NULL, ":", &save)))
		rc = set_parameter(gci_kind_name(kind), p, &choice);
	gci_free(copy);
	if (!rc)
		c->choice[kind] = choice;
	return rc;
}

int gcoll_comm_set(gcoll_comm *c, const char *key, const char *value)
{
	uint64_t v;
	int k;

	for (k = 0; k < GCI_NKINDS; k++)
		if (!strcmp(key, gci_kind_name((enum gci_kind)k)))
			return set_algorithm(c, (enum gci_kind)k, value);
	if ((!strcmp(key, "streams") || !strcmp(key, "socket_buffer")) && c->next_op)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"%s: connections may be open already, expected before the first operation",
			key);
	if (!strcmp(key, "streams")) {
		if (gci_parse_uint(value, GCI_TP_MAX_STREAMS, &v) || !v)
			return gci_comm_error(GCOLL_ERR_INVAL,
				"streams: \"%s\", expected a number from 1 to %d", value,
				GCI_TP_MAX_STREAMS);
		c->streams = (uint32_t)v;
		return 0;
	}
	if (!strcmp(key, "socket_buffer")) {
		if (!strcmp(value, "auto"))
			v = 0;
		else if (gci_parse_bytes(value, &v) || v < 4096 || v > 1u << 30)
			return gci_comm_error(GCOLL_ERR_INVAL,
				"socket_buffer: \"%s\", expected auto or a size from 4KiB to 1GiB",
				value);
		c->sockbuf_nbytes = v;
		return 0;
	}
	if (!strcmp(key, "timeout")) {
		if (!strcmp(value, "never"))
			v = GCI_NEVER;
		else if (gci_parse_time(value, &v) || !v)
			return gci_comm_error(GCOLL_ERR_INVAL,
				"timeout: \"%s\", expected never or " GCI_TIME_EXPECTED, value);
		c->op_timeout_ns = v;
		return 0;
	}
	return gci_comm_error(GCOLL_ERR_INVAL,
		"unknown setting \"%s\", expected bcast, allreduce, barrier, streams, "
		"socket_buffer or timeout",
		key);
}

/* ---- operations */

static int check_type(enum gcoll_type type, uint64_t count)
{
	size_t size = gcoll_type_size(type);

	if (!size)
		return gci_comm_error(GCOLL_ERR_INVAL, "no such element type: %d", (int)type);
	if (count > PTRDIFF_MAX / size)
		return gci_comm_error(GCOLL_ERR_INVAL, "more elements than memory can hold");
	return 0;
}

/* The communicator's failure as this call's error. */
static int failed(gcoll_comm *c, int status)
{
	if (c->failure.status) {
		gci_comm_await_verdict(c);
		return gci_comm_error(c->failure.status, "%s", c->failure.text);
	}
	return gci_comm_error(status, "%s", gcoll_strerror(status));
}

static int start(gcoll_comm *c, const struct gci_coll *coll, enum gcoll_type type, enum gcoll_op op,
	void *in, void *out, gcoll_req **req)
{
	int rc = gci_comm_start(c, coll, type, op, in, out, req);

	return rc ? failed(c, rc) : 0;
}

int gcoll_ibcast(
	void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req)
{
	struct gci_coll coll = {.kind = GCI_BCAST,
		.count = count,
		.esize = (uint32_t)gcoll_type_size(type),
		.root = root};
	int rc = check_type(type, count);

	*req = NULL;
	if (rc)
		return rc;
	if (root < 0 || root >= c->size)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "root %d, expected 0 to %d", root, c->size - 1);
	if (!buf && count)
		return gci_comm_error(GCOLL_ERR_INVAL, "buf is NULL");
	return start(c, &coll, type, GCOLL_SUM, c->rank == root ? buf : NULL,
		c->rank == root ? NULL : buf, req);
}

int gcoll_iallreduce(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	enum gcoll_op op, gcoll_comm *c, gcoll_req **req)
{
	struct gci_coll coll = {.kind = GCI_ALLREDUCE,
		.count = count,
		.esize = (uint32_t)gcoll_type_size(type),
		.in_place = sendbuf == GCOLL_IN_PLACE};
	int rc = check_type(type, count);

	*req = NULL;
	if (rc)
		return rc;
	if (!gci_kernel_find(type, op))
		return gci_comm_error(GCOLL_ERR_INVAL, "%s is not defined on %s", gci_op_name(op),
			gci_type_name(type));
	if (count && (!sendbuf || !recvbuf))
		return gci_comm_error(GCOLL_ERR_INVAL, "a buffer is NULL");
	return start(c, &coll, type, op, coll.in_place ? NULL : (void *)sendbuf, recvbuf, req);
}

int gcoll_ibarrier(gcoll_comm *c, gcoll_req **req)
{
	struct gci_coll coll = {.kind = GCI_BARRIER, .esize = 1};

	return start(c, &coll, GCOLL_BYTE, GCOLL_SUM, NULL, NULL, req);
}

static int take_result(gcoll_req **req)
{
	gcoll_req *r = *req;
	gcoll_comm *c = r->comm;
	int status = r->status;

	gci_list_del(&r->link);
	gci_free(r);
	*req = NULL;
	return status ? failed(c, status) : 0;
}

int gcoll_wait(gcoll_req **req)
{
	if (!*req)
		return 0;
	while (!(*req)->over)
		gci_comm_progress((*req)->comm, GCI_NS_PER_S);
	return take_result(req);
}

int gcoll_test(gcoll_req **req, int *done)
{
	*done = 1;
	if (!*req)
		return 0;
	if (!(*req)->over)
		gci_comm_progress((*req)->comm, 0);
	*done = (*req)->over;
	return *done ? take_result(req) : 0;
}

static int finish(int rc, gcoll_req **req)
{
	return rc ? rc : gcoll_wait(req);
}

int gcoll_bcast(void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c)
{
	gcoll_req *req;

	return finish(gcoll_ibcast(buf, count, type, root, c, &req), &req);
}

int gcoll_allreduce(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	enum gcoll_op op, gcoll_comm *c)
{
	gcoll_req *req;

	return finish(gcoll_iallreduce(sendbuf, recvbuf, count, type, op, c, &req), &req);
}

int gcoll_barrier(gcoll_comm *c)
{
	gcoll_req *req;

	return finish(gcoll_ibarrier(c, &req), &req);
}

void gcoll_abort(gcoll_comm *c, const char *reason)
{
	gci_comm_fail(c, GCOLL_ERR_ABORTED, c->rank, reason);
}
