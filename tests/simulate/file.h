/* SPDX-License-Identifier: MIT
 * Descriptors of simulated processes: sockets (net.h), epoll instances, timers, eventfds, and the
 * loops that stand in for libuv's. Their numbers are above all real ones. */
#ifndef GCI_TESTS_SIMULATE_FILE_H
#define GCI_TESTS_SIMULATE_FILE_H

#include "tests/simulate/os.h"

#include <poll.h>
#include <sys/epoll.h>

#define FILE_FIRST 100000

enum file_kind { FILE_STREAM, FILE_LISTENER, FILE_EPOLL, FILE_TIMER, FILE_EVENT, FILE_LOOP };

struct file {
	enum file_kind kind;
	int fd; /* -1: closed */
	int blocks;
	struct os_process *process;
	struct gci_list link; /* of the process */
	void *more;           /* the kind's */
	/* EPOLLIN, _OUT, _ERR, _HUP: what is ready. */
	uint32_t (*ready)(struct file *f);
	void (*close)(struct file *f);
	void (*free)(void *more); /* when the world ends; NULL: plain memory */
};

void file_begin(void);
void file_end(void);

/* Of the running process; `more`: zeroed, so many bytes. */
struct file *file_new(enum file_kind kind, size_t more_nbytes);

/* NULL: not of ours. */
struct file *file_of(int fd);

void file_close(struct file *f);
void file_close_all(struct os_process *p);

/* Something may be ready now: its process looks again. */
void file_changed(struct file *f);

/* System calls; -1 with errno. */
int file_epoll_create(void);
int file_epoll_ctl(int epfd, int op, int fd, const struct epoll_event *event);
int file_epoll_wait(int epfd, struct epoll_event *events, int most, int timeout_ms);
int file_timer_create(void);
int file_timer_set(int fd, uint64_t at_ns);
int file_event_create(void);
int file_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
/* Of timers and eventfds: 8 bytes. */
long file_read(struct file *f, void *buf);
long file_write(struct file *f, const void *buf);

#endif
