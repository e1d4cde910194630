/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "transport/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "a b c", at port 5000. */
static struct gci_reach reach(const char *list)
{
	char one[GCI_ADDRESS_TEXT];
	struct gci_address a;
	struct gci_reach r = {0};
	int len;

	for (; sscanf(list, " %63s%n", one, &len) == 1; list += len) {
		assert_int_equal(gci_address_make(&a, one, 5000), 0);
		assert_int_equal(gci_reach_add(&r, &a), 0);
	}
	return r;
}

static void text(void **state)
{
	char out[GCI_REACH_TEXT];
	struct gci_reach r = reach("10.1.0.3 fd00::3");

	(void)state;
	assert_string_equal(gci_reach_format(&r, out), "10.1.0.3:5000, [fd00::3]:5000");
	memset(&r, 0, sizeof(r));
	assert_string_equal(gci_reach_format(&r, out), "");
	r = reach(
		"1111:2222:3333:4444:5555:6666:7777:8888 1111:2222:3333:4444:5555:6666:7777:8889 "
		"1111:2222:3333:4444:5555:6666:7777:8890 1111:2222:3333:4444:5555:6666:7777:8891");
	assert_int_equal(strlen(gci_reach_format(&r, out)), 4 * 46 + 6);
}

static void four_at_most(void **state)
{
	struct gci_reach r = reach("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4");
	struct gci_address a;

	(void)state;
	assert_int_equal(gci_address_make(&a, "10.0.0.5", 1), 0);
	assert_int_equal(gci_reach_add(&r, &a), -1);
	r.n = 0;
	a.any.sa_family = AF_UNIX;
	assert_int_equal(gci_reach_add(&r, &a), -1);
}

static void an_end_of_a_connection(void **state)
{
	struct gci_reach mapped, four = reach("10.0.0.1"), six = reach("fd00::3");
	struct gci_address a;

	(void)state;
	assert_int_equal(gci_address_make(&a, "::ffff:10.0.0.1", 5000), 0);
	mapped = gci_reach_of(&a);
	assert_memory_equal(&mapped, &four, sizeof(four));
	assert_int_equal(gci_address_make(&a, "fd00::3", 5000), 0);
	mapped = gci_reach_of(&a);
	assert_memory_equal(&mapped, &six, sizeof(six));
	a.any.sa_family = AF_UNIX;
	assert_int_equal(gci_reach_of(&a).n, 0);
}

static void messages_come_back(void **state)
{
	static const char *const lists[] = {"10.1.0.3", "fd00::3", "10.1.0.3 fd00::3",
		"fd00::1 10.0.0.1 fd00::2 10.0.0.2", "10.0.0.1 10.0.0.2 10.0.0.3"};
	static const size_t nbytes[] = {7, 19, 23, 43, 15};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct gci_reach r = reach(lists[i]), again;
		struct gci_buf b = {0};
		struct gci_reader in;

		gci_reach_put(&b, &r);
		assert_int_equal(b.len, nbytes[i]);
		in = (struct gci_reader){.data = b.data, .len = b.len};
		gci_reach_read(&in, &again);
		assert_false(in.failed);
		assert_int_equal(in.len, 0);
		assert_memory_equal(&r, &again, sizeof(r));
		/* cut short */
		in = (struct gci_reader){.data = b.data, .len = b.len - 1};
		gci_reach_read(&in, &again);
		assert_true(in.failed);
		assert_int_equal(again.n, 0);
		gci_buf_free(&b);
	}
}

