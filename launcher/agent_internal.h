/* SPDX-License-Identifier: MIT
 * Between agent.c (the conversation with the launcher, and the processes) and relay.c (other agents). */
#ifndef GCI_LAUNCHER_AGENT_INTERNAL_H
#define GCI_LAUNCHER_AGENT_INTERNAL_H

#include "launcher/agent_msg.h"

#include <sys/types.h>
#include <uv.h>

struct agent_rank;

/* The reading end of a rank's standard output or error. */
struct agent_stream {
	uv_poll_t poll;
	struct agent_rank *rank;
	uint32_t which; /* 1 or 2 */
	int fd;         /* -1: closed */
	int polling;
};

struct agent_rank {
	uint32_t rank;
	pid_t pid; /* 0: not started, or ended */
	int begun; /* was started, or never will be */
	struct agent_stream out[2];
};

struct agent {
	uv_loop_t loop;
	uv_pipe_t in, up; /* from and to the launcher */
	uv_pipe_t rank0;  /* rank 0's standard input */
	uv_signal_t children, term;
	uv_timer_t watch, kill_again, patience;
	uv_idle_t starting; /* while ranks are to be started */
	struct gci_buf input;
	struct gci_agent_msg_start job;
	char *origin; /* from where ssh came to the first agent on the way here; NULL: to this one */
	struct agent_rank *ranks;
	uint32_t nranks, next; /* of them to be started */
	uint32_t credit;       /* payload bytes we may send */
	uint32_t stdin_queued;
	int started, stdin_open, stdin_ending, ending;
	uint64_t heard_ns;
	int status;
};

/* One per process, as are its children. */
extern struct agent gci_me;

void gci_agent_send_up(struct gci_buf *b);

/* Bytes that wait for the launcher. */
size_t gci_agent_behind(void);

/* The launcher's address as ssh's server saw it, the first on the way here. 0 or -1. */
int gci_agent_origin(char *out, size_t size);

/* The launcher gives this agent up, and says why. */
void gci_agent_send_error(const char *text);

#endif
