/* SPDX-License-Identifier: MIT
 * CRC32C (Castagnoli), by ISA-L. */
#ifndef GCI_BASE_CRC32C_H
#define GCI_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the start) over `nbytes` of `data`: crc32c("123456789") = 0xe3069283. */
uint32_t gci_crc32c(uint32_t crc, const void *data, size_t nbytes);

#endif
