/* SPDX-License-Identifier: MIT
 * Findings for programs. */
#include "tools/doctor.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *whole(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

/* Takes over `v`; json_object_set_new does nothing where that is NULL, but tells. */
static void set(json_t *object, const char *key, json_t *v, int *failed)
{
	*failed |= json_object_set_new(object, key, v) != 0;
}

/* A key that is missing says that there is nothing to say. */
static void set_text(json_t *object, const char *key, const char *text, int *failed)
{
	if (text)
		set(object, key, json_string(text), failed);
}

static json_t *finding_json(const struct gct_finding *g, int *failed)
{
	json_t *o = json_object();

	set(o, "id", json_string(g->id), failed);
	set(o, "level", json_string(gct_level_name(g->level)), failed);
	set_text(o, "what", g->what, failed);
	set_text(o, "is", g->is, failed);
	set_text(o, "should", g->should, failed);
	set_text(o, "why", g->why, failed);
	set_text(o, "command", g->command, failed);
	set_text(o, "sysctl", g->line, failed);
	return o;
}

static json_t *link_json(const struct gct_need *l, int *failed)
{
	json_t *o = json_object();

	set(o, "link", json_string(l->name), failed);
	set(o, "rate_bps", whole(l->flight.bps), failed);
	set(o, "rtt_ns", whole(l->flight.rtt_ns), failed);
	set(o, "in_flight_bytes", whole(l->flight.nbytes), failed);
	set(o, "streams", whole(l->flight.streams), failed);
	set(o, "stream_bytes", whole(l->flight.stream_nbytes), failed);
	return o;
}

static void fill(json_t *o, const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, int *failed)
{
	json_t *links = json_array(), *findings = json_array();
	size_t i;

	for (i = 0; i < n->nlinks; i++)
		*failed |= json_array_append_new(links, link_json(&n->links[i], failed)) != 0;
	for (i = 0; i < r->n; i++)
		*failed |= json_array_append_new(findings, finding_json(&r->list[i], failed)) != 0;
	set(o, "version", json_integer(1), failed);
	set(o, "host", json_string(f->host), failed);
	set(o, "kernel", json_string(f->kernel), failed);
	if (n->has_grid)
		set(o, "grid", json_string(n->file), failed);
	set(o, "problems", whole(gct_report_count(r, GCT_PROBLEM)), failed);
	set(o, "advice", whole(gct_report_count(r, GCT_ADVICE)), failed);
	set(o, "links", links, failed);
	set(o, "findings", findings, failed);
}

int gct_doctor_json(const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f, struct gci_buf *out)
{
	json_t *o = json_object();
	int failed = 0;
	char *text;

	fill(o, r, n, f, &failed);
	text = failed ? NULL : json_dumps(o, JSON_INDENT(1));
	if (text)
		gci_buf_printf(out, "%s\n", text);
	failed |= !text;
	free(text);
	json_decref(o);
	return failed || out->failed ? GCOLL_ERR_NOMEM : 0;
}
