/* SPDX-License-Identifier: MIT
 * Host list patterns: "k[1-8]", "node[01-16,20]-ib", "a,b,c". */
#include "base/mem.h"
#include "collectives/grid/grid.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 253 /* RFC 1035, 2.3.4 */

struct list {
	char ***hosts;
	int *nhosts;
	struct gci_error *e;
};

#define GOOD "letters, digits and ._:@%%-, no - in front, and neither . nor .."

static int add(struct list *l, const char *name)
{
	const char *p;
	char *copy;

	for (p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-._:@%", *p))
			return gci_error_set(l->e, GCOLL_ERR_PARSE,
				"bad character '%c' in host name \"%s\", expected " GOOD, *p, name);
	/* Paths are made of hosts' names: "." and ".." would lead elsewhere. */
	if (!*name || *name == '-' || !strcmp(name, ".") || !strcmp(name, ".."))
		return gci_error_set(
			l->e, GCOLL_ERR_PARSE, "bad host name \"%s\", expected " GOOD, name);
	if (*l->nhosts >= GCI_GRID_MAX_HOSTS)
		return gci_error_set(
			l->e, GCOLL_ERR_PARSE, "more than %d hosts", GCI_GRID_MAX_HOSTS);
	copy = gci_strdup(name);
	if (!copy || gci_grow_by_one(l->hosts, (size_t)*l->nhosts, sizeof(**l->hosts))) {
		gci_free(copy);
		return gci_error_set(l->e, GCOLL_ERR_NOMEM, "out of memory");
	}
	(*l->hosts)[(*l->nhosts)++] = copy;
	return 0;
}

/* Reads a number of at most nine digits; its width (for leading zeros) in *width. */
static int number(const char **p, long *value, int *width)
{
	const char *start = *p;

	for (*value = 0; isdigit((unsigned char)**p) && *p - start < 9; (*p)++)
		*value = *value * 10 + (**p - '0');
	*width = (int)(*p - start);
	return *width && !isdigit((unsigned char)**p) ? 0 : -1;
}

static int expand(struct list *l, const char *item, size_t len);

/* "head[lo-hi,...]tail": one name per number; the tail may have brackets again. */
static int expand_range(struct list *l, const char *item, const char *open, const char *end)
{
	const char *close = memchr(open, ']', (size_t)(end - open));
	const char *p = open + 1;

	if (!close)
		return gci_error_set(l->e, GCOLL_ERR_PARSE,
			"missing ']' in \"%.*s\", expected e.g. k[1-8]", (int)(end - item), item);
	while (p <= close) {
		long lo, hi, i;
		int width, hi_width;

		if (number(&p, &lo, &width))
			goto bad;
		hi = lo;
		if (*p == '-') {
			p++;
			if (number(&p, &hi, &hi_width) || hi < lo)
				goto bad;
		}
		if (*p != ',' && *p != ']')
			goto bad;
		if (hi - lo >= GCI_GRID_MAX_HOSTS)
			return gci_error_set(l->e, GCOLL_ERR_PARSE,
				"more than %d hosts in \"%.*s\"", GCI_GRID_MAX_HOSTS,
				(int)(end - item), item);
		for (i = lo; i <= hi; i++) {
			char name[NAME_MAX_LEN + 1];
			int n = snprintf(name, sizeof(name), "%.*s%0*ld%.*s", (int)(open - item),
				item, width, i, (int)(end - close - 1), close + 1);
			int rc;

			if (n < 0 || (size_t)n >= sizeof(name))
				goto bad;
			rc = expand(l, name, (size_t)n);
			if (rc)
				return rc;
		}
		p++;
	}
	return 0;
bad:
	return gci_error_set(l->e, GCOLL_ERR_PARSE,
		"bad range in \"%.*s\", expected e.g. k[1-8] or k[01-04,9]", (int)(end - item),
		item);
}

static int expand(struct list *l, const char *item, size_t len)
{
	const char *open = memchr(item, '[', len);
	char name[NAME_MAX_LEN + 1];

	if (open)
		return expand_range(l, item, open, item + len);
	if (len > NAME_MAX_LEN)
		return gci_error_set(
			l->e, GCOLL_ERR_PARSE, "host name longer than %d characters", NAME_MAX_LEN);
	memcpy(name, item, len);
	name[len] = '\0';
	return add(l, name);
}

int gci_hosts_check(const char *name, struct gci_error *e)
{
	char **hosts = NULL;
	int n = 0, rc;
	struct list l = {&hosts, &n, e};

	rc = strlen(name) > NAME_MAX_LEN
		     ? gci_error_set(e, GCOLL_ERR_PARSE, "host name longer than %d characters",
			       NAME_MAX_LEN)
		     : add(&l, name);
	if (n)
		gci_free(hosts[0]);
	gci_free(hosts);
	return rc;
}

int gci_hosts_expand(const char *pattern, char ***hosts, int *nhosts, struct gci_error *e)
{
	struct list l = {hosts, nhosts, e};
	const char *p = pattern;
	int before = *nhosts;
	int rc = 0;

	while (!rc) {
		const char *start;
		int depth = 0;

		while (isspace((unsigned char)*p))
			p++;
		for (start = p; *p && (depth || (*p != ',' && !isspace((unsigned char)*p))); p++)
			depth += (*p == '[') - (*p == ']');
		rc = expand(&l, start, (size_t)(p - start));
		while (isspace((unsigned char)*p))
			p++;
		if (!*p)
			break;
		if (*p == ',')
			p++;
	}
	while (rc && *nhosts > before)
		gci_free((*hosts)[--*nhosts]);
	return rc;
}
