/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/nics.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* A host as they are: loopback, two cards with both families, one with a link-local address only,
 * a bridge for containers, and one address that nobody gave out. */
static const char *const host[] = {"lo 127.0.0.1/8", "lo ::1/128", "eth0 10.0.0.5/24",
	"eth0 2001:db8::5/64", "eth0 fe80::5/64", "eth1 10.1.0.5/16", "eth1 10.1.7.5/16",
	"eth1 fd00::5/64", "ib0 fe80::9/64", "docker0 172.17.0.1/16", "usb0 169.254.3.4/16"};
#define NHOST (sizeof(host) / sizeof(*host))
#define USUAL 2 /* eth0 10.0.0.5 */

static struct gci_nic_addr have[NHOST];

static void read_host(void)
{
	char ip[64];
	unsigned i, bits;

	for (i = 0; i < NHOST; i++) {
		assert_int_equal(sscanf(host[i], "%15s %63[^/]/%u", have[i].nic, ip, &bits), 3);
		have[i].six = strchr(ip, ':') ? 6 : 4;
		have[i].bits = (uint8_t)bits;
		assert_int_equal(
			inet_pton(have[i].six == 6 ? AF_INET6 : AF_INET, ip, have[i].ip), 1);
	}
}

/* The chosen addresses as they stand in `host`, without the interface and with blanks between. */
static const char *choice(const char *rules, unsigned max)
{
	static char text[256];
	unsigned chosen[NHOST], n, i;
	struct gci_nics nics;

	read_host();
	assert_int_equal(gci_nics_parse(&nics, rules, NULL), 0);
	n = gci_nics_choose(&nics, have, NHOST, USUAL, chosen, max);
	*text = '\0';
	for (i = 0; i < n; i++) {
		const char *ip = strchr(host[chosen[i]], ' ');

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s",
			(int)strcspn(ip, "/"), ip);
	}
	return text;
}

