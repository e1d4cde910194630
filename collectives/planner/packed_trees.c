/* SPDX-License-Identifier: MIT
 * Packings of trees: bcast, reduce, allreduce, allgather, reduce_scatter. */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/planner/emission.h"

enum { PHASE_UP, PHASE_DOWN };

/* Of the hosts of a class, from the first to the last. */
static double inside_ns(const struct gci_emission *e, int second, int class)
{
	if (e->p->is_ordered && !second)
		return gci_packing_rounds(e->order.nhosts[class]) *
		       gci_emission_hop_ns(e, class, class);
	return gci_packing_lan_hops(gci_network_size(&e->net, class)) *
	       gci_emission_hop_ns(e, class, class);
}

/* An arc of a tree from its root. What goes up in an allreduce goes the other way, and the network is not
 * turned for that. */
static double arc_ns(const struct gci_emission *e, int second, int from, int to)
{
	int up = e->c->kind == GCI_ALLREDUCE && !second;

	return up ? gci_emission_hop_ns(e, to, from) : gci_emission_hop_ns(e, from, to);
}

static int time_tree(struct gci_emission *e, const struct gci_column *col, int second)
{
	int n = e->net.nclasses, i, c, k;
	const int *parent = col->way + 2 * n * second, *rest = parent + n;
	struct gci_sum_node nodes[GCI_GRID_MAX_CLUSTERS];
	struct gci_timing *t = &e->timing[2 * (col - e->p->packing.columns) + second];

	t->depth = gci_calloc((size_t)(4 * n), sizeof(*t->depth));
	if (!t->depth)
		return GCOLL_ERR_NOMEM;
	t->tail = t->depth + n;
	t->late = t->tail + n;
	t->copies = t->late + n;
	for (c = 0; c < n; c++)
		t->copies[c] = e->p->is_ordered && !second
				       ? gci_sum_nodes(&e->order, parent, col->root, c, nodes)
				       : 1;
	for (i = 0; i < n; i++) /* as many rounds as a tree may be deep */
		for (c = 0; c < n; c++)
			if (c != col->root)
				t->depth[c] =
					t->depth[parent[c]] + arc_ns(e, second, parent[c], c) +
					(t->copies[c] - 1) * (double)(e->segment * e->c->esize) /
						e->net.rate[parent[c] * n + c];
	for (c = 0; c < n; c++) {
		double leaf = t->depth[c];

		if (gci_network_size(&e->net, c) > 1)
			leaf = rest[c] == c ? leaf + inside_ns(e, second, c)
					    : t->depth[rest[c]] + arc_ns(e, second, rest[c], c);
		if (leaf > t->end)
			t->end = leaf;
		/* Behind whom it has it from, and all before that. */
		for (k = rest[c] == c ? c : rest[c];; k = parent[k]) {
			if (leaf - t->depth[k] > t->tail[k])
				t->tail[k] = leaf - t->depth[k];
			if (k == col->root)
				break;
		}
		for (k = c;; k = parent[k]) {
			if (t->depth[c] - t->depth[k] > t->tail[k])
				t->tail[k] = t->depth[c] - t->depth[k];
			if (k == col->root)
				break;
		}
	}
	return 0;
}

static double leaf_ns(
	const struct gci_emission *e, const struct gci_timing *t, int second, int class)
{
	return t->depth[class] +
	       (gci_network_size(&e->net, class) > 1 ? inside_ns(e, second, class) : 0);
}

/* What is below the class that meets the root takes to or from it, and all else to or from the root. */
static void time_sides(const struct gci_emission *e, const struct gci_column *col, int second,
	double *below, double *others)
{
	int n = e->net.nclasses, k;
	const int *parent = col->way + 2 * n * second;
	const struct gci_timing *t = &e->timing[2 * (col - e->p->packing.columns) + second];

	*below = *others = 0;
	for (k = 0; k < n; k++) {
		double *most = gci_class_is_below(parent, col->root, k, col->meet) ? below : others;
		double ns = leaf_ns(e, t, second, k) - (most == below ? t->depth[col->meet] : 0);

		*most = ns > *most ? ns : *most;
	}
}

