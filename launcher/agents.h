/* SPDX-License-Identifier: MIT
 * The launcher's side of its agents: starts them here, in a network namespace or over ssh, and
 * speaks frames with them.
 *
 *	rc = gci_agent_start(&a, loop, &place, remote_path, &events, user, &e);
 *	gci_agent_send(&a, &frames);
 *	... events.ended(rank, ...) for each of its ranks ...
 *	gci_agent_close(&a);	// end of its input: it ends what is left, and itself
 */
#ifndef GCI_LAUNCHER_AGENTS_H
#define GCI_LAUNCHER_AGENTS_H

#include "launcher/frames.h"
#include "launcher/placement.h"

#include <uv.h>

struct gci_agent;

struct gci_agent_events {
	/* stream: 1 or 2; nbytes 0: its end. */
	void (*output)(struct gci_agent *a, uint32_t rank, uint32_t stream, const uint8_t *data,
		size_t nbytes);
	/* `why` is not empty when it could not start. */
	void (*ended)(struct gci_agent *a, uint32_t rank, int code, int sig, const char *why);
	void (*taken)(struct gci_agent *a, uint32_t nbytes);
	/* The agent is of no more use. Called once, not after gci_agent_close. */
	void (*lost)(struct gci_agent *a, const char *why);
	/* A line of its own standard error (ssh's, mostly) when all went well otherwise. */
	void (*grumble)(struct gci_agent *a, const char *text);
};

struct gci_agent {
	const struct gci_place *place;
	const struct gci_agent_events *events;
	void *user;
	pid_t pid; /* 0: it has ended, and was reaped */
	uv_pipe_t down, up, err;
	struct gci_buf input, complaint;
	int spoke; /* the magic has come */
	int lost, closed, nopen;
	uint32_t owed; /* credit to be given for output */
};

int gci_agent_start(struct gci_agent *a, uv_loop_t *loop, const struct gci_place *place,
	const char *remote_path, const struct gci_agent_events *events, void *user,
	struct gci_error *e);

/* Takes `b` over. */
void gci_agent_send(struct gci_agent *a, struct gci_buf *b);

/* Its process was reaped. */
void gci_agent_died(struct gci_agent *a, int wait_status);

void gci_agent_close(struct gci_agent *a);

/* For people: the command by which its agent is started, as a shell would take it. */
void gci_agent_print_ssh(
	struct gci_buf *out, const struct gci_place *place, const char *remote_path);

/* In a shell's quotes, where it takes some. */
void gci_quote_if_needed(struct gci_buf *out, const char *s);

/* The local address by which `host` is reached ("user@" before it does not matter); 0 or -1. */
int gci_route_to(const char *host, char *ip, size_t size);

#endif
