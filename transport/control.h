/* SPDX-License-Identifier: MIT
 * The control protocol between each rank and the launcher: joining, heartbeats, the first error
 * and the end of the job. It never travels behind bulk data. Only the codec is here, without I/O;
 * the rank's side is job/control_client.c, the launcher's is launcher/rendezvous.c.
 *
 * A message is a u32 length (of what follows), a u8 type and the type's fields, little-endian.
 *
 *	rank				launcher
 *	HELLO ->					its rank, where it listens
 *					<- START	once all have said HELLO: what a rank needs
 *	BEAT ->				<- BEAT		every beat_ns, both ways
 *	FAIL ->						this rank cannot go on, or saw a peer fail
 *					<- ABORT	the job ends: who failed first, and why
 *	BYE ->						nothing more to do (gcoll_finalize)
 *					<- BYE		all ranks have said BYE
 *	WAIT ->				-> WAIT		to a rank that said BYE: it is waited for
 *	ASK ->				-> ASK		what does another rank call? to that one
 *	CALLED ->					its answer, for the verdict
 *					<- BUDGET	how fast one cluster may send to another
 *				<- WATCH	somebody wants to see the traffic, or no more
 *	REPORT ->					the traffic, with WATCH only
 *	FLOWS ->					the same by connection
 *	AGREE ->			<- AGREED	flags: a rank's; of all
 *	SHRINK ->			<- SURVIVORS	to go on after an ABORT; with these ranks
 *	RESUME ->			<- RESUMED	by another connection, after the loss of one
 *
 * Ranks are numbered anew with each SURVIVORS, which begins the next epoch; a rank calls itself and
 * others by the numbers of the epoch it is in. A job that survives (START says so) goes on after an
 * ABORT; a second one before SURVIVORS tells a rank that it is left out.
 *
 * The loss of a connection is survived, within dead_ns: the rank makes another and says RESUME. Both
 * sides count the messages that gci_ctl_counts; a BEAT, RESUME or RESUMED says how many have come, and
 * what has not come is sent again behind RESUMED (struct gci_ctl_link). A rank that has got none is sent
 * START again as well. A rank that closes its connection in order (FIN) has ended, and does not come back.
 *
 * Either side treats dead_ns without any message as the other's death. */
#ifndef GCI_TRANSPORT_CONTROL_H
#define GCI_TRANSPORT_CONTROL_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "transport/reach.h"
#include "transport/report.h"
#include "transport/secret.h"

#define GCI_CTL_VERSION     9
#define GCI_CTL_MAX_MESSAGE (32u << 20)
#define GCI_CTL_MAX_HELLO   4096 /* before a rank is known, nothing longer is taken */
#define GCI_CTL_MAX_RANKS   65536
#define GCI_CTL_TEXT        480
#define GCI_CTL_CALL_TEXT   200
#define GCI_CTL_HOST        254 /* with the zero */
#define GCI_CTL_CLUSTER     22  /* with the zero; two of them fit a grid file's [link A B] */
#define GCI_CTL_SESSION     16  /* bytes */
#define GCI_CTL_RELEASE     32  /* with the zero */
#define GCI_CTL_JOINING_NS  (20 * GCI_NS_PER_S) /* in place of dead_ns, before START */
#define GCI_CTL_MAX_KEPT    (8u << 20)          /* bytes of messages that are not acknowledged */

/* Ends the text of a FAIL about ranks that do not call the same; the launcher puts in its place
 * what the other rank answered. */
#define GCI_CTL_SOMETHING_ELSE "something else"

enum gci_ctl_type {
	GCI_CTL_HELLO = 1,
	GCI_CTL_START,
	GCI_CTL_BEAT,
	GCI_CTL_FAIL,
	GCI_CTL_ABORT,
	GCI_CTL_BYE,
	GCI_CTL_WAIT,
	GCI_CTL_ASK,
	GCI_CTL_CALLED,
	GCI_CTL_BUDGET,
	GCI_CTL_WATCH,
	GCI_CTL_REPORT,
	GCI_CTL_FLOWS,
	GCI_CTL_AGREE,
	GCI_CTL_AGREED,
	GCI_CTL_SHRINK,
	GCI_CTL_SURVIVORS,
	GCI_CTL_RESUME,
	GCI_CTL_RESUMED,
};