static void nonsense_is_refused(void **state)
{
	static const uint8_t wrong[][8] = {{0, 0, 1, 10, 0, 0, 1}, /* port 0 */
		{1, 0, 0},                                         /* no address */
		{1, 0, 5, 10, 0, 0, 1},                            /* five */
		{1, 0, 0x21, 10, 0, 0, 1},                         /* the second is IPv6 */
		{1, 0, 1, 0, 0, 0, 0},                             /* any address */
		{1, 0, 1, 224, 0, 0, 1}, {1, 0, 1, 255, 255, 255, 255}};
	static const uint8_t many[19] = {1, 0, 0x11, 0xff, 2};
	struct gci_reach r;
	struct gci_reader in;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		in = (struct gci_reader){.data = wrong[i], .len = 7};
		gci_reach_read(&in, &r);
		assert_true(in.failed);
		assert_int_equal(r.n, 0);
	}
	in = (struct gci_reader){.data = many, .len = sizeof(many)};
	gci_reach_read(&in, &r);
	assert_true(in.failed);
}

/* Own addresses as "10.1.0.1/24 fd00::1": without bits, of an unknown network. */
static struct gci_own own(const char *list)
{
	struct gci_own o = {.n = 0};
	char one[GCI_ADDRESS_TEXT];
	int len;

	for (; sscanf(list, " %63s%n", one, &len) == 1; list += len) {
		char *slash = strchr(one, '/');

		if (slash) {
			*slash = '\0';
			o.bits[o.n] = (uint8_t)atoi(slash + 1);
		}
		assert_int_equal(gci_address_make(&o.at[o.n++], one, 7), 0);
	}
	return o;
}

static char said[512];

static void say(const struct gci_address *from, const struct gci_address *to)
{
	char a[GCI_ADDRESS_TEXT], b[GCI_ADDRESS_TEXT];

	assert_int_equal(gci_address_port(from), 0);
	assert_int_equal(gci_address_port(to), 5000);
	gci_address_ip(from, a);
	gci_address_ip(to, b);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%s>%s", *said ? " " : "", a,
		b);
}

/* The connections with numbers 0 .. n-1. */
static const char *pairs(const char *here, const char *peer, unsigned n)
{
	struct gci_reach theirs = reach(peer);
	struct gci_own mine = own(here);
	struct gci_address from, to;
	unsigned i;

	*said = '\0';
	for (i = 0; i < n; i++) {
		if (gci_reach_pair(&mine, &theirs, i, 0, &from, &to))
			return "none";
		say(&from, &to);
	}
	return said;
}

/* Where one connection is tried. */
static const char *attempts(const char *here, const char *peer, uint32_t turn)
{
	struct gci_reach theirs = reach(peer);
	struct gci_own mine = own(here);
	struct gci_address from, to;
	unsigned i;

	*said = '\0';
	for (i = 0; !gci_reach_pair(&mine, &theirs, turn, i, &from, &to); i++)
		say(&from, &to);
	assert_int_equal(i, gci_reach_npairs(&mine, &theirs));
	return said;
}

static void addresses_of_equal_numbers(void **state)
{
	(void)state;
	assert_string_equal(
		pairs("10.0.0.1", "10.0.0.2", 2), "10.0.0.1>10.0.0.2 10.0.0.1>10.0.0.2");
	assert_string_equal(pairs("10.1.0.1 10.2.0.1", "10.3.0.2 10.4.0.2", 3),
		"10.1.0.1>10.3.0.2 10.2.0.1>10.4.0.2 10.1.0.1>10.3.0.2");
	assert_string_equal(pairs("10.1.0.1/16 10.2.0.1/16", "10.3.0.2 10.4.0.2", 3),
		"10.1.0.1>10.3.0.2 10.2.0.1>10.4.0.2 10.1.0.1>10.3.0.2");
	/* one card here, two there, and the other way round */
	assert_string_equal(pairs("10.1.0.1", "10.1.0.2 10.2.0.2", 3),
		"10.1.0.1>10.1.0.2 10.1.0.1>10.2.0.2 10.1.0.1>10.1.0.2");
	assert_string_equal(pairs("10.1.0.1 10.2.0.1", "10.1.0.2", 3),
		"10.1.0.1>10.1.0.2 10.2.0.1>10.1.0.2 10.1.0.1>10.1.0.2");
}

