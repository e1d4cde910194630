/* SPDX-License-Identifier: MIT
 * Ranks that others start: what they say of themselves is all that is known of them, and the end of
 * their control connection the only sign of theirs. */
#include "launcher/rdv_internal.h"

#include <stdio.h>

int gci_rdv_is_gone(const struct gci_rdv *r, uint32_t rank)
{
	const struct rdv_rank *k = &r->ranks[rank];

	if (!gci_rdv_is_guest(r, rank))
		return 0;
	if (k->joined)
		return k->lost || k->exited;
	/* Without a job there is nobody to wait for: ranks of ours have ended, and none joined. */
	return r->judged || (!r->njoined && r->config.nguests < r->config.size);
}

/* It is the job's fault: others would wait in vain for the rank that this one should have been. */
static int refuse_all(struct gci_rdv *r, struct gci_rdv_conn *c, const char *why, uint64_t now_ns)
{
	gci_rdv_give_up(r, GCOLL_ERR_INVAL, why, now_ns);
	gci_rdv_turn_away(r, c, GCOLL_ERR_INVAL, why);
	return 0;
}

static int admit_guest(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m, uint64_t now_ns)
{
	char why[GCI_CTL_TEXT];

	if (m->size && m->size != r->config.size) {
		snprintf(why, sizeof(why),
			"rank %u%s%s was started as one of %u (GRIDCOLL_SIZE), "
			"but gridcoll-run serves a job of %u (-n): expected the same number",
			m->rank, *m->host ? " on " : "", m->host, m->size, r->config.size);
		return refuse_all(r, c, why, now_ns);
	}
	if (r->config.arrive &&
		r->config.arrive(r->config.guests, m->rank, m->host, m->cluster, why, sizeof(why)))
		return refuse_all(r, c, why, now_ns);
	return 1;
}

/* A process that comes as a rank that is there may be one too many, or another rank that was told a
 * wrong number. */
static void tell_of_double(struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m)
{
	const uint32_t rank = m->rank;
	char why[GCI_CTL_TEXT];

	if (!gci_rdv_is_guest(r, rank)) {
		snprintf(why, sizeof(why), "rank %u has joined already", rank);
	} else {
		snprintf(why, sizeof(why),
			"rank %u has joined already, from another process: "
			"expected a number of its own for each "
			"(GRIDCOLL_RANK, GRIDCOLL_RANK_FROM or --rank-from)",
			rank);
		gci_buf_printf(&r->news, "a second process%s%s came as rank %u\n",
			*m->host ? " on " : "", m->host, rank);
	}
	gci_rdv_turn_away(r, c, GCOLL_ERR_INVAL, why);
}

/* A stranger with the secret and a wrong number is no failure of the job, before it begins or later. */
static void turn_away_too_high(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m)
{
	char why[GCI_CTL_TEXT];

	snprintf(why, sizeof(why),
		"a process%s%s came as rank %u, but gridcoll-run serves a job of %u ranks (-n), "
		"from 0",
		*m->host ? " on " : "", m->host, m->rank, r->config.size);
	gci_buf_printf(&r->news, "turned away: %s\n", why);
	gci_rdv_turn_away(r, c, GCOLL_ERR_INVAL, why);
}

int gci_rdv_admit(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m, uint64_t now_ns)
{
	if (m->rank >= r->config.size) {
		turn_away_too_high(r, c, m);
		return 0;
	}
	if (r->ranks[m->rank].joined) {
		tell_of_double(r, c, m);
		return 0;
	}
	if (r->ranks[m->rank].missing) { /* it was started after all */
		gci_rdv_turn_away(r, c, GCOLL_ERR_ABORTED, "the job goes on without this rank");
		return 0;
	}
	return gci_rdv_is_guest(r, m->rank) ? admit_guest(r, c, m, now_ns) : 1;
}