/* Both trees of a sum. Where two classes meet, each side has to be complete in time for itself and for the other. */
static void time_sum(struct gci_emission *e, const struct gci_column *col)
{
	struct gci_timing *in = &e->timing[2 * (col - e->p->packing.columns)], *out = in + 1;
	double in_x, in_root, out_x, out_root, to, from, at_root, at_x;
	int k;

	in->all = in->end + out->end;
	for (k = 0; k < e->net.nclasses; k++)
		in->late[k] = in->end;
	if (col->meet < 0)
		return;
	time_sides(e, col, 0, &in_x, &in_root);
	time_sides(e, col, 1, &out_x, &out_root);
	to = in->depth[col->meet];
	from = out->depth[col->meet];
	at_root = (in_root > in_x + to ? in_root : in_x + to) + out_root;
	at_x = (in_x > in_root + from ? in_x : in_root + from) + out_x;
	in->all = at_root > at_x ? at_root : at_x;
	at_root = in->all - (out_root > out_x + from ? out_root : out_x + from);
	at_x = in->all - (out_x > out_root + to ? out_x : out_root + to);
	for (k = 0; k < e->net.nclasses; k++)
		in->late[k] =
			gci_class_is_below(col->way, col->root, k, col->meet) ? at_x + to : at_root;
}

/* A segment's way by one tree: `begin` is when it starts at the root; or, turned, the leaves. */
struct passage {
	const struct gci_column *col;
	const int *parent, *rest;
	const struct gci_timing *t;
	int turned, second, nth, of_sum;
	uint64_t tree; /* of all of the operation's */
	double begin;
	uint32_t tag, span;        /* sums that go with the first one are so far apart */
	struct gci_slice own, all; /* what this rank gives, and what it gets */
};

/* This rank's neighbours in the tree of hosts, with the keys of the messages between. */
struct place {
	int parent; /* rank; -1: none */
	double parent_key;
	struct neighbour {
		int rank;
		double key;
		int class; /* of sums in a fixed order: if it is of another cluster; else -1 */
		int other_first; /* its operand is the left one */
	} * child;
	int nchildren;
	struct neighbour last; /* who has the whole for the root; rank -1: nobody */
};

/* The latest start of the message to (or, turned, from) someone of that class who has it `at` that time after the
 * start, with so much behind him, and a hop before. */
static double key_of(const struct passage *x, int class, double at_ns, double tail_ns, double hop)
{
	if (x->turned)
		return x->begin + (x->of_sum ? x->t->late[class] : x->t->end) - at_ns;
	return x->begin + x->t->end - (tail_ns + hop);
}

static void add_child(struct place *p, int rank, double key)
{
	p->child[p->nchildren++] = (struct neighbour){.rank = rank, .key = key, .class = -1};
}

/* Inside of a class: which round of a binomial tree, or level of a binary one, brings it to that member, and how
 * many there are behind. */
static double key_inside(
	const struct gci_emission *e, const struct passage *x, int class, int member)
{
	int n = gci_network_size(&e->net, class), rounds = gci_packing_rounds(n), k = 0;
	double hop = gci_emission_hop_ns(e, class, class);

	if (n > GCI_BINOMIAL_HOSTS) {
		while (2 << k <= member + 1)
			k++; /* its level */
		return key_of(
			x, class, x->t->depth[class] + 2 * k * hop, 2 * (rounds - k) * hop, hop);
	}
	while (!(member >> k & 1))
		k++;
	return key_of(x, class, x->t->depth[class] + (rounds - k) * hop, k * hop, hop);
}

/* Of the message between a host and its parent, among all; the root's stands for what it has, or gets. */
static uint32_t number_of(const struct gci_emission *e, const struct passage *x, int rank)
{
	return (uint32_t)(x->tree * (unsigned)e->nranks) + (unsigned)e->slot[rank];
}

/* When it goes: as it was found, or else by that formula. */
static double key_at(
	const struct gci_emission *e, const struct passage *x, int rank, double formula)
{
	return e->start_ns ? e->start_ns[number_of(e, x, rank)] * e->scale : formula;
}

/* The hosts of a class but the first, below that. */
static void place_in_class(
	struct gci_emission *e, const struct passage *x, struct place *p, int class)
{
	struct gci_group g = {.ranks = gci_network_members(&e->net, class),
		.n = gci_network_size(&e->net, class),
		.rotation = e->place[e->entry[class]]};
	int children[32], parent, i, n, binary = g.n > GCI_BINOMIAL_HOSTS,
					back = binary && x->nth & 1;

