/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

/* "/xxx...xx" of this length. */
static const char *path(char *out, size_t len, char c)
{
	memset(out, c, len);
	*out = '/';
	out[len] = '\0';
	return out;
}

static void begins_and_ends(const char *text, const char *begin, const char *end)
{
	if (strncmp(text, begin, strlen(begin)) || strcmp(text + strlen(text) - strlen(end), end) ||
		occurrences(text, "...") < 1)
		fail_msg("%s", text);
}

/* Why is at the end, and stays. */
static void long_paths(void **state)
{
	struct gci_error e = {0};
	char a[4096], b[4096];

	(void)state;
	gci_error_set(&e, GCOLL_ERR_IO, "cannot write %s: Disk quota exceeded", path(a, 470, 'a'));
	assert_int_equal(strlen(e.text), 470 + strlen("cannot write : Disk quota exceeded"));
	gci_error_clear(&e);
	gci_error_set(&e, GCOLL_ERR_IO, "cannot write %s: Disk quota exceeded", path(a, 500, 'a'));
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	begins_and_ends(e.text, "cannot write /aaaaaaaa", "aaaaaaa: Disk quota exceeded");
	gci_error_clear(&e);
	gci_error_set(&e, GCOLL_ERR_IO, "%s and %s are the same file", path(a, 4095, 'a'),
		path(b, 4095, 'b'));
	begins_and_ends(e.text, "/aaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb are the same file");
	assert_int_equal(occurrences(e.text, "..."), 2);
	gci_error_clear(&e);
	errno = ENOSPC;
	gci_error_errno(&e, "cannot write %s", path(a, 4095, 'a'));
	begins_and_ends(e.text, "cannot write /aaaaaa", "aaaaaaaaa: No space left on device");
}

static void many_short_words(void **state)
{
	struct gci_error e = {0};
	char text[4096];
	size_t i;

	(void)state;
	path(text, sizeof(text) - 1, 'a');
	for (i = 10; i < sizeof(text) - 1; i += 10)
		text[i] = ' ';
	gci_error_set(&e, GCOLL_ERR_IO, "cannot write %s: Permission denied", text);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	begins_and_ends(e.text, "cannot write /aaaa", "aaaa: Permission denied");
}

/* No character is cut in two. */
static void utf8(void **state)
{
	char text[400];
	size_t most, i;

	(void)state;
	for (most = 64; most < 300; most++) {
		for (i = 0; i < 100; i++)
			memcpy(text + 3 * i, "\xe2\x82\xac", 4);
		gci_shorten(text, most);
		assert_in_range(strlen(text), most - 6, most);
		assert_int_equal(strspn(text, "\xe2\x82\xac."), strlen(text));
		assert_int_equal((strlen(text) - 3) % 3, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_paths),
		cmocka_unit_test(many_short_words),
		cmocka_unit_test(utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
