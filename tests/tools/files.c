/* SPDX-License-Identifier: MIT */
#include "tests/tools/files.h"

#include "base/clock.h"
#include "base/prng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define BLOCK 65536

static char scratch[64];

int scratch_make(void **state)
{
	(void)state;
	snprintf(scratch, sizeof(scratch), "/tmp/gridcoll-test-XXXXXX");
	return mkdtemp(scratch) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* A directory, before what is in it: what cannot be written to could not be removed. */
static int open_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)ftw;
	return flag == FTW_D && (st->st_mode & 0700) != 0700 ? chmod(path, 0700) : 0;
}

int scratch_remove(void **state)
{
	(void)state;
	nftw(scratch, open_one, 16, FTW_PHYS);
	return nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *in_scratch(const char *fmt, ...)
{
	static char texts[16][512];
	static unsigned next;
	char *text = texts[next++ % 16];
	va_list ap;
	int n = snprintf(text, sizeof(texts[0]), "%s/", scratch);

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(texts[0]) - (size_t)n, fmt, ap);
	va_end(ap);
	return text;
}

static void put(const char *path, int fd, const void *data, size_t n)
{
	if (write(fd, data, n) != (ssize_t)n)
		fail_msg("%s: %s", path, strerror(errno));
}

static int create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return fd;
}

void make_file(const char *path, uint64_t nbytes, uint64_t seed)
{
	struct gci_prng prng = {.state = seed};
	uint64_t words[BLOCK / 8];
	int fd = create(path);
	size_t i, n;

	for (; nbytes; nbytes -= n) {
		n = nbytes < BLOCK ? (size_t)nbytes : BLOCK;
		for (i = 0; i < BLOCK / 8; i++)
			words[i] = gci_prng_next(&prng);
		put(path, fd, words, n);
	}
	close(fd);
}

void make_endless(const char *path, uint64_t nbytes, uint64_t seed)
{
	make_file(path, nbytes, seed);
	if (truncate(path, (off_t)8 << 30))
		fail_msg("%s: %s", path, strerror(errno));
}

void flip(const char *path, uint64_t at)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char c;

	assert_int_equal(pread(fd, &c, 1, (off_t)at), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, (off_t)at), 1);
	close(fd);
}

void flip_in_secret(const char *path, uint64_t at)
{
	struct stat st = look(path);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};

	flip(path, at);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

void make_text(const char *path, const char *text)
{
	int fd = create(path);

	put(path, fd, text, strlen(text));
	close(fd);
}

void make_dir(const char *path)
{
	if (mkdir(path, 0777))
		fail_msg("%s: %s", path, strerror(errno));
}

struct stat look(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		fail_msg("%s: %s", path, strerror(errno));
	return st;
}

int is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

/* Where the next data is, from `at` on; the size if there is none. */
static off_t next_data(int fd, off_t at, off_t size)
{
	off_t data = lseek(fd, at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? size : at;
	return data;
}

static void compare_contents(const char *a, const char *b, int fa, int fb, off_t size)
{
	static char x[BLOCK], y[BLOCK];
	off_t at = 0;

	while (at < size) {
		off_t da = next_data(fa, at, size), db = next_data(fb, at, size);
		ssize_t n;

		at = da < db ? da : db;
		n = pread(fa, x, sizeof(x), at);
		if (pread(fb, y, sizeof(y), at) != n || n < 0)
			fail_msg(
				"%s and %s differ in length behind byte %lld", a, b, (long long)at);
		if (memcmp(x, y, (size_t)n))
			fail_msg("%s and %s differ behind byte %lld", a, b, (long long)at);
		if (!n)
			break;
		at += n;
	}
}

void assert_same_files(const char *a, const char *b)
{
	struct stat sa = look(a), sb = look(b);
	int fa = open(a, O_RDONLY | O_CLOEXEC), fb = open(b, O_RDONLY | O_CLOEXEC);

	if (fa < 0 || fb < 0)
		fail_msg("cannot read %s or %s", a, b);
	if (sa.st_size != sb.st_size)
		fail_msg("%s has %lld bytes, %s has %lld", a, (long long)sa.st_size, b,
			(long long)sb.st_size);
	compare_contents(a, b, fa, fb, sa.st_size);
	close(fa);
	close(fb);
	assert_int_equal(sa.st_mode, sb.st_mode);
	assert_int_equal(sa.st_mtim.tv_sec, sb.st_mtim.tv_sec);
	assert_int_equal(sa.st_mtim.tv_nsec, sb.st_mtim.tv_nsec);
}

void assert_text(const char *path, const char *text)
{
	char have[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, have, sizeof(have) - 1);

	if (n < 0)
		fail_msg("%s: %s", path, strerror(errno));
	have[n] = '\0';
	close(fd);
	assert_string_equal(have, text);
}

int entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int n = 0;

	if (!dir)
		return -1;
	while ((d = readdir(dir)))
		n += strcmp(d->d_name, ".") && strcmp(d->d_name, "..");
	closedir(dir);
	return n;
}

/* Of any type but one. */
static int has_entry(const char *path, const char *prefix, int but)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int found = 0;

	while (dir && (d = readdir(dir)))
		found |= d->d_type != but && !strncmp(d->d_name, prefix, strlen(prefix));
	if (dir)
		closedir(dir);
	return found;
}

/* Without /proc they could not get one. */
int forbid_unnamed(void)
{
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) /* /proc is hidden from us alone */
		return -1;
	return mount("none", "/proc", "tmpfs", 0, NULL);
}

/* Of a process, by the names that its descriptors have. */
static int has_unnamed(const char *pid, const char *path)
{
	char fds[300], at[600], text[700], begin[PATH_MAX + 2], real[PATH_MAX];
	DIR *dir;
	struct dirent *d;
	int found = 0;

	snprintf(fds, sizeof(fds), "/proc/%s/fd", pid);
	snprintf(begin, sizeof(begin), "%s/#", realpath(path, real) ? real : path);
	dir = opendir(fds);
	while (dir && !found && (d = readdir(dir))) {
		ssize_t n;

		snprintf(at, sizeof(at), "%s/%s", fds, d->d_name);
		n = readlink(at, text, sizeof(text));
		found = n > (ssize_t)strlen(begin) && !memcmp(text, begin, strlen(begin));
	}
	if (dir)
		closedir(dir);
	return found;
}

int makes_unnamed(const char *path)
{
	int fd = open(path, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void await_writer(const char *path)
{
	uint64_t end_ns = gci_now_ns() + 60 * GCI_NS_PER_S;
	int found = 0;

	while (!found && !has_entry(path, ".gridcoll-", DT_LNK)) {
		DIR *dir = opendir("/proc");
		struct dirent *d;

		assert_non_null(dir);
		while (!found && (d = readdir(dir)))
			found = atoi(d->d_name) > 0 && has_unnamed(d->d_name, path);
		closedir(dir);
		if (!found && gci_now_ns() > end_ns)
			fail_msg("nobody writes a file in %s", path);
		gci_sleep_ns(2 * GCI_NS_PER_MS);
	}
}

void await_entry(const char *path, const char *prefix)
{
	uint64_t end_ns = gci_now_ns() + 60 * GCI_NS_PER_S;

	while (!has_entry(path, prefix, -1)) {
		if (gci_now_ns() > end_ns)
			fail_msg("nothing called %s* comes up in %s", prefix, path);
		gci_sleep_ns(2 * GCI_NS_PER_MS);
	}
}
