/* SPDX-License-Identifier: MIT
 * What ranks that have joined say, to the launcher or through it to each other. */
#include "launcher/rdv_internal.h"

/* Only a rank that has left will never do what another waits for; others may be about to. */
static void pass_on_wait(struct gci_rdv *r, uint32_t from, const struct gci_ctl_wait *w)
{
	struct gci_ctl_wait there = *w;
	int32_t to = gci_rdv_job_rank(r, (int32_t)w->rank);
	struct gci_rdv_conn *c;

	if (to < 0 || !r->ranks[to].bye)
		return;
	c = r->ranks[to].conn;
	if (!c || c->closing)
		return;
	there.rank = (uint32_t)gci_rdv_number(r, (int32_t)from);
	gci_ctl_put_wait(&c->out, &there);
	gci_rdv_mark_dirty(r, c);
}

static void pass_on_ask(struct gci_rdv *r, uint32_t from, const struct gci_ctl_call *m)
{
	struct rdv_rank *k = &r->ranks[from];
	struct gci_ctl_call there = *m;
	int32_t to = gci_rdv_job_rank(r, (int32_t)m->rank);
	struct gci_rdv_conn *c;

	if (k->asks || to < 0) /* the first word counts, as of failures */
		return;
	c = r->ranks[to].conn;
	if (!c || c->closing)
		return;
	k->asks = 1;
	k->asked.rank = (uint32_t)to;
	k->asked.comm = m->comm;
	k->asked.op = m->op;
	there.rank = (uint32_t)gci_rdv_number(r, (int32_t)from);
	gci_ctl_put_call(&c->out, GCI_CTL_ASK, &there);
	gci_rdv_mark_dirty(r, c);
}

static void take_answer(struct gci_rdv *r, uint32_t from, const struct gci_ctl_call *m)
{
	int32_t by = gci_rdv_job_rank(r, (int32_t)m->rank);
	const struct rdv_rank *k = by >= 0 ? &r->ranks[by] : NULL;

	if (k && k->asks && k->asked.rank == from && k->asked.comm == m->comm &&
		k->asked.op == m->op)
		gci_rdv_answer(r, (uint32_t)by, m->text);
}

static void take_flows(struct gci_rdv *r, uint32_t from, struct gci_ctl_flows *m)
{
	uint32_t i;

	for (i = 0; i < m->n; i++) {
		m->flows[i].peer = gci_rdv_job_rank(r, m->flows[i].peer);
		if (m->flows[i].peer < 0)
			return; /* of an epoch that is over */
	}
	if (r->config.flows)
		r->config.flows(r->config.user, from, m);
}

/* To a question that nobody will answer any more. Whoever asks learned of the first failure from
 * one ABORT; the second tells that there is nothing to go on with. */
static int turned_away(struct gci_rdv *r, struct gci_rdv_conn *c)
{
	if (!r->config.survives)
		return 0;
	if (gci_rdv_is_over(r))
		gci_rdv_turn_away(r, c, GCOLL_ERR_ABORTED, r->verdict.sentence);
	else if (!gci_rdv_counts(r, (uint32_t)c->rank))
		gci_rdv_turn_away(r, c, GCOLL_ERR_ABORTED, "the job goes on without this rank");
	return c->closing;
}

static void take_bye(struct gci_rdv *r, uint32_t from)
{
	struct rdv_rank *k = &r->ranks[from];

	if (k->bye || !gci_rdv_counts(r, from))
		return;
	k->bye = 1;
	gci_members_leaves(&r->members, from);
	if (++r->nbye == r->members.n)
		gci_rdv_send_plain(r, GCI_CTL_BYE);
}

void gci_rdv_on_message(
	struct gci_rdv *r, struct gci_rdv_conn *c, struct gci_ctl_message *m, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[c->rank];

	k->link.got += (uint64_t)gci_ctl_counts(m->type);
	switch (m->type) {
	case GCI_CTL_BEAT:
		if (!gci_ctl_link_acked(&k->link, m->got.n))
			break;
		gci_rdv_tell(r, (uint32_t)c->rank, c->rank, GCOLL_ERR_PROTO,
			"has heard more messages than there were", now_ns);
		gci_rdv_drop(r, c);
		break;
	case GCI_CTL_FAIL:
		gci_rdv_tell(r, (uint32_t)c->rank, gci_rdv_job_rank(r, m->failure.rank),
			m->failure.status, m->failure.text, now_ns);
		break;
	case GCI_CTL_BYE:
		take_bye(r, (uint32_t)c->rank);
		break;
	case GCI_CTL_ASK:
		pass_on_ask(r, (uint32_t)c->rank, &m->call);
		break;
	case GCI_CTL_CALLED:
		take_answer(r, (uint32_t)c->rank, &m->call);
		break;
	case GCI_CTL_REPORT:
		if (r->config.report)
			r->config.report(r->config.user, (uint32_t)c->rank, &m->report);
		break;
	case GCI_CTL_FLOWS:
		take_flows(r, (uint32_t)c->rank, &m->flows);
		break;
	case GCI_CTL_AGREE:
		if (!turned_away(r, c))
			gci_rdv_on_agree(r, (uint32_t)c->rank, &m->agree);
		break;
	case GCI_CTL_SHRINK:
		if (!turned_away(r, c))
			gci_rdv_on_shrink(r, (uint32_t)c->rank, &m->survivors, now_ns);
		break;
	case GCI_CTL_WAIT:
		pass_on_wait(r, (uint32_t)c->rank, &m->wait);
		break;
	default:
		gci_rdv_tell(r, (uint32_t)c->rank, c->rank, GCOLL_ERR_PROTO,
			"sent a control message that only the launcher sends", now_ns);
		gci_rdv_drop(r, c);
	}
}
