/* SPDX-License-Identifier: MIT
 * In place of the system calls and clocks that the code under test uses: the linker puts these there
 * (--wrap). What is not about a simulated file goes to the real one. */
#include "tests/simulate/heap.h"
#include "tests/simulate/net.h"

#include "transport/sockbuf.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOCKED_NS GCI_NS_PER_US /* between two looks at a lock */

int __real_sched_yield(void);
int __real_close(int fd);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __real_write(int fd, const void *buf, size_t n);

uint64_t __wrap_gci_now_ns(void);
uint64_t __wrap_gci_wall_ns(void);
void __wrap_gci_sleep_ns(uint64_t ns);
int __wrap_sched_yield(void);
void __wrap_gci_sockmax_read(struct gci_sockmax *max);
int __wrap_pthread_create(
	pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);
int __wrap_pthread_join(pthread_t id, void **result);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_listen(int fd, int backlog);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_shutdown(int fd, int how);
int __wrap_close(int fd);
ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags);
ssize_t __wrap_readv(int fd, const struct iovec *iov, int niov);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_write(int fd, const void *buf, size_t n);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(
	int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_eventfd(unsigned count, int flags);

/* The file, in its system call; NULL with EBADF. */
static struct file *enter(int fd)
{
	struct file *f;

	os_call();
	f = file_of(fd);
	if (!f)
		errno = EBADF;
	return f;
}

/* ---- time and threads */

uint64_t __wrap_gci_now_ns(void)
{
	return os_now;
}

uint64_t __wrap_gci_wall_ns(void)
{
	return os_now;
}

void __wrap_gci_sleep_ns(uint64_t ns)
{
	uint64_t end = os_now + ns;

	os_call();
	while (os_now < end)
		os_wait(end);
}

/* Others may run, and a moment passes. */
int __wrap_sched_yield(void)
{
	if (!os_current)
		return __real_sched_yield(); /* a sanitizer, at the end */
	os_call();
	os_wait(os_now + GCI_NS_PER_US);
	return 0;
}

/* A file of /proc says nothing of this network. */
void __wrap_gci_sockmax_read(struct gci_sockmax *max)
{
	memset(max, 0, sizeof(*max));
}

int __wrap_pthread_create(
	pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg)
{
	(void)attr;
	os_call();
	*id = (pthread_t)(uintptr_t)os_thread(os_current, fn, arg);
	return 0;
}

int __wrap_pthread_join(pthread_t id, void **result)
{
	const struct os_thread *t = (const void *)(uintptr_t)id;

	(void)result;
	os_call();
	while (!os_thread_over(t))
		os_wait(GCI_NEVER);
	return 0;
}

/* A rank that dies before it has set them free again must not leave signals blocked for all. */
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	(void)how;
	(void)set;
	if (old)
		sigemptyset(old);
	return 0;
}

/* Whoever holds it may be in a call, where others have their turn. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	if (!os_current)
		return __real_pthread_mutex_lock(m);
	while (pthread_mutex_trylock(m))
		os_wait(os_current->stopped ? GCI_NEVER : os_now + LOCKED_NS);
	return 0;
}

/* ---- sockets */

int __wrap_socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)protocol;
	os_call();
	return net_socket(type);
}

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct file *f = enter(fd);

	(void)len;
	return f ? net_bind(f, addr) : -1;
}

int __wrap_listen(int fd, int backlog)
{
	struct file *f = enter(fd);

	(void)backlog;
	return f ? net_listen(f) : -1;
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct file *f = enter(fd);

	(void)len;
	return f ? net_connect(f, addr) : -1;
}

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct file *f = enter(fd);

	return f ? net_accept(f, addr, len, flags) : -1;
}

int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct file *f = enter(fd);

	return f ? net_name(f, 0, addr, len) : -1;
}

int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct file *f = enter(fd);

	return f ? net_name(f, 1, addr, len) : -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct file *f = enter(fd);

	return f ? net_getsockopt(f, level, name, value, len) : -1;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct file *f = enter(fd);

	return f ? net_setsockopt(f, level, name, value, len) : -1;
}

int __wrap_shutdown(int fd, int how)
{
	struct file *f = enter(fd);

	return f ? net_shutdown(f, how) : -1;
}

/* ---- bytes */

int __wrap_close(int fd)
{
	struct file *f;

	if (fd < FILE_FIRST)
		return __real_close(fd);
	f = enter(fd);
	if (!f)
		return -1;
	file_close(f);
	return 0;
}

ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags)
{
	struct iovec iov = {.iov_base = buf, .iov_len = n};
	struct file *f = enter(fd);

	return f ? net_receive(f, &iov, 1, flags) : -1;
}

ssize_t __wrap_readv(int fd, const struct iovec *iov, int niov)
{
	struct file *f = enter(fd);

	return f ? net_receive(f, iov, niov, 0) : -1;
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	struct file *f;

	if (fd < FILE_FIRST)
		return __real_read(fd, buf, n);
	f = enter(fd);
	return f ? file_read(f, buf) : -1;
}

ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = n};
	struct file *f = enter(fd);

	return f ? net_send(f, &iov, 1, flags) : -1;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct file *f = enter(fd);

	return f ? net_send(f, msg->msg_iov, (int)msg->msg_iovlen, flags) : -1;
}

ssize_t __wrap_write(int fd, const void *buf, size_t n)
{
	struct file *f;

	if (fd < FILE_FIRST)
		return __real_write(fd, buf, n);
	f = enter(fd);
	return f ? file_write(f, buf) : -1;
}

/* ---- waiting */

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	os_call();
	return file_poll(fds, n, timeout_ms);
}

int __wrap_epoll_create1(int flags)
{
	(void)flags;
	os_call();
	return file_epoll_create();
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	os_call();
	return file_epoll_ctl(epfd, op, fd, event);
}

int __wrap_epoll_wait(int epfd, struct epoll_event *events, int most, int timeout_ms)
{
	os_call();
	return file_epoll_wait(epfd, events, most, timeout_ms);
}

int __wrap_timerfd_create(int clock, int flags)
{
	(void)clock;
	(void)flags;
	os_call();
	return file_timer_create();
}

int __wrap_timerfd_settime(
	int fd, int flags, const struct itimerspec *at, struct itimerspec *before)
{
	struct file *f = enter(fd);

	(void)flags;
	(void)before;
	return f ? file_timer_set(fd, (uint64_t)at->it_value.tv_sec * GCI_NS_PER_S +
					      (uint64_t)at->it_value.tv_nsec)
		 : -1;
}

int __wrap_eventfd(unsigned count, int flags)
{
	(void)count;
	(void)flags;
	os_call();
	return file_event_create();
}
