/* SPDX-License-Identifier: MIT */
#include "tools/lib/bottleneck.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- A reason is what takes longer here than in the best way, and by enough to matter. */

static double percent(uint64_t part, uint64_t all)
{
	return all ? (double)part * 100 / (double)all : 0;
}

/* ", 1.50 x the message" */
static void put_share(uint64_t nbytes, const struct gct_words *w, struct gci_buf *out)
{
	if (w->nbytes)
		gci_buf_printf(out, ", %.2f x the message", (double)nbytes / (double)w->nbytes);
}

static void say_port(const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16];

	gci_buf_printf(out, "rank %d (%s) %s %s", f->port_rank, w->names[f->port_rank],
		f->port_out ? "sends" : "receives", gci_format_bytes(f->port_nbytes, bytes, 16));
	put_share(f->port_nbytes, w, out);
	gci_buf_printf(out, ": its NIC is %.0f %% busy", percent(f->port_ns, f->ns));
}

static void say_link(const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16];

	gci_buf_printf(
		out, "%s cross %s", gci_format_bytes(f->wire_nbytes, bytes, 16), w->wires[f->wire]);
	put_share(f->wire_nbytes, w, out);
	gci_buf_printf(out, ": that link is %.0f %% busy", percent(f->wire_ns, f->ns));
}

static void say_pair(const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16];

	gci_buf_printf(out,
		"rank %d (%s) sends %s to rank %d (%s): its connections are %.0f %% busy",
		f->pair_from, w->names[f->pair_from], gci_format_bytes(f->pair_nbytes, bytes, 16),
		f->pair_to, w->names[f->pair_to], percent(f->pair_ns, f->ns));
}

static void say_delay(
	const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out)
{
	uint64_t n = f->chain_nwan ? f->chain_nwan : f->chain_nmessages;
	char time[16];

	gci_buf_printf(out, "%" PRIu64 " %s%s%s: %s of delay", n,
		f->chain_nwan ? "crossing" : "message", n == 1 ? "" : "s",
		n > 1 ? f->chain_nwan ? " of WANs one after the other" : " one after the other"
		: f->chain_nwan ? " of a WAN"
				: "",
		gci_format_time(f->chain_delay_ns / w->dilation, time, 16));
}

static void say_chain(
	const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16], time[16];

	gci_format_bytes(f->chain_nbytes, bytes, 16);
	if (f->chain_nmessages == 1)
		gci_buf_printf(out, "one message of %s takes %s", bytes,
			gci_format_time(f->chain_transfer_ns / w->dilation, time, 16));
	else
		gci_buf_printf(out, "%" PRIu64 " messages one after the other, %s",
			f->chain_nmessages, bytes);
	if (f->chain_nmessages != 1)
		put_share(f->chain_nbytes, w, out);
	if (f->chain_alone_ns && f->chain_transfer_ns / 3 * 2 > f->chain_alone_ns)
		gci_buf_printf(out, ", sharing their way");
}

static void say_compute(
	const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out)
{
	char time[16];

	gci_buf_printf(out, "copying and reducing, which nothing hides, takes %s",
		gci_format_time(f->chain_compute_ns / w->dilation, time, 16));
}

static void say_waiting(
	const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out)
{
	(void)w;
	gci_buf_printf(out,
		"ranks wait for each other: no NIC is more than %.0f %% busy, and %" PRIu64
		" message%s follow%s one another",
		percent(f->port_ns, f->ns), f->chain_nmessages, f->chain_nmessages == 1 ? "" : "s",
		f->chain_nmessages == 1 ? "s" : "");
}

static uint64_t port_ns(const struct gct_bottleneck *f)
{
	return f->port_ns;
}

static uint64_t wire_ns(const struct gct_bottleneck *f)
{
	return f->wire_ns;
}

static uint64_t pair_ns(const struct gct_bottleneck *f)
{
	return f->pair_ns;
}

static uint64_t delay_ns(const struct gct_bottleneck *f)
{
	return f->chain_delay_ns;
}

static uint64_t chain_ns(const struct gct_bottleneck *f)
{
	return f->chain_transfer_ns;
}

