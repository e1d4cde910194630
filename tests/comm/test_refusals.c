/* SPDX-License-Identifier: MIT
 * What is refused, what does not fit between ranks, and lack of memory. */
#include "tests/test.h"

#include "base/mem.h"
#include "comm/op.h"
#include "tests/comm/trial.h"

#include <stdlib.h>
#include <string.h>

static void bad_arguments(void **state)
{
	uint32_t x = 0, y = 0;
	gcoll_req *req;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 1, NULL);
	assert_int_equal(gcoll_bcast(&x, 1, GCOLL_INT32, 2, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(NULL, 1, GCOLL_INT32, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(&x, 1, (enum gcoll_type)99, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_bcast(&x, 1, (enum gcoll_type) - 1, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_type_size((enum gcoll_type)0x80000000u), 0);
	assert_int_equal(gcoll_bcast(&x, UINT64_MAX, GCOLL_INT32, 0, j.comm[0]), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_iallreduce(&x, &y, 1, GCOLL_FLOAT32, GCOLL_BXOR, j.comm[0], &req),
		GCOLL_ERR_INVAL);
	assert_null(req);
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "nonsense"), GCOLL_ERR_INVAL);
	assert_non_null(strstr(gcoll_last_error(), "farfirst"));
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "farfirst:senders=x"), GCOLL_ERR_INVAL);
	assert_int_equal(
		gcoll_comm_set(j.comm[0], "bcast", "vandegeijn-mod:senders=0"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "chain:segment=0"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_rank(NULL), -1);
	assert_int_equal(gcoll_clusters(NULL), 0);
	gcoll_comm_abort(NULL, "nobody");
	assert_int_equal(gcoll_comm_set(j.comm[0], "streams", "65"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "bcast", "farfirst:senders=2"), GCOLL_ERR_INVAL);
	assert_int_equal(
		gcoll_comm_set(j.comm[0], "bcast", "vandegeijn-mod:segment=1K"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "congestion", "warp"), GCOLL_ERR_INVAL);
	assert_non_null(strstr(gcoll_last_error(), "congestion: \"warp\" is not in this kernel"));
	assert_int_equal(gcoll_comm_set(j.comm[0], "congestion", "reno"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "congestion", "default"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "streams", "8"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "checksum", "yes"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "data_path", "epoll"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "replay", "maybe"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "security", "tls"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "security", "encrypt"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "replay", "always"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "data_path", "uring"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "checksum", "on"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "checksum", "auto"), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "checksum", "off"), 0);
	assert_int_equal(gcoll_ibarrier(j.comm[0], &req), 0);
	assert_int_equal(gcoll_comm_set(j.comm[0], "streams", "8"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "socket_buffer", "3MB"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "checksum", "off"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[0], "colour", "red"), GCOLL_ERR_INVAL);
	job_close(&j);
}

static struct gci_tp_link link_of(struct gci_engine *e, int peer)
{
	struct gci_tp_config config = gci_comm_tp_config(e);
	struct gci_tp_link link;

	config.link(e, peer, &link);
	return link;
}

/* Payload has sums by default wherever it leaves the machine, and nothing is paced within one. */
static void links_of_one_machine(void **state)
{
	struct gci_engine *e;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 1, 0}, 0, 1, NULL);
	e = j.comm[0]->engine;
	assert_false(link_of(e, 1).unchecked);
	assert_null(link_of(e, 1).congestion);
	e->world->topo.one_host = 1;
	assert_true(link_of(e, 1).unchecked);
	assert_string_equal(link_of(e, 1).congestion, "reno");
	assert_string_equal(link_of(e, 2).congestion, "reno");
	assert_int_equal(gcoll_comm_set(j.comm[0], "checksum", "on"), 0);
	assert_false(link_of(e, 1).unchecked);
	assert_int_equal(gcoll_comm_set(j.comm[0], "congestion", "reno"), 0);
	e->world->topo.one_host = 0;
	assert_int_equal(gcoll_comm_set(j.comm[0], "checksum", "off"), 0);
	assert_true(link_of(e, 1).unchecked);
	assert_null(link_of(e, 1).congestion);
	assert_string_equal(link_of(e, 2).congestion, "reno");
	job_close(&j);
}

