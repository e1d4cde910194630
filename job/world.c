/* SPDX-License-Identifier: MIT
 * gcoll_init and gcoll_finalize: a communicator of all ranks, from the launcher's environment; and
 * how those that live go on after a failure. */
#include "base/log.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "comm/message.h"
#include "comm/progress.h"
#include "comm/request.h"
#include "comm/run.h"
#include "flow/pacing.h"
#include "flow/telemetry.h"
#include "flow/warm.h"
#include "job/control_client.h"
#include "job/environment.h"
#include "transport/closed.h"
#include "transport/reach.h"
#include "transport/tcp.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A job's ranks from its start, or a failure, to the next one. */
struct gci_epoch {
	struct gci_epoch *before; /* NULL: this is the first */
	uint32_t number, size;
	struct gci_ctl_rank *ranks; /* [rank of the epoch] */
	uint32_t *first;            /* the same: its number in the job, that of the first epoch */
	const char **hosts;         /* the same */
	gcoll_comm *comm;
};

struct gci_world {
	struct gci_grid grid; /* owns the host names */
	struct gci_table table;
	struct gci_ctl_message start;
	struct gci_environment env; /* without the secret, which is there: */
	uint8_t *secret;            /* wiped when no other epoch can come */
	struct gcoll_options options;
	struct gci_control *ctl;
	struct gci_telemetry telemetry;
	struct gci_own own; /* where we listen */
	struct gci_reach reach;
	int listen_fd; /* -1: the transport's, which is the last */
	struct gci_epoch *epoch;
	uint32_t number; /* of the launcher's epoch: ahead of ours if that could not be made */
	int joining;     /* a thread is in gcoll_comm_agree or gcoll_comm_shrink */

	pthread_mutex_t lock; /* guards what follows */
	gcoll_comm *comm;     /* what the control thread may look at; NULL: nothing */
};

/* ---- The world of one epoch. */

#define MOST_TURNS 1000 /* of the engine, until all that was under way has ended */

static void epoch_free(struct gci_epoch *p)
{
	if (!p)
		return;
	gci_free(p->ranks);
	gci_free(p->first);
	gci_free(p->hosts);
	gci_free(p);
}

/* Which ranks it has, and where they are. */
static int make_ranks(struct gci_world *w, struct gci_epoch *p, const uint32_t *ranks)
{
	const struct gci_ctl_start *s = &w->start.start;
	uint32_t i;

	p->ranks = gci_calloc(p->size, sizeof(*p->ranks));
	p->hosts = gci_calloc(p->size, sizeof(*p->hosts));
	p->first = gci_calloc(p->size, sizeof(*p->first));
	if (!p->ranks || !p->hosts || !p->first)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < p->size; i++) {
		p->first[i] = ranks ? ranks[i] : i;
		p->ranks[i] = s->ranks[p->first[i]];
		p->hosts[i] = gci_grid_host(&w->grid, (int)p->ranks[i].host);
	}
	return 0;
}

/* Ranks at loopback addresses are on one machine, by whatever names. */
static int is_one_host(const struct gci_epoch *p)
{
	uint32_t r;

	for (r = 0; r < p->size; r++)
		if (!gci_reach_is_loopback(&p->ranks[r].reach))
			return 0;
	return 1;
}

static int make_topo(struct gci_world *w, const struct gci_epoch *p, struct gci_topo *topo)
{
	int *host = gci_calloc(p->size, sizeof(*host)), rc;
	uint32_t r;

	if (!host)
		return GCOLL_ERR_NOMEM;
	for (r = 0; r < p->size; r++)
		host[r] = (int)p->ranks[r].host;
	rc = gci_topo_create(topo, &w->grid, host, (int)p->size);
	gci_free(host);
	if (!rc && is_one_host(p)) {
		topo->one_host = 1;
		topo->per_host = topo->nranks;
	}
	return rc;
}

static unsigned lanes(const struct gci_world *w, int a, int b)
{
	const struct gci_ctl_rank *ranks = w->epoch->ranks;

	return gci_reach_lanes(&ranks[a < b ? a : b].reach, &ranks[a < b ? b : a].reach);
}

static const struct gci_launcher_ops launcher = {.fail = gci_control_fail,
	.ask_call = gci_control_ask_call,
	.verdict = gci_control_verdict,
	.looked_ns = gci_control_looked_ns,
	.all_gone = gci_control_all_gone,
	.budget = gci_control_budget,
	.survives = gci_control_survives,
	.wait = gci_control_wait,
	.report = gci_control_report,
	.flows = gci_control_flows};

