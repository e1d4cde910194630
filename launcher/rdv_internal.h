/* SPDX-License-Identifier: MIT
 * Between rendezvous.c (connections of ranks and of those that are not known yet, and what they
 * say) and, below it, verdict.c (who is silent, who failed first, who goes on). */
#ifndef GCI_LAUNCHER_RDV_INTERNAL_H
#define GCI_LAUNCHER_RDV_INTERNAL_H

#include "base/list.h"
#include "launcher/members.h"
#include "launcher/rendezvous.h"
#include "transport/unauthenticated.h"

struct gci_rdv_conn {
	struct gci_list link, dirty;
	int32_t rank;  /* -1: a stranger */
	int32_t named; /* by TLS; -1: it has not shown who it is that way */
	int closing;
	int away; /* lost: there is nothing behind it but what it will say when it is resumed */
	struct gci_unauth_place place; /* while others may want it */
	struct gci_reach from;
	uint64_t since_ns;
	struct gci_buf in, out;
	size_t nkept; /* the first bytes of `out` were sent before, by another connection */
	void *user;
};

/* What a rank tells of a failure, its own or a peer's: its FAIL. */
struct rdv_word {
	char *text;     /* NULL: it has told nothing */
	int status;     /* GCOLL_ERR_* */
	int32_t blamed; /* whom it is about, -1: nobody */
	int is_ours;    /* the launcher's own word */
	uint64_t at_ns;
};

/* What it has asked: which operation another rank calls. */
struct rdv_question {
	int is_asked;
	uint32_t rank, comm;
	uint64_t op;
	char *answer; /* or NULL */
};

/* What is known about a rank; the verdict is drawn from these facts. */
struct rdv_rank {
	struct gci_rdv_conn *conn;
	struct gci_ctl_link link;
	uint8_t session[GCI_CTL_SESSION];
	uint32_t life; /* of its last RESUME */
	int joined, bye, lost, silent, exited;
	int missed;       /* its silence was told of */
	int returned;     /* heard again since, and that is not told of yet */
	int code, signal; /* of the process's end */
	int missing;      /* it could not be started, and the job begins without it */
	int is_blamed;    /* a peer takes it for dead */
	struct rdv_word told;
	struct rdv_question asked;
	char *last_words; /* its own failure, of which it told after the epoch's verdict; or NULL */
	uint64_t heard_ns; /* last sign of life */
	uint64_t back_ns;  /* the last one that came after a long silence, or 0 */
	uint64_t end_ns, lost_ns;
	int agrees;   /* waits for AGREED */
	int left_out; /* while it may live */
	struct gci_reach reach;
};

/* Addresses of wrong secrets that the user is told of, within RDV_TOLD_NS. */
#define RDV_TOLD    8
#define RDV_TOLD_NS (60 * GCI_NS_PER_S)

struct rdv_wrong {
	struct {
		uint8_t ip[16];
		uint64_t at_ns; /* 0: never */
	} told_of[RDV_TOLD];
	uint32_t nuntold; /* since the last of which the user was told */
};

/* Times: of what was, and when to look again. */
struct rdv_times {
	uint64_t began_ns;
	uint64_t joined_ns;  /* the first rank has */
	uint64_t beat_ns;    /* next */
	uint64_t silence_ns; /* the soonest that one may be dead */
	uint64_t ticked_ns;
};

/* Set since the grid's text was made, each pair once. */
struct rdv_budgets {
	struct gci_ctl_budget *v;
	size_t n, cap;
};

struct gci_rdv {
	struct gci_rdv_config config;
	struct rdv_rank *ranks;
	struct gci_list conns, dirty;
	struct gci_unauth unauth; /* of strangers */
	struct rdv_wrong wrong;   /* secrets */
	int told_of_none;         /* that nobody comes */
	struct rdv_times times;
	uint32_t njoined, nbye, nmissing;
	struct rdv_budgets budgets;
	int started, judged, start_timed_out;
	uint64_t judged_ns;
	uint64_t verdict_ns; /* when to judge; GCI_NEVER: no failure seen */
	int32_t guilty;      /* whose exit status is the job's; -1: nobody's */
	struct gci_rdv_verdict verdict;
	struct gci_ctl_watch watch;
	struct gci_members members;
	int deaths; /* perhaps, since they were last looked for */
	uint32_t nleft_out;
	int gave_up;         /* the verdict is of gci_rdv_give_up */
	struct gci_buf news; /* lines, see gci_rdv_news */
};

/* Something waits to be sent, or it is to be closed. */
static inline void gci_rdv_mark_dirty(struct gci_rdv *r, struct gci_rdv_conn *c)
{
	if (!c->dirty.next)
		gci_list_push(&r->dirty, &c->dirty);
}

/* Is what is known about this rank of any weight? */
static inline int gci_rdv_counts(const struct gci_rdv *r, uint32_t rank)
{
	return gci_members_in(&r->members, rank);
}

static inline int gci_rdv_is_guest(const struct gci_rdv *r, uint32_t rank)
{
	return rank >= r->config.size - r->config.nguests;
}

/* Between the numbers of the epoch and those of the job: -1 for none. */
static inline int32_t gci_rdv_job_rank(const struct gci_rdv *r, int32_t number)
{
	return number >= 0 && (uint32_t)number < r->members.n ? (int32_t)r->members.ranks[number]
							      : -1;
}

static inline int32_t gci_rdv_number(const struct gci_rdv *r, int32_t rank)
{
	return rank < 0 ? -1 : (int32_t)r->members.of[rank].number;
}

/* ---- verdict.c */

/* Closes a connection, once what it was told is sent. */
void gci_rdv_drop(struct gci_rdv *r, struct gci_rdv_conn *c);
/* Tells a connection that showed the secret why it is not taken, or no more, and closes it. */
void gci_rdv_turn_away(struct gci_rdv *r, struct gci_rdv_conn *c, int status, const char *why);
/* The same, by the verdict that ends the job. */
void gci_rdv_abort(struct gci_rdv *r, struct gci_rdv_conn *c);

/* Facts. What a rank tells of a failure, its own or a peer's: */
void gci_rdv_tell(struct gci_rdv *r, uint32_t by, int32_t blamed, int status, const char *text,
	uint64_t now_ns);
/* What another rank calls, for `by` who has asked. */
void gci_rdv_answer(struct gci_rdv *r, uint32_t by, const char *text);
void gci_rdv_note_lost(struct gci_rdv *r, uint32_t rank, uint64_t now_ns);
/* The rank's process has ended. */
void gci_rdv_note_end(struct gci_rdv *r, uint32_t rank, uint64_t now_ns);
/* The same, as the launcher knows itself. 1: the job begins without it. */
int gci_rdv_note_failure(struct gci_rdv *r, uint32_t rank, const char *cause, uint64_t now_ns);
void gci_rdv_check_leavers(struct gci_rdv *r, uint64_t now_ns);
void gci_rdv_check_silence(struct gci_rdv *r, uint64_t now_ns);
void gci_rdv_on_agree(struct gci_rdv *r, uint32_t rank, const struct gci_ctl_agree *m);
void gci_rdv_on_shrink(
	struct gci_rdv *r, uint32_t rank, const struct gci_ctl_survivors *m, uint64_t now_ns);

/* Draws a verdict after `wait_ns` at the latest. */
void gci_rdv_arm(struct gci_rdv *r, uint64_t now_ns, uint64_t wait_ns);

/* Draws the verdict if it is due, and tells the ranks. */
void gci_rdv_judge(struct gci_rdv *r, uint64_t now_ns);

#endif
