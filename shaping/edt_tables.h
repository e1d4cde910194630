/* SPDX-License-Identifier: MIT
 * The maps of the program of one device (edt_shared.h) as its loaders use them: classes, nets and
 * what holders asked for.
 *
 *	struct gci_edt_tables t;
 *
 *	rc = gci_edt_tables_of(&t, prog_fd, &e);
 *	number = gci_edt_tables_class(&t, "tokyo", &e);
 *	rc = gci_edt_tables_route(&t, number, nets, n, &e);
 *	rc = gci_edt_tables_ask(&t, &hold, number, bps, &e);
 *	rc = gci_edt_tables_settle(&t, &hold, &left, &e);	(rates follow from what is asked)
 *	gci_edt_tables_close(&t);
 *
 * The loader has the lock of shaping/hold.h meanwhile. */
#ifndef GCI_SHAPING_EDT_TABLES_H
#define GCI_SHAPING_EDT_TABLES_H

#include "shaping/edt.h"
#include "shaping/edt_shared.h"
#include "shaping/hold.h"

struct bpf_object;

struct gci_edt_tables {
	int about, rates, clocks, nets, holds; /* descriptors */
	uint64_t horizon_ns;                   /* of classes that are new */
};

/* Those of a program just loaded: with it they will be found. */
int gci_edt_tables_new(struct gci_edt_tables *t, struct bpf_object *o, struct gci_error *e);

void gci_edt_tables_close(struct gci_edt_tables *t);

/* The number of the class of this name, which is made if there is none. */
int gci_edt_tables_class(const struct gci_edt_tables *t, const char *name, struct gci_error *e);

/* 0 and *r, or GCOLL_ERR_INVAL: no such class. */
int gci_edt_tables_rate(const struct gci_edt_tables *t, int number, struct gci_edt_rate *r);

/* All or none of them. */
int gci_edt_tables_route(const struct gci_edt_tables *t, int number, const struct gci_net *nets,
	size_t n, struct gci_error *e);

/* What this holder (h->id; 0: an operator) asks for; number GCI_EDT_MAX_CLASS: to be counted. */
int gci_edt_tables_ask(const struct gci_edt_tables *t, const struct gci_hold *h, int number,
	uint64_t bps, struct gci_error *e);

/* This holder asks for nothing any more; number -1: whatever it was. */
void gci_edt_tables_leave(const struct gci_edt_tables *t, const struct gci_hold *h, int number);

/* Forgets the dead, gives classes the lowest rate that is asked for, and takes away those that
 * nobody holds. *left: holders, of classes or of none. */
int gci_edt_tables_settle(const struct gci_edt_tables *t, const struct gci_hold *h, unsigned *left,
	struct gci_error *e);

/* Who holds a class. */
unsigned gci_edt_tables_holders(const struct gci_edt_tables *t, int number, int *standing);

#endif