static void rules_choose(void **state)
{
	static const char *const cases[][2] = {
		{"", " 10.0.0.5"},
		/* networks, the longest and the shortest */
		{"10.1.0.0/16", " 10.1.0.5"},
		{"10.1.7.5", " 10.1.7.5"},
		{"10.1.7.5/32", " 10.1.7.5"},
		{"10.1.7.0/24, 10.1.0.0/24", " 10.1.7.5 10.1.0.5"},
		{"0.0.0.0/0", " 10.0.0.5 10.1.0.5 172.17.0.1"},
		{"::/0", " 2001:db8::5 fd00::5"},
		{"10.0.0.0/9,172.0.0.0/8", " 10.0.0.5 10.1.0.5 172.17.0.1"},
		{"fd00::/8", " fd00::5"},
		{"10.0.0.0/8", " 10.0.0.5 10.1.0.5"},
		{"10.1.127.255/17", " 10.1.0.5"}, /* what is behind the bits does not count */
		{"10.1.128.0/17", ""},
		/* names, in their order */
		{"eth1,eth0", " 10.1.0.5 fd00::5 10.0.0.5 2001:db8::5"},
		{"eth*", " 10.0.0.5 10.1.0.5 2001:db8::5 fd00::5"},
		{"eth?", " 10.0.0.5 10.1.0.5 2001:db8::5 fd00::5"},
		{"eth", ""},
		{"*", " 10.0.0.5 10.1.0.5 172.17.0.1 2001:db8::5 fd00::5"},
		{"eth0 eth0", " 10.0.0.5 2001:db8::5"},
		/* exclusion wins wherever it stands */
		{"!eth1,eth*", " 10.0.0.5 2001:db8::5"},
		{"*,!::/0,!docker0", " 10.0.0.5 10.1.0.5"},
		{"eth1 !10.1.0.0/24", " 10.1.7.5 fd00::5"},
		/* exclusion alone: one address, the usual one if it may be */
		{"!docker0", " 10.0.0.5"},
		{"!eth0", " 10.1.0.5"},
		{"!eth*", " 172.17.0.1"},
		{"!*", ""},
		/* loopback and link-local: only for who says so */
		{"127.0.0.0/8", " 127.0.0.1"},
		{"::1", " ::1"},
		{"lo", " 127.0.0.1 ::1"},
		{"l*", ""},
		{"169.254.0.0/16", " 169.254.3.4"},
		{"169.0.0.0/8", ""}, /* of others, too */
		{"fe80::/10", " fe80::5 fe80::9"},
		{"ib0", " fe80::9"},
		{"i*", " fe80::9"},
		{"ib0, eth1", " 10.1.0.5 fd00::5"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *got = choice(cases[i][0], NHOST);

		if (strcmp(got, cases[i][1]) != 0)
			fail_msg("%s: got%s, expected%s", cases[i][0], got, cases[i][1]);
	}
}

/* The same cards in another order: whichever the kernel found first. */
static void the_kernels_order_does_not_count(void **state)
{
	struct gci_nics nics;
	unsigned chosen[4], i;

	(void)state;
	read_host();
	for (i = 0; i < NHOST / 2; i++) {
		struct gci_nic_addr a = have[i];

		have[i] = have[NHOST - 1 - i];
		have[NHOST - 1 - i] = a;
	}
	assert_int_equal(gci_nics_parse(&nics, "eth*", NULL), 0);
	assert_int_equal(gci_nics_choose(&nics, have, NHOST, -1, chosen, 4), 4);
	assert_memory_equal(have[chosen[0]].ip, "\12\0\0\5", 4);
	assert_memory_equal(have[chosen[1]].ip, "\12\1\0\5", 4);
}

static void at_most_so_many(void **state)
{
	(void)state;
	assert_string_equal(choice("eth1,eth0", 3), " 10.1.0.5 fd00::5 10.0.0.5");
	assert_string_equal(choice("eth*", 1), " 10.0.0.5");
}

/* A usual address that is not the host's any more. */
static void nothing_usual(void **state)
{
	struct gci_nics nics;
	unsigned chosen[1];

	(void)state;
	read_host();
	assert_int_equal(gci_nics_parse(&nics, "!eth0", NULL), 0);
	assert_int_equal(gci_nics_choose(&nics, have, NHOST, -1, chosen, 1), 1);
	assert_int_equal(chosen[0], 5);
	assert_int_equal(gci_nics_parse(&nics, "", NULL), 0);
	assert_int_equal(gci_nics_choose(&nics, have, NHOST, -1, chosen, 1), 0);
	assert_int_equal(gci_nics_choose(&nics, NULL, 0, -1, chosen, 1), 0);
}

static void nonsense_is_refused(void **state)
{
	static const char *const wrong[] = {"10.1.0.0/33", "fd00::/129", "10.1", "10.1.0/24",
		"1.2.3.4.5", "!", "eth0/24", "10.1.0.0/", "10.1.0.0/-1", "10.1.0.0/1x",
		"a-name-far-too-long", "fd00::1%eth0", "eth;0", "eth[01]", "!!eth0", "fffff::1",
		"eth0:1", "an-entry-that-is-longer-than-any-address-or-interface-has-a-name-for"};
	struct gci_error e = {0};
	struct gci_nics nics;
	char many[200] = "";
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		gci_error_clear(&e);
		if (gci_nics_parse(&nics, wrong[i], &e) != GCOLL_ERR_INVAL)
			fail_msg("\"%s\" was taken", wrong[i]);
		assert_non_null(strstr(e.text, "expected interfaces or networks such as eth1"));
		assert_memory_equal(
			e.text + 1, wrong[i], strlen(wrong[i]) < 63 ? strlen(wrong[i]) : 63);
	}
	for (i = 0; i < GCI_NICS_MAX; i++)
		strcat(many, "a ,");
	assert_int_equal(gci_nics_parse(&nics, many, NULL), 0);
	assert_int_equal(nics.n, GCI_NICS_MAX);
	strcat(many, "a");
	gci_error_clear(&e);
	assert_int_equal(gci_nics_parse(&nics, many, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "more than 32 rules");
}

static void lists_are_cut(void **state)
{
	char all[400], some[64];

	(void)state;
	read_host();
	gci_nics_list(have, NHOST, all, sizeof(all));
	assert_non_null(strstr(all, "eth0 10.0.0.5/24, eth0 2001:db8::5/64, "));
	assert_non_null(strstr(all, "usb0 169.254.3.4/16"));
	gci_nics_list(have, NHOST, some, sizeof(some));
	assert_string_equal(some, "lo 127.0.0.1/8, lo ::1/128, eth0 10.0.0.5/24, ...");
	assert_string_equal(gci_nics_list(NULL, 0, some, sizeof(some)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_choose),
		cmocka_unit_test(the_kernels_order_does_not_count),
		cmocka_unit_test(at_most_so_many),
		cmocka_unit_test(nothing_usual),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(lists_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