/* What holds for the first epoch. */
static int set_up(struct gci_world *w, struct gci_settings *s, struct gci_error *e)
{
	const char *warm = getenv("GRIDCOLL_WARM");
	int when = warm && *warm ? gci_warm_parse(warm) : GCI_WARM_ON;

	if (when < 0)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "GRIDCOLL_WARM=%s, expected on, now or off", warm);
	s->warm = (enum gci_warm_when)when;
	s->pace = w->env.pace;
	s->data_path = w->env.data_path;
	s->security = w->env.security;
	snprintf(s->congestion, sizeof(s->congestion), "%s", w->env.congestion);
	return 0;
}

static void inherit(gcoll_comm *c, const gcoll_comm *before)
{
	c->engine->settings = before->engine->settings;
	gci_comm_inherit(c, before);
}

static int make_comm(struct gci_world *w, struct gci_epoch *p, int rank, struct gci_error *e)
{
	struct gci_topo topo = {0};
	int rc = make_topo(w, p, &topo);

	if (!rc)
		rc = gci_comm_create(&p->comm, rank, &topo, p->hosts);
	gci_topo_free(&topo);
	if (rc)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	p->comm->engine->job = (struct gci_engine_job){.world = w,
		.grid = &w->grid,
		.table = w->start.start.table && *w->start.start.table ? &w->table : NULL,
		.dead_ns = w->start.start.dead_ns,
		.lanes = lanes,
		.ctl = w->ctl,
		.launcher = &launcher};
	if (p->before)
		inherit(p->comm, p->before->comm);
	else
		return set_up(w, &p->comm->engine->settings, e);
	return 0;
}

/* The port stays the same in all epochs, and so the socket is kept where another may come. */
static int take_listener(struct gci_world *w, int *fd, struct gci_error *e)
{
	*fd = w->listen_fd;
	if (w->start.start.survives)
		*fd = fcntl(w->listen_fd, F_DUPFD_CLOEXEC, 0);
	else
		w->listen_fd = -1;
	return *fd < 0 ? gci_error_errno(e, "keeping the port open") : 0;
}

/* Of the cluster that lets nobody in, or 0. */
static uint32_t firewall_of(const struct gci_world *w, int host)
{
	int c = gci_grid_cluster_of(&w->grid, host);

	return w->grid.clusters[c].outward ? (uint32_t)c + 1 : 0;
}

static int make_transport(struct gci_world *w, struct gci_epoch *p, struct gci_error *e)
{
	struct gci_engine *engine = p->comm->engine;
	struct gci_reach *reach = gci_calloc(p->size, sizeof(*reach));
	uint32_t *behind = gci_calloc(p->size, sizeof(*behind));
	struct gci_tp_config config = gci_comm_tp_config(engine);
	struct gci_tcp_config tcp = {.reach = reach, .own = &w->own};
	uint32_t r;
	int rc;

	if (!reach || !behind) {
		gci_free(reach);
		gci_free(behind);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	}
	for (r = 0; r < p->size; r++) {
		reach[r] = p->ranks[r].reach;
		behind[r] = firewall_of(w, (int)p->ranks[r].host);
		if (behind[r])
			tcp.behind = behind;
	}
	config.epoch = p->number;
	memcpy(tcp.secret, w->secret, sizeof(tcp.secret));
	tcp.connect_timeout_ns = gci_engine_patience(engine, GCI_TCP_CONNECT_NS);
	tcp.stranger_ns = gci_engine_patience(engine, GCI_TCP_STRANGER_NS);
	tcp.loop = w->options.uv_loop;
	tcp.unref = 1;
	rc = take_listener(w, &tcp.listen_fd, e);
	if (!rc)
		rc = gci_tcp_create(&engine->tp, &config, &tcp, e);
	explicit_bzero(tcp.secret, sizeof(tcp.secret));
	gci_free(reach);
	gci_free(behind);
	return rc;
}

