/* SPDX-License-Identifier: MIT
 * The control server's state machine: who has joined, who is alive, who failed first. No I/O and
 * no clock: bytes, process ends and the time go in; bytes and a verdict come out.
 *
 *	struct gci_rdv *r;
 *	gci_rdv_create(&r, &config, now);
 *	for (;;) {
 *		wait until gci_rdv_deadline(r), a connection, bytes, or the end of a process
 *		gci_rdv_open / _input / _closed / _exited / _failed / _tick(r, ..., now);
 *		while (gci_rdv_next(r, &ev))
 *			send ev.data to ev.user's connection, or close that
 *		if (gci_rdv_verdict(r))
 *			the job failed: end it
 *	}
 *	gci_rdv_free(r);
 *
 * The verdict. A failure is seen from several sides at once: a rank killed by SIGKILL leaves peers
 * that tell of a lost connection, and their word may come first. So a short grace lets the other
 * witnesses speak, and the nearest to the cause wins: the end of a process (unless that rank
 * itself blamed a peer before), silence, a rank that blames itself, a control connection that went
 * away, a rank that blames a peer, unless that has told of a peer itself, and ended its connections
 * for it; among equals the first.
 *
 * A job that survives. Once it has begun, a verdict ends the epoch only: ABORT tells all, and those
 * that live may go on without the others (launcher/members.h). Who is blamed by a peer, or silent,
 * is left out though its process may live: two that cannot reach each other would only fail again.
 * Ranks are the job's here, whatever number they have in their epoch.
 *
 * A connection that is lost otherwise than by its end in order (FIN) may be made again: as long as the
 * rank may live, the launcher waits for its RESUME until its silence counts as death, and keeps what it
 * has to say to it (transport/control.h).
 *
 * Strangers. Until a connection has shown the job's secret it gets GCI_CTL_MAX_HELLO bytes and, once
 * the job has begun, GCI_RDV_STRANGER_NS; no more than GCI_RDV_STRANGERS of them are held beyond the
 * ranks still to come. When another comes, one gives way (transport/unauthenticated.h): whoever runs the machine listens
 * first to what those who are there have to say. What strangers do is no failure of the job. */
#ifndef GCI_LAUNCHER_RENDEZVOUS_H
#define GCI_LAUNCHER_RENDEZVOUS_H

#include "launcher/ranklist.h"
#include "transport/control.h"

#define GCI_RDV_STRANGERS   64
#define GCI_RDV_STRANGER_NS (5 * GCI_NS_PER_S)

struct gci_rdv;
struct gci_rdv_conn;

/* What ranks tell of their traffic; may be NULL. */
struct gci_rdv_reports {
	void (*report)(void *user, uint32_t rank, const struct gci_ctl_report *m);
	void (*flows)(void *user, uint32_t rank, const struct gci_ctl_flows *m);
	/* The rank goes on with new connections, after a failure. */
	void (*renewed)(void *user, uint32_t rank);
	void *user;
};

struct gci_rdv_config {
	uint32_t size; /* 1 .. GCI_CTL_MAX_RANKS */
	uint8_t secret[GCI_SECRET_NBYTES];
	/* [size]: each rank's host, NULL of a guest that has not come; and its number in the grid.
	 * These two and the next live as long as it. */
	const char *const *names;
	const uint32_t *hosts;
	const char *grid;  /* text of the grid file */
	const char *table; /* text of a table of decisions, NULL: none; lives as long */
	uint64_t table_digest;
	uint64_t beat_ns, dead_ns;
	uint64_t start_ns; /* from the first HELLO to the last */
	int survives;
	int partial; /* a rank that has left and exits so has done all it could; 0: there is none */
	uint64_t shrink_ns; /* from the first SHRINK to the last */
	/* The last so many ranks are guests: others start them, and nobody tells of their ends. Each
	 * says by which name its host goes, and in which cluster that is, or "": `arrive` puts that
	 * into names and hosts, or returns -1 with the reason why not, which ends the job. Once all
	 * have come, `settle` returns the grid's text, or NULL with the reason. Both NULL: names,
	 * hosts and grid hold. */
	uint32_t nguests;
	int (*arrive)(void *guests, uint32_t rank, const char *host, const char *cluster, char *why,
		size_t size);
	const char *(*settle)(void *guests, char *why, size_t size);
	void *guests;
	struct gci_rdv_reports reports;
	uint64_t grace_ns; /* from the first sign of a failure to the verdict */
};

struct gci_rdv_verdict {
	int status;                    /* GCOLL_ERR_* */
	int32_t rank;                  /* that failed first; -1: none in particular */
	char who[GCI_RANKLIST_NBYTES]; /* "rank 3 on k4", "ranks 4-7 on t1-t4", or "" */
	char cause[GCI_CTL_TEXT];      /* "killed by signal 9 (Killed)" */
	char sentence[GCI_CTL_TEXT];   /* both in one: what ABORT tells */
	int is_partial;                /* no failure */
};

