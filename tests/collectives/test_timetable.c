/* SPDX-License-Identifier: MIT
 * Timetables: messages after those that they need, no resource with more than it can do, cases whose best time is
 * known, and circles. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/planner/timetable.h"
#include "testing/random_grid.h"
#include "tests/collectives/topologies.h"

#define MESSAGE_NS 1000.0

static const char two[] = "[cluster a]\nhosts = a[1-3]\nnic = 1Gbit\nlan_delay = 10us\n"
			  "[cluster b]\nhosts = b[1-3]\nnic = 1Gbit\nlan_delay = 10us\n"
			  "[link a b]\nrate = 1Gbit\ndelay = 5ms\n";

static void open_two(struct gci_topo *t, struct gci_network *n, struct gci_timetable *o)
{
	topology_parse(t, two);
	assert_int_equal(gci_network_of(n, t, -1, 1), 0);
	*o = (struct gci_timetable){.net = n,
		.message_ns = MESSAGE_NS,
		.about_ns = 20e6,
		.spacing = 1,
		.eager_nbytes = 1 << 20};
}

static void close_all(struct gci_topo *t, struct gci_network *n, struct gci_timetable *o)
{
	gci_timetable_free(o);
	gci_network_free(n);
	gci_topo_free(t);
}

static double ns_of(const struct gci_network *n, double nbytes)
{
	return nbytes / n->out[0];
}

/* What has far to go goes first, whatever the first keys say. */
static void far_ones_first(void **state)
{
	struct gci_timetable o;
	struct gci_network n;
	struct gci_topo t;
	uint32_t near, far;

	(void)state;
	open_two(&t, &n, &o);
	near = gci_timetable_add(&o, 0, 1, 500e3, 0);
	far = gci_timetable_add(&o, 0, 3, 500e3, 1);
	assert_int_equal(gci_timetable_find(&o), 0);
	assert_true(o.messages[far].start_ns < o.messages[near].start_ns);
	assert_true(o.ns < 1.1 * (ns_of(&n, 500e3) + 5e6));
	close_all(&t, &n, &o);
}

/* Two to one receiver take turns, as those of one sender do; what waits for one of them comes after it. */
static void receivers_serve_one_at_a_time(void **state)
{
	struct gci_timetable o;
	struct gci_network n;
	struct gci_topo t;
	uint32_t first, then;

	(void)state;
	open_two(&t, &n, &o);
	first = gci_timetable_add(&o, 0, 2, 1e6, 0);
	gci_timetable_add(&o, 1, 2, 1e6, 1);
	then = gci_timetable_add(&o, 2, 1, 1000, 2);
	gci_timetable_after(&o, then, first);
	assert_int_equal(gci_timetable_find(&o), 0);
	assert_true(o.ns > 1.95 * ns_of(&n, 1e6));
	assert_true(o.ns < 2.2 * ns_of(&n, 1e6));
	assert_true(o.messages[then].start_ns >= o.messages[first].start_ns + ns_of(&n, 1e6));
	close_all(&t, &n, &o);
}

/* More than a peer takes unasked goes when it has asked. */
static void what_was_not_asked_for_waits(void **state)
{
	struct gci_timetable o;
	struct gci_network n;
	struct gci_topo t;
	uint32_t i;

	(void)state;
	open_two(&t, &n, &o);
	o.eager_nbytes = 100e3;
	for (i = 0; i < 4; i++)
		gci_timetable_add(&o, 0, 3, 40e3, i);
	assert_int_equal(gci_timetable_find(&o), 0);
	assert_true(o.messages[1].start_ns < 1e6);
	assert_true(o.messages[2].start_ns >= 5e6 && o.messages[3].start_ns >= 5e6);
	close_all(&t, &n, &o);
}