struct gci_ctl_hello {
	uint32_t version;
	uint32_t rank;
	uint8_t token[32]; /* gci_ctl_token(): proves knowledge of the job's secret */
	/* Not of another version: */
	struct gci_reach reach;        /* where the rank takes data connections */
	uint32_t size;                 /* of the job as this rank knows it; 0: it does not */
	char host[GCI_CTL_HOST];       /* its name for its host; "": none */
	char cluster[GCI_CTL_CLUSTER]; /* and for that one's cluster; "": none */
	/* What it was built of: struct gci_build in collectives/coll.h. */
	char release[GCI_CTL_RELEASE];
	uint64_t schedules;
	uint8_t big_endian;
	/* Random: a RESUME of another job's is none of this one. */
	uint8_t session[GCI_CTL_SESSION];
};

/* BEAT and RESUMED: how many counted messages have come. */
struct gci_ctl_got {
	uint64_t n;
};

struct gci_ctl_resume {
	uint32_t rank;
	uint32_t life;     /* more than in any RESUME before */
	uint64_t got;      /* counted messages of the launcher's that have come */
	uint8_t token[32]; /* gci_ctl_resume_token() */
};

/* One rank as START tells of it. */
struct gci_ctl_rank {
	uint32_t host; /* number in the grid file, see gci_grid_host() */
	struct gci_reach reach;
};

struct gci_ctl_start {
	uint32_t size;
	uint32_t epoch;
	uint64_t beat_ns, dead_ns; /* heartbeat period; silence that counts as death */
	char *grid;                /* text of the grid file as it holds here (dilated in a lab) */
	char *table; /* of decisions, text (collectives/tuner/table.h); NULL or "": none */
	uint64_t table_digest; /* of what is in it: all must read the same in it; 0: none */
	uint8_t survives;      /* 1: a failure ends the epoch, not the job */
	struct gci_ctl_rank *ranks;
};

/* FAIL and ABORT. */
struct gci_ctl_failure {
	int32_t status; /* GCOLL_ERR_* */
	int32_t rank;   /* that failed first; -1: none in particular */
	char text[GCI_CTL_TEXT];
};

/* A message of gcoll_send that does not come or go. Names the rank that is waited for; when the
 * launcher passes it on to that one, the rank that waits. */
struct gci_ctl_wait {
	uint32_t rank;
	uint32_t comm, tag; /* as in struct gci_tp_key */
	uint64_t seq;
};

/* An operation that two ranks do not call alike. ASK names the rank that is asked; passed on to
 * that one, and in its answer, the rank that asks. */
struct gci_ctl_call {
	uint32_t rank;
	uint32_t comm;
	uint64_t op;
	char text[GCI_CTL_CALL_TEXT]; /* CALLED: "bcast of 5 byte from rank 0 by tree" */
};

/* From now on; START's grid has those that hold at first. */
struct gci_ctl_budget {
	uint32_t from, to; /* clusters of the grid */
	uint64_t bps;      /* on the wire; 0: none */
};

/* AGREE and, with the AND of all flags, AGREED. */
struct gci_ctl_agree {
	uint32_t epoch;
	uint64_t flags;
	int32_t status; /* AGREED: 0, or why not all of the epoch's ranks have taken part */
	char text[GCI_CTL_TEXT];
};

/* SHRINK names the epoch that has failed, and no ranks; SURVIVORS the next one and its ranks, as
 * they were numbered in START, rising. */
struct gci_ctl_survivors {
	uint32_t epoch;
	uint32_t n;
	uint32_t *ranks;
};

