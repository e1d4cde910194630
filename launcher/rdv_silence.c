/* SPDX-License-Identifier: MIT
 * Ranks of which nothing is heard: told of after a quarter of the time after which they count as
 * dead, and blamed after all of it. */
#include "base/mem.h"
#include "launcher/rdv_internal.h"

#include <stdio.h>

static double seconds(uint64_t ns)
{
	return (double)(ns / (GCI_NS_PER_S / 10)) / 10;
}

static uint64_t warn_ns(const struct gci_rdv *r)
{
	return r->config.dead_ns / 4;
}

/* Those whose silence began in the same heartbeat belong together: one cause, one message. When one
 * has been silent for `ns`, so long the others have. */
static uint64_t together_ns(const struct gci_rdv *r, uint64_t ns)
{
	return ns > 2 * r->config.beat_ns ? ns - 2 * r->config.beat_ns : ns;
}

static void tell_of_missed(struct gci_rdv *r, uint64_t now_ns)
{
	uint32_t *list = gci_calloc(r->config.size, sizeof(*list));
	char who[GCI_RANKLIST_NBYTES];
	uint32_t i, n = 0;

	for (i = 0; list && i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];

		if (!gci_rdv_counts(r, i) || !k->joined || k->lost || k->missed || k->bye ||
			k->exited || now_ns - k->heard_ns < together_ns(r, warn_ns(r)))
			continue;
		k->missed = 1;
		list[n++] = i;
	}
	if (n)
		gci_buf_printf(&r->news, "%s: no sign of life for %g s; dead after %g s\n",
			gci_ranklist(list, n, r->config.names, who), seconds(warn_ns(r)),
			seconds(r->config.dead_ns));
	gci_free(list);
}

void gci_rdv_note_heard(const struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (r->started && now_ns - k->heard_ns > r->config.dead_ns / 2)
		k->back_ns = now_ns;
	k->heard_ns = now_ns;
}

void gci_rdv_check_unreached(const struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (k->told && (k->blamed < 0 || k->blamed == (int32_t)rank))
		return;
	if (now_ns - k->heard_ns > r->config.dead_ns / 2 ||
		(k->back_ns && now_ns - k->back_ns < r->config.grace_ns))
		k->silent = 1;
}

/* Ranks that others start may come hours later. Once, so that nobody waits for the time to pass that
 * has not begun. */
static void tell_of_nobody(struct gci_rdv *r, uint64_t now_ns)
{
	if (r->njoined || r->told_of_none || r->config.nguests < r->config.size ||
		now_ns - r->began_ns < r->config.start_ns)
		return;
	r->told_of_none = 1;
	gci_buf_printf(&r->news,
		"no rank has joined within %g s; waiting on, --start-timeout begins with the "
		"first\n",
		seconds(r->config.start_ns));
}

void gci_rdv_check_silence(struct gci_rdv *r, uint64_t now_ns)
{
	uint32_t i;
	int any_new = 0;

	r->silence_at_ns = GCI_NEVER;
	if (gci_rdv_is_over(r))
		return;
	tell_of_nobody(r, now_ns);
	if (r->njoined && !r->started && now_ns - r->joined_ns >= r->config.start_ns) {
		r->start_timed_out = 1;
		gci_rdv_arm(r, now_ns, 0);
	}
	/* Ranks beat once they have START; until then start_ns is the limit. */
	for (i = 0; r->started && i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];
		uint64_t dead_at_ns = k->heard_ns + r->config.dead_ns;

		if (!k->joined || k->lost || k->silent || (k->bye && k->exited) ||
			!gci_rdv_counts(r, i))
			continue;
		if (now_ns - k->heard_ns < warn_ns(r))
			k->missed = 0;
		else
			any_new |= !k->missed;
		if (now_ns >= dead_at_ns) {
			k->silent = r->deaths = 1;
			gci_rdv_arm(r, now_ns, 0); /* other witnesses have had time enough */
		} else if (dead_at_ns < r->silence_at_ns) {
			r->silence_at_ns = dead_at_ns;
		}
	}
	if (any_new && !r->judged)
		tell_of_missed(r, now_ns);
}

void gci_rdv_blame_silent(struct gci_rdv *r, uint64_t now_ns, struct gci_rdv_verdict *v)
{
	uint64_t long_ns = together_ns(r, r->config.dead_ns);
	uint32_t *list = gci_calloc(r->config.size, sizeof(*list));
	uint32_t i, n = 0;

	for (i = 0; i < r->config.size; i++) {
		struct rdv_rank *k = &r->ranks[i];

		if (!gci_rdv_counts(r, i))
			continue;
		k->silent |= k->joined && !k->exited && !k->lost && now_ns - k->heard_ns > long_ns;
		if (k->silent && list)
			list[n++] = i;
	}
	if (n)
		gci_ranklist(list, n, r->config.names, v->who);
	v->status = GCOLL_ERR_PEER;
	snprintf(v->cause, sizeof(v->cause), "no sign of life for %g s (%s, or %s stopped)",
		seconds(r->config.dead_ns),
		n > 1 ? "their hosts or their network link are down"
		      : "its host or its network link is down",
		n > 1 ? "they are" : "it is");
	gci_free(list);
}
