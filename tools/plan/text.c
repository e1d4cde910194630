/* SPDX-License-Identifier: MIT
 * The ways that a plan compares, and the plan for programs and for people: 80 columns. */
#include "base/mem.h"
#include "base/units.h"
#include "collectives/tuner/candidates.h"
#include "tools/lib/json_out.h"
#include "tools/lib/progress.h"
#include "tools/plan/plan.h"
#include "tools/plan/ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gct_way *gct_ways_known(const struct gct_ways *w);
static int gct_plan_cap(const struct gct_plan_report *p, int from, int to);

/* ---- The plan for programs. Times are divided by the dilation. */

static json_t *link_json(const struct gct_plan_report *p, int from, int to, int *failed)
{
	json_t *o = json_object();
	int at = from * p->coll->topo->nclusters + to;

	gct_json_set(o, "from", json_string(p->clusters[from]), failed);
	gct_json_set(o, "to", json_string(p->clusters[to]), failed);
	gct_json_set(o, "bytes", gct_json_whole(p->result->wan_nbytes[at]), failed);
	gct_json_set(o, "senders", gct_json_whole(p->result->senders[at]), failed);
	if (from != to) {
		gct_json_set(o, "cap", json_integer(gct_plan_cap(p, from, to)), failed);
		gct_json_set(o, "payload_bps", gct_json_whole(p->net->links[at].bps * p->dilation),
			failed);
	}
	return o;
}

static json_t *links_json(const struct gct_plan_report *p, int *failed)
{
	json_t *list = json_array();
	int n = p->coll->topo->nclusters, i;

	for (i = 0; i < n * n; i++)
		if (p->result->senders[i])
			gct_json_append(list, link_json(p, i / n, i % n, failed), failed);
	return list;
}

static json_t *way_json(const struct gct_plan_report *p, const struct gct_way *w, int *failed)
{
	const struct gct_way *known = gct_ways_known(p->ways);
	struct gct_words words = {p->nbytes, p->names, p->wires, p->dilation};
	char how[GCI_CANDIDATE_NBYTES];
	struct gci_buf why = {0};
	json_t *o = json_object();

	gci_candidate_print(&w->how, how);
	gct_json_set(o, "algorithm", json_string(how), failed);
	if (*w->why_not) {
		gct_json_set(o, "not_run", json_string(w->why_not), failed);
		return o;
	}
	gct_json_set(o, "predicted_ns", gct_json_whole(w->ns / p->dilation), failed);
	if (w->has_facts) {
		gct_bottleneck_why(&w->facts, w == known ? NULL : &known->facts, &words, &why);
		gct_json_set(o, "why", json_string(gci_buf_cstr(&why)), failed);
		gci_buf_free(&why);
	}
	return o;
}

static json_t *usual_json(const struct gct_plan_report *p)
{
	char how[GCI_CANDIDATE_NBYTES];

	gci_candidate_print(p->usual, how);
	return json_string(how);
}

static json_t *choice_json(const struct gct_plan_report *p, int *failed)
{
	json_t *o = way_json(p, p->choice, failed);

	gct_json_set(o, "chosen_by", json_string(p->chosen_by), failed);
	gct_json_set(o, "messages", gct_json_whole(p->result->nmessages), failed);
	gct_json_set(o, "least_message_bytes", gct_json_whole(p->least_message), failed);
	gct_json_set(o, "most_message_bytes", gct_json_whole(p->most_message), failed);
	gct_json_set(o, "windows", gct_json_whole(p->result->nwindows), failed);
	gct_json_set(o, "temporary_bytes", gct_json_whole(p->result->most_tmp_nbytes), failed);
	return o;
}

static json_t *lines_json(const char *text, int *failed)
{
	json_t *list = json_array();
	size_t n;

	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		gct_json_append(list, json_stringn(text, n), failed);
	}
	return list;
}

static const char *name_of(const struct gct_plan_report *p, const struct gct_upgrade *u)
{
	return u->what == GCT_WIRE   ? p->wires[u->number]
	       : u->what == GCT_NICS ? p->clusters[u->number]
				     : "all";
}

static int is_link(const struct gct_upgrade *u)
{
	return u->what == GCT_WIRE || u->what == GCT_ALL_WIRES;
}

