/* SPDX-License-Identifier: MIT */
#include "transport/secret.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/units.h"

#include <ctype.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

static int digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int gci_secret_parse(const void *text, size_t len, uint8_t secret[GCI_SECRET_NBYTES])
{
	const uint8_t *p = text;
	size_t i;
	int bad;

	while (len && isspace(p[len - 1]))
		len--;
	for (; len && isspace(*p); len--)
		p++;
	bad = len != 2 * GCI_SECRET_NBYTES;
	for (i = 0; i < GCI_SECRET_NBYTES && !bad; i++) {
		int high = digit(p[2 * i]), low = digit(p[2 * i + 1]);

		bad = high < 0 || low < 0;
		secret[i] = (uint8_t)(bad ? 0 : high << 4 | low);
	}
	if (bad)
		explicit_bzero(secret, GCI_SECRET_NBYTES);
	return bad ? -1 : 0;
}

void gci_secret_format(const uint8_t secret[GCI_SECRET_NBYTES], char text[GCI_SECRET_TEXT])
{
	gci_format_hex(secret, GCI_SECRET_NBYTES, text);
	memcpy(text + 2 * GCI_SECRET_NBYTES, "\n", 2);
}

/* ---- Keys for one purpose each. */

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

/* ---- What protects connections. */

int gci_security_parse(const char *name, enum gci_security *out)
{
	static const char *const names[] = {"auto", "off", "auth", "encrypt"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*out = (enum gci_security)i;
		return 0;
	}
	return GCOLL_ERR_INVAL;
}

int gci_security_encrypts(enum gci_security s, int far)
{
	return s == GCI_SECURITY_ENCRYPT || (s == GCI_SECURITY_AUTO && far);
}
