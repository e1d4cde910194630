/* SPDX-License-Identifier: MIT
 * Where blocks stand: that they do not overlap, fill the buffers, and that segments and parts of an
 * operation, put together, are the operation. */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/blocks/layout.h"
#include "collectives/blocks/windows.h"
#include "tests/collectives/topologies.h"

#include <stdio.h>
#include <string.h>

#define NRANKS 5

/* Blocks of different lengths, two of them empty; and places for them, from the last to the first
 * with gaps. */
static const uint64_t counts[NRANKS] = {7, 0, 12, 1, 0}, places[NRANKS] = {50, 45, 31, 22, 3};
static const uint64_t pairs[NRANKS * NRANKS] = {
	1, 2, 0, 2, 7, 0, 0, 0, 0, 0, 13, 1, 2, 1, 0, 5, 3, 1, 2, 0, 4, 4, 0, 4, 9};

static struct gci_topo topo;

static int all_kinds(struct gci_coll *c, int k)
{
	*c = (struct gci_coll){.kind = (enum gci_kind)k, .topo = &topo, .esize = 4, .count = 11};
	return k < GCI_NKINDS;
}

static int is_vector(const struct gci_coll *c)
{
	return c->kind == GCI_BCAST || c->kind == GCI_REDUCE || c->kind == GCI_ALLREDUCE;
}

static int can_be_in_place(enum gci_kind kind)
{
	return kind != GCI_BCAST && kind != GCI_REDUCE_SCATTER && kind != GCI_BARRIER;
}

/* The i-th layout of blocks, or 0. */
static int lay_out(struct gci_coll *c, int i)
{
	const uint64_t *lengths = c->kind == GCI_ALLTOALL ? pairs : counts;

	c->stride = c->shift = 0;
	c->counts = c->in_at = c->out_at = NULL;
	if (i == 1) {
		c->stride = 16;
		c->shift = 5;
	}
	if (i >= 2)
		c->counts = lengths;
	if (i == 3)
		c->in_at = c->out_at = places;
	return i < 4;
}

/* coll.h's table, written out: does rank 0 (the root), rank 1 have IN, OUT? */
static void who_has_what(void **state)
{
	static const struct {
		enum gci_kind kind;
		int in_place, in[2], out[2];
	} rows[] = {{GCI_BCAST, 0, {1, 0}, {0, 1}}, {GCI_REDUCE, 0, {1, 1}, {1, 0}},
		{GCI_REDUCE, 1, {0, 1}, {1, 0}}, {GCI_ALLREDUCE, 0, {1, 1}, {1, 1}},
		{GCI_ALLREDUCE, 1, {0, 0}, {1, 1}}, {GCI_REDUCE_SCATTER, 0, {1, 1}, {1, 1}},
		{GCI_SCATTER, 0, {1, 0}, {1, 1}}, {GCI_SCATTER, 1, {1, 0}, {0, 1}},
		{GCI_GATHER, 0, {1, 1}, {1, 0}}, {GCI_GATHER, 1, {0, 1}, {1, 0}},
		{GCI_ALLGATHER, 0, {1, 1}, {1, 1}}, {GCI_ALLGATHER, 1, {0, 0}, {1, 1}},
		{GCI_ALLTOALL, 0, {1, 1}, {1, 1}}, {GCI_ALLTOALL, 1, {0, 0}, {1, 1}},
		{GCI_BARRIER, 0, {0, 0}, {0, 0}}};
	struct gci_coll c;
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		all_kinds(&c, rows[i].kind);
		c.in_place = rows[i].in_place;
		for (r = 0; r < 2; r++) {
			assert_int_equal(gci_has_in(&c, r), rows[i].in[r]);
			assert_int_equal(gci_has_out(&c, r), rows[i].out[r]);
			assert_int_equal(!!gci_in_extent(&c, r), rows[i].in[r]);
			assert_int_equal(!!gci_out_extent(&c, r), rows[i].out[r]);
		}
		if (is_vector(&c) && rows[i].in[0])
			assert_int_equal(gci_input(&c, 0), GCI_IN);
		if (rows[i].in_place && c.kind != GCI_SCATTER)
			assert_int_equal(gci_input(&c, 0), GCI_OUT);
	}
}