static uint64_t compute_ns(const struct gct_bottleneck *f)
{
	return f->chain_compute_ns;
}

/* What time may go into, that of which one can do least about first. */
static const struct reason {
	uint64_t (*ns)(const struct gct_bottleneck *f);
	void (*say)(const struct gct_bottleneck *f, const struct gct_words *w, struct gci_buf *out);
	uint64_t least_percent; /* of the time: what is less is no reason */
} reasons[] = {{port_ns, say_port, 60}, {wire_ns, say_link, 60}, {pair_ns, say_pair, 60},
	{delay_ns, say_delay, 20}, {chain_ns, say_chain, 50}, {compute_ns, say_compute, 20}};

#define NREASONS (sizeof(reasons) / sizeof(*reasons))

static uint64_t over(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void gct_bottleneck_why(const struct gct_bottleneck *f, const struct gct_bottleneck *best,
	const struct gct_words *w, struct gci_buf *out)
{
	static const struct gct_bottleneck nothing;
	uint64_t excess, most = 0;
	const struct reason *why = NULL;
	size_t i;

	if (best && gct_bottleneck_tie(f->ns, best->ns)) {
		gci_buf_printf(out, "as fast, within 2 %%");
		return;
	}
	if (!best)
		best = &nothing;
	/* The first that explains most of the difference, else the one that explains most. */
	for (i = 0; i < NREASONS; i++) {
		excess = over(reasons[i].ns(f), reasons[i].ns(best));
		if (excess <= most || reasons[i].ns(f) < f->ns / 100 * reasons[i].least_percent)
			continue;
		most = excess;
		why = &reasons[i];
		if (most >= (f->ns - best->ns) / 10 * 7)
			break;
	}
	if (why && most >= (f->ns - best->ns) / 10 * 3)
		why->say(f, w, out);
	else
		say_waiting(f, w, out);
}

/* ---- facts of a simulation */

static uint64_t transfer_ns(uint64_t nbytes, uint64_t bps)
{
	return bps ? gci_transfer_ns(nbytes, bps) : 0;
}

/* Windows in the middle that were not simulated one by one are like those that were. */
static uint64_t in_full(uint64_t nbytes, uint64_t all, uint64_t seen)
{
	return seen ? (uint64_t)((unsigned __int128)nbytes * all / seen) : 0;
}

static int find_port(struct gct_bottleneck *f, const struct gci_simnet *net,
	const struct gct_timeline *t, uint64_t nmessages)
{
	const struct gci_topo *topo = t->topo;
	uint64_t *moved = gci_calloc((size_t)topo->nranks, 2 * sizeof(*moved)), seen = 0, ns;
	size_t i;
	int k;

	if (!moved)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < t->n; i++) {
		const struct gct_span *s = &t->spans[i];

		if (gct_span_lane(s) == GCT_LANE_COMPUTE)
			continue;
		seen += s->kind == GCI_STEP_SEND;
		moved[2 * s->rank + (s->kind == GCI_STEP_SEND)] += s->nbytes;
	}
	f->port_rank = -1;
	for (k = 0; k < 2 * topo->nranks; k++) {
		uint64_t nbytes = in_full(moved[k], nmessages, seen);

		ns = transfer_ns(nbytes, gci_simnet_nic_bps(net, k / 2));
		if (!nbytes || ns < f->port_ns || (ns == f->port_ns && nbytes <= f->port_nbytes))
			continue;
		f->port_rank = k / 2;
		f->port_out = k % 2;
		f->port_nbytes = nbytes;
		f->port_ns = ns;
	}
	gci_free(moved);
	return 0;
}

uint64_t gct_wire_nbytes(const struct gci_topo *t, const struct gci_sim_result *r, int wire)
{
	const int *route;
	int n = t->nclusters, i, k, nroute;
	uint64_t sum = 0;

	for (i = 0; i < n * n; i++)
		for (nroute = gci_topo_route(t, i / n, i % n, &route), k = 0; k < nroute; k++)
			sum += route[k] == wire ? r->wan_nbytes[i] : 0;
	return sum;
}

