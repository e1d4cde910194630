/* SPDX-License-Identifier: MIT */
#include "base/prng.h"

#include <string.h>

uint64_t gci_digest_bytes(uint64_t digest, const void *data, uint64_t nbytes)
{
	const unsigned char *p = data;
	uint64_t word;

	digest = gci_digest(digest, nbytes);
	for (; nbytes >= sizeof(word); nbytes -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		digest = gci_digest(digest, word);
	}
	for (word = 0; nbytes; nbytes--)
		word = word << 8 | p[nbytes - 1];
	return gci_digest(digest, word);
}
