/* SPDX-License-Identifier: MIT
 * gridcoll cp --resume, without a job: what is there need not come again, if it is what it seems.
 * All copies are compared with their source. */
#include "tests/harness.h"
#include "tests/tools/cp_set.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *part_of(struct set *s, uint32_t file)
{
	char *path = gct_cp_sink_part(&s->sink, file);

	assert_non_null(path);
	return path;
}

static void nothing_is_there(void **state)
{
	assert_true(go_on(*state) == 0);
}

static void any_place_to_stop(void **state)
{
	struct set *s = *state;
	const struct {
		uint64_t stop, had;
	} cases[] = {{1, 0}, {B - 1, 0}, {B, B}, {3 * B + 5, 3 * B}, {NBYTES, NBYTES},
		{NBYTES + 3, NBYTES}, {NBYTES + 4, NBYTES + 4}, {NBYTES + 8, NBYTES + 8},
		{NBYTES + 8 + B - 1, NBYTES + 8}, {NBYTES + 8 + B, NBYTES + 8 + B},
		{NBYTES + 12 + B, NBYTES + 12 + B}};
	struct gci_error e = {0};
	size_t i;
	int k;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		gct_cp_sink_close(&s->sink);
		for (k = 0; k < 3; k++)
			unlink(in_scratch("out/%d", k));
		gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e);
		write_to(s, cases[i].stop);
		if (go_on(s) != cases[i].had)
			fail_msg("stopped at %llu", (unsigned long long)cases[i].stop);
	}
}

/* Up to the block that is damaged, all is used; nothing behind it. */
static void damage_is_found(void **state)
{
	struct set *s = *state;
	char *part = part_of(s, 0);

	write_to(s, 4 * B + 77);
	flip(part, 2 * B + 99);
	assert_true(go_on(s) == 2 * B);
	free(part);
}

/* Of a whole file, too, though its size and time are right; it is not written into. */
static void a_whole_file_is_damaged(void **state)
{
	struct set *s = *state;

	write_to(s, s->m.stream_nbytes);
	flip_in_secret(in_scratch("out/0"), NBYTES / 2);
	assert_int_equal(link(in_scratch("out/0"), in_scratch("other")), 0);
	assert_true(go_on(s) == 0);
	flip(in_scratch("other"), NBYTES / 2);
	assert_int_equal(look(in_scratch("other")).st_size, NBYTES);
}

/* Not even root may write to what is read-only, until it is called with 1. */
static void override_modes(int may)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];
	const uint32_t bits = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;

	assert_int_equal(syscall(SYS_capget, &h, d), 0);
	d[0].effective = may ? d[0].effective | (d[0].permitted & bits) : d[0].effective & ~bits;
	assert_int_equal(syscall(SYS_capset, &h, d), 0);
}

/* A part that has its file's mode already, when what came before its name took the process's life. */
static void a_part_is_read_only(void **state)
{
	struct set *s = *state;
	char *part = part_of(s, 0);
	uint64_t had;

	write_to(s, 3 * B + 5);
	gct_cp_sink_close(&s->sink);
	assert_int_equal(chmod(part, 0444), 0);
	override_modes(0);
	had = go_on(s);
	override_modes(1);
	assert_true(had == 3 * B);
	free(part);
}

/* What was longer, or is of another file: rests of it must not show where the source has zeros. */
static void rests_of_another_file(void **state)
{
	struct set *s = *state;
	char *part = part_of(s, 0);

	make_hole(s, 0);
	make_file(part, NBYTES + B, 99);
	assert_true(go_on(s) == 0);
	free(part);
}

static void refuse_to_start(struct set *s, const char *why)
{
	struct gci_error e = {0};

	gct_cp_sink_close(&s->sink);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	assert_int_not_equal(gct_cp_sink_start(&s->sink, &e), 0);
	if (!strstr(e.text, why))
		fail_msg("%s", e.text);
}

/* Whoever can write to the directory cannot make us write elsewhere. */
static void what_is_planted_is_refused(void **state)
{
	struct set *s = *state;
	char *part = part_of(s, 0);

	make_text(in_scratch("victim"), "do not touch");
	assert_int_equal(symlink(in_scratch("victim"), part), 0);
	assert_int_equal(gct_cp_claim(&s->sink, &s->has), 0);
	refuse_to_start(s, "Too many levels of symbolic links");
	unlink(part);
	assert_int_equal(link(in_scratch("victim"), part), 0);
	refuse_to_start(s, "not a file of this user's alone");
	unlink(part);
	assert_int_equal(mkfifo(part, 0600), 0);
	assert_int_equal(gct_cp_claim(&s->sink, &s->has), 0);
	refuse_to_start(s, "not a file of this user's alone");
	assert_text(in_scratch("victim"), "do not touch");
	unlink(part);
	free(part);
}

/* As SIGKILL leaves it: the length is the whole file's, but behind what was written is a hole. */
static void what_was_not_written_is_not_claimed(void **state)
{
	struct set *s = *state;

	write_to(s, 3 * B + 5);
	close(s->sink.fd);
	s->sink.fd = -1;
	assert_int_equal(claim(s), 4);
	assert_true(go_on(s) == 3 * B);
}

