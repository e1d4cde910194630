/* SPDX-License-Identifier: MIT
 * Each call of the system that reading, writing and checking a file takes fails once: the n-th
 * one of its kind, for n = 1, 2, ... Then there is an error with its reason, or all went well. */
#include "tests/base/files.h"
#include "tests/failing/failing.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trial {
	enum failing what;
	int error;
	int goes_on; /* all goes well */
};

struct act {
	int (*run)(struct gci_error *e);
	const char *words; /* that its errors begin with */
	const struct trial *trials;
	size_t n;
};

static int writes(struct gci_error *e)
{
	return files_put("a", "new", e);
}

static int writes_to_a_device(struct gci_error *e)
{
	return files_put("/dev/null", "new", e);
}

static int reads(struct gci_error *e)
{
	struct gci_buf b = {0};
	int rc = gci_file_read("a", 1000, &b, e);

	if (!rc)
		assert_string_equal(gci_buf_cstr(&b), "old");
	gci_buf_free(&b);
	return rc;
}

static int reads_privately(struct gci_error *e)
{
	struct gci_buf b = {.secret = 1};
	int rc = chmod("a", 0600) ? -1 : gci_private_read("a", 1000, &b, e);

	if (!rc)
		assert_string_equal(gci_buf_cstr(&b), "old");
	gci_buf_free(&b);
	return rc;
}

/* Nothing is left of what could not be made whole. */
static int makes_privately(struct gci_error *e)
{
	struct gci_buf b = {0};
	int rc;

	gci_buf_put(&b, "new", 3);
	rc = gci_private_create("d", &b, e);
	gci_buf_free(&b);
	if (!rc)
		assert_int_equal(remove("d"), 0);
	return rc;
}

static int checks(struct gci_error *e)
{
	return gci_file_check("a", e);
}

static int checks_a_device(struct gci_error *e)
{
	return gci_file_check("/dev/null", e);
}

static void assert_text(const char *want)
{
	struct gci_error e = {0};
	struct gci_buf b = {0};

	assert_int_equal(gci_file_read("a", 1000, &b, &e), 0);
	assert_string_equal(gci_buf_cstr(&b), want);
	gci_buf_free(&b);
}

/* True if there was an n-th call. */
static int fails_at(const struct act *act, const struct trial *t, unsigned long nth)
{
	int before = failing_descriptors(), happened, rc;
	struct gci_error e = {0};
	char want[200];

	assert_int_equal(files_put("a", "old", &e), 0);
	failing_at(t->what, nth, t->error);
	rc = act->run(&e);
	happened = failing_happened(t->what);
	failing_at(t->what, 0, 0);
	if (!happened || t->goes_on) {
		assert_int_equal(rc, 0);
	} else {
		snprintf(want, sizeof(want), "%s: %s", act->words, strerror(t->error));
		assert_int_equal(rc, GCOLL_ERR_SYS);
		assert_string_equal(e.text, want);
	}
	assert_text(act->run == writes && !rc ? "new" : "old");
	assert_int_equal(files_count(), 1);
	assert_int_equal(failing_descriptors(), before);
	return happened;
}

static void each(const struct act *act)
{
	unsigned long nth;
	size_t i;

	for (i = 0; i < act->n; i++) {
		for (nth = 1; fails_at(act, &act->trials[i], nth); nth++)
			;
		if (nth == 1)
			fail_msg("%s is never called", failing_name(act->trials[i].what));
	}
}

#define EACH(run, words, trials) \
	each(&(struct act){run, words, trials, sizeof(trials) / sizeof(*(trials))})

static void a_file_is_written_or_not(void **state)
{
	static const struct trial trials[] = {
		{FAILING_lstat64, ENOMEM, 0},
		{FAILING_lstat64, EACCES, 0},
		{FAILING_open64, EMFILE, 0},
		{FAILING_open64, ENOSPC, 0},
		{FAILING_fchmod, EPERM, 0},
		{FAILING_write, ENOSPC, 0},
		{FAILING_write, EIO, 0},
		{FAILING_write, EINTR, 1},
		{FAILING_close, EIO, 0},
		{FAILING_rename, ENOSPC, 0},
		{FAILING_rename, EACCES, 0},
	};
	static const struct trial of_a_device[] = {
		{FAILING_lstat64, ENOMEM, 0},
		{FAILING_open64, EMFILE, 0},
		{FAILING_write, EIO, 0},
		{FAILING_close, EIO, 0},
	};

	(void)state;
	EACH(writes, "cannot write a", trials);
	EACH(writes_to_a_device, "cannot write /dev/null", of_a_device);
}

/* What stands beside it cannot be removed: the first reason counts. */
static void the_first_reason_counts(void **state)
{
	struct gci_error e = {0};
	char tmp[64];

	(void)state;
	assert_int_equal(files_put("a", "old", &e), 0);
	failing_at(FAILING_rename, 1, ENOSPC);
	failing_at(FAILING_unlink, 1, EIO);
	assert_int_equal(files_put("a", "new", &e), GCOLL_ERR_SYS);
	assert_true(failing_happened(FAILING_unlink));
	assert_string_equal(e.text, "cannot write a: No space left on device");
	assert_text("old");
	snprintf(tmp, sizeof(tmp), "a.%ld.new", (long)getpid());
	assert_int_equal(remove(tmp), 0);
}