static void of_one_family(void **state)
{
	(void)state;
	assert_string_equal(pairs("10.0.0.1 fd00::1", "fd00::2 10.0.0.2", 2),
		"10.0.0.1>10.0.0.2 10.0.0.1>10.0.0.2");
	assert_string_equal(pairs("fd00::1 10.0.0.1", "fd00::2 10.0.0.2", 1), "fd00::1>fd00::2");
	assert_string_equal(pairs("10.0.0.1 fd00::1 fd01::1", "fd00::2 fd01::2", 2),
		"fd00::1>fd00::2 fd01::1>fd01::2");
	/* cards are not mixed up where only one side has both families on each */
	assert_string_equal(pairs("10.1.0.1 10.2.0.1 fd01::1 fd02::1", "10.1.0.2 10.2.0.2", 3),
		"10.1.0.1>10.1.0.2 10.2.0.1>10.2.0.2 10.1.0.1>10.1.0.2");
	assert_string_equal(pairs("10.0.0.1", "fd00::2", 1), "none");
	assert_string_equal(pairs("fd00::2", "10.0.0.1", 1), "none");
	assert_string_equal(pairs("", "10.0.0.1", 1), "none");
}

/* Cards that are on a network that the peer has no card on are not for it, whatever their number.
 */
static void of_the_same_network(void **state)
{
	(void)state;
	assert_string_equal(pairs("10.1.0.1/24 10.2.0.1/24", "10.2.0.2 10.1.0.2", 2),
		"10.1.0.1>10.1.0.2 10.2.0.1>10.2.0.2");
	assert_string_equal(pairs("10.0.0.1/24 10.1.0.1/24 10.2.0.1/24", "10.1.0.2 10.2.0.2", 4),
		"10.1.0.1>10.1.0.2 10.2.0.1>10.2.0.2 10.1.0.1>10.1.0.2 10.2.0.1>10.2.0.2");
	assert_string_equal(pairs("fd00:1::1/64 fd00:2::1/64", "fd00:2::2 fd00:1::2 fd00:9::2", 3),
		"fd00:2::1>fd00:2::2 fd00:1::1>fd00:1::2 fd00:2::1>fd00:2::2");
	assert_string_equal(pairs("10.0.0.1/24 10.9.0.1/24", "10.0.0.2 10.3.0.2", 2),
		"10.0.0.1>10.0.0.2 10.0.0.1>10.0.0.2");
	/* two cards of both in one network: first those of equal numbers */
	assert_string_equal(pairs("10.0.0.1/24 10.0.0.2/24", "10.0.0.3 10.0.0.4", 5),
		"10.0.0.1>10.0.0.3 10.0.0.2>10.0.0.4 10.0.0.1>10.0.0.4 10.0.0.2>10.0.0.3 "
		"10.0.0.1>10.0.0.3");
}

/* Each pair once: those that are used in turn, then all others, the other family last. */
static void what_is_tried_next(void **state)
{
	(void)state;
	assert_string_equal(attempts("10.1.0.1 10.2.0.1", "10.1.0.2 10.2.0.2", 1),
		"10.2.0.1>10.2.0.2 10.1.0.1>10.1.0.2 10.1.0.1>10.2.0.2 10.2.0.1>10.1.0.2");
	assert_string_equal(attempts("192.168.0.1/16 10.0.0.1/24", "192.168.0.2 10.9.0.2", 5),
		"192.168.0.1>192.168.0.2 10.0.0.1>10.9.0.2 192.168.0.1>10.9.0.2 "
		"10.0.0.1>192.168.0.2");
	assert_string_equal(attempts("10.0.0.1 fd00::1", "fd00::2 10.0.0.2 10.0.0.3", 1),
		"10.0.0.1>10.0.0.3 10.0.0.1>10.0.0.2 fd00::1>fd00::2");
	assert_string_equal(attempts("10.0.0.1", "10.0.0.2", 77), "10.0.0.1>10.0.0.2");
	assert_string_equal(attempts("10.0.0.1", "fd00::2", 0), "");
}

