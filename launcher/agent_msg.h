/* SPDX-License-Identifier: MIT
 * The language between gridcoll-run and its agents, over an agent's standard input and output.
 * An agent first says GCI_AGENT_MSG_MAGIC (what a login script may print before that is skipped);
 * then both sides send frames: a u32 length (of what follows), a u8 type, the fields below.
 *
 *	launcher			agent
 *	START ->					ranks, command, environment, secret
 *	STDIN ->			<- TAKEN	rank 0's input; empty: its end
 *	CREDIT ->			<- OUTPUT	what ranks print; empty: its end
 *	SIGNAL ->					to a rank's process group, or all ranks'
 *	HUSH ->						nobody reads stdout (1) or stderr (2)
 *	KILL ->						SIGKILL to every descendant
 *	PING ->			<- PONG		we are still there
 *					<- ENDED	a rank's process ended, or could not start
 *					<- ERROR	the agent cannot do its work
 *	RELAY_START ->					start another host's agent, by this command
 *	RELAY_DATA <->					what it is told, and what it says; nothing:
 *							kill the command
 *					<- RELAY_ENDED	its command ended, or could not start
 *
 * An agent that started another is a relay: it passes the other's bytes on, both ways, as they are,
 * so the launcher speaks with each agent as if it had started it. One thing the relay says itself, as
 * the first: ORIGIN, from where ssh came to the relay.
 *
 * Flow control: OUTPUT payload is sent against credit, STDIN payload against what was TAKEN; both
 * begin with GCI_AGENT_MSG_WINDOW. So neither pipe ever fills up with data that nobody wants, and
 * signals and ends of processes are never stuck behind it, nor in a relay behind those of others. The
 * end of the agent's standard input means that the launcher is gone: the agent then kills all its
 * descendants. */
#ifndef GCI_LAUNCHER_AGENT_MSG_H
#define GCI_LAUNCHER_AGENT_MSG_H

#include "base/buf.h"
#include "base/error.h"
#include "transport/control.h"

#define GCI_AGENT_MSG_MAGIC     "\ngridcoll agent 3\n"
#define GCI_AGENT_MSG_MAX_NOISE (64u << 10) /* before the magic */
#define GCI_AGENT_MSG_WINDOW    (128u << 10)
#define GCI_AGENT_MSG_DATA      (32u << 10) /* most payload of one STDIN or OUTPUT */
#define GCI_AGENT_MSG_ALL       UINT32_MAX
#define GCI_AGENT_MSG_MAX       (24u << 20)
#define GCI_AGENT_MSG_RELAYED   (64u << 10) /* most payload of one RELAY_DATA */
#define GCI_AGENT_MSG_ADDRESS   63          /* longest, of ORIGIN */

enum gci_agent_msg_type {
	GCI_AGENT_MSG_START = 1,
	GCI_AGENT_MSG_STDIN,  /* bytes */
	GCI_AGENT_MSG_CREDIT, /* u32 */
	GCI_AGENT_MSG_SIGNAL, /* u32 signal, u32 rank or GCI_AGENT_MSG_ALL */
	GCI_AGENT_MSG_HUSH,   /* u32 */
	GCI_AGENT_MSG_KILL,
	GCI_AGENT_MSG_PING,
	GCI_AGENT_MSG_OUTPUT, /* u32 rank, u32 stream (1, 2), bytes */
	GCI_AGENT_MSG_TAKEN,  /* u32 */
	GCI_AGENT_MSG_ENDED, /* u32 rank, u32 code, u32 signal, str why it could not start, or "" */
	GCI_AGENT_MSG_ERROR, /* str */
	GCI_AGENT_MSG_RELAY_START, /* u32 id, strs argv */
	GCI_AGENT_MSG_RELAY_DATA,  /* u32 id, u32 stream (0, 1, 2), bytes */
	GCI_AGENT_MSG_RELAY_ENDED, /* u32 id, u32 code, u32 signal, str why it could not start, or "" */
	GCI_AGENT_MSG_ORIGIN,      /* str, an address */
	GCI_AGENT_MSG_PONG,
};

