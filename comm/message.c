/* SPDX-License-Identifier: MIT
 * The n-th send from a to b with a tag meets the n-th receive at b from a with that tag: each side
 * counts, and the number is in the key. */
#include "comm/message.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEQ_DOWN (1ull << 62) /* from the higher rank of the world to the lower one */

struct message {
	gcoll_req req;
	struct gci_list link; /* comm->messages */
	struct gci_tp_req tp;
	unsigned place; /* where its key has been, and is remembered when it has ended */
	int sends, self;
	uint32_t tag;
	uint64_t nbytes;
	void *buf;
};

static struct message *of(gcoll_req *r)
{
	return gci_container(r, struct message, req);
}

/* ---- how many messages there were, by peer and tag */

struct counter {
	struct gci_hash_node node; /* of comm->counters */
	uint64_t last;
	int peer;
	uint32_t tag;
	int sends;
};

static uint64_t hash_of(int peer, uint32_t tag, int sends)
{
	return gci_digest((uint64_t)peer << 1 | (uint64_t)sends, tag);
}

static struct counter *find_counter(const gcoll_comm *c, int peer, uint32_t tag, int sends)
{
	struct gci_hash_node *n = gci_hash_first(&c->counters, hash_of(peer, tag, sends));

	for (; n; n = gci_hash_next(n)) {
		struct counter *x = gci_container(n, struct counter, node);

		if (x->peer == peer && x->tag == tag && x->sends == sends)
			return x;
	}
	return NULL;
}

/* The number of the last one, from 1; 0: there was none. */
static uint64_t counted(const gcoll_comm *c, int peer, uint32_t tag, int sends)
{
	const struct counter *x = find_counter(c, peer, tag, sends);

	return x ? x->last : 0;
}

/* The number of the next message, from 1; 0: out of memory. */
static uint64_t count_one(gcoll_comm *c, int peer, uint32_t tag, int sends)
{
	struct counter *x = find_counter(c, peer, tag, sends);

	if (!x) {
		x = gci_calloc(1, sizeof(*x));
		if (!x)
			return 0;
		*x = (struct counter){.peer = peer, .tag = tag, .sends = sends};
		if (gci_hash_add(&c->counters, &x->node, hash_of(peer, tag, sends))) {
			gci_free(x);
			return 0;
		}
	}
	return ++x->last;
}

static void drop_counter(struct gci_hash_node *n)
{
	gci_free(gci_container(n, struct counter, node));
}

void gci_messages_free(gcoll_comm *c)
{
	gci_hash_free(&c->counters, drop_counter);
}

/* ---- do both sides mean the same? */

static int is_down(const struct gci_engine *e, int peer, int sends)
{
	return sends ? e->rank > peer : peer > e->rank;
}

/* As counted at either end, from 1. */
static uint64_t number_of(uint64_t seq)
{
	return seq & ~(GCI_SEQ_MESSAGE | SEQ_DOWN);
}

/* `sends`: this rank does. */
static int mismatch(gcoll_comm *c, int peer, const struct gci_tp_key *key, int sends, uint64_t here,
	uint64_t there)
{
	struct gci_engine *e = c->engine;
	int from = sends ? e->rank : peer, to = sends ? peer : e->rank;

	gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
		"message %" PRIu64 " with tag %" PRIu32 ": rank %d (%s) sends %" PRIu64
		" bytes, rank %d (%s) expects %" PRIu64,
		number_of(key->seq) - 1, key->tag, from, e->hosts[from], sends ? here : there, to,
		e->hosts[to], sends ? there : here);
	return 0;
}

/* The place of a message: among others while it is under way, alone when it has ended. Another one
 * may have taken it then: a difference is found by the transport, in fewer words. Those of one peer
 * and tag keep out of each other's way. */
static unsigned place_of(int peer, const struct gci_tp_key *key)
{
	uint64_t h = gci_digest(key->seq & SEQ_DOWN, (uint64_t)key->tag << 32 | (uint32_t)peer);

	return (unsigned)(h + key->seq) % GCI_MESSAGE_SLOTS;
}

static const struct gci_seen_message *find_seen(
	const gcoll_comm *c, unsigned place, int peer, const struct gci_tp_key *key)
{
	const struct gci_seen_message *s = &c->seen_messages[place];
	int is = s->set && s->seq == key->seq && s->tag == key->tag && s->peer == peer;

	return is ? s : NULL;
}

/* Unless it is known already. */
static void remember(
	gcoll_comm *c, unsigned place, int peer, const struct gci_tp_key *key, uint64_t nbytes)
{
	if (!find_seen(c, place, peer, key))
		c->seen_messages[place] =
			(struct gci_seen_message){key->seq, nbytes, key->tag, peer, 1};
}

