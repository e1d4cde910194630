/* SPDX-License-Identifier: MIT */
#include "tests/transport/tcp_trials.h"

#include <errno.h>

/* Those that every data path has. */
static const struct trial common[] = {
	{FAILING_socket, EMFILE, MAY_END},
	{FAILING_socket, ENFILE, MAY_END},
	{FAILING_socket, ENOBUFS, MAY_END},
	{FAILING_socket, ENOMEM, MAY_END},
	{FAILING_bind, EADDRINUSE, MAY_END},
	{FAILING_bind, EADDRNOTAVAIL, MAY_END},
	{FAILING_listen, EADDRINUSE, MAY_END},
	{FAILING_getsockname, ENOBUFS, MAY_END},
	{FAILING_connect, EINTR, GOES_ON},
	{FAILING_connect, ECONNREFUSED, MAY_END},
	{FAILING_connect, ENETUNREACH, MAY_END},
	{FAILING_connect, EADDRNOTAVAIL, MAY_END},
	{FAILING_accept4, EINTR, GOES_ON},
	{FAILING_accept4, EAGAIN, GOES_ON},
	{FAILING_accept4, ECONNABORTED, GOES_ON},
	{FAILING_accept4, EMFILE, GOES_ON},
	{FAILING_accept4, ENFILE, GOES_ON},
	{FAILING_accept4, ENOBUFS, GOES_ON},
	{FAILING_accept4, ENOMEM, GOES_ON},
	{FAILING_getsockopt, ENOBUFS, MAY_END},
	{FAILING_setsockopt, ENOBUFS, GOES_ON},
	{FAILING_setsockopt, EPERM, GOES_ON},
	{FAILING_shutdown, ENOTCONN, GOES_ON},
	{FAILING_poll, ENOMEM, GOES_ON},
	{FAILING_recv, EINTR, GOES_ON},
	{FAILING_recv, EAGAIN, GOES_ON},
	{FAILING_recv, ECONNRESET, REPLAYED},
	{FAILING_recv, ETIMEDOUT, REPLAYED},
	{FAILING_recv, ENOMEM, REPLAYED},
	{FAILING_send, EINTR, GOES_ON},
	{FAILING_send, EAGAIN, REPLAYED}, /* of the first bytes: the socket never takes them */
	{FAILING_send, EPIPE, REPLAYED},
	{FAILING_send, ECONNRESET, REPLAYED},
	{FAILING_send, ENOBUFS, REPLAYED},
	{FAILING_ioctl, EINVAL, GOES_ON},
	{FAILING_epoll_create1, EMFILE, MAY_END},
	{FAILING_epoll_create1, ENOMEM, MAY_END},
	{FAILING_epoll_ctl, ENOMEM, MAY_END},
	{FAILING_epoll_ctl, ENOSPC, MAY_END},
	{FAILING_epoll_wait, EINTR, GOES_ON},
	{FAILING_timerfd_create, EMFILE, MAY_END},
	{FAILING_timerfd_create, ENODEV, MAY_END},
	{FAILING_timerfd_settime, EINVAL, GOES_ON},
	{FAILING_read, EAGAIN, GOES_ON},
	{FAILING_getrlimit64, EPERM, GOES_ON},
	{FAILING_getaddrinfo, 0, MAY_END},
	{FAILING_getnameinfo, 0, MAY_END},
	{FAILING_close, EINTR, GOES_ON},
	{FAILING_close, EIO, GOES_ON},
	{FAILING_uv_loop_init, EMFILE, MAY_END},
	{FAILING_uv_poll_init, ENOMEM, MAY_END},
	{FAILING_uv_async_init, EMFILE, MAY_END},
	{FAILING_EVP_KDF_fetch, 0, MAY_END},
	{FAILING_EVP_KDF_CTX_new, 0, MAY_END},
	{FAILING_EVP_KDF_derive, 0, MAY_END},
	{FAILING_HMAC, 0, MAY_END},
};

static const struct trial polled[] = {
	{FAILING_sendmsg, EINTR, GOES_ON},
	{FAILING_sendmsg, EAGAIN, GOES_ON},
	{FAILING_sendmsg, ECONNRESET, REPLAYED},
	{FAILING_sendmsg, ENOMEM, REPLAYED},
	{FAILING_readv, EINTR, GOES_ON},
	{FAILING_readv, EAGAIN, GOES_ON},
	{FAILING_readv, ECONNRESET, REPLAYED},
	{FAILING_readv, ETIMEDOUT, REPLAYED},
};

static const struct trial tls[] = {
	{FAILING_sendmsg, EINTR, GOES_ON},
	{FAILING_sendmsg, EAGAIN, GOES_ON},
	{FAILING_sendmsg, ECONNRESET, REPLAYED},
	{FAILING_sendmsg, ENOMEM, REPLAYED},
	{FAILING_SSL_CTX_new, 0, MAY_END},
	{FAILING_SSL_new, 0, MAY_END},
	{FAILING_BIO_meth_new, 0, MAY_END},
	{FAILING_BIO_new, 0, MAY_END},
	{FAILING_SSL_SESSION_new, 0, MAY_END},
	{FAILING_EVP_CIPHER_fetch, 0, MAY_END},
	{FAILING_EVP_CIPHER_CTX_new, 0, MAY_END},
	{FAILING_EVP_CipherInit_ex, 0, MAY_END},
	{FAILING_EVP_CipherUpdate, 0, MAY_END},
};

static const struct trial uring[] = {
	{FAILING_eventfd, EMFILE, GOES_ON},
	{FAILING_eventfd_read, EAGAIN, GOES_ON},
	{FAILING_io_uring_queue_init_params, EMFILE, GOES_ON},
	{FAILING_io_uring_queue_init_params, EINVAL,
		GOES_ON}, /* older kernels do not know a flag */
	{FAILING_io_uring_queue_init_params, EPERM, GOES_ON},
	{FAILING_io_uring_queue_init_params, ENOMEM, GOES_ON},
	{FAILING_io_uring_get_probe_ring, ENOMEM, GOES_ON},
	{FAILING_io_uring_register_eventfd, ENOMEM, GOES_ON},
	{FAILING_io_uring_submit, EINTR, GOES_ON},
	{FAILING_io_uring_submit, EAGAIN, GOES_ON},
	{FAILING_io_uring_submit, EBUSY, GOES_ON},
	{FAILING_io_uring_submit, ENOMEM, MAY_END},
	{FAILING_io_uring_submit, EPERM, MAY_END},
	{FAILING_io_uring_submit_and_wait, EINTR, GOES_ON},
	{FAILING_io_uring_submit_and_wait, EAGAIN, GOES_ON},
	{FAILING_io_uring_submit_and_wait, EPERM, GOES_ON},
};

/* Of a loop that is the caller's. */
static const struct trial loop[] = {
	{FAILING_epoll_create1, EMFILE, MAY_END},
	{FAILING_timerfd_create, EMFILE, MAY_END},
	{FAILING_epoll_ctl, ENOSPC, MAY_END},
	{FAILING_uv_poll_init, ENOMEM, MAY_END},
	{FAILING_uv_async_init, EMFILE, MAY_END},
	{FAILING_socket, EMFILE, MAY_END},
	{FAILING_accept4, ENOBUFS, GOES_ON},
	{FAILING_recv, ECONNRESET, REPLAYED},
};

#define ALL(table)                                      \
	{                                               \
		table, sizeof(table) / sizeof(*(table)) \
	}

const struct trials common_trials = ALL(common), polled_trials = ALL(polled), tls_trials = ALL(tls),
		    uring_trials = ALL(uring), loop_trials = ALL(loop);
