/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/mem.h"
#include "transport/control.h"

#include <string.h>

static const struct gci_ctl_hello hello = {.version = GCI_CTL_VERSION,
	.rank = 7,
	.token = {1, 2, 3},
	.reach = {5000, 1, 1, {{[15] = 1}}},
	.size = 9,
	.host = "k7.kyoto.example",
	.cluster = "at-most-21-characters",
	.release = "1.2.3-rc4+longer-than-releases",
	.schedules = 0x8123456789abcdefull,
	.big_endian = 1,
	.session = {9, 8, 7}};
static struct gci_ctl_rank ranks[] = {{3, {5000, 1, 0, {{10, 1, 0, 3}}}},
	{65535, {65535, 4, 9, {{0xfd, [15] = 1}, {10, 1}, {10, 2}, {0xfd, [15] = 2}}}}};
static const struct gci_ctl_start start = {.size = 2,
	.epoch = 4,
	.beat_ns = 500000000,
	.dead_ns = 20000000000ull,
	.grid = (char *)"[cluster a]\nhosts = a1\n",
	.table = (char *)"{\"version\": 1}\n",
	.table_digest = 0x0123456789abcdefull,
	.survives = 1,
	.ranks = ranks};
static const struct gci_ctl_failure failure = {
	.status = GCOLL_ERR_PEER, .rank = -1, .text = "the host went away"};
static const struct gci_ctl_call call = {
	.rank = 5, .comm = 1, .op = 1ull << 39, .text = "bcast of 5 byte from rank 0"};
static const struct gci_ctl_wait waiting = {
	.rank = 65535, .comm = 3, .tag = 0x7fffffff, .seq = 1ull << 63 | 5};

static const struct gci_ctl_budget budget = {.from = 3, .to = 0, .bps = 1ull << 40};
static const struct gci_ctl_watch watch = {.period_ms = 500, .flows = 1};
static const struct gci_ctl_report report = {.cluster = 2,
	.connections = 9,
	.sum = {0, 0, 0, 1ull << 50, 2, 3, 4, 5, 6, 7, 8, 9},
	.end_bin = 1ull << 40,
	.nbins = 3,
	.bins = {7, 0, UINT32_MAX}};
static const struct gci_ctl_flows flows = {.first = 1,
	.n = 2,
	.flows = {{3, 1, 1, 11, 12, 13, 14, 15, 16, 17, 18, 19}, {65535, 63, 1, 1, .resent = 4}}};

static const struct gci_ctl_agree agree = {
	.epoch = 3, .flags = 1ull << 63 | 5, .status = GCOLL_ERR_PEER, .text = "rank 4 is gone"};
static uint32_t survivor_ranks[] = {0, 1, 5, 65535};
static const struct gci_ctl_survivors survivors = {.epoch = 4, .n = 4, .ranks = survivor_ranks};
static const struct gci_ctl_survivors shrink = {.epoch = 3};
static const struct gci_ctl_resume resume = {
	.rank = 65535, .life = 3, .got = 1ull << 40, .token = {4, 5, 6}};

/* One of each type. */
static void put_all(struct gci_buf *b)
{
	gci_ctl_put_hello(b, &hello);
	gci_ctl_put_start(b, &start);
	gci_ctl_put_got(b, GCI_CTL_BEAT, 1ull << 33);
	gci_ctl_put_failure(b, GCI_CTL_FAIL, &failure);
	gci_ctl_put_failure(b, GCI_CTL_ABORT, &failure);
	gci_ctl_put_plain(b, GCI_CTL_BYE);
	gci_ctl_put_wait(b, &waiting);
	gci_ctl_put_call(b, GCI_CTL_ASK, &call);
	gci_ctl_put_call(b, GCI_CTL_CALLED, &call);
	gci_ctl_put_budget(b, &budget);
	gci_ctl_put_watch(b, &watch);
	gci_ctl_put_report(b, &report);
	gci_ctl_put_flows(b, &flows);
	gci_ctl_put_agree(b, GCI_CTL_AGREE, &agree);
	gci_ctl_put_agree(b, GCI_CTL_AGREED, &agree);
	gci_ctl_put_survivors(b, GCI_CTL_SHRINK, &shrink);
	gci_ctl_put_survivors(b, GCI_CTL_SURVIVORS, &survivors);
	gci_ctl_put_resume(b, &resume);
	gci_ctl_put_got(b, GCI_CTL_RESUMED, 7);
}

