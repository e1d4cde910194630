/* SPDX-License-Identifier: MIT
 * gridcoll between two processes: the transport's messages, and a communicator's. */
#include "bench/peers/pair.h"

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "transport/tcp.h"

#include <stdio.h>
#include <string.h>

#define STOP_WAIT     (10 * GCI_NS_PER_S)
#define REPLAY_NBYTES (64u << 20) /* as a job's links have */

static const char *hosts[] = {"a", "b"};
static const char grid[] = "[cluster all]\nhosts = a, b\n";

struct ours {
	struct gcb_pair *p;
	struct gci_tp *tp;
	int unchecked, encrypted;
	enum gci_data_path path;
	uint64_t sent, received; /* messages */
	int done, status;
};

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	const struct ours *o = user;

	(void)peer;
	*out = (struct gci_tp_link){.streams = 1,
		.eager_nbytes = GCI_LAN_EAGER,
		.unchecked = o->unchecked,
		.encrypted = o->encrypted,
		.replay_nbytes = o->encrypted ? REPLAY_NBYTES : 0,
		.path = o->path};
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	struct ours *o = user;

	gcb_pair_fail(o->p, "%.150s", f->text);
}

/* Tells the other where we listen, learns the same of it. 0 or -1. */
static int meet(struct gcb_pair *p, struct gci_reach reach[2])
{
	char own[GCI_ADDRESS_TEXT];
	struct gci_address a;
	const char *told;

	gci_reach_get(&reach[p->rank], 0, &a);
	gci_address_format(&a, own);
	gcb_pair_tell(p, own);
	told = gcb_pair_told(p);
	return told && !gci_address_parse(&a, told) ? gci_reach_add(&reach[!p->rank], &a) : -1;
}

/* A transport between the two; NULL: failed. */
static struct gci_tp *connect_two(struct gcb_pair *p, const struct gci_tp_config *config)
{
	const struct gci_ports any = {0};
	struct gci_reach reach[2] = {{0}};
	struct gci_tcp_config tcp = {.reach = reach};
	struct gci_error e = {0};
	struct gci_tp *tp = NULL;
	struct gci_address at;

	if (gci_address_make(&at, gcb_pair_ip(p, p->rank), 0) ||
		gci_tcp_listen(&at, 1, &any, 0, &tcp.listen_fd, &reach[p->rank], &e)) {
		gcb_pair_fail(p, "%.150s", e.text);
		return NULL;
	}
	if (!meet(p, reach) && gci_tcp_create(&tp, config, &tcp, &e))
		gcb_pair_fail(p, "%.150s", e.text);
	return tp;
}

/* How a connection is treated. */
struct manner {
	int unchecked, encrypted;
	enum gci_data_path path;
};

static int open_ours(struct ours *o, struct gcb_pair *p, const struct manner *m)
{
	struct gci_tp_config config = {.rank = p->rank,
		.size = 2,
		.epoch = 1,
		.user = o,
		.link = on_link,
		.on_failure = on_failure};

	*o = (struct ours){
		.p = p, .unchecked = m->unchecked, .encrypted = m->encrypted, .path = m->path};
	o->tp = connect_two(p, &config);
	return o->tp ? 0 : -1;
}

static void close_ours(struct ours *o)
{
	if (o->tp)
		gci_tp_stop(o->tp, STOP_WAIT);
	gci_tp_free(o->tp);
}

static void on_done(struct gci_tp_req *r, int status)
{
	struct ours *o = r->user;

	o->done++;
	if (status)
		o->status = status;
}

static void start(struct ours *o, struct gci_tp_req *r, int sends, void *buf, uint64_t nbytes)
{
	*r = (struct gci_tp_req){.peer = !o->p->rank,
		.key = {.seq = sends ? o->sent++ : o->received++},
		.buf = buf,
		.nbytes = nbytes,
		.align = 1,
		.done = on_done,
		.user = o};
	if (sends)
		gci_tp_isend(o->tp, r);
	else
		gci_tp_irecv(o->tp, r);
}

/* Until so many requests in all are done. */
static int await(struct ours *o, int done)
{
	while (o->done < done && !o->status)
		gci_tp_progress(o->tp, GCI_NS_PER_S);
	return o->status ? gcb_pair_fail(o->p, "%s", "a message failed") : 0;
}

static int move(struct ours *o, uint64_t nbytes)
{
	struct gci_tp_req r;

	o->done = 0;
	start(o, &r, !o->p->rank, o->p->rank ? o->p->to : o->p->from, nbytes);
	return await(o, 1);
}