/* Every set of files that all have: the stream is the others, and ends after the last of them. */
static void what_all_have_is_not_in_the_stream(void **state)
{
	static const uint64_t sizes[] = {NBYTES, 0, B};
	struct set *s = *state;
	struct gct_cp_point p, q;
	struct stat was[3];
	uint64_t left_out, at, had;
	uint32_t i;

	for (left_out = 0; left_out < 8; left_out++) {
		for (i = 0; i < 3; i++)
			s->m.files[i].is_there = 0;
		gct_cp_manifest_add_up(&s->m);
		go_on(s);
		for (i = at = had = 0; i < 3; i++) {
			s->m.files[i].is_there = gct_cp_is_in(&left_out, i);
			had += gct_cp_is_in(&left_out, i) ? sizes[i] : 0;
			assert_true(gct_cp_stream_at(&s->m, i, 0) == at);
			gct_cp_point_of(&s->m, at, &q);
			assert_true(q.offset == 0 && q.file >= i);
			at += gct_cp_is_in(&left_out, i) ? 0 : sizes[i] + GCT_CP_TRAILER;
			was[i] = look(in_scratch("out/%u", i));
			if (!gct_cp_is_in(&left_out, i))
				make_text(in_scratch("out/%u", i), "an old one");
		}
		gct_cp_manifest_add_up(&s->m);
		assert_true(s->m.stream_nbytes == at);
		claim(s);
		assert_true(s->has == left_out);
		p = verify(s, s->nblocks);
		assert_true(s->has == left_out);
		assert_true(gct_cp_had(&s->m, &p) == had);
		write_rest(s, &p);
		for (i = 0; i < 3; i++)
			assert_int_equal(look(in_scratch("out/%u", i)).st_ino == was[i].st_ino,
				gct_cp_is_in(&left_out, i));
	}
}

/* Of files behind one that is missing, only those that are asked about are summed and compared. */
static void files_behind_a_missing_one(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};
	uint64_t two = 4;
	struct gct_cp_point p;

	go_on(s);
	unlink(in_scratch("out/0"));
	assert_int_equal(claim(s), 0);
	assert_true(s->has == 6);
	assert_int_equal(gct_cp_reach(&s->m, &s->has, 0), 7);
	memset(s->crcs, 0, sizeof(s->crcs));
	unlink(s->paths[0]);
	assert_int_equal(gct_cp_sum_blocks(&s->m, s->crcs, 0, &s->has, NULL, &e), 0);
	assert_true(!s->crcs[0] && !s->crcs[5] && s->crcs[6]);
	p = verify(s, 7);
	assert_true(s->has == 6 && !p.file && !p.offset);
	/* Changed, but for size and time; or too short by now. */
	flip_in_secret(in_scratch("out/2"), B / 2);
	verify(s, 7);
	assert_true(s->has == 2);
	s->has = two;
	assert_int_equal(truncate(in_scratch("out/2"), 5), 0);
	verify(s, 7);
	assert_true(s->has == 0);
	/* Changed at rank 0 meanwhile. */
	make_text(s->paths[2], "changed");
	s->crcs[6] = 0;
	assert_int_equal(gct_cp_sum_blocks(&s->m, s->crcs, 0, &two, NULL, &e), GCOLL_ERR_IO);
}

/* ---- a directory that others use as well; each of them has descriptors of its own, as another
 * process has, which is all that a lock looks at */

static void (*before_lock)(struct set *s), (*before_name)(struct set *s);
static struct set *hooked;
static int lock_fails; /* errno */

static void run_hook(void (**hook)(struct set *s))
{
	void (*f)(struct set * s) = *hook;

	*hook = NULL;
	if (f)
		f(hooked);
}

/* In place of libc's. */
int flock(int fd, int how)
{
	run_hook(&before_lock);
	if (lock_fails) {
		errno = lock_fails;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, how);
}

int renameat(int from, const char *old, int to, const char *new)
{
	run_hook(&before_name);
	return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

static int unhook(void **state)
{
	before_lock = before_name = NULL;
	lock_fails = 0;
	return set_free(state);
}

#define H(f) cmocka_unit_test_setup_teardown(f, set_make, unhook)

static int lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	if (!syscall(SYS_flock, fd, LOCK_EX | LOCK_NB))
		return fd;
	assert_int_equal(errno, EWOULDBLOCK);
	close(fd);
	return -1;
}