/* The digest of a message is its length. */
int gci_message_check(gcoll_comm *c, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	int sends = is_down(c->engine, peer, 1) == !!(key->seq & SEQ_DOWN);
	unsigned place = place_of(peer, key);
	const struct gci_seen_message *seen;
	struct gci_list *it;

	gci_list_each (it, &c->messages[place]) {
		const struct message *m = gci_container(it, struct message, link);

		if (!m->self && m->tp.peer == peer && m->tp.key.seq == key->seq &&
			m->tag == key->tag)
			return m->nbytes == digest ||
			       mismatch(c, peer, key, sends, m->nbytes, digest);
	}
	seen = find_seen(c, place, peer, key);
	if (seen && seen->nbytes != digest)
		return mismatch(c, peer, key, sends, seen->nbytes, digest);
	remember(c, place, peer, key, digest);
	return 1;
}

/* ---- will the other side come? */

static void ask(const gcoll_req *r)
{
	const struct message *m = gci_container(r, const struct message, req);
	const struct gci_tp_key *key = &m->tp.key;

	if (!m->self)
		r->comm->engine->job.launcher->wait(
			r->comm->engine->job.ctl, &(struct gci_ctl_wait){(uint32_t)m->tp.peer,
							  key->comm, key->tag, key->seq});
}

/* What was begun before this rank left goes on, and ends. */
static int has_begun(const struct gci_engine *e, const struct gci_ctl_wait *w, int sends)
{
	const gcoll_comm *c = gci_comm_find(e, w->comm);

	if (c)
		return counted(c, (int)w->rank, w->tag, sends) >= number_of(w->seq);
	/* Freed with all that was on it: what it sent may be under way still. */
	return w->comm < e->comms.next_id && sends;
}

void gci_message_asked(struct gci_engine *e, const struct gci_ctl_wait *w)
{
	int peer = (int)w->rank, sends;

	if (w->rank >= (uint32_t)e->size || peer == e->rank)
		return;
	sends = is_down(e, peer, 1) == !!(w->seq & SEQ_DOWN);
	if (has_begun(e, w, sends))
		return;
	gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
		"rank %d (%s) has left the job, rank %d (%s) waits for it to %s message %" PRIu64
		" with tag %" PRIu32,
		e->rank, e->hosts[e->rank], peer, e->hosts[peer], sends ? "send" : "receive",
		number_of(w->seq) - 1, w->tag);
}

/* ---- messages to oneself */

static struct message *find_other(const struct message *m)
{
	struct gci_list *it;

	gci_list_each (it, &m->req.comm->messages[m->place]) {
		struct message *o = gci_container(it, struct message, link);

		if (o->self && o->sends != m->sends && o->tag == m->tag &&
			o->tp.key.seq == m->tp.key.seq)
			return o;
	}
	return NULL;
}

static int start_self(struct message *m)
{
	struct message *other = find_other(m), *from = m->sends ? m : other;
	struct message *to = m->sends ? other : m;

	if (!other) {
		gci_list_push(&m->req.comm->messages[m->place], &m->link);
		return 0;
	}
	if (m->nbytes != other->nbytes) {
		mismatch(m->req.comm, m->req.comm->engine->rank, &m->tp.key, m->sends, m->nbytes,
			other->nbytes);
		return GCOLL_ERR_MISMATCH;
	}
	if (m->nbytes)
		memmove(to->buf, from->buf, m->nbytes);
	gci_list_del(&other->link);
	gci_req_end(&other->req, 0);
	gci_req_end(&m->req, 0);
	return 0;
}

static void fail_slot(struct gci_list *slot, int status)
{
	struct gci_list *it, *next;

	for (it = slot->next; it != slot; it = next) {
		struct message *m = gci_container(it, struct message, link);

		next = it->next;
		if (!m->self)
			continue;
		gci_list_del(&m->link);
		gci_req_end(&m->req, status);
	}
}

void gci_messages_fail(struct gci_engine *e)
{
	struct gci_list *it;
	int i;

	gci_list_each (it, &e->comms.all) {
		gcoll_comm *c = gci_container(it, gcoll_comm, link);

		for (i = 0; i < GCI_MESSAGE_SLOTS; i++)
			fail_slot(&c->messages[i], e->failure.status);
	}
}

/* ---- requests */

static void on_done(struct gci_tp_req *t, int status)
{
	struct message *m = t->user;
	gcoll_comm *c = m->req.comm;

	c->engine->wait.activity++;
	gci_list_del(&m->link);
	if (!status)
		remember(c, m->place, t->peer, &t->key, m->nbytes);
	gci_req_end(&m->req, status);
}

