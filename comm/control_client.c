/* SPDX-License-Identifier: MIT */
#include "comm/control_client.h"

#include "base/mem.h"
#include "base/threads.h"
#include "comm/control_impl.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_BUDGETS 65536        /* as many pairs as clusters can make */
#define MAX_BACKLOG (256u << 10) /* of reports that the launcher does not read */

int gci_control_connect(struct gci_control **out, const char *rendezvous, char ip[GCI_ADDRESS_TEXT],
	struct gci_error *e)
{
	struct gci_control *ctl = gci_calloc(1, sizeof(*ctl));
	int rc;

	*out = NULL;
	if (!ctl)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	pthread_mutex_init(&ctl->lock, NULL);
	gci_control_init_members(&ctl->members);
	ctl->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = gci_control_io_open(&ctl->io, rendezvous, ip, e);
	if (!rc && ctl->event_fd < 0)
		rc = gci_error_errno(e, "joining the job");
	if (rc)
		gci_control_free(ctl);
	else
		*out = ctl;
	return rc;
}

int gci_control_secure(struct gci_control *ctl, const uint8_t secret[GCI_SECRET_NBYTES],
	uint32_t rank, uint32_t size, struct gci_error *e)
{
	return gci_control_io_secure(&ctl->io, secret, rank, size, e);
}

int gci_control_was_heard(const struct gci_control *ctl)
{
	return ctl->io.heard;
}

int gci_control_survives(const struct gci_control *ctl)
{
	return ctl->survives;
}

/* Reads what has come; 1 something, 0 nothing now, -1 the launcher is gone. */
static int receive(struct gci_control *ctl, int flags)
{
	uint8_t chunk[4096];
	ssize_t n = gci_control_io_recv(&ctl->io, chunk, sizeof(chunk), flags);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	do { /* by TLS, all: no poll tells of the rest */
		gci_buf_put(&ctl->in, chunk, (size_t)n);
		n = ctl->io.tls ? gci_control_io_recv(&ctl->io, chunk, sizeof(chunk), MSG_DONTWAIT)
				: 0;
	} while (n > 0);
	return ctl->in.failed ? -1 : 1;
}

/* Sends what `out` holds, as far as goes; -1 the launcher is gone. */
static int flush(struct gci_control *ctl, int flags)
{
	int rc = 0;

	pthread_mutex_lock(&ctl->lock);
	while (ctl->out.len || gci_control_io_holds(&ctl->io)) {
		ssize_t n = gci_control_io_send(
			&ctl->io, ctl->out.data, ctl->out.len, flags | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = errno == EAGAIN ? 0 : -1;
			break;
		}
		gci_buf_consume(&ctl->out, (size_t)n);
	}
	pthread_mutex_unlock(&ctl->lock);
	return rc;
}

