/* SPDX-License-Identifier: MIT
 * CRC32C (Castagnoli), by ISA-L. */
#ifndef GCI_BASE_CRC32C_H
#define GCI_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the start) over `nbytes` of `data`: crc32c("123456789") = 0xe3069283. */
uint32_t gci_crc32c(uint32_t crc, const void *data, size_t nbytes);

/* The sum of two pieces one after the other, from `a` of the first, `b` of the second and the
 * second's length, without their bytes. Also with a = 0: no first piece. Cost: O(bits set in
 * nbytes), about 50 ns each. */
uint32_t gci_crc32c_join(uint32_t a, uint32_t b, uint64_t nbytes);

#endif