static void check_message(const struct gci_ctl_message *m, int i)
{
	static const enum gci_ctl_type order[] = {GCI_CTL_HELLO, GCI_CTL_START, GCI_CTL_BEAT,
		GCI_CTL_FAIL, GCI_CTL_ABORT, GCI_CTL_BYE, GCI_CTL_WAIT, GCI_CTL_ASK, GCI_CTL_CALLED,
		GCI_CTL_BUDGET, GCI_CTL_WATCH, GCI_CTL_REPORT, GCI_CTL_FLOWS, GCI_CTL_AGREE,
		GCI_CTL_AGREED, GCI_CTL_SHRINK, GCI_CTL_SURVIVORS, GCI_CTL_RESUME, GCI_CTL_RESUMED};

	assert_int_equal(m->type, order[i]);
	switch (m->type) {
	case GCI_CTL_HELLO:
		assert_memory_equal(&m->hello, &hello, sizeof(hello));
		break;
	case GCI_CTL_START:
		assert_int_equal(m->start.size, start.size);
		assert_int_equal(m->start.epoch, start.epoch);
		assert_true(m->start.beat_ns == start.beat_ns);
		assert_true(m->start.dead_ns == start.dead_ns);
		assert_string_equal(m->start.grid, start.grid);
		assert_string_equal(m->start.table, start.table);
		assert_true(m->start.table_digest == start.table_digest);
		assert_int_equal(m->start.survives, 1);
		assert_memory_equal(m->start.ranks, ranks, sizeof(ranks));
		break;
	case GCI_CTL_FAIL:
	case GCI_CTL_ABORT:
		assert_memory_equal(&m->failure, &failure, sizeof(failure));
		break;
	case GCI_CTL_ASK:
	case GCI_CTL_CALLED:
		assert_memory_equal(&m->call, &call, sizeof(call));
		break;
	case GCI_CTL_WAIT:
		assert_memory_equal(&m->wait, &waiting, sizeof(waiting));
		break;
	case GCI_CTL_BUDGET:
		assert_memory_equal(&m->budget, &budget, sizeof(budget));
		break;
	case GCI_CTL_WATCH:
		assert_memory_equal(&m->watch, &watch, sizeof(watch));
		break;
	case GCI_CTL_REPORT:
		assert_memory_equal(&m->report, &report, sizeof(report));
		break;
	case GCI_CTL_FLOWS:
		assert_memory_equal(&m->flows, &flows, sizeof(flows));
		break;
	case GCI_CTL_AGREE:
	case GCI_CTL_AGREED:
		assert_memory_equal(&m->agree, &agree, sizeof(agree));
		break;
	case GCI_CTL_SHRINK:
		assert_int_equal(m->survivors.epoch, 3);
		assert_int_equal(m->survivors.n, 0);
		break;
	case GCI_CTL_SURVIVORS:
		assert_int_equal(m->survivors.epoch, 4);
		assert_int_equal(m->survivors.n, 4);
		assert_memory_equal(m->survivors.ranks, survivor_ranks, sizeof(survivor_ranks));
		break;
	case GCI_CTL_RESUME:
		assert_memory_equal(&m->resume, &resume, sizeof(resume));
		break;
	case GCI_CTL_BEAT:
		assert_true(m->got.n == 1ull << 33);
		break;
	case GCI_CTL_RESUMED:
		assert_true(m->got.n == 7);
		break;
	default:
		break;
	}
}

/* However the bytes arrive: one at a time, or all at once. */
static void messages_come_back(void **state)
{
	struct gci_buf all = {0}, in = {0};
	struct gci_ctl_message m;
	size_t i;
	int n = 0, rc;

	(void)state;
	put_all(&all);
	assert_false(all.failed);
	for (i = 0; i < all.len; i++) {
		gci_buf_put_u8(&in, all.data[i]);
		rc = gci_ctl_get(&in, GCI_CTL_MAX_MESSAGE, &m, NULL);
		assert_true(rc == 0 || rc == 1);
		if (!rc)
			continue;
		check_message(&m, n++);
		gci_ctl_message_free(&m);
	}
	assert_int_equal(n, 19);
	assert_int_equal(in.len, 0);
	for (n = 0; gci_ctl_get(&all, GCI_CTL_MAX_MESSAGE, &m, NULL) == 1; n++) {
		check_message(&m, n);
		gci_ctl_message_free(&m);
	}
	assert_int_equal(n, 19);
	gci_buf_free(&all);
	gci_buf_free(&in);
}