static void lanes(void **state)
{
	static const struct {
		const char *low, *high;
		unsigned n;
	} cases[] = {{"10.0.0.1", "10.0.0.2", 1}, {"10.1.0.1 10.2.0.1", "10.1.0.2 10.2.0.2", 2},
		{"10.1.0.1 10.2.0.1", "10.1.0.2", 1}, {"10.0.0.1 fd00::1", "10.0.0.2 fd00::2", 1},
		{"10.0.0.1 fd00::1 fd01::1", "fd00::2 fd01::2", 2},
		{"fd00::1 fd01::1 10.0.0.1", "10.0.0.2 fd00::2 fd01::2", 2}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gci_reach low = reach(cases[i].low), high = reach(cases[i].high);

		assert_int_equal(gci_reach_lanes(&low, &high), cases[i].n);
	}
}

/* The peer's scope would say nothing here: it is ours. */
static void our_scope(void **state)
{
	struct gci_own mine = own("fe80::1%lo");
	struct gci_reach theirs = reach("fe80::2");
	struct gci_address from, to;

	(void)state;
	assert_int_equal(gci_reach_pair(&mine, &theirs, 0, 0, &from, &to), 0);
	assert_true(to.v6.sin6_scope_id > 0);
	assert_int_equal(from.v6.sin6_scope_id, mine.at[0].v6.sin6_scope_id);
	assert_int_equal(to.v6.sin6_scope_id, mine.at[0].v6.sin6_scope_id);
}

/* Single connections between many ranks use two addresses alike: all of them, and each rank's. */
static void turns_are_fair(void **state)
{
	enum { N = 16 };
	int all[2] = {0}, of[N][2] = {{0}};
	uint32_t a, b;

	(void)state;
	for (a = 0; a < N; a++)
		for (b = 0; b < N; b++) {
			if (a == b)
				continue;
			assert_int_equal(gci_reach_turn(a, b), gci_reach_turn(b, a));
			all[gci_reach_turn(a, b) % 2]++;
			of[a][gci_reach_turn(a, b) % 2]++;
		}
	assert_int_equal(all[0], all[1]);
	for (a = 0; a < N; a++)
		assert_in_range(of[a][0] - of[a][1] + 3, 0, 6);
	assert_true(gci_reach_turn(65534, 65535) == 65535ull * 65534 / 2 + 65534);
}

static void kinds_of_addresses(void **state)
{
	struct gci_reach v4 = reach("10.0.0.1"), v6 = reach("fd00::1");
	struct gci_reach both = reach("10.0.0.1 fd00::1"), lo = reach("127.0.0.1 ::1");
	struct gci_reach some = reach("127.0.0.1 10.0.0.1");

	(void)state;
	assert_true(gci_reach_meet(&v4, &both) && gci_reach_meet(&both, &v6));
	assert_true(gci_reach_meet(&v4, &v4) && gci_reach_meet(&v6, &v6));
	assert_false(gci_reach_meet(&v4, &v6));
	assert_true(gci_reach_is_loopback(&lo));
	assert_false(gci_reach_is_loopback(&some) || gci_reach_is_loopback(&v6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text),
		cmocka_unit_test(four_at_most),
		cmocka_unit_test(an_end_of_a_connection),
		cmocka_unit_test(messages_come_back),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(addresses_of_equal_numbers),
		cmocka_unit_test(of_one_family),
		cmocka_unit_test(of_the_same_network),
		cmocka_unit_test(what_is_tried_next),
		cmocka_unit_test(lanes),
		cmocka_unit_test(our_scope),
		cmocka_unit_test(turns_are_fair),
		cmocka_unit_test(kinds_of_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
