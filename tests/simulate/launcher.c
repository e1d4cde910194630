/* SPDX-License-Identifier: MIT */
#include "tests/simulate/launcher.h"

#include "tests/simulate/net.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 64

struct caller {
	int fd;
	struct gci_rdv_conn *handle;
	struct gci_buf out;
};

static struct {
	struct os_process *process;
	struct gci_rdv_config config;
	struct gci_rdv *rdv;
	struct caller callers[64]; /* in the order they came; fd -1: gone */
	int ncallers;
	uint32_t nended;
	int listen_fd, epoll_fd;
	struct {
		uint32_t rank;
		int code, signal;
	} ends[64];
	uint32_t nends, ntaken;
	struct gci_rdv_verdict verdict;
	int has_verdict;
} self;

static void forget(struct caller *c)
{
	close(c->fd);
	c->fd = -1;
	c->handle = NULL;
	gci_buf_free(&c->out);
}

static void push(struct caller *c)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	ssize_t n = 0;

	while (c->out.len && (n >= 0 || errno == EINTR)) {
		n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);
		if (n > 0)
			gci_buf_consume(&c->out, (size_t)n);
	}
	if (c->out.len && errno == EAGAIN)
		ev.events |= EPOLLOUT;
	epoll_ctl(self.epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
}

static void do_events(void)
{
	struct gci_rdv_event ev;

	while (gci_rdv_next(self.rdv, &ev)) {
		struct caller *c = ev.user;

		if (ev.type == GCI_RDV_CLOSE) {
			forget(c);
			continue;
		}
		gci_buf_put(&c->out, ev.data.data, ev.data.len);
		gci_buf_free(&ev.data);
		push(c);
	}
}

static void accept_all(void)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	struct gci_reach at = {.n = 1};
	int fd;

	while ((fd = accept4(self.listen_fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK)) >= 0) {
		struct caller *c = &self.callers[self.ncallers++];
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

		*c = (struct caller){.fd = fd};
		memcpy(at.ip[0], &from.sin_addr, sizeof(from.sin_addr));
		c->handle = gci_rdv_open(self.rdv, c, &at, os_now);
		epoll_ctl(self.epoll_fd, EPOLL_CTL_ADD, fd, &ev);
	}
}

static void receive(struct caller *c)
{
	uint8_t chunk[4096];
	ssize_t n;

	do
		n = recv(c->fd, chunk, sizeof(chunk), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0) {
		gci_rdv_input(self.rdv, c->handle, chunk, (size_t)n, os_now);
		return;
	}
	if (c->handle)
		gci_rdv_closed(self.rdv, c->handle, n < 0, os_now);
	forget(c);
}

static void take_ends(void)
{
	while (self.ntaken < self.nends) {
		uint32_t i = self.ntaken++;

		gci_rdv_exited(self.rdv, self.ends[i].rank, self.ends[i].code, self.ends[i].signal,
			os_now);
		self.nended++;
	}
}

static int timeout_ms(void)
{
	uint64_t at = gci_rdv_deadline(self.rdv);

	if (at == GCI_NEVER)
		return -1;
	return at <= os_now ? 0 : (int)((at - os_now) / GCI_NS_PER_MS) + 1;
}

static void one_round(void)
{
	struct epoll_event ev[BATCH];
	int i, n = epoll_wait(self.epoll_fd, ev, BATCH, timeout_ms());

	take_ends();
	for (i = 0; i < n; i++) {
		struct caller *c = ev[i].data.ptr;

		if (!c) {
			accept_all();
			continue;
		}
		if (c->fd >= 0 && ev[i].events & EPOLLOUT)
			push(c);
		if (c->fd >= 0)
			receive(c);
		do_events();
	}
	gci_rdv_tick(self.rdv, os_now);
	do_events();
}

static void *run(void *arg)
{
	const struct gci_rdv_verdict *v;
	int i;

	(void)arg;
	if (gci_rdv_create(&self.rdv, &self.config, os_now))
		abort();
	self.epoll_fd = epoll_create1(0);
	epoll_ctl(self.epoll_fd, EPOLL_CTL_ADD, self.listen_fd,
		&(struct epoll_event){.events = EPOLLIN});
	while (self.nended < self.config.size) {
		one_round();
		v = gci_rdv_verdict(self.rdv);
		if (v && !self.has_verdict) {
			self.has_verdict = 1;
			self.verdict = *v;
			os_trace("verdict: rank %d, %s", v->rank, v->sentence);
		}
	}
	for (i = 0; i < self.ncallers; i++)
		if (self.callers[i].fd >= 0)
			forget(&self.callers[i]);
	gci_rdv_free(self.rdv);
	return NULL;
}

/* It listens before any rank begins. */
void launcher_begin(struct os_process *p, const struct gci_rdv_config *config,
	char rendezvous[LAUNCHER_ADDRESS_NBYTES])
{
	struct sockaddr_in at = net_address(p->host, NET_FIRST_PORT - 1);
	const uint8_t *ip = (const uint8_t *)&at.sin_addr.s_addr;

	memset(&self, 0, sizeof(self));
	self.process = p;
	self.config = *config;
	os_current = p;
	self.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	bind(self.listen_fd, (struct sockaddr *)&at, sizeof(at));
	listen(self.listen_fd, 64);
	os_current = NULL;
	snprintf(rendezvous, LAUNCHER_ADDRESS_NBYTES, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3],
		NET_FIRST_PORT - 1);
	os_thread(p, run, NULL);
}

void launcher_exited(uint32_t rank, int code, int signal)
{
	self.ends[self.nends].rank = rank;
	self.ends[self.nends].code = code;
	self.ends[self.nends++].signal = signal;
	os_wake(self.process);
}

const struct gci_rdv_verdict *launcher_verdict(void)
{
	return self.has_verdict ? &self.verdict : NULL;
}
