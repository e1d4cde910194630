/* SPDX-License-Identifier: MIT */
#include "tools/explain_report.h"

#include "base/units.h"
#include "tools/json_out.h"

#include <inttypes.h>
#include <stdio.h>

/* "2 kyoto > tokyo", "1 inside kyoto", "3 over WANs", "computing" */
void gct_explain_part_name(const struct gct_part *p, const char *const *clusters, char out[64])
{
	if (!p->phase)
		snprintf(out, 64, "copies, reductions");
	else if (p->from < 0)
		snprintf(out, 64, "%u %s", p->phase, p->wan ? "over WANs" : "inside clusters");
	else if (p->from == p->to)
		snprintf(out, 64, "%u inside %.20s", p->phase, clusters[p->from]);
	else
		snprintf(out, 64, "%u %.20s > %.20s", p->phase, clusters[p->from], clusters[p->to]);
}

static double off_percent(uint64_t is, uint64_t was)
{
	return was ? ((double)is / (double)was - 1) * 100 : 0;
}

static void put_head(const struct gct_explain_report *r, struct gci_buf *out)
{
	const struct gct_trace *t = r->trace;
	char how[GCI_CANDIDATE_NBYTES], bytes[16], was[16], is[16];

	gci_candidate_print(&t->how, how);
	gci_buf_printf(out, "%s of %s by %s on %d ranks\n%s\n", gci_kind_name(t->kind),
		gci_format_bytes(r->nbytes, bytes, 16), how, t->nranks, r->basis);
	if (t->dilation > 1)
		gci_buf_printf(out, "run in a lab dilated by %u: times are divided by that\n",
			t->dilation);
	gci_buf_printf(out, "\npredicted %s, measured %s: %+.1f %%\n",
		gci_format_time(r->predicted_ns / t->dilation, was, 16),
		gci_format_time(t->ns / t->dilation, is, 16), off_percent(t->ns, r->predicted_ns));
	if (r->left_out)
		gci_buf_printf(out,
			"below without %u window%s in the middle, "
			"whose steps are not simulated one by one\n",
			r->left_out, r->left_out > 1 ? "s" : "");
}

static void put_when(
	const struct gct_explain_report *r, const struct gct_when *w, struct gci_buf *out)
{
	char t[3][16];
	uint32_t k = r->trace->dilation;

	gci_buf_printf(out, " %7s %7s %7s", gci_format_time(w->start_ns / k, t[0], 16),
		gci_format_time(w->end_ns / k, t[1], 16),
		gci_format_time(w->busy_ns / k, t[2], 16));
}

static void put_worst(const struct gct_explain_report *r, struct gci_buf *out)
{
	const struct gct_explanation *x = r->x;
	uint32_t k = r->trace->dilation;
	char name[64], was[16], is[16];
	const struct gct_part *p;

	if (x->worst < 0) {
		gci_buf_printf(out, "\nno phase takes longer or shorter than predicted by more "
				    "than 2 %% of the whole\n");
	} else {
		p = &x->parts[x->worst];
		gct_explain_part_name(p, r->clusters, name);
		gci_buf_printf(out,
			"\nthey part most in \"%s\": it takes %s from start to end,\n"
			"where %s was predicted\n",
			name, gci_format_time((p->actual.end_ns - p->actual.start_ns) / k, is, 16),
			gci_format_time(
				(p->predicted.end_ns - p->predicted.start_ns) / k, was, 16));
	}
	if (x->late_rank >= 0)
		gci_buf_printf(out, "of all ranks, rank %d (%s) is farthest off: it ends %s %s\n",
			x->late_rank, r->trace->hosts[x->late_rank],
			gci_format_time((uint64_t)llabs(x->late_ns) / k, was, 16),
			x->late_ns < 0 ? "early" : "late");
}

void gct_explain_text(const struct gct_explain_report *r, struct gci_buf *out)
{
	char name[64], bytes[16];
	size_t i;

	put_head(r, out);
	gci_buf_printf(out, "\n%-20s %8s  %-23s %-23s\n%-20s %8s %7s %7s %7s %7s %7s %7s\n", "", "",
		"     predicted", "     actual", "phase", "bytes", "start", "end", "busy", "start",
		"end", "busy");
	for (i = 0; i < r->x->n; i++) {
		const struct gct_part *p = &r->x->parts[i];

		gct_explain_part_name(p, r->clusters, name);
		gci_buf_printf(out, "%-20s %8s", name, gci_format_bytes(p->nbytes, bytes, 16));
		put_when(r, &p->predicted, out);
		put_when(r, &p->actual, out);
		gci_buf_printf(out, "\n");
	}
	put_worst(r, out);
}

static json_t *when_json(const struct gct_when *w, uint32_t k)
{
	return json_pack("{s:I, s:I, s:I}", "start_ns", (json_int_t)(w->start_ns / k), "end_ns",
		(json_int_t)(w->end_ns / k), "busy_ns", (json_int_t)(w->busy_ns / k));
}

static json_t *part_json(const struct gct_explain_report *r, const struct gct_part *p)
{
	char name[64];

	gct_explain_part_name(p, r->clusters, name);
	return json_pack("{s:s, s:i, s:b, s:I, s:I, s:o, s:o}", "name", name, "phase",
		(int)p->phase, "wan", p->wan, "messages", (json_int_t)p->nmessages, "bytes",
		(json_int_t)p->nbytes, "predicted", when_json(&p->predicted, r->trace->dilation),
		"actual", when_json(&p->actual, r->trace->dilation));
}

int gct_explain_json(const struct gct_explain_report *r, struct gci_buf *out)
{
	const struct gct_trace *t = r->trace;
	json_t *parts = json_array(), *root;
	char how[GCI_CANDIDATE_NBYTES];
	int failed = 0;
	size_t i;

	gci_candidate_print(&t->how, how);
	for (i = 0; i < r->x->n; i++)
		gct_json_append(parts, part_json(r, &r->x->parts[i]), &failed);
	root = json_pack("{s:i, s:s, s:s, s:I, s:i, s:I, s:s, s:I, s:I, s:i, s:i, s:I, s:o}",
		"version", 1, "operation", gci_kind_name(t->kind), "algorithm", how, "bytes",
		(json_int_t)r->nbytes, "ranks", t->nranks, "dilation", (json_int_t)t->dilation,
		"basis", r->basis, "predicted_ns", (json_int_t)(r->predicted_ns / t->dilation),
		"measured_ns", (json_int_t)(t->ns / t->dilation), "worst_phase", r->x->worst,
		"late_rank", r->x->late_rank, "late_ns",
		(json_int_t)(r->x->late_ns / (int64_t)t->dilation), "phases", parts);
	return gct_json_print(root, failed, out);
}
