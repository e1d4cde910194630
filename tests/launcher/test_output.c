/* SPDX-License-Identifier: MIT
 * What ranks print, made into whole lines. */

#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "launcher/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
	struct gci_output o;
	struct gci_line l[3];
};

static int setup(void **state)
{
	struct world *w = gci_calloc(1, sizeof(*w));
	uint32_t i;

	gci_output_init(&w->o);
	w->o.prefix = 1;
	for (i = 0; i < 3; i++)
		w->l[i].rank = i;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	int i;

	for (i = 0; i < 3; i++)
		gci_line_free(&w->l[i]);
	gci_output_free(&w->o);
	gci_free(w);
	return 0;
}

static void put(struct world *w, int rank, const char *text)
{
	gci_output_put(&w->o, &w->l[rank], text, strlen(text));
}

#define expect(w, text) assert_string_equal(gci_buf_cstr(&(w)->o.out), text)

static void partial_lines_wait(void **state)
{
	struct world *w = *state;

	put(w, 0, "on");
	put(w, 1, "two\nthr");
	put(w, 0, "e\n");
	expect(w, "[1] two\n[0] one\n");
	gci_output_end(&w->o, &w->l[1]);
	gci_output_end(&w->o, &w->l[0]);
	expect(w, "[1] two\n[0] one\n[1] thr\n");
}

static void without_prefix(void **state)
{
	struct world *w = *state;

	w->o.prefix = 0;
	put(w, 0, "no end");
	gci_output_end(&w->o, &w->l[0]);
	expect(w, "no end"); /* nothing is added to what ranks print ... */
	put(w, 1, "next\n");
	expect(w, "no end\nnext\n"); /* ... but lines stay apart */
}

static void one_rank_passes_through(void **state)
{
	struct world *w = *state;

	w->o.prefix = 0;
	w->o.solo = 1;
	put(w, 0, "Name? ");
	expect(w, "Name? ");
	gci_output_put(&w->o, &w->l[0], "\0\r\n\r\r\n", 6);
	assert_int_equal(w->o.out.len, 12);
	assert_memory_equal(w->o.out.data + 6, "\0\r\n\r\r\n", 6);
}

static void carriage_returns(void **state)
{
	struct world *w = *state;

	put(w, 0, "10%\r20%\r");
	put(w, 1, "dos\r\n");
	put(w, 2, "cut\r");
	put(w, 2, "\nnext\n");
	put(w, 0, "\n"); /* its own '\r' is long ago: nothing to complete any more */
	expect(w, "[0] 10%\r[0] 20%\r[1] dos\r\n[2] cut\r\n[2] next\n");
}

static void progress_on_a_terminal(void **state)
{
	struct world *w = *state;

	w->o.terminal = 1;
	put(w, 0, "10%\r");
	put(w, 0, "20%\r");
	put(w, 1, "line\n");
	put(w, 1, "more\n");
	put(w, 0, "30%\r");
	gci_output_say(&w->o, "own");
	expect(w, "10%\r20%\r\033[K[1] line\n[1] more\n30%\r\033[Kown\n");
}

/* A line of the terminal's width would already move the cursor to the next one. */
static void progress_in_a_narrow_window(void **state)
{
	struct world *w = *state;

	w->o.terminal = 1;
	w->o.columns = 5;
	put(w, 0, "1234\r");
	put(w, 0, "12345\r");
	put(w, 0, "123456789\r");
	put(w, 0, "\033[1m12345\033[m\r");
	put(w, 1, "123456\r\n");
	w->o.columns = 0;
	put(w, 0, "123456\r");
	expect(w, "1234\r1234\r1234\r\033[1m12345\033[m\r\033[K[1] 123456\r\n123456\r");
}

/* Lines that go by standard output wipe what standard error has on the same terminal. */
static void progress_beside(void **state)
{
	struct world *w = *state;
	struct gci_output other;

	gci_output_init(&other);
	w->o.terminal = other.terminal = 1;
	w->o.beside = &other;
	gci_output_put(&other, &w->l[2], "50 %\r", 5);
	put(w, 0, "one\ntwo\n");
	expect(w, "\033[K[0] one\n[0] two\n");
	gci_output_free(&other);
}

