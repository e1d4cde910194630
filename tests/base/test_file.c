/* SPDX-License-Identifier: MIT */
#include "tests/base/files.h"

#include "base/mem.h"
#include "base/private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_text(const char *path, const char *want)
{
	struct gci_error e = {0};
	struct gci_buf b = {0};

	assert_int_equal(gci_file_read(path, 1000, &b, &e), 0);
	assert_string_equal(gci_buf_cstr(&b), want);
	gci_buf_free(&b);
}

static void read_whole(void **state)
{
	struct gci_error e = {0};
	struct gci_buf b = {0};

	(void)state;
	assert_int_equal(files_put("a", "0123456789", &e), 0);
	assert_int_equal(gci_file_read("a", 10, &b, &e), 0);
	assert_int_equal(b.len, 10);
	gci_buf_free(&b);
	assert_int_equal(gci_file_read("a", 9, &b, &e), GCOLL_ERR_PARSE);
	assert_string_equal(e.text, "a:1: larger than 9 bytes");
	gci_buf_free(&b);
	gci_error_clear(&e);
	assert_int_equal(gci_file_read("b", 9, &b, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot read b: No such file or directory");
	gci_error_clear(&e);
	assert_int_equal(gci_file_read(".", 9, &b, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot read .: Is a directory");
	gci_error_clear(&e);
	assert_int_equal(gci_file_read("", 9, &b, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot read \"\": No such file or directory");
}

/* One process after another, as by `gridcoll plan -p <(...)` and mkfifo; and nobody. */
static void pipes(void **state)
{
	struct gci_error e = {0};
	struct gci_buf b = {0};
	int fd;

	(void)state;
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(system("(sleep 0.2; printf late >pipe) &"), 0);
	assert_text("pipe", "late");
	assert_int_equal(system("(exec >pipe; sleep 3.5; printf slow) &"), 0);
	assert_text("pipe", "slow");
	assert_int_equal(gci_file_read("pipe", 9, &b, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot read pipe: a pipe that nobody has opened to write to");
	fd = open("pipe", O_RDWR | O_CLOEXEC);
	assert_in_range(fd, 0, 1000);
	assert_int_equal(write(fd, "0123456789", 10), 10);
	gci_error_clear(&e);
	assert_int_equal(gci_file_read("pipe", 9, &b, &e), GCOLL_ERR_PARSE);
	gci_buf_free(&b);
	close(fd);
}

/* Whoever has the old file open still reads the old one; permissions stay. */
static void replaced_whole(void **state)
{
	struct gci_error e = {0};
	char old[8] = "";
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(files_put("a", "old", &e), 0);
	assert_int_equal(chmod("a", 0640), 0);
	fd = open("a", O_RDONLY | O_CLOEXEC);
	assert_int_equal(files_put("a", "new one", &e), 0);
	assert_text("a", "new one");
	assert_int_equal(read(fd, old, sizeof(old)), 3);
	assert_string_equal(old, "old");
	close(fd);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(files_count(), 1);
}

/* A text that is not all there, or no memory: the old file stays, and nothing beside it. */
static void failures_change_nothing(void **state)
{
	struct gci_error e = {0};
	struct gci_buf b = {.failed = 1};
	unsigned long n;

	(void)state;
	assert_int_equal(files_put("a", "old", &e), 0);
	assert_int_equal(gci_file_write("a", &b, &e), GCOLL_ERR_NOMEM);
	for (n = 1;; n++) {
		int rc;

		gci_mem_fail_at(n);
		rc = files_put("a", "new", &e);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		assert_text("a", "old");
	}
	gci_mem_fail_at(0);
	assert_text("a", "new");
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(files_put("d", "x", &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot write d: Is a directory");
	assert_int_equal(files_put("none/x", "x", &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot write none/x: No such file or directory");
	assert_int_equal(files_put("/dev/full", "x", &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot write /dev/full: No space left on device");
	assert_int_equal(files_put("-", "x", &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "cannot write -, expected a file: /dev/stdout is standard "
				    "output, ./- is called so");
	assert_int_equal(files_count(), 2);
	assert_int_equal(files_put("./-", "x", &e), 0);
	assert_int_equal(unlink("-"), 0);
}

static void links_and_devices_stay(void **state)
{
	struct gci_error e = {0};
	struct stat st;

	(void)state;
	assert_int_equal(files_put("a", "old", &e), 0);
	assert_int_equal(symlink("a", "link"), 0);
	assert_int_equal(files_put("link", "new", &e), 0);
	assert_text("a", "new");
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(files_put("/dev/null", "x", &e), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void checked_beforehand(void **state)
{
	struct gci_error e = {0};

	(void)state;
	assert_int_equal(gci_file_check("a", &e), 0);
	assert_int_equal(files_count(), 0);
	assert_int_equal(files_put("a", "old", &e), 0);
	assert_int_equal(gci_file_check("a", &e), 0);
	assert_text("a", "old");
	assert_int_equal(gci_file_check("/dev/null", &e), 0);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(gci_file_check("pipe", &e), 0);
	assert_int_equal(gci_file_check("none/x", &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot write none/x: No such file or directory");
	gci_error_clear(&e);
	assert_int_equal(gci_file_check(".", &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot write .: Is a directory");
}

/* True if it is refused with a reason that has `words` in it. */
static int refused(const char *path, const char *words)
{
	struct gci_error e = {0};
	struct gci_buf b = {0};
	int rc = gci_private_read(path, 100, &b, &e);

	gci_buf_free(&b);
	return rc && strstr(e.text, words) != NULL;
}

static void for_the_owner_alone(void **state)
{
	static const mode_t open_to_others[] = {0640, 0620, 0610, 0604, 0602, 0601, 0666};
	struct gci_error e = {0};
	struct gci_buf b = {0};
	struct stat st;
	size_t i;

	(void)state;
	gci_buf_put(&b, "secret", 6);
	assert_int_equal(gci_private_create("a", &b, &e), 0);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(gci_private_create("a", &b, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot make a: File exists");
	gci_error_clear(&e);
	gci_buf_free(&b);
	assert_int_equal(symlink("a", "link"), 0);
	assert_int_equal(gci_private_read("link", 6, &b, &e), 0);
	assert_string_equal(gci_buf_cstr(&b), "secret");
	gci_buf_free(&b);
	assert_int_equal(gci_private_read("a", 5, &b, &e), GCOLL_ERR_PARSE);
	gci_buf_free(&b);
	for (i = 0; i < sizeof(open_to_others) / sizeof(*open_to_others); i++) {
		assert_int_equal(chmod("a", open_to_others[i]), 0);
		/* root's own may be for a group */
		if (geteuid() || open_to_others[i] != 0640)
			assert_true(refused("a", "a: others may read or write it"));
	}
	assert_int_equal(chmod("a", 0600), 0);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_true(refused("pipe", "pipe: expected a regular file"));
	assert_true(refused("none", "cannot read none: No such file or directory"));
	if (!geteuid()) {
		assert_int_equal(chown("a", 65534, 65534), 0);
		assert_true(refused("a", "a: it belongs to another user"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read_whole, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(pipes, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(replaced_whole, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(
			failures_change_nothing, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(
			links_and_devices_stay, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(checked_beforehand, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(for_the_owner_alone, files_setup, files_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
