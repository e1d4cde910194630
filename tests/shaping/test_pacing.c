/* SPDX-License-Identifier: MIT
 * Rates: what a sender may send, what a socket is told, what a bucket lets through, and which rung
 * of the ladder holds. */
#include "tests/test.h"

#include "base/clock.h"
#include "base/mem.h"
#include "shaping/budget.h"
#include "shaping/facts.h"
#include "shaping/ladder.h"
#include "transport/reach.h"

#include <string.h>

#define GBIT 1000000000ull

/* ---- budgets */

static void a_sender_has_its_part(void **state)
{
	struct gci_budget b = {.link_bps = 10 * GBIT, .nic_bps = GBIT};

	(void)state;
	/* As many as the link carries need no pacing; more do, with room for acknowledgements. */
	assert_int_equal(gci_budget_sender(&b, 1), 0);
	assert_int_equal(gci_budget_sender(&b, 10), 0);
	assert_int_equal(gci_budget_sender(&b, 11), 9600000000ull / 11);
	assert_int_equal(gci_budget_sender(&b, 16), 600000000);
	/* One alone finds a slow link's rate as TCP does. */
	b = (struct gci_budget){.link_bps = GBIT / 100, .nic_bps = GBIT};
	assert_int_equal(gci_budget_sender(&b, 1), 0);
	assert_int_equal(gci_budget_sender(&b, 2), GBIT / 100 * 96 / 200);
	b = (struct gci_budget){.link_bps = 10 * GBIT, .nic_bps = GBIT};
	/* A budget holds however few there are, and to the full. */
	b.given_bps = 4 * GBIT;
	assert_int_equal(gci_budget_sender(&b, 1), 4 * GBIT);
	assert_int_equal(gci_budget_sender(&b, 4), GBIT);
	assert_int_equal(gci_budget_sender(&b, 16), 250000000);
	assert_int_equal(gci_budget_sender(&b, 0), 4 * GBIT);
	b.given_bps = 3;
	assert_int_equal(gci_budget_sender(&b, 16), 1);
	/* Of what nobody knows nothing can be said. */
	b = (struct gci_budget){.link_bps = 10 * GBIT};
	assert_int_equal(gci_budget_sender(&b, 1000), 0);
	b = (struct gci_budget){.nic_bps = GBIT};
	assert_int_equal(gci_budget_sender(&b, 1000), 0);
}

static void budgets_are_read(void **state)
{
	static const struct {
		const char *text, *from, *to;
		uint64_t bps;
	} good[] = {
		{"kyoto>tokyo=4Gbit", "kyoto", "tokyo", 4 * GBIT},
		{" a > b = 1.5Mbit ", "a", "b", 1500000},
		{"a.b-c_d>B=off", "a.b-c_d", "B", 0},
	};
	static const char *const bad[] = {"", ">", "=", "a", "a>b", "a>b=", "a>=1Gbit", ">b=1Gbit",
		"a=1Gbit>b", "a>b=0bit", "a>b=1GB", "a>b=-1bit", "a>b= ", " > b=1Gbit", "a>a=1Gbit",
		"a>b=1Gbit,c>d=1Gbit",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>b=1Gbit",
		"a>b=00000000000000000000000000000000000000000000000001Gbit"};
	struct gci_budget_order o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(gci_budget_parse(&o, good[i].text, NULL), 0);
		assert_string_equal(o.from, good[i].from);
		assert_string_equal(o.to, good[i].to);
		assert_int_equal(o.bps, good[i].bps);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct gci_error e = {0};

		if (gci_budget_parse(&o, bad[i], &e) != GCOLL_ERR_INVAL || !*e.text)
			fail_msg("\"%s\" was taken", bad[i]);
	}
}

/* ---- what sockets are told */