static int start_progress(struct gci_world *w, struct gci_engine *engine, struct gci_error *e)
{
	if (w->options.progress_thread)
		return gci_thread_start(engine, e);
	if (w->options.uv_loop ? gci_loop_open(engine, w->options.uv_loop) : gci_warm_open(engine))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int start_recording(struct gci_epoch *p, struct gci_error *e)
{
	const char *path = getenv("GRIDCOLL_RECORD");
	struct gci_engine *engine = p->comm->engine;

	if (p->before) { /* rank 0 keeps its number */
		engine->recording = p->before->comm->engine->recording;
		p->before->comm->engine->recording = (struct gci_recording){.path = NULL};
		return 0;
	}
	if (path && *path && gci_recording_set(engine, path))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int my_rank(const struct gci_world *w, const uint32_t *ranks, uint32_t n)
{
	uint32_t i = 0;

	if (!ranks)
		return w->env.rank;
	while (i < n && ranks[i] != (uint32_t)w->env.rank)
		i++;
	return i < n ? (int)i : -1;
}

static int check_ranks(const struct gci_world *w, const uint32_t *ranks, uint32_t n)
{
	return my_rank(w, ranks, n) >= 0 && (!ranks || ranks[n - 1] < w->start.start.size);
}

static void give_up(struct gci_epoch *p)
{
	if (p->comm) {
		gci_warm_close(p->comm->engine);
		gci_thread_stop(p->comm->engine, NULL);
		gci_engine_free(p->comm->engine);
	}
	epoch_free(p);
}

/* Makes the world of the next epoch, of the job's ranks ranks[0 .. n - 1] (as START has them; NULL:
 * all), with the settings of the one before. 0, or GCOLL_ERR_* with the reason in `e`, and nothing
 * has changed. */
static int gci_epoch_open(struct gci_world *w, uint32_t number, const uint32_t *ranks, uint32_t n,
	struct gci_error *e)
{
	struct gci_epoch *p = gci_calloc(1, sizeof(*p)), *before = w->epoch;
	int rc = p ? 0 : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");

	if (rc)
		return rc;
	*p = (struct gci_epoch){.before = before, .number = number, .size = n};
	if (!check_ranks(w, ranks, n))
		rc = gci_error_set(e, GCOLL_ERR_PROTO, "the launcher's survivors make no sense");
	if (!rc && make_ranks(w, p, ranks))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	w->epoch = p;
	if (!rc)
		rc = make_comm(w, p, my_rank(w, ranks, n), e);
	if (!rc)
		rc = make_transport(w, p, e);
	if (!rc)
		rc = gci_pacing_open(p->comm->engine, p->comm->engine->settings.pace, &w->own,
			p->ranks, before != NULL, e);
	if (!rc)
		rc = start_progress(w, p->comm->engine, e);
	if (!rc && p->comm->engine->settings.warm == GCI_WARM_NOW)
		gci_warm_begin(p->comm->engine);
	if (!rc)
		rc = start_recording(p, e);
	if (rc) {
		give_up(p);
		w->epoch = before;
		return rc;
	}
	pthread_mutex_lock(&w->lock);
	w->comm = p->comm;
	pthread_mutex_unlock(&w->lock);
	gci_telemetry_open(&w->telemetry, p->comm->engine);
	return 0;
}

/* ---- its end */

/* All requests end with the failure, and callbacks are told. */
static void settle(struct gci_engine *e)
{
	struct gci_list *it;
	int i;

	for (i = 0; (e->reqs.active || !gci_list_empty(&e->reqs.untold)) && i < MOST_TURNS; i++)
		gci_engine_progress(e, 0);
	gci_list_each (it, &e->reqs.all) {
		gcoll_req *r = gci_container(it, gcoll_req, link);

		if (r->active && !r->over)
			gci_req_end(r, e->failure.status);
	}
	gci_done_tell(e);
}

static int is_idle(const struct gci_engine *e)
{
	const struct gci_list *it;

	gci_list_each (it, &e->comms.all)
		if (!gci_list_empty(&gci_container(it, gcoll_comm, link)->ops))
			return 0;
	return 1;
}

/* After its failure: ends what is under way, tells callbacks, and gives connections and memory
 * back. The communicators and requests stay, until the world is freed. */
static void gci_epoch_close(struct gci_world *w)
{
	struct gci_engine *e = w->epoch->comm->engine;

	pthread_mutex_lock(&w->lock);
	w->comm = NULL;
	pthread_mutex_unlock(&w->lock);
	gci_telemetry_end(&w->telemetry);
	gci_warm_close(e);
	if (!gci_thread_stop(e, settle))
		settle(e);
	e->job.ctl = NULL; /* what it says from now on is of the next epoch */
	gci_tp_free(e->tp);
	e->tp = gci_tp_closed();
	gci_loop_close(e);
	gci_pacing_close(e);
	if (!is_idle(e))
		return;
	gci_sched_cache_forget(&e->cache, NULL);
	gci_scratch_free(&e->scratch);
}

/* All epochs. */
static void gci_epochs_free(struct gci_world *w)
{
	struct gci_epoch *p, *before;

	for (p = w->epoch; p; p = before) {
		before = p->before;
		p->comm->engine->job.ctl = NULL;
		gci_engine_free(p->comm->engine);
		epoch_free(p);
	}
	w->epoch = NULL;
}

/* ---- After a failure: what the ranks that live agree upon, and how they go on. The launcher is where
 * they meet (launcher/members.h); the control connection does not depend on any other rank. */

#define LOOK_EVERY GCI_NS_PER_S

/* The world of the present epoch, and nobody else at this. Takes hold of it. */
static int enter(gcoll_comm *c, const char *what, struct gci_world **out)
{
	struct gci_engine *e = c->engine;
	int rc = gci_enter(e);

	if (rc)
		return rc;
	if (c != e->world || !e->job.world)
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%s of a communicator that was made from the world, expected the world",
			what);
	if (!rc)
		rc = gci_may_wait(e);
	if (!rc && c != e->job.world->epoch->comm)
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%s of a world that was shrunk, expected the new one", what);
	if (!rc && __atomic_exchange_n(&e->job.world->joining, 1, __ATOMIC_ACQ_REL))
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"another thread is in gcoll_comm_agree or gcoll_comm_shrink, "
			"expected one at a time");
	gci_unlock(e);
	if (rc)
		gci_end_call(e);
	*out = e->job.world;
	return rc;
}