	g.me = gci_group_member(&g, e->place[e->me]);
	if (back && g.me)
		g.me = g.n - g.me; /* the others in reverse: inner hosts are leaves */
	n = (binary ? gci_binary : gci_binomial)(&g, &parent, children);
	if (parent >= 0) {
		p->parent_key = key_at(e, x, e->me, key_inside(e, x, class, g.me));
		p->parent = gci_group_rank(&g, back && parent ? g.n - parent : parent);
	}
	for (i = 0; i < n; i++) {
		int child = gci_group_rank(&g, back ? g.n - children[i] : children[i]);

		add_child(p, child, key_at(e, x, child, key_inside(e, x, class, children[i])));
	}
}

/* Whether sums keep a fixed order on this passage. */
static int keeps_order(const struct gci_emission *e, const struct passage *x)
{
	return e->p->is_ordered && x->turned;
}

/* How many halves of halves of n there are down to that place. */
static int halvings(int n, int place)
{
	int a = 0, z = n, count = 0;

	for (; z - a > 1; count++) {
		int mid = gci_middle(a, z);

		if (place < mid)
			z = mid;
		else
			a = mid;
	}
	return count;
}

/* In its cluster, along the tree that all keep to (collectives/blocks/order.h). */
static void place_in_cluster(
	struct gci_emission *e, const struct passage *x, struct place *p, int core)
{
	const struct gci_topo *t = e->c->topo;
	struct gci_join joins[GCI_MAX_JOINS];
	int i, n = gci_joins(t, 0, e->me, e->entry[core], joins);
	int depth = halvings(e->order.nhosts[core], t->index[e->me]);
	double hop = gci_emission_hop_ns(e, core, core);

	for (i = 0; i < n && i < depth && p->parent < 0; i++) {
		int other = joins[i].other, is_mine = other == e->me;
		double key = key_at(e, x, other,
			key_of(x, core, x->t->depth[core] + (depth - i) * hop, 0, hop));

		if (is_mine) {
			p->parent = joins[i].lead;
			p->parent_key = key;
		} else {
			add_child(p, other, key);
			p->child[p->nchildren - 1].other_first = joins[i].other_first;
		}
	}
}

/* The same place in a tree of sums that keep their order. */
static void find_sum_place(struct gci_emission *e, const struct passage *x, struct place *p)
{
	int c, mine = e->mine, root = x->col->root, core = e->order.core[mine];
	int home = e->order.core[root];

	place_in_cluster(e, x, p, core);
	if (e->me == e->entry[root] && home != root)
		p->last = (struct neighbour){.rank = e->entry[home],
			.key = key_at(
				e, x, e->entry[home], key_of(x, home, x->t->depth[home], 0, 0))};
	if (e->me != e->entry[core])
		return;
	for (c = 0; c < e->net.nclasses; c++)
		if (c != root && e->order.core[c] == c && x->parent[c] == core) {
			add_child(p, e->entry[c],
				key_at(e, x, e->entry[c], key_of(x, c, x->t->depth[c], 0, 0)));
			p->child[p->nchildren - 1].class = c;
		}
	if (core != root) {
		p->parent = e->entry[x->parent[core]];
		p->parent_key = key_at(e, x, e->me, key_of(x, core, x->t->depth[core], 0, 0));
	}
}

static void find_place(struct gci_emission *e, const struct passage *x, struct place *p)
{
	const int *m;
	int k, c, me = e->me, mine = e->mine, is_entry = e->entry[mine] == me;
	int root = x->col->root;

	p->parent = p->last.rank = -1;
	p->nchildren = 0;
	if (keeps_order(e, x)) {
		find_sum_place(e, x, p);
		return;
	}
	if (is_entry && mine != root) {
		p->parent = e->entry[x->parent[mine]];
		p->parent_key = key_at(e, x, me,
			key_of(x, mine, x->t->depth[mine], x->t->tail[mine],
				arc_ns(e, x->second, x->parent[mine], mine)));
	} else if (!is_entry && x->rest[mine] != mine) {
		double hop = arc_ns(e, x->second, x->rest[mine], mine);

		p->parent = e->entry[x->rest[mine]];
		p->parent_key =
			key_at(e, x, me, key_of(x, mine, x->t->depth[x->rest[mine]] + hop, 0, hop));
	}
	for (c = 0; is_entry && c < e->net.nclasses; c++) {
		double hop = arc_ns(e, x->second, mine, c);

		if (c != root && x->parent[c] == mine)
			add_child(p, e->entry[c],
				key_at(e, x, e->entry[c],
					key_of(x, c, x->t->depth[c], x->t->tail[c], hop)));
		if (x->rest[c] != mine || c == mine)
			continue;
		m = gci_network_members(&e->net, c);
		for (k = 0; k < gci_network_size(&e->net, c); k++)
			if (m[k] != e->entry[c])
				add_child(p, m[k],
					key_at(e, x, m[k],
						key_of(x, c, x->t->depth[mine] + hop, 0, hop)));
	}
	if (x->rest[mine] == mine && gci_network_size(&e->net, mine) > 1)
		place_in_class(e, x, p, mine);
}

