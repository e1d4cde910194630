/* SPDX-License-Identifier: MIT
 * The plan for programs. Times are divided by the dilation. */
#include "tools/json_out.h"
#include "tools/plan.h"

#include <string.h>

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
	struct gct_words words = {p->nbytes, p->names, p->clusters, p->dilation};
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
		gct_facts_why(&w->facts, w == known ? NULL : &known->facts, &words, &why);
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
	for (i = 0; i < p->ways->n; i++)
		gct_json_append(ways, way_json(p, &p->ways->list[i], &failed), &failed);
	gct_json_set(o, "ways", ways, &failed);
	if (schedule)
		gct_json_set(o, "schedule", lines_json(schedule, &failed), &failed);
	return gct_json_print(o, failed, out);
}