static void rates_of_sockets(void **state)
{
	struct gci_wire four = gci_wire_of(0, 0, 1), six = gci_wire_of(0, 1, 1);
	struct gci_wire bare = gci_wire_of(1000, 0, 0);
	uint64_t n;

	(void)state;
	assert_int_equal(four.mss_nbytes, 1448);
	assert_int_equal(four.head_nbytes, 66);
	assert_int_equal(six.mss_nbytes + six.head_nbytes, 1514);
	assert_int_equal(bare.head_nbytes, 54);
	assert_int_equal(gci_wire_nbytes(&four, 1448000), 1514000);
	assert_int_equal(gci_wire_payload(&four, 1514000), 1448000);
	for (n = 1; n < 1ull << 60; n *= 7)
		assert_true(gci_wire_payload(&four, gci_wire_nbytes(&four, n)) <= n);
	/* Payload is what the kernel counts, in both ways; nobody else is told. */
	assert_int_equal(gci_pace_socket_rate(GCI_PACED_BY_FQ, 8 * 1514000, &four), 1448000);
	assert_int_equal(gci_pace_socket_rate(GCI_PACED_BY_TCP, 8 * 1514000, &four), 1448000);
	assert_true(gci_pace_socket_rate(GCI_PACED_BY_US, 8000, &four) == UINT64_MAX);
	assert_true(gci_pace_socket_rate(GCI_PACED_BY_NOBODY, 8000, &four) == UINT64_MAX);
	assert_int_equal(gci_pace_socket_rate(GCI_PACED_BY_FQ, 1, &four), 1);
	assert_int_equal(gci_pace_share(100, 0), 100);
	assert_int_equal(gci_pace_share(100, 3), 33);
}

/* ---- the bucket */

/* Sends whenever there is room, and comes back `late_ns` after it could; bytes in a second. */
static uint64_t send_for_a_second(struct gci_bucket *b, uint64_t late_ns)
{
	uint64_t now = GCI_NS_PER_S, end = 2 * GCI_NS_PER_S, sent = 0, room;

	b->paid_ns = now;
	while (now < end) {
		room = gci_bucket_room(b, now);
		if (!room) {
			now += gci_bucket_wait_ns(b, now) + late_ns;
			continue;
		}
		gci_bucket_take(b, room, now);
		sent += room;
	}
	return sent;
}

/* TCP, unless its packets would be less than half as long as what may go at once. */
static void who_paces_a_pair(void **state)
{
	(void)state;
	assert_int_equal(gci_pace_pair_by(66000000, 35000, 20000000), GCI_PACED_BY_US);
	assert_int_equal(gci_pace_pair_by(66000000, 35000, 100000), GCI_PACED_BY_TCP);
	assert_int_equal(gci_pace_pair_by(66000000, 0, 20000000), GCI_PACED_BY_TCP);
	assert_int_equal(gci_pace_pair_by(66000000, 16000, 20000000), GCI_PACED_BY_TCP);
	assert_int_equal(gci_pace_pair_by(1000000, 6000, 20000000), GCI_PACED_BY_TCP);
	assert_int_equal(gci_pace_pair_by(1000000, 6100, 20000000), GCI_PACED_BY_US);
	assert_int_equal(gci_pace_pair_by(UINT64_MAX, UINT32_MAX, UINT64_MAX), GCI_PACED_BY_TCP);
}

static void a_bucket_keeps_its_rate(void **state)
{
	static const uint64_t rates[] = {1000000, 30000000, 250000000, GBIT, 40 * GBIT};
	static const uint64_t lates[] = {0, 100000, 1000000, GCI_BUCKET_CREDIT_NS};
	size_t r, l;

	(void)state;
	for (r = 0; r < sizeof(rates) / sizeof(*rates); r++)
		for (l = 0; l < sizeof(lates) / sizeof(*lates); l++) {
			struct gci_bucket b = {.bps = rates[r]};
			uint64_t sent = send_for_a_second(&b, lates[l]), due = rates[r] / 8;
			uint64_t slack = due / 100 + 4000;

			if (sent + slack < due || sent > due + slack)
				fail_msg("%llu bit/s, %llu ns late: %llu bytes",
					(unsigned long long)rates[r], (unsigned long long)lates[l],
					(unsigned long long)sent);
		}
}

