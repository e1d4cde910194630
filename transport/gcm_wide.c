/* SPDX-License-Identifier: MIT
 * By Intel's Multi-Buffer Crypto library: of it, the functions for one buffer at a time. */
#include "base/mem.h"
#include "base/wide.h"
#include "transport/gcm.h"

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <pthread.h>

/* In memory for secrets, which is aligned as a key must be, to 64 bytes. */
struct state {
	struct gcm_key_data key;
	struct gcm_context_data context;
};

_Static_assert(sizeof(struct state) <= GCI_SECRET_MOST, "one block");

static IMB_MGR *library; /* NULL: not to be used */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The library asks the processor what it can, but not whether the system keeps wide registers, and
 * it would use them at once. */
static int is_wide(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("vpclmulqdq");
}

static void load(void)
{
	const uint64_t wanted = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;
	IMB_MGR *m = NULL;

	if (is_wide() && OpenSSL_version_num() < 0x30100000L)
		m = alloc_mb_mgr(0);
	if (!m)
		return;
	init_mb_mgr_auto(m, NULL);
	if (imb_get_errno(m) || (m->features & wanted) != wanted) /* e.g. its self-test failed */
		free_mb_mgr(m);
	else
		library = m; /* for as long as the process lives */
	gci_leave_wide();
}

static int init(struct gci_gcm *g)
{
	g->state = gci_secret_alloc(sizeof(struct state));
	return g->state ? 0 : -1;
}

static int set_key(struct gci_gcm *g, const uint8_t *key)
{
	struct state *s = g->state;

	IMB_AES128_GCM_PRE(library, key, &s->key);
	gci_leave_wide();
	return 0;
}

static int begin(struct gci_gcm *g, const uint8_t *nonce, const uint8_t *head, size_t n)
{
	struct state *s = g->state;

	IMB_AES128_GCM_INIT(library, &s->key, &s->context, nonce, head, n);
	return 1;
}

static int update(struct gci_gcm *g, uint8_t *out, const uint8_t *in, size_t n)
{
	struct state *s = g->state;

	if (g->seals)
		IMB_AES128_GCM_ENC_UPDATE(library, &s->key, &s->context, out, in, n);
	else
		IMB_AES128_GCM_DEC_UPDATE(library, &s->key, &s->context, out, in, n);
	return 1;
}

static int finish(struct gci_gcm *g, uint8_t *tag)
{
	struct state *s = g->state;
	uint8_t right[GCI_GCM_TAG];
	int ok = 1;

	if (g->seals) {
		IMB_AES128_GCM_ENC_FINALIZE(library, &s->key, &s->context, tag, GCI_GCM_TAG);
	} else {
		IMB_AES128_GCM_DEC_FINALIZE(library, &s->key, &s->context, right, sizeof(right));
		ok = CRYPTO_memcmp(tag, right, sizeof(right)) == 0;
	}
	gci_leave_wide();
	return ok;
}

static void deinit(struct gci_gcm *g)
{
	gci_secret_free(g->state);
}

static const struct gci_gcm_ops ops = {.name = "Intel's Multi-Buffer Crypto library",
	.init = init,
	.key = set_key,
	.begin = begin,
	.update = update,
	.finish = finish,
	.deinit = deinit};

const struct gci_gcm_ops *gci_gcm_wide(void)
{
	pthread_once(&once, load);
	return library ? &ops : NULL;
}
