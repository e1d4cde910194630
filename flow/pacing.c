/* SPDX-License-Identifier: MIT */
#include "flow/pacing.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/tuner/rates.h"
#include "comm/comm.h"
#include "comm/op.h"
#include "shaping/budget.h"
#include "shaping/edt.h"
#include "shaping/facts.h"
#include "shaping/htb.h"
#include "shaping/mark.h"
#include "transport/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- By earliest departure times (shaping/edt.h): a class for each other cluster, named as the grid
 * does, of all addresses that its ranks have. Ranks and jobs of one host share them.
 *
 *	rc = gci_pacing_edt_open(&p, engine, ranks, "eth0", &e);
 *	...
 *	n = gci_pacing_edt_senders(engine, ranks, senders);
 *	gci_pacing_edt_rate(p, to, bps);	(of this host, to cluster `to`; 0: at will)
 *	...
 *	gci_pacing_edt_close(p); */

struct gci_pacing_edt {
	struct gci_edt *edt;
	int n;
	int classes[]; /* [cluster]; -1: none */
};

static void gci_pacing_edt_close(struct gci_pacing_edt *p);

/* All addresses at which ranks of a cluster are reached; to be freed. */
static struct gci_net *nets_of(
	const struct gci_topo *t, int cluster, const struct gci_ctl_rank *ranks, size_t *n)
{
	const int *members = gci_topo_members(t, cluster);
	int size = gci_topo_size(t, cluster), i;
	struct gci_net *nets = gci_calloc((size_t)size * GCI_REACH_MAX, sizeof(*nets));
	unsigned k;

	*n = 0;
	for (i = 0; nets && i < size; i++) {
		const struct gci_reach *r = &ranks[members[i]].reach;

		for (k = 0; k < r->n; k++) {
			int six = r->six >> k & 1;

			nets[*n] = (struct gci_net){.six = six ? 6 : 4, .bits = six ? 128 : 32};
			memcpy(nets[(*n)++].ip, r->ip[k], six ? 16 : 4);
		}
	}
	return nets;
}

/* Counted, and not limited yet. */
static int add_class(struct gci_pacing_edt *p, const struct gci_engine *engine, int to,
	const struct gci_ctl_rank *ranks, struct gci_error *e)
{
	const struct gci_topo *t = &engine->world->topo;
	char name[GCI_EDT_NAME];
	struct gci_net *nets;
	size_t n;

	/* Of a longer name the beginning; where two begin alike, the kernel's trie refuses them. */
	snprintf(name, sizeof(name), "%s", engine->job.grid->clusters[t->in_grid[to]].name);
	nets = nets_of(t, to, ranks, &n);
	p->classes[to] = nets ? gci_edt_class(p->edt, name, nets, n, 0, e)
			      : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(nets);
	return p->classes[to] < 0 ? p->classes[to] : 0;
}

/* `ranks`: where each rank of the world is reached. GCOLL_ERR_UNSUPPORTED with the reason. */
static int gci_pacing_edt_open(struct gci_pacing_edt **out, const struct gci_engine *engine,
	const struct gci_ctl_rank *ranks, const char *device, struct gci_error *e)
{
	const struct gci_topo *t = &engine->world->topo;
	int to, rc, mine = t->cluster[engine->rank];
	struct gci_pacing_edt *p =
		gci_calloc(1, sizeof(*p) + (size_t)t->nclusters * sizeof(*p->classes));

	*out = NULL;
	if (!p)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	p->n = t->nclusters;
	for (to = 0; to < p->n; to++)
		p->classes[to] = -1;
	rc = *device ? gci_edt_open(&p->edt, device, 0, e)
		     : gci_error_set(
			       e, GCOLL_ERR_UNSUPPORTED, "no device has this process's address");
	for (to = 0; !rc && engine->job.grid && to < p->n; to++)
		if (to != mine)
			rc = add_class(p, engine, to, ranks, e);
	if (!rc)
		*out = p;
	else
		gci_pacing_edt_close(p);
	return rc;
}

