/* SPDX-License-Identifier: MIT
 * gcoll_init and gcoll_finalize: a communicator of all ranks, from the launcher's environment. */
#include "base/log.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "comm/done.h"
#include "comm/environment.h"
#include "comm/loop.h"
#include "comm/message.h"
#include "comm/pacing.h"
#include "comm/request.h"
#include "comm/telemetry.h"
#include "comm/thread.h"
#include "transport/own.h"
#include "transport/tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_WAIT   (2 * GCI_NS_PER_S)
#define FIRST_PAUSE (50 * GCI_NS_PER_MS) /* before the launcher is called again */
#define LAST_PAUSE  (800 * GCI_NS_PER_MS)
#define SHORT       (10 * GCI_NS_PER_S)

struct gci_world {
	struct gci_grid grid; /* owns the host names */
	struct gci_table table;
	struct gci_ctl_message start;
	const char **hosts;
	struct gci_control *ctl;
	struct gci_telemetry telemetry;
	gcoll_comm *comm;
	const struct gcoll_options *options;
	struct gci_own own; /* where we listen */
	struct gci_reach reach;
	int listen_fd;
};

static void on_verdict(void *user)
{
	struct gci_world *w = user;

	/* Before the transport is there, nobody waits in it. */
	if (__atomic_load_n(&w->comm, __ATOMIC_ACQUIRE))
		gci_tp_wake(w->comm->engine->tp);
}

/* Another rank asks what this one called. From the control thread. */
static int on_call_asked(void *user, struct gci_ctl_call *m)
{
	struct gci_world *w = user;
	gcoll_comm *c = __atomic_load_n(&w->comm, __ATOMIC_ACQUIRE);
	struct gci_sign sign;

	if (!c || !gci_calls_find(&c->engine->calls, m->comm, m->op, &sign))
		return 0;
	gci_sign_print(&sign, m->text, sizeof(m->text));
	return 1;
}

static void on_watch(void *user, const struct gci_ctl_watch *m)
{
	struct gci_world *w = user;

	gci_telemetry_watch(&w->telemetry, m);
}

static int call_launcher(
	struct gci_world *w, const struct gci_environment *env, struct gci_error *e)
{
	struct gci_ctl_hello hello = {
		.version = GCI_CTL_VERSION, .rank = (uint32_t)env->rank, .reach = w->reach};
	char ip[GCI_ADDRESS_TEXT];
	int rc = gci_control_connect(&w->ctl, env->rendezvous, ip, e);

	if (!rc && env->control_tls)
		rc = gci_control_secure(w->ctl, env->secret, hello.rank, (uint32_t)env->size, e);
	if (!rc && w->listen_fd < 0)
		rc = gci_own_choose(&w->own, getenv("GRIDCOLL_INTERFACES"), ip, e);
	/* gridcoll-run has taken the first port that it could. */
	if (!rc && w->listen_fd < 0)
		rc = gci_tcp_listen(w->own.at, w->own.n, &env->ports, (uint32_t)env->rank + 1,
			&w->listen_fd, &hello.reach, e);
	w->reach = hello.reach;
	if (!rc && gci_ctl_token(env->secret, hello.rank, hello.token))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!rc)
		gci_control_on_watch(w->ctl, on_watch, w);
	if (!rc)
		rc = gci_control_join(w->ctl, &hello, on_verdict, on_call_asked, w, &w->start, e);
	explicit_bzero(hello.token, sizeof(hello.token));
	return rc;
}

/* A launcher that strangers press hard may hang up on us before it has heard us: it is called
 * again. Not one that was silent, nor one that has said why. */
static int join(struct gci_world *w, const struct gci_environment *env, struct gci_error *e)
{
	uint64_t begin = gci_now_ns(), pause = FIRST_PAUSE;
	int rc = call_launcher(w, env, e);

	while (rc && w->ctl && !gci_control_was_heard(w->ctl) && pause <= LAST_PAUSE &&
		gci_now_ns() - begin < SHORT) {
		gci_control_free(w->ctl);
		w->ctl = NULL;
		gci_sleep_ns(pause);
		pause *= 2;
		memset(e, 0, sizeof(*e));
		rc = call_launcher(w, env, e);
	}
	if (!rc && w->start.start.size != (uint32_t)env->size)
		rc = gci_error_set(e, GCOLL_ERR_PROTO, "the launcher started %u ranks, not %d",
			w->start.start.size, env->size);
	return rc;
}