struct gci_agent_msg {
	enum gci_agent_msg_type type;
	struct gci_reader r; /* the fields, inside the input buffer */
};

/* Between begin and end the caller puts the fields. */
size_t gci_agent_msg_begin(struct gci_buf *out, enum gci_agent_msg_type type);
void gci_agent_msg_end(struct gci_buf *out, size_t at);

/* A frame of one u32, or (with `type` that has none) of nothing. */
void gci_agent_msg_put_u32(struct gci_buf *out, enum gci_agent_msg_type type, uint32_t v);
void gci_agent_msg_put_plain(struct gci_buf *out, enum gci_agent_msg_type type);

void gci_agent_msg_put_signal(struct gci_buf *out, int sig, uint32_t rank);

/* The frame at *at, which moves behind it. 1, 0 when it is not whole yet, or GCOLL_ERR_PROTO.
 * The caller drops the first *at bytes when it has looked at what it got. */
int gci_agent_msg_next(
	const struct gci_buf *in, size_t *at, struct gci_agent_msg *f, struct gci_error *e);

struct gci_agent_msg_start {
	uint32_t *ranks;
	uint32_t nranks;
	char **argv; /* ends in NULL, like env */
	char **env;  /* "NAME=VALUE" to set, "NAME" to unset */
	char *cwd;
	uint8_t or_home;  /* where there is no such directory: the user's own */
	char *rendezvous; /* IP:PORT; ":PORT": where ssh came from */
	uint64_t dead_ns; /* longest silence of the launcher; 0: the end of input tells enough */
	uint8_t secret[GCI_SECRET_NBYTES];
};

/* It has a secret in it: `out` is to be a buffer that knows (base/buf.h). */
void gci_agent_msg_put_start(struct gci_buf *out, const struct gci_agent_msg_start *m);
/* 0 with *m to be freed, or GCOLL_ERR_PROTO / _NOMEM. */
int gci_agent_msg_get_start(struct gci_agent_msg *f, struct gci_agent_msg_start *m);
void gci_agent_msg_start_free(struct gci_agent_msg_start *m);

/* The fields of frames about an agent behind a relay. `id`: which of those that the relay started.
 * `get`: 0 or GCOLL_ERR_PROTO, which may also be lack of memory. */
void gci_agent_msg_put_relay_start(struct gci_buf *out, uint32_t id, char *const *argv);
/* With *argv to be freed. */
int gci_agent_msg_get_relay_start(struct gci_agent_msg *f, uint32_t *id, char ***argv);
void gci_agent_msg_argv_free(char **argv);

/* `data` is inside the frame. `stream`: 0 is the input of the agent there. */
struct gci_agent_msg_relay_data {
	uint32_t id, stream;
	const uint8_t *data;
	size_t nbytes;
};

void gci_agent_msg_put_relay_data(struct gci_buf *out, const struct gci_agent_msg_relay_data *m);
int gci_agent_msg_get_relay_data(struct gci_agent_msg *f, struct gci_agent_msg_relay_data *m);

/* How a process ended. */
struct gci_agent_msg_ended {
	uint32_t id; /* RELAY_ENDED: which agent's; ENDED: the rank */
	int code, sig;
	char *why; /* when it could not start, else "" */
};

void gci_agent_msg_put_ended(
	struct gci_buf *out, enum gci_agent_msg_type type, const struct gci_agent_msg_ended *m);
/* With m->why to be freed by gci_free. */
int gci_agent_msg_get_ended(struct gci_agent_msg *f, struct gci_agent_msg_ended *m);

void gci_agent_msg_put_origin(struct gci_buf *out, const char *address);
/* New memory, or NULL. */
char *gci_agent_msg_get_origin(struct gci_agent_msg *f);

#endif