/* NULL is legal. */
static void gci_pacing_edt_close(struct gci_pacing_edt *p)
{
	if (!p)
		return;
	gci_edt_close(p->edt);
	gci_free(p);
}

/* On how many hosts of this rank's cluster so many senders are, at most: a rate is a host's. */
static unsigned gci_pacing_edt_senders(
	const struct gci_engine *engine, const struct gci_ctl_rank *ranks, int senders)
{
	const struct gci_topo *t = &engine->world->topo;
	int mine = t->cluster[engine->rank], size = gci_topo_size(t, mine), i, k;
	const int *members = gci_topo_members(t, mine);
	unsigned hosts = 0;

	for (i = 0; i < size; i++) {
		for (k = 0; k < i && ranks[members[k]].host != ranks[members[i]].host; k++)
			;
		hosts += k == i;
	}
	return senders > 0 && (unsigned)senders < hosts ? (unsigned)senders : hosts;
}

static void gci_pacing_edt_rate(struct gci_pacing_edt *p, int to, uint64_t bps)
{
	struct gci_error e = {0};

	if (p && to < p->n && p->classes[to] >= 0 &&
		gci_edt_set_rate(p->edt, p->classes[to], bps, &e))
		gci_log(GCI_LOG_WARN, "pacing by edt: %s; the rate before stays", e.text);
}

/* ---- What this rank has to do with its host's device. */

#define NO_LIMIT (1ull << 50)

struct gci_pacing_host {
	struct gci_htb htb; /* lock_fd -1: not by it */
	int mark_fd;        /* -1: none */
};

/* 1: another job has it. Those that share by departure times share the mark, too. What cannot be
 * opened tells nothing. */
static int take_mark(struct gci_pacing_host *h, const char *device, int share)
{
	h->mark_fd = gci_mark_open("pace", device);
	return h->mark_fd >= 0 && flock(h->mark_fd, (share ? LOCK_SH : LOCK_EX) | LOCK_NB) &&
	       errno == EWOULDBLOCK;
}

int gci_pacing_host_open(struct gci_pacing_host **out, const char *device, enum gci_pace_how holds,
	enum gci_pacing_mark mark, struct gci_error *e)
{
	struct gci_pacing_host *h = gci_calloc(1, sizeof(*h));
	int rc = 0;

	*out = NULL;
	if (!h)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	h->mark_fd = h->htb.lock_fd = -1;
	if (mark != GCI_PACING_NO_MARK && *device)
		rc = take_mark(h, device, holds == GCI_PACE_EDT);
	if (mark == GCI_PACING_MARK_AGAIN)
		rc = 0;
	if (holds == GCI_PACE_HTB && rc)
		rc = gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"pacing by htb: another job paces what this host sends by %s (--pace edt "
			"makes them share)",
			device);
	else if (holds == GCI_PACE_HTB)
		rc = gci_htb_open(&h->htb, device, e);
	if (rc < 0)
		gci_pacing_host_close(h);
	else
		*out = h;
	return rc;
}

void gci_pacing_host_close(struct gci_pacing_host *h)
{
	if (!h)
		return;
	gci_htb_close(&h->htb);
	if (h->mark_fd >= 0)
		close(h->mark_fd);
	gci_free(h);
}

/* HTB: for all that goes to a group of peers from this host, 0: at will. Else nothing. */
static int gci_pacing_host_rate(
	struct gci_pacing_host *h, unsigned group, uint64_t bps, struct gci_error *e)
{
	if (!h || h->htb.lock_fd < 0)
		return 0;
	return gci_htb_class(&h->htb, group, bps ? bps : NO_LIMIT, e);
}

/* ---- The budgets between clusters, and how they are held. */

#define FEW_SENDERS 8

/* What goes from here to one cluster of the world. */
struct way {
	struct gci_budget budget;
	int senders; /* that were last counted with */
	struct gci_pace pace;
};