static int stream(struct gcb_pair *p, const struct manner *m)
{
	uint64_t warm = p->nbytes < GCB_WARM_NBYTES ? p->nbytes : GCB_WARM_NBYTES;
	struct ours o;
	int rc = open_ours(&o, p, m);

	if (!rc)
		rc = move(&o, warm);
	if (!rc)
		rc = gcb_pair_begin(p);
	if (!rc)
		rc = move(&o, p->nbytes);
	if (!rc)
		gcb_pair_end(p);
	close_ours(&o);
	return rc;
}

/* What is to come is asked for together with what is sent. */
static int bounce(struct ours *o, uint64_t rounds)
{
	uint8_t out[GCB_MAX_BOUNCE_NBYTES] = {0}, in[GCB_MAX_BOUNCE_NBYTES];
	uint64_t i, nbytes = o->p->nbytes;
	struct gci_tp_req s, r;
	int rc = 0;

	o->done = 0;
	if (o->p->rank) {
		start(o, &r, 0, in, nbytes);
		rc = await(o, 1);
	}
	for (i = 0; i < rounds && !rc; i++) {
		int last = o->p->rank && i + 1 == rounds;

		o->done = 0;
		start(o, &s, 1, out, nbytes);
		if (!last)
			start(o, &r, 0, in, nbytes);
		rc = await(o, last ? 1 : 2);
	}
	return rc;
}

static int pingpong(struct gcb_pair *p, const struct manner *m)
{
	struct ours o;
	int rc = open_ours(&o, p, m);

	if (!rc)
		rc = bounce(&o, GCB_WARM_ROUNDS);
	if (!rc)
		rc = gcb_pair_begin(p);
	if (!rc)
		rc = bounce(&o, p->rounds);
	if (!rc)
		gcb_pair_end(p);
	close_ours(&o);
	return rc;
}

static int checked_stream(struct gcb_pair *p)
{
	return stream(p, &(const struct manner){.path = GCI_DATA_PATH_POLL});
}

static int unchecked_stream(struct gcb_pair *p)
{
	return stream(p, &(const struct manner){.unchecked = 1, .path = GCI_DATA_PATH_POLL});
}

static int tls_stream(struct gcb_pair *p)
{
	return stream(p, &(const struct manner){.encrypted = 1});
}

static int tls_unchecked_stream(struct gcb_pair *p)
{
	return stream(p, &(const struct manner){.unchecked = 1, .encrypted = 1});
}

static int tls_pingpong(struct gcb_pair *p)
{
	return pingpong(p, &(const struct manner){.encrypted = 1});
}

static int checked_pingpong(struct gcb_pair *p)
{
	return pingpong(p, &(const struct manner){.path = GCI_DATA_PATH_POLL});
}

static int unchecked_pingpong(struct gcb_pair *p)
{
	return pingpong(p, &(const struct manner){.unchecked = 1, .path = GCI_DATA_PATH_POLL});
}

static int uring_stream(struct gcb_pair *p)
{
	return stream(p, &(const struct manner){.path = GCI_DATA_PATH_URING});
}

static int uring_unchecked_stream(struct gcb_pair *p)
{
	return stream(p, &(const struct manner){.unchecked = 1, .path = GCI_DATA_PATH_URING});
}

static int uring_pingpong(struct gcb_pair *p)
{
	return pingpong(p, &(const struct manner){.path = GCI_DATA_PATH_URING});
}

/* ---- gcoll_send, gcoll_recv and gcoll_bcast */

static gcoll_comm *open_comm(struct gcb_pair *p, enum gci_security security)
{
	struct gci_tp_config config;
	struct gci_topo topo = {0};
	gcoll_comm *c = NULL;
	int rc = gci_topo_parse(&topo, grid, sizeof(grid) - 1, "two", NULL);

	topo.one_host = !p->veth; /* as a job on this machine would find */
	if (rc || gci_comm_create(&c, p->rank, &topo, hosts)) {
		gcb_pair_fail(p, "out of memory");
		return NULL;
	}
	c->engine->settings.security = security;
	config = gci_comm_tp_config(c->engine);
	c->engine->tp = connect_two(p, &config);
	if (c->engine->tp)
		return c;
	gci_engine_free(c->engine);
	return NULL;
}

static void close_comm(gcoll_comm *c)
{
	if (!c)
		return;
	gci_tp_stop(c->engine->tp, STOP_WAIT);
	gci_engine_free(c->engine);
}

static int bounce_comm(gcoll_comm *c, uint64_t rounds, uint64_t nbytes)
{
	uint8_t data[GCB_MAX_BOUNCE_NBYTES] = {0};
	int rc = 0, rank = gcoll_rank(c);
	uint64_t i;

	for (i = 0; i < 2 * rounds && !rc; i++)
		rc = (i & 1) == (uint64_t)rank ? gcoll_send(data, nbytes, GCOLL_UINT8, !rank, 0, c)
					       : gcoll_recv(data, nbytes, GCOLL_UINT8, !rank, 0, c);
	return rc;
}

