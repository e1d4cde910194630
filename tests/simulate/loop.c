/* SPDX-License-Identifier: MIT
 * As much of libuv as the transport uses, over simulated files and time: a loop with timers, polls
 * and asyncs. Its functions are found before the library's. A loop is a descriptor that is readable
 * when one of its polls or asyncs has something to do; its timers do not show there, as in libuv.
 */
#include "tests/simulate/file.h"
#include "tests/simulate/heap.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum sort { TIMER, POLL, ASYNC };

struct handle {
	struct gci_list link; /* of the loop */
	enum sort sort;
	uv_handle_t *uv;
	int active, closing;
	uint64_t due_ms;
	uv_timer_cb on_timer;
	struct file *file;
	int events;
	uv_poll_cb on_poll;
	uv_async_cb on_async;
	int sent;
	uv_close_cb on_close;
};

struct loop {
	struct gci_list handles;
	uint64_t now_ms;
	int stops;
};

static struct loop *loop_of(const uv_loop_t *l)
{
	return ((struct file *)l->internal_fields)->more;
}

static struct handle *handle_of(const uv_handle_t *h)
{
	return h->u.reserved[0];
}

static struct handle *new_handle(uv_loop_t *l, void *uv, enum sort sort)
{
	struct handle *h = heap_calloc(1, sizeof(*h));

	h->uv = uv;
	h->sort = sort;
	h->uv->loop = l;
	h->uv->u.reserved[0] = h;
	gci_list_push(&loop_of(l)->handles, &h->link);
	return h;
}

/* ---- loops */

static int poll_is(const struct handle *h)
{
	uint32_t is = h->file->fd >= 0 ? h->file->ready(h->file) : 0;

	return (is & (EPOLLIN | EPOLLERR | EPOLLHUP) ? h->events & UV_READABLE : 0) |
	       (is & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? h->events & UV_WRITABLE : 0);
}

static int has_work(const struct handle *h)
{
	return h->closing || (h->sort == ASYNC && h->sent) ||
	       (h->sort == POLL && h->active && poll_is(h));
}

static uint32_t loop_ready(struct file *f)
{
	struct loop *l = f->more;
	struct gci_list *it;

	gci_list_each (it, &l->handles)
		if (has_work(gci_container(it, struct handle, link)))
			return EPOLLIN;
	return 0;
}

static void loop_free(void *more)
{
	struct loop *l = more;

	while (!gci_list_empty(&l->handles)) {
		struct handle *h = gci_container(l->handles.next, struct handle, link);

		gci_list_del(&h->link);
		heap_free(h);
	}
}

int uv_loop_init(uv_loop_t *loop)
{
	struct file *f = file_new(FILE_LOOP, sizeof(struct loop));
	struct loop *l = f->more;

	f->ready = loop_ready;
	f->free = loop_free;
	gci_list_init(&l->handles);
	loop->internal_fields = f;
	uv_update_time(loop);
	return 0;
}

int uv_loop_close(uv_loop_t *loop)
{
	struct loop *l = loop_of(loop);

	if (!gci_list_empty(&l->handles))
		return UV_EBUSY;
	file_close(loop->internal_fields);
	return 0;
}

int uv_backend_fd(const uv_loop_t *loop)
{
	return ((struct file *)loop->internal_fields)->fd;
}

void uv_update_time(uv_loop_t *loop)
{
	loop_of(loop)->now_ms = os_now / GCI_NS_PER_MS;
}

uint64_t uv_now(const uv_loop_t *loop)
{
	return loop_of(loop)->now_ms;
}

void uv_stop(uv_loop_t *loop)
{
	loop_of(loop)->stops = 1;
}

static struct handle *next_timer(const struct loop *l)
{
	struct handle *first = NULL;
	struct gci_list *it;

	gci_list_each (it, &l->handles) {
		struct handle *h = gci_container(it, struct handle, link);

		if (h->sort == TIMER && h->active && (!first || h->due_ms < first->due_ms))
			first = h;
	}
	return first;
}

