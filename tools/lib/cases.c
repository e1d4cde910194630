/* SPDX-License-Identifier: MIT */
#include "tools/lib/cases.h"

#include "base/file.h"
#include "base/units.h"
#include "comm/comm.h"
#include "tools/lib/tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int gct_wrong_value(const char *tool, const char *what, const char *value, const char *expected)
{
	return gct_wrong(tool, "%s \"%s\", expected %s", what, value, expected);
}

int gct_take_sizes(char *list, uint64_t sizes[GCT_MAX_CASES], int *n, struct gci_error *e)
{
	char *p;

	*n = 0;
	while ((p = strsep(&list, ",")))
		if (*n == GCT_MAX_CASES || gci_parse_bytes(p, &sizes[*n]) ||
			sizes[(*n)++] > GCT_MOST_NBYTES)
			return gci_option_wrong(e, "bytes", p, GCT_NBYTES_EXPECTED);
	return 0;
}

int gct_take_algorithms(char *list, const char *names[GCT_MAX_CASES], int *n, struct gci_error *e)
{
	char *p;

	*n = 0;
	if (!strcmp(list, "all"))
		return 0;
	while ((p = strsep(&list, ","))) {
		if (!*p)
			return gci_option_wrong(e, "algorithm", p, "names, auto or all");
		if (*n == GCT_MAX_CASES)
			return gci_option_wrong(e, "algorithm", p, "no more than 64 of them");
		names[(*n)++] = p;
	}
	return 0;
}

/* "bcast, reduce, ..., barrier or all" */
static int wrong_operation(const char *tool, const char *value)
{
	char expected[200] = "";
	int k, n = 0;

	for (k = 0; k < GCI_NKINDS; k++)
		n += snprintf(expected + n, sizeof(expected) - (size_t)n, "%s%s", k ? ", " : "",
			gci_kind_name((enum gci_kind)k));
	snprintf(expected + n, sizeof(expected) - (size_t)n, " or all");
	if (!value)
		return gct_wrong(tool, "no operation, expected %s", expected);
	return gct_wrong_value(tool, "operation", value, expected);
}

static void add_operation(enum gci_kind kinds[GCI_NKINDS], int *n, enum gci_kind kind)
{
	int i;

	for (i = 0; i < *n; i++)
		if (kinds[i] == kind)
			return;
	kinds[(*n)++] = kind;
}

int gct_parse_operations(
	const char *tool, int argc, char **argv, enum gci_kind kinds[GCI_NKINDS], int *n)
{
	int i, k;

	*n = 0;
	for (i = 0; i < argc; i++) {
		int all = !strcmp(argv[i], "all");

		k = gci_kind_find(argv[i]);
		if (!all && k < 0)
			return wrong_operation(tool, argv[i]);
		if (!all)
			add_operation(kinds, n, (enum gci_kind)k);
		for (k = 0; all && k < GCI_NKINDS; k++)
			add_operation(kinds, n, (enum gci_kind)k);
	}
	return *n ? 0 : wrong_operation(tool, NULL);
}

int gct_set_streams(gcoll_comm *comm, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	return n ? gcoll_comm_set(comm, "streams", text) : 0;
}

int gct_try_to_write(const char *path)
{
	struct gci_error e = {0};
	int rc = gci_file_check(path, &e);

	return rc ? gci_comm_error(rc, "%s", e.text) : 0;
}

int gct_write(const char *path, const struct gci_buf *text)
{
	struct gci_error e = {0};
	int rc = gci_file_write(path, text, &e);

	return rc ? gci_comm_error(rc, "%s", e.text) : 0;
}