struct gci_pacing {
	enum gci_pace_how how, holds;
	const struct gci_own *own;
	const struct gci_ctl_rank *ranks;
	int again;                  /* not the job's first epoch */
	struct gci_pacing_edt *edt; /* NULL: others pace */
	struct gci_pacing_host *host;
	int chosen;                 /* `holds` is known */
	const struct gci_op *paced; /* whose pairs are paced, each on its own; NULL: none's */
	int nways;
	struct way ways[]; /* [cluster] */
};

/* ---- who sends */

/* Ranks of this rank's cluster that an operation lets send to `to`, a cluster of the grid. */
static int senders_of(const struct gci_op *op, int to)
{
	const struct gci_topo *t = op->coll.topo;
	int from = t->cluster[op->rank], c, cap;

	for (c = 0; c < t->nclusters && t->in_grid[c] != to; c++)
		;
	if (c == t->nclusters || c == from)
		return 0;
	if (op->algorithm->traits & GCI_CAPS_SENDERS)
		return gci_coll_senders(&op->coll, from, c);
	cap = op->algorithm->traits & GCI_PACKS ? (int)t->cap[from * t->nclusters + c] : 0;
	return cap && cap < gci_topo_size(t, from) ? cap : gci_topo_size(t, from);
}

/* One with senders that are not counted, since its algorithm keeps no number of them. */
static int is_counted(const struct gci_op *op)
{
	return !!(op->algorithm->traits & GCI_CAPS_SENDERS);
}

/* Operations of one communicator have the same senders, or few others; two communicators may have
 * different ones. Those without a number of senders count where a budget must hold. */
static int count_senders(const struct gci_engine *e, int to, int strict)
{
	const struct gci_topo *t = &e->world->topo;
	const struct gci_list *c, *o;
	int all = 0;

	gci_list_each (c, &e->comms.all) {
		const gcoll_comm *comm = gci_container(c, gcoll_comm, link);
		int most = 0;

		gci_list_each (o, &comm->ops) {
			const struct gci_op *op = gci_container(o, struct gci_op, link);
			int n = gci_op_is_long(op) && (strict || is_counted(op))
					? senders_of(op, to)
					: 0;

			/* Others of the cluster may be at work in communicators of theirs. */
			if (n && strict && comm->size < e->size)
				n = gci_topo_size(t, t->cluster[e->rank]);

			most = n > most ? n : most;
		}
		all += most;
	}
	return all;
}

/* ---- what they may send */

static void try_edt(struct gci_engine *e, struct gci_ladder_facts *f)
{
	struct gci_pacing *p = e->flow.pacing;
	struct gci_error why = {0};

	if (!p->edt)
		gci_pacing_edt_open(&p->edt, e, p->ranks, f->device, &why);
	f->edt = p->edt != NULL;
	snprintf(f->edt_why, sizeof(f->edt_why), "%.*s", (int)sizeof(f->edt_why) - 1, why.text);
}

/* The lowest rank of this host. */
static int is_first(const struct gci_engine *e)
{
	const struct gci_ctl_rank *ranks = e->flow.pacing->ranks;
	int r = 0;

	while (ranks[r].host != ranks[e->rank].host)
		r++;
	return r == e->rank;
}

static int take_host(struct gci_engine *e, const char *device, struct gci_error *error)
{
	struct gci_pacing *p = e->flow.pacing;
	enum gci_pacing_mark mark = !is_first(e) ? GCI_PACING_NO_MARK
				    : p->again   ? GCI_PACING_MARK_AGAIN
						 : GCI_PACING_MARK;
	int rc = gci_pacing_host_open(&p->host, device, p->holds, mark, error);

	if (rc == 1)
		gci_log(GCI_LOG_WARN,
			"another job paces what %s sends by %s, too: what both may send adds up "
			"(they would share it if both had --pace edt)",
			e->hosts[e->rank], device);
	return rc < 0 ? rc : 0;
}

