/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/order.h"

int gci_topo_in_rank_order(const struct gci_topo *t)
{
	int r;

	for (r = 0; r < t->nranks; r++)
		if (t->member[r] != r)
			return 0;
	return 1;
}

/* One level: places [0, n), of which `me` goes down to itself and `root` leads the whole. */
static int walk(int n, int me, int root, struct gci_join joins[32])
{
	int a = 0, z = n, count = 0;

	while (z - a > 1) {
		int mid = gci_middle(a, z), low = root < mid, other;

		other = low ? mid + (root - a) : a + (root - mid);
		if (other >= z) /* the first half may have one more */
			other = z - 1;
		if (me == root || me == other)
			joins[count++] = (struct gci_join){root, other, !low};
		if ((me < mid) != low)
			root = other;
		if (me < mid)
			z = mid;
		else
			a = mid;
	}
	return count;
}

/* Appends joins of places as joins of ranks, last found first: leaves come first. */
static int append(struct gci_join *out, int n, const struct gci_join *found, int nfound,
	const struct gci_topo *t, int cluster)
{
	const int *ranks = cluster >= 0 ? gci_topo_members(t, cluster) : NULL;

	while (nfound-- > 0) {
		out[n] = found[nfound];
		if (ranks) {
			out[n].lead = ranks[out[n].lead];
			out[n].other = ranks[out[n].other];
		}
		n++;
	}
	return n;
}

/* Who leads cluster `cluster` for `root`. */
static int leader(const struct gci_topo *t, int cluster, int root)
{
	return gci_topo_members(t, cluster)[t->index[root] % gci_topo_size(t, cluster)];
}

int gci_joins(const struct gci_topo *t, int flat, int rank, int root,
	struct gci_join joins[GCI_MAX_JOINS])
{
	struct gci_join found[32];
	int mine = t->cluster[rank], lead, n, first, i;

	if (flat) {
		n = walk(t->nranks, rank, root, found);
		return append(joins, 0, found, n, t, -1);
	}
	lead = leader(t, mine, root);
	n = walk(gci_topo_size(t, mine), t->index[rank], t->index[lead], found);
	n = append(joins, 0, found, n, t, mine);
	if (rank != lead)
		return n;
	first = n;
	i = walk(t->nclusters, mine, t->cluster[root], found);
	n = append(joins, n, found, i, t, -1);
	for (i = first; i < n; i++) {
		joins[i].lead = leader(t, joins[i].lead, root);
		joins[i].other = leader(t, joins[i].other, root);
	}
	return n;
}
