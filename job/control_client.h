/* SPDX-License-Identifier: MIT
 * The rank's side of the control protocol (transport/control.h). Joining is blocking; after it a
 * thread keeps up the heartbeats and listens for the end of the job, so that a program that
 * computes for long is not taken for dead, and one that waits learns of a failure at once.
 *
 * Threads: join, bye and free from one thread; the others from any. */
#ifndef GCI_JOB_CONTROL_CLIENT_H
#define GCI_JOB_CONTROL_CLIENT_H

#include "transport/control.h"

struct gci_control;

/* Connects to the launcher at "IP:PORT" and finds the local address by which it is reached: that
 * is where data connections are taken too, unless rules say otherwise. */
int gci_control_connect(struct gci_control **ctl, const char *rendezvous, char ip[GCI_ADDRESS_TEXT],
	struct gci_error *e);

/* Before gci_control_join, where the launcher says so: all of it goes by TLS. */
int gci_control_secure(struct gci_control *ctl, const uint8_t secret[GCI_SECRET_NBYTES],
	uint32_t rank, uint32_t size, struct gci_error *e);

/* Whether the launcher, or whoever listens there, has said anything. */
int gci_control_was_heard(const struct gci_control *ctl);

/* Before gci_control_join: `watch` is called from the thread, with `user`, when the launcher wants
 * to be told of traffic, or no more. */
void gci_control_on_watch(struct gci_control *ctl,
	void (*watch)(void *user, const struct gci_ctl_watch *m), void *user);

/* Says HELLO, with a session of its own, and waits for START, however long the other ranks take (the
 * launcher gives up on them in time). Then starts the thread. A connection that is lost meanwhile or
 * later, and that the launcher has not ended, is made again; the job's secret is not kept for that.
 * `wake` is called from the thread, with `user`, when a verdict has come; `called`, from the thread too,
 * when a rank asks what this one called: it fills in the text and returns 1, or 0 when it does not know.
 * *start is the caller's to free by gci_ctl_message_free. */
int gci_control_join(struct gci_control *ctl, const struct gci_ctl_hello *hello,
	const uint8_t secret[GCI_SECRET_NBYTES], void (*wake)(void *user),
	int (*called)(void *user, struct gci_ctl_call *m), void *user,
	struct gci_ctl_message *start, struct gci_error *e);

/* Whether the job goes on after failures, if its ranks want to. After gci_control_join. */
int gci_control_survives(const struct gci_control *ctl);

/* Tells of traffic. While the launcher does not read what was told before, it is dropped. */
void gci_control_report(struct gci_control *ctl, const struct gci_ctl_report *m);
void gci_control_flows(struct gci_control *ctl, const struct gci_ctl_flows *m);

/* Tells the launcher that the job cannot go on. Does not wait. */
void gci_control_fail(struct gci_control *ctl, const struct gci_ctl_failure *f);

/* Asks m->rank what it called: the launcher tells with the verdict. Does not wait. */
void gci_control_ask_call(struct gci_control *ctl, const struct gci_ctl_call *m);

/* True, with *f filled, if the job has ended with a failure: by the launcher's word, or because the
 * launcher is gone. */
int gci_control_verdict(struct gci_control *ctl, struct gci_ctl_failure *f);

/* Since when nothing more had come from the launcher, as the thread has last seen; UINT64_MAX: it
 * does not look any more. A process that was stopped may have its word, but not have read it. */
uint64_t gci_control_looked_ns(const struct gci_control *ctl);

/* Asks a rank that has left whether it has begun the other side of a message that this rank waits
 * for. One that has not left yet does not hear of it: ask again. */
void gci_control_wait(struct gci_control *ctl, const struct gci_ctl_wait *w);

/* Takes what another rank has asked, 1, or 0: nothing. `wake` is called when something comes. */
int gci_control_asked(struct gci_control *ctl, struct gci_ctl_wait *w);

/* Takes a budget that the launcher has handed out since, the latest of each pair of clusters: 1, or
 * 0: there is none. `wake` is called when one comes. */
int gci_control_budget(struct gci_control *ctl, struct gci_ctl_budget *b);

/* Tells the launcher this rank's flags, of gcoll_comm_agree. Does not wait. */
void gci_control_agree(struct gci_control *ctl, uint32_t epoch, uint64_t flags);

/* Waits for its answer, up to timeout_ns: 1 with *m; 0, it is not here yet; or -1 with the reason
 * why none will come. `wake` is called when it comes. */
int gci_control_agreed(struct gci_control *ctl, uint64_t timeout_ns, struct gci_ctl_agree *m,
	struct gci_ctl_failure *why);

/* Tells the launcher that this rank goes on without those that are dead; and waits for who does, as
 * above. With that the verdict is forgotten: another epoch has begun. m->ranks is the caller's to
 * free. */
void gci_control_shrink(struct gci_control *ctl, uint32_t epoch);
int gci_control_survivors(struct gci_control *ctl, uint64_t timeout_ns, struct gci_ctl_survivors *m,
	struct gci_ctl_failure *why);

/* Says BYE. */
void gci_control_bye(struct gci_control *ctl);

/* True once all ranks have said BYE. `wake` is called then. */
int gci_control_all_gone(struct gci_control *ctl);

void gci_control_free(struct gci_control *ctl);

#endif
