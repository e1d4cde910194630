/* SPDX-License-Identifier: MIT */
#include "comm/control_client.h"

#include "base/mem.h"
#include "base/threads.h"
#include "comm/control_impl.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_BACKLOG  (256u << 10) /* of reports that the launcher does not read */
#define JOIN_SILENCE (30 * GCI_NS_PER_S)

int gci_control_connect(struct gci_control **out, const char *rendezvous, char ip[GCI_ADDRESS_TEXT],
	struct gci_error *e)
{
	struct gci_control *ctl = gci_calloc(1, sizeof(*ctl));
	int rc;

	*out = NULL;
	if (!ctl)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	pthread_mutex_init(&ctl->lock, NULL);
	gci_control_init_members(&ctl->members);
	snprintf(ctl->where, sizeof(ctl->where), "%s", rendezvous);
	ctl->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = gci_control_io_open(&ctl->io, rendezvous, ip, e);
	if (!rc && ctl->event_fd < 0)
		rc = gci_error_errno(e, "joining the job");
	if (rc)
		gci_control_free(ctl);
	else
		*out = ctl;
	return rc;
}

int gci_control_secure(struct gci_control *ctl, const uint8_t secret[GCI_SECRET_NBYTES],
	uint32_t rank, uint32_t size, struct gci_error *e)
{
	return gci_control_io_secure(&ctl->io, secret, rank, size, e);
}

int gci_control_was_heard(const struct gci_control *ctl)
{
	return ctl->io.heard;
}

int gci_control_survives(const struct gci_control *ctl)
{
	return ctl->survives;
}

/* Beats meanwhile: a connection that something on the way has forgotten shows when it is used. 1; 0,
 * nothing came; or GCI_CONTROL_*. */
static int wait_for_more(struct gci_control *ctl)
{
	const uint64_t end_ns = gci_now_ns() + JOIN_SILENCE;
	struct pollfd p = {.fd = ctl->io.fd, .events = POLLIN};
	int rc = 0;

	while (!rc && gci_now_ns() < end_ns) {
		if (!poll(&p, 1, 1000))
			gci_control_put_beat(ctl);
		rc = gci_control_receive(ctl, MSG_DONTWAIT);
		if (!rc)
			rc = gci_control_flush(ctl, MSG_DONTWAIT);
	}
	return rc;
}

static int wait_for_start(
	struct gci_control *ctl, struct gci_ctl_message *start, struct gci_error *e)
{
	struct gci_ctl_failure why;
	int rc;

	for (;;) {
		rc = gci_ctl_get(&ctl->in, GCI_CTL_MAX_MESSAGE, start, e);
		if (rc < 0)
			return rc;
		if (rc > 0 && start->type == GCI_CTL_START)
			return 0;
		if (rc > 0 && start->type == GCI_CTL_ABORT)
			return gci_error_set(e, start->failure.status, "%s", start->failure.text);
		if (rc > 0) {
			gci_ctl_message_free(start);
			continue;
		}
		rc = wait_for_more(ctl);
		if (rc > 0 || (rc == GCI_CONTROL_BROKEN &&
				      !gci_control_resume(ctl, gci_now_ns() + ctl->dead_ns, &why)))
			continue;
		return gci_error_set(
			e, GCOLL_ERR_ABORTED, "the launcher was lost before the job began");
	}
}

/* What a lost connection is made again with. */
static int begin_session(struct gci_control *ctl, struct gci_ctl_hello *hello,
	const uint8_t secret[GCI_SECRET_NBYTES], struct gci_error *e)
{
	ctl->rank = hello->rank;
	ctl->key = gci_secret_alloc(32);
	if (!ctl->key || RAND_bytes(ctl->session, sizeof(ctl->session)) != 1 ||
		gci_ctl_resume_key(secret, hello->rank, ctl->key))
		return gci_error_set(e, GCOLL_ERR_SYS, "no random numbers, or out of memory");
	memcpy(hello->session, ctl->session, sizeof(hello->session));
	return 0;
}

int gci_control_join(struct gci_control *ctl, const struct gci_ctl_hello *hello,
	const uint8_t secret[GCI_SECRET_NBYTES], void (*wake)(void *user),
	int (*called)(void *user, struct gci_ctl_call *m), void *user,
	struct gci_ctl_message *start, struct gci_error *e)
{
	struct gci_ctl_hello m = *hello;
	int rc = begin_session(ctl, &m, secret, e);

	if (rc)
		return rc;
	ctl->wake = wake;
	ctl->called = called;
	ctl->user = user;
	ctl->dead_ns = GCI_CTL_JOINING_NS;
	gci_ctl_put_hello(&ctl->out, &m);
	OPENSSL_cleanse(m.token, sizeof(m.token));
	if (ctl->out.failed)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (gci_control_flush(ctl, 0))
		return gci_error_errno(e, "joining the job");
	memset(start, 0, sizeof(*start));
	rc = wait_for_start(ctl, start, e);
	if (rc)
		return rc;
	ctl->beat_ns = start->start.beat_ns;
	ctl->dead_ns = start->start.dead_ns;
	ctl->survives = start->start.survives;
	rc = gci_thread_create(&ctl->thread, gci_control_beat, ctl);
	if (rc) {
		gci_ctl_message_free(start);
		errno = rc;
		return gci_error_errno(e, "starting the heartbeat thread");
	}
	ctl->running = 1;
	return 0;
}

