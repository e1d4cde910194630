/* SPDX-License-Identifier: MIT */
#include "transport/poller.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#define NO_ALARM_MS 10 /* how long one waits when the alarm cannot be set */

static void on_alarm(struct gci_watched *w, int events)
{
	struct gci_poller *p =
		(struct gci_poller *)((char *)w - offsetof(struct gci_poller, alarm));
	uint64_t count;

	(void)events;
	if (read(w->fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
		p->alarm_ms = 0;
}

int gci_poller_open(struct gci_poller *p)
{
	int rc;

	memset(p, 0, sizeof(*p));
	p->alarm.ready = on_alarm;
	p->fd = epoll_create1(EPOLL_CLOEXEC);
	p->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	rc = p->fd < 0 || p->alarm.fd < 0 ? -errno : gci_poller_watch(p, &p->alarm, UV_READABLE);
	if (rc)
		gci_poller_close(p);
	return rc;
}

void gci_poller_close(struct gci_poller *p)
{
	if (p->alarm.fd >= 0)
		close(p->alarm.fd);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = p->alarm.fd = -1;
}

/* Drops events of w in the batch whose `ready` functions are being called. */
static void forget(struct gci_poller *p, const struct gci_watched *w)
{
	int i;

	for (i = 0; i < p->nbatch; i++)
		if (p->batch[i].data.ptr == w)
			p->batch[i].data.ptr = NULL;
}

int gci_poller_watch(struct gci_poller *p, struct gci_watched *w, int events)
{
	struct epoll_event ev = {.data.ptr = w};
	int op = !events ? EPOLL_CTL_DEL : w->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (events == w->events)
		return 0;
	if (!events)
		forget(p, w);
	if (events & UV_READABLE)
		ev.events |= EPOLLIN;
	if (events & UV_WRITABLE)
		ev.events |= EPOLLOUT;
	if (epoll_ctl(p->fd, op, w->fd, &ev))
		return -errno;
	w->events = events;
	return 0;
}

void gci_poller_wake_by(struct gci_poller *p, uint64_t at_ms)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(at_ms / 1000),
					.tv_nsec = (long)(at_ms % 1000) * 1000000}};

	if (!at_ms || (p->alarm_ms && p->alarm_ms <= at_ms))
		return;
	p->alarm_ms = at_ms;
	p->span_ns = UINT64_MAX;
	if (timerfd_settime(p->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL)) {
		p->alarm_ms = 0;
		p->no_alarm = 1;
	}
}

void gci_poller_wake_in(struct gci_poller *p, uint64_t ns)
{
	if (p->alarm_ms && p->span_ns <= ns)
		return;
	gci_poller_wake_by(p, (gci_now_ns() + ns + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS);
	p->span_ns = ns;
}

static int told(uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP))
		return UV_READABLE | UV_WRITABLE;
	return (events & EPOLLIN ? UV_READABLE : 0) | (events & EPOLLOUT ? UV_WRITABLE : 0);
}

void gci_poller_wait(struct gci_poller *p, int block)
{
	int i, n, most_ms = !block ? 0 : p->no_alarm ? NO_ALARM_MS : -1;

	p->no_alarm = 0;
	do
		n = epoll_wait(p->fd, p->batch, GCI_POLLER_BATCH, most_ms);
	while (n < 0 && errno == EINTR);
	p->nbatch = n > 0 ? n : 0;
	for (i = 0; i < p->nbatch; i++) {
		struct gci_watched *w = p->batch[i].data.ptr;

		if (w)
			w->ready(w, told(p->batch[i].events));
	}
	p->nbatch = 0;
}

int gci_fd_is_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, 0) > 0;
}
