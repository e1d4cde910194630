/* SPDX-License-Identifier: MIT */
#include "transport/derive.h"

#include "base/buf.h"
#include "base/error.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

#define SECRET 32

/* HKDF of the secret: 0 or GCOLL_ERR_NOMEM. */
static int hkdf(int mode, const uint8_t secret[SECRET], const uint8_t *info, size_t ninfo,
	uint8_t *out, size_t n)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[5];
	int ok;

	params[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){"SHA256"}, 0);
	params[1] = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	params[2] = OSSL_PARAM_construct_octet_string(
		OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret, SECRET);
	params[3] = OSSL_PARAM_construct_octet_string(
		OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)info, ninfo);
	params[4] = OSSL_PARAM_construct_end();
	ok = ctx && EVP_KDF_derive(ctx, out, n, params) > 0;
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok ? 0 : GCOLL_ERR_NOMEM;
}

int gci_derive(const uint8_t secret[GCI_SECRET_NBYTES], const char *purpose,
	const uint32_t *numbers, unsigned n, uint8_t key[32])
{
	uint8_t info[GCI_DERIVE_PURPOSE + 4 * GCI_DERIVE_NUMBERS];
	size_t len = strlen(purpose) + 1; /* the zero ends it: no purpose begins another */
	unsigned i;

	memcpy(info, purpose, len);
	for (i = 0; i < n; i++, len += 4)
		gci_store_u32(info + len, numbers[i]);
	return hkdf(EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND, secret, info, len, key, 32);
}

int gci_derive_label(const uint8_t secret[32], const char *label, const uint8_t *context,
	size_t ncontext, uint8_t *out, size_t n)
{
	static const char prefix[] = "tls13 ";
	size_t nlabel = strlen(prefix) + strlen(label), len = 3;
	uint8_t info[3 + 18 + 1 + 32] = {0, (uint8_t)n, (uint8_t)nlabel};

	memcpy(info + len, prefix, strlen(prefix));
	memcpy(info + len + strlen(prefix), label, strlen(label));
	len += nlabel;
	info[len++] = (uint8_t)ncontext;
	if (ncontext)
		memcpy(info + len, context, ncontext);
	return hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, secret, info, len + ncontext, out, n);
}
