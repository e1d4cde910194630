/* SPDX-License-Identifier: MIT */
#include "tests/tools/trees.h"

#include "tests/tools/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct path {
	char text[512];
};

static struct path below(const char *dir, const char *name)
{
	struct path p;

	assert_true(snprintf(p.text, sizeof(p.text), "%s/%s", dir, name) < (int)sizeof(p.text));
	return p;
}

static void dir_in(const char *tree, const char *name)
{
	make_dir(below(tree, name).text);
}

static void link_in(const char *tree, const char *name, const char *target)
{
	assert_int_equal(symlink(target, below(tree, name).text), 0);
}

/* Mode and time of what is there. */
static void set(const char *tree, const char *name, int mode, time_t time)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = time, .tv_nsec = 123456789}};
	struct path p = below(tree, name);

	if (mode >= 0)
		assert_int_equal(chmod(p.text, (mode_t)mode), 0);
	assert_int_equal(utimensat(AT_FDCWD, p.text, times, AT_SYMLINK_NOFOLLOW), 0);
}

void make_tree(const char *path)
{
	static const char *const dirs[] = {"a", "a/deep", "a/deep/er", "empty", "z locked"};
	char name[32];
	size_t i;

	make_dir(path);
	for (i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		dir_in(path, dirs[i]);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "a/deep/%d", (int)i);
		make_file(below(path, name).text, i * i * 300, i);
	}
	make_file(below(path, "top").text, 70000, 77);
	make_file(below(path, "a/deep/er/new\nline").text, 5, 78);
	make_file(below(path, "a/nothing").text, 0, 79);
	make_file(below(path, "z locked/in").text, 1000, 80);
	link_in(path, "to-file", "top");
	link_in(path, "a/to-directory", "deep/er");
	link_in(path, "a/to-nothing", "no such file");
	link_in(path, "a/deep/out", "/etc");
	set(path, "top", 0640, 1234567890);
	set(path, "a/deep/7", 0755, 5);
	set(path, "to-file", -1, 99);
	set(path, "z locked", 0555, 1000000000);
	set(path, "a/deep/er", 0750, 20);
	set(path, "a/deep", 0700, 30);
	set(path, "a", 0711, 40);
}

static void compare_links(const char *a, const char *b)
{
	char x[4096] = "", y[4096] = "";

	assert_true(readlink(a, x, sizeof(x) - 1) >= 0);
	assert_true(readlink(b, y, sizeof(y) - 1) >= 0);
	assert_string_equal(x, y);
}

static void compare_one(const char *a, const char *b)
{
	struct stat sa, sb;

	if (lstat(a, &sa) || lstat(b, &sb))
		fail_msg("%s or %s: %s", a, b, strerror(errno));
	if ((sa.st_mode & S_IFMT) != (sb.st_mode & S_IFMT))
		fail_msg("%s and %s are of different kinds", a, b);
	if (sa.st_mode != sb.st_mode)
		fail_msg("%s has mode %o, %s has %o", a, sa.st_mode, b, sb.st_mode);
	if (sa.st_mtim.tv_sec != sb.st_mtim.tv_sec || sa.st_mtim.tv_nsec != sb.st_mtim.tv_nsec)
		fail_msg("%s and %s have different times", a, b);
	if (S_ISLNK(sa.st_mode))
		compare_links(a, b);
	else if (S_ISREG(sa.st_mode))
		assert_same_files(a, b);
	else if (S_ISDIR(sa.st_mode))
		assert_same_trees(a, b);
}

void assert_same_trees(const char *a, const char *b)
{
	DIR *dir = opendir(a);
	struct dirent *d;

	if (!dir)
		fail_msg("%s: %s", a, strerror(errno));
	if (entries(a) != entries(b))
		fail_msg("%s has %d entries, %s has %d", a, entries(a), b, entries(b));
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			compare_one(below(a, d->d_name).text, below(b, d->d_name).text);
	closedir(dir);
}
