/* SPDX-License-Identifier: MIT
 * Sockets, descriptors and files. */
#include "tests/failing/failing.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>

#define WRAP(type, name, params, args, bad)       \
	type __real_##name params;                \
	type __wrap_##name params;                \
	type __wrap_##name params                 \
	{                                         \
		if (failing_must(FAILING_##name)) \
			return bad;               \
		return __real_##name args;        \
	}

/* clang-format off */
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
WRAP(int, bind, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len), -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1)
WRAP(int, accept4, (int fd, struct sockaddr *addr, socklen_t *len, int flags),
	(fd, addr, len, flags), -1)
WRAP(int, getsockname, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len), -1)
WRAP(int, getpeername, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len), -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
	(fd, level, name, value, len), -1)
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
	(fd, level, name, value, len), -1)
WRAP(ssize_t, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, n, flags), -1)
WRAP(ssize_t, readv, (int fd, const struct iovec *iov, int niov), (fd, iov, niov), -1)
WRAP(ssize_t, send, (int fd, const void *buf, size_t n, int flags), (fd, buf, n, flags), -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags), -1)
WRAP(int, poll, (struct pollfd *fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms), -1)
WRAP(int, epoll_create1, (int flags), (flags), -1)
WRAP(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event), (epfd, op, fd, event),
	-1)
WRAP(int, epoll_wait, (int epfd, struct epoll_event *events, int most, int timeout_ms),
	(epfd, events, most, timeout_ms), -1)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), -1)
WRAP(int, timerfd_settime,
	(int fd, int flags, const struct itimerspec *at, struct itimerspec *before),
	(fd, flags, at, before), -1)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), -1)
WRAP(int, eventfd_read, (int fd, eventfd_t *count), (fd, count), -1)
WRAP(int, getrlimit64, (int resource, struct rlimit64 *limit), (resource, limit), -1)
WRAP(int, getifaddrs, (struct ifaddrs **list), (list), -1)
WRAP(int, getaddrinfo,
	(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found),
	(host, service, hints, found), EAI_MEMORY)
WRAP(int, getnameinfo,
	(const struct sockaddr *addr, socklen_t len, char *host, socklen_t nhost, char *service,
		socklen_t nservice, int flags),
	(addr, len, host, nhost, service, nservice, flags), EAI_MEMORY)
WRAP(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n), -1)
WRAP(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1)
WRAP(int, unlink, (const char *path), (path), -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
WRAP(int, lstat64, (const char *path, struct stat64 *st), (path, st), -1)
WRAP(int, fstat64, (int fd, struct stat64 *st), (fd, st), -1)
WRAP(int, access, (const char *path, int how), (path, how), -1)
WRAP(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL)
WRAP(char *, fgets, (char *text, int size, FILE *f), (text, size, f), NULL)
WRAP(void *, mmap64, (void *at, size_t n, int prot, int flags, int fd, off64_t off),
	(at, n, prot, flags, fd, off), MAP_FAILED)
WRAP(int, munmap, (void *at, size_t n), (at, n), -1)
WRAP(int, madvise, (void *at, size_t n, int advice), (at, n, advice), -1)
WRAP(int, clock_nanosleep,
	(clockid_t clock, int flags, const struct timespec *at, struct timespec *left),
	(clock, flags, at, left), errno)
/* clang-format on */

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_ioctl(int fd, unsigned long what, void *arg);
int __wrap_ioctl(int fd, unsigned long what, void *arg);
int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_eventfd_write(int fd, eventfd_t count);
int __wrap_eventfd_write(int fd, eventfd_t count);
int __real_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how);

/* A signal does not end the attempt. */
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (!failing_must(FAILING_connect))
		return __real_connect(fd, addr, len);
	if (errno == EINTR) {
		__real_connect(fd, addr, len);
		errno = EINTR;
	}
	return -1;
}

int __wrap_ioctl(int fd, unsigned long what, void *arg)
{
	return failing_must(FAILING_ioctl) ? -1 : __real_ioctl(fd, what, arg);
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	return failing_must(FAILING_open64) ? -1 : __real_open64(path, flags, mode);
}

/* The descriptor is gone, whatever close says. */
int __wrap_close(int fd)
{
	int rc = __real_close(fd), error = errno;

	if (failing_must(FAILING_close))
		return -1;
	errno = error;
	return rc;
}

/* It complains where the connection is over already. */
int __wrap_shutdown(int fd, int how)
{
	int rc = __real_shutdown(fd, how), error = errno;

	if (failing_must(FAILING_shutdown))
		return -1;
	errno = error;
	return rc;
}

/* Whose count has no room is readable all the same. */
int __wrap_eventfd_write(int fd, eventfd_t count)
{
	int rc = __real_eventfd_write(fd, count);

	return failing_must(FAILING_eventfd_write) ? -1 : rc;
}
