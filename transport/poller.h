/* SPDX-License-Identifier: MIT
 * Waiting for sockets, without libuv's turn of the loop: one epoll instance, and one alarm clock
 * that is wound only when it would ring too late. A wait that ends early leaves the alarm as it is,
 * so that a message costs one epoll_wait without a timer of its own, and no look at the clock.
 *
 *	rc = gci_poller_open(&p);
 *	w = (struct gci_watched){.fd = fd, .ready = on_ready};
 *	gci_poller_watch(&p, &w, UV_READABLE);
 *	gci_poller_wake_by(&p, now_ms + 1000);
 *	gci_poller_wait(&p, 1);			// calls ready of what is ready
 *	gci_poller_watch(&p, &w, 0);		// before w or its descriptor is gone
 *	gci_poller_close(&p);
 *
 * Events are libuv's, UV_READABLE and UV_WRITABLE. An error on a descriptor counts as both. One
 * thread; ready may watch and unwatch anything, and not wait. */
#ifndef GCI_TRANSPORT_POLLER_H
#define GCI_TRANSPORT_POLLER_H

#include <stdint.h>
#include <sys/epoll.h>

#define GCI_POLLER_BATCH 64 /* events taken at a time */

struct gci_watched {
	int fd;
	void (*ready)(struct gci_watched *w, int events);
	int events; /* that are waited for; set by gci_poller_watch alone */
};

struct gci_poller {
	int fd; /* poll(2) finds it readable when there is something to do; -1: not open */
	struct gci_watched alarm;
	uint64_t alarm_ms; /* when it rings, of CLOCK_MONOTONIC; 0: it is not wound */
	uint64_t span_ns;  /* it rings no later than this from now, if it is wound */
	int no_alarm;      /* it could not be wound: the next wait is a short one */
	struct epoll_event batch[GCI_POLLER_BATCH];
	int nbatch; /* whose `ready` is being called */
};

/* 0 or a negative errno, and nothing to close. */
int gci_poller_open(struct gci_poller *p);
void gci_poller_close(struct gci_poller *p);

/* Waits for these events of w->fd from now on; 0: for none, and an event already taken from epoll is dropped.
 * 0 or a negative errno. */
int gci_poller_watch(struct gci_poller *p, struct gci_watched *w, int events);

/* A wait will end then at the latest. It may end before. */
void gci_poller_wake_by(struct gci_poller *p, uint64_t at_ms);

/* The same, so long from now, without a look at the clock where the alarm rings soon enough. */
void gci_poller_wake_in(struct gci_poller *p, uint64_t ns);

/* Calls `ready` of what is ready; if `block`, waits until something is. */
void gci_poller_wait(struct gci_poller *p, int block);

/* Now; `events` as for poll. */
int gci_fd_is_ready(int fd, short events);

#endif
