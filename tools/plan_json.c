/* SPDX-License-Identifier: MIT
 * The plan for programs. Times are divided by the dilation. */
#include "base/mem.h"
#include "tools/plan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *whole(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

/* Takes over `v`; json_object_set_new does nothing where that is NULL, but tells. */
static void set(json_t *object, const char *key, json_t *v, int *failed)
{
	*failed |= json_object_set_new(object, key, v) != 0;
}

static void append(json_t *array, json_t *v, int *failed)
{
	*failed |= json_array_append_new(array, v) != 0;
}

static json_t *link_json(const struct gct_plan_report *p, int from, int to, int *failed)
{
	json_t *o = json_object();
	int at = from * p->coll->topo->nclusters + to;

	set(o, "from", json_string(p->clusters[from]), failed);
	set(o, "to", json_string(p->clusters[to]), failed);
	set(o, "bytes", whole(p->result->wan_nbytes[at]), failed);
	set(o, "senders", whole(p->result->senders[at]), failed);
	if (from != to) {
		set(o, "cap", json_integer(gct_plan_cap(p, from, to)), failed);
		set(o, "payload_bps", whole(p->net->links[at].bps * p->dilation), failed);
	}
	return o;
}

static json_t *links_json(const struct gct_plan_report *p, int *failed)
{
	json_t *list = json_array();
	int n = p->coll->topo->nclusters, i;

	for (i = 0; i < n * n; i++)
		if (p->result->senders[i])
			append(list, link_json(p, i / n, i % n, failed), failed);
	return list;
}

static json_t *way_json(const struct gct_plan_report *p, const struct gct_way *w, int *failed)
{
	const struct gct_way *best = &p->ways->list[0];
	struct gct_words words = {p->nbytes, p->names, p->clusters, p->dilation};
	char how[GCI_CANDIDATE_NBYTES];
	struct gci_buf why = {0};
	json_t *o = json_object();

	gci_candidate_print(&w->how, how);
	set(o, "algorithm", json_string(how), failed);
	if (*w->why_not) {
		set(o, "not_run", json_string(w->why_not), failed);
		return o;
	}
	set(o, "predicted_ns", whole(w->ns / p->dilation), failed);
	if (w->has_facts && (w == best || best->has_facts)) {
		gct_facts_why(&w->facts, w == best ? NULL : &best->facts, &words, &why);
		set(o, "why", json_string(gci_buf_cstr(&why)), failed);
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

	set(o, "chosen_by", json_string(p->chosen_by), failed);
	set(o, "messages", whole(p->result->nmessages), failed);
	set(o, "least_message_bytes", whole(p->least_message), failed);
	set(o, "most_message_bytes", whole(p->most_message), failed);
	set(o, "windows", whole(p->result->nwindows), failed);
	set(o, "temporary_bytes", whole(p->result->most_tmp_nbytes), failed);
	return o;
}

static json_t *lines_json(const char *text, int *failed)
{
	json_t *list = json_array();
	size_t n;

	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		append(list, json_stringn(text, n), failed);
	}
	return list;
}

int gct_plan_json(const struct gct_plan_report *p, const char *schedule, struct gci_buf *out)
{
	json_t *o = json_object(), *ways = json_array();
	int failed = 0;
	char *text;
	size_t i;

	set(o, "version", json_integer(1), &failed);
	set(o, "operation", json_string(gci_kind_name(p->coll->kind)), &failed);
	set(o, "bytes", whole(p->nbytes), &failed);
	set(o, "ranks", json_integer(p->coll->topo->nranks), &failed);
	set(o, "clusters", json_integer(p->coll->topo->nclusters), &failed);
	if (gci_kind_has_root(p->coll->kind))
		set(o, "root", json_integer(p->coll->root), &failed);
	set(o, "dilation", whole(p->dilation), &failed);
	set(o, "basis", json_string(p->basis), &failed);
	set(o, "limit_ns", whole(p->limit_ns / p->dilation), &failed);
	set(o, "choice", choice_json(p, &failed), &failed);
	set(o, "usual", usual_json(p), &failed);
	set(o, "links", links_json(p, &failed), &failed);
	for (i = 0; i < p->ways->n; i++)
		append(ways, way_json(p, &p->ways->list[i], &failed), &failed);
	set(o, "ways", ways, &failed);
	if (schedule)
		set(o, "schedule", lines_json(schedule, &failed), &failed);
	text = failed ? NULL : json_dumps(o, JSON_INDENT(1));
	if (text)
		gci_buf_printf(out, "%s\n", text);
	failed |= !text;
	free(text);
	json_decref(o);
	return failed || out->failed ? GCOLL_ERR_NOMEM : 0;
}