static void find_wire(
	struct gct_bottleneck *f, const struct gci_simnet *net, const struct gci_sim_result *r)
{
	int i;

	f->wire = -1;
	for (i = 0; i < net->topo->nwires; i++) {
		uint64_t nbytes = gct_wire_nbytes(net->topo, r, i);
		uint64_t ns = transfer_ns(nbytes, gci_simnet_wire_bps(net, i));

		if (!nbytes || ns < f->wire_ns || (ns == f->wire_ns && nbytes <= f->wire_nbytes))
			continue;
		f->wire = i;
		f->wire_nbytes = nbytes;
		f->wire_ns = ns;
	}
}

/* ---- pairs of ranks */

struct sent {
	int from, to;
	uint64_t nbytes;
};

static int by_pair(const void *a, const void *b)
{
	const struct sent *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void weigh_pair(struct gct_bottleneck *f, const struct gci_simnet *net, const struct sent *s)
{
	const int *cluster = net->topo->cluster;
	uint64_t bps =
		net->links[cluster[s->from] * net->topo->nclusters + cluster[s->to]].pair_bps;
	uint64_t ns = transfer_ns(s->nbytes, bps);

	if (ns <= f->pair_ns)
		return;
	f->pair_from = s->from;
	f->pair_to = s->to;
	f->pair_nbytes = s->nbytes;
	f->pair_ns = ns;
}

static int find_pair(struct gct_bottleneck *f, const struct gci_simnet *net,
	const struct gct_timeline *t, uint64_t nmessages)
{
	struct sent *list = gci_calloc(t->n, sizeof(*list)), sum = {0, 0, 0};
	size_t i, n = 0;

	if (!list)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < t->n; i++)
		if (t->spans[i].kind == GCI_STEP_SEND)
			list[n++] = (struct sent){
				t->spans[i].rank, t->spans[i].peer, t->spans[i].nbytes};
	if (n)
		qsort(list, n, sizeof(*list), by_pair);
	f->pair_from = f->pair_to = -1;
	for (i = 0; i < n; i++) {
		if (!i || by_pair(&list[i], &list[i - 1]))
			sum = (struct sent){list[i].from, list[i].to, 0};
		sum.nbytes += list[i].nbytes;
		if (i + 1 == n || by_pair(&list[i], &list[i + 1])) {
			sum.nbytes = in_full(sum.nbytes, nmessages, n);
			weigh_pair(f, net, &sum);
		}
	}
	gci_free(list);
	return 0;
}

/* ---- the chain */

/* A span, in the order of ends on each rank. */
struct end {
	int rank;
	uint32_t span;
	uint64_t ns;
};

struct walk {
	const struct gci_simnet *net;
	const struct gct_timeline *t;
	struct end *ends; /* t->n */
};

static int by_end(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->span < y->span ? -1 : x->span > y->span;
}