/* The launcher's word. After it, and whenever `last`, nothing more is to be waited for. */
static void set_verdict(struct gci_control *ctl, const struct gci_ctl_failure *f, int last)
{
	pthread_mutex_lock(&ctl->lock);
	if (!ctl->all_gone) {
		if (last || ctl->has_verdict || !ctl->survives)
			gci_control_end_members(&ctl->members, f);
		if (!ctl->has_verdict)
			ctl->verdict = *f;
		__atomic_store_n(&ctl->has_verdict, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ctl->lock);
	ctl->wake(ctl->user);
}

static void take_wait(struct gci_control *ctl, const struct gci_ctl_wait *w)
{
	pthread_mutex_lock(&ctl->lock);
	if (ctl->nasked < GCI_CONTROL_ASKED)
		ctl->asked[ctl->nasked++] = *w;
	pthread_mutex_unlock(&ctl->lock);
	ctl->wake(ctl->user);
}

/* One that comes while memory is short is lost; the next one counts. */
static void take_budget(struct gci_control *ctl, const struct gci_ctl_budget *b)
{
	size_t i = 0;

	pthread_mutex_lock(&ctl->lock);
	while (i < ctl->nbudgets &&
		(ctl->budgets[i].from != b->from || ctl->budgets[i].to != b->to))
		i++;
	if (i < MAX_BUDGETS &&
		!gci_grow(&ctl->budgets, &ctl->budgets_cap, i + 1, sizeof(*ctl->budgets))) {
		ctl->budgets[i] = *b;
		if (i == ctl->nbudgets)
			__atomic_store_n(&ctl->nbudgets, i + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ctl->lock);
	ctl->wake(ctl->user);
}

static void lost(struct gci_control *ctl, const char *how)
{
	struct gci_ctl_failure f = {.status = GCOLL_ERR_ABORTED, .rank = -1};

	snprintf(f.text, sizeof(f.text), "the launcher %s", how);
	set_verdict(ctl, &f, 1);
}

static void put_call(struct gci_control *ctl, enum gci_ctl_type type, const struct gci_ctl_call *m)
{
	pthread_mutex_lock(&ctl->lock);
	gci_ctl_put_call(&ctl->out, type, m);
	pthread_mutex_unlock(&ctl->lock);
}

/* The thread sends it in its next round. */
static void answer(struct gci_control *ctl, const struct gci_ctl_call *asked)
{
	struct gci_ctl_call m = *asked;

	if (ctl->called(ctl->user, &m))
		put_call(ctl, GCI_CTL_CALLED, &m);
}

static void on_message(struct gci_control *ctl, struct gci_ctl_message *m)
{
	if (m->type == GCI_CTL_ABORT) {
		set_verdict(ctl, &m->failure, 0);
	} else if (m->type == GCI_CTL_BYE) {
		pthread_mutex_lock(&ctl->lock);
		ctl->all_gone = 1;
		pthread_mutex_unlock(&ctl->lock);
		ctl->wake(ctl->user);
	} else if (m->type == GCI_CTL_WAIT) {
		take_wait(ctl, &m->wait);
	} else if (m->type == GCI_CTL_ASK) {
		answer(ctl, &m->call);
	} else if (m->type == GCI_CTL_BUDGET) {
		take_budget(ctl, &m->budget);
	} else if (m->type == GCI_CTL_WATCH && ctl->watch) {
		ctl->watch(ctl->watch_user, &m->watch);
	} else if (m->type == GCI_CTL_AGREED || m->type == GCI_CTL_SURVIVORS) {
		gci_control_take_members(ctl, m);
		ctl->wake(ctl->user);
	}
}

/* Handles all whole messages; -1 after a malformed one. */
static int dispatch(struct gci_control *ctl)
{
	struct gci_ctl_message m;
	struct gci_error e = {0};
	int rc;

	while ((rc = gci_ctl_get(&ctl->in, GCI_CTL_MAX_MESSAGE, &m, &e)) > 0) {
		on_message(ctl, &m);
		gci_ctl_message_free(&m);
	}
	return rc;
}

static void say(struct gci_control *ctl, enum gci_ctl_type type)
{
	pthread_mutex_lock(&ctl->lock);
	gci_ctl_put_plain(&ctl->out, type);
	pthread_mutex_unlock(&ctl->lock);
}

static int wants_to_quit(struct gci_control *ctl)
{
	int quit;

	pthread_mutex_lock(&ctl->lock);
	quit = ctl->quit;
	pthread_mutex_unlock(&ctl->lock);
	return quit;
}

static int pending(struct gci_control *ctl)
{
	size_t n;

	pthread_mutex_lock(&ctl->lock);
	n = ctl->out.len;
	pthread_mutex_unlock(&ctl->lock);
	return n != 0;
}

static void *beat(void *arg)
{
	struct gci_control *ctl = arg;
	uint64_t now = gci_now_ns(), next_beat = now, heard = now, ticks;
	struct pollfd fds[2] = {{.fd = ctl->io.fd}, {.fd = ctl->event_fd, .events = POLLIN}};

	if (dispatch(ctl) < 0) /* what came right behind START */
		lost(ctl, "is gone");
	while (!wants_to_quit(ctl)) {
		int rc;

		now = gci_now_ns();
		if (now >= next_beat) {
			say(ctl, GCI_CTL_BEAT);
			next_beat = now + ctl->beat_ns;
		}
		if (now - heard >= ctl->dead_ns) {
			lost(ctl, "gives no sign of life (its host or the network is down)");
			break;
		}
		if (flush(ctl, MSG_DONTWAIT)) {
			/* Its last word may be here already. */
			while (receive(ctl, MSG_DONTWAIT) > 0)
				;
			dispatch(ctl);
			lost(ctl, "is gone");
			break;
		}
		fds[0].events =
			(short)(POLLIN |
				(pending(ctl) || gci_control_io_holds(&ctl->io) ? POLLOUT : 0));
		if (poll(fds, 2, (int)((next_beat - now) / GCI_NS_PER_MS) + 1) < 0 &&
			errno != EINTR) {
			lost(ctl, "cannot be heard any more: poll failed");
			break;
		}
		/* Time in which we were stopped (as by Ctrl-Z) is not the launcher's silence. */
		if (gci_now_ns() > next_beat + ctl->beat_ns)
			heard += gci_now_ns() - next_beat;
		if (fds[1].revents && read(ctl->event_fd, &ticks, sizeof(ticks)) < 0 &&
			errno != EAGAIN)
			break;
		rc = receive(ctl, MSG_DONTWAIT);
		if (rc > 0) {
			heard = gci_now_ns();
			rc = dispatch(ctl);
		}
		if (rc < 0) {
			lost(ctl, "is gone");
			break;
		}
	}
	flush(ctl, MSG_DONTWAIT); /* a last FAIL */
	return NULL;
}

static int wait_for_start(
	struct gci_control *ctl, struct gci_ctl_message *start, struct gci_error *e)
{
	int rc;

	for (;;) {
		rc = gci_ctl_get(&ctl->in, GCI_CTL_MAX_MESSAGE, start, e);
		if (rc < 0)
			return rc;
		if (rc > 0 && start->type == GCI_CTL_START)
			return 0;
		if (rc > 0 && start->type == GCI_CTL_ABORT)
			return gci_error_set(e, start->failure.status, "%s", start->failure.text);
		if (rc > 0)
			gci_ctl_message_free(start);
		else if (receive(ctl, 0) <= 0)
			return gci_error_set(
				e, GCOLL_ERR_ABORTED, "the launcher was lost before the job began");
	}
}

int gci_control_join(struct gci_control *ctl, const struct gci_ctl_hello *hello,
	void (*wake)(void *user), int (*called)(void *user, struct gci_ctl_call *m), void *user,
	struct gci_ctl_message *start, struct gci_error *e)
{
	int rc;

	ctl->wake = wake;
	ctl->called = called;
	ctl->user = user;
	gci_ctl_put_hello(&ctl->out, hello);
	if (ctl->out.failed)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (flush(ctl, 0))
		return gci_error_errno(e, "joining the job");
	memset(start, 0, sizeof(*start));
	rc = wait_for_start(ctl, start, e);
	if (rc)
		return rc;
	ctl->beat_ns = start->start.beat_ns;
	ctl->dead_ns = start->start.dead_ns;
	ctl->survives = start->start.survives;
	rc = gci_thread_create(&ctl->thread, beat, ctl);
	if (rc) {
		gci_ctl_message_free(start);
		errno = rc;
		return gci_error_errno(e, "starting the heartbeat thread");
	}
	ctl->running = 1;
	return 0;
}

void gci_control_nudge(struct gci_control *ctl)
{
	uint64_t one = 1;

	if (write(ctl->event_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the thread is awake anyway */
}

void gci_control_begin_say(struct gci_control *ctl)
{
	pthread_mutex_lock(&ctl->lock);
}

void gci_control_end_say(struct gci_control *ctl)
{
	pthread_mutex_unlock(&ctl->lock);
	gci_control_nudge(ctl);
}

void gci_control_fail(struct gci_control *ctl, const struct gci_ctl_failure *f)
{
	gci_control_begin_say(ctl);
	gci_ctl_put_failure(&ctl->out, GCI_CTL_FAIL, f);
	gci_control_end_say(ctl);
}

void gci_control_ask_call(struct gci_control *ctl, const struct gci_ctl_call *m)
{
	put_call(ctl, GCI_CTL_ASK, m);
	gci_control_nudge(ctl);
}

void gci_control_on_watch(struct gci_control *ctl,
	void (*watch)(void *user, const struct gci_ctl_watch *m), void *user)
{
	ctl->watch = watch;
	ctl->watch_user = user;
}

void gci_control_report(struct gci_control *ctl, const struct gci_ctl_report *m)
{
	gci_control_begin_say(ctl);
	if (ctl->out.len < MAX_BACKLOG)
		gci_ctl_put_report(&ctl->out, m);
	gci_control_end_say(ctl);
}

void gci_control_flows(struct gci_control *ctl, const struct gci_ctl_flows *m)
{
	gci_control_begin_say(ctl);
	if (ctl->out.len < MAX_BACKLOG)
		gci_ctl_put_flows(&ctl->out, m);
	gci_control_end_say(ctl);
}

int gci_control_verdict(struct gci_control *ctl, struct gci_ctl_failure *f)
{
	int has;

	/* As a rule there is none; whoever makes progress asks each time. */
	if (!__atomic_load_n(&ctl->has_verdict, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&ctl->lock);
	has = ctl->has_verdict;
	if (has)
		*f = ctl->verdict;
	pthread_mutex_unlock(&ctl->lock);
	return has;
}

void gci_control_wait(struct gci_control *ctl, const struct gci_ctl_wait *w)
{
	gci_control_begin_say(ctl);
	gci_ctl_put_wait(&ctl->out, w);
	gci_control_end_say(ctl);
}

int gci_control_asked(struct gci_control *ctl, struct gci_ctl_wait *w)
{
	int has;

	pthread_mutex_lock(&ctl->lock);
	has = ctl->nasked > 0;
	if (has)
		*w = ctl->asked[--ctl->nasked];
	pthread_mutex_unlock(&ctl->lock);
	return has;
}

int gci_control_budget(struct gci_control *ctl, struct gci_ctl_budget *b)
{
	size_t n;

	/* As a rule there is none; whoever makes progress asks each time. */
	if (!__atomic_load_n(&ctl->nbudgets, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&ctl->lock);
	n = ctl->nbudgets;
	*b = ctl->budgets[n - 1];
	__atomic_store_n(&ctl->nbudgets, n - 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctl->lock);
	return 1;
}

void gci_control_bye(struct gci_control *ctl)
{
	say(ctl, GCI_CTL_BYE);
	gci_control_nudge(ctl);
}

int gci_control_all_gone(struct gci_control *ctl)
{
	int gone;

	pthread_mutex_lock(&ctl->lock);
	gone = ctl->all_gone;
	pthread_mutex_unlock(&ctl->lock);
	return gone;
}

void gci_control_free(struct gci_control *ctl)
{
	if (!ctl)
		return;
	if (ctl->running) {
		pthread_mutex_lock(&ctl->lock);
		ctl->quit = 1;
		pthread_mutex_unlock(&ctl->lock);
		gci_control_nudge(ctl);
		pthread_join(ctl->thread, NULL);
	}
	gci_control_io_close(&ctl->io);
	if (ctl->event_fd >= 0)
		close(ctl->event_fd);
	gci_buf_free(&ctl->in);
	gci_buf_free(&ctl->out);
	gci_free(ctl->budgets);
	gci_control_free_members(&ctl->members);
	pthread_mutex_destroy(&ctl->lock);
	gci_free(ctl);
}
