/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <limits.h>

uint32_t gci_crc32c(uint32_t crc, const void *data, size_t nbytes)
{
	const unsigned char *p = data;

	/* ISA-L takes an int, is not const-correct, and leaves both inversions to the caller. */
	crc = ~crc;
	while (nbytes) {
		int n = nbytes > INT_MAX / 2 ? INT_MAX / 2 : (int)nbytes;

		crc = crc32_iscsi((unsigned char *)p, n, crc);
		p += n;
		nbytes -= (size_t)n;
	}
	return ~crc;
}