static json_t *upgrades_json(const struct gct_plan_report *p, int *failed)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < p->nupgrades; i++) {
		const struct gct_upgrade *u = &p->upgrades[i];
		json_t *o = json_object();

		gct_json_set(o, is_link(u) ? "link" : "nics", json_string(name_of(p, u)), failed);
		gct_json_set(o, "saves_percent", json_real(u->saves), failed);
		gct_json_append(list, o, failed);
	}
	return list;
}

int gct_plan_json(const struct gct_plan_report *p, const char *schedule, struct gci_buf *out)
{
	json_t *o = json_object(), *ways = json_array();
	int failed = 0;
	size_t i;

	gct_json_set(o, "version", json_integer(1), &failed);
	gct_json_set(o, "operation", json_string(gci_kind_name(p->coll->kind)), &failed);
	gct_json_set(o, "bytes", gct_json_whole(p->nbytes), &failed);
	gct_json_set(o, "ranks", json_integer(p->coll->topo->nranks), &failed);
	gct_json_set(o, "clusters", json_integer(p->coll->topo->nclusters), &failed);
	if (gci_kind_has_root(p->coll->kind))
		gct_json_set(o, "root", json_integer(p->coll->root), &failed);
	gct_json_set(o, "dilation", gct_json_whole(p->dilation), &failed);
	gct_json_set(o, "basis", json_string(p->basis), &failed);
	gct_json_set(o, "limit_ns", gct_json_whole(p->limit_ns / p->dilation), &failed);
	gct_json_set(o, "choice", choice_json(p, &failed), &failed);
	gct_json_set(o, "usual", usual_json(p), &failed);
	gct_json_set(o, "links", links_json(p, &failed), &failed);
	if (p->nupgrades >= 0)
		gct_json_set(o, "upgrades", upgrades_json(p, &failed), &failed);
	for (i = 0; i < p->ways->n; i++)
		gct_json_append(ways, way_json(p, &p->ways->list[i], &failed), &failed);
	gct_json_set(o, "ways", ways, &failed);
	if (schedule)
		gct_json_set(o, "schedule", lines_json(schedule, &failed), &failed);
	return gct_json_print(o, failed, out);
}

/* ---- the ways that are simulated, in their order */

#define MOST_CANDIDATES 16 /* of the tuner's */
#define MOST_ROUGH      32 /* with no time left: part of what all may cost, for each */

struct gct_way *gct_ways_find(const struct gct_ways *w, const struct gci_candidate *how)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (gci_candidate_same(&w->list[i].how, how))
			return &w->list[i];
	return NULL;
}

int gct_ways_add(struct gct_ways *w, const struct gci_candidate *how)
{
	if (gct_ways_find(w, how))
		return 0;
	if (gci_grow(&w->list, &w->cap, w->n + 1, sizeof(*w->list)))
		return GCOLL_ERR_NOMEM;
	w->list[w->n] = (struct gct_way){.how = *how, .number = (uint32_t)w->n};
	w->n++;
	return 0;
}

int gct_ways_add_all(struct gct_ways *w)
{
	const struct gci_algorithm *a;
	struct gci_candidate *list;
	size_t i, n;
	int rc = gci_candidates(w->net, w->coll, MOST_CANDIDATES, &list, &n);

	for (i = 0; !rc && i < n; i++)
		rc = gct_ways_add(w, &list[i]);
	if (!rc || n)
		gci_free(list);
	gci_each_algorithm (a) {
		const struct gci_candidate how = {.algorithm = a};

		if (!rc && a->kind == w->coll->kind)
			rc = gct_ways_add(w, &how);
	}
	return rc;
}

void gct_way_progress(const struct gci_coll *c, const struct gci_candidate *how)
{
	char text[GCI_CANDIDATE_NBYTES];

	if (!gct_progress_is_due())
		return;
	gci_candidate_print(how, text);
	gct_progress("%s: simulating %s", gci_kind_name(c->kind), text);
}

int gct_way_simulate(const struct gci_simnet *net, const struct gci_coll *coll,
	const struct gci_candidate *how, uint64_t most_steps, struct gct_timeline *t,
	struct gci_sim_result *r)
{
	struct gci_coll c = *coll;
	struct gci_sim_op op = {.algorithm = how->algorithm,
		.coll = &c,
		.most_steps = most_steps,
		.trace = gct_timeline_event,
		.ctx = t};
	int rc;

