/* SPDX-License-Identifier: MIT
 * Between rendezvous.c (connections and messages), rdv_strangers.c (connections before that) and
 * verdict.c (who failed first). */
#ifndef GCI_LAUNCHER_RDV_INTERNAL_H
#define GCI_LAUNCHER_RDV_INTERNAL_H

#include "base/list.h"
#include "launcher/rendezvous.h"
#include "transport/crowd.h"

struct gci_rdv_conn {
	struct gci_list link, dirty;
	int32_t rank;  /* -1: a stranger */
	int32_t named; /* by TLS; -1: it has not shown who it is that way */
	int closing;
	struct gci_crowd_place place; /* while others may want it */
	uint64_t since_ns;
	struct gci_buf in, out;
	void *user;
};

/* What is known about a rank; the verdict is drawn from these facts. */
struct rdv_rank {
	struct gci_rdv_conn *conn;
	int joined, bye, lost, silent, exited;
	int code, signal; /* of the process's end */
	int own_failure;  /* `told` is the launcher's own word */
	int32_t blamed;   /* whom `told` is about, -1: nobody */
	int told_status;  /* GCOLL_ERR_* */
	char *told;       /* its FAIL, or NULL */
	int asks;         /* it has asked what another calls: rank, comm and op of `asked` */
	struct {
		uint32_t rank, comm;
		uint64_t op;
	} asked;
	char *called;      /* the other's answer, or NULL */
	uint64_t heard_ns; /* last sign of life */
	uint64_t told_ns, end_ns, lost_ns;
	struct gci_reach reach;
};

struct gci_rdv {
	struct gci_rdv_config config;
	struct rdv_rank *ranks;
	struct gci_list conns, dirty;
	struct gci_crowd crowd; /* of strangers */
	uint32_t njoined, nbye;
	struct gci_ctl_budget *budgets; /* set since the grid's text was made, each pair once */
	size_t nbudgets, budgets_cap;
	int started, judged, start_timed_out;
	uint64_t judged_ns;
	uint64_t joined_ns;     /* of the first rank */
	uint64_t beat_at_ns;    /* next */
	uint64_t silence_at_ns; /* the soonest that one may be dead */
	uint64_t ticked_ns;
	uint64_t verdict_ns; /* when to judge; GCI_NEVER: no failure seen */
	int32_t guilty;      /* whose exit status is the job's; -1: nobody's */
	struct gci_rdv_verdict verdict;
	struct gci_ctl_watch watch;
};

/* rendezvous.c */
void gci_rdv_send_abort(struct gci_rdv *r);

void gci_rdv_drop(struct gci_rdv *r, struct gci_rdv_conn *c);

/* rdv_strangers.c */
void gci_rdv_count_places(struct gci_rdv *r);
void gci_rdv_drop_old_strangers(struct gci_rdv *r, uint64_t now_ns);

/* meet.c: once all have joined. 0, or -1 with the reason why they cannot reach each other. */
int gci_rdv_meet(const struct gci_rdv *r, char *why, size_t size);

/* verdict.c: take down facts. */
void gci_rdv_tell(struct gci_rdv *r, uint32_t by, int32_t blamed, int status, const char *text,
	uint64_t now_ns);
void gci_rdv_answer(struct gci_rdv *r, const struct gci_ctl_call *m);
void gci_rdv_note_lost(struct gci_rdv *r, uint32_t rank, uint64_t now_ns);
void gci_rdv_check_silence(struct gci_rdv *r, uint64_t now_ns);
void gci_rdv_check_leavers(struct gci_rdv *r, uint64_t now_ns);

/* Draws the verdict if it is due, and tells the ranks. */
void gci_rdv_judge(struct gci_rdv *r, uint64_t now_ns);

#endif