/* How many copies first hosts send by a tree. */
static void add_copies(struct gci_emission *e, const struct gci_column *col, int second)
{
	int n = e->net.nclasses, c;
	const int *parent = col->way + 2 * n * second, *rest = parent + n;
	const struct gci_timing *t = &e->timing[2 * (col - e->p->packing.columns) + second];
	uint64_t *copies = e->copies + n * (col - e->p->packing.columns);

	for (c = 0; c < n; c++) {
		if (c != col->root)
			copies[parent[c]] += (uint64_t)t->copies[c];
		if (rest[c] != c)
			copies[rest[c]] += (uint64_t)gci_network_size(&e->net, c) - 1;
	}
}

/* What the hosts of a class send one another. */
static void add_lan_duties(struct gci_emission *e, const int *rest, int class, uint64_t length)
{
	const int *m = gci_network_members(&e->net, class);
	int i, n = gci_network_size(&e->net, class), first;

	if (rest[class] != class || n > GCI_BINOMIAL_HOSTS)
		return;
	first = e->place[e->entry[class]];
	for (i = 0; i < n; i++)
		e->duty[m[(first + i) % n]] +=
			(unsigned)e->fanout[n * GCI_BINOMIAL_HOSTS + i] * length;
}

/* First hosts of all classes for a segment of so many bytes; `lead` is the root's, or -1. */
static void choose_entries(
	struct gci_emission *e, const struct gci_column *col, int lead, uint64_t length)
{
	int n = e->net.nclasses, k;
	const uint64_t *copies = e->copies + n * (col - e->p->packing.columns);

	for (k = 0; k < n; k++) {
		if (k == col->root && lead >= 0) {
			e->entry[k] = lead;
			e->duty[lead] += copies[k] * length;
		} else if (e->p->is_ordered && e->order.core[k] != k && col->nway == 2 * n) {
			e->entry[k] = -1; /* all are leaves */
		} else {
			e->entry[k] = gci_emission_choose_host(e, k, copies[k] * length);
		}
		add_lan_duties(e, col->way + n, k, length);
		if (col->nway == 4 * n)
			add_lan_duties(e, col->way + 3 * n, k, length);
	}
}

/* A segment goes down the tree. */
static void pass_down(struct gci_emission *e, const struct passage *x, const struct place *p)
{
	struct gci_slice from = p->parent >= 0 ? x->all : x->own;
	int i;

	if (p->parent >= 0)
		gci_emission_note(e, p->parent_key,
			(struct gci_act){.kind = GCI_ACT_RECV,
				.peer = p->parent,
				.tag = x->tag,
				.dst = x->all});
	for (i = 0; i < p->nchildren; i++)
		gci_emission_note(e, p->child[i].key,
			(struct gci_act){.kind = GCI_ACT_SEND,
				.peer = p->child[i].rank,
				.tag = x->tag,
				.src = from});
}

/* Sums what all children give with what this rank has, if there are any, in `sum`. All are asked at once, all but one
 * for a place of its own: credit that waited for the one before would cost a round trip. Returns when it may be complete,
 * at the latest. */
static double gather(struct gci_emission *e, const struct passage *x, const struct place *p,
	struct gci_slice sum)
{
	struct gci_slice there;
	uint64_t length = x->own.length;
	double key = 0;
	int i;

	for (i = 0; i < p->nchildren; i++) {
		const struct neighbour *n = &p->child[i];

		if (n->key > key)
			key = n->key;
		if (!i) {
			gci_emission_note(e, n->key,
				(struct gci_act){.kind = GCI_ACT_RECV_REDUCE,
					.peer = n->rank,
					.tag = x->tag,
					.dst = sum,
					.src = x->own});
			continue;
		}
		there = gci_slice(GCI_TMP, gci_tmp(e->b, length), length);
		gci_emission_note(e, n->key,
			(struct gci_act){.kind = GCI_ACT_RECV,
				.peer = n->rank,
				.tag = x->tag,
				.dst = there});
	}
	for (i = 1; i < p->nchildren; i++)
		gci_emission_note(e, key,
			(struct gci_act){.kind = GCI_ACT_REDUCE,
				.dst = sum,
				.src = gci_slice(GCI_TMP,
					there.offset - (uint64_t)(p->nchildren - 1 - i) * length,
					length)});
	return key;
}

