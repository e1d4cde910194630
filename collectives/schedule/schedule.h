/* SPDX-License-Identifier: MIT
 * The schedule: what one rank does in one operation, as a list of steps. Emitters write it with a
 * builder; verifier, executor and printer read it.
 *
 *	struct gci_builder b;
 *	gci_builder_init(&b, rank, nranks);
 *	b.out_len = count;
 *	gci_recv(&b, 3, tag, gci_slice(GCI_OUT, 0, count));
 *	gci_send(&b, 5, tag, gci_slice(GCI_OUT, 0, count));	// after the RECV, by itself
 *	rc = gci_builder_end(&b, &sched);
 *
 * Dependencies follow from the slices: the builder makes a step wait for the earlier ones that
 * wrote what it reads, and for those that read or wrote what it writes. gci_after adds others. */
#ifndef GCI_COLLECTIVES_SCHEDULE_SCHEDULE_H
#define GCI_COLLECTIVES_SCHEDULE_SCHEDULE_H

#include "base/error.h"
#include "collectives/schedule/imap.h"

#include <stddef.h>
#include <stdint.h>

enum gci_buffer {
	GCI_IN,  /* the caller's input; never written */
	GCI_OUT, /* the caller's output; undefined at first, except in place */
	GCI_TMP, /* scratch of this instance of the schedule; undefined at first */
	GCI_NBUFFERS
};

struct gci_slice {
	uint64_t offset, length; /* elements */
	enum gci_buffer buffer;
};

enum gci_step_kind {
	GCI_STEP_SEND,        /* src -> peer */
	GCI_STEP_RECV,        /* peer -> dst */
	GCI_STEP_RECV_REDUCE, /* dst = src OP incoming; src may be dst */
	GCI_STEP_COPY,        /* dst = src */
	GCI_STEP_REDUCE,      /* dst = dst OP src */
	/* Where both are named, src and dst are the same slice or do not overlap. */
};

struct gci_step {
	enum gci_step_kind kind;
	int swapped;     /* RECV_REDUCE: incoming OP src; REDUCE: src OP dst */
	uint64_t due_ns; /* SEND: it goes no sooner after its window is due */
	int peer;
	uint32_t tag; /* unique per (source, destination) in a schedule */
	struct gci_slice src, dst;
	uint32_t deps, ndeps; /* this step waits for sched->deps[deps .. deps + ndeps) */
};

/* Immutable once built. Memory is proportional to the rank's own steps. */
struct gci_sched {
	int rank, nranks;
	uint64_t in_len, out_len, tmp_len; /* elements */
	struct gci_step *steps;
	uint32_t nsteps;
	uint32_t *deps;    /* numbers of earlier steps */
	uint32_t *next;    /* the same edges forwards: step i frees next[next_at[i] ..) */
	uint32_t *next_at; /* nsteps + 1 */
};

struct gci_builder {
	int rank, nranks;
	uint64_t in_len, out_len, tmp_len; /* set by the emitter */
	struct gci_step *steps;
	size_t nsteps, steps_cap;
	uint32_t *deps;
	size_t ndeps, deps_cap;
	struct gci_imap written[GCI_NBUFFERS]; /* last writer and readers since, per interval */
	struct gci_reader_cell *readers;
	size_t nreaders, readers_cap;
	uint32_t *marks; /* [step] = 1 + the latest step that was made to wait for it */
	size_t marks_cap;
	uint32_t fence;             /* step + 1; 0: none */
	uint32_t last_round, round; /* where the round before, and this one, begin */
	uint32_t tag_at;            /* added to all tags: segments have their own (gci_emit) */
	int failed;
};

void gci_builder_init(struct gci_builder *b, int rank, int nranks);

/* Moves what was built to *s and frees the builder. 0 or GCOLL_ERR_NOMEM (then *s is empty). */
int gci_builder_end(struct gci_builder *b, struct gci_sched *s);

/* Throws away what was built. */
void gci_builder_drop(struct gci_builder *b);

static inline struct gci_slice gci_slice(enum gci_buffer buffer, uint64_t offset, uint64_t length)
{
	return (struct gci_slice){offset, length, buffer};
}

/* Each returns its step's number. Slices of length 0 are legal: a message without content. */
uint32_t gci_send(struct gci_builder *b, int peer, uint32_t tag, struct gci_slice src);
uint32_t gci_recv(struct gci_builder *b, int peer, uint32_t tag, struct gci_slice dst);
uint32_t gci_recv_reduce(struct gci_builder *b, int peer, uint32_t tag, struct gci_slice dst,
	struct gci_slice src, int swapped);
uint32_t gci_copy(struct gci_builder *b, struct gci_slice dst, struct gci_slice src);
uint32_t gci_reduce(struct gci_builder *b, struct gci_slice dst, struct gci_slice src, int swapped);

/* The latest step, a SEND, does not go before: what comes to its receiver all at once would meet there. */
void gci_not_before(struct gci_builder *b, uint64_t ns);

/* The latest step waits for `earlier`, whatever their slices. */
void gci_after(struct gci_builder *b, uint32_t earlier);

/* All steps from now on wait for `earlier` (and with it for those it waits for). */
void gci_fence(struct gci_builder *b, uint32_t earlier);

/* Ends a round: what is emitted up to the next call waits for every step of the round that has
 * just ended, as after a blocking call. So a rank asks for the next round's data only when it has
 * this round's, and no two senders meet at its NIC. Rounds without steps do not count. */
void gci_round(struct gci_builder *b);

/* What is emitted from now on waits for no round and no fence before. */
void gci_no_rounds(struct gci_builder *b);

/* Sets `length` elements of TMP apart and returns their offset. */
static inline uint64_t gci_tmp(struct gci_builder *b, uint64_t length)
{
	b->tmp_len += length;
	return b->tmp_len - length;
}

void gci_sched_free(struct gci_sched *s);

struct gci_buf;
/* One line a step: "3: RECV 5 tag 0x01000000 OUT[0 +1024] after 1 2". */
void gci_sched_print(const struct gci_sched *s, struct gci_buf *out);

const char *gci_step_name(enum gci_step_kind kind);
const char *gci_buffer_name(enum gci_buffer buffer);

#endif
