/* SPDX-License-Identifier: MIT
 * What is said of simulations whose facts are known. */
#include "tests/tools/timelines.h"

#include "base/clock.h"
#include "tools/lib/bottleneck.h"
#include "tools/plan/ways.h"

#include <string.h>

#define M (4u << 20)

struct simulated {
	struct made made; /* two clusters of four */
	struct gci_simnet net;
	struct gci_coll coll;
	struct gct_timeline t;
	struct gci_sim_result r;
	struct gct_bottleneck f;
};

static void simulate(struct simulated *s, const struct gci_algorithm *a)
{
	struct gci_candidate how = {.algorithm = a};

	s->t = (struct gct_timeline){.topo = NULL};
	assert_int_equal(gct_way_simulate(&s->net, &s->coll, &how, 0, &s->t, &s->r), 0);
	assert_int_equal(gct_bottleneck_find(&s->f, &s->net, &s->t, &s->r), 0);
}

static void drop(struct simulated *s)
{
	gct_timeline_free(&s->t);
	gci_sim_result_free(&s->r);
}

static void begin(struct simulated *s, enum gci_kind kind)
{
	*s = (struct simulated){.coll = {.kind = kind, .count = M, .esize = 1}};
	made_grid(&s->made, 2, 4);
	s->coll.topo = &s->made.topo;
	assert_int_equal(gci_simnet_init(&s->net, &s->made.topo, NULL), 0);
}

static void end(struct simulated *s)
{
	gci_simnet_free(&s->net);
	made_free(&s->made);
}

static void say(const struct simulated *s, const struct gct_bottleneck *f,
	const struct gct_bottleneck *best, struct gci_buf *out)
{
	static const char *const wires[] = {"c0 > c1", "c1 > c0"};
	struct gct_words w = {M, s->made.names, wires, 1};

	gct_bottleneck_why(f, best, &w, out);
}

/* The root sends it to each of seven others. */
static void busiest_port(void **state)
{
	struct gci_buf text = {0};
	struct simulated s;

	(void)state;
	begin(&s, GCI_BCAST);
	simulate(&s, gci_algorithm_find(GCI_BCAST, "sequential"));
	assert_int_equal(s.f.port_rank, 0);
	assert_true(s.f.port_out);
	assert_true(s.f.port_nbytes == 7ull * M);
	assert_in_range(s.f.port_ns, s.f.ns / 10 * 8, s.f.ns);
	say(&s, &s.f, NULL, &text);
	assert_non_null(strstr(gci_buf_cstr(&text),
		"rank 0 (c0h0) sends 29.4 MB, 7.00 x the message: its NIC is "));
	gci_buf_free(&text);
	drop(&s);
	end(&s);
}

/* Seven hops of the whole message, one of them over the WAN. */
static void longest_chain(void **state)
{
	struct gct_bottleneck chain;
	struct gci_buf text = {0};
	struct simulated s;

	(void)state;
	begin(&s, GCI_BCAST);
	simulate(&s, gci_algorithm_find(GCI_BCAST, "chain"));
	chain = s.f;
	drop(&s);
	assert_true(chain.chain_nmessages == 7);
	assert_true(chain.chain_nbytes == 7ull * M);
	assert_true(chain.chain_nwan >= 1 && chain.chain_nwan <= 2);
	assert_true(chain.port_nbytes == M);
	assert_int_equal(chain.wire, 0);
	assert_true(chain.wire_nbytes == M);
	simulate(&s, gci_algorithm_find(GCI_BCAST, NULL));
	assert_true(chain.ns > 3 * s.f.ns);
	say(&s, &chain, &s.f, &text);
	assert_string_equal(
		gci_buf_cstr(&text), "7 messages one after the other, 29.4 MB, 7.00 x the message");
	gci_buf_free(&text);
	say(&s, &s.f, &s.f, &text);
	assert_string_equal(gci_buf_cstr(&text), "as fast, within 2 %");
	gci_buf_free(&text);
	drop(&s);
	end(&s);
}

/* Nothing but delays. */
static void delays(void **state)
{
	struct gci_buf text = {0};
	struct simulated s;

	(void)state;
	begin(&s, GCI_BARRIER);
	s.coll.count = 0;
	simulate(&s, gci_algorithm_find(GCI_BARRIER, "ring"));
	assert_true(s.f.chain_nwan >= 2);
	assert_true(s.f.chain_delay_ns >= 20 * GCI_NS_PER_MS);
	assert_int_equal(s.f.port_rank, -1);
	assert_int_equal(s.f.wire, -1);
	say(&s, &s.f, NULL, &text);
	assert_non_null(strstr(gci_buf_cstr(&text), " crossings of WANs one after the other: "));
	gci_buf_free(&text);
	drop(&s);
	end(&s);
}

/* The chain is a path through time: its parts do not overlap. No port or link moves more than its
 * rate allows. */
static void plausible(void **state)
{
	const struct gci_algorithm *a;
	struct gci_buf text = {0};
	struct simulated s;

	(void)state;
	gci_each_algorithm (a) {
		begin(&s, a->kind);
		s.coll.count = a->kind == GCI_BARRIER ? 0 : 40000;
		s.coll.esize = 4;
		simulate(&s, a);
		if (s.f.chain_transfer_ns + s.f.chain_delay_ns + s.f.chain_compute_ns > s.f.ns ||
			s.f.port_ns > s.f.ns || s.f.wire_ns > s.f.ns || s.f.pair_ns > s.f.ns)
			fail_msg("%s by %s", gci_kind_name(a->kind), a->name);
		assert_true(s.f.chain_nmessages > 0);
		say(&s, &s.f, NULL, &text);
		assert_true(text.len > 20);
		gci_buf_free(&text);
		drop(&s);
		end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busiest_port),
		cmocka_unit_test(longest_chain),
		cmocka_unit_test(delays),
		cmocka_unit_test(plausible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