static void a_bucket_saves_little(void **state)
{
	struct gci_bucket b = {.bps = 8000000}; /* a byte per microsecond */
	uint64_t now = 100 * GCI_NS_PER_S, sent = 0, room;

	(void)state;
	/* After a long rest no more goes at once than in the credit's time, and one room more. */
	while ((room = gci_bucket_room(&b, now))) {
		assert_int_equal(room, 2 * 1514);
		gci_bucket_take(&b, room, now);
		sent += room;
	}
	assert_in_range(
		sent, GCI_BUCKET_CREDIT_NS / 1000, GCI_BUCKET_CREDIT_NS / 1000 + room + 3028);
	/* A debt is one of bytes: at a hundred times the rate it is paid a hundred times sooner. */
	gci_bucket_take(&b, 1000000, now);
	assert_in_range(gci_bucket_wait_ns(&b, now), GCI_NS_PER_S, GCI_NS_PER_S + 4000000);
	gci_bucket_set(&b, 800000000, now);
	assert_in_range(
		gci_bucket_wait_ns(&b, now), GCI_NS_PER_S / 100, GCI_NS_PER_S / 100 + 40000);
	gci_bucket_set(&b, 0, now);
	assert_int_equal(b.bps, 1);
}

static void pieces_are_cut(void **state)
{
	struct iovec iov[3] = {{.iov_len = 10}, {.iov_len = 0}, {.iov_len = 5}};

	(void)state;
	assert_int_equal(gci_pace_nbytes(iov, 3), 15);
	assert_int_equal(gci_pace_trim(iov, 3, 100), 3);
	assert_int_equal(gci_pace_trim(iov, 3, 13), 3);
	assert_int_equal(iov[2].iov_len, 3);
	assert_int_equal(gci_pace_trim(iov, 3, 10), 1);
	assert_int_equal(gci_pace_trim(iov, 1, 4), 1);
	assert_int_equal(iov[0].iov_len, 4);
	assert_int_equal(gci_pace_trim(iov, 1, 0), 0);
}

/* ---- the ladder */

#define HOLDS(how, facts, rung, says)                                                     \
	do {                                                                              \
		assert_int_equal(gci_ladder_choose(how, &(facts), &holds, why, NULL), 0); \
		assert_int_equal(holds, rung);                                            \
		if (!strstr(why, says))                                                   \
			fail_msg("%s", why);                                              \
	} while (0)

static void the_best_that_is_there(void **state)
{
	struct gci_ladder_facts all = {.device = "eth0", .socket = 1, .fq = 1, .htb = 1, .edt = 1};
	struct gci_ladder_facts bare = {.device = "eth0", .socket = 1, .fq_why = "eth0 has mq"};
	struct gci_ladder_facts none = {.fq_why = "no", .htb_why = "not root", .edt_why = "no bpf"};
	enum gci_pace_how holds, how;
	char why[GCI_LADDER_WHY];

	(void)state;
	HOLDS(GCI_PACE_AUTO, all, GCI_PACE_FQ, "fq on eth0");
	HOLDS(GCI_PACE_AUTO, bare, GCI_PACE_TCP, "since eth0 has mq");
	HOLDS(GCI_PACE_AUTO, none, GCI_PACE_USER, "does not know SO_MAX_PACING_RATE");
	/* fq keeps what TCP is told, and counts headers. */
	HOLDS(GCI_PACE_TCP, all, GCI_PACE_FQ, "fq on eth0");
	HOLDS(GCI_PACE_TCP, bare, GCI_PACE_TCP, "timers");
	for (how = GCI_PACE_FQ; how <= GCI_PACE_OFF; how++) {
		struct gci_error e = {0};
		int rc = gci_ladder_choose(how, &none, &holds, why, &e);

		if (how == GCI_PACE_USER || how == GCI_PACE_OFF) {
			assert_int_equal(rc, 0);
			continue;
		}
		assert_int_equal(rc, GCOLL_ERR_UNSUPPORTED);
		assert_true(strstr(e.text, gci_pace_name(how)));
	}
	HOLDS(GCI_PACE_HTB, all, GCI_PACE_HTB, "HTB");
	HOLDS(GCI_PACE_EDT, all, GCI_PACE_EDT, "departure");
	HOLDS(GCI_PACE_OFF, all, GCI_PACE_OFF, "nothing");
}

