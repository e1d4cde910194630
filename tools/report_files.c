/* SPDX-License-Identifier: MIT
 * Files on their way into a report. */
#include "base/mem.h"
#include "tools/report_impl.h"
#include "tools/trace_file.h"

#include <string.h>

int gct_html_knows(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strcmp(name, "grid") || (dot && (!strcmp(dot, ".json") || !strcmp(dot, ".trace")));
}

static int nomem(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

static int add_grid(struct gct_html *r, const char *text, size_t len, struct gci_error *e)
{
	struct gci_grid g;
	int rc = gci_grid_parse(&g, text, len, "grid", e);

	if (rc)
		return rc;
	gci_grid_free(&g);
	gci_free(r->grid);
	r->grid = gci_strndup(text, len);
	r->grid_len = len;
	return r->grid ? 0 : nomem(e);
}

/* Whether it is a run on this grid is seen when the page is made: then the grid is known. */
static int add_trace(
	struct gct_html *r, const char *name, const char *text, size_t len, struct gci_error *e)
{
	struct gct_html_text *t;
	struct gct_trace trace;
	int rc = gct_trace_parse(&trace, text, len, name, e);

	if (rc)
		return rc;
	gct_trace_free(&trace);
	if (gci_grow_by_one(&r->traces, r->ntraces, sizeof(*r->traces)))
		return nomem(e);
	t = &r->traces[r->ntraces++];
	*t = (struct gct_html_text){gci_strdup(name), gci_strndup(text, len), len};
	return t->name && t->text ? 0 : nomem(e);
}

int gct_html_leave_out(struct gct_html *r, const char *why)
{
	if (gci_grow_by_one(&r->left_out, r->nleft_out, sizeof(*r->left_out)))
		return GCOLL_ERR_NOMEM;
	r->left_out[r->nleft_out] = gci_strdup(why);
	return r->left_out[r->nleft_out++] ? 0 : GCOLL_ERR_NOMEM;
}

int gct_html_add(
	struct gct_html *r, const char *name, const char *text, size_t len, struct gci_error *e)
{
	const char *dot = strrchr(name, '.');
	int rc;

	if (!strcmp(name, "grid"))
		rc = add_grid(r, text, len, e);
	else if (dot && !strcmp(dot, ".trace"))
		rc = add_trace(r, name, text, len, e);
	else
		rc = gct_html_json(r, name, text, len, e);
	if (!rc || rc == GCOLL_ERR_NOMEM)
		return rc;
	return gct_html_leave_out(r, e->text) ? nomem(e) : rc;
}

void gct_html_free(struct gct_html *r)
{
	size_t i;

	for (i = 0; i < r->ncases; i++)
		gct_html_free_case(&r->cases[i]);
	for (i = 0; i < r->nplans; i++)
		gct_html_free_plan(&r->plans[i]);
	for (i = 0; i < r->nsources; i++) {
		gci_free(r->sources[i].name);
		gci_free(r->sources[i].lab);
	}
	for (i = 0; i < r->ntraces; i++) {
		gci_free(r->traces[i].name);
		gci_free(r->traces[i].text);
	}
	for (i = 0; i < r->nleft_out; i++)
		gci_free(r->left_out[i]);
	gci_free(r->cases);
	gci_free(r->plans);
	gci_free(r->sources);
	gci_free(r->traces);
	gci_free(r->left_out);
	gci_free(r->grid);
	memset(r, 0, sizeof(*r));
}
