/* SPDX-License-Identifier: MIT
 * Memory for secrets, and how children by fork are told. */
#include "base/mem.h"

#include "tests/failing/failing.h"
#include "tests/test.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 2000

/* In a child: whether `look` finds what it should. */
static int in_child(int (*look)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(!look());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return !status;
}

static uint8_t *keys[MANY];

static size_t size_of(int i)
{
	return (size_t)i * 37 % GCI_SECRET_MOST;
}

/* All are zero, and the child can have memory of its own. */
static int keys_are_wiped(void)
{
	uint8_t any = 0, *own;
	size_t k;
	int i;

	for (i = 0; i < MANY; i++)
		for (k = 0; k < size_of(i); k++)
			any |= keys[i][k];
	for (i = 0; i < MANY; i++) {
		own = gci_secret_alloc(size_of(i));
		if (!own)
			return 0;
		for (k = 0; k < size_of(i); k++)
			any |= own[k];
		memset(own, 1, size_of(i));
		if (i % 2)
			gci_secret_free(own);
		gci_secret_free(keys[i]); /* nothing */
	}
	return !any;
}

static void expect_keys(void)
{
	size_t k;
	int i;

	for (i = 0; i < MANY; i++)
		for (k = 0; k < size_of(i); k++)
			assert_int_equal(keys[i][k], (uint8_t)(i + 1));
}

static void make_keys(void)
{
	int i;

	for (i = 0; i < MANY; i++) {
		keys[i] = gci_secret_alloc(size_of(i));
		assert_non_null(keys[i]);
		assert_int_equal((uintptr_t)keys[i] % 64, 0);
		memset(keys[i], i + 1, size_of(i));
	}
}

static void drop_keys(void)
{
	int i;

	for (i = 0; i < MANY; i++)
		gci_secret_free(keys[i]);
}

/* First, before there is any area: a kernel that does not wipe leaves it to us. */
static void wiped_without_the_kernel(void **state)
{
	(void)state;
	failing_from(FAILING_madvise, 1, EINVAL);
	make_keys();
	assert_true(failing_happened(FAILING_madvise));
	failing_at(FAILING_madvise, 0, 0);
	assert_true(in_child(keys_are_wiped));
	expect_keys(); /* and kept: what comes next is in another area */
}

/* What the kernel says of the pages at p; -1: nothing. */
static int has_flag(const void *p, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	int here = 0, has = -1;
	char line[512];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (here && !strncmp(line, "VmFlags:", 8))
			has = strstr(line, flag) != NULL;
	}
	fclose(f);
	return has;
}

static void wiped_by_the_kernel(void **state)
{
	(void)state;
	make_keys(); /* in what there is, and in a new area */
	if (has_flag(keys[MANY - 1], " dd") < 0)
		skip(); /* an emulator's kernel */
	assert_int_equal(has_flag(keys[MANY - 1], " dd"), 1);
	assert_int_equal(has_flag(keys[MANY - 1], " wf"), 1);
	assert_true(in_child(keys_are_wiped));
	expect_keys();
	drop_keys();
}

#define BLOCK (256 << 10)
#define MOST  32

static void expect_pattern(uint8_t *const *p, int n)
{
	int i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < BLOCK; k += 4096)
			assert_int_equal(p[i][k], i + 1);
}

/* More than the area holds at once, then the last one that came back is the next. */
static void large_blocks(void **state)
{
	struct gci_blocks blocks = {.size = BLOCK, .most = MOST};
	uint8_t *p[MOST + 8], *again;
	int i, round;

	(void)state;
	gci_blocks_give(&blocks, NULL);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < MOST + 8; i++) {
			p[i] = gci_blocks_take(&blocks);
			assert_non_null(p[i]);
			memset(p[i], i + 1, BLOCK);
		}
		expect_pattern(p, MOST + 8);
		again = p[3];
		gci_blocks_give(&blocks, p[3]);
		p[3] = gci_blocks_take(&blocks);
		assert_true(p[3] == again || !GCI_BLOCKS_HAVE_AREAS);
		memset(p[3], 4, BLOCK);
		for (i = MOST + 7; i >= 0; i--) {
			expect_pattern(p, i + 1);
			gci_blocks_give(&blocks, p[i]);
		}
		assert_int_equal(blocks.nused, 0);
	}
	gci_blocks_drain(&blocks);
	gci_mem_fail_at(1);
	assert_null(gci_blocks_take(&blocks));
	assert_true(gci_mem_failed());
	assert_int_equal(blocks.nused, 0);
	if (!GCI_BLOCKS_HAVE_AREAS)
		return;
	/* Without an area blocks are the C library's. */
	gci_blocks_drain(&blocks);
	failing_from(FAILING_mmap64, 1, ENOMEM);
	p[0] = gci_blocks_take(&blocks);
	assert_true(failing_happened(FAILING_mmap64));
	failing_at(FAILING_mmap64, 0, 0);
	assert_non_null(p[0]);
	assert_null(blocks.area);
	memset(p[0], 1, BLOCK);
	gci_blocks_give(&blocks, p[0]);
	/* Small pages, and an area that is mapped a little too long, do as well. */
	failing_from(FAILING_madvise, 1, EINVAL);
	failing_from(FAILING_munmap, 1, ENOMEM);
	p[0] = gci_blocks_take(&blocks);
	assert_non_null(p[0]);
	memset(p[0], 1, BLOCK);
	assert_true(failing_happened(FAILING_madvise) && failing_happened(FAILING_munmap));
	failing_at(FAILING_madvise, 0, 0);
	failing_at(FAILING_munmap, 0, 0);
	gci_blocks_give(&blocks, p[0]);
	gci_blocks_drain(&blocks);
}