static int make_topo(struct gci_world *w, struct gci_topo *topo, struct gci_error *e)
{
	const struct gci_ctl_start *s = &w->start.start;
	int *host = gci_calloc(s->size, sizeof(*host));
	uint32_t r;
	int rc = gci_grid_parse(&w->grid, s->grid, strlen(s->grid), "grid", e);

	w->hosts = gci_calloc(s->size, sizeof(*w->hosts));
	if (!rc && (!host || !w->hosts))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (r = 0; !rc && r < s->size; r++) {
		if (s->ranks[r].host >= (uint32_t)w->grid.nhosts)
			rc = gci_error_set(e, GCOLL_ERR_PROTO,
				"rank %u is on host %u, which the grid does not have", r,
				s->ranks[r].host);
		else
			w->hosts[r] = gci_grid_host(&w->grid, (int)s->ranks[r].host);
		host[r] = (int)s->ranks[r].host;
	}
	if (!rc && gci_topo_create(topo, &w->grid, host, (int)s->size))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(host);
	return rc;
}

/* Ranks at loopback addresses are on one machine, by whatever names. */
static int is_one_host(const struct gci_ctl_start *s)
{
	uint32_t r;

	for (r = 0; r < s->size; r++)
		if (!gci_reach_is_loopback(&s->ranks[r].reach))
			return 0;
	return 1;
}

/* The launcher has read it, and checked it against the grid; what we read must mean the same. */
static int take_table(struct gci_world *w, gcoll_comm *c, struct gci_error *e)
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
	if (rc)
		return rc;
	gci_table_dilate(&w->table, w->grid.dilation);
	c->engine->table = &w->table;
	return 0;
}

