/* SPDX-License-Identifier: MIT
 * What the kernel's program (edt.bpf.c) and its loader have in common: the maps. Other versions of
 * gridcoll may have put the program there, so whoever changes a line here changes the version. */
#ifndef GCI_SHAPING_EDT_SHARED_H
#define GCI_SHAPING_EDT_SHARED_H

#include <linux/types.h>

#define GCI_EDT_VERSION   1
#define GCI_EDT_PROGRAM   "gci_edt"
#define GCI_EDT_MAX_CLASS 64
#define GCI_EDT_MAX_HOLDS 1024

/* edt_about: one entry. */
struct gci_edt_about {
	__u32 version;
	__u32 made_clsact; /* the device had no clsact qdisc before */
};

/* edt_rates: by class; only the loaders write. No name: not in use. */
struct gci_edt_rate {
	char name[32];
	__u64 bps; /* 0: no limit */
	__u64 horizon_ns;
};

/* edt_clocks: by class; the program counts, loaders only begin anew. */
struct gci_edt_clock {
	__u64 next_ns; /* when the next packet may leave, CLOCK_MONOTONIC */
	__u64 nbytes, packets;
	__u64 dropped, dropped_nbytes;
	__u64 waited_ns;
};

/* edt_holds: what each holder asked for. */
struct gci_edt_hold_key {
	__u64 holder; /* 0: an operator, for good */
	__u64 realm;  /* the file that tells whether the holder lives */
	__u32 class;  /* GCI_EDT_MAX_CLASS: none, it has the device open */
	__u32 pad;
};

struct gci_edt_hold {
	__u64 bps;
};

#endif