static struct gci_slice room_for(struct gci_emission *e, struct gci_slice like)
{
	return gci_slice(GCI_TMP, gci_tmp(e->b, like.length), like.length);
}

/* Sums of several clusters that one host has. */
struct sums {
	struct gci_sum_node node[GCI_GRID_MAX_CLUSTERS];
	struct gci_slice at[GCI_GRID_MAX_CLUSTERS];
	int n;
};

static void add_sum_node(struct sums *s, struct gci_sum_node node, struct gci_slice at)
{
	s->node[s->n] = node;
	s->at[s->n++] = at;
}

/* Appends what there is of clusters [a, z) to `out`, combined as far as their order lets it. True if that is one sum. What
 * is not in TMP is the user's. */
static int fold(
	struct gci_emission *e, const struct sums *have, int a, int z, double key, struct sums *out)
{
	int i, before = out->n, mid = gci_middle(a, z), low, high;
	struct gci_slice left, right;

	for (i = 0; i < have->n; i++)
		if (have->node[i].a == a && have->node[i].z == z) {
			add_sum_node(out, have->node[i], have->at[i]);
			return 1;
		}
	if (z - a == 1)
		return 0;
	low = fold(e, have, a, mid, key, out);
	high = fold(e, have, mid, z, key, out);
	if (!low || !high)
		return 0;
	left = out->at[before];
	right = out->at[before + 1];
	low = left.buffer == GCI_TMP;
	gci_emission_note(e, key,
		(struct gci_act){.kind = GCI_ACT_REDUCE,
			.swapped = !low,
			.dst = low ? left : right,
			.src = low ? right : left});
	out->n = before;
	add_sum_node(out, (struct gci_sum_node){a, z}, low ? left : right);
	return 1;
}

/* Its own cluster's sum, as far as it is made here. *key: when it may be complete, at the latest. */
static struct gci_slice sum_of_cluster(
	struct gci_emission *e, const struct passage *x, const struct place *p, double *key)
{
	struct gci_slice there[GCI_MAX_JOINS], sum = x->own;
	int i, n = 0;

	for (i = 0; i < p->nchildren && p->child[i].class < 0; i++) {
		there[n++] = room_for(e, x->own);
		*key = gci_later(*key, p->child[i].key);
		if (!i)
			sum = there[0];
		gci_emission_note(e, p->child[i].key,
			(struct gci_act){.kind = i ? GCI_ACT_RECV : GCI_ACT_RECV_REDUCE,
				.swapped = p->child[i].other_first,
				.peer = p->child[i].rank,
				.tag = x->tag,
				.dst = there[i],
				.src = x->own});
	}
	for (i = 1; i < n; i++)
		gci_emission_note(e, *key,
			(struct gci_act){.kind = GCI_ACT_REDUCE,
				.swapped = p->child[i].other_first,
				.dst = sum,
				.src = there[i]});
	return sum;
}

/* All that this rank sends on, or has in the end; returns when it may be complete, at the latest. */
static double gather_sums(
	struct gci_emission *e, const struct passage *x, const struct place *p, struct sums *out)
{
	int i, j, n, mine = e->order.cluster[e->mine];
	struct gci_sum_node nodes[GCI_GRID_MAX_CLUSTERS];
	struct sums have = {.n = 0};
	double key = 0;

	add_sum_node(&have, (struct gci_sum_node){mine, mine + 1}, sum_of_cluster(e, x, p, &key));
	for (i = 0; i < p->nchildren; i++) {
		const struct neighbour *c = &p->child[i];

		if (c->class < 0)
			continue;
		key = gci_later(key, c->key);
		n = gci_sum_nodes(&e->order, x->parent, x->col->root, c->class, nodes);
		for (j = 0; j < n; j++) {
			add_sum_node(&have, nodes[j], room_for(e, x->own));
			gci_emission_note(e, c->key,
				(struct gci_act){.kind = GCI_ACT_RECV,
					.peer = c->rank,
					.tag = x->tag + (unsigned)j * x->span,
					.dst = have.at[have.n - 1]});
		}
	}
	out->n = 0;
	fold(e, &have, 0, e->order.nclusters, key, out);
	return key;
}

