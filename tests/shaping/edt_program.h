/* SPDX-License-Identifier: MIT
 * The program and its maps, loaded and attached to nothing.
 *
 *	struct edt_program l;
 *
 *	if (!edt_allowed())
 *		skip();
 *	edt_load(&l);
 *	number = edt_class(&l, "tokyo", nets, 1, bps);
 *	... bpf_prog_test_run_opts(l.prog, ...) ...
 *	edt_unload(&l); */
#ifndef GCI_TESTS_SHAPING_EDT_PROGRAM_H
#define GCI_TESTS_SHAPING_EDT_PROGRAM_H

#include "shaping/bpf.h"
#include "shaping/edt_tables.h"

#define NS_PER_S 1000000000ull
#define FOREVER  (1000000 * NS_PER_S)

struct edt_program {
	struct bpf_object *object;
	struct gci_edt_tables tables;
	int prog;
};

/* Whether this process may load programs; the first time it says why not. */
int edt_allowed(void);

void edt_load(struct edt_program *l);
void edt_unload(struct edt_program *l);

/* A class with one holder. Returns its number. */
int edt_class(
	struct edt_program *l, const char *name, const char *const *nets, unsigned n, uint64_t bps);

#endif