int uv_backend_timeout(const uv_loop_t *loop)
{
	const struct loop *l = loop_of(loop);
	const struct handle *h = next_timer(l);
	struct gci_list *it;

	gci_list_each (it, &l->handles)
		if (gci_container(it, struct handle, link)->closing)
			return 0;
	if (!h)
		return -1;
	return h->due_ms > l->now_ms ? (int)(h->due_ms - l->now_ms) : 0;
}

static void run_timers(struct loop *l)
{
	struct handle *h;

	while ((h = next_timer(l)) && h->due_ms <= l->now_ms) {
		h->active = 0;
		h->on_timer((uv_timer_t *)h->uv);
	}
}

static void run_ready(struct loop *l)
{
	struct gci_list *it, *next;

	for (it = l->handles.next; it != &l->handles; it = next) {
		struct handle *h = gci_container(it, struct handle, link);
		int is;

		next = it->next;
		if (h->sort == ASYNC && h->sent) {
			h->sent = 0;
			h->on_async((uv_async_t *)h->uv);
		} else if (h->sort == POLL && h->active && (is = poll_is(h))) {
			h->on_poll((uv_poll_t *)h->uv, 0, is);
		}
	}
}

static void run_closing(struct loop *l)
{
	struct gci_list *it, *next;

	for (it = l->handles.next; it != &l->handles; it = next) {
		struct handle *h = gci_container(it, struct handle, link);

		next = it->next;
		if (!h->closing)
			continue;
		gci_list_del(&h->link);
		if (h->on_close)
			h->on_close(h->uv);
		heap_free(h);
	}
}

/* The transport waits elsewhere: all runs are one round. */
int uv_run(uv_loop_t *loop, uv_run_mode mode)
{
	struct loop *l = loop_of(loop);

	(void)mode;
	os_call();
	uv_update_time(loop);
	run_timers(l);
	run_ready(l);
	run_closing(l);
	l->stops = 0;
	return 0;
}

/* ---- handles */

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
	new_handle(loop, timer, TIMER);
	return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat)
{
	struct handle *h = handle_of((uv_handle_t *)timer);

	if (repeat)
		abort(); /* nobody uses it */
	h->on_timer = cb;
	h->due_ms = loop_of(timer->loop)->now_ms + timeout;
	h->active = 1;
	return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
	handle_of((uv_handle_t *)timer)->active = 0;
	return 0;
}

uint64_t uv_timer_get_due_in(const uv_timer_t *timer)
{
	const struct handle *h = handle_of((const uv_handle_t *)timer);
	uint64_t now_ms = loop_of(timer->loop)->now_ms;

	return h->due_ms > now_ms ? h->due_ms - now_ms : 0;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
	struct file *f = file_of(fd);

	if (!f)
		return UV_EBADF;
	new_handle(loop, poll, POLL)->file = f;
	return 0;
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb)
{
	struct handle *h = handle_of((uv_handle_t *)poll);

	h->events = events;
	h->on_poll = cb;
	h->active = 1;
	return 0;
}

int uv_poll_stop(uv_poll_t *poll)
{
	handle_of((uv_handle_t *)poll)->active = 0;
	return 0;
}

int uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb cb)
{
	struct handle *h = new_handle(loop, async, ASYNC);

	h->on_async = cb;
	h->active = 1;
	return 0;
}

int uv_async_send(uv_async_t *async)
{
	handle_of((uv_handle_t *)async)->sent = 1;
	file_changed(async->loop->internal_fields);
	return 0;
}

int uv_is_active(const uv_handle_t *handle)
{
	return handle_of(handle)->active;
}

void uv_close(uv_handle_t *handle, uv_close_cb cb)
{
	struct handle *h = handle_of(handle);

	h->active = h->sent = 0;
	h->closing = 1;
	h->on_close = cb;
}

void uv_ref(uv_handle_t *handle)
{
	(void)handle;
}

void uv_unref(uv_handle_t *handle)
{
	(void)handle;
}