struct gci_ctl_message {
	enum gci_ctl_type type;
	union {
		struct gci_ctl_hello hello;
		struct gci_ctl_start start;
		struct gci_ctl_failure failure;
		struct gci_ctl_wait wait;
		struct gci_ctl_call call;
		struct gci_ctl_budget budget;
		struct gci_ctl_watch watch;
		struct gci_ctl_report report;
		struct gci_ctl_flows flows;
		struct gci_ctl_agree agree;
		struct gci_ctl_survivors survivors;
		struct gci_ctl_got got;
		struct gci_ctl_resume resume;
	};
};

/* What one side has said and heard since HELLO, whatever became of connections. */
struct gci_ctl_link {
	uint64_t sent, acked, got; /* counted messages */
	struct gci_buf kept;       /* those sent behind `acked` */
	int gap;                   /* ... of which some could not be kept */
};

/* Appends one message's bytes to `out` (out->failed tells of lack of memory). */
void gci_ctl_put_hello(struct gci_buf *out, const struct gci_ctl_hello *m);
void gci_ctl_put_start(struct gci_buf *out, const struct gci_ctl_start *m);
void gci_ctl_put_failure(
	struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_failure *m);
void gci_ctl_put_wait(struct gci_buf *out, const struct gci_ctl_wait *m);
void gci_ctl_put_call(struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_call *m);
void gci_ctl_put_budget(struct gci_buf *out, const struct gci_ctl_budget *m);
void gci_ctl_put_watch(struct gci_buf *out, const struct gci_ctl_watch *m);
void gci_ctl_put_report(struct gci_buf *out, const struct gci_ctl_report *m);
void gci_ctl_put_flows(struct gci_buf *out, const struct gci_ctl_flows *m);
void gci_ctl_put_agree(struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_agree *m);
void gci_ctl_put_survivors(
	struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_survivors *m);
void gci_ctl_put_plain(struct gci_buf *out, enum gci_ctl_type type);           /* BYE */
void gci_ctl_put_got(struct gci_buf *out, enum gci_ctl_type type, uint64_t n); /* BEAT, RESUMED */
void gci_ctl_put_resume(struct gci_buf *out, const struct gci_ctl_resume *m);

/* Takes the first message off `in`. Returns 1 with *m filled (to be freed), 0 when `in` does not
 * hold a whole message yet, or GCOLL_ERR_PROTO / _NOMEM with the reason in `e`. A message longer
 * than `max` bytes is refused as soon as its length is known. */
int gci_ctl_get(struct gci_buf *in, uint32_t max, struct gci_ctl_message *m, struct gci_error *e);
void gci_ctl_message_free(struct gci_ctl_message *m);

/* What shows the launcher that this rank knows the secret. 0, or GCOLL_ERR_NOMEM. */
int gci_ctl_token(const uint8_t secret[GCI_SECRET_NBYTES], uint32_t rank, uint8_t token[32]);

/* Likewise in a RESUME, with all that it says: who has heard one cannot make another. The rank keeps
 * its key, and not the secret. */
int gci_ctl_resume_key(const uint8_t secret[GCI_SECRET_NBYTES], uint32_t rank, uint8_t key[32]);
int gci_ctl_resume_token(const uint8_t key[32], const struct gci_ctl_resume *m,
	const uint8_t session[GCI_CTL_SESSION], uint8_t token[32]);

/* Lost with its connection are HELLO, START and those about connections; a later one says what a BEAT,
 * REPORT or FLOWS did. */
int gci_ctl_counts(enum gci_ctl_type type);

/* These messages, whole ones, are about to be sent. */
void gci_ctl_link_keep(struct gci_ctl_link *l, const uint8_t *messages, size_t nbytes);
/* `got` counted messages have come at the other side: 0, or -1: that cannot be. */
int gci_ctl_link_acked(struct gci_ctl_link *l, uint64_t got);
void gci_ctl_link_free(struct gci_ctl_link *l);

#endif