/* The same as below, in the order of clusters and their members. */
static void pass_sums_up(struct gci_emission *e, const struct passage *x, const struct place *p)
{
	struct sums s;
	double key = gather_sums(e, x, p, &s);
	int i;

	for (i = 0; p->parent >= 0 && i < s.n; i++)
		gci_emission_note(e, p->parent_key,
			(struct gci_act){.kind = GCI_ACT_SEND,
				.peer = p->parent,
				.tag = x->tag + (unsigned)i * x->span,
				.src = s.at[i]});
	if (p->last.rank >= 0)
		gci_emission_note(e, p->last.key,
			(struct gci_act){.kind = GCI_ACT_RECV,
				.peer = p->last.rank,
				.tag = x->tag,
				.dst = x->all});
	else if (p->parent < 0)
		gci_emission_note(e, key,
			(struct gci_act){.kind = GCI_ACT_COPY, .dst = x->all, .src = s.at[0]});
}

/* Sums go up; the root's is made in x->all. */
static void pass_up(struct gci_emission *e, const struct passage *x, const struct place *p)
{
	struct gci_slice sum;

	if (keeps_order(e, x)) {
		pass_sums_up(e, x, p);
		return;
	}
	sum = p->nchildren && p->parent >= 0 ? room_for(e, x->own) : x->all;
	gather(e, x, p, sum);
	if (p->parent >= 0)
		gci_emission_note(e, p->parent_key,
			(struct gci_act){.kind = GCI_ACT_SEND,
				.peer = p->parent,
				.tag = x->tag,
				.src = p->nchildren ? sum : x->own});
	else if (!p->nchildren)
		gci_copy_some(e->b, x->all, x->own);
}

/* Takes a child out; returns its key. */
static double take_child(struct place *p, int rank)
{
	double key = 0;
	int i, n = 0;

	for (i = 0; i < p->nchildren; i++)
		if (p->child[i].rank == rank)
			key = p->child[i].key;
		else
			p->child[n++] = p->child[i];
	p->nchildren = n;
	return key;
}

/* The root's first host and the other that it meets tell each other what they have; both add it in the same order. What
 * is left of `down` is the way from there. */
static void meet(struct gci_emission *e, const struct passage *up, const struct passage *down,
	struct place *above, struct place *below)
{
	const struct gci_column *col = up->col;
	int is_root = e->mine == col->root, i;
	int peer = e->entry[is_root ? col->meet : col->root];
	double to = is_root ? take_child(below, peer) : above->parent_key;
	double from = is_root ? take_child(above, peer) : below->parent_key, key;
	/* In place, what comes must not meet what goes. */
	int apart = up->own.buffer == up->all.buffer, root_first = 1;
	struct gci_slice have, there = apart ? room_for(e, up->own) : up->all;
	struct sums s;

	if (e->p->is_ordered) {
		root_first = e->order.cluster[col->root] < gci_middle(0, e->order.nclusters);
		key = gather_sums(e, up, above, &s);
		have = s.at[0];
	} else {
		have = above->nchildren ? room_for(e, up->own) : up->own;
		key = gather(e, up, above, have);
	}
	/* What a host has of its own is there from the beginning, and gone before what comes takes its place. */
	if (!above->nchildren && from < to)
		to = from;
	gci_emission_note(e, gci_later(to, key),
		(struct gci_act){.kind = GCI_ACT_SEND,
			.peer = peer,
			.tag = is_root ? down->tag : up->tag,
			.src = have});
	gci_emission_note(e, from,
		(struct gci_act){.kind = GCI_ACT_RECV,
			.peer = peer,
			.tag = is_root ? up->tag : down->tag,
			.dst = there});
	key = gci_later(key, from);
	gci_emission_note(e, key,
		(struct gci_act){.kind = GCI_ACT_REDUCE,
			.swapped = is_root == root_first,
			.dst = there,
			.src = have});
	if (apart)
		gci_emission_note(e, key,
			(struct gci_act){.kind = GCI_ACT_COPY, .dst = up->all, .src = there});
	below->parent = -1;
	for (i = 0; i < below->nchildren; i++)
		below->child[i].key = gci_later(below->child[i].key, key);
}
static int look_at_trees(struct gci_emission *e)
{
	int i, k, rc = 0;

	for (i = 0; i < e->p->packing.ncolumns; i++) {
		const struct gci_column *col = &e->p->packing.columns[i];

		for (k = 0; !rc && k < col->nway / (2 * e->net.nclasses); k++) {
			rc = time_tree(e, col, k);
			if (!rc)
				add_copies(e, col, k);
		}
		if (!rc && k == 2)
			time_sum(e, col);
	}
	return rc;
}

