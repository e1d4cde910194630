/* SPDX-License-Identifier: MIT
 * Classes of HTB on a device of a network namespace of the test's own: made, changed, shared, taken
 * away again; and nobody else's queue is touched. */
#include "tests/test.h"

#include "shaping/htb.h"
#include "shaping/mark.h"
#include "shaping/qdisc.h"

#include <linux/pkt_sched.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int allowed;

static void need_rights(void)
{
	if (!allowed)
		skip();
}

/* The root queue's kind; "": the kernel's own. */
static const char *root(void)
{
	static struct gci_qdisc q[GCI_QDISCS];
	int i, n = gci_qdisc_list((int)if_nametoindex("d0"), q, NULL);

	assert_true(n >= 0);
	for (i = 0; i < n; i++)
		if (q[i].parent == TC_H_ROOT && q[i].handle)
			return q[i].kind;
	return "";
}

static int classes_say(const char *what)
{
	char command[128];

	snprintf(command, sizeof(command), "tc class show dev d0 | grep -q '%s'", what);
	return !system(command);
}

static void classes_come_and_go(void **state)
{
	struct gci_htb a, b;

	(void)state;
	need_rights();
	assert_string_equal(root(), "");
	assert_int_equal(gci_htb_open(&a, "d0", NULL), 0);
	assert_string_equal(root(), "htb");
	assert_int_equal(gci_htb_class(&a, 2, 4000000, NULL), 0);
	assert_true(classes_say("class htb 6c1d:2 .*rate 4Mbit"));
	assert_int_equal(gci_htb_class(&a, 2, 40000000000ull, NULL), 0);
	assert_true(classes_say("class htb 6c1d:2 .*rate 40Gbit"));
	assert_int_equal(gci_htb_open(&b, "d0", NULL), 0);
	gci_htb_close(&a);
	assert_string_equal(root(), "htb"); /* the other one's still */
	assert_true(classes_say("6c1d:2"));
	gci_htb_close(&b);
	gci_htb_close(&b);
	assert_string_equal(root(), "");
	assert_int_equal(gci_htb_priority(2), 0x6c1d0002);
}

static void what_a_dead_process_left(void **state)
{
	struct gci_htb h;
	int status;
	pid_t pid;

	(void)state;
	need_rights();
	pid = fork();
	if (!pid)
		_exit(gci_htb_open(&h, "d0", NULL) || gci_htb_class(&h, 7, 8000000, NULL));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(classes_say("6c1d:7"));
	assert_int_equal(gci_htb_open(&h, "d0", NULL), 0);
	assert_false(classes_say("6c1d:7"));
	gci_htb_close(&h);
	assert_string_equal(root(), "");
}

static void queues_of_others(void **state)
{
	struct gci_error e = {0};
	struct gci_htb h;

	(void)state;
	need_rights();
	assert_int_equal(system("tc qdisc add dev d0 root handle 5: pfifo limit 77"), 0);
	assert_int_equal(gci_htb_open(&h, "d0", &e), GCOLL_ERR_UNSUPPORTED);
	assert_non_null(strstr(e.text, "which is left alone"));
	assert_string_equal(root(), "pfifo");
	assert_int_equal(system("tc qdisc del dev d0 root"), 0);
	gci_error_clear(&e);
	assert_int_equal(gci_htb_open(&h, "none", &e), GCOLL_ERR_UNSUPPORTED);
	gci_htb_close(&h);
}

/* Of a mark there, or nothing. */
static void mark_path(char path[64], const char *directory, const char *dev)
{
	struct stat s;

	assert_int_equal(stat("/proc/self/ns/net", &s), 0);
	snprintf(path, 64, "%s/gridcoll-htb-%llu-%s", directory, (unsigned long long)s.st_ino, dev);
}

static void what_others_do_to_marks(void **state)
{
	char path[64], spare[64];
	struct gci_error e = {0};
	struct gci_htb h;
	int fd;

	(void)state;
	need_rights();
	/* A lock that nobody gives back. */
	fd = gci_mark_open("htb", "d0");
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(gci_htb_open(&h, "d0", &e), GCOLL_ERR_UNSUPPORTED);
	assert_non_null(strstr(e.text, "locked by another process"));
	close(fd);
	/* A FIFO, which nobody writes to. */
	mark_path(path, "/run/lock", "d1");
	mark_path(spare, "/tmp", "d1");
	if (mkfifo(path, 0644))
		return;
	fd = gci_mark_open("htb", "d1");
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	unlink(spare);
	/* Another user's file. */
	fd = gci_mark_open("htb", "d1");
	assert_true(fd >= 0);
	if (!fchown(fd, 65534, 65534)) {
		gci_error_clear(&e);
		assert_int_equal(gci_htb_open(&h, "d1", &e), GCOLL_ERR_UNSUPPORTED);
		assert_non_null(strstr(e.text, "another user's"));
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_come_and_go),
		cmocka_unit_test(what_a_dead_process_left),
		cmocka_unit_test(queues_of_others),
		cmocka_unit_test(what_others_do_to_marks),
	};

	allowed = !unshare(CLONE_NEWNET) &&
		  !system("ip link add d0 type veth peer name d1 && ip link set d0 up");
	if (!allowed)
		printf("# skipped: no network namespace of our own, or no veth, to be had\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
