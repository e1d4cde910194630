/* SPDX-License-Identifier: MIT
 * Between control_client.c, control_thread.c and control_members.c. */
#ifndef GCI_COMM_CONTROL_IMPL_H
#define GCI_COMM_CONTROL_IMPL_H

#include "comm/control_client.h"
#include "comm/control_io.h"

#include <pthread.h>

#define GCI_CONTROL_ASKED 64 /* kept; who is not heard asks again */

/* What the launcher has answered to AGREE and SHRINK. */
struct gci_control_members {
	pthread_cond_t news;
	int over; /* no more answers come, for this reason: */
	struct gci_ctl_failure why;
	int has_agreed, has_survivors;
	struct gci_ctl_agree agreed;
	struct gci_ctl_survivors survivors;
};

struct gci_control {
	struct gci_control_io io;
	char where[GCI_ADDRESS_TEXT]; /* the launcher is */
	int event_fd;
	int running; /* the thread is */
	pthread_t thread;
	void (*wake)(void *user);
	int (*called)(void *user, struct gci_ctl_call *m);
	void *user;
	void (*watch)(void *user, const struct gci_ctl_watch *m); /* may be NULL */
	void *watch_user;
	uint64_t beat_ns, dead_ns;
	int survives;        /* the job does, failures of its ranks */
	struct gci_buf in;   /* the thread's, once it runs */
	struct gci_buf wire; /* likewise: on its way by this connection */
	uint8_t *key;        /* for RESUME: 32 bytes */
	uint8_t session[GCI_CTL_SESSION];
	uint32_t rank, life;
	uint64_t looked_ns; /* atomic */

	pthread_mutex_t lock; /* guards what follows */
	struct gci_buf out;   /* said, and no connection's yet */
	struct gci_ctl_link link;
	int quit, has_verdict, all_gone;
	struct gci_ctl_failure verdict;
	struct gci_ctl_wait asked[GCI_CONTROL_ASKED];
	unsigned nasked;
	struct gci_control_members members;
	struct gci_ctl_budget *budgets; /* not taken yet */
	size_t nbudgets, budgets_cap;
};

/* The thread has something new in `out`. */
void gci_control_nudge(struct gci_control *ctl);

/* Between them, what is put into `out` is for the thread to send. */
void gci_control_begin_say(struct gci_control *ctl);
void gci_control_end_say(struct gci_control *ctl);

/* The launcher has ended its connection; or that was lost otherwise, and may be made again. */
#define GCI_CONTROL_GONE   (-1)
#define GCI_CONTROL_BROKEN (-2)

/* control_thread.c. Reads what has come: 1 something, 0 nothing now, or one of the above. */
int gci_control_receive(struct gci_control *ctl, int flags);

/* Sends what `out` holds, as far as goes: 0, or one of the above. */
int gci_control_flush(struct gci_control *ctl, int flags);

/* After BROKEN: 0, the job goes on by another connection; or -1, with the reason why not in *why, when
 * the launcher has said it, or does not answer until `until_ns`. */
int gci_control_resume(struct gci_control *ctl, uint64_t until_ns, struct gci_ctl_failure *why);

void gci_control_put_plain(struct gci_control *ctl, enum gci_ctl_type type);
void gci_control_put_beat(struct gci_control *ctl);
void gci_control_put_call(
	struct gci_control *ctl, enum gci_ctl_type type, const struct gci_ctl_call *m);

/* The thread; `control` is its struct gci_control. */
void *gci_control_beat(void *control);

/* control_members.c; the last two with the lock held */
void gci_control_init_members(struct gci_control_members *m);
void gci_control_free_members(struct gci_control_members *m);
void gci_control_take_members(struct gci_control *ctl, struct gci_ctl_message *m);
void gci_control_end_members(struct gci_control_members *m, const struct gci_ctl_failure *why);

#endif