static void outside_of_a_job(void **state)
{
	gcoll_comm *c;

	(void)state;
	unsetenv("GRIDCOLL_RANK");
	assert_int_equal(gcoll_init(&c), GCOLL_ERR_NOLAUNCHER);
	assert_null(c);
	gcoll_finalize(c);
}

/* What the launcher would never say: the variable is named. */
static void bad_environment(void **state)
{
	static const struct {
		const char *name, *value;
	} wrong[] = {{"GRIDCOLL_SIZE", "many"}, {"GRIDCOLL_RANK", "4"}, {"GRIDCOLL_RANK", "-1"},
		{"GRIDCOLL_SECRET_FD", ""}, {"GRIDCOLL_PORT_RANGE", "9-8"},
		{"GRIDCOLL_DATA_PATH", "epoll"}, {"GRIDCOLL_SECURITY", "on"}};
	gcoll_comm *c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("GRIDCOLL_RENDEZVOUS", "127.0.0.1:1", 1);
		setenv("GRIDCOLL_SIZE", "4", 1);
		setenv("GRIDCOLL_RANK", "3", 1);
		setenv("GRIDCOLL_SECRET_FD", "0", 1);
		setenv(wrong[i].name, wrong[i].value, 1);
		assert_int_equal(gcoll_init(&c), GCOLL_ERR_INVAL);
		assert_null(c);
		if (!strstr(gcoll_last_error(), wrong[i].name))
			fail_msg("%s=%s: %s", wrong[i].name, wrong[i].value, gcoll_last_error());
		unsetenv(wrong[i].name);
	}
	unsetenv("GRIDCOLL_RANK");
}

/* ---- alltoallv, and what does not fit */

static void counts_that_do_not_fit(void **state)
{
	const uint64_t sends[2] = {1, 5}, receives[2] = {4, 1}, ones[2] = {1, 5};
	uint32_t a[8] = {0}, b[8], c[8] = {0}, d[8];
	int status[MAX_RANKS];
	struct job j;

	(void)state;
	job_open(&j, (int[]){1, 1, 0}, 0, 20, NULL);
	assert_int_equal(
		gcoll_ialltoallv(a, sends, NULL, b, ones, NULL, GCOLL_UINT32, j.comm[0], &j.req[0]),
		0);
	assert_int_equal(gcoll_ialltoallv(c, sends, NULL, d, receives, NULL, GCOLL_UINT32,
				 j.comm[1], &j.req[1]),
		0);
	job_run(&j, status);
	assert_int_equal(status[1], GCOLL_ERR_MISMATCH);
	assert_non_null(strstr(j.comm[1]->engine->failure.text,
		"rank 0 (host) sends 5 uint32 to rank 1 (host), which expects 4"));
	job_close(&j);
}

static int begin(const char *what, uint64_t count, enum gcoll_type type, int root, void *in,
	void *out, gcoll_comm *c, gcoll_req **req)
{
	uint64_t counts[2] = {count, count};

	if (!strcmp(what, "reduce"))
		return gcoll_ireduce(in, out, count, type, GCOLL_BXOR, root, c, req);
	if (!strcmp(what, "allreduce"))
		return gcoll_iallreduce(in, out, count, type, GCOLL_BXOR, c, req);
	if (!strcmp(what, "reduce_scatter"))
		return gcoll_ireduce_scatter(in, out, count, type, GCOLL_BXOR, c, req);
	if (!strcmp(what, "scatter"))
		return gcoll_iscatter(in, out, count, type, root, c, req);
	if (!strcmp(what, "gather"))
		return gcoll_igather(in, out, count, type, root, c, req);
	if (!strcmp(what, "gatherv"))
		return gcoll_igatherv(in, out, counts, NULL, type, root, c, req);
	if (!strcmp(what, "allgather"))
		return gcoll_iallgather(in, out, count, type, c, req);
	return gcoll_ialltoall(in, out, count, type, c, req);
}

