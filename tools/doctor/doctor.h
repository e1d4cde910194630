/* SPDX-License-Identifier: MIT
 * `gridcoll doctor`: what of this host stands in the way of bulk data over long fat networks.
 *
 *	struct gct_facts f;
 *	struct gct_needs needs = {0};
 *	struct gct_report r = {0};
 *
 *	gct_facts_read(&f, "");			// the files of /proc and /sys
 *	gct_facts_ask(&f);			// and what only trying tells
 *	gct_needs_make(&needs, &grid, host);
 *	gct_doctor_check(&f, &needs, &r);
 *	gct_doctor_text(&r, &needs, &f, stdout);	// or gct_doctor_json
 *	gct_report_free(&r);
 *	gct_needs_free(&needs);
 *
 * Facts in, findings out: only gct_facts_read and gct_facts_ask look at the machine. What to tune
 * and to what follows ESnet's advice on host tuning (fasterdata.es.net), with the grid's figures in
 * place of its rules of thumb. */
#ifndef GCT_DOCTOR_H
#define GCT_DOCTOR_H

#include "base/buf.h"
#include "collectives/grid/flight.h"
#include "transport/path.h"

#include <stdio.h>

#define GCT_UNKNOWN   UINT64_MAX /* a figure that could not be read */
#define GCT_UNLIMITED (UINT64_MAX - 1)
#define GCT_MOST_NICS 16

/* ---- facts */

enum gct_sysctl {
	GCT_RMEM_MAX,
	GCT_WMEM_MAX,
	GCT_SLOW_START_AFTER_IDLE,
	GCT_NO_METRICS_SAVE,
	GCT_MTU_PROBING,
	GCT_WINDOW_SCALING,
	GCT_TIMESTAMPS,
	GCT_SACK,
	GCT_MODERATE_RCVBUF,
	GCT_URING_DISABLED,
	GCT_BPF_DISABLED,
	GCT_NSYSCTLS
};

/* "net.ipv4.tcp_sack" */
const char *gct_sysctl_name(enum gct_sysctl s);

enum gct_offload { GCT_TSO, GCT_GSO, GCT_GRO, GCT_NOFFLOADS };

struct gct_nic {
	char name[16];
	uint64_t mtu, txqueuelen;
	uint64_t speed_bps;         /* GCT_UNKNOWN: virtual, or no cable */
	int physical;               /* a device, not a bridge or the like */
	int numa_node;              /* -1: none */
	int offload[GCT_NOFFLOADS]; /* 1 on, 0 off, -1 unknown */
};

enum gct_module { GCT_FQ, GCT_NETEM, GCT_TBF, GCT_HTB, GCT_BBR, GCT_NMODULES };

const char *gct_module_name(enum gct_module m);

struct gct_facts {
	char host[65], kernel[65];
	uint64_t sysctl[GCT_NSYSCTLS];
	uint64_t tcp_rmem[3], tcp_wmem[3];
	char congestion[32], congestions[256], qdisc[32], clock[32];
	char governor[32]; /* one that is not "performance"; else that of all, or "" */
	uint64_t nofile_soft, nofile_hard;
	uint64_t capabilities; /* effective, as bits */
	int bpffs, btf;
	int nodes; /* NUMA */
	int aes;   /* the processors have instructions for AES-GCM: 1, 0, -1: unknown */
	struct gct_nic nics[GCT_MOST_NICS];
	int nnics;
	int module[GCT_NMODULES]; /* 1: there, 0: not, -1: unknown */

	/* gct_facts_ask */
	int uring;                    /* 0: works; errno; -1: not tried */
	char uring_why[GCI_PATH_WHY]; /* not, as jobs would say it; "": nobody has */
	int tls_kernel;               /* the kernel could encrypt: 0; errno; -1: not tried */
	int tls_openssl;              /* ... for OpenSSL: 0: no, 1: when sending, 2: both ways */
	int synced;                   /* the clock: 1, 0, -1: unknown */
	uint64_t clock_error_us;      /* estimated bound, where synced */
	int lab;                      /* 1: a backend for labs works, 0: none, -1: not tried */
	char lab_host[200], lab_tap[200], lab_uml[200]; /* "": it works; or why not */
};

/* From the files below `root` ("" for the machine's own). What is not there stays unknown. */
void gct_facts_read(struct gct_facts *f, const char *root);

/* ---- what the grid needs */

struct gct_need {
	char name[128]; /* "kyoto > tokyo" */
	struct gci_flight flight;
	uint32_t loss_ppm;
	int sends, receives; /* this host does */
};

struct gct_needs {
	int has_grid, own_cluster; /* the host's number; -1: it is not in the grid */
	char file[256];
	struct gct_need *links; /* between clusters, those that this host has */
	size_t nlinks, cap;
	uint64_t connections; /* most of one rank, to a rank on each host */
	uint64_t nic_bps;     /* of this host, by the grid; 0: unknown */
};

/* `host`: NULL, or one that the grid does not have: all links count. 0 or GCOLL_ERR_NOMEM. */
int gct_needs_make(struct gct_needs *n, const struct gci_grid *g, const char *host);
void gct_needs_free(struct gct_needs *n);

/* ---- findings */

enum gct_level { GCT_FINE, GCT_ADVICE, GCT_PROBLEM, GCT_NOT_KNOWN };

const char *gct_level_name(enum gct_level l);

/* Strings are owned, or NULL where there is nothing to say. */
struct gct_finding {
	enum gct_level level;
	const char *id; /* stable, for programs */
	char *what;     /* "net.ipv4.tcp_rmem" */
	char *is, *should, *why;
	char *command; /* that changes it now */
	char *line;    /* for /etc/sysctl.d */
};

struct gct_report {
	struct gct_finding *list;
	size_t n, cap;
	int failed; /* out of memory */
	struct gct_finding spare;
};

void gct_report_free(struct gct_report *r);

/* All checks, worst first. 0 or GCOLL_ERR_NOMEM. */
int gct_doctor_check(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r);

size_t gct_report_count(const struct gct_report *r, enum gct_level l);

/* ---- for people, for programs */

void gct_doctor_text(const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, FILE *out);

/* A line for each finding that is not fine, and a last one; all begin with the host's name, as many
 * hosts' lines may be mixed. */
void gct_doctor_lines(const struct gct_report *r, const char *host, FILE *out);

/* 0 or GCOLL_ERR_NOMEM. */
int gct_doctor_json(const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, struct gci_buf *out);

#endif
