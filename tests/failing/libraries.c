/* SPDX-License-Identifier: MIT
 * pthreads, libuv, OpenSSL and liburing. */
#include "tests/failing/failing.h"

#include <errno.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <uv.h>

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
WRAP(int, pthread_create,
	(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg),
	(id, attr, run, arg), errno)
WRAP(int, uv_loop_init, (uv_loop_t *loop), (loop), -errno)
WRAP(int, uv_poll_init, (uv_loop_t *loop, uv_poll_t *h, int fd), (loop, h, fd), -errno)
WRAP(int, uv_async_init, (uv_loop_t *loop, uv_async_t *h, uv_async_cb fn), (loop, h, fn), -errno)

WRAP(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *method), (method), NULL)
WRAP(SSL *, SSL_new, (SSL_CTX *ctx), (ctx), NULL)
WRAP(BIO_METHOD *, BIO_meth_new, (int type, const char *name), (type, name), NULL)
WRAP(BIO *, BIO_new, (const BIO_METHOD *method), (method), NULL)
WRAP(SSL_SESSION *, SSL_SESSION_new, (void), (), NULL)
WRAP(EVP_CIPHER *, EVP_CIPHER_fetch, (OSSL_LIB_CTX *lib, const char *name, const char *properties),
	(lib, name, properties), NULL)
WRAP(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new, (void), (), NULL)
WRAP(int, EVP_CipherInit_ex,
	(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, ENGINE *engine, const unsigned char *key,
		const unsigned char *iv, int enc),
	(ctx, cipher, engine, key, iv, enc), 0)
WRAP(int, EVP_CipherUpdate,
	(EVP_CIPHER_CTX *ctx, unsigned char *out, int *nout, const unsigned char *in, int n),
	(ctx, out, nout, in, n), 0)
WRAP(EVP_KDF *, EVP_KDF_fetch, (OSSL_LIB_CTX *lib, const char *name, const char *properties),
	(lib, name, properties), NULL)
WRAP(EVP_KDF_CTX *, EVP_KDF_CTX_new, (EVP_KDF *kdf), (kdf), NULL)
WRAP(int, EVP_KDF_derive,
	(EVP_KDF_CTX *ctx, unsigned char *key, size_t n, const OSSL_PARAM params[]),
	(ctx, key, n, params), 0)
WRAP(unsigned char *, HMAC,
	(const EVP_MD *md, const void *key, int nkey, const unsigned char *data, size_t n,
		unsigned char *out, unsigned *nout),
	(md, key, nkey, data, n, out, nout), NULL)

#ifdef FAILING_HAS_URING
#include <liburing.h>
WRAP(int, io_uring_queue_init_params,
	(unsigned n, struct io_uring *ring, struct io_uring_params *params), (n, ring, params), -errno)
WRAP(struct io_uring_probe *, io_uring_get_probe_ring, (struct io_uring *ring), (ring), NULL)
WRAP(int, io_uring_register_eventfd, (struct io_uring *ring, int fd), (ring, fd), -errno)
WRAP(int, io_uring_submit, (struct io_uring *ring), (ring), -errno)
WRAP(int, io_uring_submit_and_wait, (struct io_uring *ring, unsigned n), (ring, n), -errno)
#endif
/* clang-format on */
