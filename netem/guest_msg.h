/* SPDX-License-Identifier: MIT
 * What the lab's guest and the process outside say to each other over the guest's serial line:
 * frames of a type, a session (one command that runs inside) and at most GCI_GUEST_MSG_MAX bytes.
 *
 *	outside				guest
 *	START ->				u32 n: the job is in the file job-n
 *	IN, IN_END ->				its standard input, within the credit given
 *	SIGNAL ->				u8: to the job's process group
 *	STOP ->					ends the guest
 *					<- READY	u64: nanoseconds to boot and build the net
 *					<- FAILED	text: why the guest cannot serve
 *					<- TAKEN	u32: bytes read from the line
 *					<- CREDIT	u32: bytes of IN that may be sent
 *					<- OUT, ERR	the job's output
 *					<- EXIT		u8 status, u64 CPU ticks busy, u64 of all
 *
 * The guest's line loses its wake-ups when more comes than its terminal layer holds (4096 bytes),
 * so no more than GCI_GUEST_MSG_WINDOW is sent ahead of TAKEN; credit is for each job's own pace.
 *
 * Without I/O: bytes in, frames out. */
#ifndef GCI_NETEM_GUEST_MSG_H
#define GCI_NETEM_GUEST_MSG_H

#include "base/buf.h"

#define GCI_GUEST_MSG_MAX    4096
#define GCI_GUEST_MSG_HEADER 8
#define GCI_GUEST_MSG_CREDIT 65536 /* of standard input that a job has not taken yet */
#define GCI_GUEST_MSG_WINDOW 3072  /* bytes of frames with input that the guest has not read yet */
#define GCI_MAX_SESSIONS     8

enum gci_guest_msg_type {
	GCI_GUEST_MSG_START = 1,
	GCI_GUEST_MSG_IN,
	GCI_GUEST_MSG_IN_END,
	GCI_GUEST_MSG_SIGNAL,
	GCI_GUEST_MSG_STOP,
	GCI_GUEST_MSG_READY,
	GCI_GUEST_MSG_FAILED,
	GCI_GUEST_MSG_TAKEN,
	GCI_GUEST_MSG_CREDIT_GIVEN,
	GCI_GUEST_MSG_OUT,
	GCI_GUEST_MSG_ERR,
	GCI_GUEST_MSG_EXIT,
	GCI_GUEST_MSG_TYPES,
};

struct gci_guest_msg {
	enum gci_guest_msg_type type;
	unsigned session;
	struct gci_reader body;
};

/* Writes one frame; `len` is at most GCI_GUEST_MSG_MAX. */
void gci_guest_msg_put(struct gci_buf *out, enum gci_guest_msg_type type, unsigned session,
	const void *body, size_t len);

/* Looks at the first frame in `in`. Its length in bytes, 0 when more bytes are needed, -1 when this
 * is no frame. `f` points into `in`. */
int gci_guest_msg_get(const struct gci_buf *in, struct gci_guest_msg *f);

/* A command to run: as a file, for the guest to read. */
struct gci_job {
	char *cwd;
	char **argv, **env; /* NULL-terminated */
};

#define GCI_JOB_MAX (8u << 20)

void gci_job_put(struct gci_buf *out, const struct gci_job *job);

/* GCOLL_ERR_PROTO or _NOMEM leave `job` empty. */
int gci_job_get(struct gci_reader *in, struct gci_job *job);

void gci_job_free(struct gci_job *job);

#endif
