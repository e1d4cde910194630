/* SPDX-License-Identifier: MIT
 * By libcrypto, and the choice. */
#include "transport/gcm.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

static int init(struct gci_gcm *g)
{
	EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int ok = gcm && ctx && EVP_CipherInit_ex(ctx, gcm, NULL, NULL, NULL, g->seals);

	EVP_CIPHER_free(gcm);
	g->state = ctx;
	return ok ? 0 : -1;
}

static int set_key(struct gci_gcm *g, const uint8_t *key)
{
	return EVP_CipherInit_ex(g->state, NULL, NULL, key, NULL, g->seals) ? 0 : -1;
}

static int begin(struct gci_gcm *g, const uint8_t *nonce, const uint8_t *head, size_t n)
{
	int taken;

	return EVP_CipherInit_ex(g->state, NULL, NULL, NULL, nonce, g->seals) &&
	       EVP_CipherUpdate(g->state, NULL, &taken, head, (int)n);
}

static int update(struct gci_gcm *g, uint8_t *out, const uint8_t *in, size_t n)
{
	int made;

	return EVP_CipherUpdate(g->state, out, &made, in, (int)n);
}

static int finish(struct gci_gcm *g, uint8_t *tag)
{
	uint8_t none[GCI_GCM_TAG];
	int made;

	if (g->seals)
		return EVP_CipherFinal_ex(g->state, none, &made) &&
		       EVP_CIPHER_CTX_ctrl(g->state, EVP_CTRL_AEAD_GET_TAG, GCI_GCM_TAG, tag);
	return EVP_CIPHER_CTX_ctrl(g->state, EVP_CTRL_AEAD_SET_TAG, GCI_GCM_TAG, tag) &&
	       EVP_CipherFinal_ex(g->state, none, &made) > 0;
}

static void deinit(struct gci_gcm *g)
{
	EVP_CIPHER_CTX_free(g->state); /* which wipes it */
}

static const struct gci_gcm_ops libcrypto = {.name = "libcrypto",
	.init = init,
	.key = set_key,
	.begin = begin,
	.update = update,
	.finish = finish,
	.deinit = deinit};

static int only_libcrypto;

void gci_gcm_only_libcrypto(int only)
{
	only_libcrypto = only;
}

static const struct gci_gcm_ops *choose(void)
{
	const struct gci_gcm_ops *wide = only_libcrypto ? NULL : gci_gcm_wide();

	return wide ? wide : &libcrypto;
}

const char *gci_gcm_by(void)
{
	return choose()->name;
}

int gci_gcm_init(struct gci_gcm *g, int seals)
{
	*g = (struct gci_gcm){.ops = choose(), .seals = seals};
	if (!g->ops->init(g))
		return 0;
	gci_gcm_deinit(g);
	return -1;
}

void gci_gcm_deinit(struct gci_gcm *g)
{
	if (g->ops)
		g->ops->deinit(g);
	*g = (struct gci_gcm){0};
}