static void expect_refused(struct gci_buf *b, uint32_t max, const char *why)
{
	struct gci_error e = {0};
	struct gci_ctl_message m;

	assert_int_equal(gci_ctl_get(b, max, &m, &e), GCOLL_ERR_PROTO);
	assert_non_null(strstr(e.text, why));
	gci_buf_free(b);
}

static void lengths_are_limited_before_the_rest_comes(void **state)
{
	struct gci_buf b = {0};

	(void)state;
	gci_buf_put_u32(&b, GCI_CTL_MAX_HELLO + 1);
	expect_refused(&b, GCI_CTL_MAX_HELLO, "expected 1 to 4096");
	gci_buf_put_u32(&b, 0);
	expect_refused(&b, GCI_CTL_MAX_HELLO, "0 bytes");
}

static void malformed_messages_are_refused(void **state)
{
	struct gci_ctl_start s = start;
	struct gci_ctl_failure f = failure;
	struct gci_buf b = {0};

	(void)state;
	gci_ctl_put_plain(&b, 0);
	expect_refused(&b, 100, "type 0");
	gci_ctl_put_plain(&b, GCI_CTL_RESUMED + 1);
	expect_refused(&b, 100, "type 20");
	gci_ctl_put_plain(&b, GCI_CTL_CALLED);
	expect_refused(&b, 100, "type 9");
	gci_ctl_put_plain(&b, GCI_CTL_WAIT);
	expect_refused(&b, 100, "type 7");
	gci_ctl_put_plain(&b, GCI_CTL_HELLO); /* without its fields */
	expect_refused(&b, 100, "type 1");
	gci_buf_put_u32(&b, 10); /* BEAT with a byte too much */
	gci_buf_put_u8(&b, GCI_CTL_BEAT);
	gci_buf_put_u64(&b, 0);
	gci_buf_put_u8(&b, 0);
	expect_refused(&b, 100, "type 3");
	s.size = 0;
	gci_ctl_put_start(&b, &s);
	expect_refused(&b, 10000, "type 2");
	s = start;
	s.dead_ns = s.beat_ns - 1;
	gci_ctl_put_start(&b, &s);
	expect_refused(&b, 10000, "type 2");
	f.status = 0; /* a failure that is none */
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &f);
	expect_refused(&b, 10000, "type 4");
	f = failure;
	f.rank = -2;
	gci_ctl_put_failure(&b, GCI_CTL_ABORT, &f);
	expect_refused(&b, 10000, "type 5");
	/* A START that claims more ranks than there are bytes for. */
	gci_ctl_put_start(&b, &start);
	b.data[5] = 200;
	expect_refused(&b, 10000, "type 2");
}

static void malformed_reports_are_refused(void **state)
{
	struct gci_ctl_report many = report;
	struct gci_ctl_watch w = watch;
	struct gci_ctl_flows f = flows;
	struct gci_buf b = {0};

	(void)state;
	w.period_ms = GCI_REPORT_PERIOD + 1;
	gci_ctl_put_watch(&b, &w);
	expect_refused(&b, 100, "type 11");
	gci_ctl_put_report(&b, &many);
	b.data[b.len - 16] = 0xff; /* of nbins: more than there are bytes for */
	expect_refused(&b, 10000, "type 12");
	many.nbins = GCI_REPORT_BINS;
	gci_ctl_put_report(&b, &many);
	assert_true(b.len <= GCI_CTL_MAX_HELLO);
	b.data[b.len - 4 * GCI_REPORT_BINS - 4]++; /* one more than may be */
	gci_buf_put_u32(&b, 0);
	gci_store_u32(b.data, (uint32_t)b.len - 4);
	expect_refused(&b, 10000, "type 12");
	many.nbins = 3;
	many.end_bin = 2; /* bins before time began */
	gci_ctl_put_report(&b, &many);
	expect_refused(&b, 10000, "type 12");
	f.flows[1].peer = -1;
	gci_ctl_put_flows(&b, &f);
	expect_refused(&b, 10000, "type 13");
	f.n = GCI_FLOWS_MOST;
	f.flows[1].peer = 1;
	gci_ctl_put_flows(&b, &f);
	assert_true(b.len <= GCI_CTL_MAX_HELLO);
	gci_buf_free(&b);
}