void gci_control_nudge(struct gci_control *ctl)
{
	uint64_t one = 1;

	if (write(ctl->event_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the thread is awake anyway */
}

void gci_control_begin_say(struct gci_control *ctl)
{
	pthread_mutex_lock(&ctl->lock);
}

void gci_control_end_say(struct gci_control *ctl)
{
	pthread_mutex_unlock(&ctl->lock);
	gci_control_nudge(ctl);
}

void gci_control_fail(struct gci_control *ctl, const struct gci_ctl_failure *f)
{
	gci_control_begin_say(ctl);
	gci_ctl_put_failure(&ctl->out, GCI_CTL_FAIL, f);
	gci_control_end_say(ctl);
}

void gci_control_ask_call(struct gci_control *ctl, const struct gci_ctl_call *m)
{
	gci_control_put_call(ctl, GCI_CTL_ASK, m);
	gci_control_nudge(ctl);
}

void gci_control_on_watch(struct gci_control *ctl,
	void (*watch)(void *user, const struct gci_ctl_watch *m), void *user)
{
	ctl->watch = watch;
	ctl->watch_user = user;
}

void gci_control_report(struct gci_control *ctl, const struct gci_ctl_report *m)
{
	gci_control_begin_say(ctl);
	if (ctl->out.len < MAX_BACKLOG)
		gci_ctl_put_report(&ctl->out, m);
	gci_control_end_say(ctl);
}

void gci_control_flows(struct gci_control *ctl, const struct gci_ctl_flows *m)
{
	gci_control_begin_say(ctl);
	if (ctl->out.len < MAX_BACKLOG)
		gci_ctl_put_flows(&ctl->out, m);
	gci_control_end_say(ctl);
}

int gci_control_verdict(struct gci_control *ctl, struct gci_ctl_failure *f)
{
	int has;

	/* As a rule there is none; whoever makes progress asks each time. */
	if (!__atomic_load_n(&ctl->has_verdict, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&ctl->lock);
	has = ctl->has_verdict;
	if (has)
		*f = ctl->verdict;
	pthread_mutex_unlock(&ctl->lock);
	return has;
}

uint64_t gci_control_looked_ns(const struct gci_control *ctl)
{
	return __atomic_load_n(&ctl->looked_ns, __ATOMIC_ACQUIRE);
}

void gci_control_wait(struct gci_control *ctl, const struct gci_ctl_wait *w)
{
	gci_control_begin_say(ctl);
	gci_ctl_put_wait(&ctl->out, w);
	gci_control_end_say(ctl);
}

int gci_control_asked(struct gci_control *ctl, struct gci_ctl_wait *w)
{
	int has;

	pthread_mutex_lock(&ctl->lock);
	has = ctl->nasked > 0;
	if (has)
		*w = ctl->asked[--ctl->nasked];
	pthread_mutex_unlock(&ctl->lock);
	return has;
}

int gci_control_budget(struct gci_control *ctl, struct gci_ctl_budget *b)
{
	size_t n;

	/* As a rule there is none; whoever makes progress asks each time. */
	if (!__atomic_load_n(&ctl->nbudgets, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&ctl->lock);
	n = ctl->nbudgets;
	*b = ctl->budgets[n - 1];
	__atomic_store_n(&ctl->nbudgets, n - 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctl->lock);
	return 1;
}

void gci_control_bye(struct gci_control *ctl)
{
	gci_control_put_plain(ctl, GCI_CTL_BYE);
	gci_control_nudge(ctl);
}

int gci_control_all_gone(struct gci_control *ctl)
{
	int gone;

	pthread_mutex_lock(&ctl->lock);
	gone = ctl->all_gone;
	pthread_mutex_unlock(&ctl->lock);
	return gone;
}

void gci_control_free(struct gci_control *ctl)
{
	if (!ctl)
		return;
	if (ctl->running) {
		pthread_mutex_lock(&ctl->lock);
		ctl->quit = 1;
		pthread_mutex_unlock(&ctl->lock);
		gci_control_nudge(ctl);
		pthread_join(ctl->thread, NULL);
	}
	gci_control_io_close(&ctl->io);
	if (ctl->event_fd >= 0)
		close(ctl->event_fd);
	gci_buf_free(&ctl->in);
	gci_buf_free(&ctl->out);
	gci_buf_free(&ctl->wire);
	gci_ctl_link_free(&ctl->link);
	gci_secret_free(ctl->key);
	gci_free(ctl->budgets);
	gci_control_free_members(&ctl->members);
	pthread_mutex_destroy(&ctl->lock);
	gci_free(ctl);
}