/* It is not waited for whoever may come to write. */
static void a_pipe_that_cannot_be_waited_for(void **state)
{
	struct gci_error e = {0};
	struct gci_buf b = {0};

	(void)state;
	assert_int_equal(mkfifo("a", 0600), 0);
	failing_at(FAILING_poll, 1, ENOMEM);
	assert_int_equal(gci_file_read("a", 1000, &b, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot read a: a pipe that nobody has opened to write to");
	gci_error_clear(&e);
	failing_at(FAILING_poll, 1, ENOMEM);
	failing_at(FAILING_read, 1, EIO);
	assert_int_equal(gci_file_read("a", 1000, &b, &e), GCOLL_ERR_SYS);
	assert_string_equal(e.text, "cannot read a: Input/output error");
	assert_true(failing_happened(FAILING_poll));
	assert_true(failing_happened(FAILING_read));
	assert_int_equal(b.len, 0);
	gci_buf_free(&b);
}

static void a_file_is_read_or_not(void **state)
{
	static const struct trial trials[] = {
		{FAILING_open64, EMFILE, 0},
		{FAILING_open64, EACCES, 0},
		{FAILING_fstat64, EIO, 1},
		{FAILING_ioctl, ENOMEM, 0},
		{FAILING_read, EIO, 0},
		{FAILING_read, EINTR, 1},
		{FAILING_close, EINTR, 1},
	};
	struct gci_error e = {0};
	struct gci_buf b = {0};

	(void)state;
	EACH(reads, "cannot read a", trials);
	gci_mem_fail_at(1);
	assert_int_equal(gci_file_read("/dev/zero", 1 << 20, &b, &e), GCOLL_ERR_NOMEM);
	gci_mem_fail_at(0);
	gci_buf_free(&b);
}

static void a_secret_is_read_or_not(void **state)
{
	static const struct trial trials[] = {
		{FAILING_open64, EMFILE, 0},
		{FAILING_fstat64, EIO, 0},
		{FAILING_read, EIO, 0},
		{FAILING_read, EINTR, 1},
		{FAILING_close, EINTR, 1},
	};

	(void)state;
	EACH(reads_privately, "cannot read a", trials);
}

static void a_secret_is_made_or_not(void **state)
{
	static const struct trial unmade[] = {{FAILING_open64, EACCES, 0}};
	static const struct trial unwritten[] = {
		{FAILING_write, ENOSPC, 0},
		{FAILING_write, EINTR, 1},
		{FAILING_close, EIO, 0},
	};
	struct gci_error e = {0};

	(void)state;
	EACH(makes_privately, "cannot make d", unmade);
	EACH(makes_privately, "cannot write d", unwritten);
	failing_at(FAILING_write, 1, ENOSPC);
	failing_at(FAILING_unlink, 1, EIO);
	assert_int_equal(makes_privately(&e), GCOLL_ERR_SYS);
	assert_true(failing_happened(FAILING_unlink));
	assert_string_equal(e.text, "cannot write d: No space left on device");
	failing_at(FAILING_write, 0, 0);
	failing_at(FAILING_unlink, 0, 0);
	assert_int_equal(remove("d"), 0);
}

static void a_place_is_good_or_not(void **state)
{
	static const struct trial trials[] = {
		{FAILING_lstat64, ENOMEM, 0},
		{FAILING_access, EROFS, 0},
	};
	static const struct trial of_a_device[] = {
		{FAILING_lstat64, EACCES, 0},
		{FAILING_open64, EMFILE, 0},
		{FAILING_close, EIO, 1},
	};
	struct gci_error e = {0};

	(void)state;
	EACH(checks, "cannot write a", trials);
	EACH(checks_a_device, "cannot write /dev/null", of_a_device);
	gci_mem_fail_at(1);
	assert_int_equal(gci_file_check("a", &e), GCOLL_ERR_NOMEM);
	gci_error_clear(&e);
	gci_mem_fail_at(1);
	assert_int_equal(gci_file_check("./a", &e), GCOLL_ERR_NOMEM);
	gci_mem_fail_at(0);
}

/* A signal does not shorten it. */
static void a_sleep_goes_on(void **state)
{
	uint64_t start = gci_now_ns();

	(void)state;
	failing_at(FAILING_clock_nanosleep, 1, EINTR);
	gci_sleep_ns(2 * GCI_NS_PER_MS);
	assert_true(failing_happened(FAILING_clock_nanosleep));
	assert_true(gci_now_ns() - start >= 2 * GCI_NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_file_is_written_or_not, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(
			the_first_reason_counts, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(a_file_is_read_or_not, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(
			a_pipe_that_cannot_be_waited_for, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(
			a_secret_is_read_or_not, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(
			a_secret_is_made_or_not, files_setup, files_teardown),
		cmocka_unit_test_setup_teardown(
			a_place_is_good_or_not, files_setup, files_teardown),
		cmocka_unit_test(a_sleep_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
