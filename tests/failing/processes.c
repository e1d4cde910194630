/* SPDX-License-Identifier: MIT
 * Calls fail in programs that a test starts, once in each process, where no process of its kind has
 * failed before: started again and again, each place in the program has its turn, by each way that
 * leads there through the two functions above.
 *	GCI_FAILED_PLACES=FILE	where calls have failed, one line each: PROGRAM OFFSET FUNCTION WORD
 *				WAY. All programs with failing.h in them write it.
 *	GCI_FAIL_ANEW=WORD	processes whose first argument is WORD fail, where that file does
 *				not say that one of them has.
 *	GCI_FAIL_ONE_IN=N	of N ways one has a turn. */
#include "tests/failing/failing.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST_LINE 600
#define MOST_WAYS    (1u << 16)
#define MOST_TEXT    (1u << 20)
#define DEPTH        3

extern const char __executable_start, etext;

static const char *file, *word;
static char program[400];
static unsigned one_in = 1;
static int due;
static uint64_t seen[MOST_WAYS];

/* The system itself, since the library's functions are those that fail. */
static ssize_t read_all(char *text, size_t room)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	long got = 1;

	while (fd >= 0 && n + 1 < room && got > 0) {
		got = syscall(SYS_read, fd, text + n, room - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	text[n] = '\0';
	return (ssize_t)n;
}

static uint64_t offset_of(const void *place)
{
	const char *p = place;

	return p >= &__executable_start && p < &etext ? (uint64_t)(p - &__executable_start) : 0;
}

/* A number for the way to this call: the same in each process. */
static uint64_t way_to(enum failing what, const void *place)
{
	uint64_t way = (uint64_t)what + 1;
	void *frames[DEPTH + 8];
	int i = 0, end, n = backtrace(frames, DEPTH + 8);

	while (i < n && frames[i] != place)
		i++;
	for (end = i + DEPTH; i < n && i < end; i++)
		way = (way ^ offset_of(frames[i])) * 0x100000001b3;
	return way ^ way >> 29;
}

/* False where there are too many to remember. */
static int is_first_time(uint64_t way)
{
	uint64_t none = 0;
	size_t i;

	for (i = 0; i < 64; i++, none = 0)
		if (__atomic_compare_exchange_n(&seen[(way + i) % MOST_WAYS], &none, way, 0,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
			none == way)
			return none != way;
	return 0;
}

/* What the file has of it, but for where in the program that is. */
static int line_of(enum failing what, uint64_t way, char line[LONGEST_LINE])
{
	return snprintf(line, LONGEST_LINE, " %s %s %jx\n", failing_name(what), word ? word : "-",
		(uintmax_t)way);
}

void failing_put_down(enum failing what, const void *place)
{
	char line[LONGEST_LINE], all[2 * LONGEST_LINE];
	int n, fd;

	if (!file)
		return;
	line_of(what, way_to(what, place), line);
	n = snprintf(all, sizeof(all), "%s %#jx%s", program,
		(uintmax_t)offset_of((const char *)place - 1), line); /* the call, not behind it */
	fd = (int)syscall(
		SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	syscall(SYS_write, fd, all, (size_t)n);
	syscall(SYS_close, fd);
}

/* Threads may look at the same time, and no allocation may be seen. */
static int is_known(const char *line)
{
	char *text =
		mmap(NULL, MOST_TEXT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int known;

	if (text == MAP_FAILED)
		return 1;
	read_all(text, MOST_TEXT);
	known = strstr(text, line) != NULL;
	munmap(text, MOST_TEXT);
	return known;
}

/* What each may plausibly have. */
static int error_of(enum failing what)
{
	switch (what) {
	case FAILING_connect:
		return ECONNREFUSED;
	case FAILING_recv:
	case FAILING_readv:
	case FAILING_send:
	case FAILING_sendmsg:
		return ECONNRESET;
	case FAILING_read:
	case FAILING_write:
	case FAILING_close:
		return EIO;
	case FAILING_epoll_wait:
	case FAILING_poll:
	case FAILING_clock_nanosleep:
		return EINTR;
	case FAILING_socket:
	case FAILING_accept4:
	case FAILING_open64:
	case FAILING_eventfd:
	case FAILING_epoll_create1:
	case FAILING_timerfd_create:
		return EMFILE;
	case FAILING_pthread_create:
	case FAILING_eventfd_write:
		return EAGAIN;
	default:
		return ENOMEM;
	}
}

int failing_in_process(enum failing what, const void *place)
{
	char line[LONGEST_LINE];
	uint64_t way;
	int one = 1;

	if (!__atomic_load_n(&due, __ATOMIC_SEQ_CST))
		return 0;
	way = way_to(what, place);
	if (!is_first_time(way) || (way * 2654435761u >> 7) % one_in)
		return 0;
	line_of(what, way, line);
	if (is_known(line) ||
		!__atomic_compare_exchange_n(&due, &one, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return 0;
	failing_put_down(what, place);
	errno = error_of(what);
	return 1;
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	const char *who = getenv("GCI_FAIL_ANEW"), *n = getenv("GCI_FAIL_ONE_IN");

	file = getenv("GCI_FAILED_PLACES");
	if (!file || readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return;
	if (n && atoi(n) > 0)
		one_in = (unsigned)atoi(n);
	word = argc > 1 ? argv[1] : NULL;
	due = word && who && !strcmp(word, who);
}