/* Puts a mark on the elements of a block; no other may be there. */
static void put(unsigned char *marks, uint64_t extent, struct gci_slice s)
{
	uint64_t i;

	assert_true(s.offset + s.length <= extent);
	for (i = 0; i < s.length; i++)
		assert_int_equal(marks[s.offset + i]++, 0);
}

static int many_in(const struct gci_coll *c)
{
	return c->kind == GCI_SCATTER || c->kind == GCI_REDUCE_SCATTER || c->kind == GCI_ALLTOALL;
}

static int many_out(const struct gci_coll *c)
{
	return c->kind == GCI_GATHER || c->kind == GCI_ALLGATHER || c->kind == GCI_ALLTOALL;
}

/* Marks all blocks of this side; the extent is the end of the last one. */
static void mark_side(const struct gci_coll *c, int rank, int input, unsigned char *marks)
{
	uint64_t extent = input ? gci_in_extent(c, rank) : gci_out_extent(c, rank), end, last = 0;
	int many = input ? many_in(c) : many_out(c), i;

	for (i = 0; i < (many ? NRANKS : 1); i++) {
		int block = many ? i : rank;
		struct gci_slice s =
			input ? gci_in_block(c, rank, block) : gci_out_block(c, rank, block);

		assert_int_equal(s.buffer, input ? GCI_IN : GCI_OUT);
		put(marks, extent, s);
		end = s.offset + s.length;
		last = end > last ? end : last;
	}
	assert_true(extent == last);
}

/* What has blocks: all layouts, in and out of place. */
static void each_layout(void (*check)(const struct gci_coll *c))
{
	struct gci_coll c;
	int k, i;

	for (k = GCI_REDUCE_SCATTER; k <= GCI_ALLTOALL; k++) {
		all_kinds(&c, k);
		for (c.root = 0; c.root < NRANKS; c.root += 2)
			for (i = 0; lay_out(&c, i); i++)
				for (c.in_place = 0; c.in_place <= can_be_in_place(c.kind);
					c.in_place++)
					check(&c);
	}
}

static void check_apart(const struct gci_coll *c)
{
	unsigned char marks[200];
	int r;

	for (r = 0; r < NRANKS; r++) {
		memset(marks, 0, sizeof(marks));
		if (gci_has_in(c, r))
			mark_side(c, r, 1, marks);
		memset(marks, 0, sizeof(marks));
		if (gci_has_out(c, r))
			mark_side(c, r, 0, marks);
	}
}

static void blocks_are_apart(void **state)
{
	(void)state;
	each_layout(check_apart);
}

/* Sender and receiver agree on lengths, and so does the table of counts. */
static void check_lengths(const struct gci_coll *c)
{
	uint64_t sum = 0;
	int from, to;

	for (from = 0; from < NRANKS; from++)
		for (to = 0; to < NRANKS; to++) {
			int block =
				c->kind == GCI_SCATTER || c->kind == GCI_REDUCE_SCATTER ? to : from;
			uint64_t n = gci_block_len(c, from, to);

			if (!c->counts)
				assert_true(n == c->count);
			else if (c->kind == GCI_ALLTOALL)
				assert_true(n == pairs[from * NRANKS + to]);
			else
				assert_true(n == counts[block]);
			if (gci_has_in(c, from))
				assert_true(gci_in_block(c, from, to).length == n);
			if (gci_has_out(c, to))
				assert_true(gci_out_block(c, to, from).length == n);
			sum += from == to ? n : 0;
		}
	if (c->kind != GCI_ALLTOALL)
		assert_true(gci_total(c) == sum);
}

static void both_sides_agree(void **state)
{
	(void)state;
	each_layout(check_lengths);
}

