/* SPDX-License-Identifier: MIT */
#include "transport/derive.h"

#include "base/buf.h"
#include "base/error.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

int gci_derive(const uint8_t secret[GCI_SECRET_NBYTES], const char *purpose,
	const uint32_t *numbers, unsigned n, uint8_t key[32])
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	uint8_t info[GCI_DERIVE_PURPOSE + 4 * GCI_DERIVE_NUMBERS];
	size_t len = strlen(purpose) + 1; /* the zero ends it: no purpose begins another */
	OSSL_PARAM params[4];
	unsigned i;
	int ok;

	memcpy(info, purpose, len);
	for (i = 0; i < n; i++, len += 4)
		gci_store_u32(info + len, numbers[i]);
	params[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){"SHA256"}, 0);
	params[1] = OSSL_PARAM_construct_octet_string(
		OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret, GCI_SECRET_NBYTES);
	params[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, len);
	params[3] = OSSL_PARAM_construct_end();
	ok = ctx && EVP_KDF_derive(ctx, key, 32, params) > 0;
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok ? 0 : GCOLL_ERR_NOMEM;
}