static void refuse_survivors(enum gci_ctl_type type, struct gci_ctl_survivors m, const char *why)
{
	struct gci_buf b = {0};

	gci_ctl_put_survivors(&b, type, &m);
	expect_refused(&b, 10000, why);
}

/* Ranks are told once each, in order, and are as many as there are bytes for. */
static void malformed_survivors_are_refused(void **state)
{
	uint32_t twice[] = {1, 1}, falling[] = {2, 1}, high[] = {GCI_CTL_MAX_RANKS};
	struct gci_ctl_agree a = agree;
	struct gci_buf b = {0};

	(void)state;
	refuse_survivors(GCI_CTL_SURVIVORS, (struct gci_ctl_survivors){2, 2, twice}, "type 17");
	refuse_survivors(GCI_CTL_SURVIVORS, (struct gci_ctl_survivors){2, 2, falling}, "type 17");
	refuse_survivors(GCI_CTL_SURVIVORS, (struct gci_ctl_survivors){2, 1, high}, "type 17");
	refuse_survivors(GCI_CTL_SURVIVORS, (struct gci_ctl_survivors){2, 0, NULL}, "type 17");
	refuse_survivors(GCI_CTL_SURVIVORS, (struct gci_ctl_survivors){0, 1, twice}, "type 17");
	refuse_survivors(GCI_CTL_SHRINK, (struct gci_ctl_survivors){2, 1, twice}, "type 16");
	gci_ctl_put_survivors(&b, GCI_CTL_SURVIVORS, &survivors);
	b.data[9] = 0xff; /* of n */
	expect_refused(&b, 10000, "type 17");
	a.status = 1;
	gci_ctl_put_agree(&b, GCI_CTL_AGREED, &a);
	expect_refused(&b, 10000, "type 15");
}

static void any_cut_or_extension_is_noticed(void **state)
{
	struct gci_ctl_message m;
	struct gci_buf b = {0};
	uint32_t whole, len;

	(void)state;
	for (len = 1;; len++) {
		gci_ctl_put_start(&b, &start);
		whole = gci_load_u32(b.data);
		if (len == whole)
			break;
		gci_store_u32(b.data, len);
		assert_int_equal(gci_ctl_get(&b, 10000, &m, NULL), GCOLL_ERR_PROTO);
		b.len = 0;
	}
	gci_buf_free(&b);
}

/* Of reading a message. Returns how many there are. */
static unsigned long fail_each_allocation(void (*put)(struct gci_buf *b))
{
	unsigned long n;

	for (n = 1;; n++) {
		struct gci_ctl_message m;
		struct gci_buf b = {0};
		int rc, failed;

		put(&b);
		gci_mem_fail_at(n);
		rc = gci_ctl_get(&b, 10000, &m, NULL);
		failed = gci_mem_failed();
		gci_mem_fail_at(0);
		gci_buf_free(&b);
		if (rc == 1)
			gci_ctl_message_free(&m);
		assert_true(failed ? rc < 0 : rc == 1);
		if (!failed)
			return n - 1;
	}
}

static void put_start(struct gci_buf *b)
{
	gci_ctl_put_start(b, &start);
}

static void put_survivors(struct gci_buf *b)
{
	gci_ctl_put_survivors(b, GCI_CTL_SURVIVORS, &survivors);
	gci_ctl_put_resume(b, &resume);
	gci_ctl_put_got(b, GCI_CTL_RESUMED, 7);
}

static void any_allocation_may_fail(void **state)
{
	(void)state;
	assert_true(fail_each_allocation(put_start) > 2);
	assert_int_equal(fail_each_allocation(put_survivors), 1);
}