/* What passes by a column's first or second tree. A column is fed evenly until its last segment just gets through
 * in time: nth of so many. */
static struct passage passage_of(const struct gci_emission *e, const struct gci_column *col,
	int second, uint64_t nth, uint64_t of)
{
	int n = e->net.nclasses;
	const struct gci_timing *t = &e->timing[2 * (col - e->p->packing.columns)];
	int of_sum = col->nway == 4 * n;
	double all = of_sum ? t->all : t->end, left = e->ns - all;

	return (struct passage){.col = col,
		.parent = col->way + 2 * n * second,
		.rest = col->way + 2 * n * second + n,
		.t = t + second,
		.second = second,
		.of_sum = of_sum,
		.turned = gci_packed_is_turned(e->c->kind) ||
			  (e->c->kind == GCI_ALLREDUCE && !second),
		.nth = (int)(nth & 1),
		.tree = of_sum ? 2 * nth + (unsigned)second : nth,
		.begin = (left > 0 ? left * (double)nth / (double)of : 0) +
			 (second ? all - t[1].end : 0)};
}

static int meets(const struct gci_emission *e, const struct gci_column *col)
{
	int me = e->me;

	return col->meet >= 0 && (e->entry[col->root] == me || e->entry[col->meet] == me);
}

/* ---- all hosts' messages, for a timetable */

/* How many that rank sends on. */
static double sums_of(const struct gci_emission *e, const struct passage *x, int rank)
{
	int class = e->net.class_of[rank];

	return keeps_order(e, x) && e->entry[class] == rank && e->order.core[class] == class
		       ? x->t->copies[class]
		       : 1;
}

/* The messages of a tree; parents[rank]. */
static void add_tree(struct gci_emission *e, const struct passage *x, struct place *p, int *parents)
{
	int me = e->me, mine = e->mine, r, i;

	for (i = 0; i < e->nranks; i++) {
		e->me = r = e->net.member[i];
		e->mine = e->net.class_of[r];
		find_place(e, x, p);
		parents[r] = p->parent;
		if (p->parent < 0)
			gci_timetable_add(&e->list->table, r, r, 0, 0);
		else
			gci_timetable_add(&e->list->table, x->turned ? r : p->parent,
				x->turned ? p->parent : r,
				(double)(x->own.length * e->c->esize) * sums_of(e, x, r),
				p->parent_key);
	}
	e->me = me;
	e->mine = mine;
}

/* What hosts pass on they have to have; all but `apart`. */
static void link_tree(
	struct gci_emission *e, const struct passage *x, const int *parents, int apart)
{
	int r;

	for (r = 0; r < e->nranks; r++) {
		uint32_t mine = number_of(e, x, r);

		if (parents[r] < 0 || r == apart)
			continue;
		if (x->turned)
			gci_timetable_after(&e->list->table, number_of(e, x, parents[r]), mine);
		else
			gci_timetable_after(&e->list->table, mine, number_of(e, x, parents[r]));
	}
}

/* What goes down from a host that met the root has parts of all that came up to it. */
static void link_meeting(
	struct gci_emission *e, const struct passage *up, const struct passage *down, int other)
{
	int a, b;

	gci_timetable_after(&e->list->table, number_of(e, down, other),
		number_of(e, up, e->entry[up->col->root]));
	for (a = 0; a < e->nranks; a++)
		for (b = 0; e->list->parents[a] == other && b < e->nranks; b++)
			if (e->list->parents[e->nranks + b] == other)
				gci_timetable_after(&e->list->table, number_of(e, down, b),
					number_of(e, up, a));
}

static void add_sum(struct gci_emission *e, const struct passage *up, const struct passage *down,
	struct place *p)
{
	int root = e->entry[up->col->root], other = up->col->meet;

	other = other < 0 ? -1 : e->entry[other];
	add_tree(e, up, p, e->list->parents);
	add_tree(e, down, p, e->list->parents + e->nranks);
	link_tree(e, up, e->list->parents, other);
	link_tree(e, down, e->list->parents + e->nranks, other);
	gci_timetable_after(&e->list->table, number_of(e, down, root), number_of(e, up, root));
	if (other < 0)
		return;
	gci_timetable_after(&e->list->table, number_of(e, down, root), number_of(e, up, other));
	link_meeting(e, up, down, other);
}

/* allreduce: up one tree, down the other. */
static void pass_sum(struct gci_emission *e, struct passage *up, struct gci_slice out,
	struct place *p, uint64_t i, uint64_t of)
{
	struct passage down = passage_of(e, up->col, 1, i, of);