/* `n` times the letter. */
static void put_long(struct world *w, int rank, char c, size_t n)
{
	char *text = gci_calloc(n + 1, 1);

	memset(text, c, n);
	put(w, rank, text);
	gci_free(text);
}

/* Checks that `text` goes on with the prefix (or "") and n times c. */
static const char *eat(const char *text, const char *prefix, char c, size_t n)
{
	assert_int_equal(strncmp(text, prefix, strlen(prefix)), 0);
	for (text += strlen(prefix); n; n--)
		assert_int_equal(*text++, c);
	return text;
}

static void long_line_is_not_broken(void **state)
{
	struct world *w = *state;
	size_t n = GCI_LINE_NBYTES + 1;
	const char *p;

	put_long(w, 0, 'x', n);
	put(w, 1, "hello\nhal");
	put_long(w, 2, 'z', n);
	put(w, 1, "lo\n");
	gci_output_end(&w->o, &w->l[1]);
	assert_true(w->o.held == 12 + n);
	put_long(w, 0, 'x', n);
	put(w, 0, "\nmore\n");
	p = eat(gci_buf_cstr(&w->o.out), "[0] ", 'x', 2 * n);
	p = eat(p, "\n[0] more\n[1] hello\n[1] hallo\n[2] ", 'z', n);
	assert_string_equal(p, "");
	assert_true(w->o.held == 0);
	gci_output_end(&w->o, &w->l[2]);
	assert_int_equal(w->o.out.data[w->o.out.len - 1], '\n');
}

static void long_line_is_broken_in_the_end(void **state)
{
	struct world *w = *state;
	size_t n = GCI_LINE_NBYTES + 1;
	const char *p;

	put_long(w, 0, 'x', n);
	put(w, 1, "hello\n");
	gci_output_break(&w->o);
	put(w, 0, "rest\n");
	p = eat(gci_buf_cstr(&w->o.out), "[0] ", 'x', n);
	assert_string_equal(p, "\n[1] hello\n[0] rest\n");
}

static void memory_is_bounded(void **state)
{
	struct world *w = *state;
	int i;

	for (i = 0; i < 1000; i++) {
		put_long(w, 0, 'x', 10000);
		gci_buf_consume(&w->o.out, w->o.out.len);
	}
	assert_true(w->l[0].part.cap <= 4 * GCI_LINE_NBYTES);
}

/* Cut at random places and mixed at random: each rank's text comes out as it went in. */
static void any_cuts(void **state)
{
	struct world *w = *state;
	struct gci_prng prng = {.state = 42};
	struct gci_buf text[3] = {{0}}, got[3] = {{0}};
	size_t at[3] = {0}, i, r, left = 3;
	char *line, *save;

	for (r = 0; r < 3; r++)
		for (i = 0; i < 2000; i++)
			gci_buf_printf(&text[r], "%zu %zu %.*s\n", r, i,
				(int)gci_prng_below(&prng, 40),
				"========================================");
	while (left) {
		size_t n = 1 + gci_prng_below(&prng, 100);

		r = gci_prng_below(&prng, 3);
		if (at[r] == text[r].len)
			continue;
		if (n > text[r].len - at[r])
			n = text[r].len - at[r];
		gci_output_put(&w->o, &w->l[r], text[r].data + at[r], n);
		at[r] += n;
		left -= at[r] == text[r].len;
	}
	gci_buf_cstr(&w->o.out);
	for (line = strtok_r((char *)w->o.out.data, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		assert_true(line[0] == '[' && line[2] == ']' && line[3] == ' ');
		gci_buf_printf(&got[line[1] - '0'], "%s\n", line + 4);
	}
	for (r = 0; r < 3; r++) {
		assert_string_equal(gci_buf_cstr(&got[r]), gci_buf_cstr(&text[r]));
		gci_buf_free(&got[r]);
		gci_buf_free(&text[r]);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(partial_lines_wait),
		T(without_prefix),
		T(one_rank_passes_through),
		T(carriage_returns),
		T(progress_on_a_terminal),
		T(progress_in_a_narrow_window),
		T(progress_beside),
		T(long_line_is_not_broken),
		T(long_line_is_broken_in_the_end),
		T(memory_is_bounded),
		T(any_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
