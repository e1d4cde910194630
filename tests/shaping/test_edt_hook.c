/* SPDX-License-Identifier: MIT
 * Who holds the program's classes, and where it is attached, in a network namespace of our own.
 * Skipped by name where that is not allowed. */
#include "tests/shaping/edt_program.h"
#include "tests/test.h"

#include "shaping/edt_hook.h"
#include "shaping/trie.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- classes and holders */

static uint64_t rate_of(struct edt_program *l, int number)
{
	struct gci_edt_rate r;

	assert_int_equal(gci_edt_tables_rate(&l->tables, number, &r), 0);
	return r.bps;
}

static void test_holders(void **state)
{
	struct gci_hold a, b, c;
	struct gci_error e = {0};
	struct gci_edt_rate r;
	struct gci_net net, out[4];
	struct edt_program l;
	unsigned left;
	int n, standing;

	(void)state;
	if (!edt_allowed())
		skip();
	edt_load(&l);
	assert_int_equal(gci_hold_open(&a, &e) | gci_hold_open(&b, &e) | gci_hold_open(&c, &e), 0);
	assert_int_equal(gci_hold_join(&a, &e) | gci_hold_join(&b, &e), 0);
	assert_true(a.id && b.id && a.id != b.id);
	assert_true(gci_hold_lives(&a, b.id) && gci_hold_lives(&b, a.id));

	n = gci_edt_tables_class(&l.tables, "tokyo", &e);
	assert_int_equal(gci_net_parse(&net, "10.2.0.0/16", &e), 0);
	assert_int_equal(gci_edt_tables_route(&l.tables, n, &net, 1, &e), 0);
	assert_int_equal(gci_edt_tables_ask(&l.tables, &a, n, 4000, &e), 0);
	assert_int_equal(gci_edt_tables_ask(&l.tables, &b, n, 3000, &e), 0);
	assert_int_equal(gci_edt_tables_settle(&l.tables, &a, &left, &e), 0);
	assert_int_equal(left, 2);
	assert_int_equal(rate_of(&l, n), 3000);
	assert_int_equal(gci_edt_tables_holders(&l.tables, n, &standing), 2);
	assert_false(standing);

	/* One net, one class. */
	assert_int_equal(gci_edt_tables_class(&l.tables, "tokyo", &e), n);
	assert_int_equal(gci_edt_tables_route(&l.tables, n, &net, 1, &e), 0);
	assert_int_equal(gci_trie_list(l.tables.nets, n, out, 4), 1);
	assert_int_equal(gci_edt_tables_route(&l.tables, n + 1, &net, 1, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "10.2.0.0/16 belongs to class tokyo already");
	gci_error_clear(&e);

	/* No limit is no lower than any. */
	assert_int_equal(gci_edt_tables_ask(&l.tables, &a, n, 0, &e), 0);
	assert_int_equal(gci_edt_tables_settle(&l.tables, &a, &left, &e), 0);
	assert_int_equal(rate_of(&l, n), 3000);

	gci_hold_close(&b); /* as when its process dies */
	assert_false(gci_hold_lives(&a, b.id));
	assert_int_equal(gci_edt_tables_settle(&l.tables, &c, &left, &e), 0);
	assert_int_equal(left, 1);
	assert_int_equal(rate_of(&l, n), 0);

	gci_edt_tables_leave(&l.tables, &a, -1);
	assert_int_equal(gci_edt_tables_settle(&l.tables, &c, &left, &e), 0);
	assert_int_equal(left, 0);
	assert_int_equal(gci_edt_tables_rate(&l.tables, n, &r), GCOLL_ERR_INVAL);
	assert_int_equal(gci_trie_list(l.tables.nets, n, out, 4), 0);
	gci_hold_close(&a);
	gci_hold_close(&c);
	edt_unload(&l);
}

/* ---- where it is attached */

static int attached(int ifindex, struct gci_edt_hook *h)
{
	struct gci_error e = {0};

	if (gci_edt_hook_find(h, ifindex, &e))
		fail_msg("%s", e.text);
	return h->prog_fd >= 0;
}

/* A job whose filter `shape clear` took away does not take another's. */
static void replaced_filter(int ifindex, int old_prog)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_EGRESS);
	struct gci_edt_hook h = {ifindex, GCI_EDT_CLSACT, dup(old_prog), -1, 1}, found;
	struct edt_program l;

	if (bpf_tc_hook_create(&hook))
		return;
	edt_load(&l);
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = 1, .priority = 0x6763, .prog_fd = l.prog);
	assert_int_equal(bpf_tc_attach(&hook, &o), 0);
	gci_edt_hook_detach(&h, 1);
	assert_true(attached(ifindex, &found));
	assert_int_equal(found.at, GCI_EDT_CLSACT);
	gci_edt_hook_detach(&found, 1);
	assert_false(attached(ifindex, &found));
	edt_unload(&l);
}