/* These two look after one device. */
static void warn_of_other(const struct gci_engine *e, const struct gci_ladder_facts *f)
{
	enum gci_pace_how holds = e->flow.pacing->holds;

	if (*f->other && is_first(e) && (holds == GCI_PACE_EDT || holds == GCI_PACE_HTB))
		gci_log(GCI_LOG_WARN,
			"pacing by %s holds what %s sends by %s only, not by %s: --interfaces %s "
			"leaves it one device, and the other rungs pace by any",
			gci_pace_name(holds), e->hosts[e->rank], f->device, f->other, f->device);
}

/* 0 unless nothing can be paced. */
static int choose(struct gci_engine *e, struct gci_error *error)
{
	struct gci_pacing *p = e->flow.pacing;
	struct gci_ladder_facts facts;
	enum gci_pace_how holds;
	char why[GCI_LADDER_WHY];
	int rc;

	gci_ladder_look(&facts, p->own);
	/* Whether it is to be had, only trying tells. */
	if (p->how == GCI_PACE_EDT)
		try_edt(e, &facts);
	rc = gci_ladder_choose(p->how, &facts, &holds, why, error);
	if (rc)
		return rc;
	p->holds = holds;
	gci_pacing_host_close(p->host);
	p->host = NULL;
	rc = take_host(e, facts.device, error);
	if (rc)
		return rc;
	p->chosen = 1;
	warn_of_other(e, &facts);
	gci_log(GCI_LOG_INFO, "rank %d: pacing: %s", e->rank, why);
	return 0;
}

static void tell(const struct gci_engine *e, int to, const struct way *w)
{
	const struct gci_topo *t = &e->world->topo;
	char each[16];

	gci_log(GCI_LOG_INFO, "rank %d: %d of cluster %d send to cluster %d, %s each%s", e->rank,
		w->senders, t->in_grid[t->cluster[e->rank]], t->in_grid[to],
		w->pace.bps ? gci_format_rate(w->pace.bps, each, sizeof(each)) : "unpaced",
		w->budget.given_bps ? " by the budget" : "");
}

static void apply(struct gci_engine *e, int to)
{
	struct gci_pacing *p = e->flow.pacing;
	struct way *w = &p->ways[to];
	struct gci_pace pace = {.by = GCI_PACED_BY_NOBODY};
	unsigned senders = (unsigned)w->senders;
	struct gci_error error = {0};

	if (p->edt || p->how == GCI_PACE_HTB) /* all ranks of a host together */
		senders = gci_pacing_edt_senders(e, p->ranks, w->senders);
	if (p->how != GCI_PACE_OFF)
		pace.bps = gci_budget_sender(&w->budget, senders);
	if (pace.bps && !p->chosen && choose(e, NULL))
		return;
	if (pace.bps)
		pace.by = gci_ladder_paced_by(p->holds);
	if (pace.by == GCI_PACED_BY_CLASS)
		pace.priority = gci_htb_priority(gci_engine_pace_group(e->world->topo.in_grid[to]));
	if (pace.by == w->pace.by && pace.bps == w->pace.bps)
		return;
	w->pace = pace;
	tell(e, to, w);
	gci_pacing_edt_rate(p->edt, to, pace.bps);
	if (gci_pacing_host_rate(
		    p->host, gci_engine_pace_group(e->world->topo.in_grid[to]), pace.bps, &error))
		gci_log(GCI_LOG_WARN, "pacing by htb: %s; the rate before stays", error.text);
	gci_tp_pace(e->tp, gci_engine_pace_group(e->world->topo.in_grid[to]), &pace);
}

/* ---- pairs of ranks, each at its own rate */

/* The one whose pairs are to be paced, if nothing else that is long is under way; *n: how many are. */
static const struct gci_op *only_long(const struct gci_engine *e, int *n)
{
	const struct gci_op *only = NULL;
	const struct gci_list *c, *o;

	gci_list_each (c, &e->comms.all)
		gci_list_each (o, &gci_container(c, gcoll_comm, link)->ops) {
			const struct gci_op *op = gci_container(o, struct gci_op, link);

			if (gci_op_is_long(op) && !(*n)++)
				only = op;
		}
	return *n == 1 ? only : NULL;
}

