/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "shaping/net.h"
#include "shaping/qdisc.h"

#include <linux/pkt_sched.h>
#include <net/if.h>
#include <string.h>

static void test_nets(void **state)
{
	static const struct {
		const char *in, *out;
	} good[] = {{"10.2.0.0/16", "10.2.0.0/16"}, {"10.2.3.4/16", "10.2.0.0/16"},
		{"10.2.3.4", "10.2.3.4"}, {"10.2.3.4/32", "10.2.3.4"}, {"0.0.0.0/0", "0.0.0.0/0"},
		{"255.255.255.255/9", "255.128.0.0/9"}, {"fd00:2::1/32", "fd00:2::/32"},
		{"::1", "::1"}, {"::/0", "::/0"}};
	static const char *const bad[] = {"", "eth0", "!10.2.0.0/16", "10.2.0.0/33", "10.2.0/16",
		"10.2.0.0/", "10.2.0.0/16 10.3.0.0/16", "fd00::/129", "fd00::1%eth0", "/8"};
	char text[GCI_NET_TEXT];
	struct gci_net net;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(gci_net_parse(&net, good[i].in, NULL), 0);
		assert_string_equal(gci_net_text(&net, text), good[i].out);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct gci_error e = {0};

		assert_int_equal(gci_net_parse(&net, bad[i], &e), GCOLL_ERR_INVAL);
		assert_non_null(strstr(e.text, "expected a network"));
		assert_non_null(strstr(e.text, bad[i]));
	}
}

#define Q(kind, handle, parent)            \
	{                                  \
		kind, handle, parent, 0, 0 \
	}

static int has_fq(const struct gci_qdisc *q, unsigned n, const char *reason)
{
	char why[GCI_QDISC_WHY] = "";
	int has = gci_qdisc_has_fq(q, n, "eth7", why);

	if (!has) {
		assert_non_null(reason);
		assert_non_null(strstr(why, reason));
		assert_non_null(strstr(why, "dev eth7"));
	}
	return has;
}

static void test_fq(void **state)
{
	static const struct gci_qdisc root[] = {Q("fq", 0x80010000, TC_H_ROOT)};
	static const struct gci_qdisc clsact[] = {
		Q("fq", 0x80010000, TC_H_ROOT), Q("clsact", 0xffff0000, TC_H_INGRESS)};
	static const struct gci_qdisc below[] = {
		Q("tbf", 0x10000, TC_H_ROOT), Q("fq", 0x100000, 0x10001)};
	static const struct gci_qdisc queues[] = {
		Q("mq", 0, TC_H_ROOT), Q("fq", 0x80020000, 1), Q("fq", 0x80030000, 2)};
	static const struct gci_qdisc mixed[] = {
		Q("mq", 0, TC_H_ROOT), Q("fq", 0x80020000, 1), Q("fq_codel", 0x80030000, 2)};
	static const struct gci_qdisc codel[] = {Q("fq_codel", 0, TC_H_ROOT)};
	static const struct gci_qdisc above[] = {
		Q("fq", 0x10000, TC_H_ROOT), Q("clsact", 0xffff0000, TC_H_INGRESS)};

	(void)state;
	assert_true(has_fq(root, 1, NULL));
	assert_true(has_fq(clsact, 2, NULL));
	assert_true(has_fq(below, 2, NULL));
	assert_true(has_fq(queues, 3, NULL));
	assert_true(has_fq(above, 2, NULL));
	assert_false(has_fq(mixed, 3, "fq_codel"));
	assert_false(has_fq(codel, 1, "fq_codel"));
	assert_false(has_fq(below, 1, "tbf"));
	assert_false(has_fq(clsact + 1, 1, "no queue"));
	assert_false(has_fq(root, 0, "no queue"));
}

static void test_horizon(void **state)
{
	struct gci_qdisc q[] = {
		Q("tbf", 0x10000, TC_H_ROOT), Q("fq", 0x100000, 0x10001), Q("fq", 0x110000, 2)};

	(void)state;
	assert_int_equal(gci_qdisc_horizon_ns(q, 3), 0);
	q[1].horizon_ns = 7;
	assert_int_equal(gci_qdisc_horizon_ns(q, 3), 7);
	q[2].horizon_ns = 5;
	assert_int_equal(gci_qdisc_horizon_ns(q, 3), 5);
}

/* What any machine has: loopback, without a queue of its own. */
static void test_list(void **state)
{
	struct gci_qdisc q[GCI_QDISCS];
	struct gci_error e = {0};
	char why[GCI_QDISC_WHY];
	int n = gci_qdisc_list((int)if_nametoindex("lo"), q, &e);

	(void)state;
	assert_true(n >= 0);
	assert_int_equal(e.status, 0);
	assert_false(gci_qdisc_has_fq(q, (unsigned)n, "lo", why));
	assert_int_equal(gci_qdisc_list(0x7fffffff, q, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nets),
		cmocka_unit_test(test_fq),
		cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
