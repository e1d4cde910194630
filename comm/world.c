/* SPDX-License-Identifier: MIT
 * gcoll_init and gcoll_finalize: a communicator of all ranks, from the launcher's environment. */
#include "base/log.h"
#include "base/mem.h"
#include "comm/message.h"
#include "comm/request.h"
#include "comm/thread.h"
#include "comm/world_impl.h"
#include "transport/tcp.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_WAIT   (2 * GCI_NS_PER_S)
#define FIRST_PAUSE (50 * GCI_NS_PER_MS) /* before the launcher is called again */
#define LAST_PAUSE  (800 * GCI_NS_PER_MS)
#define SHORT       (10 * GCI_NS_PER_S)
#define UP_PAUSE    (250 * GCI_NS_PER_MS)
#define TOLD_PART   6 /* of the patience with a service that is not up, before the user is told */

static void on_verdict(void *user)
{
	struct gci_world *w = user;

	/* Before the transport is there, nobody waits in it. */
	pthread_mutex_lock(&w->lock);
	if (w->comm)
		gci_tp_wake(w->comm->engine->tp);
	pthread_mutex_unlock(&w->lock);
}

/* Another rank asks what this one called. From the control thread. */
static int on_call_asked(void *user, struct gci_ctl_call *m)
{
	struct gci_world *w = user;
	struct gci_sign sign;
	int found;

	pthread_mutex_lock(&w->lock);
	found = w->comm && gci_calls_find(&w->comm->engine->calls, m->comm, m->op, &sign);
	pthread_mutex_unlock(&w->lock);
	if (found)
		gci_sign_print(&sign, m->text, sizeof(m->text));
	return found;
}

static void on_watch(void *user, const struct gci_ctl_watch *m)
{
	struct gci_world *w = user;

	gci_telemetry_watch(&w->telemetry, m);
}

/* Whoever serves the job does not tell strangers what is wrong with them. */
static void suggest(const struct gci_environment *env, struct gci_error *e)
{
	const char *security = getenv("GRIDCOLL_SECURITY");
	struct gci_error last = *e;

	if (!env->join_ns) /* gridcoll-run itself has told us all */
		return;
	gci_error_clear(e);
	gci_error_set(e, GCOLL_ERR_PROTO,
		"%.240s; expected the same secret here as there, and GRIDCOLL_SECURITY (%.32s) as "
		"--security there",
		last.text, security ? security : "not set");
}

static int call_launcher(struct gci_world *w, struct gci_error *e)
{
	const struct gci_environment *env = &w->env;
	struct gci_ctl_hello hello = {.version = GCI_CTL_VERSION,
		.rank = (uint32_t)env->rank,
		.size = (uint32_t)env->size,
		.schedules = gci_build.schedules,
		.big_endian = gci_build.big_endian,
		.reach = w->reach};
	char ip[GCI_ADDRESS_TEXT];
	int rc = gci_control_connect(&w->ctl, env->rendezvous, ip, e);

	snprintf(hello.release, sizeof(hello.release), "%s", gci_build.release);
	memcpy(hello.host, env->host, sizeof(hello.host));
	memcpy(hello.cluster, env->cluster, sizeof(hello.cluster));
	if (!rc && env->control_tls) {
		rc = gci_control_secure(w->ctl, w->secret, hello.rank,
			hello.size ? hello.size : GCI_CTL_MAX_RANKS, e);
		if (rc == GCOLL_ERR_PROTO && gci_control_was_heard(w->ctl))
			suggest(env, e);
	}
	if (!rc && w->listen_fd < 0)
		rc = gci_own_choose(&w->own, getenv("GRIDCOLL_INTERFACES"), ip, e);
	/* gridcoll-run has taken the first port that it could. */
	if (!rc && w->listen_fd < 0)
		rc = gci_tcp_listen(w->own.at, w->own.n, &env->ports, (uint32_t)env->rank + 1,
			&w->listen_fd, &hello.reach, e);
	w->reach = hello.reach;
	if (!rc && gci_ctl_token(w->secret, hello.rank, hello.token))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!rc)
		gci_control_on_watch(w->ctl, on_watch, w);
	if (!rc)
		rc = gci_control_join(
			w->ctl, &hello, w->secret, on_verdict, on_call_asked, w, &w->start, e);
	explicit_bzero(hello.token, sizeof(hello.token));
	return rc;
}

