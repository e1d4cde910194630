/* SPDX-License-Identifier: MIT
 * Bytes on their way. */
#include "tests/simulate/net_impl.h"

#include "tests/simulate/heap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define MANY_PIECES   256 /* of a connection; then they are larger */
#define LARGER_PIECE  8192
#define WINDOW_NBYTES (128u << 10)

struct net_config net_config;
struct net_faults net_faults;
struct net_counts net_counts;

struct gci_list net_streams;

void net_begin(const struct net_config *config, const struct net_faults *faults)
{
	net_config = *config;
	net_faults = *faults;
	gci_list_init(&net_streams);
	net_forget_listeners();
	net_forget_faults();
	memset(&net_counts, 0, sizeof(net_counts));
}

struct sockaddr_in net_address(int host, uint16_t port)
{
	uint32_t ip = net_config.loopback ? 0x7f000001u + (uint32_t)host
					  : 0x0a000001u + ((uint32_t)host << 8);

	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

struct stream *net_stream_new(struct file *f)
{
	struct stream *s = f->more;

	s->file = f;
	s->host = f->process ? f->process->host : -1;
	s->rank = f->process ? f->process->rank : OS_LAUNCHER;
	gci_list_init(&s->flight);
	s->buffer_nbytes = net_config.buffer_nbytes * os_between(1, 16);
	s->acked_ns = s->heard_ns = os_now;
	gci_list_push(&net_streams, &s->all);
	return s;
}

size_t net_unread(const struct stream *s)
{
	return s->in_hi - s->in_lo;
}

/* ---- pieces */

int net_cluster(int host)
{
	return net_config.cluster[host];
}

uint64_t net_delay_ns(int a, int b)
{
	uint64_t ns = net_cluster(a) == net_cluster(b) ? net_config.near_ns : net_config.far_ns;

	if (a == b)
		ns = 10 * GCI_NS_PER_US;
	return ns + gci_prng_below(&os_prng, ns / 2 + 1);
}

static void on_piece(void *arg, uint64_t n);

void net_pump(struct stream *s)
{
	struct segment *g;

	if (s->moving || gci_list_empty(&s->flight))
		return;
	g = gci_container(s->flight.next, struct segment, link);
	s->moving = 1;
	os_at(g->at_ns > s->stalled_until_ns ? g->at_ns : s->stalled_until_ns, on_piece, s, 0);
}

static void take_off(struct stream *s, struct segment *g)
{
	s->flight_nbytes -= g->nbytes;
	gci_list_del(&g->link);
	heap_free(g);
}

static size_t piece_nbytes(struct stream *s)
{
	uint64_t most = net_config.most_piece;

	if (s->npieces++ > MANY_PIECES && most < LARGER_PIECE)
		most = LARGER_PIECE;
	return os_chance(8) ? 1 : (size_t)os_between(1, most);
}

static void put_one(struct stream *s, enum segment_kind kind, size_t n, struct segment **out)
{
	struct segment *g = heap_calloc(1, sizeof(*g) + n);
	uint64_t at = os_now + net_delay_ns(s->host, s->other->host);

	g->kind = kind;
	g->nbytes = n;
	g->at_ns = s->last_at_ns = at > s->last_at_ns ? at : s->last_at_ns;
	gci_list_push(&s->flight, &g->link);
	s->flight_nbytes += n;
	*out = g;
}

void net_put(struct stream *s, enum segment_kind kind, const struct iovec *iov, int niov, size_t n)
{
	size_t left = n, part, take, at = 0, off = 0;
	struct segment *g;
	int i = 0;

	if (s->forgotten && kind == DATA)
		os_at(os_now + 2 * net_delay_ns(s->host, s->other->host), net_on_reset, s, 0);
	if (s->vain)
		return;
	if (kind != DATA)
		put_one(s, kind, 0, &g);
	while (left) {
		part = piece_nbytes(s);
		put_one(s, DATA, part < left ? part : left, &g);
		for (at = 0; at < g->nbytes && i < niov; at += take) {
			take = iov[i].iov_len - off;
			if (take > g->nbytes - at)
				take = g->nbytes - at;
			memcpy(g->data + at, (const uint8_t *)iov[i].iov_base + off, take);
			off += take;
			if (off == iov[i].iov_len) {
				i++;
				off = 0;
			}
		}
		left -= g->nbytes;
	}
	net_pump(s);
}

void net_cut_short(struct stream *s)
{
	size_t keep = (size_t)gci_prng_below(&os_prng, s->flight_nbytes + 1);
	struct gci_list *it, *next;

	for (it = s->flight.next; it != &s->flight; it = next) {
		struct segment *g = gci_container(it, struct segment, link);
		size_t n = g->nbytes < keep ? g->nbytes : keep;

		next = it->next;
		keep -= n;
		if (!n) {
			take_off(s, g);
			continue;
		}
		s->flight_nbytes -= g->nbytes - n;
		g->nbytes = n;
	}
}

/* ---- arrival */

void net_on_reset(void *arg, uint64_t n)
{
	struct stream *s = arg;

	(void)n;
	if (s->closed || s->state != OPEN)
		return;
	s->error = ECONNRESET;
	s->state = RESET;
	file_changed(s->file);
}

static void store(struct stream *to, const struct segment *g)
{
	if (to->in_lo == to->in_hi)
		to->in_lo = to->in_hi = 0;
	if (to->in_hi + g->nbytes > to->in_cap) {
		to->in_cap = 2 * (to->in_hi + g->nbytes);
		to->in = heap_grow(to->in, to->in_cap);
	}
	memcpy(to->in + to->in_hi, g->data, g->nbytes);
	to->in_hi += g->nbytes;
	to->come_nbytes += g->nbytes;
	if (to->inner && !net_is_young(to))
		*net_vain_of(to->rank, to->other->rank) = 0;
}

static void arrive(struct stream *s, struct segment *g)
{
	struct stream *to = s->other;

	s->acked_ns = to->heard_ns = os_now;
	if (to->closed && g->kind == DATA) { /* nobody reads it any more */
		os_at(os_now + net_delay_ns(s->host, to->host), net_on_reset, s, 0);
		s->vain = 1;
		while (!gci_list_empty(&s->flight))
			take_off(s, gci_container(s->flight.next, struct segment, link));
		return;
	}
	if (g->kind == DATA) {
		store(to, g);
	} else if (g->kind == FIN) {
		to->eof = 1;
	} else if (to->state == OPEN) {
		to->error = ECONNRESET;
		to->state = RESET;
	}
	take_off(s, g);
	file_changed(to->file);
	file_changed(s->file);
}

static void on_piece(void *arg, uint64_t n)
{
	struct stream *s = arg;
	struct segment *g;
	uint64_t until;

	(void)n;
	s->moving = 0;
	if (gci_list_empty(&s->flight))
		return;
	g = gci_container(s->flight.next, struct segment, link);
	until = net_shut_until_ns(s->host, s->other->host);
	if (until) { /* sent again after a while */
		s->moving = 1;
		if (until != GCI_NEVER)
			os_at(until + os_between(0, 300) * GCI_NS_PER_MS, on_piece, s, 0);
		return;
	}
	if (os_now < g->at_ns || os_now < s->stalled_until_ns) {
		net_pump(s);
		return;
	}
	if (g->kind == DATA && net_unread(s->other) >= WINDOW_NBYTES) {
		s->window_closed = 1;
		return;
	}
	if (g->kind == DATA && s->inner)
		net_fault_piece(s, g);
	else if (g->kind == DATA)
		net_fault_control(s);
	if (!gci_list_empty(&s->flight))
		arrive(s, gci_container(s->flight.next, struct segment, link));
	net_pump(s);
}

/* ---- connecting */

static void fail_connect(struct stream *s, int error)
{
	if (s->closed || s->state != CONNECTING)
		return;
	os_trace("not connected: rank %d to %d: error %d", s->rank,
		(int)ntohs(s->remote.sin_port) - NET_FIRST_PORT, error);
	s->state = RESET;
	s->error = error;
	file_changed(s->file);
}

static void on_refused(void *arg, uint64_t error)
{
	fail_connect(arg, (int)error);
}

static void on_answer(void *arg, uint64_t n)
{
	struct stream *s = arg;

	(void)n;
	if (s->closed)
		return;
	s->state = OPEN;
	os_trace("connected: rank %d to rank %d", s->rank, s->other->rank);
	file_changed(s->file);
	net_pump(s);
}

static void on_call(void *arg, uint64_t n)
{
	struct stream *s = arg, *other;
	struct listener *l = net_listener(&s->remote);
	int host = (int)n;
	uint64_t until = net_shut_until_ns(s->host, host);

	if (s->closed)
		return;
	if (until) {
		if (until != GCI_NEVER)
			os_at(until + os_between(0, 1000) * GCI_NS_PER_MS, on_call, s, n);
		return;
	}
	other = l ? net_incoming(s, l) : NULL;
	if (!other) {
		os_at(os_now + net_delay_ns(s->host, host), on_refused, s, ECONNREFUSED);
		return;
	}
	os_at(os_now + net_delay_ns(s->host, host), on_answer, s, 0);
}

void net_connect_at(struct stream *s, const struct sockaddr_in *to)
{
	static const int errors[] = {ETIMEDOUT, EHOSTUNREACH, ENETUNREACH};
	uint32_t ip = ntohl(to->sin_addr.s_addr);
	int host = net_config.loopback ? (int)(ip - 0x7f000001u) : (int)(ip - 0x0a000001u) >> 8;

	s->remote = *to;
	s->state = CONNECTING;
	if (net_is_refused(s, (int)ntohs(to->sin_port) - NET_FIRST_PORT)) {
		net_counts.refused++;
		os_at(os_now + net_delay_ns(s->host, host), on_refused, s,
			(uint64_t)errors[os_between(0, 2)]);
		return;
	}
	os_at(os_now + net_delay_ns(s->host, host), on_call, s, (uint64_t)host);
}