	gci_candidate_apply(how, &c);
	t->topo = net->topo;
	t->esize = c.esize;
	rc = gci_simulate(net, &op, r);
	if (!rc)
		rc = t->failed ? GCOLL_ERR_NOMEM : gct_timeline_sort(t);
	if (rc) {
		gct_timeline_free(t);
		gci_sim_result_free(r);
	}
	return rc;
}

/* What simulating may cost, in steps. */
struct effort {
	uint64_t each, left, rough;
};

/* From the first segments, without a reason. */
static int predict(struct gct_ways *w, struct gct_way *way, struct effort *e)
{
	uint64_t spent = 0;
	const struct gci_predict_limits limits = {
		.most_steps = e->rough / MOST_ROUGH, .spent = &spent};
	int rc = GCOLL_ERR_INVAL;

	if (e->left)
		rc = gci_predict(w->net, w->coll, &way->how, &limits, &way->ns);
	e->left -= spent < e->left ? spent : e->left;
	if (rc == GCOLL_ERR_INVAL)
		snprintf(way->why_not, sizeof(way->why_not), "not simulated: too many steps");
	return rc == GCOLL_ERR_INVAL ? 0 : rc;
}

static int simulate(struct gct_ways *w, struct gct_way *way, struct effort *e)
{
	const char *why = gci_ineligible(way->how.algorithm, w->coll);
	struct gct_timeline t = {.topo = NULL};
	struct gci_sim_result r;
	int rc;

	if (why) {
		snprintf(way->why_not, sizeof(way->why_not), "cannot run it: %s", why);
		return 0;
	}
	gct_way_progress(w->coll, &way->how);
	rc = gct_way_simulate(
		w->net, w->coll, &way->how, e->each < e->left ? e->each : e->left, &t, &r);
	if (rc == GCOLL_ERR_INVAL)
		return predict(w, way, e);
	if (rc)
		return rc;
	way->ns = r.ns;
	e->left -= r.nsteps < e->left ? r.nsteps : e->left;
	if (!t.cut) {
		rc = gct_bottleneck_find(&way->facts, w->net, &t, &r);
		way->has_facts = !rc;
	}
	gct_timeline_free(&t);
	gci_sim_result_free(&r);
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const struct gct_way *x = a, *y = b;

	if (!*x->why_not != !*y->why_not)
		return *x->why_not ? 1 : -1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

void gct_ways_sort(struct gct_ways *w)
{
	if (w->n)
		qsort(w->list, w->n, sizeof(*w->list), by_time);
}

/* Of ways in order, the fastest that has facts: what others are compared with. Or NULL. */
static const struct gct_way *gct_ways_known(const struct gct_ways *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->list[i].has_facts)
			return &w->list[i];
	return NULL;
}

int gct_ways_simulate(struct gct_ways *w, uint64_t each, uint64_t all)
{
	/* The tuner's favourites, which come first, leave something for the others. */
	struct effort e = {.each = each, .left = all, .rough = all};
	size_t i;
	int rc = 0;

	for (i = 0; i < w->n && !rc; i++) {
		rc = simulate(w, &w->list[i], &e);
		if (e.each > e.left / 4)
			e.each = e.left / 4;
	}
	gct_ways_sort(w);
	return rc;
}

void gct_ways_free(struct gct_ways *w)
{
	gci_free(w->list);
	w->list = NULL;
	w->n = w->cap = 0;
}

/* ---- the plan for people */

#define WIDTH      79
#define MOST_LINKS 12

static const char *time_text(const struct gct_plan_report *p, uint64_t ns, char out[16])
{
	return gci_format_time(ns / p->dilation, out, 16);
}

static struct gct_words words_of(const struct gct_plan_report *p)
{
	return (struct gct_words){p->nbytes, p->names, p->wires, p->dilation};
}

/* `text` in lines of at most WIDTH, each with `indent` spaces before it; percents stay with their
 * number. */