	down.own = down.all = out;
	down.tag = gci_tag(PHASE_DOWN, (uint32_t)i);
	if (e->list) {
		add_sum(e, up, &down, p);
		return;
	}
	find_place(e, up, p);
	find_place(e, &down, p + 1);
	if (meets(e, up->col))
		meet(e, up, &down, p, p + 1);
	else
		pass_up(e, up, p);
	pass_down(e, &down, p + 1);
}

static void pass_tree(struct gci_emission *e, const struct passage *x, struct place *p)
{
	if (e->list) {
		int root = x->col->root, home = keeps_order(e, x) ? e->order.core[root] : root;

		/* The root gets all, and has sent what it had before. */
		add_tree(e, x, p, e->list->parents);
		link_tree(e, x, e->list->parents, home == root ? -1 : e->entry[home]);
		return;
	}
	find_place(e, x, p);
	if (x->turned)
		pass_up(e, x, p);
	else
		pass_down(e, x, p);
}

/* bcast, reduce, allreduce */
static void pass_vector(struct gci_emission *e, struct place *p)
{
	const struct gci_coll *c = e->c;
	int lead = c->kind == GCI_ALLREDUCE ? -1 : c->root;
	struct gci_slice in = gci_vector(c, gci_input(c, e->me)), out = gci_vector(c, GCI_OUT);
	uint64_t i, nsegments = gci_nsegments(c->count, e->segment);

	for (i = 0; i < nsegments; i++) {
		const struct gci_column *col =
			&e->p->packing.columns[gci_emission_next_column(e, 0)];
		struct passage x = passage_of(e, col, 0, i, nsegments);

		x.own = gci_emission_part(in, e->segment, i);
		x.all = c->kind == GCI_BCAST ? x.own : gci_emission_part(out, e->segment, i);
		x.tag = gci_tag(PHASE_UP, (uint32_t)i);
		x.span = (uint32_t)nsegments;
		choose_entries(e, col, lead, gci_emission_weight(e, x.own.length));
		if (c->kind == GCI_ALLREDUCE) {
			pass_sum(e, &x, x.all, p, i, nsegments);
			continue;
		}
		pass_tree(e, &x, p);
	}
}

/* allgather, reduce_scatter: a tree to or from each rank, for its block. */
static void pass_blocks(struct gci_emission *e, struct place *p)
{
	const struct gci_coll *c = e->c;
	int r, me = e->me;
	uint64_t nsegments = gci_nsegments(gci_packed_longest(c), e->segment), i, ntrees = 0;

	for (i = 0; i < nsegments; i++)
		for (r = 0; r < e->nranks; r++) {
			uint64_t len = gci_block_len(c, r, r), at = i * e->segment;
			const struct gci_column *col;
			struct passage x;

			if (at >= len)
				continue;
			col = &e->p->packing.columns[gci_emission_next_column(
				e, e->commodity[e->net.class_of[r]])];
			choose_entries(e, col, r,
				gci_emission_weight(
					e, len - at < e->segment ? len - at : e->segment));
			x = passage_of(e, col, 0, i, nsegments);
			x.nth = (int)((i + (unsigned)r) & 1);
			x.tag = gci_tag(
				PHASE_UP, (uint32_t)(i * (unsigned)e->nranks + (unsigned)r));
			x.span = (uint32_t)(nsegments * (unsigned)e->nranks);
			x.own = gci_emission_part(gci_in_block(c, me, r), e->segment, i);
			x.all = c->kind == GCI_ALLGATHER || r == me
					? gci_emission_part(gci_out_block(c, me, r), e->segment, i)
					: gci_slice(GCI_OUT, 0, 0);
			x.tree = ntrees++;
			if (e->list) /* whosever block it is */
				x.own.length = len - at < e->segment ? len - at : e->segment;
			pass_tree(e, &x, p);
		}
}

int gci_emission_pass_trees(struct gci_emission *e)
{
	size_t most = (size_t)e->nranks + 32;
	struct place place[2] = {{.child = gci_calloc(2 * most, sizeof(*place->child))}};
	int rc;

	if (!place->child)
		return GCOLL_ERR_NOMEM;
	place[1].child = place->child + most;
	rc = look_at_trees(e);
	if (!rc && gci_kind_has_vector(e->c->kind))
		pass_vector(e, place);
	else if (!rc)
		pass_blocks(e, place);
	gci_free(place->child);
	return rc;
}
