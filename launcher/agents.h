/* SPDX-License-Identifier: MIT
 * The launcher's side of its agents: starts them here, in a network namespace or over ssh, from here
 * or from the host of another, and speaks frames with them.
 *
 *	struct gci_agents all = {.v = agents, .loop = loop, .events = &events,
 *		.remote_path = "gridcoll-run"};
 *
 *	rc = gci_agent_start(&all.v[0], &all, &place, NULL, &e);
 *	gci_agent_send(&all.v[0], &frames);
 *	... events.ended(rank, ...) for each of its ranks ...
 *	gci_agent_close(&all.v[0]);	// end of its input: it ends what is left, and itself
 */
#ifndef GCI_LAUNCHER_AGENTS_H
#define GCI_LAUNCHER_AGENTS_H

#include "launcher/agent_msg.h"
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
	/* Another agent's host could not start it; it is started from here. */
	void (*detour)(struct gci_agent *a, const char *why);
};

/* All agents of a job, and what they have in common. */
struct gci_agents {
	struct gci_agent *v;
	uint32_t n; /* that were started */
	uv_loop_t *loop;
	const char *remote_path;
	uint64_t ssh_ns; /* longest wait for ssh to log in, by all ways to the host together */
	const struct gci_agent_events *events;
	void *user; /* for these */
};

struct gci_agent {
	const struct gci_place *place;
	const struct gci_agents *all;
	struct gci_agent *starter; /* whose host starts it, and passes its bytes on; NULL: we do */
	struct gci_agent *starts, *next; /* those that it starts; the next of the same starter */
	int runs;                        /* its process has not ended yet, as far as we know */
	pid_t pid;                       /* 0: it is no child of ours, or was reaped */
	uv_pipe_t down, up, err;         /* without a starter */
	struct gci_buf input, complaint;
	struct gci_buf held; /* with a starter: what it is to hear once it has spoken */
	int spoke;           /* the magic has come */
	int answered;        /* and a PONG: it has started its ranks */
	uint64_t tried_ns;   /* since when ssh tries to reach it; 0: not yet */
	uint64_t heard_ns;   /* when it, or its ssh, last spoke; 0: never */
	int lost, closed, nopen;
	uint32_t owed; /* credit to be given for output */
};

/* `starter` (NULL: ourselves) was started before. `all` is to stay as long as the agent. */
int gci_agent_start(struct gci_agent *a, const struct gci_agents *all,
	const struct gci_place *place, struct gci_agent *starter, struct gci_error *e);

/* Takes `b` over. */
void gci_agent_send(struct gci_agent *a, struct gci_buf *b);

/* Its process was reaped. Those behind it are lost with it. */
void gci_agent_died(struct gci_agent *a, int wait_status);

/* It is lost if its ssh has not logged in in time, or if it has not said a word for dead_ns; for three
 * times as long while it starts ranks. To be called once a second. */
void gci_agent_check(struct gci_agent *a, uint64_t now_ns, uint64_t dead_ns);

/* This process was stopped until now: what it was told meanwhile has not been read yet. */
void gci_agent_paused(struct gci_agent *a, uint64_t now_ns);

void gci_agent_close(struct gci_agent *a);

#endif
