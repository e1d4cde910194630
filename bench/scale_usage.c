/* SPDX-License-Identifier: MIT */
#include "bench/scale.h"

#include "base/mem.h"
#include "base/units.h"

#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* "Name:   123 kB" of a file in /proc/self, as bytes (or, without a unit, as it is). */
static uint64_t field(const char *path, const char *name)
{
	char line[256], unit[8];
	unsigned long long v = 0;
	FILE *f = fopen(path, "r");
	size_t len = strlen(name);

	while (f && fgets(line, sizeof(line), f)) {
		int n;

		if (strncmp(line, name, len) != 0 || line[len] != ':')
			continue;
		n = sscanf(line + len + 1, "%llu %7s", &v, unit);
		if (n == 2)
			v *= 1024;
		break;
	}
	if (f)
		fclose(f);
	return v;
}

uint64_t scale_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	uint64_t n = 0;

	while (dir && (d = readdir(dir)))
		n += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n ? n - 1 : 0; /* without the directory's own */
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void scale_usage_read(struct scale_usage *u, uint64_t own_nbytes)
{
	static const char rollup[] = "/proc/self/smaps_rollup", status[] = "/proc/self/status";

	u->memory_nbytes = less(field(rollup, "Private_Dirty"), own_nbytes);
	u->pss_nbytes = less(field(rollup, "Pss"), own_nbytes);
	/* The high-water mark counts the pages of libraries too, which do not come and go. */
	u->peak_nbytes = less(field(status, "VmHWM"), own_nbytes + field(status, "RssFile"));
	u->threads = field(status, "Threads");
}

uint64_t scale_connections(gcoll_comm *c)
{
	struct gci_tp_stats s;
	uint64_t n = 0;
	int r;

	for (r = 0; r < c->engine->size; r++) {
		gci_tp_stats(c->engine->tp, r, &s);
		n += s.streams;
	}
	return n;
}

uint64_t scale_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Field 22 of /proc/self/stat; the second one, in parentheses, may hold anything. */
uint64_t scale_started_ns(void)
{
	char text[1024], *p;
	FILE *f = fopen("/proc/self/stat", "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	int i;

	if (f)
		fclose(f);
	text[n] = '\0';
	p = strrchr(text, ')');
	for (i = 2; p && i < 22; i++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p, NULL, 10) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK)) : 0;
}

/* ---- the report */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct spread {
	uint64_t median, most;
	int at; /* a rank that has the most */
};

static struct spread spread_of(
	const struct scale_usage *all, int n, size_t field_at, uint64_t *sorted)
{
	struct spread s = {0};
	int i;

	for (i = 0; i < n; i++) {
		memcpy(&sorted[i], (const char *)&all[i] + field_at, sizeof(*sorted));
		if (sorted[i] > s.most) {
			s.most = sorted[i];
			s.at = i;
		}
	}
	qsort(sorted, (size_t)n, sizeof(*sorted), compare);
	s.median = sorted[n / 2];
	return s;
}

static const char *show(char out[24], uint64_t v, int unit)
{
	if (unit == 'B')
		snprintf(out, 24, "%.2f MiB", (double)v / (1 << 20));
	else if (unit == 's')
		snprintf(out, 24, "%.1f ms", (double)v / 1e6);
	else
		snprintf(out, 24, "%" PRIu64, v);
	return out;
}

static const struct {
	const char *name;
	size_t at;
	int unit;
} rows[] = {
	{"connections", offsetof(struct scale_usage, connections), 0},
	{"descriptors", offsetof(struct scale_usage, descriptors), 0},
	{"threads", offsetof(struct scale_usage, threads), 0},
	{"memory", offsetof(struct scale_usage, memory_nbytes), 'B'},
	{"memory, peak", offsetof(struct scale_usage, peak_nbytes), 'B'},
	{"share of memory", offsetof(struct scale_usage, pss_nbytes), 'B'},
	{"processor, idle", offsetof(struct scale_usage, idle_ns), 's'},
	{"waits, idle", offsetof(struct scale_usage, idle_switches), 0},
};

static int hold(const struct scale_usage *all, int n, const struct scale_limits *l)
{
	int i, bad = 0;

	for (i = 0; i < n; i++) {
		const struct scale_usage *u = &all[i];

		if (l->connections && u->connections > l->connections) {
			fprintf(stderr,
				"rank %d has %" PRIu64 " connections, expected at most %" PRIu64
				"\n",
				i, u->connections, l->connections);
			bad++;
		}
		if (l->memory_nbytes && u->peak_nbytes > l->memory_nbytes) {
			fprintf(stderr,
				"rank %d has taken %" PRIu64 " bytes, expected at most %" PRIu64
				"\n",
				i, u->peak_nbytes, l->memory_nbytes);
			bad++;
		}
		if (u->descriptors != u->descriptors_before) {
			fprintf(stderr,
				"rank %d has %" PRIu64 " descriptors open, before the short "
				"operations %" PRIu64 "\n",
				i, u->descriptors, u->descriptors_before);
			bad++;
		}
	}
	return bad;
}

int scale_report(const struct scale_usage *all, int n, const struct scale_limits *limits)
{
	uint64_t *sorted = gci_calloc((size_t)n, sizeof(*sorted)), first = UINT64_MAX, last = 0;
	char median[24], most[24];
	size_t k;
	int i;

	if (!sorted)
		return 1;
	for (i = 0; i < n; i++) {
		first = all[i].started_ns < first ? all[i].started_ns : first;
		last = all[i].joined_ns > last ? all[i].joined_ns : last;
	}
	printf("%d ranks, joined within %.2f s of the first one's start\n", n,
		(double)(last - first) / 1e9);
	printf("%-16s %12s %12s  %s\n", "per rank", "median", "most", "of rank");
	for (k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		struct spread s = spread_of(all, n, rows[k].at, sorted);

		printf("%-16s %12s %12s  %d\n", rows[k].name, show(median, s.median, rows[k].unit),
			show(most, s.most, rows[k].unit), s.at);
	}
	gci_free(sorted);
	return hold(all, n, limits);
}