static void tokens_differ(void **state)
{
	uint8_t secret[GCI_SECRET_NBYTES] = {1}, a[32], b[32];

	(void)state;
	assert_int_equal(gci_ctl_token(secret, 1, a), 0);
	assert_int_equal(gci_ctl_token(secret, 1, b), 0);
	assert_memory_equal(a, b, 32);
	assert_int_equal(gci_ctl_token(secret, 2, b), 0);
	assert_memory_not_equal(a, b, 32);
	secret[31] ^= 1;
	assert_int_equal(gci_ctl_token(secret, 1, b), 0);
	assert_memory_not_equal(a, b, 32);
}

/* What is kept is what counts and has not come. */
static void messages_are_kept(void **state)
{
	struct gci_ctl_link l = {0};
	struct gci_buf b = {0};
	struct gci_ctl_message m;

	(void)state;
	put_all(&b);
	gci_ctl_link_keep(&l, b.data, b.len);
	gci_ctl_link_keep(&l, b.data, b.len - 1); /* all but RESUMED */
	gci_buf_free(&b);
	assert_int_equal(l.sent, 24);
	assert_int_equal(gci_ctl_link_acked(&l, 25), -1);
	assert_int_equal(gci_ctl_link_acked(&l, 23), 0);
	assert_int_equal(gci_ctl_link_acked(&l, 22), -1);
	assert_int_equal(gci_ctl_get(&l.kept, GCI_CTL_MAX_MESSAGE, &m, NULL), 1);
	assert_int_equal(m.type, GCI_CTL_SURVIVORS);
	gci_ctl_message_free(&m);
	assert_int_equal(l.kept.len, 0);
	gci_ctl_link_free(&l);
}

/* Memory is bounded; what was not kept is known to be missing until it has come. */
static void a_gap(void **state)
{
	struct gci_ctl_link l = {0};
	struct gci_buf b = {0};
	uint64_t n = 0;

	(void)state;
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &failure);
	for (; !l.gap; n++)
		gci_ctl_link_keep(&l, b.data, b.len);
	assert_true(l.kept.len <= GCI_CTL_MAX_KEPT && l.kept.len > GCI_CTL_MAX_KEPT - b.len);
	gci_ctl_link_keep(&l, b.data, b.len);
	assert_int_equal(gci_ctl_link_acked(&l, n), 0);
	assert_true(l.gap && !l.kept.len);
	assert_int_equal(gci_ctl_link_acked(&l, n + 1), 0);
	assert_false(l.gap);
	gci_ctl_link_keep(&l, b.data, b.len);
	assert_int_equal(l.kept.len, b.len);
	gci_buf_free(&b);
	gci_ctl_link_free(&l);
}

/* It is made with all that is said. */
static void resume_tokens(void **state)
{
	const uint8_t secret[GCI_SECRET_NBYTES] = "only for tests";
	struct gci_ctl_resume others[3] = {resume, resume, resume};
	uint8_t key[2][32], one[32], other[32];
	int i;

	(void)state;
	others[0].life++;
	others[1].got++;
	others[2].rank--;
	assert_int_equal(gci_ctl_resume_key(secret, 1, key[0]), 0);
	assert_int_equal(gci_ctl_resume_key(secret, 2, key[1]), 0);
	assert_int_equal(gci_ctl_resume_token(key[0], &resume, hello.session, one), 0);
	for (i = 0; i < 3; i++) {
		gci_ctl_resume_token(key[0], &others[i], hello.session, other);
		assert_memory_not_equal(one, other, 32);
	}
	gci_ctl_resume_token(key[1], &resume, hello.session, other);
	assert_memory_not_equal(one, other, 32);
	gci_ctl_resume_token(key[0], &resume, (const uint8_t[GCI_CTL_SESSION]){9, 8, 6}, other);
	assert_memory_not_equal(one, other, 32);
	gci_ctl_token(secret, 1, other);
	assert_memory_not_equal(key[0], other, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_back),
		cmocka_unit_test(lengths_are_limited_before_the_rest_comes),
		cmocka_unit_test(malformed_messages_are_refused),
		cmocka_unit_test(malformed_reports_are_refused),
		cmocka_unit_test(malformed_survivors_are_refused),
		cmocka_unit_test(any_cut_or_extension_is_noticed),
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(tokens_differ),
		cmocka_unit_test(messages_are_kept),
		cmocka_unit_test(a_gap),
		cmocka_unit_test(resume_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
