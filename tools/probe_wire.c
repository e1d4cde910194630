/* SPDX-License-Identifier: MIT
 * Messages by the transport itself: gcoll_send ends only when the message has been handed over, and
 * cannot choose streams. Named by their number per direction, on a communicator that nobody else
 * uses. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "comm/warm.h"
#include "tools/probe.h"

int gct_wire_open(struct gct_wire *w, gcoll_comm *comm, uint64_t most, uint32_t streams)
{
	size_t n = (size_t)comm->engine->size;

	*w = (struct gct_wire){.most = most, .streams = streams};
	gci_warm_close(comm->engine); /* its thread is not to make progress beside ours */
	w->sent = gci_calloc(n, sizeof(*w->sent));
	w->got = gci_calloc(n, sizeof(*w->got));
	w->flights = gci_calloc(GCT_WIRE_MESSAGES, sizeof(*w->flights));
	w->out = gci_calloc(most, 1);
	w->in = gci_calloc(most, 1);
	if (!w->sent || !w->got || !w->flights || !w->out || !w->in)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for messages");
	return gcoll_comm_dup(comm, &w->comm);
}

/* Messages that are under way keep using this: only when none is, or when the engine is gone. */
void gct_wire_close(struct gct_wire *w)
{
	gci_free(w->sent);
	gci_free(w->got);
	gci_free(w->flights);
	gci_free(w->out);
	gci_free(w->in);
}

static void on_done(struct gci_tp_req *t, int status)
{
	struct gct_flight *f = t->user;

	(void)status; /* a failure is the engine's, too */
	f->at_ns = gci_now_ns();
	f->done = 1;
	f->wire->comm->engine->activity++;
}

static void begin(struct gct_wire *w, struct gct_flight *f, int peer, uint64_t nbytes, int sends)
{
	int up = sends == (w->comm->engine->rank < peer);
	uint64_t *count = sends ? w->sent : w->got;

	*f = (struct gct_flight){.wire = w};
	f->tp = (struct gci_tp_req){.peer = peer,
		.key = {w->comm->id, (uint32_t)up, GCI_SEQ_MESSAGE | ++count[peer]},
		.nbytes = nbytes,
		.digest = nbytes,
		.align = 1,
		.done = on_done,
		.user = f};
}

uint32_t gct_wire_streams(const struct gct_wire *w, int peer, uint32_t wanted)
{
	const struct gci_topo *t = &w->comm->topo;

	if (t->cluster[w->comm->rank] == t->cluster[peer])
		return 1;
	/* The transport gives a message an n-th of a peer's streams. */
	return w->streams / ((w->streams + wanted - 1) / wanted);
}

void gct_wire_send(struct gct_wire *w, struct gct_flight *f, int peer, const void *buf,
	uint64_t nbytes, uint32_t streams)
{
	begin(w, f, peer, nbytes, 1);
	f->tp.buf = (void *)buf;
	f->tp.share = streams ? (w->streams + streams - 1) / streams : 1;
	gci_tp_isend(w->comm->engine->tp, &f->tp);
}

void gct_wire_recv(struct gct_wire *w, struct gct_flight *f, int peer, void *buf, uint64_t nbytes)
{
	begin(w, f, peer, nbytes, 0);
	f->tp.buf = buf;
	gci_tp_irecv(w->comm->engine->tp, &f->tp);
}

static int progress(struct gct_wire *w, uint64_t timeout_ns)
{
	struct gci_engine *e = w->comm->engine;

	if (!gci_engine_progress(e, timeout_ns))
		return 0;
	gci_engine_await_verdict(e, GCI_NEVER);
	return gci_comm_error(e->failure.status, "%s", e->failure.text);
}

int gct_wire_push(struct gct_wire *w)
{
	return progress(w, 0);
}

int gct_wire_idle(struct gct_wire *w, uint64_t timeout_ns)
{
	return progress(w, timeout_ns);
}

int gct_wire_wait(struct gct_wire *w, struct gct_flight *f, uint32_t n)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		while (!f[i].done && !rc)
			rc = progress(w, GCI_NS_PER_S);
	return rc;
}

int gct_wire_say(struct gct_wire *w, int peer, const void *buf, uint64_t nbytes)
{
	struct gct_flight f;

	gct_wire_send(w, &f, peer, buf, nbytes, 0);
	return gct_wire_wait(w, &f, 1);
}

int gct_wire_hear(struct gct_wire *w, int peer, void *buf, uint64_t nbytes)
{
	struct gct_flight f;

	gct_wire_recv(w, &f, peer, buf, nbytes);
	return gct_wire_wait(w, &f, 1);
}

int gct_command_say(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint8_t data[GCT_COMMAND_NBYTES];

	gci_store_u32(data, c->kind);
	gci_store_u32(data + 4, c->n);
	gci_store_u32(data + 8, c->reps);
	gci_store_u64(data + 12, c->nbytes);
	gci_store_u64(data + 20, c->wait_ns);
	return gct_wire_say(w, peer, data, sizeof(data));
}