/* Of every kind: another count, type, root, or kind; the message names what was called. */
static void every_mismatch_is_named(void **state)
{
	static const char *const kinds[] = {"reduce", "allreduce", "reduce_scatter", "scatter",
		"gather", "gatherv", "allgather", "alltoall"};
	static char buf[4][8192];
	size_t k;
	int how, status[MAX_RANKS];
	struct job j;

	(void)state;
	for (k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		for (how = 0; how < 4; how++) {
			const char *other = how == 3 ? kinds[(k + 1) % 8] : kinds[k], *text;
			int no_root = strcmp(kinds[k], "reduce") != 0 &&
				      !strstr(kinds[k], "gather") &&
				      strcmp(kinds[k], "scatter") != 0;
			int named;

			if (how == 2 && (no_root || !strcmp(kinds[k], "allgather")))
				continue;
			job_open(&j, (int[]){1, 1, 0}, 0, 21, NULL);
			assert_int_equal(begin(kinds[k], 64, GCOLL_INT32, 0, buf[0], buf[1],
						 j.comm[0], &j.req[0]),
				0);
			begin(other, how == 0 ? 63 : 64, how == 1 ? GCOLL_UINT32 : GCOLL_INT32,
				how == 2, buf[2], buf[3], j.comm[1], &j.req[1]);
			job_run(&j, status);
			gcoll_ibarrier(j.comm[0], &j.req[0]);
			gcoll_ibarrier(j.comm[1], &j.req[1]);
			while (gci_mem_net_step(j.net))
				;
			text = j.comm[0]->engine->failure.text;
			assert_null(strstr(text, "one thing"));
			named = strstr(text, "calls") && strstr(text, "something else");
			text = j.comm[1]->engine->failure.text;
			named |= strstr(text, "calls") && strstr(text, "something else");
			if (!named)
				fail_msg("%s, how %d: \"%s\", \"%s\"", kinds[k], how,
					j.comm[0]->engine->failure.text, text);
			job_close(&j);
		}
}

static void nothing(
	void *out, const void *left, const void *right, uint64_t n, enum gcoll_type type, void *ctx)
{
	(void)out, (void)left, (void)right, (void)n, (void)type, (void)ctx;
}

static void hostile_arguments(void **state)
{
	const uint64_t huge[2] = {UINT64_MAX, 2}, far[2] = {0, UINT64_MAX - 1}, one[2] = {1, 1};
	uint32_t x[8] = {0}, y[8];
	enum gcoll_op gone;
	gcoll_req *req, *kept;
	gcoll_comm *c;
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 22, NULL);
	c = j.comm[0];
#define REFUSED(call, text)                                                            \
	do {                                                                           \
		assert_int_equal(call, GCOLL_ERR_INVAL);                               \
		if (!strstr(gcoll_last_error(), text))                                 \
			fail_msg("\"%s\", expected \"%s\"", gcoll_last_error(), text); \
	} while (0)
	REFUSED(gcoll_barrier(NULL), "communicator is NULL");
	REFUSED(gcoll_ibarrier(c, NULL), "req is NULL");
	REFUSED(gcoll_reduce(x, y, 1, GCOLL_INT32, GCOLL_SUM, -1, c), "root -1");
	REFUSED(gcoll_reduce(x, NULL, 1, GCOLL_INT32, GCOLL_SUM, 0, c), "receive in is NULL");
	REFUSED(gcoll_reduce(GCOLL_IN_PLACE, y, 1, GCOLL_INT32, GCOLL_SUM, 1, c), "root only");
	REFUSED(gcoll_reduce(x, y, 1, GCOLL_INT32, (enum gcoll_op)77, 0, c), "not defined");
	REFUSED(gcoll_allreduce(x, x + 1, 2, GCOLL_INT32, GCOLL_SUM, c), "overlap");
	REFUSED(gcoll_allreduce(x, GCOLL_IN_PLACE, 2, GCOLL_INT32, GCOLL_SUM, c), "IN_PLACE");
	REFUSED(gcoll_bcast(GCOLL_IN_PLACE, 2, GCOLL_INT32, 0, c), "IN_PLACE");
	REFUSED(gcoll_scatter(x, GCOLL_IN_PLACE, 1, GCOLL_INT32, 1, c), "root only");
	REFUSED(gcoll_scatter(NULL, y, 1, GCOLL_INT32, 0, c), "send from is NULL");
	REFUSED(gcoll_gather(x, y, UINT64_MAX / 2 + 1, GCOLL_BYTE, 0, c), "memory can hold");
	REFUSED(gcoll_allgather(x, y, 1ull << 61, GCOLL_INT32, c), "memory can hold");
	REFUSED(gcoll_alltoall(x, y, UINT64_MAX, GCOLL_BYTE, c), "memory can hold");
	REFUSED(gcoll_allgatherv(x, y, NULL, NULL, GCOLL_BYTE, c), "counts are NULL");
	REFUSED(gcoll_allgatherv(x, y, huge, NULL, GCOLL_BYTE, c), "memory can hold");
	REFUSED(gcoll_allgatherv(x, y, one, far, GCOLL_INT32, c), "memory can hold");
	REFUSED(gcoll_alltoallv(x, one, NULL, y, NULL, NULL, GCOLL_BYTE, c), "counts are NULL");
	REFUSED(gcoll_alltoallv(NULL, one, NULL, y, one, NULL, GCOLL_BYTE, c), "NULL");
	REFUSED(gcoll_bcast(x, 1, GCOLL_ELEMENT(0), 0, c), "element type");
	REFUSED(gcoll_bcast(x, UINT64_MAX, GCOLL_ELEMENT(3), 0, c), "memory can hold");
	REFUSED(gcoll_send(x, 1, GCOLL_BYTE, 2, 0, c), "dest 2");
	REFUSED(gcoll_send(x, 1, GCOLL_BYTE, 1, -1, c), "tag -1");
	REFUSED(gcoll_recv(NULL, 1, GCOLL_BYTE, 1, 0, c), "NULL");
	REFUSED(gcoll_multicasts(NULL, 2, c), "NULL");
	REFUSED(gcoll_comm_split(c, 0, 0, NULL), "NULL");
	REFUSED(gcoll_comm_set(c, NULL, "x"), "NULL");
	REFUSED(gcoll_comm_set(c, "order", "random"), "any or fixed");
	REFUSED(gcoll_comm_set(c, "bcast", "chain:degree=2:x"), "");
	REFUSED(gcoll_op_create(NULL, 1, NULL, &gone), "NULL");
	assert_int_equal(gcoll_op_create(nothing, 1, NULL, &gone), 0);
	assert_int_equal(gcoll_op_free(gone), 0);
	REFUSED(gcoll_allreduce(x, y, 1, GCOLL_INT32, gone, c), "freed");
	REFUSED(gcoll_start(NULL), "NULL");
	assert_int_equal(gcoll_barrier_init(c, &kept), 0);
	assert_int_equal(gcoll_wait(&kept), 0); /* not begun: done */
	assert_int_equal(gcoll_start(kept), 0);
	REFUSED(gcoll_start(kept), "under way");
	REFUSED(gcoll_req_free(&kept), "under way");
	assert_int_equal(gcoll_ibarrier(j.comm[1], &req), 0);
	assert_int_equal(gcoll_wait(&kept), 0);
	assert_non_null(kept);
	assert_int_equal(gcoll_req_free(&kept), 0);
	assert_null(kept);
	assert_int_equal(gcoll_wait(&req), 0);
	assert_int_equal(gcoll_wait(NULL), 0);
	/* A buffer that this rank does not use may be anything. */
	assert_int_equal(gcoll_ireduce(x, NULL, 1, GCOLL_INT32, GCOLL_SUM, 1, c, &req), 0);
	job_close(&j);
}