/* By TCP's own timers, or fq if it is there: any kernel can. */
static int may_pace_pairs(const struct gci_pacing *p)
{
	return p->how == GCI_PACE_AUTO || p->how == GCI_PACE_FQ || p->how == GCI_PACE_TCP;
}

/* Of what near senders leave of a port (collectives/tuner/rates.h), the part that a sender has of its rate; 0
 * where the senders are so few that they need not care. */
static uint32_t burst_of(const struct gci_topo *t, int peer, uint64_t bps)
{
	uint64_t nic_bps = t->nic_bps[t->cluster[peer]];

	return nic_bps && bps < nic_bps / FEW_SENDERS
		       ? (uint32_t)(GCI_PORT_NBYTES * 3 / 4 * bps / nic_bps)
		       : 0;
}

/* NULL: at will, as in the topologies of multicasts, which are not simulated. */
static const struct gci_rates *rates_of(const struct gci_op *op)
{
	gcoll_comm *c = op->comm;

	if (op->coll.topo != &c->topo ||
		gci_decider_open(&c->decider, &c->topo, c->engine->settings.streams))
		return NULL;
	c->decider.at_will = c->engine->at_will;
	return gci_decide_rates(&c->decider, op->algorithm, &op->coll, op->rank);
}

/* How this rank sends to one of the world's while `rates`, NULL: none, hold for number i of an operation's. */
static void pace_pair(struct gci_engine *e, int r, const struct gci_rates *rates, int i, int nlong)
{
	const struct gci_topo *t = &e->world->topo;
	int is_near = t->cluster[r] == t->cluster[e->rank];
	/* A budget holds for all that goes there together. */
	int is_paced = rates && (is_near || !e->flow.pacing->ways[t->cluster[r]].budget.given_bps);
	uint64_t bps = is_paced ? rates->bps[i] : 0;

	gci_tp_pace_peer(e->tp, r, nlong ? bps : GCI_PACE_UNTIL_SENT, burst_of(t, r, bps));
	if (is_near)
		gci_tp_window_peer(e->tp, r, rates ? rates->window_nbytes[i] : 0);
}

static void pace_pairs(struct gci_engine *e)
{
	struct gci_pacing *p = e->flow.pacing;
	int i, r, nlong = 0;
	const struct gci_op *op = only_long(e, &nlong);
	const struct gci_rates *rates;
	int *number; /* [rank of the world]: in the operation; -1: not in it */

	if (op == p->paced || (op && !may_pace_pairs(p)))
		return;
	number = gci_calloc((size_t)e->size, sizeof(*number));
	if (!number) /* as it is, then */
		return;
	for (r = 0; r < e->size; r++)
		number[r] = -1;
	rates = op ? rates_of(op) : NULL;
	for (i = 0; rates && i < op->coll.topo->nranks; i++)
		number[op->ranks ? op->ranks[i] : i] = i;
	for (r = 0; r < e->size; r++)
		if (r != e->rank)
			pace_pair(e, r, number[r] < 0 ? NULL : rates, number[r], nlong);
	p->paced = op;
	gci_free(number);
}

static void changed(const struct gci_op *op)
{
	struct gci_engine *e = op->comm->engine;
	const struct gci_topo *t = &e->world->topo;
	int to, n, mine = t->cluster[e->rank];

	if (!e->flow.pacing || !gci_op_is_long(op))
		return;
	pace_pairs(e);
	for (to = 0; to < e->flow.pacing->nways; to++) {
		struct way *w = &e->flow.pacing->ways[to];

		if (to == mine)
			continue;
		n = count_senders(e, t->in_grid[to], w->budget.given_bps != 0);
		if (!n || n == w->senders)
			continue; /* between operations all stays as it is */
		w->senders = n < gci_topo_size(t, mine) ? n : gci_topo_size(t, mine);
		apply(e, to);
	}
}

