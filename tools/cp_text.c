/* SPDX-License-Identifier: MIT
 * Names and the progress bar. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/cp_impl.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 78 /* of the progress bar */

static int is_host(const char *name)
{
	const char *p;

	for (p = name; *p && !iscntrl((unsigned char)*p); p++)
		;
	return !*p && gct_cp_is_name(name);
}

char *gct_cp_expand(const char *pattern, int rank, const char *host, struct gci_error *e)
{
	struct gci_buf out = {0};
	int bad = 0, leads = 0;
	const char *p;
	char *result;

	for (p = pattern; *p && !bad && !leads; p++) {
		if (*p != '%')
			gci_buf_put_u8(&out, (uint8_t)*p);
		else if (*++p == 'r')
			gci_buf_printf(&out, "%d", rank);
		else if (*p == 'h' && !is_host(host))
			leads = 1;
		else if (*p == 'h')
			gci_buf_printf(&out, "%s", host);
		else if (*p == '%')
			gci_buf_put_u8(&out, '%');
		else
			bad = 1;
		if (bad)
			break;
	}
	result = bad || leads || out.failed ? NULL : gci_strdup(gci_buf_cstr(&out));
	if (bad)
		gci_error_set(e, GCOLL_ERR_INVAL,
			"path \"%s\": expected %%r (rank), %%h (host) or %%%% after %%", pattern);
	else if (leads)
		gci_error_set(e, GCOLL_ERR_INVAL,
			"path \"%s\": rank %d's host is called \"%s\", which is no name in a "
			"directory",
			pattern, rank, host);
	else if (!result)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_buf_free(&out);
	return result;
}

size_t gct_cp_fixed_length(const char *pattern)
{
	size_t n = 0, fixed = 0;
	const char *p;

	for (p = pattern; *p; p++, n++) {
		if (*p == '/')
			fixed = n + 1;
		if (*p == '%' && *++p != '%')
			return fixed;
	}
	return n;
}

static void format_left(char *out, size_t size, double seconds)
{
	uint64_t whole = seconds < 1e9 ? (uint64_t)seconds : 1000000000, s = whole;
	unsigned m;

	s += seconds > (double)whole && seconds < 1e9; /* 0:00 only at the end */
	m = (unsigned)(s / 60 % 60);
	if (s >= 3600)
		snprintf(
			out, size, "  %" PRIu64 ":%02u:%02u left", s / 3600, m, (unsigned)(s % 60));
	else
		snprintf(out, size, "  %u:%02u left", m, (unsigned)(s % 60));
}

static double rate_of(uint64_t nbytes, uint64_t ns)
{
	double per_s = ns ? (double)nbytes * GCI_NS_PER_S / (double)ns : 0;

	return per_s > 1e18 ? 1e18 : per_s; /* a clock that hardly moved */
}

static int compare_seen(const void *a, const void *b)
{
	const struct gct_cp_seen *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Adds clusters to the line of so many bytes. */
static void add_clusters(char *out, size_t size, uint64_t done, struct gct_cp_seen *seen, int n)
{
	size_t len = strlen(out), more;
	char one[80], rate[16];
	int i, named = 0;

	if (n)
		qsort(seen, (size_t)n, sizeof(*seen), compare_seen);
	for (i = 0; i < n; i++) {
		if (!seen[i].cluster || rate_of(done, seen[i].ns) < 1)
			continue;
		gci_format_bytes((uint64_t)rate_of(done, seen[i].ns), rate, sizeof(rate));
		snprintf(one, sizeof(one), "%s%.16s %s/s%s%.16s%s", named ? ", " : "  ",
			seen[i].cluster, rate, named ? "" : " (", named ? "" : seen[i].last,
			named ? "" : ")");
		more = strlen(one);
		if (len + more > COLUMNS || len + more >= size)
			return;
		memcpy(out + len, one, more + 1);
		len += more;
		named = 1;
	}
}

void gct_cp_progress_line(char *out, size_t size, uint64_t done, uint64_t all, uint64_t elapsed_ns,
	struct gct_cp_seen *seen, int n)
{
	enum { WIDTH = 30, NARROW = 10 };
	unsigned width = n ? NARROW : WIDTH;
	char bar[WIDTH + 1], rate[16] = "- B", left[40] = "";
	unsigned percent = all ? (unsigned)((unsigned __int128)done * 100 / all) : 100;
	unsigned filled = percent * width / 100;
	double per_s = rate_of(done, elapsed_ns);

	memset(bar, ' ', width);
	memset(bar, '=', filled);
	if (filled < width)
		bar[filled] = '>';
	bar[width] = '\0';
	if (per_s >= 1)
		gci_format_bytes((uint64_t)per_s, rate, sizeof(rate));
	if (per_s >= 1 && done < all)
		format_left(left, sizeof(left), (double)(all - done) / per_s);
	snprintf(out, size, "%3u %% [%s] %s/s%s", percent, bar, rate, left);
	add_clusters(out, size, done, seen, n);
}
