/* SPDX-License-Identifier: MIT */
#include "tests/failing/failing.h"

#include <dirent.h>
#include <errno.h>

static _Thread_local struct {
	unsigned long in;
	int error, happened;
} armed[FAILING_N];
static unsigned long total[FAILING_N];

void failing_at(enum failing what, unsigned long n, int error)
{
	armed[what].in = n;
	armed[what].error = error;
	armed[what].happened = 0;
}

int failing_happened(enum failing what)
{
	return armed[what].happened;
}

unsigned long failing_total(enum failing what)
{
	return total[what];
}

const char *failing_name(enum failing what)
{
#define NAME(name) #name,
	static const char *const names[] = {FAILING_SOCKETS(NAME) FAILING_FILES(NAME)
			FAILING_LIBRARIES(NAME) FAILING_URING(NAME)};
#undef NAME

	return names[what];
}

int failing_must(enum failing what)
{
	if (!armed[what].in || --armed[what].in)
		return 0;
	armed[what].happened = 1;
	total[what]++;
	errno = armed[what].error;
	return 1;
}

int failing_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}