void gci_pacing_warming(struct gci_engine *e, int on)
{
	const struct gci_topo *t = &e->world->topo;
	int to, n, mine = t->cluster[e->rank];

	for (to = 0; e->flow.pacing && to < e->flow.pacing->nways; to++) {
		if (to == mine)
			continue;
		n = on ? gci_topo_size(t, mine) : count_senders(e, t->in_grid[to], 1);
		e->flow.pacing->ways[to].senders = n ? n : gci_topo_senders(t, mine, to);
		apply(e, to);
	}
}

static void budget(struct gci_engine *e, uint32_t from, uint32_t to, uint64_t bps)
{
	const struct gci_topo *t = &e->world->topo;
	int c, mine = t->cluster[e->rank];

	if (!e->flow.pacing || (uint32_t)t->in_grid[mine] != from)
		return;
	for (c = 0; c < t->nclusters; c++) {
		if ((uint32_t)t->in_grid[c] != to || c == mine)
			continue;
		e->flow.pacing->ways[c].budget.given_bps = bps;
		apply(e, c);
	}
}

/* ---- how it is paced; beginning and end */

static void apply_all(struct gci_engine *e)
{
	int to, mine = e->world->topo.cluster[e->rank];

	for (to = 0; to < e->flow.pacing->nways; to++)
		if (to != mine)
			apply(e, to);
}

static void forget_rates(struct gci_pacing *p)
{
	int to;

	for (to = 0; to < p->nways; to++)
		p->ways[to].pace.bps = UINT64_MAX;
}

static int set_pace(struct gci_engine *e, enum gci_pace_how how, struct gci_error *error)
{
	struct gci_pacing *p = e->flow.pacing;
	enum gci_pace_how before;
	int rc = 0;

	if (!p)
		return 0;
	before = p->how;
	p->how = how;
	p->chosen = 0;
	/* What was asked for by name is there, or it is not: now, not when it is needed. */
	if (how != GCI_PACE_AUTO && how != GCI_PACE_OFF)
		rc = choose(e, error);
	if (rc)
		p->how = before;
	else
		forget_rates(p); /* whoever keeps them now has to be told */
	if (p->how != GCI_PACE_EDT) {
		gci_pacing_edt_close(p->edt);
		p->edt = NULL;
	}
	apply_all(e);
	e->settings.pace = p->how;
	return rc;
}

int gci_pacing_open(struct gci_engine *e, enum gci_pace_how how, const struct gci_own *own,
	const struct gci_ctl_rank *ranks, int again, struct gci_error *error)
{
	const struct gci_topo *t = &e->world->topo;
	int to, mine = t->cluster[e->rank], n = t->nclusters;
	struct gci_pacing *p = gci_calloc(1, sizeof(*p) + (size_t)n * sizeof(*p->ways));

	if (!p)
		return gci_error_set(error, GCOLL_ERR_NOMEM, "out of memory");
	p->own = own;
	p->ranks = ranks;
	p->again = again;
	p->nways = n;
	for (to = 0; to < n; to++) {
		const struct gci_link *l =
			e->job.grid ? gci_grid_link(e->job.grid, t->in_grid[mine], t->in_grid[to])
				    : NULL;

		if (!l)
			continue;
		p->ways[to] = (struct way){.senders = gci_topo_senders(t, mine, to)};
		p->ways[to].budget = (struct gci_budget){.given_bps = l->budget_bps,
			.link_bps = l->rate_bps,
			.nic_bps = t->nic_bps[mine]};
	}
	e->flow.pacing = p;
	e->flow.changed = changed;
	e->flow.budget = budget;
	e->flow.set_pace = set_pace;
	e->flow.close = gci_pacing_close;
	return set_pace(e, how, error);
}

void gci_pacing_close(struct gci_engine *e)
{
	if (e->flow.pacing) {
		gci_pacing_edt_close(e->flow.pacing->edt);
		gci_pacing_host_close(e->flow.pacing->host);
	}
	gci_free(e->flow.pacing);
	e->flow.pacing = NULL;
	e->flow.changed = NULL;
	e->flow.budget = NULL;
	e->flow.set_pace = NULL;
	e->flow.close = NULL;
}