/* Programs that are attached already have their turn after ours. */
static void comes_first(int ifindex, int standing)
{
	const enum bpf_attach_type tcx_egress = (enum bpf_attach_type)47;
	LIBBPF_OPTS(bpf_prog_query_opts, q);
	uint32_t ids[2] = {0}, len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {0};
	struct gci_edt_hook h = {.ifindex = ifindex, .prog_fd = -1, .link_fd = -1};
	struct gci_error e = {0};
	struct edt_program other, ours;

	edt_load(&other);
	edt_load(&ours);
	if (!bpf_prog_attach(other.prog, ifindex, tcx_egress, 0)) {
		assert_int_equal(gci_edt_hook_attach(&h, ours.prog, standing, &e), 0);
		q.prog_ids = ids;
		q.prog_cnt = 2;
		assert_int_equal(bpf_prog_query_opts(ifindex, tcx_egress, &q), 0);
		assert_int_equal(bpf_obj_get_info_by_fd(ours.prog, &info, &len), 0);
		assert_int_equal(q.prog_cnt, 2);
		assert_int_equal(ids[0], info.id);
		gci_edt_hook_detach(&h, 0);
		assert_int_equal(bpf_prog_detach2(other.prog, ifindex, tcx_egress), 0);
	}
	edt_unload(&ours);
	edt_unload(&other);
}

static void in_a_namespace(void)
{
	struct gci_edt_hook h, found;
	int lo = (int)if_nametoindex("lo"), status;
	struct gci_error e = {0};
	struct edt_program l;
	pid_t pid;

	edt_load(&l);
	assert_false(attached(lo, &h));
	replaced_filter(lo, l.prog);
	comes_first(lo, 0);
	comes_first(lo, 1);

	/* Standing, it outlives who attached it; a second time it is replaced. */
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 1, &e), 0);
	gci_edt_hook_close(&h);
	assert_true(attached(lo, &h));
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 1, &e), 0);
	gci_edt_hook_detach(&h, h.made_clsact);
	assert_false(attached(lo, &found));

	/* As a link it ends with who holds it, be it by accident: of two, the second. */
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 0, &e), 0);
	if (h.at != GCI_EDT_TCX)
		exit(0);
	pid = fork();
	if (!pid)
		exit(!attached(lo, &found) || found.link_fd < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(attached(lo, &found));
	gci_edt_hook_close(&h);
	gci_edt_hook_close(&found);
	assert_false(attached(lo, &h));

	/* What a job attached, an operator can make stand. */
	assert_int_equal(gci_edt_hook_attach(&h, l.prog, 0, &e), 0);
	assert_true(attached(lo, &found));
	assert_int_equal(gci_edt_hook_attach(&found, l.prog, 1, &e), 0);
	gci_edt_hook_close(&found);
	gci_edt_hook_close(&h);
	assert_true(attached(lo, &h));
	assert_true(h.link_fd < 0);
	gci_edt_hook_detach(&h, 0);
	assert_false(attached(lo, &found));
	exit(0);
}

static void test_hook(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (!edt_allowed())
		skip();
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNET))
			_exit(77);
		in_a_namespace();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* Without fq nothing is done, and what would help is said. */
static void test_refused(void **state)
{
	struct gci_edt *edt = NULL;
	struct gci_error e = {0};

	(void)state;
	assert_int_equal(gci_edt_open(&edt, "no-such-dev", 0, &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "no-such-dev"));
	gci_error_clear(&e);
	assert_int_equal(gci_edt_open(&edt, "lo", 0, &e), GCOLL_ERR_UNSUPPORTED);
	assert_null(edt);
	if (edt_allowed())
		assert_non_null(strstr(e.text, "tc qdisc replace dev lo root fq"));
	else
		assert_true(strstr(e.text, "root") || strstr(e.text, "no bpf()"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_hook),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
