/* SPDX-License-Identifier: MIT
 * The ring itself: what the system may refuse, and operations that are given up. */
#include "tests/failing/failing.h"
#include "tests/test.h"

#include "transport/uring.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct gci_uring u;
/* A socket of ours, and who writes to it or sees it end. */
struct ends {
	int fd[2];
};

static struct ends a, b;

static int begin(void **state)
{
	char why[GCI_PATH_WHY];

	return failing_begin(state) || gci_uring_open(&u, why) ||
	       socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a.fd) ||
	       socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b.fd);
}

static int end(void **state)
{
	int i;

	gci_uring_close(&u);
	for (i = 0; i < 2; i++) {
		close(a.fd[i]);
		close(b.fd[i]);
	}
	return failing_end(state);
}

struct receive {
	struct gci_uring_op op;
	struct iovec iov;
	char byte;
};

static void begin_receive(struct receive *r, int fd)
{
	memset(r, 0, sizeof(*r));
	r->iov = (struct iovec){&r->byte, 1};
	r->op.fd = fd;
	r->op.user = r;
	r->op.msg.msg_iov = &r->iov;
	r->op.msg.msg_iovlen = 1;
	gci_uring_begin(&u, &r->op);
}

static int is_shut(const struct ends *e)
{
	char byte;
	ssize_t n = recv(e->fd[1], &byte, 1, MSG_DONTWAIT);

	assert_true(n == 0 || (n < 0 && errno == EAGAIN));
	return n == 0;
}

/* The ring goes on. */
static void receives_by(const struct ends *e)
{
	struct gci_uring_op *op;
	struct receive r;

	begin_receive(&r, e->fd[0]);
	assert_int_equal(gci_uring_submit(&u), 0);
	assert_int_equal(send(e->fd[1], "x", 1, 0), 1);
	do {
		io_uring_submit_and_wait(&u.ring, 1);
		gci_uring_reap(&u);
	} while (!(op = gci_uring_next(&u)));
	assert_ptr_equal(op, &r.op);
	assert_int_equal(op->res, 1);
	assert_int_equal(r.byte, 'x');
}

/* One cancellation more than the ring has room for, before any was handed over. */
static void cancels_a_ringful(int submit_error)
{
	static struct receive many[4096];
	unsigned i, n;

	assert_true(io_uring_sq_space_left(&u.ring) < 4096);
	n = io_uring_sq_space_left(&u.ring);
	for (i = 0; i <= n; i++)
		begin_receive(&many[i], i < n ? a.fd[0] : b.fd[0]);
	assert_int_equal(gci_uring_submit(&u), 0);
	if (submit_error) {
		failing_at(FAILING_io_uring_submit, 1, submit_error);
		failing_at(FAILING_shutdown, 1, ENOTCONN);
	}
	for (i = 0; i <= n; i++)
		gci_uring_cancel(&u, &many[i].op);
	assert_int_equal(failing_happened(FAILING_io_uring_submit), !!submit_error);
	assert_int_equal(failing_happened(FAILING_shutdown), !!submit_error);
	for (i = 0; i <= n; i++) {
		gci_uring_end(&u, &many[i].op);
		assert_int_equal(many[i].op.state, GCI_URING_IDLE);
	}
	assert_null(gci_uring_next(&u));
	assert_false(is_shut(&a));
	receives_by(&a);
}

static void more_cancellations_than_there_is_room_for(void **state)
{
	(void)state;
	cancels_a_ringful(0);
	assert_false(is_shut(&b));
}

/* What cannot be cancelled is ended by its socket, whatever that says to it. */
static void a_full_ring_of_which_nothing_is_taken(void **state)
{
	(void)state;
	cancels_a_ringful(EBUSY);
	assert_true(is_shut(&b));
}

static void waiting_for_an_end_is_refused(void **state)
{
	struct receive r;

	(void)state;
	begin_receive(&r, b.fd[0]);
	assert_int_equal(gci_uring_submit(&u), 0);
	gci_uring_cancel(&u, &r.op);
	failing_at(FAILING_io_uring_submit_and_wait, 1, EPERM);
	failing_at(FAILING_shutdown, 1, ENOTCONN);
	gci_uring_end(&u, &r.op);
	assert_true(failing_happened(FAILING_io_uring_submit_and_wait));
	assert_true(failing_happened(FAILING_shutdown));
	assert_true(is_shut(&b));
	receives_by(&a);
}

static int is_told(void)
{
	struct pollfd p = {.fd = u.event_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Its event, which nobody has read, may count no further. */
static void what_completes_quietly_is_told_at_the_end(void **state)
{
	struct receive r;

	(void)state;
	assert_int_equal(send(a.fd[1], "x", 1, 0), 1);
	gci_uring_quiet(&u, 1);
	begin_receive(&r, a.fd[0]);
	assert_int_equal(gci_uring_submit(&u), 0);
	io_uring_submit_and_wait(&u.ring, 1);
	assert_false(is_told());
	failing_at(FAILING_eventfd_write, 1, EAGAIN);
	gci_uring_quiet(&u, 0);
	assert_true(failing_happened(FAILING_eventfd_write));
	assert_true(is_told());
	gci_uring_reap(&u);
	assert_ptr_equal(gci_uring_next(&u), &r.op);
}

static void each_call_that_opens_it_is_refused(void **state)
{
	static const struct {
		enum failing what;
		int error;
		const char *why;
	} trials[] = {
		{FAILING_io_uring_queue_init_params, ENOSYS, "this kernel has no io_uring"},
		{FAILING_io_uring_queue_init_params, EPERM, "not permitted"},
		{FAILING_io_uring_queue_init_params, ENOMEM, "may be locked"},
		{FAILING_io_uring_queue_init_params, EMFILE, "Too many open files"},
		{FAILING_io_uring_get_probe_ring, ENOMEM, "too old"},
		{FAILING_eventfd, EMFILE, "Too many open files"},
		{FAILING_io_uring_register_eventfd, ENOMEM, "may be locked"},
	};
	char why[GCI_PATH_WHY];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(trials) / sizeof(*trials); i++) {
		*why = '\0';
		failing_at(trials[i].what, 1, trials[i].error);
		failing_at(FAILING_fopen64, 1, EMFILE); /* the sysctl, which would say more */
		assert_true(gci_uring_probe(why) < 0);
		assert_true(failing_happened(trials[i].what));
		failing_at(FAILING_fopen64, 0, 0);
		assert_non_null(strstr(why, trials[i].why));
	}
}

/* They are asked without it. */
static void older_kernels_do_not_know_a_flag(void **state)
{
	char why[GCI_PATH_WHY];

	(void)state;
	failing_at(FAILING_io_uring_queue_init_params, 1, EINVAL);
	assert_int_equal(gci_uring_probe(why), 0);
	failing_from(FAILING_io_uring_queue_init_params, 1, EINVAL);
	assert_int_equal(gci_uring_probe(why), -EINVAL);
	failing_at(FAILING_io_uring_queue_init_params, 0, 0);
	assert_string_equal(why, "Invalid argument");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			more_cancellations_than_there_is_room_for, begin, end),
		cmocka_unit_test_setup_teardown(a_full_ring_of_which_nothing_is_taken, begin, end),
		cmocka_unit_test_setup_teardown(waiting_for_an_end_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(
			what_completes_quietly_is_told_at_the_end, begin, end),
		cmocka_unit_test_setup_teardown(each_call_that_opens_it_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(older_kernels_do_not_know_a_flag, begin, end),
	};
	char why[GCI_PATH_WHY];

	if (gci_uring_probe(why)) {
		print_message("no io_uring: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