/* Where more are in use than the area holds, the C library is not asked for each. */
static void blocks_beyond(void **state)
{
	struct gci_blocks blocks = {.size = 4096, .most = 4};
	void *p[8];
	int i;

	(void)state;
	if (!GCI_BLOCKS_HAVE_AREAS)
		skip();
	for (i = 0; i < 8; i++)
		assert_non_null(p[i] = gci_blocks_take(&blocks));
	gci_blocks_give(&blocks, p[6]);
	gci_blocks_give(&blocks, p[7]);
	gci_mem_fail_at(1);
	assert_ptr_equal(gci_blocks_take(&blocks), p[7]);
	assert_ptr_equal(gci_blocks_take(&blocks), p[6]);
	assert_null(gci_blocks_take(&blocks));
	assert_true(gci_mem_failed());
	for (i = 0; i < 8; i++)
		gci_blocks_give(&blocks, p[i]);
	assert_null(blocks.beyond); /* none is in use */
	gci_blocks_drain(&blocks);
}

/* The first 2 MiB of a modest area are of small pages, the rest of large ones. */
static void modest_blocks(void **state)
{
	struct gci_blocks blocks = {.size = 1 << 20, .most = 8, .is_modest = 1};
	void *p[4];
	int i;

	(void)state;
	if (!GCI_BLOCKS_HAVE_AREAS || access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK))
		skip();
	for (i = 0; i < 4; i++)
		assert_non_null(p[i] = gci_blocks_take(&blocks));
	for (i = 0; i < 4; i++) {
		assert_int_equal(has_flag(p[i], " nh"), i < 2);
		assert_int_equal(has_flag(p[i], " hg"), i >= 2);
		gci_blocks_give(&blocks, p[i]);
	}
	gci_blocks_drain(&blocks);
}

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, resident = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
	fclose(f);
	return resident;
}

/* Resident bytes that 64 MiB of blocks leave behind when none is in use any more. */
static long left_of_blocks(int stays)
{
	struct gci_blocks blocks = {.size = 1 << 20, .most = 64, .stays = stays};
	long before = resident_pages(), page = sysconf(_SC_PAGESIZE), left;
	void *p[64];
	int i;

	for (i = 0; i < 64; i++) {
		p[i] = gci_blocks_take(&blocks);
		assert_non_null(p[i]);
		memset(p[i], 1, blocks.size);
	}
	assert_true((resident_pages() - before) * page > 60 << 20);
	for (i = 0; i < 64; i++)
		gci_blocks_give(&blocks, p[i]);
	left = (resident_pages() - before) * page;
	gci_blocks_drain(&blocks);
	return left;
}

static void idle_blocks_are_the_kernels(void **state)
{
	(void)state;
	if (TEST_SANITIZED)
		skip(); /* they keep what is freed */
	assert_true(left_of_blocks(0) < 8 << 20);
	assert_true(left_of_blocks(1) > 60 << 20);
}

/* Blocks come again zeroed, and memory does not grow. */
static void blocks_come_again(void **state)
{
	const uint8_t *first = gci_secret_alloc(100);
	uint8_t *p = NULL;
	int i, k;

	(void)state;
	for (i = 0; i < 100000; i++) {
		p = gci_secret_alloc(100);
		for (k = 0; k < 100; k++)
			assert_int_equal(p[k], 0);
		memset(p, 7, 100);
		gci_secret_free(p);
	}
	assert_true(p - first < 1 << 20 && first - p < 1 << 20);
	gci_secret_free((void *)(uintptr_t)first);
	gci_secret_free(NULL);
	assert_null(gci_secret_alloc(GCI_SECRET_MOST + 1));
	gci_mem_fail_at(1);
	assert_null(gci_secret_alloc(1));
	assert_true(gci_mem_failed());
}

static void no_more_memory(void **state)
{
	static void *p[100000];
	int i, n = 0;

	(void)state;
	failing_from(FAILING_mmap64, 1, ENOMEM);
	while (n < 100000 && (p[n] = gci_secret_alloc(GCI_SECRET_MOST)))
		n++;
	assert_true(n < 100000);
	failing_at(FAILING_mmap64, 0, 0);
	p[n] = gci_secret_alloc(GCI_SECRET_MOST);
	assert_non_null(p[n]);
	for (i = 0; i <= n; i++)
		gci_secret_free(p[i]);
}

static int is_told(void)
{
	return gci_fork_is_child() && in_child(gci_fork_is_child);
}

static int is_not_told(void)
{
	return !gci_fork_is_child();
}

static void forks_are_told(void **state)
{
	(void)state;
	assert_true(in_child(is_not_told)); /* nobody has asked */
	assert_int_equal(gci_fork_watch(), 0);
	assert_int_equal(gci_fork_watch(), 0);
	assert_false(gci_fork_is_child());
	assert_true(in_child(is_told));
	assert_false(gci_fork_is_child());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wiped_without_the_kernel),
		cmocka_unit_test(wiped_by_the_kernel),
		cmocka_unit_test(blocks_come_again),
		cmocka_unit_test(large_blocks),
		cmocka_unit_test(blocks_beyond),
		cmocka_unit_test(modest_blocks),
		cmocka_unit_test(idle_blocks_are_the_kernels),
		cmocka_unit_test(no_more_memory),
		cmocka_unit_test(forks_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