/* What another process is at work on is left alone, and no part is left by who does not have it. */
static void a_part_that_another_has(void **state)
{
	struct set *s = *state;
	struct gct_cp_sink other;
	struct gci_error e = {0};
	struct gct_cp_point p;
	char *part = part_of(s, 0);

	write_to(s, 2 * B + 5);
	other = s->sink;
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	assert_int_equal(gct_cp_claim(&s->sink, &s->has), 0);
	p = verify(s, 0);
	assert_true(!p.file && !p.offset);
	assert_int_equal(gct_cp_sink_resume(&s->sink, &p, &e), 0);
	assert_int_equal(gct_cp_sink_start(&s->sink, &e), 0);
	write_to(s, 4 * B);
	gct_cp_sink_close(&s->sink);
	assert_int_equal(entries(s->out), 1);
	/* Nor does it when the other has gone meanwhile, with what nobody has compared. */
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	assert_int_equal(gct_cp_claim(&s->sink, &s->has), 0);
	gct_cp_sink_close(&other);
	assert_int_equal(gct_cp_sink_start(&s->sink, &e), 0);
	write_to(s, s->m.stream_nbytes);
	assert_int_equal(gct_cp_sink_finish(&s->sink, &e), 0);
	assert_same_files(s->paths[0], in_scratch("out/0"));
	assert_int_equal(look(part).st_size, 2 * B + 5);
	assert_int_equal(entries(s->out), 4);
	unlink(in_scratch("out/0"));
	assert_true(go_on(s) == 2 * B);
	free(part);
}

/* From the first look at it until it has its name. */
static int was_locked;

static void look_at_the_lock(struct set *s)
{
	char *part = part_of(s, 0);
	int fd = lock(part);

	was_locked = fd < 0;
	if (fd >= 0)
		close(fd);
	free(part);
}

static void a_part_stays_locked(void **state)
{
	struct set *s = *state;
	struct gct_cp_point p;
	struct gci_error e = {0};
	char *part = part_of(s, 0);
	int fd;

	hooked = s;
	write_to(s, 2 * B);
	assert_int_equal(lock(part), -1);
	assert_int_equal(claim(s), 2);
	assert_int_equal(lock(part), -1);
	p = verify(s, 2);
	assert_int_equal(lock(part), -1);
	assert_int_equal(gct_cp_sink_resume(&s->sink, &p, &e), 0);
	assert_int_equal(gct_cp_sink_start(&s->sink, &e), 0);
	assert_int_equal(lock(part), -1);
	before_name = look_at_the_lock;
	was_locked = 0;
	write_to(s, s->m.stream_nbytes);
	assert_null(before_name);
	assert_true(was_locked);
	/* Whole, it is nobody's. */
	fd = lock(in_scratch("out/0"));
	assert_true(fd >= 0);
	close(fd);
	free(part);
}

static void give_the_part_its_name(struct set *s)
{
	char *part = part_of(s, 0);

	assert_int_equal(rename(part, in_scratch("out/0")), 0);
	free(part);
}

/* Another has finished the file when we get the lock: what we have open is not ours to write to. */
static void a_part_that_gets_its_name(void **state)
{
	struct set *s = *state;
	struct gci_error e = {0};
	char *part = part_of(s, 0);

	hooked = s;
	make_file(part, NBYTES, 99);
	before_lock = give_the_part_its_name;
	assert_int_equal(claim(s), 0);
	assert_null(before_lock);
	make_file(in_scratch("same"), NBYTES, 99);
	assert_int_equal(run_shell("cmp -s %s %s", in_scratch("same"), in_scratch("out/0")), 0);
	/* Nor where it is made if it is missing. */
	assert_int_equal(rename(in_scratch("out/0"), part), 0);
	gct_cp_sink_close(&s->sink);
	assert_int_equal(gct_cp_sink_init(&s->sink, &s->m, s->out, 1, GCT_CP_KEEP, &e), 0);
	before_lock = give_the_part_its_name;
	assert_int_equal(gct_cp_sink_start(&s->sink, &e), 0);
	assert_null(before_lock);
	write_to(s, 3 * B);
	assert_int_equal(run_shell("cmp -s %s %s", in_scratch("same"), in_scratch("out/0")), 0);
	assert_int_equal(entries(s->out), 2);
	assert_true(go_on(s) == 3 * B);
	free(part);
}

/* Without locks nobody could tell whose a part is: there is none. */
static void a_file_system_without_locks(void **state)
{
	static const int errors[] = {ENOLCK, EOPNOTSUPP, ENOSYS};
	struct set *s = *state;
	struct gci_error e = {0};
	char *part = part_of(s, 0);
	size_t i;
	int k;

	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		make_file(part, NBYTES, 99);
		lock_fails = errors[i];
		assert_int_equal(claim(s), 0);
		assert_int_equal(s->sink.lock_errno, errors[i]);
		assert_int_equal(gct_cp_sink_start(&s->sink, &e), 0);
		write_to(s, 3 * B);
		gct_cp_sink_close(&s->sink);
		assert_int_equal(entries(s->out), 1);
		unlink(part);
		assert_true(go_on(s) == 0);
		for (k = 0; k < 3; k++)
			unlink(in_scratch("out/%d", k));
	}
	free(part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(nothing_is_there),
		S(any_place_to_stop),
		S(damage_is_found),
		S(a_whole_file_is_damaged),
		S(a_part_is_read_only),
		S(rests_of_another_file),
		S(what_is_planted_is_refused),
		S(what_was_not_written_is_not_claimed),
		S(what_all_have_is_not_in_the_stream),
		S(files_behind_a_missing_one),
		H(a_part_that_another_has),
		H(a_part_stays_locked),
		H(a_part_that_gets_its_name),
		H(a_file_system_without_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
