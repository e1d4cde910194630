/* SPDX-License-Identifier: MIT
 * The thread that beats, and hears the launcher. */
#include "base/mem.h"
#include "comm/control_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_BUDGETS 65536 /* as many pairs as clusters can make */

int gci_control_receive(struct gci_control *ctl, int flags)
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

int gci_control_flush(struct gci_control *ctl, int flags)
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

	snprintf(f.text, sizeof(f.text), "the launcher at %s %s", ctl->where, how);
	set_verdict(ctl, &f, 1);
}

void gci_control_put_call(
	struct gci_control *ctl, enum gci_ctl_type type, const struct gci_ctl_call *m)
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
		gci_control_put_call(ctl, GCI_CTL_CALLED, &m);
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

void gci_control_put_plain(struct gci_control *ctl, enum gci_ctl_type type)
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

/* What had come by then was taken. */
static void set_looked(struct gci_control *ctl, uint64_t at_ns)
{
	__atomic_store_n(&ctl->looked_ns, at_ns, __ATOMIC_RELEASE);
}

void *gci_control_beat(void *arg)
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
			gci_control_put_plain(ctl, GCI_CTL_BEAT);
			next_beat = now + ctl->beat_ns;
		}
		if (now - heard >= ctl->dead_ns) {
			lost(ctl, "gives no sign of life (its host or its network link is down)");
			break;
		}
		if (gci_control_flush(ctl, MSG_DONTWAIT)) {
			/* Its last word may be here already. */
			while (gci_control_receive(ctl, MSG_DONTWAIT) > 0)
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
		now = gci_now_ns();
		if (now > next_beat + ctl->beat_ns)
			heard += now - next_beat;
		if (fds[1].revents && read(ctl->event_fd, &ticks, sizeof(ticks)) < 0 &&
			errno != EAGAIN)
			break;
		rc = gci_control_receive(ctl, MSG_DONTWAIT);
		if (rc > 0) {
			heard = gci_now_ns();
			rc = dispatch(ctl);
		} else if (!rc) {
			set_looked(ctl, now);
		}
		if (rc < 0) {
			lost(ctl, "is gone");
			break;
		}
	}
	set_looked(ctl, UINT64_MAX);
	gci_control_flush(ctl, MSG_DONTWAIT); /* a last FAIL */
	return NULL;
}