/* Between `who`, if that is somebody, and `cause`, for people. */
static inline const char *gci_rdv_verb(const struct gci_rdv_verdict *v)
{
	return !*v->who ? "" : v->is_partial ? ": " : " failed: ";
}

struct gci_rdv_event {
	enum { GCI_RDV_SEND, GCI_RDV_CLOSE } type;
	void *user;          /* of the connection; after CLOSE its handle is gone */
	struct gci_buf data; /* SEND: to be freed by the caller */
};

/* GCOLL_ERR_NOMEM. */
int gci_rdv_create(struct gci_rdv **r, const struct gci_rdv_config *config, uint64_t now_ns);
void gci_rdv_free(struct gci_rdv *r);

/* A new connection from the first address of `from`. NULL: out of memory, to be closed. */
struct gci_rdv_conn *gci_rdv_open(
	struct gci_rdv *r, void *user, const struct gci_reach *from, uint64_t now_ns);
/* The next one takes somebody's place. */
int gci_rdv_is_crowded(const struct gci_rdv *r);
/* No rank has joined by it. */
int gci_rdv_is_stranger(const struct gci_rdv_conn *c);
/* TLS says who is there: it gives way to nobody, and no other rank may join by this connection. */
void gci_rdv_named(struct gci_rdv_conn *c, uint32_t rank);
/* It speaks as ranks do, but with another secret: where others start the ranks, one of them may have
 * been given a wrong one. The user is told, a few times a minute at most. To be closed. */
void gci_rdv_wrong_secret(struct gci_rdv *r, const struct gci_rdv_conn *c, uint64_t now_ns);
void gci_rdv_input(struct gci_rdv *r, struct gci_rdv_conn *c, const void *data, size_t nbytes,
	uint64_t now_ns);
/* The peer closed it, or, if `broken`, it ended in any other way. The handle is gone. */
void gci_rdv_closed(struct gci_rdv *r, struct gci_rdv_conn *c, int broken, uint64_t now_ns);

/* A rank's process ended: exit status `code`, or killed by `signal` (else 0). */
void gci_rdv_exited(struct gci_rdv *r, uint32_t rank, int code, int signal, uint64_t now_ns);

/* Tells all ranks, those that have not joined yet, too. 0 or GCOLL_ERR_NOMEM. */
int gci_rdv_budget(struct gci_rdv *r, const struct gci_ctl_budget *b);

/* What the launcher itself saw, e.g. a rank that could not be started. */
void gci_rdv_failed(
	struct gci_rdv *r, uint32_t rank, int exit_status, const char *cause, uint64_t now_ns);

/* The launcher itself cannot go on, whatever the ranks do: that is the verdict, at once. */
void gci_rdv_give_up(struct gci_rdv *r, int status, const char *cause, uint64_t now_ns);

void gci_rdv_tick(struct gci_rdv *r, uint64_t now_ns);
uint64_t gci_rdv_deadline(const struct gci_rdv *r);

/* 1 with the next thing to do in *ev, or 0. To be emptied after each call that takes the time. */
int gci_rdv_next(struct gci_rdv *r, struct gci_rdv_event *ev);

/* What all ranks shall tell of their traffic, from now on, or as soon as they have begun. */
void gci_rdv_watch(struct gci_rdv *r, const struct gci_ctl_watch *m);

/* NULL: no failure, or its cause is still open. */
const struct gci_rdv_verdict *gci_rdv_verdict(const struct gci_rdv *r);

/* Does the verdict count this rank among the silent? It will not have heard of it, then. */
int gci_rdv_is_silent(const struct gci_rdv *r, uint32_t rank);

/* Is there a verdict that ends the job, and not just an epoch of it? */
int gci_rdv_is_over(const struct gci_rdv *r);

/* Is this rank left out of a job that goes on, though its process may live? */
int gci_rdv_is_left_out(const struct gci_rdv *r, uint32_t rank);
uint32_t gci_rdv_nleft_out(const struct gci_rdv *r); /* so far */

/* What is to be told of failures that the job survives, a line each; *out is the caller's to free.
 */
void gci_rdv_news(struct gci_rdv *r, struct gci_buf *out);

/* To these, of a job that has ended though it might have gone on: why ranks did not, as far as they
 * have told after the last verdict. */
void gci_rdv_tell_last_words(struct gci_rdv *r);

/* Of a guest nothing more is to come: it has left, was lost, or will not be waited for. */
int gci_rdv_is_gone(const struct gci_rdv *r, uint32_t rank);

/* Once every process has ended: may a verdict still come? */
int gci_rdv_settled(const struct gci_rdv *r);

/* What the whole job exits with: 0, or the first failing rank's status. */
int gci_rdv_exit_status(const struct gci_rdv *r);

#endif
