/* SPDX-License-Identifier: MIT
 * A host that gridcoll doctor has nothing to say about, and what a grid asks of it.
 *
 *	good_facts(&f);
 *	grid_needs(&n, FAT_GRID, "k1");
 *	assert_int_equal(gct_doctor_check(&f, &n, &r), 0); */
#ifndef GCI_TESTS_TOOLS_DOCTOR_FACTS_H
#define GCI_TESTS_TOOLS_DOCTOR_FACTS_H

#include "tests/test.h"
#include "tools/doctor/doctor.h"

/* 25 MB in flight of a pair of ranks, 6.25 MB of each of its four streams. */
#define FAT_GRID                                                                     \
	"[cluster kyoto]\nhosts = k[1-3]\nnic = 10Gbit\nlan_delay = 50us\n"          \
	"[cluster tokyo]\nhosts = t[1-5]\nnic = 10Gbit\n[link kyoto tokyo]\nrate = " \
	"40Gbit\ndelay = 10ms\n"

void good_facts(struct gct_facts *f);

/* gct_needs_free when done. */
void grid_needs(struct gct_needs *n, const char *text, const char *host);

/* The finding of this id, which there must be. */
const struct gct_finding *find(const struct gct_report *r, const char *id);

#endif