/* Places are kept to; without them blocks stand one after the other, or a stride apart. */
static void check_places(const struct gci_coll *c)
{
	uint64_t at = 0, wanted;
	int i, k, rank = c->root;

	for (i = 0; i < NRANKS && many_out(c) && gci_has_out(c, rank); i++) {
		wanted = c->out_at ? places[i] : c->stride ? 16 * (uint64_t)i + 5 : at;
		assert_true(gci_out_block(c, rank, i).offset == wanted);
		at += gci_block_len(c, i, rank);
	}
	for (i = 0, at = 0; i < NRANKS && many_in(c) && gci_has_in(c, rank); i++) {
		wanted = c->in_at ? places[i] : c->stride ? 16 * (uint64_t)i + 5 : at;
		assert_true(gci_in_block(c, rank, i).offset == wanted);
		at += gci_block_len(c, rank, i);
	}
	/* A rank's only block stands at the start, or where the window is. */
	assert_true(gci_own_at(c, rank) == c->shift);
	assert_int_equal(gci_contiguous(c), !c->counts && !c->stride);
	/* The copy of what alltoall in place gives away: in TMP, one after the other. */
	for (k = 0, at = 0; k < NRANKS && c->kind == GCI_ALLTOALL && c->in_place; k++) {
		struct gci_slice s = gci_in_block(c, rank, k);

		assert_int_equal(s.buffer, GCI_TMP);
		assert_true(s.offset == at);
		at += s.length;
	}
	/* Input in OUT is where the result's block of this rank will be. */
	if ((c->kind == GCI_GATHER || c->kind == GCI_ALLGATHER) && c->in_place) {
		assert_int_equal(gci_in_block(c, rank, 0).buffer, GCI_OUT);
		assert_true(gci_in_block(c, rank, 0).offset == gci_out_block(c, rank, rank).offset);
	}
}

static void blocks_are_in_their_places(void **state)
{
	(void)state;
	each_layout(check_places);
}

static struct gci_slice side(const struct gci_coll *c, int input, int rank, int block)
{
	if (is_vector(c))
		return gci_vector(c, input ? GCI_IN : GCI_OUT);
	return input ? gci_in_block(c, rank, block) : gci_out_block(c, rank, block);
}

/* The segments of a block, one after the other, are the block; their tags do not matter here. */
static void check_tiles(const struct gci_coll *c, int input, int rank, int block)
{
	struct gci_slice whole = side(c, input, rank, block), s;
	uint32_t n = gci_nsegments_of(c), i, k, nn;
	uint64_t at = whole.offset;

	for (i = 0; i < n; i++) {
		struct gci_coll part = gci_segment_of(c, i, n);

		s = side(&part, input, rank, block);
		assert_int_equal(s.buffer, whole.buffer);
		if (s.length)
			assert_true(s.offset == at);
		/* And the segments of the segment, the segment. */
		part.segment = 2;
		nn = gci_nsegments_of(&part);
		for (k = 0; k < nn; k++) {
			struct gci_coll small = gci_segment_of(&part, k, nn);
			struct gci_slice t = side(&small, input, rank, block);

			if (t.length)
				assert_true(t.offset == at);
			assert_in_range(t.length, 0, 2);
			at += t.length;
		}
		if (s.length)
			assert_true(at == s.offset + s.length);
		assert_in_range(s.length, 0, c->segment ? c->segment : UINT64_MAX);
	}
	assert_true(at == whole.offset + whole.length);
}

/* A window of long blocks has the segments of the window, not those of the blocks. */
static void segments_of_a_part(void **state)
{
	const uint64_t lens[2] = {1000000, 10};
	struct gci_topo two;
	struct gci_coll c = {.kind = GCI_GATHER,
		.topo = &two,
		.esize = 1,
		.counts = lens,
		.segment = 100,
		.part = 3,
		.nparts = 1000};

	(void)state;
	topology_make(&two, (int[]){2, 0}, 0, 3);
	assert_int_equal(gci_nsegments_of(&c), 10);
	c.nparts = 999;
	assert_int_equal(gci_nsegments_of(&c), 11);
	gci_topo_free(&two);
}

static void check_segments(const struct gci_coll *c)
{
	struct gci_coll cut = *c;
	int r, i;

	/* The copy in TMP is of the part only: it does not stand in the whole. */
	if (c->kind == GCI_ALLTOALL && c->in_place)
		return;
	for (cut.segment = 0; cut.segment < 14; cut.segment += 3)
		for (r = 0; r < NRANKS; r++)
			for (i = 0; i < NRANKS; i++) {
				if (gci_has_in(c, r))
					check_tiles(&cut, 1, r, i);
				if (gci_has_out(c, r))
					check_tiles(&cut, 0, r, i);
			}
}