/* Blocks that overlap where they are received are found in whatever order they stand. */
static void blocks_on_top_of_each_other(void **state)
{
	enum { N = 5 };
	static const struct {
		uint64_t counts[N], displs[N];
		const char *why; /* NULL: they do not */
	} cases[] = {
		{{2, 2, 2, 2, 2}, {8, 6, 4, 2, 0}, NULL},
		{{2, 2, 0, 2, 2}, {8, 6, 7, 2, 0}, NULL},
		{{1, 1, 1, 1, 1}, {9, 1, 5, 3, 7}, NULL},
		{{2, 2, 2, 2, 2}, {0, 2, 4, 6, 7},
			"rank 3 (2 elements at 6) and rank 4 (2 at 7) overlap in recvbuf"},
		{{2, 2, 2, 3, 2}, {8, 6, 4, 2, 0},
			"rank 3 (3 elements at 2) and rank 2 (2 at 4) overlap"},
		{{1, 1, 1, 0, 1}, {9, 5, 2, 2, 5},
			"rank 1 (1 elements at 5) and rank 4 (1 at 5) overlap"},
		{{9, 1, 0, 0, 1}, {1, 0, 0, 0, 9}, "rank 0 (9 elements at 1) and rank 4"},
	};
	uint64_t ones[N] = {1, 1, 1, 1, 1};
	uint32_t in[16] = {0}, out[16];
	gcoll_req *req;
	struct job j;
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (k = 0; k < 3; k++) {
			const uint64_t *n = cases[i].counts, *at = cases[i].displs;
			gcoll_comm *c;
			int rc;

			job_open(&j, (int[]){3, 2, 0}, 0, 22, NULL);
			c = j.comm[1];
			if (k == 0)
				rc = gcoll_igatherv(in, out, n, at, GCOLL_UINT32, 1, c, &req);
			else if (k == 1)
				rc = gcoll_iallgatherv(in, out, n, at, GCOLL_UINT32, c, &req);
			else
				rc = gcoll_ialltoallv(
					in, ones, NULL, out, n, at, GCOLL_UINT32, c, &req);
			assert_int_equal(rc, cases[i].why ? GCOLL_ERR_INVAL : 0);
			if (cases[i].why && !strstr(gcoll_last_error(), cases[i].why))
				fail_msg("\"%s\", expected \"%s\"", gcoll_last_error(),
					cases[i].why);
			/* Where nothing is received, it does not matter. */
			assert_int_equal(
				gcoll_igatherv(in, NULL, n, at, GCOLL_UINT32, 0, c, &req), 0);
			assert_int_equal(
				gcoll_iscatterv(in, n, at, out + 8, GCOLL_UINT32, 1, c, &req), 0);
			job_close(&j);
		}
}

