/* SPDX-License-Identifier: MIT
 * The language between gridcoll-run and its agents, over an agent's standard input and output.
 * An agent first says GCI_FRAME_MAGIC (what a login script may print before that is skipped);
 * then both sides send frames: a u32 length (of what follows), a u8 type, the fields below.
 *
 *	launcher			agent
 *	START ->					ranks, command, environment, secret
 *	STDIN ->			<- TAKEN	rank 0's input; empty: its end
 *	CREDIT ->			<- OUTPUT	what ranks print; empty: its end
 *	SIGNAL ->					to a rank's process group, or all ranks'
 *	HUSH ->						nobody reads stdout (1) or stderr (2)
 *	KILL ->						SIGKILL to every descendant
 *	PING ->						we are still there
 *					<- ENDED	a rank's process ended, or could not start
 *					<- ERROR	the agent cannot do its work
 *
 * Flow control: OUTPUT payload is sent against credit, STDIN payload against what was TAKEN; both
 * begin with GCI_FRAME_WINDOW. So neither pipe ever fills up with data that nobody wants, and
 * signals and ends of processes are never stuck behind it. The end of the agent's standard input
 * means that the launcher is gone: the agent then kills all its descendants. */
#ifndef GCI_LAUNCHER_FRAMES_H
#define GCI_LAUNCHER_FRAMES_H

#include "base/buf.h"
#include "base/error.h"
#include "transport/control.h"

#define GCI_FRAME_MAGIC     "\ngridcoll agent 1\n"
#define GCI_FRAME_MAX_NOISE (64u << 10) /* before the magic */
#define GCI_FRAME_WINDOW    (128u << 10)
#define GCI_FRAME_DATA      (32u << 10) /* most payload of one STDIN or OUTPUT */
#define GCI_FRAME_ALL       UINT32_MAX
#define GCI_FRAME_MAX       (24u << 20)

enum gci_frame_type {
	GCI_FRAME_START = 1,
	GCI_FRAME_STDIN,  /* bytes */
	GCI_FRAME_CREDIT, /* u32 */
	GCI_FRAME_SIGNAL, /* u32 signal, u32 rank or GCI_FRAME_ALL */
	GCI_FRAME_HUSH,   /* u32 */
	GCI_FRAME_KILL,
	GCI_FRAME_PING,
	GCI_FRAME_OUTPUT, /* u32 rank, u32 stream (1, 2), bytes */
	GCI_FRAME_TAKEN,  /* u32 */
	GCI_FRAME_ENDED,  /* u32 rank, u32 code, u32 signal, str why it could not start, or "" */
	GCI_FRAME_ERROR,  /* str */
};

struct gci_frame {
	enum gci_frame_type type;
	struct gci_reader r; /* the fields, inside the input buffer */
};

/* Between begin and end the caller puts the fields. */
size_t gci_frame_begin(struct gci_buf *out, enum gci_frame_type type);
void gci_frame_end(struct gci_buf *out, size_t at);

/* A frame of one u32, or (with `type` that has none) of nothing. */
void gci_frame_put_u32(struct gci_buf *out, enum gci_frame_type type, uint32_t v);
void gci_frame_put_plain(struct gci_buf *out, enum gci_frame_type type);

void gci_frame_put_signal(struct gci_buf *out, int sig, uint32_t rank);

/* The frame at *at, which moves behind it. 1, 0 when it is not whole yet, or GCOLL_ERR_PROTO.
 * The caller drops the first *at bytes when it has looked at what it got. */
int gci_frame_next(const struct gci_buf *in, size_t *at, struct gci_frame *f, struct gci_error *e);

struct gci_frame_start {
	uint32_t *ranks;
	uint32_t nranks;
	char **argv; /* ends in NULL, like env */
	char **env;  /* "NAME=VALUE" to set, "NAME" to unset */
	char *cwd;
	char *rendezvous; /* IP:PORT; ":PORT": where ssh came from */
	uint64_t dead_ns; /* longest silence of the launcher; 0: the end of input tells enough */
	uint8_t secret[GCI_SECRET_NBYTES];
};

/* It has a secret in it: `out` is to be a buffer that knows (base/buf.h). */
void gci_frame_put_start(struct gci_buf *out, const struct gci_frame_start *m);
/* 0 with *m to be freed, or GCOLL_ERR_PROTO / _NOMEM. */
int gci_frame_get_start(struct gci_frame *f, struct gci_frame_start *m);
void gci_frame_start_free(struct gci_frame_start *m);

#endif
