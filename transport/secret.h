/* SPDX-License-Identifier: MIT
 * The job's secret as text, where people or other managers hand it over: 64 hexadecimal digits, and
 * white space around them. Pure. */
#ifndef GCI_TRANSPORT_SECRET_H
#define GCI_TRANSPORT_SECRET_H

#include "transport/derive.h"

#define GCI_SECRET_TEXT     (2 * GCI_SECRET_NBYTES + 2) /* "...\n" */
#define GCI_SECRET_MAX_TEXT 256                         /* with what may stand around it */
#define GCI_SECRET_EXPECTED "64 hexadecimal digits (gridcoll-run --new-secret makes such a line)"

/* 0, or -1 with `secret` wiped. */
int gci_secret_parse(const void *text, size_t len, uint8_t secret[GCI_SECRET_NBYTES]);

/* A line. The caller wipes it. */
void gci_secret_format(const uint8_t secret[GCI_SECRET_NBYTES], char text[GCI_SECRET_TEXT]);

#endif