/* However many bytes are asked for, an element of another size is never taken for it. */
static void sizes_of_elements(void **state)
{
	static const enum gcoll_type constant[] = {GCOLL_ELEMENT(7), GCOLL_ELEMENT(1ull << 32)};
	static const uint64_t wrong[] = {0, 1u << 30, UINT32_MAX, 1ull << 32, (1ull << 32) + 4,
		(1ull << 62) + 1, UINT64_MAX};
	uint32_t x = 0;
	struct job j;
	size_t i;

	(void)state;
	assert_int_equal(gcoll_type_size(constant[0]), 7);
	assert_int_equal(gcoll_type_size(constant[1]), 0);
	assert_int_equal(gcoll_type_size(GCOLL_ELEMENT(1)), 1);
	assert_int_equal(gcoll_type_size(GCOLL_ELEMENT((1u << 30) - 1)), (1u << 30) - 1);
	assert_int_equal(gcoll_type_size(GCOLL_ELEMENT(-1)), 0);
	job_open(&j, (int[]){2, 0}, 0, 22, NULL);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(gcoll_type_size(GCOLL_ELEMENT(wrong[i])), 0);
		assert_int_equal(
			gcoll_bcast(&x, 1, GCOLL_ELEMENT(wrong[i]), 0, j.comm[0]), GCOLL_ERR_INVAL);
		assert_string_equal(gcoll_last_error(),
			"GCOLL_ELEMENT of 0 or too many bytes, "
			"expected an element type of 1 to 1073741823");
	}
	job_close(&j);
}

/* ---- lack of memory */

/* One operation of each sort on two ranks; the n-th allocation of rank 0's calls fails. Returns
 * whether it did. */
