/* SPDX-License-Identifier: MIT
 * Jobs in which somebody dies: what shall happen in one, by its seed; what did happen, by the
 * notes of its ranks; and whether that is what gridcoll promises.
 *
 *	kills_plan_make(&plan, seed);
 *	... run a job of kills_plan_argv(&plan, log, argv) ...
 *	kills_read(&story, &plan, log);
 *	if (kills_judge(&story, status, err, why, sizeof(why)))
 *		puts(why);
 */
#ifndef GCI_TESTS_COMM_KILLS_H
#define GCI_TESTS_COMM_KILLS_H

#include <stddef.h>
#include <stdint.h>

#define KILLS_RANKS    8
#define KILLS_EVENTS   2
#define KILLS_FAILURES 8
#define KILLS_ARGS     28

enum kills_what {
	KILLS_RANK,     /* SIGKILL of a rank, at a point of its program */
	KILLS_EARLY,    /* the same from outside, some time after the job's start */
	KILLS_AGENT,    /* of the process that started a rank */
	KILLS_LAUNCHER, /* of gridcoll-run */
	KILLS_STOP      /* SIGSTOP of a rank */
};

struct kills_event {
	enum kills_what what;
	int rank;
	char point[16]; /* "start", a step's number, "shrink" or "leave" */
	uint64_t after_ns;
};

struct kills_plan {
	uint64_t seed;
	int nranks, nclusters, per_host; /* the ranks of a host are those behind each other */
	int steps, survives, thread;
	int brood; /* this rank has a process in the background; -1: none */
	const char *security;
	int nevents;
	struct kills_event events[KILLS_EVENTS];
};

/* The same seed gives the same plan. */
void kills_plan_make(struct kills_plan *p, uint64_t seed);

/* Arguments of gridcoll-run, ended by NULL; valid until the next call. */
void kills_plan_argv(const struct kills_plan *p, const char *log, const char *argv[KILLS_ARGS]);

/* In one line. */
void kills_plan_print(const struct kills_plan *p, char *text, size_t size);

struct kills_failure {
	uint64_t ns;
	int status;
	char text[512];
};

struct kills_rank {
	int born, joined, leaving, left, out, wrong;
	int begun_last; /* has begun the last step */
	int size;       /* of its last world; 0: the first one */
	int nfailures;
	struct kills_failure failures[KILLS_FAILURES];
	char words[512]; /* what was wrong, or why it was left out */
};

struct kills_story {
	const struct kills_plan *plan;
	uint64_t event_ns[KILLS_EVENTS]; /* when it happened; 0: it did not */
	struct kills_rank ranks[KILLS_RANKS];
	uint64_t longest_ns;            /* from an event to the last return of a survivor's call; by
					   kills_judge */
	int nvictims, nfailed, nshrunk; /* ranks; by kills_judge */
};

/* The notes in the file `log`; event_ns of early events stays as it is. */
void kills_read(struct kills_story *s, const struct kills_plan *p, const char *log);

/* `status` of gridcoll-run, and what it said. 0, or -1 with what is wrong. */
int kills_judge(struct kills_story *s, int status, const char *err, char *why, size_t size);

/* Whether this is what dies, or stands still, by an event that happened. */
int kills_is_victim(const struct kills_story *s, int rank);

/* ---- processes: those of a job have a mark in their environment */

/* The job that is started next is this one. */
void kills_mark(uint64_t seed);

/* How many processes it has. */
int kills_processes(void);
void kills_signal_all(int sig);

/* Also what a rank started has its number. How many got the signal. */
int kills_signal_rank(int rank, int sig);

/* 0, or -1 with what the job left: processes, which are then killed, after `patience_ns`, or more
 * than `nleft` files in `dirs`, which NULL ends. */
int kills_leftovers(
	const char *const *dirs, int nleft, uint64_t patience_ns, char *why, size_t size);

/* A namespace that is kept is a mount: how many there are. */
int kills_mounts(void);

#endif
