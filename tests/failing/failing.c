/* SPDX-License-Identifier: MIT */
#include "tests/failing/failing.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#define MOST_PLACES 256 /* of one function */

static _Thread_local struct {
	unsigned long in;
	int ever, anew, error, happened;
} armed[FAILING_N];
static unsigned long total[FAILING_N];
static _Atomic(const void *) places[FAILING_N][MOST_PLACES];

static void arm(enum failing what, unsigned long n, int ever, int anew, int error)
{
	armed[what].in = n;
	armed[what].ever = ever;
	armed[what].anew = anew;
	armed[what].error = error;
	armed[what].happened = 0;
}

void failing_at(enum failing what, unsigned long n, int error)
{
	arm(what, n, 0, 0, error);
}

void failing_from(enum failing what, unsigned long n, int error)
{
	arm(what, n, 1, 0, error);
}

void failing_anew(enum failing what, int error)
{
	arm(what, 0, 0, 1, error);
}

void failing_forget(enum failing what)
{
	memset((void *)places[what], 0, sizeof(places[what]));
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
			FAILING_LIBRARIES(NAME) FAILING_URING(NAME) FAILING_MEMORY(NAME)};
#undef NAME

	return names[what];
}

/* True if nothing has failed at this place before, which it has from now on. */
static int is_new(enum failing what, const void *place)
{
	size_t i;

	for (i = 0; i < MOST_PLACES; i++) {
		const void *none = NULL;

		if (places[what][i] == place)
			return 0;
		if (__atomic_compare_exchange_n((const void **)&places[what][i], &none, place, 0,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return 1;
		if (none == place)
			return 0;
	}
	return 0;
}

static int is_due(enum failing what, const void *place)
{
	if (armed[what].anew)
		return is_new(what, place);
	if (!armed[what].in || --armed[what].in)
		return 0;
	armed[what].in = (unsigned long)armed[what].ever;
	is_new(what, place);
	return 1;
}

int failing_must_at(enum failing what, const void *place)
{
	if (failing_in_process(what, place))
		return 1;
	if (!is_due(what, place))
		return 0;
	armed[what].anew = 0;
	armed[what].happened = 1;
	total[what]++;
	failing_put_down(what, place);
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

static int at_begin;

int failing_begin(void **state)
{
	(void)state;
	at_begin = failing_descriptors();
	return 0;
}

int failing_end(void **state)
{
	(void)state;
	return failing_descriptors() != at_begin;
}
