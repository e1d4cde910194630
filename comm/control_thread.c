/* SPDX-License-Identifier: MIT
 * The thread that beats, and hears the launcher. */
#include "base/mem.h"
#include "comm/control_impl.h"
#include "transport/sockopt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_BUDGETS 65536                /* as many pairs as clusters can make */
#define FIRST_PAUSE (10 * GCI_NS_PER_MS) /* before the launcher is called again */
#define LAST_PAUSE  (500 * GCI_NS_PER_MS)

int gci_control_receive(struct gci_control *ctl, int flags)
{
	uint8_t chunk[4096];
	ssize_t n = gci_control_io_recv(&ctl->io, chunk, sizeof(chunk), flags);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return n ? GCI_CONTROL_BROKEN : GCI_CONTROL_GONE;
	do { /* by TLS, all: no poll tells of the rest */
		gci_buf_put(&ctl->in, chunk, (size_t)n);
		n = ctl->io.tls ? gci_control_io_recv(&ctl->io, chunk, sizeof(chunk), MSG_DONTWAIT)
				: 0;
	} while (n > 0);
	return ctl->in.failed ? GCI_CONTROL_GONE : 1;
}

/* What was said goes on its way once nothing is before it, and is kept until it has come. */
static void put_on_wire(struct gci_control *ctl)
{
	pthread_mutex_lock(&ctl->lock);
	if (!ctl->wire.len && ctl->out.len) {
		gci_ctl_link_keep(&ctl->link, ctl->out.data, ctl->out.len);
		gci_buf_free(&ctl->wire);
		ctl->wire = ctl->out;
		ctl->out = (struct gci_buf){0};
	}
	pthread_mutex_unlock(&ctl->lock);
}