static void put_wrapped(struct gci_buf *out, int indent, const char *text)
{
	size_t room = (size_t)(WIDTH - indent), n;

	while (*text) {
		n = strlen(text);
		if (n > room)
			for (n = room; n && (text[n] != ' ' || text[n + 1] == '%');)
				n--;
		if (!n)
			n = strcspn(text, " ");
		gci_buf_printf(out, "%*s%.*s\n", indent, "", (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
}

static void put_why(const struct gct_plan_report *p, const struct gct_way *way,
	const struct gct_way *best, const char *before, struct gci_buf *out)
{
	struct gct_words words = words_of(p);
	struct gci_buf text = {0};

	gci_buf_printf(&text, "%s", before);
	gct_bottleneck_why(&way->facts, best ? &best->facts : NULL, &words, &text);
	put_wrapped(out, best ? 6 : 2, gci_buf_cstr(&text));
	gci_buf_free(&text);
}

static void put_head(const struct gct_plan_report *p, struct gci_buf *out)
{
	const struct gci_coll *c = p->coll;
	const struct gci_topo *t = c->topo;
	char bytes[16];
	int k;

	gci_buf_printf(out, "%s", gci_kind_name(c->kind));
	if (c->kind != GCI_BARRIER)
		gci_buf_printf(out, " of %s", gci_format_bytes(p->nbytes, bytes, 16));
	if (gci_kind_has_root(c->kind))
		gci_buf_printf(out, " %s rank %d (%s)",
			c->kind == GCI_REDUCE || c->kind == GCI_GATHER ? "to" : "from", c->root,
			p->names[c->root]);
	gci_buf_printf(out, ", %d rank%s in %d cluster%s\n", t->nranks, t->nranks > 1 ? "s" : "",
		t->nclusters, t->nclusters > 1 ? "s" : "");
	if (t->nclusters <= MOST_LINKS)
		for (k = 0; k < t->nclusters; k++) {
			uint64_t bps = t->nic_bps[k] ? t->nic_bps[k] : p->net->nic_bps[k];
			char rate[16];

			gci_buf_printf(out, "  %-16s %4d rank%s NICs %s%s\n", p->clusters[k],
				gci_topo_size(t, k), gci_topo_size(t, k) > 1 ? "s," : ", ",
				t->nic_bps[k] ? "" : "of unknown rate, taken for ",
				bps ? gci_format_rate(bps * p->dilation, rate, 16) : "endless");
		}
	put_wrapped(out, 0, p->basis);
	if (p->dilation > 1)
		gci_buf_printf(
			out, "as in a lab dilated by %u: times are divided by that\n", p->dilation);
}

/* The choice beside what else there is. */
static void put_others(const struct gct_plan_report *p, struct gci_buf *out)
{
	const struct gct_way *best = &p->ways->list[0];
	char how[GCI_CANDIDATE_NBYTES], t[16];

	if (gct_ways_find(p->ways, p->usual) != p->choice) {
		gci_candidate_print(p->usual, how);
		gci_buf_printf(out, "  without a table or an option, gridcoll takes %s\n", how);
	}
	if (best != p->choice && !*best->why_not && best->ns < p->choice->ns &&
		!gct_bottleneck_tie(p->choice->ns, best->ns)) {
		gci_candidate_print(&best->how, how);
		gci_buf_printf(out, "  %s would take %s (see gridcoll tune)\n", how,
			time_text(p, best->ns, t));
	}
}

static void put_choice(const struct gct_plan_report *p, struct gci_buf *out)
{
	const struct gci_sim_result *r = p->result;
	char how[GCI_CANDIDATE_NBYTES], t[2][16], bytes[2][16];

	gci_candidate_print(&p->choice->how, how);
	gci_buf_printf(out, "\nchoice: %s, %s\n", how, p->chosen_by);
	gci_buf_printf(out, "  predicted %s", time_text(p, p->choice->ns, t[0]));
	if (p->limit_ns)
		gci_buf_printf(out, ", %.2f x the physical limit of %s",
			(double)p->choice->ns / (double)p->limit_ns,
			time_text(p, p->limit_ns, t[1]));
	else if (r->nmessages)
		gci_buf_printf(out, "; the grid file does not tell what limits it");
	gci_buf_printf(out, "\n");
	put_others(p, out);
	gci_buf_printf(out, "  %" PRIu64 " message%s", r->nmessages, r->nmessages == 1 ? "" : "s");
	if (p->most_message && p->least_message == p->most_message)
		gci_buf_printf(out, " of %s", gci_format_bytes(p->most_message, bytes[0], 16));
	else if (p->most_message)
		gci_buf_printf(out, " of %s to %s",
			gci_format_bytes(p->least_message, bytes[0], 16),
			gci_format_bytes(p->most_message, bytes[1], 16));
	gci_buf_printf(out, ", %u window%s, temporary memory %s a rank\n", r->nwindows,
		r->nwindows == 1 ? "" : "s", gci_format_bytes(r->most_tmp_nbytes, bytes[0], 16));
	if (p->choice->has_facts && r->nmessages)
		put_why(p, p->choice, NULL, "what bounds it: ", out);
}

/* The cap on WAN senders of the choice, from a cluster to another. */
static int gct_plan_cap(const struct gct_plan_report *p, int from, int to)
{
	int cap = (int)p->coll->topo->cap[from * p->coll->topo->nclusters + to];
	int size = gci_topo_size(p->coll->topo, from);
	struct gci_coll c = *p->coll;

	gci_candidate_apply(&p->choice->how, &c);
	if (p->choice->how.algorithm->traits & GCI_PACKS)
		return cap ? cap : size;
	return gci_coll_senders(&c, from, to);
}

/* More senders than the cap says. */
static int is_over(const struct gct_plan_report *p, int from, int to)
{
	uint32_t n = p->result->senders[from * p->coll->topo->nclusters + to];

	return from != to && n > (uint32_t)gct_plan_cap(p, from, to);
}

static void put_link(const struct gct_plan_report *p, int from, int to, struct gci_buf *out)
{
	const struct gci_topo *t = p->coll->topo;
	int at = from * t->nclusters + to;
	uint64_t nbytes = p->result->wan_nbytes[at], bps = p->net->links[at].bps;
	char name[64], bytes[16], times[16] = "-", busy[16] = "-", cap[16] = "-";

	if (from == to)
		snprintf(name, sizeof(name), "inside %.24s", p->clusters[from]);
	else
		snprintf(name, sizeof(name), "%.24s > %.24s", p->clusters[from], p->clusters[to]);
	if (p->nbytes)
		snprintf(times, sizeof(times), "%.2f", (double)nbytes / (double)p->nbytes);
	if (from != to)
		snprintf(cap, sizeof(cap), "%d%s", gct_plan_cap(p, from, to),
			is_over(p, from, to) ? " *" : "");
	if (from != to && bps && p->choice->ns)
		snprintf(busy, sizeof(busy), "%.0f %%",
			(double)nbytes * 8e11 / (double)bps / (double)p->choice->ns);
	gci_buf_printf(out, "%-36s %9s %8s %8u %5s %6s\n", name,
		gci_format_bytes(nbytes, bytes, 16), times, p->result->senders[at], cap, busy);
}

/* Percent. */
static double busy_of(const struct gct_plan_report *p, int wire)
{
	uint64_t bps = gci_simnet_wire_bps(p->net, wire);

	return bps && p->choice->ns ? (double)gct_wire_nbytes(p->coll->topo, p->result, wire) *
					      8e11 / (double)bps / (double)p->choice->ns
				    : 0;
}

static int are_shared(const struct gci_topo *t)
{
	int i;

	for (i = 0; i < t->nclusters * t->nclusters; i++)
		if (t->links[i].nroute > 1)
			return 1;
	return 0;
}

/* Where paths are of several wires, what each of those has to carry, the busiest first. */
static void put_wires(const struct gct_plan_report *p, struct gci_buf *out)
{
	const struct gci_topo *t = p->coll->topo;
	double *busy = are_shared(t) ? gci_calloc((size_t)t->nwires, sizeof(*busy)) : NULL;
	int shown, i, at;
	char bytes[16];

	for (i = 0; busy && i < t->nwires; i++)
		busy[i] = busy_of(p, i);
	for (shown = 0; busy && shown < MOST_LINKS; shown++) {
		for (at = i = 0; i < t->nwires; i++)
			at = busy[i] > busy[at] ? i : at;
		if (busy[at] <= 0)
			break;
		gci_buf_printf(out, "%s%-36s %9s %29.0f %%\n", shown ? "" : "of that, by\n",
			p->wires[at],
			gci_format_bytes(gct_wire_nbytes(t, p->result, at), bytes, 16), busy[at]);
		busy[at] = 0;
	}
	gci_free(busy);
}

static void put_upgrade(const struct gct_plan_report *p, const struct gct_upgrade *u,
	const char *before, struct gci_buf *out)
{
	static const char *const where[] = {
		"on ", "for the NICs of ", "on all links", "for all NICs"};

	gci_buf_printf(out, "%s %s%s saves %.1f %%", before, where[u->what],
		u->what <= GCT_NICS ? name_of(p, u) : "", u->saves);
}

static void put_upgrades(const struct gct_plan_report *p, struct gci_buf *out)
{
	struct gci_buf text = {0};
	int i;

	if (p->nupgrades < 0 || !p->nbytes)
		return;
	gci_buf_printf(&text, "what would help: %d %% more", GCT_UPGRADE_PERCENT);
	for (i = 0; i < p->nupgrades; i++)
		put_upgrade(p, &p->upgrades[i], i ? "," : "", &text);
	if (!p->nupgrades)
		gci_buf_printf(&text, " for links, or for NICs, saves less than 1 %%");
	gci_buf_printf(out, "\n");
	put_wrapped(out, 0, gci_buf_cstr(&text));
	gci_buf_free(&text);
}

/* The links that are used, WANs before the clusters' insides, up to MOST_LINKS. */
static void put_links(const struct gct_plan_report *p, struct gci_buf *out)
{
	int n = p->coll->topo->nclusters, pass, i, shown = 0, left = 0, over = 0;

	if (!p->result->nmessages || !p->nbytes)
		return;
	gci_buf_printf(out, "\n%-36s %9s %8s %8s %5s %6s\n", "link", "bytes", "of all", "senders",
		"cap", "busy");
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < n * n; i++) {
			if ((i / n == i % n) != pass || !p->result->senders[i])
				continue;
			if (shown == MOST_LINKS) {
				left++;
				continue;
			}
			put_link(p, i / n, i % n, out);
			over |= is_over(p, i / n, i % n);
			shown++;
		}
	if (left)
		gci_buf_printf(out, "and %d more\n", left);
	put_wires(p, out);
	if (over)
		gci_buf_printf(out, "* this algorithm does not keep to the cap on WAN senders\n");
	put_upgrades(p, out);
}

static void put_way(
	const struct gct_plan_report *p, const struct gct_way *way, int place, struct gci_buf *out)
{
	char how[GCI_CANDIDATE_NBYTES], t[16], ratio[16] = "-";
	const struct gct_way *best = &p->ways->list[0], *known = gct_ways_known(p->ways);

	gci_candidate_print(&way->how, how);
	if (*way->why_not) {
		gci_buf_printf(out, "  -  %s\n", how);
		put_wrapped(out, 6, way->why_not);
		return;
	}
	if (p->limit_ns)
		snprintf(ratio, sizeof(ratio), "%.2f", (double)way->ns / (double)p->limit_ns);
	gci_buf_printf(out, "%3d%s %-44s %9s %7s%s\n", place, way == p->choice ? "*" : " ", how,
		time_text(p, way->ns, t), ratio,
		way != best && gct_bottleneck_tie(way->ns, best->ns) ? "  as fast" : "");
	if (way->has_facts && way != known && !gct_bottleneck_tie(way->ns, best->ns))
		put_why(p, way, known, "", out);
}

/* The same algorithm was faster with other parameters. */
static int was_shown(const struct gct_plan_report *p, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (p->ways->list[k].how.algorithm == p->ways->list[i].how.algorithm)
			return &p->ways->list[i] != p->choice;
	return 0;
}

void gct_plan_text(const struct gct_plan_report *p, struct gci_buf *out)
{
	size_t i, left = 0;
	int place = 0;

	put_head(p, out);
	put_choice(p, out);
	put_links(p, out);
	gci_buf_printf(
		out, "\n  #  %-44s %9s %7s\n", "simulated (* the choice)", "predicted", "x limit");
	for (i = 0; i < p->ways->n; i++)
		if (was_shown(p, i))
			left++;
		else
			put_way(p, &p->ways->list[i], ++place, out);
	if (left)
		gci_buf_printf(out,
			"%zu more with other parameters are no faster, or too long to simulate "
			"(--json has all)\n",
			left);
}
