/* SPDX-License-Identifier: MIT
 * What can be wrong with a host, one fault at a time, and what gridcoll doctor has to say of it.
 *
 *	good_facts(&f);
 *	doctor_faults[i].spoil(&f);
 *	... one finding, of doctor_faults[i].id */
#ifndef GCI_TESTS_TOOLS_DOCTOR_FAULTS_H
#define GCI_TESTS_TOOLS_DOCTOR_FAULTS_H

#include "tools/doctor/doctor.h"

struct doctor_fault {
	void (*spoil)(struct gct_facts *f);
	const char *id;
	enum gct_level level;
	/* The finding's words; NULL: none. `why` is a part of what it says. */
	const char *is, *should, *command, *line, *why;
};

extern const struct doctor_fault doctor_faults[];
extern const size_t ndoctor_faults;

#endif
