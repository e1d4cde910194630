/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "comm/done.h"
#include "comm/loop.h"
#include "comm/pacing.h"
#include "comm/request.h"
#include "comm/thread.h"
#include "comm/world_impl.h"
#include "transport/closed.h"
#include "transport/tcp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What holds for the first epoch. */
static int set_up(struct gci_world *w, struct gci_settings *s, struct gci_error *e)
{
	const char *warm = getenv("GRIDCOLL_WARM");
	int when = warm && *warm ? gci_warm_parse(warm) : GCI_WARM_ON;

	if (when < 0)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "GRIDCOLL_WARM=%s, expected on, now or off", warm);
	s->warm = when;
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
	p->comm->engine->dead_ns = w->start.start.dead_ns;
	p->comm->engine->ctl = w->ctl;
	p->comm->engine->job = w;
	p->comm->engine->lanes = lanes;
	p->comm->engine->grid = &w->grid;
	if (w->start.start.table && *w->start.start.table)
		p->comm->engine->table = &w->table;
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
	struct gci_tp_config config = gci_engine_tp_config(engine);
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

int gci_epoch_open(struct gci_world *w, uint32_t number, const uint32_t *ranks, uint32_t n,
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
		rc = gci_pacing_open(p->comm->engine,
			(enum gci_pace_how)p->comm->engine->settings.pace, &w->own, p->ranks,
			before != NULL, e);
	if (!rc)
		rc = start_progress(w, p->comm->engine, e);
	if (!rc) /* now, if it is to be so */
		gci_warm_set(p->comm->engine, (enum gci_warm_when)p->comm->engine->settings.warm);
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
	gci_telemetry_open(&w->telemetry, p->comm->engine, w->ctl);
	return 0;
}

/* ---- its end */

/* All requests end with the failure, and callbacks are told. */
static void settle(struct gci_engine *e)
{
	struct gci_list *it;
	int i;

	for (i = 0; (e->active || !gci_list_empty(&e->untold)) && i < MOST_TURNS; i++)
		gci_engine_progress(e, 0);
	gci_list_each (it, &e->requests) {
		gcoll_req *r = gci_container(it, gcoll_req, link);

		if (r->active && !r->over)
			gci_req_end(r, e->failure.status);
	}
	gci_done_tell(e);
}

static int is_idle(const struct gci_engine *e)
{
	const struct gci_list *it;

	gci_list_each (it, &e->comms)
		if (!gci_list_empty(&gci_container(it, gcoll_comm, link)->ops))
			return 0;
	return 1;
}

void gci_epoch_close(struct gci_world *w)
{
	struct gci_engine *e = w->epoch->comm->engine;

	pthread_mutex_lock(&w->lock);
	w->comm = NULL;
	pthread_mutex_unlock(&w->lock);
	gci_telemetry_end(&w->telemetry);
	gci_warm_close(e);
	if (!gci_thread_stop(e, settle))
		settle(e);
	e->ctl = NULL; /* what it says from now on is of the next epoch */
	gci_tp_free(e->tp);
	e->tp = gci_tp_closed();
	gci_loop_close(e);
	gci_pacing_close(e);
	if (!is_idle(e))
		return;
	gci_sched_cache_forget(&e->cache, NULL);
	gci_scratch_free(&e->scratch);
}

void gci_epochs_free(struct gci_world *w)
{
	struct gci_epoch *p, *before;

	for (p = w->epoch; p; p = before) {
		before = p->before;
		p->comm->engine->ctl = NULL;
		gci_engine_free(p->comm->engine);
		epoch_free(p);
	}
	w->epoch = NULL;
}