static struct gci_address address_of(const struct gci_nic_addr *a)
{
	struct gci_address out = {.len = sizeof(out.v4)};

	out.v4 = (struct sockaddr_in){.sin_family = AF_INET};
	memcpy(&out.v4.sin_addr, a->ip, 4);
	return out;
}

/* Of all IPv4 addresses here, the first one's device and one that is not it. */
static void devices_are_found(void **state)
{
	struct gci_nic_addr *have = NULL;
	struct gci_own own = {.n = 0};
	struct gci_ladder_facts f;
	const char *first = NULL, *other = "";
	unsigned i, n = 0;

	(void)state;
	assert_int_equal(gci_own_list(&have, &n, NULL), 0);
	for (i = 0; i < n && own.n < GCI_REACH_MAX; i++) {
		if (have[i].six != 4)
			continue;
		own.at[own.n++] = address_of(&have[i]);
		if (!first)
			first = have[i].nic;
		else if (!*other && strcmp(have[i].nic, first) != 0)
			other = have[i].nic;
	}
	if (first) {
		gci_ladder_look(&f, &own);
		assert_string_equal(f.device, first);
		assert_string_equal(f.other, other);
		own.n = 1;
		gci_ladder_look(&f, &own);
		assert_string_equal(f.device, first);
		assert_string_equal(f.other, "");
	}
	gci_free(have);
}

static void names_of_rungs(void **state)
{
	enum gci_pace_how how, again;

	(void)state;
	for (how = GCI_PACE_AUTO; how <= GCI_PACE_OFF; how++) {
		assert_int_equal(gci_pace_parse(gci_pace_name(how), &again), 0);
		assert_int_equal(how, again);
		assert_true(strstr(GCI_PACE_EXPECTED, gci_pace_name(how)));
	}
	assert_int_equal(gci_pace_parse("FQ", &again), GCOLL_ERR_INVAL);
	assert_int_equal(gci_pace_parse("", &again), GCOLL_ERR_INVAL);
	assert_int_equal(gci_ladder_paced_by(GCI_PACE_FQ), GCI_PACED_BY_FQ);
	assert_int_equal(gci_ladder_paced_by(GCI_PACE_TCP), GCI_PACED_BY_TCP);
	assert_int_equal(gci_ladder_paced_by(GCI_PACE_USER), GCI_PACED_BY_US);
	assert_int_equal(gci_ladder_paced_by(GCI_PACE_HTB), GCI_PACED_BY_CLASS);
	assert_int_equal(gci_ladder_paced_by(GCI_PACE_OFF), GCI_PACED_BY_NOBODY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sender_has_its_part),
		cmocka_unit_test(budgets_are_read),
		cmocka_unit_test(rates_of_sockets),
		cmocka_unit_test(who_paces_a_pair),
		cmocka_unit_test(a_bucket_keeps_its_rate),
		cmocka_unit_test(a_bucket_saves_little),
		cmocka_unit_test(pieces_are_cut),
		cmocka_unit_test(the_best_that_is_there),
		cmocka_unit_test(devices_are_found),
		cmocka_unit_test(names_of_rungs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
