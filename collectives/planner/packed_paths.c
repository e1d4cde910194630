/* SPDX-License-Identifier: MIT
 * Packings of paths: scatter, gather, alltoall. */
#include "base/clock.h"
#include "collectives/planner/emission.h"

enum { PHASE_UP };

/* A segment of a block on its way from one rank to another. */
struct parcel {
	int from, to;
	uint64_t i;      /* segment */
	uint64_t number; /* of all of the operation's */
	double nth;      /* of its like, from 0 to 1: when it is to go */
};

/* By which hosts, and when from each. */
static const struct gci_column *route_parcel(
	struct gci_emission *e, const struct parcel *x, uint64_t len, int *hop, double *key)
{
	const struct gci_coll *c = e->c;
	int turned = gci_packed_is_turned(c->kind), k, n;
	int a = e->net.class_of[turned ? x->to : x->from],
	    b = e->net.class_of[turned ? x->from : x->to];
	const struct gci_column *col = &e->p->packing.columns[gci_emission_next_column(
		e, e->commodity[a * e->net.nclasses + b])];
	double left = e->ns - col->delay_ns;

	n = col->nway;
	for (k = 1; k < n - 1; k++)
		hop[turned ? n - 1 - k : k] =
			gci_emission_choose_host(e, col->way[k], gci_emission_weight(e, len));
	hop[0] = x->from;
	hop[n - 1] = x->to;
	key[0] = left > 0 ? left * x->nth : 0;
	for (k = 1; k < n; k++)
		key[k] = key[k - 1] +
			 (turned ? gci_emission_hop_ns(e, col->way[n - 1 - k], col->way[n - k])
				 : gci_emission_hop_ns(e, col->way[k - 1], col->way[k]));
	for (k = 0; e->start_ns && k < n - 1; k++)
		key[k] = e->start_ns[e->p->times.first[x->number] + (unsigned)k] * e->scale;
	return col;
}

static void add_parcel(struct gci_emission *e, const struct parcel *x, uint64_t len, const int *hop,
	const double *key, int n)
{
	int k;

	e->list->first[x->number] = (uint32_t)e->list->table.nmessages;
	for (k = 0; k < n - 1; k++) {
		uint32_t i = gci_timetable_add(
			&e->list->table, hop[k], hop[k + 1], (double)(len * e->c->esize), key[k]);

		if (k)
			gci_timetable_after(&e->list->table, i, i - 1);
	}
}

/* What comes late to its end has less time, but not so little that the few bytes of a quick end were most of a rate. */
static void add_rates(
	struct gci_emission *e, const struct gci_column *col, uint64_t len, const int *hop)
{
	double most = e->p->packing.busy_ns, ns = e->p->packing.ns - col->delay_ns;
	int k;

	ns = ns > most ? most : ns < most / 2 ? most / 2 : ns;
	ns *= gci_emission_part_of(e->p, e->c);
	for (k = 0; k < col->nway - 1; k++)
		e->even_bps[(size_t)hop[k] * (size_t)e->nranks + (size_t)hop[k + 1]] +=
			(uint64_t)((double)(len * e->c->esize) * 8 * GCI_NS_PER_S / ns);
}

static void pass_parcel(struct gci_emission *e, const struct parcel *x)
{
	const struct gci_coll *c = e->c;
	uint64_t len = gci_block_len(c, x->from, x->to) - x->i * e->segment;
	int hop[GCI_NETWORK_MOST_CLASSES], k, n, me = e->me;
	double key[GCI_NETWORK_MOST_CLASSES];
	const struct gci_column *col;
	struct gci_slice at;
	uint32_t tag = gci_tag(PHASE_UP, (uint32_t)x->number);

	len = len < e->segment ? len : e->segment;
	col = route_parcel(e, x, len, hop, key);
	n = col->nway;
	if (e->list)
		add_parcel(e, x, len, hop, key, n);
	if (e->even_bps)
		add_rates(e, col, len, hop);
	if (!e->b)
		return;
	for (k = 0; k < n && hop[k] != me; k++)
		;
	if (k == n)
		return;
	if (!k)
		at = gci_emission_part(gci_in_block(c, me, x->to), e->segment, x->i);
	else if (k == n - 1)
		at = gci_emission_part(gci_out_block(c, me, x->from), e->segment, x->i);
	else
		at = gci_slice(GCI_TMP, gci_tmp(e->b, len), len);
	if (k)
		gci_emission_note(e, key[k - 1],
			(struct gci_act){
				.kind = GCI_ACT_RECV, .peer = hop[k - 1], .tag = tag, .dst = at});
	if (k < n - 1)
		gci_emission_note(e, key[k],
			(struct gci_act){
				.kind = GCI_ACT_SEND, .peer = hop[k + 1], .tag = tag, .src = at});
}

/* All ranks' to their nth neighbours before those to the next; at even rates, some to each in turn. */
static void pass_all_to_all(struct gci_emission *e)
{
	const struct gci_coll *c = e->c;
	int p = e->nranks, k, r, even = gci_packed_is_even(c);
	uint64_t nsegments = gci_nsegments(gci_packed_longest(c), e->segment), i;

	for (k = 1; k < p; k++)
		for (i = 0; i < nsegments; i++)
			for (r = 0; r < p; r++) {
				struct parcel x = {.from = r, .to = (r + k) % p, .i = i};
				double in_block = (double)i / (double)nsegments,
				       in_turn = (k - 1.0) / (p - 1);

				x.nth = even ? in_block + in_turn / (double)nsegments
					     : in_turn + in_block / (p - 1);
				x.number =
					((uint64_t)k * nsegments + i) * (unsigned)p + (unsigned)r;
				if (i * e->segment < gci_block_len(c, x.from, x.to))
					pass_parcel(e, &x);
			}
}

/* scatter, gather: the root is the last of all. */
static void pass_blocks_of_root(struct gci_emission *e)
{
	const struct gci_coll *c = e->c;
	uint64_t nsegments = gci_nsegments(gci_packed_longest(c), e->segment), i;
	int k;

	for (k = 0; k < e->nranks - 1; k++)
		for (i = 0; i < nsegments; i++) {
			int other = e->net.member[k], class = e->net.class_of[other];
			struct parcel x = {.from = c->root, .to = other, .i = i};

			if (c->kind == GCI_GATHER) {
				x.from = other;
				x.to = c->root;
			}
			x.nth = (e->place[other] + (double)i / (double)nsegments) /
				gci_network_size(&e->net, class);
			x.number = (unsigned)k * nsegments + i;
			if (i * e->segment < gci_block_len(c, x.from, x.to))
				pass_parcel(e, &x);
		}
}

void gci_emission_pass_paths(struct gci_emission *e)
{
	if (e->c->kind == GCI_ALLTOALL)
		pass_all_to_all(e);
	else
		pass_blocks_of_root(e);
}
