/* SPDX-License-Identifier: MIT
 * The plan for people: 80 columns. */
#include "base/mem.h"
#include "base/units.h"
#include "tools/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WIDTH      79
#define MOST_LINKS 12

static const char *time_text(const struct gct_plan_report *p, uint64_t ns, char out[16])
{
	return gci_format_time(ns / p->dilation, out, 16);
}

static struct gct_words words_of(const struct gct_plan_report *p)
{
	return (struct gct_words){p->nbytes, p->names, p->clusters, p->dilation};
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
	gct_facts_why(&way->facts, best ? &best->facts : NULL, &words, &text);
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
		!gct_facts_tie(p->choice->ns, best->ns)) {
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

int gct_plan_cap(const struct gct_plan_report *p, int from, int to)
{
	struct gci_coll c = *p->coll;

	gci_candidate_apply(&p->choice->how, &c);
	return gci_coll_senders(&c, from, to);
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
			p->choice->how.algorithm->traits & GCI_CAPS_SENDERS ? "" : " *");
	if (from != to && bps && p->choice->ns)
		snprintf(busy, sizeof(busy), "%.0f %%",
			(double)nbytes * 8e11 / (double)bps / (double)p->choice->ns);
	gci_buf_printf(out, "%-36s %9s %8s %8u %5s %6s\n", name,
		gci_format_bytes(nbytes, bytes, 16), times, p->result->senders[at], cap, busy);
}

/* The links that are used, WANs before the clusters' insides, up to MOST_LINKS. */
static void put_links(const struct gct_plan_report *p, struct gci_buf *out)
{
	int n = p->coll->topo->nclusters, pass, i, shown = 0, left = 0, uncapped = 0;

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
			uncapped |= !pass;
			shown++;
		}
	if (left)
		gci_buf_printf(out, "and %d more\n", left);
	if (uncapped && !(p->choice->how.algorithm->traits & GCI_CAPS_SENDERS))
		gci_buf_printf(out, "* this algorithm does not keep to the cap on WAN senders\n");
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
		way != best && gct_facts_tie(way->ns, best->ns) ? "  as fast" : "");
	if (way->has_facts && way != known && !gct_facts_tie(way->ns, best->ns))
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