static void segments_make_the_whole(void **state)
{
	static const uint64_t sizes[] = {0, 1, 2, 997, (1ull << 33) + 7};
	struct gci_coll c;
	uint64_t i;
	size_t k;

	(void)state;
	each_layout(check_segments);
	all_kinds(&c, GCI_ALLREDUCE);
	for (k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
		for (i = 1; i < 9; i++) {
			uint64_t all = 0, at = 3;
			uint32_t n, s;

			c.count = sizes[k];
			c.shift = 3;
			c.segment = c.count / i + i % 2;
			n = gci_nsegments_of(&c);
			assert_in_range(n, 1, c.segment ? i + 1 : 1);
			for (s = 0; s < n; s++) {
				struct gci_coll part = gci_segment_of(&c, s, n);

				assert_true(gci_vector(&part, GCI_OUT).offset == at);
				at += part.count;
				all += part.count;
			}
			assert_true(all == c.count);
		}
}

static int setup(void **state)
{
	(void)state;
	topology_make(&topo, (int[]){3, 2, 0}, 0, 3);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gci_topo_free(&topo);
	return 0;
}

static int at_once(struct gci_topo *t, uint64_t nbytes, uint64_t tmp_nbytes)
{
	struct gci_coll c = {.kind = GCI_BCAST, .topo = t, .esize = 1, .count = nbytes};
	struct gci_windows w;

	gci_windows_cut(&w, &c, GCI_WINDOW_NBYTES);
	return gci_windows_at_once(&w, &c, tmp_nbytes);
}

/* As much as a round trip holds, and two; a few where that is little or unknown, or memory is. */
static void windows_fill_the_longest_way(void **state)
{
	static const char format[] =
		"[cluster a]\nhosts = a[1-2]\n%s[cluster b]\nhosts = b[1-2]\n"
		"%s[cluster c]\nhosts = c[1-2]\n%s[link a b]\n%s"
		"delay = 75ms\n[link a c]\ndelay = 1ms\n[link b c]\ndelay = 1ms\n";
	static const char nic[] = "nic = 100Gbit\n";
	const uint64_t window = GCI_WINDOW_NBYTES, whole = UINT64_C(100) << 30;
	char text[400];
	struct gci_topo t;

	(void)state;
	snprintf(text, sizeof(text), format, nic, nic, nic, "rate = 100Gbit\n");
	topology_parse(&t, text);
	assert_int_equal(at_once(&t, window, 0), 1);
	assert_int_equal(at_once(&t, 2 * window, 0), 2);
	assert_int_equal(at_once(&t, 10 * window, 0), 10);
	assert_int_equal(at_once(&t, whole, 0), 100000000000 / 8 * 150 / 1000 / window + 2);
	assert_int_equal(at_once(&t, whole, window), 32);
	t.per_host = 8;
	assert_int_equal(at_once(&t, whole, window), 4);
	t.per_host = 1000;
	assert_int_equal(at_once(&t, whole, window), 3);
	gci_topo_free(&t);

	/* Of the host that holds most: one of b, 1.5 Gbit to a and 0.2 to c. */
	snprintf(text, sizeof(text), format, "nic = 10Gbit\n", nic, nic, "rate = 10Gbit\n");
	topology_parse(&t, text);
	assert_int_equal(at_once(&t, whole, 0), 1700000000 / 8 / window + 2);
	gci_topo_free(&t);

	snprintf(text, sizeof(text), format, nic, nic, nic, "rate = 1Gbit\n");
	topology_parse(&t, text);
	assert_int_equal(at_once(&t, whole, 0), 3);
	gci_topo_free(&t);

	snprintf(text, sizeof(text), format, "", "", "", "");
	topology_parse(&t, text);
	assert_int_equal(at_once(&t, whole, 0), 3);
	gci_topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_of_a_part),
		cmocka_unit_test(who_has_what),
		cmocka_unit_test(blocks_are_apart),
		cmocka_unit_test(both_sides_agree),
		cmocka_unit_test(blocks_are_in_their_places),
		cmocka_unit_test(segments_make_the_whole),
		cmocka_unit_test(windows_fill_the_longest_way),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