static void leave_out(gcoll_comm *c)
{
	__atomic_store_n(&c->engine->job.world->joining, 0, __ATOMIC_RELEASE);
	gci_end_call(c->engine);
}

/* ---- agree */

/* Others may need this rank's progress for what is under way. */
static int await_answer(struct gci_world *w, struct gci_ctl_agree *m, struct gci_ctl_failure *why)
{
	struct gci_engine *e = w->epoch->comm->engine;
	uint64_t wait_ns;
	int rc;

	for (;;) {
		gci_lock(e);
		/* A thread of ours makes progress by itself; after a failure there is none. */
		wait_ns = e->callers.thread || gci_engine_check(e) ? LOOK_EVERY : 0;
		if (!wait_ns && !(rc = gci_control_agreed(w->ctl, 0, m, why)))
			gci_engine_progress(e, LOOK_EVERY);
		gci_unlock(e);
		if (wait_ns)
			rc = gci_control_agreed(w->ctl, wait_ns, m, why);
		if (rc)
			return rc;
	}
}

static int agree(struct gci_world *w, uint64_t *flags)
{
	struct gci_ctl_failure why;
	struct gci_ctl_agree m;

	gci_control_agree(w->ctl, w->number, *flags);
	if (await_answer(w, &m, &why) < 0)
		return gci_comm_error(why.status, "%s", why.text);
	if (m.status != GCOLL_ERR_MISMATCH)
		*flags = m.flags;
	return m.status ? gci_comm_error(m.status, "%s", m.text) : 0;
}

int gcoll_comm_agree(gcoll_comm *c, uint64_t *flags)
{
	struct gci_world *w = NULL;
	int rc;

	if (!c || !flags)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", c ? "flags" : "the communicator");
	rc = enter(c, "gcoll_comm_agree", &w);
	if (rc)
		return rc;
	rc = agree(w, flags);
	leave_out(c);
	return rc;
}

/* ---- shrink */

/* What there must be before others are told. */
static int may_shrink(const struct gci_world *w)
{
	struct gci_engine *e = w->epoch->comm->engine;
	int rc = 0;

	gci_lock(e);
	if (!w->start.start.survives)
		rc = gci_comm_error(GCOLL_ERR_UNSUPPORTED,
			"gcoll_comm_shrink: this job ends with its first failure, expected "
			"gridcoll-run --survive");
	else if (!gci_engine_check(e))
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"gcoll_comm_shrink: nothing has failed, expected an error of a call "
			"before, or gcoll_comm_abort");
	else
		gci_engine_await_verdict(e, GCI_NEVER);
	gci_unlock(e);
	return rc;
}

/* The others, too, have to begin again. */
static int tell_failure(struct gci_world *w, const struct gci_ctl_survivors *s, struct gci_error *e)
{
	struct gci_ctl_failure f = {.status = e->status, .rank = -1};
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->ranks[i] == (uint32_t)w->env.rank)
			f.rank = (int32_t)i;
	snprintf(f.text, sizeof(f.text), "%.*s", (int)sizeof(f.text) - 1, e->text);
	gci_control_fail(w->ctl, &f);
	return gci_comm_error(e->status, "%s", e->text);
}