/* What this rank ended last, no later than at `ns`, other than `but`; NULL: nothing. */
static const struct gct_span *ended_before(
	const struct walk *w, int rank, uint64_t ns, const struct gct_span *but)
{
	size_t lo = 0, hi = w->t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct end *e = &w->ends[mid];

		if (e->rank < rank || (e->rank == rank && e->ns <= ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo && w->ends[lo - 1].rank == rank) {
		const struct gct_span *s = &w->t->spans[w->ends[--lo].span];

		if (s != but && s->from_ns <= but->from_ns)
			return s;
	}
	return NULL;
}

static const struct gct_span *other_side(const struct walk *w, const struct gct_span *s)
{
	return s->other ? &w->t->spans[s->other - 1] : NULL;
}

static const struct gci_simnet_link *link_of(const struct walk *w, int from, int to)
{
	const struct gci_topo *topo = w->t->topo;

	return &w->net->links[topo->cluster[from] * topo->nclusters + topo->cluster[to]];
}

static uint64_t delay(const struct walk *w, int from, int to)
{
	return link_of(w, from, to)->latency_ns;
}

/* What a message takes that shares nothing with others. */
static uint64_t alone_ns(const struct walk *w, const struct gct_span *send)
{
	uint64_t nic_bps = gci_simnet_nic_bps(w->net, send->rank);
	uint64_t nic = transfer_ns(send->nbytes, nic_bps);
	const struct gci_simnet_link *l = link_of(w, send->rank, send->peer);
	uint64_t pair = transfer_ns(send->nbytes, l->pair_bps);
	uint64_t link = transfer_ns(send->nbytes, l->bps);

	nic = nic > pair ? nic : pair;
	return nic > link ? nic : link;
}

/* `recv`: its other side, if the chain goes on from there. */
static void count_message(struct gct_bottleneck *f, const struct walk *w,
	const struct gct_span *send, const struct gct_span *recv)
{
	uint64_t late = recv ? delay(w, send->rank, send->peer) : 0;
	uint64_t until_ns = recv ? recv->to_ns : send->to_ns;

	until_ns = until_ns > send->from_ns + late ? until_ns - late : send->from_ns;
	f->chain_nmessages++;
	f->chain_nbytes += send->nbytes;
	f->chain_transfer_ns += until_ns - send->from_ns;
	f->chain_alone_ns += alone_ns(w, send);
	if (!recv)
		return;
	f->chain_nwan += (uint64_t)gct_span_is_wan(w->t, send);
	f->chain_delay_ns += late;
}

/* What `send` waited for: to be asked, or its rank's last doing before it. */
static const struct gct_span *before_send(
	struct gct_bottleneck *f, const struct walk *w, const struct gct_span *send)
{
	const struct gct_span *recv = other_side(w, send);
	const struct gct_span *own = ended_before(w, send->rank, send->from_ns, send);
	uint64_t asked_ns = recv ? recv->ready_ns + delay(w, send->peer, send->rank) : 0;

	if (asked_ns <= send->ready_ns || asked_ns > send->from_ns ||
		(own && own->to_ns >= asked_ns))
		return own;
	f->chain_delay_ns += delay(w, send->peer, send->rank);
	f->chain_nwan += (uint64_t)gct_span_is_wan(w->t, send);
	return ended_before(w, recv->rank, recv->ready_ns, recv);
}

/* One link of the chain back; NULL at its beginning. */
static const struct gct_span *before(
	struct gct_bottleneck *f, const struct walk *w, const struct gct_span *s)
{
	const struct gct_span *send = s;
	int arrives = gct_span_lane(s) == GCT_LANE_RECV;

	if (gct_span_lane(s) == GCT_LANE_COMPUTE) {
		f->chain_compute_ns += s->to_ns - s->from_ns;
		return ended_before(w, s->rank, s->ready_ns, s);
	}
	if (arrives)
		send = other_side(w, s);
	if (!send)
		return ended_before(w, s->rank, s->ready_ns, s);
	count_message(f, w, send, arrives ? s : NULL);
	return before_send(f, w, send);
}

static int find_chain(
	struct gct_bottleneck *f, const struct gci_simnet *net, const struct gct_timeline *t)
{
	struct walk w = {net, t, gci_calloc(t->n, sizeof(*w.ends))};
	const struct gct_span *at = NULL;
	size_t i;

	if (!w.ends)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < t->n; i++) {
		w.ends[i] = (struct end){t->spans[i].rank, (uint32_t)i, t->spans[i].to_ns};
		if (!at || t->spans[i].to_ns > at->to_ns)
			at = &t->spans[i];
	}
	if (t->n)
		qsort(w.ends, t->n, sizeof(*w.ends), by_end);
	/* Steps that take no time could lead round in a circle. */
	for (i = 0; at && i < t->n; i++)
		at = before(f, &w, at);
	gci_free(w.ends);
	return 0;
}

int gct_bottleneck_find(struct gct_bottleneck *f, const struct gci_simnet *net,
	const struct gct_timeline *t, const struct gci_sim_result *r)
{
	int rc;

	*f = (struct gct_bottleneck){.ns = r->ns};
	find_wire(f, net, r);
	rc = find_port(f, net, t, r->nmessages);
	if (!rc)
		rc = find_pair(f, net, t, r->nmessages);
	return rc ? rc : find_chain(f, net, t);
}
