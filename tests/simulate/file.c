/* SPDX-License-Identifier: MIT */
#include "tests/simulate/file.h"

#include "tests/simulate/heap.h"

#include <errno.h>
#include <string.h>

struct watch {
	struct file *file;
	struct epoll_event event;
};

struct epoll {
	struct watch *watches;
	int n, cap;
};

struct timer {
	uint64_t at_ns, sets; /* 0: it is not wound; how often it was */
	uint64_t rings;
};

struct event {
	uint64_t count;
};

static struct file **files; /* by descriptor */
static int nfiles, cap_files;

void file_begin(void)
{
	nfiles = 0;
}

void file_end(void)
{
	int i;

	for (i = 0; i < nfiles; i++) {
		if (files[i]->free)
			files[i]->free(files[i]->more);
		heap_free(files[i]->more);
		heap_free(files[i]);
	}
	nfiles = 0;
}

struct file *file_new(enum file_kind kind, size_t more_nbytes)
{
	struct file *f = heap_calloc(1, sizeof(*f));

	if (nfiles == cap_files) {
		cap_files = 2 * cap_files + 64;
		files = heap_grow(files, (size_t)cap_files * sizeof(struct file *));
	}
	f->kind = kind;
	f->fd = FILE_FIRST + nfiles;
	f->process = os_current;
	f->more = heap_calloc(1, more_nbytes);
	files[nfiles++] = f;
	if (os_current)
		gci_list_push(&os_current->files, &f->link);
	return f;
}

struct file *file_of(int fd)
{
	struct file *f =
		fd >= FILE_FIRST && fd - FILE_FIRST < nfiles ? files[fd - FILE_FIRST] : NULL;

	return f && f->fd == fd ? f : NULL;
}

void file_close(struct file *f)
{
	if (f->fd < 0)
		return;
	f->fd = -1;
	gci_list_del(&f->link);
	if (f->close)
		f->close(f);
}

void file_close_all(struct os_process *p)
{
	while (!gci_list_empty(&p->files))
		file_close(gci_container(p->files.next, struct file, link));
}

void file_changed(struct file *f)
{
	if (f->process)
		os_wake(f->process);
}

/* ---- epoll */

static uint32_t told(const struct watch *w)
{
	uint32_t is = w->file->fd >= 0 ? w->file->ready(w->file) : 0;

	return is & (w->event.events | EPOLLERR | EPOLLHUP);
}

static uint32_t epoll_ready(struct file *f)
{
	const struct epoll *e = f->more;
	int i;

	for (i = 0; i < e->n; i++)
		if (told(&e->watches[i]))
			return EPOLLIN;
	return 0;
}

static void epoll_free(void *more)
{
	heap_free(((struct epoll *)more)->watches);
}

int file_epoll_create(void)
{
	struct file *f = file_new(FILE_EPOLL, sizeof(struct epoll));

	f->ready = epoll_ready;
	f->free = epoll_free;
	return f->fd;
}

static int find_watch(const struct epoll *e, const struct file *f)
{
	int i;

	for (i = 0; i < e->n && e->watches[i].file != f; i++)
		;
	return i;
}

int file_epoll_ctl(int epfd, int op, int fd, const struct epoll_event *event)
{
	struct file *on = file_of(epfd), *f = file_of(fd);
	struct epoll *e = on ? on->more : NULL;
	int i = e && f ? find_watch(e, f) : 0;

	errno = EBADF;
	if (!e || !f || on->kind != FILE_EPOLL)
		return -1;
	errno = op == EPOLL_CTL_ADD ? EEXIST : ENOENT;
	if ((i < e->n) == (op == EPOLL_CTL_ADD))
		return -1;
	if (op == EPOLL_CTL_DEL) {
		e->watches[i] = e->watches[--e->n];
		return 0;
	}
	if (i == e->cap) {
		e->cap = 2 * e->cap + 8;
		e->watches = heap_grow(e->watches, (size_t)e->cap * sizeof(*e->watches));
	}
	e->watches[i] = (struct watch){f, *event};
	e->n += op == EPOLL_CTL_ADD;
	return 0;
}