/* Of a message to oneself, has the side that this one would meet been begun? */
static int other_begun(const struct message *m)
{
	const gcoll_comm *c = m->req.comm;

	return counted(c, m->tp.peer, m->tag, !m->sends) > counted(c, m->tp.peer, m->tag, m->sends);
}

static int start(gcoll_req *r)
{
	struct message *m = of(r);
	gcoll_comm *c = r->comm;
	const struct gci_seen_message *seen;
	uint64_t n;

	if (m->self && r->blocking && !other_begun(m))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"a rank that waits for itself waits for ever: start the %s before",
			m->sends ? "receive" : "send");
	n = count_one(c, m->tp.peer, m->tag, m->sends);
	if (!n)
		return gci_engine_nomem(c->engine);
	m->tp.key = (struct gci_tp_key){c->id, m->tag,
		GCI_SEQ_MESSAGE | (is_down(c->engine, m->tp.peer, m->sends) ? SEQ_DOWN : 0) | n};
	m->place = place_of(m->tp.peer, &m->tp.key);
	if (m->self)
		return start_self(m);
	seen = find_seen(c, m->place, m->tp.peer, &m->tp.key);
	if (seen && seen->nbytes != m->nbytes) {
		mismatch(c, m->tp.peer, &m->tp.key, m->sends, m->nbytes, seen->nbytes);
		return GCOLL_ERR_MISMATCH;
	}
	gci_list_push(&c->messages[m->place], &m->link);
	if (m->sends)
		gci_tp_isend(c->engine->tp, &m->tp);
	else
		gci_tp_irecv(c->engine->tp, &m->tp);
	return 0;
}

static void drop(gcoll_req *r)
{
	gci_list_del(&of(r)->link);
}

static void name(const gcoll_req *r, char out[GCI_SIGNATURE_NBYTES])
{
	const struct message *m = gci_container(r, const struct message, req);

	snprintf(out, GCI_SIGNATURE_NBYTES, "%s %" PRIu64 " bytes with tag %" PRIu32 " %s rank %d",
		m->sends ? "sending" : "receiving", m->nbytes, m->tag, m->sends ? "to" : "from",
		m->tp.peer);
}

static const struct gci_req_ops message_ops = {start, drop, name, ask};

static int make(int sends, void *buf, uint64_t count, enum gcoll_type type, int peer, int tag,
	gcoll_comm *c, gcoll_req **req)
{
	struct message *m;
	int rc;

	if (req)
		*req = NULL;
	if (!req || !c)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", c ? "req" : "the communicator");
	rc = gci_check_type(type, count);
	if (!rc)
		rc = gci_check_root(sends ? "dest" : "source", peer, c);
	if (rc)
		return rc;
	if (tag < 0)
		return gci_comm_error(GCOLL_ERR_INVAL, "tag %d, expected 0 or more", tag);
	if ((count && !buf) || buf == GCOLL_IN_PLACE)
		return gci_comm_error(GCOLL_ERR_INVAL, "buf is %s",
			buf ? "GCOLL_IN_PLACE, which is not for messages" : "NULL");
	rc = gci_req_create(c, &message_ops, sizeof(*m), req);
	if (rc)
		return rc;
	m = of(*req);
	m->sends = sends;
	m->self = peer == c->rank;
	m->tag = (uint32_t)tag;
	m->nbytes = count * gcoll_type_size(type);
	m->buf = buf;
	m->tp.peer = gci_comm_world_rank(c, peer);
	m->tp.buf = buf;
	m->tp.nbytes = m->nbytes;
	m->tp.digest = m->nbytes;
	m->tp.align = 1;
	m->tp.done = on_done;
	m->tp.user = m;
	return 0;
}

static int make_send(const void *buf, uint64_t count, enum gcoll_type type, int dest, int tag,
	gcoll_comm *c, gcoll_req **req)
{
	return make(1, (void *)buf, count, type, dest, tag, c, req);
}

static int make_recv(void *buf, uint64_t count, enum gcoll_type type, int source, int tag,
	gcoll_comm *c, gcoll_req **req)
{
	return make(0, buf, count, type, source, tag, c, req);
}

GCI_FORMS(send, (buf, count, type, dest, tag, c), const void *buf, uint64_t count,
	enum gcoll_type type, int dest, int tag, gcoll_comm *c)
GCI_FORMS(recv, (buf, count, type, source, tag, c), void *buf, uint64_t count, enum gcoll_type type,
	int source, int tag, gcoll_comm *c)
