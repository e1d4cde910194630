/* SPDX-License-Identifier: MIT */
#include "launcher/ranklist.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_NBYTES 140

struct list {
	char text[LIST_NBYTES];
	size_t used;
	int full;
};

/* Appends "FIRST" or "FIRST-LAST"; what does not fit becomes "...", once. */
static void add_range(struct list *l, const char *first, const char *last)
{
	char item[LIST_NBYTES];
	int n;

	if (l->full)
		return;
	n = snprintf(item, sizeof(item), "%s%s%s%s", l->used ? "," : "", first, last ? "-" : "",
		last ? last : "");
	if (n < 0 || l->used + (size_t)n + sizeof(",...") > sizeof(l->text)) {
		l->full = 1;
		strcpy(l->text + l->used, l->used ? ",..." : "...");
		return;
	}
	strcpy(l->text + l->used, item);
	l->used += (size_t)n;
}

static void add_ranks(struct list *l, const uint32_t *ranks, uint32_t n)
{
	char first[16], last[16];
	uint32_t i, end;

	for (i = 0; i < n; i = end) {
		for (end = i + 1; end < n && ranks[end] == ranks[end - 1] + 1; end++)
			;
		snprintf(first, sizeof(first), "%u", ranks[i]);
		snprintf(last, sizeof(last), "%u", ranks[end - 1]);
		add_range(l, first, end - i > 1 ? last : NULL);
	}
}

/* Is `b` the name after `a`, as t4 is after t3? */
static int follows(const char *a, const char *b)
{
	size_t stem = strlen(a);

	while (stem && isdigit((unsigned char)a[stem - 1]))
		stem--;
	if (!a[stem] || strncmp(a, b, stem) || strlen(a + stem) > 9 || strlen(b + stem) > 9)
		return 0;
	if (!isdigit((unsigned char)b[stem]) || strspn(b + stem, "0123456789") != strlen(b + stem))
		return 0;
	return atol(b + stem) == atol(a + stem) + 1;
}

static void add_hosts(struct list *l, const uint32_t *ranks, uint32_t n, const char *const *names)
{
	const char *first = NULL, *last = NULL;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const char *name = names[ranks[i]];

		if (!name || (last && !strcmp(last, name)))
			continue; /* several ranks on one host; or a rank's host is not known */
		if (last && follows(last, name)) {
			last = name;
			continue;
		}
		if (last)
			add_range(l, first, first == last ? NULL : last);
		first = last = name;
	}
	if (first)
		add_range(l, first, first == last ? NULL : last);
}

char *gci_ranklist(const uint32_t *ranks, uint32_t nranks, const char *const *names,
	char out[GCI_RANKLIST_NBYTES])
{
	struct list numbers = {0}, hosts = {0};

	add_ranks(&numbers, ranks, nranks);
	add_hosts(&hosts, ranks, nranks, names);
	snprintf(out, GCI_RANKLIST_NBYTES, "rank%s %s%s%s", nranks > 1 ? "s" : "", numbers.text,
		hosts.used ? " on " : "", hosts.text);
	return out;
}
