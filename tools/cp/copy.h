/* SPDX-License-Identifier: MIT
 * `gridcoll cp` on one rank, once its options are read: the copy in phases, each of which all ranks
 * do together. With --keep-going, after the death of a receiver, those that are left begin again
 * with the first phase that one of them has not done; what each has, it keeps. */
#ifndef GCT_CP_COPY_H
#define GCT_CP_COPY_H

#include "tools/cp/cp.h"

#include <sys/types.h>

struct gct_cp_options {
	const char *algorithm;
	uint64_t streams;             /* 0: as the grid says */
	uint64_t limit;               /* bytes per second of the stream; 0: none */
	const char *json, *checksums; /* files that the source writes, or NULL */
	int recursive, include_source, quiet, sync, resume, keep_going, scatter, gather;
	char **sources;
	int nsources;
	const char *dest;
	const char *from; /* who has the files, or NULL: where the command was typed */
	const char *to;   /* who receives, or NULL: all others; with --gather, who collects */
};

enum gct_cp_phase {
	GCT_CP_LIST,   /* the source's list of files goes to all */
	GCT_CP_DEST,   /* a place to write to */
	GCT_CP_SHARE,  /* who writes for others that have the same place */
	GCT_CP_RESUME, /* what is there of an earlier copy */
	GCT_CP_READY,  /* all can write */
	GCT_CP_MOVE,
	GCT_CP_AGREE /* all have written all */
};

/* How it went on one rank. */
struct gct_cp_outcome {
	uint64_t was; /* its number in the first world */
	uint64_t writes;
	uint64_t ncopies;
	uint64_t had_nbytes;
	uint64_t done_ns; /* since the beginning: it had written the last of it */
	uint64_t busy_ns; /* that its disk took */
};

#define GCT_CP_OUTCOME_WORDS (sizeof(struct gct_cp_outcome) / sizeof(uint64_t))

/* At the root, of --gather: where one rank's file goes. */
struct gct_cp_collected {
	struct gct_cp_manifest part;
	struct gct_cp_sink sink;
	char *dest;
	uint64_t nmissing; /* see struct gct_cp_copy */
	dev_t dev;         /* of the directory */
	ino_t ino;
};

/* Everything one rank has in hand. */
struct gct_cp_copy {
	const struct gct_cp_options *o;
	gcoll_comm *comm;
	struct gct_cp_manifest manifest;
	struct gct_cp_source source; /* the root */
	struct gct_cp_sums sums;     /* there, too */
	struct gct_cp_sink sink;     /* ranks that write */
	struct gct_cp_move move;
	int writes;        /* this rank: in this attempt, and not another one for it */
	uint8_t *receives; /* [rank at first]: it is to have it; with --gather, it sends */
	uint64_t *groups;  /* [rank at first]: those with one DEST; 0: none that is known */
	uint64_t nonce;    /* the source's, of this job: who knows it is in the job */
	int may_meet; /* a path that a receiver writes to is one of what is copied, at the source */
	struct gct_cp_manifest part; /* this rank's own, with --scatter and --gather */
	struct gct_cp_span *spans;   /* with --gather, as many as there are files */
	struct gct_cp_collected *collected;
	uint64_t *end; /* see struct gct_cp_move */
	char *dest;
	uint64_t nmissing;   /* names at the end of `dest` that were not there before the copy */
	uint64_t *at;        /* [rank]: see struct gct_cp_move */
	uint64_t had_nbytes; /* by --resume */
	uint32_t *crcs;      /* of blocks, for that: room for ncrcs; at the root they stay */
	uint64_t ncrcs, nwanted; /* in this attempt */
	enum gct_cp_phase phase; /* what is to be done next */
	int is_done;             /* all have all: it stays, whatever comes */
	gcoll_comm *first;       /* the world that there was at first */
	int was;                 /* this rank's number in it */
	int root;                /* the rank with the files; with --gather, that collects them */
	int root_was;            /* its number in the first world */
	int has_bar;
	uint64_t begun_ns, shown_ns;
};

static inline int gct_cp_is_root(const struct gct_cp_copy *c)
{
	return c->was == c->root_was;
}

/* All of it: 0, or GCOLL_ERR_* with the reason in `e`, of which the other ranks do not know yet. */
int gct_cp_run(struct gct_cp_copy *c, struct gci_error *e);

/* After an error, unless the copy is done: removes directories that it has made, and that are empty. */
void gct_cp_undo(struct gct_cp_copy *c);

/* Gives back what --gather took. */
void gct_cp_gather_free(struct gct_cp_copy *c);

/* At the root, when all is done: a line for people, and the files that are asked for. all[] has all
 * ranks of the last world. (say.c) */
int gct_cp_report(struct gct_cp_copy *c, const struct gct_cp_outcome *all, struct gci_error *e);

const char *gct_cp_cluster_name(const gcoll_comm *comm, int cluster);
/* The next receiver, from `rank` of the first world on, that is not in the last one; -1: none. */
int gct_cp_next_left_out(const struct gct_cp_copy *c, int rank);

/* The progress bar, for struct gct_cp_move. (say.c) */
void gct_cp_show(void *user, uint64_t done, const uint64_t *reached);
void gct_cp_show_compared(struct gct_cp_copy *c, uint64_t n);

#endif
