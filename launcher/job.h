/* SPDX-License-Identifier: MIT
 * The one job of a gridcoll-run process: shared by run.c (its life) and start.c (its birth). */
#ifndef GCI_LAUNCHER_JOB_H
#define GCI_LAUNCHER_JOB_H

#include "launcher/agents.h"
#include "launcher/server.h"
#include "launcher/sink.h"

struct job_rank {
	struct gci_line lines[2];
	int ended;
	int closed[2]; /* no more output comes */
};

struct job {
	const struct gci_plan *plan;
	uv_loop_t loop;
	struct gci_server server;
	struct gci_agent *agents;
	uint32_t nagents;
	struct job_rank *ranks;
	uint8_t secret[GCI_SECRET_NBYTES]; /* wiped once handed out */
	uint64_t dead_ns;
	struct gci_sink sinks[2];
	int hushed[2], held_ticks[2];
	struct gci_source input;
	size_t stdin_room;
	int stdin_ended;
	uv_signal_t children, signals[6];
	uv_timer_t escalation, held, ping;
	int failing, closing, said, interrupts;
};

extern struct job job;

/* Starts all agents and tells them what to run. */
int gci_job_start(const struct gci_options *o, const struct gci_plan *p,
	const struct gci_agent_events *events, struct gci_error *e);

#endif