/* What to look at when nothing answers. */
static void suggest_where(uint64_t patience_ns, struct gci_error *e)
{
	struct gci_error last = *e;

	gci_error_clear(e);
	if (patience_ns)
		gci_error_set(e, last.status,
			"%.300s, in %g s (GRIDCOLL_JOIN_TIMEOUT); is GRIDCOLL_RENDEZVOUS where "
			"gridcoll-run serves this job?",
			last.text, (double)patience_ns / (double)GCI_NS_PER_S);
	else
		gci_error_set(e, last.status,
			"%.300s; gridcoll-run --address says by which other address it is reached",
			last.text);
}

/* Where another manager starts the ranks, whoever serves the job may come up after them. */
static int call_until_up(struct gci_world *w, struct gci_error *e)
{
	const uint64_t patience_ns = w->env.join_ns, begin_ns = gci_now_ns();
	int rc = call_launcher(w, e), told = 0;

	while (rc == GCOLL_ERR_SYS && !w->ctl && gci_now_ns() - begin_ns < patience_ns) {
		gci_sleep_ns(UP_PAUSE);
		if (!told && gci_now_ns() - begin_ns >= patience_ns / TOLD_PART) {
			told = 1;
			gci_log(GCI_LOG_WARN, "%s; trying for %g s in all (GRIDCOLL_JOIN_TIMEOUT)",
				e->text, (double)patience_ns / (double)GCI_NS_PER_S);
		}
		gci_error_clear(e);
		rc = call_launcher(w, e);
	}
	if (rc == GCOLL_ERR_SYS && !w->ctl)
		suggest_where(patience_ns, e);
	return rc;
}

/* A launcher that strangers press hard, or that a busy machine let wait for our hello, may hang up
 * on us before it has heard us: it is called again. Not one that was silent, nor one that has said
 * why. */
static int join(struct gci_world *w, struct gci_error *e)
{
	uint64_t begin = gci_now_ns(), pause = FIRST_PAUSE;
	int rc = call_until_up(w, e);

	while (rc && w->ctl && !gci_control_was_heard(w->ctl) && pause <= LAST_PAUSE &&
		gci_now_ns() - begin < SHORT) {
		gci_control_free(w->ctl);
		w->ctl = NULL;
		gci_sleep_ns(pause);
		pause *= 2;
		memset(e, 0, sizeof(*e));
		begin = gci_now_ns();
		rc = call_launcher(w, e);
	}
	if (rc && w->ctl && !gci_control_was_heard(w->ctl))
		suggest(&w->env, e);
	if (rc)
		return rc;
	if (!w->env.size)
		w->env.size = (int)w->start.start.size;
	if (w->start.start.size == (uint32_t)w->env.size)
		return 0;
	return gci_error_set(e, GCOLL_ERR_PROTO, "the launcher started %u ranks, not %d",
		w->start.start.size, w->env.size);
}

static int read_grid(struct gci_world *w, struct gci_error *e)
{
	const struct gci_ctl_start *s = &w->start.start;
	uint32_t r;
	int rc = gci_grid_parse(&w->grid, s->grid, strlen(s->grid), "grid", e);

	for (r = 0; !rc && r < s->size; r++)
		if (s->ranks[r].host >= (uint32_t)w->grid.nhosts)
			rc = gci_error_set(e, GCOLL_ERR_PROTO,
				"rank %u is on host %u, which the grid does not have", r,
				s->ranks[r].host);
	return rc;
}

/* The launcher has read it, and checked it against the grid; what we read must mean the same. */
static int read_table(struct gci_world *w, struct gci_error *e)
{
	const struct gci_ctl_start *s = &w->start.start;
	int rc;

	if (!s->table || !*s->table)
		return 0;
	rc = gci_table_parse(&w->table, s->table, strlen(s->table), "the launcher's table",
		gci_grid_digest(&w->grid), e);
	if (!rc && gci_table_digest(&w->table) != s->table_digest)
		rc = gci_error_set(e, GCOLL_ERR_PROTO,
			"the launcher's table of decisions means something else here, expected the "
			"same release of gridcoll");
	if (!rc)
		gci_table_dilate(&w->table, w->grid.dilation);
	return rc;
}

static void world_free(struct gci_world *w)
{
	/* The threads first: they look at the transport. */
	gci_telemetry_end(&w->telemetry);
	gci_control_free(w->ctl);
	gci_epochs_free(w);
	gci_ctl_message_free(&w->start);
	gci_table_free(&w->table);
	gci_grid_free(&w->grid);
	if (w->listen_fd >= 0)
		close(w->listen_fd);
	gci_secret_free(w->secret);
	pthread_mutex_destroy(&w->lock);
	gci_free(w);
}