int gci_control_flush(struct gci_control *ctl, int flags)
{
	for (;;) {
		ssize_t n;

		put_on_wire(ctl);
		if (!ctl->wire.len && !gci_control_io_holds(&ctl->io))
			return 0;
		n = gci_control_io_send(
			&ctl->io, ctl->wire.data, ctl->wire.len, flags | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0) /* behind an end in order nobody reads */
			return errno != EPIPE || gci_sockopt_was_reset(ctl->io.fd)
				       ? GCI_CONTROL_BROKEN
				       : GCI_CONTROL_GONE;
		gci_buf_consume(&ctl->wire, (size_t)n);
	}
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

#define GONE   "is gone"
#define SILENT "gives no sign of life (its host or its network link is down)"

static struct gci_ctl_failure loss(const struct gci_control *ctl, const char *how)
{
	struct gci_ctl_failure f = {.status = GCOLL_ERR_ABORTED, .rank = -1};

	snprintf(f.text, sizeof(f.text), "the launcher at %s %s", ctl->where, how);
	return f;
}

static void lost(struct gci_control *ctl, const char *how)
{
	struct gci_ctl_failure f = loss(ctl, how);

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

/* -1: what is acknowledged cannot be. */
static int count(struct gci_control *ctl, const struct gci_ctl_message *m)
{
	int rc = 0;

	pthread_mutex_lock(&ctl->lock);
	ctl->link.got += (uint64_t)gci_ctl_counts(m->type);
	if (m->type == GCI_CTL_BEAT)
		rc = gci_ctl_link_acked(&ctl->link, m->got.n);
	pthread_mutex_unlock(&ctl->lock);
	return rc;
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
		rc = count(ctl, &m);
		on_message(ctl, &m);
		gci_ctl_message_free(&m);
		if (rc)
			break;
	}
	return rc;
}

/* ---- a connection that was lost */

/* The launcher is to tell something yet. */
static int is_needed(struct gci_control *ctl)
{
	int needed;

	pthread_mutex_lock(&ctl->lock);
	needed = !ctl->quit && !ctl->all_gone && !ctl->members.over;
	pthread_mutex_unlock(&ctl->lock);
	return needed;
}

static int say_resume(struct gci_control *ctl)
{
	struct gci_ctl_resume m = {.rank = ctl->rank, .life = ++ctl->life};
	ssize_t n = 0;

	pthread_mutex_lock(&ctl->lock);
	m.got = ctl->link.got;
	pthread_mutex_unlock(&ctl->lock);
	if (gci_ctl_resume_token(ctl->key, &m, ctl->session, m.token))
		return -1;
	gci_buf_free(&ctl->in);
	gci_buf_free(&ctl->wire);
	gci_ctl_put_resume(&ctl->wire, &m);
	while ((ctl->wire.len || gci_control_io_holds(&ctl->io)) && n >= 0) {
		n = gci_control_io_send(&ctl->io, ctl->wire.data, ctl->wire.len, MSG_NOSIGNAL);
		gci_buf_consume(&ctl->wire, n > 0 ? (size_t)n : 0);
	}
	return n < 0 ? -1 : 0;
}

/* What has not come is said again. */
static int on_resumed(struct gci_control *ctl, uint64_t got)
{
	int rc;

	pthread_mutex_lock(&ctl->lock);
	rc = gci_ctl_link_acked(&ctl->link, got) || ctl->link.gap;
	if (!rc)
		gci_buf_put(&ctl->wire, ctl->link.kept.data, ctl->link.kept.len);
	pthread_mutex_unlock(&ctl->lock);
	return rc || ctl->wire.failed ? 1 : 0;
}

/* 0; -1, to be tried again; or 1, in vain, with the reason. */
static int resume_once(struct gci_control *ctl, struct gci_ctl_failure *why)
{
	struct gci_ctl_message m;
	struct gci_error e = {0};
	int rc;

	if (gci_control_io_again(&ctl->io) || say_resume(ctl))
		return -1;
	errno = 0; /* it did not refuse us */
	while (!(rc = gci_ctl_get(&ctl->in, GCI_CTL_MAX_MESSAGE, &m, &e))) {
		rc = gci_control_receive(ctl, 0);
		if (rc <= 0) {
			errno = rc == GCI_CONTROL_GONE ? EPIPE : ECONNRESET;
			return -1;
		}
	}
	if (rc < 0)
		return -1;
	rc = -1;
	if (m.type == GCI_CTL_RESUMED) {
		rc = on_resumed(ctl, m.got.n);
		*why = loss(ctl, "has lost messages of this rank");
	} else if (m.type == GCI_CTL_ABORT) {
		rc = 1;
		*why = m.failure;
	}
	gci_ctl_message_free(&m);
	return rc;
}

/* Ends early when there is something to be done. */
static void pause_for(struct gci_control *ctl, uint64_t ns)
{
	struct pollfd p = {.fd = ctl->event_fd, .events = POLLIN};
	uint64_t ticks;

	if (poll(&p, 1, (int)(ns / GCI_NS_PER_MS)) > 0 &&
		read(ctl->event_fd, &ticks, sizeof(ticks)) < 0)
		return;
}

/* Where its address refuses connections, the launcher has ended, or a host on the way comes up again. */
int gci_control_resume(struct gci_control *ctl, uint64_t until_ns, struct gci_ctl_failure *why)
{
	uint64_t now = gci_now_ns(), pause = FIRST_PAUSE, patience = ctl->dead_ns / 32;
	const uint64_t refused_ns = now + ctl->dead_ns / 4;
	int rc;

	*why = loss(ctl, GONE);
	while (is_needed(ctl)) {
		ctl->io.patience_ns = patience;
		patience = patience < ctl->dead_ns / 4 ? 2 * patience : patience;
		rc = resume_once(ctl, why);
		if (rc >= 0)
			return rc ? -1 : 0;
		rc = errno;
		now = gci_now_ns();
		if (rc == ECONNREFUSED && now >= refused_ns)
			break;
		if (rc == EPIPE && !ctl->io.heard) /* it may not know us yet */
			break;
		if (now >= until_ns) {
			*why = loss(ctl, SILENT);
			break;
		}
		pause_for(ctl, pause);
		pause = pause < LAST_PAUSE ? 2 * pause : pause;
	}
	return -1;
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
	return n || ctl->wire.len;
}

/* What had come by then was taken. */
static void set_looked(struct gci_control *ctl, uint64_t at_ns)
{
	__atomic_store_n(&ctl->looked_ns, at_ns, __ATOMIC_RELEASE);
}

void gci_control_put_beat(struct gci_control *ctl)
{
	pthread_mutex_lock(&ctl->lock);
	gci_ctl_put_got(&ctl->out, GCI_CTL_BEAT, ctl->link.got);
	pthread_mutex_unlock(&ctl->lock);
}

/* Whatever ended the connection, the launcher's last word may be here already. 0: there is another. */
static int go_on(struct gci_control *ctl, int how, uint64_t until_ns)
{
	struct gci_ctl_failure why = loss(ctl, GONE);

	while (gci_control_receive(ctl, MSG_DONTWAIT) > 0)
		;
	if (!dispatch(ctl) && how == GCI_CONTROL_BROKEN && !gci_control_resume(ctl, until_ns, &why))
		return dispatch(ctl); /* what came right behind RESUMED */
	set_verdict(ctl, &why, 1);
	return -1;
}

void *gci_control_beat(void *arg)
{
	struct gci_control *ctl = arg;
	uint64_t now = gci_now_ns(), next_beat = now, heard = now, ticks;
	struct pollfd fds[2] = {{.fd = ctl->io.fd}, {.fd = ctl->event_fd, .events = POLLIN}};

	if (dispatch(ctl) < 0) /* what came right behind START */
		lost(ctl, GONE);
	while (!wants_to_quit(ctl)) {
		int rc;

		now = gci_now_ns();
		if (now >= next_beat) {
			gci_control_put_beat(ctl);
			next_beat = now + ctl->beat_ns;
		}
		if (now - heard >= ctl->dead_ns) {
			lost(ctl, SILENT);
			break;
		}
		rc = gci_control_flush(ctl, MSG_DONTWAIT);
		if (rc) {
			if (go_on(ctl, rc, heard + ctl->dead_ns))
				break;
			next_beat = heard = gci_now_ns();
			fds[0].fd = ctl->io.fd;
			continue;
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
			rc = dispatch(ctl) ? GCI_CONTROL_GONE : 0;
		} else if (!rc) {
			set_looked(ctl, now);
		}
		if (rc < 0) {
			if (go_on(ctl, rc, heard + ctl->dead_ns))
				break;
			next_beat = heard = gci_now_ns();
			fds[0].fd = ctl->io.fd;
		}
	}
	set_looked(ctl, UINT64_MAX);
	gci_control_flush(ctl, MSG_DONTWAIT); /* a last FAIL */
	return NULL;
}
