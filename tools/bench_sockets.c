/* SPDX-License-Identifier: MIT
 * How the kernel treated rank 0's connections, by the cluster they lead to: what stood in their way
 * is found here, and what to do about it by gridcoll doctor. */
#include "tools/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORTH_A_WORD 10 /* percent of the time with data to send */

struct sockets {
	const char *cluster;
	uint64_t connections, lost, restored;
	uint64_t again, refused; /* frames, and those that came corrupted */
	struct gci_tp_socket of;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* As gci_tp_socket counts the connections of one peer, of all. */
static void add(struct sockets *s, const struct gci_tp_stats *one)
{
	const struct gci_tp_socket *o = &one->socket;
	struct gci_tp_socket *sum = &s->of;

	s->connections += one->streams;
	s->lost += one->lost;
	s->restored += one->restored;
	s->again += one->again_frames;
	s->refused += one->refused;
	sum->sndbuf_nbytes = smaller(sum->sndbuf_nbytes, o->sndbuf_nbytes);
	sum->rcvbuf_nbytes = smaller(sum->rcvbuf_nbytes, o->rcvbuf_nbytes);
	sum->mss_nbytes = (uint32_t)smaller(sum->mss_nbytes, o->mss_nbytes);
	sum->sndbuf_set |= o->sndbuf_set;
	sum->rcvbuf_set |= o->rcvbuf_set;
	sum->rtt_ns = o->rtt_ns > sum->rtt_ns ? o->rtt_ns : sum->rtt_ns;
	sum->resent += o->resent;
	sum->busy_ns += o->busy_ns;
	sum->window_limited_ns += o->window_limited_ns;
	sum->buffer_limited_ns += o->buffer_limited_ns;
	if (*o->congestion)
		memcpy(sum->congestion, o->congestion, sizeof(sum->congestion));
}

/* Those of rank 0 to ranks of cluster c. */
static struct sockets look(const struct gct_bench *b, int c)
{
	const struct gci_engine *e = b->comm->engine;
	const struct gci_topo *t = &e->world->topo;
	struct sockets s = {.cluster = e->grid ? e->grid->clusters[t->in_grid[c]].name : ""};
	struct gci_tp_stats one;
	int i;

	for (i = 0; i < gci_topo_size(t, c); i++) {
		gci_tp_stats(e->tp, gci_topo_members(t, c)[i], &one);
		if (one.streams || one.lost)
			add(&s, &one);
	}
	return s;
}

static int percent(uint64_t part, uint64_t all)
{
	return all ? (int)((double)part * 100 / (double)all) : 0;
}

void gct_bench_print_sockets(const struct gct_bench *b)
{
	int c;

	for (c = 0; c < b->comm->engine->world->topo.nclusters; c++) {
		struct sockets s = look(b, c);
		int window = percent(s.of.window_limited_ns, s.of.busy_ns);
		int buffer = percent(s.of.buffer_limited_ns, s.of.busy_ns);

		if (window >= WORTH_A_WORD)
			printf("connections to %s waited for the receivers' window in %d %% of the "
			       "time:\nsee gridcoll doctor there\n",
				s.cluster, window);
		if (buffer >= WORTH_A_WORD)
			printf("connections to %s waited for room in their send buffers in %d %% "
			       "of the\ntime: see gridcoll doctor here\n",
				s.cluster, buffer);
		if (s.lost)
			printf("%" PRIu64 " connections to %s were lost, %" PRIu64
			       " made anew; %" PRIu64 " frames were sent again\n",
				s.lost, s.cluster, s.restored, s.again);
		if (s.refused)
			printf("%" PRIu64 " frames from %s came corrupted, and once more\n",
				s.refused, s.cluster);
	}
}

static json_t *socket_json(const struct sockets *s)
{
	const struct gci_tp_socket *o = &s->of;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:b, s:s, s:I, s:I, s:I, "
			 "s:I, s:I, s:I}",
		"cluster", s->cluster, "connections", (json_int_t)s->connections, "lost",
		(json_int_t)s->lost, "restored", (json_int_t)s->restored, "again_frames",
		(json_int_t)s->again, "refused_frames", (json_int_t)s->refused, "send_buffer_bytes",
		(json_int_t)o->sndbuf_nbytes, "send_buffer_set", o->sndbuf_set,
		"receive_buffer_bytes", (json_int_t)o->rcvbuf_nbytes, "receive_buffer_set",
		o->rcvbuf_set, "congestion", o->congestion, "segment_bytes",
		(json_int_t)o->mss_nbytes, "rtt_ns", (json_int_t)o->rtt_ns, "resent_segments",
		(json_int_t)o->resent, "busy_ns", (json_int_t)o->busy_ns, "window_limited_ns",
		(json_int_t)o->window_limited_ns, "buffer_limited_ns",
		(json_int_t)o->buffer_limited_ns);
}

json_t *gct_bench_sockets_json(const struct gct_bench *b)
{
	json_t *list = json_array();
	int c;

	for (c = 0; c < b->comm->engine->world->topo.nclusters; c++) {
		struct sockets s = look(b, c);

		if ((s.connections || s.lost) && json_array_append_new(list, socket_json(&s))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