static int with_failure_at(unsigned long n, int sort)
{
	static const int dests[] = {1};
	const uint64_t counts[2] = {40, 3};
	static uint32_t in[2][200], out[2][200];
	int r, done, steps, status[2] = {0}, failed = 0;
	struct job j;

	job_open(&j, (int[]){1, 1, 0}, 0, 23, NULL);
	for (r = 1; r >= 0; r--) {
		gcoll_comm *c = j.comm[r];
		gcoll_req **q = &j.req[r];
		const uint64_t mine[2] = {r ? 3 : 40, 3};
		int rc = 0;

		if (!r)
			gci_mem_fail_at(n);
		if (sort < GCI_NKINDS) {
			static const char *const kinds[] = {[GCI_REDUCE] = "reduce",
				[GCI_ALLREDUCE] = "allreduce",
				[GCI_REDUCE_SCATTER] = "reduce_scatter",
				[GCI_SCATTER] = "scatter",
				[GCI_GATHER] = "gather",
				[GCI_ALLGATHER] = "allgather",
				[GCI_ALLTOALL] = "alltoall"};

			if (sort == GCI_BARRIER)
				rc = gcoll_ibarrier(c, q);
			else if (sort == GCI_BCAST)
				rc = gcoll_ibcast(out[r], 100, GCOLL_UINT32, 0, c, q);
			else
				rc = begin(kinds[sort], 50, GCOLL_UINT32, 0, in[r], out[r], c, q);
		} else if (sort == GCI_NKINDS) {
			rc = gcoll_ialltoallv(
				in[r], mine, NULL, out[r], mine, NULL, GCOLL_UINT32, c, q);
		} else if (sort == GCI_NKINDS + 1) {
			rc = gcoll_imulticast(out[r], 9, GCOLL_UINT32, 0, dests, 1, c, q);
		} else if (sort == GCI_NKINDS + 2) {
			rc = r ? gcoll_irecv(out[r], 9, GCOLL_UINT32, 0, 5, c, q)
			       : gcoll_isend(in[r], 9, GCOLL_UINT32, 1, 5, c, q);
		} else if (sort == GCI_NKINDS + 3) {
			rc = gcoll_ireduce_scatter(
				GCOLL_IN_PLACE, out[r], 50, GCOLL_UINT32, GCOLL_SUM, c, q);
		} else {
			rc = gcoll_iallgatherv(in[r], out[r], counts, NULL, GCOLL_UINT32, c, q);
		}
		if (rc)
			assert_null(*q);
		status[r] = rc;
	}
	for (steps = 0; steps < 2000 && (j.req[0] || j.req[1]); steps++)
		for (r = 0; r < 2; r++) {
			int rc = j.req[r] ? gcoll_test(&j.req[r], &done) : 0;

			status[r] = rc ? rc : status[r];
		}
	failed = gci_mem_failed();
	gci_mem_fail_at(0);
	/* All is well, or who is out of memory knows; nobody waits without a reason. */
	if (!failed)
		assert_true(!j.req[0] && !j.req[1] && !status[0] && !status[1]);
	if (failed && (j.req[0] || j.req[1] || status[0] || status[1]))
		assert_int_not_equal(
			j.comm[0]->engine->failure.status | j.comm[1]->engine->failure.status, 0);
	job_close(&j);
	return failed;
}

static void lack_of_memory(void **state)
{
	unsigned long n;
	int sort;

	(void)state;
	for (sort = 0; sort < GCI_NKINDS + 5; sort++) {
		for (n = 1; with_failure_at(n, sort); n++)
			assert_true(n < 2000);
		assert_true(n > 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(links_of_one_machine),
		cmocka_unit_test(outside_of_a_job),
		cmocka_unit_test(bad_environment),
		cmocka_unit_test(counts_that_do_not_fit),
		cmocka_unit_test(every_mismatch_is_named),
		cmocka_unit_test(hostile_arguments),
		cmocka_unit_test(blocks_on_top_of_each_other),
		cmocka_unit_test(sizes_of_elements),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
