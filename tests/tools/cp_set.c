/* SPDX-License-Identifier: MIT */
#include "tests/tools/cp_set.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sum_all(struct set *s, struct gci_error *e)
{
	memset(s->crcs, 0, sizeof(s->crcs));
	return gct_cp_sum_blocks(&s->m, s->crcs, s->nblocks, NULL, NULL, e);
}

int set_make(void **state)
{
	static const uint64_t sizes[] = {NBYTES, 0, B};
	struct set *s = gci_calloc(1, sizeof(*s));
	struct gci_error e = {0};
	int i;

	scratch_make(NULL);
	for (i = 0; i < 3; i++) {
		s->paths[i] = strdup(in_scratch("%d", i));
		make_file(s->paths[i], sizes[i], (uint64_t)i);
	}
	make_dir(in_scratch("out"));
	s->out = strdup(in_scratch("out"));
	assert_int_equal(gct_cp_manifest_scan(&s->m, s->paths, 3, 1, &e), 0);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	s->nblocks = gct_cp_nblocks(&s->m);
	assert_int_equal(s->nblocks, 7);
	assert_int_equal(sum_all(s, &e), 0);
	*state = s;
	return 0;
}

int set_free(void **state)
{
	struct set *s = *state;
	int i;

	gct_cp_sink_close(&s->sink);
	gct_cp_manifest_free(&s->m);
	for (i = 0; i < 3; i++)
		free(s->paths[i]);
	free(s->out);
	gci_free(s);
	return scratch_remove(NULL);
}

void make_hole(struct set *s, uint64_t from)
{
	struct gci_error e = {0};

	assert_int_equal(truncate(s->paths[0], (off_t)from), 0);
	assert_int_equal(truncate(s->paths[0], (off_t)NBYTES), 0);
	gct_cp_manifest_free(&s->m);
	assert_int_equal(gct_cp_manifest_scan(&s->m, s->paths, 3, 1, &e), 0);
	assert_int_equal(sum_all(s, &e), 0);
}

void write_to(struct set *s, uint64_t end)
{
	struct gct_cp_source in;
	struct gci_error e = {0};
	uint64_t at = gct_cp_sink_at(&s->sink), some;
	char *buf = gci_calloc(B, 1);

	gct_cp_source_init(&in, &s->m);
	assert_int_equal(gct_cp_source_seek(&in, at, &e), 0);
	for (; at < end && !e.status; at += some) {
		some = end - at < B ? end - at : B;
		gct_cp_source_read(&in, buf, some, &e);
		if (!e.status)
			gct_cp_sink_write(&s->sink, buf, some, &e);
	}
	if (e.status)
		fail_msg("%s", e.text);
	gct_cp_source_close(&in);
	gci_free(buf);
}

struct gct_cp_point verify(struct set *s, uint64_t n)
{
	struct gct_cp_point p;
	struct gci_error e = {0};

	assert_int_equal(gct_cp_verify(&s->sink, s->crcs, n, &s->has, &p, NULL, &e), 0);
	assert_int_equal(p.file, gct_cp_first_missing(&s->m, &s->has));
	return p;
}

uint64_t claim(struct set *s)
{
	struct gci_error e = {0};
	uint64_t n;

	gct_cp_sink_close(&s->sink);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	n = gct_cp_claim(&s->sink, &s->has);
	assert_true(n <= s->nblocks);
	return n;
}

void write_rest(struct set *s, const struct gct_cp_point *p)
{
	struct gci_error e = {0};
	int i;

	if (gct_cp_sink_resume(&s->sink, p, &e) || gct_cp_sink_start(&s->sink, &e))
		fail_msg("%s", e.text);
	assert_true(gct_cp_sink_at(&s->sink) == gct_cp_stream_at(&s->m, p->file, p->offset));
	write_to(s, s->m.stream_nbytes);
	assert_int_equal(gct_cp_sink_finish(&s->sink, &e), 0);
	assert_int_equal(s->sink.nfiles_done, 3);
	for (i = 0; i < 3; i++)
		assert_same_files(s->paths[i], in_scratch("out/%d", i));
	assert_int_equal(entries(s->out), 3);
}

uint64_t go_on(struct set *s)
{
	struct gct_cp_point p = verify(s, claim(s));

	write_rest(s, &p);
	return gct_cp_stream_at(&s->m, p.file, p.offset);
}