/* What is closed is watched no more. */
static void sweep(struct epoll *e)
{
	int i;

	for (i = e->n - 1; i >= 0; i--)
		if (e->watches[i].file->fd < 0)
			e->watches[i] = e->watches[--e->n];
}

static int collect(struct epoll *e, struct epoll_event *events, int most)
{
	int i, n = 0, at;
	uint32_t is;

	sweep(e);
	at = e->n ? (int)gci_prng_below(&os_prng, (uint64_t)e->n) : 0;
	for (i = 0; i < e->n && n < most; i++) {
		const struct watch *w = &e->watches[(at + i) % e->n];

		is = told(w);
		if (is)
			events[n++] = (struct epoll_event){is, w->event.data};
	}
	return n;
}

static uint64_t until(int timeout_ms)
{
	return timeout_ms < 0 ? GCI_NEVER : os_now + (uint64_t)timeout_ms * GCI_NS_PER_MS;
}

int file_epoll_wait(int epfd, struct epoll_event *events, int most, int timeout_ms)
{
	struct file *f = file_of(epfd);
	uint64_t end = until(timeout_ms);
	int n;

	errno = EBADF;
	if (!f || f->kind != FILE_EPOLL)
		return -1;
	errno = EINTR;
	if (os_chance(200))
		return -1;
	while (!(n = collect(f->more, events, most)) && os_now < end)
		os_wait(end);
	return n;
}

static uint32_t poll_events(uint32_t is)
{
	return (is & EPOLLIN ? POLLIN : 0) | (is & EPOLLOUT ? POLLOUT : 0) |
	       (is & EPOLLERR ? POLLERR : 0) | (is & EPOLLHUP ? POLLHUP : 0);
}

int file_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	uint64_t end = until(timeout_ms);
	nfds_t i;
	int n;

	for (;;) {
		for (i = 0, n = 0; i < count; i++) {
			struct file *f = file_of(fds[i].fd);
			uint32_t is = f ? poll_events(f->ready(f)) : POLLNVAL;

			fds[i].revents = (short)(is & ((uint32_t)fds[i].events | POLLERR | POLLHUP |
							      POLLNVAL));
			n += fds[i].revents != 0;
		}
		if (n || os_now >= end)
			return n;
		os_wait(end);
	}
}

/* ---- timers and eventfds */

static uint32_t timer_ready(struct file *f)
{
	return ((struct timer *)f->more)->rings ? EPOLLIN : 0;
}

int file_timer_create(void)
{
	struct file *f = file_new(FILE_TIMER, sizeof(struct timer));

	f->ready = timer_ready;
	return f->fd;
}

static void on_ring(void *arg, uint64_t set)
{
	struct file *f = arg;
	struct timer *t = f->more;

	if (f->fd < 0 || t->sets != set)
		return;
	t->rings++;
	file_changed(f);
}

int file_timer_set(int fd, uint64_t at_ns)
{
	struct file *f = file_of(fd);
	struct timer *t = f->more;

	t->rings = 0;
	t->sets++;
	if (at_ns)
		os_at(at_ns, on_ring, f, t->sets);
	return 0;
}

static uint32_t event_ready(struct file *f)
{
	return EPOLLOUT | (((struct event *)f->more)->count ? EPOLLIN : 0);
}

int file_event_create(void)
{
	struct file *f = file_new(FILE_EVENT, sizeof(struct event));

	f->ready = event_ready;
	return f->fd;
}

long file_read(struct file *f, void *buf)
{
	struct timer *t = f->more;
	struct event *e = f->more;
	uint64_t *count = f->kind == FILE_TIMER ? &t->rings : &e->count;

	errno = EAGAIN;
	if (!*count)
		return -1;
	memcpy(buf, count, sizeof(*count));
	*count = 0;
	return sizeof(*count);
}

long file_write(struct file *f, const void *buf)
{
	struct event *e = f->more;
	uint64_t add;

	memcpy(&add, buf, sizeof(add));
	e->count += add;
	file_changed(f);
	return sizeof(add);
}
