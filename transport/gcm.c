/* SPDX-License-Identifier: MIT */
#include "transport/gcm.h"

#include <openssl/evp.h>

int gci_gcm_init(struct gci_gcm *g, int seals)
{
	EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int ok = gcm && ctx && EVP_CipherInit_ex(ctx, gcm, NULL, NULL, NULL, seals);

	EVP_CIPHER_free(gcm);
	*g = (struct gci_gcm){.ctx = ctx, .seals = seals};
	if (!ok)
		gci_gcm_deinit(g);
	return ok ? 0 : -1;
}

void gci_gcm_deinit(struct gci_gcm *g)
{
	EVP_CIPHER_CTX_free(g->ctx); /* which wipes it */
	*g = (struct gci_gcm){0};
}

int gci_gcm_key(struct gci_gcm *g, const uint8_t key[GCI_GCM_KEY])
{
	return EVP_CipherInit_ex(g->ctx, NULL, NULL, key, NULL, g->seals) ? 0 : -1;
}

int gci_gcm_begin(
	struct gci_gcm *g, const uint8_t nonce[GCI_GCM_NONCE], const uint8_t *head, size_t n)
{
	int taken;

	return EVP_CipherInit_ex(g->ctx, NULL, NULL, NULL, nonce, g->seals) &&
	       EVP_CipherUpdate(g->ctx, NULL, &taken, head, (int)n);
}

int gci_gcm_update(struct gci_gcm *g, uint8_t *out, const uint8_t *in, size_t n)
{
	int made;

	return !n || EVP_CipherUpdate(g->ctx, out, &made, in, (int)n);
}

int gci_gcm_finish(struct gci_gcm *g, uint8_t tag[GCI_GCM_TAG])
{
	uint8_t none[GCI_GCM_TAG];
	int n;

	if (g->seals)
		return EVP_CipherFinal_ex(g->ctx, none, &n) &&
		       EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_GET_TAG, GCI_GCM_TAG, tag);
	return EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_SET_TAG, GCI_GCM_TAG, tag) &&
	       EVP_CipherFinal_ex(g->ctx, none, &n) > 0;
}
