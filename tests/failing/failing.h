/* SPDX-License-Identifier: MIT
 * Makes any one call of a function fail that the code under test asks something of: the system, or
 * a library, or base/mem.h, that may be short of memory. The linker puts these functions in the
 * place of theirs (--wrap), for all that is linked into the program, but not for what shared
 * libraries call themselves.
 *
 *	failing_at(FAILING_socket, 3, EMFILE);
 *	... the third call of socket from here fails, once ...
 *	happened = failing_happened(FAILING_socket);
 *	failing_at(FAILING_socket, 0, 0);
 *
 * Several functions may be told to fail, each by itself. For one thread: the others' calls are
 * neither counted nor failed.
 *
 * Programs that are started by a test, and have this linked in, fail by themselves where the
 * environment says so, see processes.c. */
#ifndef GCI_TESTS_FAILING_H
#define GCI_TESTS_FAILING_H

/* Those of sockets and descriptors, files, libraries (pthreads, libuv, OpenSSL), liburing,
 * base/mem.h. */
#define FAILING_SOCKETS(X) \
	X(socket)          \
	X(bind)            \
	X(listen)          \
	X(connect)         \
	X(accept4)         \
	X(getsockname)     \
	X(getpeername)     \
	X(getsockopt)      \
	X(setsockopt)      \
	X(shutdown)        \
	X(recv)            \
	X(readv)           \
	X(send)            \
	X(sendmsg)         \
	X(poll)            \
	X(ioctl)           \
	X(epoll_create1)   \
	X(epoll_ctl)       \
	X(epoll_wait)      \
	X(timerfd_create)  \
	X(timerfd_settime) \
	X(eventfd)         \
	X(eventfd_read)    \
	X(eventfd_write)   \
	X(getrlimit64)     \
	X(getifaddrs)      \
	X(getaddrinfo)     \
	X(getnameinfo)
#define FAILING_FILES(X) \
	X(open64)        \
	X(read)          \
	X(write)         \
	X(close)         \
	X(rename)        \
	X(unlink)        \
	X(fchmod)        \
	X(lstat64)       \
	X(fstat64)       \
	X(access)        \
	X(fopen64)       \
	X(fgets)         \
	X(mmap64)        \
	X(munmap)        \
	X(madvise)       \
	X(clock_nanosleep)
#define FAILING_LIBRARIES(X)  \
	X(pthread_create)     \
	X(uv_loop_init)       \
	X(uv_poll_init)       \
	X(uv_async_init)      \
	X(SSL_CTX_new)        \
	X(SSL_new)            \
	X(BIO_meth_new)       \
	X(BIO_new)            \
	X(SSL_SESSION_new)    \
	X(EVP_CIPHER_fetch)   \
	X(EVP_CIPHER_CTX_new) \
	X(EVP_CipherInit_ex)  \
	X(EVP_CipherUpdate)   \
	X(EVP_KDF_fetch)      \
	X(EVP_KDF_CTX_new)    \
	X(EVP_KDF_derive)     \
	X(HMAC)
#define FAILING_URING(X)              \
	X(io_uring_queue_init_params) \
	X(io_uring_get_probe_ring)    \
	X(io_uring_register_eventfd)  \
	X(io_uring_submit)            \
	X(io_uring_submit_and_wait)
#define FAILING_MEMORY(X)   \
	X(gci_calloc)       \
	X(gci_reallocarray) \
	X(gci_strdup)       \
	X(gci_strndup)      \
	X(gci_asprintf)     \
	X(gci_grow)         \
	X(gci_grow_by_one)  \
	X(gci_blocks_take)  \
	X(gci_secret_alloc)

#define FAILING_NAME(name) FAILING_##name,
enum failing {
	FAILING_SOCKETS(FAILING_NAME) FAILING_FILES(FAILING_NAME) FAILING_LIBRARIES(FAILING_NAME)
		FAILING_URING(FAILING_NAME) FAILING_MEMORY(FAILING_NAME) FAILING_N
};
#undef FAILING_NAME

/* The n-th call from now (1 = the next one) fails with this errno, or as the library says it; 0
 * switches it off. connect with EINTR, close, shutdown and eventfd_write do what they
 * should all the same. */
void failing_at(enum failing what, unsigned long n, int error);

/* Each call fails from the n-th from now on, until failing_at switches it off. */
void failing_from(enum failing what, unsigned long n, int error);

/* The next call fails that is made from a place where none has failed since failing_forget. A place
 * is an instruction: what is inlined twice are two. */
void failing_anew(enum failing what, int error);
void failing_forget(enum failing what);

/* Whether it has failed, since one of these three. */
int failing_happened(enum failing what);

/* How many calls have failed since the program began. */
unsigned long failing_total(enum failing what);

const char *failing_name(enum failing what);

/* How many descriptors are open, give or take always the same. */
int failing_descriptors(void);

/* Before and after a test of cmocka's; the second fails if others are open than at the first. */
int failing_begin(void **state);
int failing_end(void **state);

/* For the functions themselves: true if this call must fail, which came from `place`; sets errno.
 */
int failing_must_at(enum failing what, const void *place);
#define failing_must(what) failing_must_at(what, __builtin_return_address(0))

/* ---- what failing.c and processes.c share */

/* Whether this call must fail because of what the environment says. */
int failing_in_process(enum failing what, const void *place);

/* Puts it down in the file that the environment names. */
void failing_put_down(enum failing what, const void *place);

#endif