static void circles_are_refused(void **state)
{
	struct gci_timetable o;
	struct gci_network n;
	struct gci_topo t;
	uint32_t a, b;

	(void)state;
	open_two(&t, &n, &o);
	a = gci_timetable_add(&o, 0, 1, 1000, 0);
	b = gci_timetable_add(&o, 1, 0, 1000, 0);
	gci_timetable_after(&o, a, b);
	gci_timetable_after(&o, b, a);
	assert_int_equal(gci_timetable_find(&o), GCOLL_ERR_INVAL);
	close_all(&t, &n, &o);
}

/* Each needs up to three earlier ones. */
static void add_random(struct gci_prng *r, struct gci_timetable *o, uint32_t nmessages)
{
	uint32_t i, k, hosts = (uint32_t)o->net->nranks;

	for (i = 0; i < nmessages; i++) {
		int from = (int)gci_prng_below(r, hosts), to = (int)gci_prng_below(r, hosts);

		gci_timetable_add(o, from, to, 1 + (double)gci_prng_below(r, 60000),
			(double)gci_prng_below(r, 1000000));
		for (k = (uint32_t)gci_prng_below(r, 4); i && k; k--)
			gci_timetable_after(o, i, (uint32_t)gci_prng_below(r, i));
	}
}

/* Whoever sends or receives has no more to do than there is time, and nothing starts before what it needs can be
 * there. */
static void check(const struct gci_timetable *o)
{
	const struct gci_network *n = o->net;
	double *out = gci_calloc(2 * (size_t)n->nranks, sizeof(*out)), *in = out + n->nranks, most;
	size_t i;
	int k;

	assert_non_null(out);
	for (i = 0; i < o->nmessages; i++) {
		const struct gci_timetable_message *m = &o->messages[i];

		assert_true(m->start_ns >= 0 && m->start_ns <= o->ns);
		if (m->from == m->to)
			continue;
		out[m->from] += m->nbytes / n->out[n->class_of[m->from]];
		in[m->to] += m->nbytes / n->in[n->class_of[m->to]];
	}
	most = 1.01 * o->ns + o->about_ns / 1000; /* times are looked at in slots */
	for (k = 0; k < n->nranks; k++)
		assert_true(out[k] <= most && in[k] <= most);
	for (i = 0; i < o->npairs; i++) {
		const struct gci_timetable_message *a = &o->messages[o->pairs[i].before],
						   *b = &o->messages[o->pairs[i].after];
		int pair = n->class_of[a->from] * n->nclasses + n->class_of[a->to];
		double least = a->from == a->to ? 0 : n->delay_ns[pair] + a->nbytes / n->rate[pair];

		assert_true(b->start_ns >= a->start_ns + 0.999 * least);
	}
	gci_free(out);
}

static void random_messages(void **state)
{
	struct gci_prng r = {21};
	int i;

	(void)state;
	for (i = 0; i < (TEST_SANITIZED ? 20 : 200); i++) {
		struct gci_buf text = {0};
		struct gci_error e = {0};
		struct gci_timetable o = {.message_ns = MESSAGE_NS, .spacing = 1};
		struct gci_network n;
		struct gci_topo t;

		(i % 2 ? gci_random_switched_grid : gci_random_grid)(&r, 0, 0, &text);
		assert_int_equal(
			gci_topo_parse(&t, (const char *)text.data, text.len, "random", &e), 0);
		assert_int_equal(gci_network_of(&n, &t, -1, 1), 0);
		o.net = &n;
		/* Also when all of it takes far longer, or shorter, than expected. */
		o.about_ns = i % 3 ? 50e6 : i % 5 ? 1e3 : 1e12;
		o.eager_nbytes = i % 4 ? 1 << 20 : 0;
		add_random(&r, &o, 1 + (uint32_t)gci_prng_below(&r, 2000));
		assert_int_equal(gci_timetable_find(&o), 0);
		check(&o);
		close_all(&t, &n, &o);
		gci_buf_free(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_ones_first),
		cmocka_unit_test(receivers_serve_one_at_a_time),
		cmocka_unit_test(what_was_not_asked_for_waits),
		cmocka_unit_test(circles_are_refused),
		cmocka_unit_test(random_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
