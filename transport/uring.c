/* SPDX-License-Identifier: MIT */
#include "transport/uring.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Submitted at a time; completions that do not fit are kept by the kernel. */
#define ENTRIES 256
#define TRIES   1000

#define FEATURES                                                                  \
	(IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_FAST_POLL | \
		IORING_FEAT_CUR_PERSONALITY)

static int disabled_by_sysctl(void)
{
	FILE *f = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	int value = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &value) != 1)
		value = 0;
	fclose(f);
	return value;
}

static int refused(int rc, char why[GCI_PATH_WHY])
{
	int sysctl;

	switch (-rc) {
	case ENOSYS:
		snprintf(why, GCI_PATH_WHY, "this kernel has no io_uring");
		break;
	case EPERM:
	case EACCES:
		sysctl = disabled_by_sysctl();
		if (sysctl)
			snprintf(
				why, GCI_PATH_WHY, "sysctl kernel.io_uring_disabled is %d", sysctl);
		else
			snprintf(why, GCI_PATH_WHY,
				"not permitted, as by the seccomp filter of a container");
		break;
	case ENOMEM:
		snprintf(why, GCI_PATH_WHY,
			"not enough memory that may be locked (ulimit -l) for its rings");
		break;
	default:
		snprintf(why, GCI_PATH_WHY, "%s", strerror(-rc));
	}
	return rc;
}

/* Without COOP_TASKRUN (Linux 5.19) each completion interrupts the program. */
static int open_ring(struct gci_uring *u, unsigned entries)
{
	struct io_uring_params p = {.flags = IORING_SETUP_CLAMP | IORING_SETUP_COOP_TASKRUN};
	int rc = io_uring_queue_init_params(entries, &u->ring, &p);

	u->can_wait = !rc; /* POLL_FIRST came with the same release */
	if (rc == -EINVAL) {
		p = (struct io_uring_params){.flags = IORING_SETUP_CLAMP};
		rc = io_uring_queue_init_params(entries, &u->ring, &p);
	}
	return rc;
}

/* The ring is there, but is it new enough? */
static int check_ring(struct gci_uring *u, char why[GCI_PATH_WHY])
{
	static const int needed[] = {IORING_OP_SENDMSG, IORING_OP_RECVMSG, IORING_OP_ASYNC_CANCEL};
	struct io_uring_probe *p = io_uring_get_probe_ring(&u->ring);
	size_t i;
	int ok = p && (u->ring.features & FEATURES) == FEATURES;

	for (i = 0; ok && i < sizeof(needed) / sizeof(*needed); i++)
		ok = io_uring_opcode_supported(p, needed[i]);
	if (p)
		io_uring_free_probe(p);
	if (!ok)
		snprintf(why, GCI_PATH_WHY, "this kernel's io_uring is too old, expected 5.7");
	return ok ? 0 : -ENOSYS;
}

int gci_uring_open(struct gci_uring *u, char why[GCI_PATH_WHY])
{
	int rc;

	memset(u, 0, sizeof(*u));
	gci_list_init(&u->begun);
	gci_list_init(&u->done);
	rc = open_ring(u, ENTRIES);
	if (rc)
		return refused(rc, why);
	rc = check_ring(u, why);
	u->event_fd = rc ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!rc && u->event_fd < 0)
		rc = refused(-errno, why);
	if (!rc) {
		rc = io_uring_register_eventfd(&u->ring, u->event_fd);
		if (rc)
			refused(rc, why);
	}
	if (rc) {
		gci_uring_close(u);
		return rc;
	}
	io_uring_ring_dontfork(&u->ring); /* a child that forks must not write to it */
	return 0;
}

void gci_uring_close(struct gci_uring *u)
{
	io_uring_queue_exit(&u->ring);
	if (u->event_fd >= 0)
		close(u->event_fd);
}

int gci_uring_probe(char why[GCI_PATH_WHY])
{
	struct gci_uring u;
	int rc = gci_uring_open(&u, why);

	if (!rc)
		gci_uring_close(&u);
	return rc;
}

void gci_uring_begin(struct gci_uring *u, struct gci_uring_op *op)
{
	op->state = GCI_URING_BEGUN;
	gci_list_push(&u->begun, &op->link);
}

