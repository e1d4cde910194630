/* SPDX-License-Identifier: MIT
 * The one job of a gridcoll-run process: shared by start.c and run.c. */
#ifndef GCI_LAUNCHER_JOB_H
#define GCI_LAUNCHER_JOB_H

#include "launcher/agents.h"
#include "launcher/ctl.h"
#include "launcher/server.h"
#include "launcher/sink.h"
#include "launcher/watch.h"

struct gci_job_rank {
	struct gci_line lines[2];
	int ended;
	uint64_t left_out_ns; /* since when, of a job that goes on; 0: it is not */
	int last_signal;      /* that it was sent for that reason */
	int closed[2];        /* no more output comes */
	int given_up;         /* we said that it has ended, since its agent did not */
};

struct gci_job {
	struct gci_placement *plan;
	uv_loop_t loop;
	struct gci_server server;
	struct gci_jobctl ctl;
	struct gci_watch watch;
	struct gci_agents all;
	struct gci_agent *agents;
	uint32_t nagents;
	struct gci_job_rank *ranks;
	uint8_t secret[GCI_SECRET_NBYTES]; /* wiped once handed out */
	uint64_t dead_ns, pinged_ns;
	struct gci_sink sinks[2];
	int hushed[2], held_ticks[2];
	struct gci_source input;
	size_t stdin_room;
	int stdin_ended;
	uv_signal_t children, signals[6];
	uv_timer_t escalation, held, ping, left_out;
	uint32_t nleft_out; /* that are taken care of */
	int failing, closing, said, interrupts;
	int detours; /* one is told of */
	int order;   /* the last signal that tells ranks to end; 0: none came */
};

extern struct gci_job gci_job;

/* Output that nobody has read yet holds the ranks up beyond this. */
#define GCI_JOB_BACKLOG_HIGH (1u << 20)

/* Whether the ranks' connections to gridcoll-run are encrypted. */
int gci_job_tls(const struct gci_options *o, const struct gci_placement *p);

/* ctl_table.c: what the job can be asked. Their `user` is the job's argv. */
extern const struct gci_jobctl_command gci_job_commands[];

/* run.c: a new budget, from now on. GCOLL_ERR_*. */
struct gci_budget_order;
int gci_job_budget(const struct gci_budget_order *o, struct gci_error *e);

/* Starts all agents and tells them what to run. */
int gci_job_start(const struct gci_options *o, const struct gci_placement *p,
	const struct gci_agent_events *events, struct gci_error *e);

#endif