/* The old connections are closed before the launcher is told, and so before there are new ones. */
static int shrink(struct gci_world *w, gcoll_comm **out)
{
	struct gci_ctl_survivors s;
	struct gci_ctl_failure f;
	struct gci_error e = {0};
	int rc = may_shrink(w);

	if (rc)
		return rc;
	if (w->epoch->comm->engine->job.ctl) /* not closed before, in vain */
		gci_epoch_close(w);
	gci_control_shrink(w->ctl, w->number);
	if (gci_control_survivors(w->ctl, GCI_NEVER, &s, &f) < 0)
		return gci_comm_error(f.status, "%s", f.text);
	w->number = s.epoch;
	if (gci_epoch_open(w, s.epoch, s.ranks, s.n, &e))
		rc = tell_failure(w, &s, &e);
	else
		*out = w->epoch->comm;
	gci_free(s.ranks);
	return rc;
}

int gcoll_comm_shrink(gcoll_comm *c, gcoll_comm **out)
{
	struct gci_world *w = NULL;
	int rc;

	if (!c || !out)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", c ? "out" : "the communicator");
	rc = enter(c, "gcoll_comm_shrink", &w);
	if (rc)
		return rc;
	rc = shrink(w, out);
	leave_out(c);
	return rc;
}

/* ---- who is who */

/* The world in which `c` was made. */
static const struct gci_epoch *epoch_of(const gcoll_comm *c)
{
	const struct gci_epoch *p = c->engine->job.world ? c->engine->job.world->epoch : NULL;

	while (p && p->comm->engine != c->engine)
		p = p->before;
	return p;
}

/* What a rank keeps through all worlds of a job. */
static uint32_t first_number(const gcoll_comm *c, const struct gci_epoch *p, int rank)
{
	uint32_t in_world = (uint32_t)gci_comm_world_rank(c, rank);

	return p ? p->first[in_world] : in_world;
}

int gcoll_comm_translate(const gcoll_comm *from, int rank, const gcoll_comm *to)
{
	const struct gci_epoch *p, *q;
	uint32_t first;
	int r;

	if (!from || !to || rank < 0 || rank >= from->size)
		return -1;
	p = epoch_of(from);
	q = epoch_of(to);
	first = first_number(from, p, rank);
	for (r = 0; r < to->size; r++)
		if (first_number(to, q, r) == first)
			return r;
	return -1;
}

int gcoll_failed_rank(gcoll_comm *c)
{
	int rc = c ? gci_enter(c->engine)
		   : gci_comm_error(GCOLL_ERR_INVAL, "the communicator is NULL"),
	    rank;

	if (rc)
		return rc;
	gci_engine_check(c->engine);
	if (c->engine->failure.status && c->engine->job.ctl)
		gci_engine_await_verdict(c->engine, GCI_NEVER);
	rank = c->engine->failure.status ? c->engine->failure.rank : -1;
	gci_leave(c->engine);
	return rank < 0 ? -1 : gcoll_comm_translate(c->engine->world, rank, c);
}

/* ---- gcoll_init and gcoll_finalize. */

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

	while (!e->failure.status && !gci_control_all_gone(e->job.ctl) &&
		!gci_control_verdict(e->job.ctl, &f)) {
		/* A transport that has failed, since a peer was gone, waits for nothing. */
		if (gci_tp_progress(e->tp, GCI_NS_PER_S))
			gci_sleep_ns(10 * GCI_NS_PER_MS);
		gci_held_release(&e->held, 0, 1); /* nobody looks at the time any more */
		gci_engine_check_parting(e);
		while (!e->failure.status && gci_control_asked(e->job.ctl, &w))
			gci_message_asked(e, &w);
	}
}

static void leave(struct gci_engine *e)
{
	struct gci_ctl_failure f;

	e->finalizing = 1;
	gci_telemetry_end(&e->job.world->telemetry);
	if (e->failure.status)
		return;
	gci_control_bye(e->job.ctl);
	await_others(e);
	if (!e->failure.status && !gci_control_verdict(e->job.ctl, &f))
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
			gci_log(GCI_LOG_WARN,
				"gcoll_finalize did nothing: %s; the communicator stays open",
				gcoll_last_error());
		return;
	}
	if (c != e->world || !e->job.world) {
		rc = gci_comm_error(GCOLL_ERR_INVAL, "gcoll_finalize, expected the world");
	} else if (c != e->job.world->epoch->comm) {
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"gcoll_finalize of a world that was shrunk, expected the new one");
	} else {
		gci_lock(e);
		rc = gci_may_wait(e);
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
	world_free(e->job.world);
}
