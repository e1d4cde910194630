/* SPDX-License-Identifier: MIT
 * --to and --from: ranks by number, by host or by cluster. */
#include "base/mem.h"
#include "base/units.h"
#include "collectives/grid/grid.h"
#include "tools/cp.h"

#include <stdio.h>
#include <string.h>

/* "3" or "2-5". True if it is one of them; then *lo and *hi are ranks of the job, or it says why
 * not. */
static int is_range(const char *s, uint64_t n, uint64_t *lo, uint64_t *hi, struct gci_error *e)
{
	size_t digits = strspn(s, "0123456789");
	char first[32];

	if (!digits || digits >= sizeof(first) || (s[digits] && s[digits] != '-'))
		return 0;
	snprintf(first, sizeof(first), "%.*s", (int)digits, s);
	if (s[digits] && s[digits + 1 + strspn(s + digits + 1, "0123456789")])
		return 0;
	if (gci_parse_uint(first, INT64_MAX, lo) ||
		gci_parse_uint(s[digits] ? s + digits + 1 : first, INT64_MAX, hi) || *lo > *hi ||
		*hi >= n)
		gci_error_set(
			e, GCOLL_ERR_INVAL, "--to %s, expected ranks from 0 to %d", s, (int)n - 1);
	return 1;
}

/* Those of this cluster, and on this host. Returns whether there are any. */
static int choose_named(const struct gct_cp_ranks *r, const char *name, uint8_t *chosen)
{
	int i, any = 0;

	for (i = 0; i < r->n; i++) {
		if (strcmp(r->hosts[i], name) && strcmp(r->clusters[i], name))
			continue;
		chosen[i] = 1;
		any = 1;
	}
	return any;
}

/* One part of the list, "k[1-8]" among them. */
static int choose(
	const struct gct_cp_ranks *r, const char *part, uint8_t *chosen, struct gci_error *e)
{
	struct gci_error why = {0};
	uint64_t lo, hi;
	char **hosts = NULL;
	int n = 0, i;

	if (choose_named(r, part, chosen))
		return 0;
	if (is_range(part, (uint64_t)r->n, &lo, &hi, e)) {
		for (; !e->status && lo <= hi; lo++)
			chosen[lo] = 1;
		return e->status;
	}
	if (gci_hosts_expand(part, &hosts, &n, &why))
		gci_error_set(e, why.status == GCOLL_ERR_PARSE ? GCOLL_ERR_INVAL : why.status,
			"--to %s: %s", part, why.text);
	else
		for (i = 0; i < n && !e->status; i++)
			if (!choose_named(r, hosts[i], chosen))
				gci_error_set(e, GCOLL_ERR_INVAL,
					"--to %s, expected ranks, hosts or clusters of the job",
					hosts[i]);
	for (i = 0; i < n; i++)
		gci_free(hosts[i]);
	gci_free(hosts);
	return e->status;
}

/* The length of the part at the list's beginning: a comma in brackets is not its end. */
static size_t part_length(const char *list)
{
	size_t n;
	int inside = 0;

	for (n = 0; list[n] && (inside || list[n] != ','); n++) {
		if (list[n] == '[')
			inside = 1;
		else if (list[n] == ']')
			inside = 0;
	}
	return n;
}

int gct_cp_select(
	const struct gct_cp_ranks *r, const char *list, uint8_t *chosen, struct gci_error *e)
{
	memset(chosen, 0, (size_t)r->n);
	for (;;) {
		size_t n = part_length(list);
		char *part = gci_strndup(list, n);

		if (!part)
			return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		if (!n)
			gci_error_set(e, GCOLL_ERR_INVAL, "--to: an empty place in the list");
		else
			choose(r, part, chosen, e);
		gci_free(part);
		if (e->status || !list[n])
			return e->status;
		list += n + 1;
	}
}

int gct_cp_select_one(const struct gct_cp_ranks *r, const char *option, const char *name, int *rank,
	struct gci_error *e)
{
	uint64_t number;
	int i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->hosts[i], name)) {
			*rank = i;
			return 0;
		}
	if (gci_parse_uint(name, (uint64_t)r->n - 1, &number))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%s %s, expected a host or a rank of the job", option, name);
	*rank = (int)number;
	return 0;
}