static int start_recording(gcoll_comm *c, struct gci_error *e)
{
	const char *path = getenv("GRIDCOLL_RECORD");

	if (path && *path && gci_recording_set(c->engine, path))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int make_transport(
	struct gci_world *w, gcoll_comm *c, const uint8_t *secret, struct gci_error *e)
{
	const struct gci_ctl_start *s = &w->start.start;
	struct gci_reach *reach = gci_calloc(s->size, sizeof(*reach));
	struct gci_tp_config config = gci_engine_tp_config(c->engine);
	struct gci_tcp_config tcp = {.listen_fd = w->listen_fd, .reach = reach, .own = &w->own};
	struct gci_tp *tp = NULL;
	uint32_t r;
	int rc;

	if (!reach)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (r = 0; r < s->size; r++)
		reach[r] = s->ranks[r].reach;
	config.epoch = s->epoch;
	memcpy(tcp.secret, secret, sizeof(tcp.secret));
	tcp.connect_timeout_ns = gci_engine_patience(c->engine, GCI_TCP_CONNECT_NS);
	tcp.stranger_ns = gci_engine_patience(c->engine, GCI_TCP_STRANGER_NS);
	tcp.loop = w->options->uv_loop;
	tcp.unref = 1;
	w->listen_fd = -1;
	rc = gci_tcp_create(&tp, &config, &tcp, e);
	explicit_bzero(tcp.secret, sizeof(tcp.secret));
	if (!rc)
		c->engine->tp = tp;
	gci_free(reach);
	return rc;
}

static int start_progress(
	struct gci_engine *engine, const struct gcoll_options *options, struct gci_error *e)
{
	if (options->progress_thread)
		return gci_thread_start(engine, e);
	if (options->uv_loop ? gci_loop_open(engine, options->uv_loop) : gci_warm_open(engine))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int start_warming(struct gci_engine *engine, struct gci_error *e)
{
	const char *s = getenv("GRIDCOLL_WARM");
	int when = s && *s ? gci_warm_parse(s) : GCI_WARM_ON;

	if (when < 0)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "GRIDCOLL_WARM=%s, expected on, now or off", s);
	gci_warm_set(engine, (enum gci_warm_when)when);
	return 0;
}

static void world_free(struct gci_world *w)
{
	/* The threads first: they look at the transport. */
	gci_telemetry_end(&w->telemetry);
	gci_control_free(w->ctl);
	if (w->comm) {
		w->comm->engine->ctl = NULL;
		gci_engine_free(w->comm->engine);
	}
	gci_ctl_message_free(&w->start);
	gci_table_free(&w->table);
	gci_grid_free(&w->grid);
	gci_free(w->hosts);
	if (w->listen_fd >= 0)
		close(w->listen_fd);
	gci_free(w);
}

static unsigned lanes(const struct gci_world *w, int a, int b)
{
	const struct gci_ctl_rank *ranks = w->start.start.ranks;

	return gci_reach_lanes(&ranks[a < b ? a : b].reach, &ranks[a < b ? b : a].reach);
}

static int build(struct gci_world *w, const struct gci_environment *env, struct gci_error *e)
{
	struct gci_topo topo = {0};
	gcoll_comm *c = NULL;
	int rc = join(w, env, e);

	if (!rc)
		rc = make_topo(w, &topo, e);
	if (!rc && is_one_host(&w->start.start)) {
		topo.one_host = 1;
		topo.per_host = topo.nranks;
	}
	if (!rc && gci_comm_create(&c, env->rank, &topo, w->hosts))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_topo_free(&topo);
	if (rc)
		return rc;
	c->engine->dead_ns = w->start.start.dead_ns;
	c->engine->data_path = env->data_path;
	c->engine->security = env->security;
	snprintf(c->engine->congestion, sizeof(c->engine->congestion), "%s", env->congestion);
	c->engine->ctl = w->ctl;
	c->engine->job = w;
	c->engine->lanes = lanes;
	c->engine->grid = &w->grid;
	rc = take_table(w, c, e);
	if (!rc)
		rc = start_recording(c, e);
	if (!rc)
		rc = make_transport(w, c, env->secret, e);
	if (!rc)
		rc = gci_pacing_open(c->engine, env->pace, &w->own, w->start.start.ranks, e);
	if (!rc)
		rc = start_progress(c->engine, w->options, e);
	if (!rc)
		rc = start_warming(c->engine, e);
	if (rc) {
		gci_warm_close(c->engine);
		gci_engine_free(c->engine);
		return rc;
	}
	__atomic_store_n(&w->comm, c, __ATOMIC_RELEASE);
	gci_telemetry_open(&w->telemetry, c->engine, w->ctl);
	return 0;
}

/* One world per process: the job's secret can be read once, and ranks count once. */
static int joined;

int gcoll_init(gcoll_comm **world)
{
	return gcoll_init_options(world, NULL);
}

int gcoll_init_options(gcoll_comm **world, const struct gcoll_options *options)
{
	static const struct gcoll_options none = {0};
	struct gci_environment env = {0};
	struct gci_error e = {0};
	struct gci_world *w;
	int rc;

	if (!world)
		return gci_comm_error(GCOLL_ERR_INVAL, "world is NULL");
	*world = NULL;
	if (options && options->progress_thread && options->uv_loop)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"progress_thread and uv_loop, expected one of them at most");
	if (__atomic_load_n(&joined, __ATOMIC_ACQUIRE))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"this process has called gcoll_init before; it can join its job once");
	gci_log_init(NULL);
	rc = gci_environment_read(&env, &e);
	if (rc) {
		explicit_bzero(&env.secret, sizeof(env.secret));
		return gci_comm_error(rc, "%s", e.text);
	}
	__atomic_store_n(&joined, 1, __ATOMIC_RELEASE);
	w = gci_calloc(1, sizeof(*w));
	if (!w) {
		explicit_bzero(&env.secret, sizeof(env.secret));
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	}
	w->listen_fd = -1;
	gci_telemetry_init(&w->telemetry);
	w->options = options ? options : &none;
	rc = build(w, &env, &e);
	explicit_bzero(&env.secret, sizeof(env.secret));
	if (rc) {
		world_free(w);
		return gci_comm_error(rc, "%s", e.text);
	}
	w->options = NULL; /* the caller's */
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
		gci_tp_progress(e->tp, GCI_NS_PER_S);
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
	if (c != e->world || !e->job) {
		gci_comm_error(GCOLL_ERR_INVAL, "gcoll_finalize, expected the world");
		return;
	}
	gci_enter(e);
	rc = gci_req_may_wait(e);
	gci_leave(e);
	if (rc)
		return;
	gci_warm_close(e);
	if (!gci_thread_stop(e, leave))
		leave(e);
	gci_recording_end(e);
	world_free(e->job);
}