static void prepare(struct gci_uring *u, struct gci_uring_op *op, struct io_uring_sqe *sqe)
{
	if (op->send)
		io_uring_prep_sendmsg(sqe, op->fd, &op->msg, MSG_NOSIGNAL);
	else
		io_uring_prep_recvmsg(sqe, op->fd, &op->msg, 0);
	if (op->later && u->can_wait)
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	io_uring_sqe_set_data(sqe, op);
	gci_list_del(&op->link);
	op->state = GCI_URING_FLIGHT;
}

int gci_uring_submit(struct gci_uring *u)
{
	struct io_uring_sqe *sqe;
	int rc, tries = 0;

	for (;;) {
		while (!gci_list_empty(&u->begun) && (sqe = io_uring_get_sqe(&u->ring)))
			prepare(u, gci_container(u->begun.next, struct gci_uring_op, link), sqe);
		if (!io_uring_sq_ready(&u->ring))
			return 0;
		rc = io_uring_submit(&u->ring);
		if (rc > 0 || rc == -EINTR)
			continue;
		/* Too many completions wait for us, or memory is short for the moment. */
		gci_uring_reap(u);
		if ((rc && rc != -EBUSY && rc != -EAGAIN) || ++tries == TRIES)
			return rc ? rc : -EAGAIN;
	}
}

void gci_uring_reap(struct gci_uring *u)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&u->ring, &cqe)) {
		struct gci_uring_op *op = io_uring_cqe_get_data(cqe);

		if (op) { /* else a cancellation */
			op->res = cqe->res;
			op->more = cqe->flags & IORING_CQE_F_SOCK_NONEMPTY;
			op->state = GCI_URING_DONE;
			gci_list_push(&u->done, &op->link);
		}
		io_uring_cqe_seen(&u->ring, cqe);
	}
}

struct gci_uring_op *gci_uring_next(struct gci_uring *u)
{
	struct gci_uring_op *op;

	if (gci_list_empty(&u->done))
		return NULL;
	op = gci_container(u->done.next, struct gci_uring_op, link);
	gci_list_del(&op->link);
	op->state = GCI_URING_IDLE;
	return op;
}

void gci_uring_quiet(struct gci_uring *u, int quiet)
{
	io_uring_cq_eventfd_toggle(&u->ring, !quiet);
	if (!quiet && (io_uring_cq_ready(&u->ring) || !gci_list_empty(&u->done)))
		eventfd_write(u->event_fd, 1);
}

/* What the kernel has taken ends, where it takes no cancellation. */
static void cut(const struct gci_uring_op *op)
{
	shutdown(op->fd, SHUT_RDWR);
}

void gci_uring_cancel(struct gci_uring *u, struct gci_uring_op *op)
{
	struct io_uring_sqe *sqe;

	if (op->state == GCI_URING_FLIGHT) {
		sqe = io_uring_get_sqe(&u->ring);
		if (!sqe && io_uring_submit(&u->ring) > 0)
			sqe = io_uring_get_sqe(&u->ring);
		if (!sqe) {
			cut(op);
			return;
		}
		io_uring_prep_cancel(sqe, op, 0);
		io_uring_sqe_set_data(sqe, NULL);
		return;
	}
	gci_list_del(&op->link);
	op->state = GCI_URING_IDLE;
}

/* The kernel takes nothing from us any more (a filter that came later forbids it). What it has
 * taken ends when its socket is shut; what it has not is not in flight. */
static void give_up(struct gci_uring *u, struct gci_uring_op *op)
{
	struct io_uring_sq *sq = &u->ring.sq;
	unsigned i;

	for (i = *sq->khead; i != sq->sqe_tail; i++)
		if (sq->sqes[i & sq->ring_mask].user_data == (uintptr_t)op)
			op->state = GCI_URING_IDLE;
	cut(op);
}

void gci_uring_end(struct gci_uring *u, struct gci_uring_op *op)
{
	int rc, tries = 0;

	while (op->state == GCI_URING_FLIGHT) {
		rc = io_uring_submit_and_wait(&u->ring, 1);
		gci_uring_reap(u);
		if (rc >= 0 || rc == -EINTR || op->state != GCI_URING_FLIGHT)
			continue;
		if ((rc != -EBUSY && rc != -EAGAIN) || ++tries > TRIES)
			give_up(u, op);
		gci_sleep_ns(GCI_NS_PER_MS);
	}
	gci_list_del(&op->link);
	op->state = GCI_URING_IDLE;
}
