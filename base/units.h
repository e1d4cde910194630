/* SPDX-License-Identifier: MIT
 * Quantities as people write them: "10Gbit", "25MB", "10ms", "0.1%". Values are exact integers.
 * Parsers return 0, or -1 without touching *out; `gci_*_expected` is the text for the error. */
#ifndef GCI_BASE_UNITS_H
#define GCI_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define GCI_RATE_EXPECTED  "a rate such as 100Mbit, 1Gbit or 1.5Gbit"
#define GCI_TIME_EXPECTED  "a time such as 50us, 10ms or 1.5s"
#define GCI_BYTES_EXPECTED "a size such as 512, 64KiB, 25MB or 1GiB"
#define GCI_RATIO_EXPECTED "a percentage such as 0%, 0.01% or 5%"
#define GCI_PORTS_EXPECTED "two ports such as 5000-5099"

struct gci_ports {
	uint16_t lo, hi; /* 0, 0: any */
};

/* "bit", "kbit", "Mbit", "Gbit", "Tbit" per second, decimal prefixes; bits per second. */
int gci_parse_rate(const char *s, uint64_t *bps);

/* "ns", "us", "ms", "s", "m"; nanoseconds. */
int gci_parse_time(const char *s, uint64_t *ns);

/* none, "B", "KB"/"MB"/"GB"/"TB" (10^3n), "KiB"/"MiB"/"GiB"/"TiB" (2^10n), "K"/"M"/"G"/"T"
 * (2^10n, as most tools have it); bytes. */
int gci_parse_bytes(const char *s, uint64_t *nbytes);

/* Percent; parts per million, at most 1,000,000. */
int gci_parse_ratio(const char *s, uint32_t *ppm);

/* A whole non-negative number, all of `s`, at most `max`. */
int gci_parse_uint(const char *s, uint64_t max, uint64_t *out);

/* "LOW-HIGH", both in the range. */
int gci_parse_ports(const char *s, struct gci_ports *ports);

/* As a person reads it, three digits: "1.05 GB", "874 MB/s", "2.40 s". Into `out` of `size`
 * bytes; returns `out`. 16 bytes are enough. */
char *gci_format_bytes(uint64_t nbytes, char *out, size_t size);
char *gci_format_rate(uint64_t bps, char *out, size_t size);
char *gci_format_time(uint64_t ns, char *out, size_t size);

/* Two lower-case digits a byte, and the 0 at the end: 2 * n + 1 bytes. Returns `out`. */
char *gci_format_hex(const void *data, size_t n, char *out);

#endif