static int comm_pingpong(struct gcb_pair *p)
{
	gcoll_comm *c = open_comm(p, GCI_SECURITY_AUTO);
	int rc = c ? 0 : -1;

	if (!rc)
		rc = bounce_comm(c, GCB_WARM_ROUNDS, p->nbytes);
	if (!rc)
		rc = gcb_pair_begin(p);
	if (!rc)
		rc = bounce_comm(c, p->rounds, p->nbytes);
	if (!rc)
		gcb_pair_end(p);
	else if (c)
		gcb_pair_fail(p, "%.150s", gcoll_last_error());
	close_comm(c);
	return rc;
}

static int bcast_all(gcoll_comm *c, uint8_t *buf, uint64_t nbytes)
{
	uint64_t n;
	int rc = 0;

	for (; nbytes && !rc; buf += n, nbytes -= n) {
		n = nbytes < GCB_BCAST_NBYTES ? nbytes : GCB_BCAST_NBYTES;
		rc = gcoll_bcast(buf, n, GCOLL_BYTE, 0, c);
	}
	return rc;
}

static int bcast_stream(struct gcb_pair *p, enum gci_security security)
{
	gcoll_comm *c = open_comm(p, security);
	uint8_t *buf = p->rank ? p->to : p->from;
	int rc = c ? bcast_all(c, buf, p->nbytes < GCB_WARM_NBYTES ? p->nbytes : GCB_WARM_NBYTES)
		   : -1;

	if (!rc)
		rc = gcb_pair_begin(p);
	if (!rc)
		rc = bcast_all(c, buf, p->nbytes);
	if (!rc)
		gcb_pair_end(p);
	else if (c)
		gcb_pair_fail(p, "%.150s", gcoll_last_error());
	close_comm(c);
	return rc;
}

static int plain_bcast(struct gcb_pair *p)
{
	return bcast_stream(p, GCI_SECURITY_AUTH);
}

static int tls_bcast(struct gcb_pair *p)
{
	return bcast_stream(p, GCI_SECURITY_ENCRYPT);
}

const struct gcb_way gcb_transport_stream = {.name = "gridcoll",
	.what = "the transport, payload with CRC32C",
	.side = checked_stream,
	.checks = 1};
const struct gcb_way gcb_unchecked_stream = {.name = "gridcoll, no CRC",
	.what = "the transport without payload checksums",
	.side = unchecked_stream,
	.checks = 1};
const struct gcb_way gcb_tls_stream = {
	.name = "TLS", .what = "the same as gridcoll, encrypted", .side = tls_stream, .checks = 1};
const struct gcb_way gcb_tls_unchecked_stream = {.name = "TLS, no CRC",
	.what = "without payload checksums",
	.side = tls_unchecked_stream,
	.checks = 1};
const struct gcb_way gcb_tls_pingpong = {
	.name = "TLS", .what = "isend/irecv, encrypted", .side = tls_pingpong};
const struct gcb_way gcb_transport_pingpong = {.name = "isend/irecv",
	.what = "the transport, each waits for its own send and the answer",
	.side = checked_pingpong};
const struct gcb_way gcb_unchecked_pingpong = {.name = "isend/irecv, no CRC",
	.what = "the same without payload checksums",
	.side = unchecked_pingpong};
const struct gcb_way gcb_comm_pingpong = {.name = "gcoll_send/recv",
	.what = "blocking calls on a communicator",
	.side = comm_pingpong};
const struct gcb_way gcb_bcast_stream = {.name = "bcast",
	.what = "gcoll_bcast of 64 MiB after 64 MiB",
	.side = plain_bcast,
	.checks = 1};
const struct gcb_way gcb_tls_bcast_stream = {
	.name = "bcast, TLS", .what = "the same, encrypted", .side = tls_bcast, .checks = 1};
const struct gcb_way gcb_uring_stream = {.name = "io_uring",
	.what = "the same as gridcoll by io_uring",
	.side = uring_stream,
	.missing = gci_uring_probe,
	.checks = 1};
const struct gcb_way gcb_uring_unchecked_stream = {.name = "io_uring, no CRC",
	.what = "without payload checksums",
	.side = uring_unchecked_stream,
	.missing = gci_uring_probe,
	.checks = 1};
const struct gcb_way gcb_uring_pingpong = {.name = "io_uring",
	.what = "isend/irecv by io_uring",
	.side = uring_pingpong,
	.missing = gci_uring_probe};