static int build(struct gci_world *w, struct gci_error *e)
{
	int rc = join(w, e);

	if (!rc)
		rc = read_grid(w, e);
	if (!rc)
		rc = read_table(w, e);
	if (!rc)
		rc = gci_epoch_open(w, w->start.start.epoch, NULL, w->start.start.size, e);
	w->number = w->start.start.epoch;
	if (!w->start.start.survives) {
		gci_secret_free(w->secret);
		w->secret = NULL;
	}
	return rc;
}

/* One world per process: the job's secret can be read once, and ranks count once. */
static int joined;

int gcoll_init(gcoll_comm **world)
{
	return gcoll_init_options(world, NULL);
}

static struct gci_world *world_create(const struct gcoll_options *options)
{
	struct gci_world *w = gci_calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->listen_fd = -1;
	if (options)
		w->options = *options;
	pthread_mutex_init(&w->lock, NULL);
	gci_telemetry_init(&w->telemetry);
	return w;
}

/* From here on there is something that a child by fork must not have. */
static int take_secret(struct gci_world *w, struct gci_error *e)
{
	w->secret = gci_secret_alloc(sizeof(w->env.secret));
	if (w->secret)
		memcpy(w->secret, w->env.secret, sizeof(w->env.secret));
	OPENSSL_cleanse(w->env.secret, sizeof(w->env.secret));
	if (w->secret && !gci_fork_watch())
		return 0;
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

int gcoll_init_options(gcoll_comm **world, const struct gcoll_options *options)
{
	struct gci_error e = {0};
	struct gci_world *w;
	int rc;

	if (!world)
		return gci_comm_error(GCOLL_ERR_INVAL, "world is NULL");
	*world = NULL;
	if (options && options->progress_thread && options->uv_loop)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"progress_thread and uv_loop, expected one of them at most");
	if (gci_fork_is_child())
		return gci_forked();
	if (__atomic_load_n(&joined, __ATOMIC_ACQUIRE))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"this process has called gcoll_init before; it can join its job once");
	gci_log_init(NULL);
	w = world_create(options);
	if (!w)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	rc = gci_environment_read(&w->env, &e);
	if (!rc) {
		__atomic_store_n(&joined, 1, __ATOMIC_RELEASE);
		rc = take_secret(w, &e);
	}
	if (!rc)
		rc = build(w, &e);
	if (rc) {
		world_free(w);
		return gci_comm_error(rc, "%s", e.text);
	}
	*world = w->comm;
	return 0;
}

/* Waits until all ranks are here. Who waits for a message that this one will never begin must not
 * wait for ever: it is a failure, as an operation is that one rank does not call. */
static void await_others(struct gci_engine *e)
{
	struct gci_ctl_failure f;
	struct gci_ctl_wait w;

	while (!e->failure.status && !gci_control_all_gone(e->ctl) &&
		!gci_control_verdict(e->ctl, &f)) {
		/* A transport that has failed, since a peer was gone, waits for nothing. */
		if (gci_tp_progress(e->tp, GCI_NS_PER_S))
			gci_sleep_ns(10 * GCI_NS_PER_MS);
		gci_engine_check_parting(e);
		while (!e->failure.status && gci_control_asked(e->ctl, &w))
			gci_message_asked(e, &w);
	}
}

static void leave(struct gci_engine *e)
{
	struct gci_ctl_failure f;

	e->finalizing = 1;
	gci_telemetry_end(&e->job->telemetry);
	if (e->failure.status)
		return;
	gci_control_bye(e->ctl);
	await_others(e);
	if (!e->failure.status && !gci_control_verdict(e->ctl, &f))
		gci_tp_stop(e->tp, gci_engine_patience(e, STOP_WAIT));
}

void gcoll_finalize(gcoll_comm *c)
{
	struct gci_engine *e;
	int rc;

	if (!c)
		return;
	e = c->engine;
	rc = gci_begin_call(e);
	if (rc) {
		if (rc != GCOLL_ERR_FORKED)
			gci_log(GCI_LOG_WARN, "gcoll_finalize did nothing: %s", gcoll_last_error());
		return;
	}
	if (c != e->world || !e->job) {
		rc = gci_comm_error(GCOLL_ERR_INVAL, "gcoll_finalize, expected the world");
	} else if (c != e->job->epoch->comm) {
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"gcoll_finalize of a world that was shrunk, expected the new one");
	} else {
		gci_lock(e);
		rc = gci_req_may_wait(e);
		gci_unlock(e);
	}
	if (rc) {
		gci_end_call(e);
		return;
	}
	gci_warm_close(e);
	if (!gci_thread_stop(e, leave))
		leave(e);
	gci_recording_end(e);
	world_free(e->job);
}
