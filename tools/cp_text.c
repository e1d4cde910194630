/* SPDX-License-Identifier: MIT
 * Names and the progress bar. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/cp_impl.h"

#include <inttypes.h>
#include <stdio.h>

char *gct_cp_expand(const char *pattern, int rank, const char *host, struct gci_error *e)
{
	struct gci_buf out = {0};
	int bad = 0;
	const char *p;
	char *result;

	for (p = pattern; *p && !bad; p++) {
		if (*p != '%')
			gci_buf_put_u8(&out, (uint8_t)*p);
		else if (*++p == 'r')
			gci_buf_printf(&out, "%d", rank);
		else if (*p == 'h')
			gci_buf_printf(&out, "%s", host);
		else if (*p == '%')
			gci_buf_put_u8(&out, '%');
		else
			bad = 1;
		if (bad)
			break;
	}
	result = bad || out.failed ? NULL : gci_strdup(gci_buf_cstr(&out));
	if (bad)
		gci_error_set(e, GCOLL_ERR_INVAL,
			"destination \"%s\": expected %%r (rank), %%h (host) or %%%% after %%",
			pattern);
	else if (!result)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_buf_free(&out);
	return result;
}

int gct_cp_make_directories(const char *path, struct gci_error *e)
{
	char *copy = gci_strdup(path), *p;

	if (!copy)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (p = copy; *p && !e->status;) {
		char was;

		p += strspn(p, "/");
		p += strcspn(p, "/");
		was = *p;
		*p = '\0';
		/* Some file systems refuse before they see that it is there. */
		if (mkdir(copy, 0777) && !gct_cp_is_directory(copy))
			gci_error_set(e, GCOLL_ERR_IO, "cannot make directory %s: %s", copy,
				errno == EEXIST ? "a file is called so" : strerror(errno));
		*p = was;
	}
	gci_free(copy);
	return e->status;
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

void gct_cp_progress_line(char *out, size_t size, uint64_t done, uint64_t all, uint64_t elapsed_ns)
{
	enum { WIDTH = 30 };
	char bar[WIDTH + 1], rate[16] = "- B", left[40] = "";
	unsigned percent = all ? (unsigned)((unsigned __int128)done * 100 / all) : 100;
	unsigned filled = percent * WIDTH / 100;
	double per_s = elapsed_ns ? (double)done * GCI_NS_PER_S / (double)elapsed_ns : 0;

	if (per_s > 1e18) /* a clock that hardly moved */
		per_s = 1e18;
	memset(bar, ' ', WIDTH);
	memset(bar, '=', filled);
	if (filled < WIDTH)
		bar[filled] = '>';
	bar[WIDTH] = '\0';
	if (per_s >= 1)
		gci_format_bytes((uint64_t)per_s, rate, sizeof(rate));
	if (per_s >= 1 && done < all)
		format_left(left, sizeof(left), (double)(all - done) / per_s);
	snprintf(out, size, "%3u %% [%s] %s/s%s", percent, bar, rate, left);
}
