/* SPDX-License-Identifier: MIT
 * One rate for all that a host sends to a cluster, whichever process sends it: earliest departure
 * times. A program of the kernel (edt.bpf.c) on the way out of a device tells each packet when it
 * may leave, and the device's fq queue keeps it until then. So two jobs of one host share a budget
 * without knowing of each other, and retransmissions and headers count.
 *
 *	struct gci_edt *edt;
 *	struct gci_edt_counters c;
 *	struct gci_net nets[1];
 *	int tokyo;
 *
 *	rc = gci_edt_open(&edt, "eth0", 0, &e);
 *	...
 *	gci_net_parse(&nets[0], "10.2.0.0/16", &e);
 *	tokyo = gci_edt_class(edt, "tokyo", nets, 1, 4000000000, &e);
 *	...
 *	rc = gci_edt_set_rate(edt, tokyo, 2000000000, &e);   (while traffic flows)
 *	gci_edt_count(edt, tokyo, &c);
 *	...
 *	gci_edt_close(edt);
 *
 * Whoever opens a device *holds* what it asked for until it closes or dies. The rate of a class is
 * the lowest that one of its holders asked for. A class without holders goes, and with the last
 * class the program. A holder that was killed is found by the next one, and cleaned up after; where
 * the kernel has TCX links (6.6 and newer) the program goes with its last holder at once.
 *
 * All return 0 (or what is said) or GCOLL_ERR_* with a sentence in `e`: GCOLL_ERR_UNSUPPORTED with
 * what is missing where this cannot work (no fq on the device, no right to, a kernel without it,
 * built without libbpf). Not for several threads at once; several processes are fine. */
#ifndef GCI_SHAPING_EDT_H
#define GCI_SHAPING_EDT_H

#include "base/error.h"
#include "shaping/net.h"

#include <stddef.h>
#include <stdint.h>

#define GCI_EDT_NAME     32 /* bytes of a class's name, its zero among them */
#define GCI_EDT_CLASSES  64 /* at one device */
#define GCI_EDT_NETS     4096
#define GCI_EDT_STANDING 1 /* what is asked for stays when this process ends: an operator's */

struct gci_edt;

/* Bytes and packets are those on the wire: every packet of 1500 counts with its headers (Ethernet's
 * 14 bytes too), also of what leaves the kernel as one of 64 KiB. */
struct gci_edt_counters {
	uint64_t nbytes, packets;
	uint64_t dropped, dropped_nbytes; /* would have waited for longer than the horizon */
	uint64_t waited_ns;               /* the longest that a packet was told to wait */
	uint64_t next_ns;                 /* when the next may leave; CLOCK_MONOTONIC */
};

struct gci_edt_class {
	int number;
	char name[GCI_EDT_NAME];
	uint64_t bps;        /* wire bits per second; 0: counted, not limited */
	uint64_t horizon_ns; /* what would have to wait for longer is dropped */
	unsigned holders;    /* processes; an operator's counts as one */
	int standing;        /* an operator's is among them */
	struct gci_edt_counters counters;
};

/* Joins those who shape what leaves `dev` in this network namespace, or is the first. Looks after
 * what dead holders left. */
int gci_edt_open(struct gci_edt **edt, const char *dev, unsigned flags, struct gci_error *e);

/* As gci_edt_open(), but holds nothing, changes nothing, and *edt is NULL where nobody shapes. */
int gci_edt_look(struct gci_edt **edt, const char *dev, struct gci_error *e);

/* Gives up what this process holds. NULL is fine. What a standing one asked for stays. */
void gci_edt_close(struct gci_edt *edt);

/* Traffic to `nets` (added to those that a class of this name has) may be as fast as `bps`, wire
 * bits per second, 0 for no limit. Returns the class's number. A longer prefix goes before a
 * shorter one. GCOLL_ERR_INVAL when a net belongs to a class of another name. */
int gci_edt_class(struct gci_edt *edt, const char *name, const struct gci_net *nets, size_t n,
	uint64_t bps, struct gci_error *e);

/* What this process asks for from now on; at once, for packets that have no departure time yet. */
int gci_edt_set_rate(struct gci_edt *edt, int number, uint64_t bps, struct gci_error *e);

/* This process (or the operator) asks nothing of the class any more. */
int gci_edt_drop(struct gci_edt *edt, int number, struct gci_error *e);

/* GCOLL_ERR_INVAL where there is no such class. */
int gci_edt_count(struct gci_edt *edt, int number, struct gci_edt_counters *c);

/* All classes at this device; returns how many. */
unsigned gci_edt_list(struct gci_edt *edt, struct gci_edt_class out[GCI_EDT_CLASSES]);

/* Nets of a class, at most `max`; returns how many there are. */
unsigned gci_edt_nets(struct gci_edt *edt, int number, struct gci_net *out, unsigned max);

/* Takes off the device whatever gridcoll put there, whoever holds it. Returns 1, or 0 where there
 * was nothing. */
int gci_edt_clear(const char *dev, struct gci_error *e);

/* What holders that died have left on any device of this network namespace goes. Says nothing. */
void gci_edt_sweep(void);

/* How the program is attached: "TCX", "TCX link" or "clsact filter". */
const char *gci_edt_how(const struct gci_edt *edt);

/* 1 where gridcoll was built with it. */
int gci_edt_is_built(void);

#endif
