/* SPDX-License-Identifier: MIT */
#include "comm/comm.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/units.h"
#include "comm/collective.h"
#include "comm/comms.h"
#include "comm/deadline.h"
#include "comm/message.h"
#include "comm/op.h"
#include "comm/pacing.h"
#include "comm/split.h"
#include "comm/thread.h"
#include "transport/path.h"
#include "transport/sockopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The communicators of a process by their numbers: a hash table. */

#define FIRST_SLOTS 16

static gcoll_comm **slot_of(const struct gci_comms *t, uint32_t id)
{
	return &t->slots[gci_mix64(id) & (t->nslots - 1)];
}

static void put(struct gci_comms *t, gcoll_comm *c)
{
	gcoll_comm **slot = slot_of(t, c->id);

	c->same_slot = *slot;
	*slot = c;
}

static int grow(struct gci_comms *t)
{
	struct gci_comms bigger = {.nslots = t->nslots ? 2 * t->nslots : FIRST_SLOTS, .n = t->n};
	gcoll_comm *c, *next;
	size_t i;

	bigger.slots = gci_calloc(bigger.nslots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < t->nslots; i++)
		for (c = t->slots[i]; c; c = next) {
			next = c->same_slot;
			put(&bigger, c);
		}
	gci_free(t->slots);
	*t = bigger;
	return 0;
}

int gci_comms_add(struct gci_comms *t, gcoll_comm *c)
{
	if (t->n >= t->nslots && grow(t))
		return GCOLL_ERR_NOMEM;
	put(t, c);
	t->n++;
	return 0;
}

void gci_comms_del(struct gci_comms *t, gcoll_comm *c)
{
	gcoll_comm **at = t->nslots ? slot_of(t, c->id) : NULL;

	while (at && *at && *at != c)
		at = &(*at)->same_slot;
	if (!at || !*at)
		return;
	*at = c->same_slot;
	t->n--;
}

gcoll_comm *gci_comms_find(const struct gci_comms *t, uint32_t id)
{
	gcoll_comm *c = t->nslots ? *slot_of(t, id) : NULL;

	while (c && c->id != id)
		c = c->same_slot;
	return c;
}

void gci_comms_free(struct gci_comms *t)
{
	gci_free(t->slots);
	*t = (struct gci_comms){0};
}

/* ---- gcoll_comm_set. */

static int set_algorithm(gcoll_comm *c, enum gci_kind kind, const char *value)
{
	struct gci_error e = {0};
	struct gci_choice choice = {0};

	if (gci_candidate_parse(&choice.how, kind, value, &e))
		return gci_comm_error(e.status, "%s", e.text);
	choice.automatic = !strncmp(value, "auto", strcspn(value, ":"));
	c->choice[kind] = choice;
	return 0;
}

static int set_streams(gcoll_comm *c, const char *value)
{
	uint64_t v;

	if (gci_parse_uint(value, GCI_TP_MAX_STREAMS, &v) || !v)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"streams: \"%s\", expected a number from 1 to %d", value,
			GCI_TP_MAX_STREAMS);
	c->engine->settings.streams = (uint32_t)v;
	return 0;
}

static int set_socket_buffer(gcoll_comm *c, const char *value)
{
	uint64_t v = 0;

	if (strcmp(value, "auto") != 0 && (gci_parse_bytes(value, &v) || v < 4096 || v > 1u << 30))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"socket_buffer: \"%s\", expected auto or a size from 4KiB to 1GiB", value);
	c->engine->settings.sockbuf_nbytes = v;
	return 0;
}

static int set_checksum(gcoll_comm *c, const char *value)
{
	static const char *const names[] = {"auto", "on", "off"};
	int i;

	for (i = 0; i < 3; i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		c->engine->settings.checksum = (enum gci_checksum)i;
		return 0;
	}
	return gci_comm_error(GCOLL_ERR_INVAL, "checksum: \"%s\", expected auto, on or off", value);
}

static int set_data_path(gcoll_comm *c, const char *value)
{
	if (gci_data_path_parse(value, &c->engine->settings.data_path))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"data_path: \"%s\", expected " GCI_DATA_PATH_EXPECTED, value);
	return 0;
}

static int set_security(gcoll_comm *c, const char *value)
{
	if (gci_security_parse(value, &c->engine->settings.security))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"security: \"%s\", expected " GCI_SECURITY_EXPECTED, value);
	return 0;
}

static int set_congestion(gcoll_comm *c, const char *value)
{
	struct gci_error e = {0};

	if (!strcmp(value, "default")) {
		*c->engine->settings.congestion = '\0';
		return 0;
	}
	if (gci_sockopt_congestion(value, &e))
		return gci_comm_error(e.status, "congestion: %s, or default", e.text);
	snprintf(c->engine->settings.congestion, sizeof(c->engine->settings.congestion), "%s",
		value);
	return 0;
}

static int set_replay(gcoll_comm *c, const char *value)
{
	static const char *const names[] = {"auto", "wan", "always", "off"};
	size_t i, n = sizeof(names) / sizeof(*names);

	for (i = 0; i < n && strcmp(value, names[i]) != 0; i++)
		;
	if (i == n)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"replay: \"%s\", expected auto, wan, always or off", value);
	c->engine->settings.replay = (enum gci_replay_where)i;
	return 0;
}

static int set_timeout(gcoll_comm *c, const char *value)
{
	uint64_t v = GCI_NEVER, floor = 0;
	int rc = 0;

	if (!strcmp(value, "auto"))
		floor = gci_engine_patience(c->engine, GCI_DEADLINE_FLOOR_NS);
	else if (!strncmp(value, "auto:", 5))
		rc = gci_parse_time(value + 5, &floor) || !floor;
	else if (strcmp(value, "never") != 0)
		rc = gci_parse_time(value, &v) || !v;
	if (rc)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"timeout: \"%s\", expected never, auto, auto:TIME or " GCI_TIME_EXPECTED,
			value);
	c->engine->settings.op_timeout_ns = v;
	c->engine->settings.floor_ns = floor;
	return 0;
}

static int set_spin(gcoll_comm *c, const char *value)
{
	uint64_t v = 0;

	if (strcmp(value, "off") != 0 && (gci_parse_time(value, &v) || !v || v > GCI_SPIN_MOST_NS))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"spin: \"%s\", expected off or a time of at most 100us", value);
	gci_spin_set(&c->engine->settings.spin, v);
	return 0;
}

static int set_order(gcoll_comm *c, const char *value)
{
	if (strcmp(value, "any") != 0 && strcmp(value, "fixed") != 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "order: \"%s\", expected any or fixed", value);
	c->fixed_order = !strcmp(value, "fixed");
	return 0;
}

static int set_compare(gcoll_comm *c, const char *value)
{
	if (strcmp(value, "off") != 0 && strcmp(value, "on") != 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "compare: \"%s\", expected off or on", value);
	c->compares = !strcmp(value, "on");
	return 0;
}

static int set_tuning(gcoll_comm *c, const char *value)
{
	static const char *const names[] = {"off", "table", "simulate"};
	size_t i, n = sizeof(names) / sizeof(*names);

	for (i = 0; i < n && strcmp(value, names[i]) != 0; i++)
		;
	if (i == n)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "tuning: \"%s\", expected simulate, table or off", value);
	c->tuning = (enum gci_tuning)i;
	return 0;
}

static int set_record(gcoll_comm *c, const char *value)
{
	if (!*value)
		return gci_comm_error(GCOLL_ERR_INVAL, "record: \"\", expected a file or off");
	if (gci_recording_set(c->engine, strcmp(value, "off") != 0 ? value : NULL))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static int set_warm(gcoll_comm *c, const char *value)
{
	int when = gci_warm_parse(value);

	if (when < 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "warm: \"%s\", expected on, now or off", value);
	gci_warm_set(c->engine, (enum gci_warm_when)when);
	return 0;
}

static int set_pace(gcoll_comm *c, const char *value)
{
	struct gci_error e = {0};
	enum gci_pace_how how;

	if (gci_pace_parse(value, &how))
		return gci_comm_error(
			GCOLL_ERR_INVAL, "pace: \"%s\", expected " GCI_PACE_EXPECTED, value);
	return gci_pacing_set(c->engine, how, &e) ? gci_comm_error(e.status, "pace: %s", e.text)
						  : 0;
}

static const struct {
	const char *key;
	int early; /* before the first operation only */
	int (*set)(gcoll_comm *c, const char *value);
} settings[] = {{"streams", 1, set_streams}, {"socket_buffer", 1, set_socket_buffer},
	{"congestion", 1, set_congestion}, {"checksum", 1, set_checksum},
	{"data_path", 1, set_data_path}, {"replay", 1, set_replay}, {"timeout", 0, set_timeout},
	{"order", 0, set_order}, {"compare", 0, set_compare}, {"tuning", 0, set_tuning},
	{"spin", 0, set_spin}, {"record", 0, set_record}, {"warm", 1, set_warm},
	{"pace", 0, set_pace}, {"security", 1, set_security}};

static int unknown_setting(const char *key)
{
	char list[256] = "";
	int k;

	for (k = 0; k < GCI_NKINDS; k++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s, ",
			gci_kind_name((enum gci_kind)k));
	return gci_comm_error(GCOLL_ERR_INVAL,
		"unknown setting \"%s\", expected %sorder, compare, tuning, streams, "
		"socket_buffer, congestion, checksum, data_path, replay, security, timeout, spin, "
		"pace, warm or record",
		key, list);
}

static int set(gcoll_comm *c, const char *key, const char *value)
{
	int kind = gci_kind_find(key);
	size_t i;

	if (kind >= 0)
		return set_algorithm(c, (enum gci_kind)kind, value);
	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		if (strcmp(key, settings[i].key) != 0)
			continue;
		if (settings[i].early && c->engine->started)
			return gci_comm_error(GCOLL_ERR_INVAL,
				"%s: connections may be open already, "
				"expected before the first operation",
				key);
		return settings[i].set(c, value);
	}
	return unknown_setting(key);
}

int gcoll_comm_set(gcoll_comm *c, const char *key, const char *value)
{
	int rc;

	if (!c || !key || !value)
		return gci_comm_error(GCOLL_ERR_INVAL, "%s is NULL",
			!c    ? "the communicator"
			: key ? "value"
			      : "key");
	rc = gci_enter(c->engine);
	if (rc)
		return rc;
	rc = set(c, key, value);
	gci_leave(c->engine);
	return rc;
}

/* ---- Communicators. */

static gcoll_comm *new_comm(struct gci_engine *e, uint32_t id, int rank, int size)
{
	gcoll_comm *c = gci_calloc(1, sizeof(*c));
	int i;

	if (!c)
		return NULL;
	c->id = id;
	if (gci_comms_add(&e->by_id, c)) {
		gci_free(c);
		return NULL;
	}
	c->engine = e;
	c->rank = rank;
	c->size = size;
	gci_list_init(&c->ops);
	for (i = 0; i < GCI_MESSAGE_SLOTS; i++)
		gci_list_init(&c->messages[i]);
	gci_list_push(&e->comms, &c->link);
	return c;
}

int gci_comm_create(gcoll_comm **out, int rank, struct gci_topo *topo, const char **hosts)
{
	struct gci_engine *e = gci_engine_create(rank, topo->nranks, hosts);
	gcoll_comm *c = e ? new_comm(e, 0, rank, topo->nranks) : NULL;
	int k;

	*out = c;
	if (!c) {
		gci_engine_free(e);
		return GCOLL_ERR_NOMEM;
	}
	c->topo = *topo;
	memset(topo, 0, sizeof(*topo));
	c->topo_digest = gci_topo_digest(&c->topo);
	for (k = 0; k < GCI_NKINDS; k++) {
		c->choice[k].how.algorithm = gci_algorithm_find((enum gci_kind)k, NULL);
		c->choice[k].automatic = 1;
	}
	c->tuning = GCI_TUNING_SIMULATE;
	e->world = c;
	e->next_id = 1;
	return 0;
}

void gci_comm_inherit(gcoll_comm *c, const gcoll_comm *from)
{
	memcpy(c->choice, from->choice, sizeof(c->choice));
	c->fixed_order = from->fixed_order;
	c->compares = from->compares;
	c->tuning = from->tuning;
}

/* What peers said on this communicator before it was made here. */
static void take_early(gcoll_comm *c)
{
	const struct gci_engine *e = c->engine;
	uint32_t i;

	for (i = 0; i < GCI_EARLY_OPS; i++) {
		const struct gci_early_op *o = &e->early[i];
		struct gci_seen_op *seen;
		uint64_t op = o->seq >> GCI_WINDOW_BITS;

		if (o->comm != c->id || o->seq & GCI_SEQ_MESSAGE)
			continue;
		seen = &c->seen[op % GCI_SEEN_OPS];
		if (!seen->set || seen->op < op)
			*seen = (struct gci_seen_op){op, o->digest, o->peer, 1};
	}
}

/* One of `size` of the parent's ranks: ranks[] are the parent's, `rank` the index of this one.
 * NULL: out of memory. */
static gcoll_comm *gci_comm_derive(
	gcoll_comm *parent, uint32_t id, const int *ranks, int size, int rank)
{
	gcoll_comm *c = new_comm(parent->engine, id, rank, size);
	int i;

	if (!c)
		return NULL;
	c->ranks = gci_calloc((size_t)size, sizeof(*c->ranks));
	if (!c->ranks || gci_topo_sub(&c->topo, &parent->topo, ranks, size)) {
		gci_comm_drop(c);
		return NULL;
	}
	for (i = 0; i < size; i++)
		c->ranks[i] = gci_comm_world_rank(parent, ranks[i]);
	c->topo_digest = gci_topo_digest(&c->topo);
	gci_comm_inherit(c, parent);
	take_early(c);
	return c;
}

void gci_comm_drop(gcoll_comm *c)
{
	struct gci_engine *e = c->engine;

	if (c->id) /* late messages may come */
		e->freed[e->nfreed++ % GCI_FREED_COMMS] =
			(struct gci_freed_comm){c->id, c->next_op};
	gci_list_del(&c->link);
	gci_comms_del(&e->by_id, c);
	gci_sched_cache_forget(&e->cache, &c->topo);
	gci_messages_free(c);
	gci_decider_free(&c->decider);
	gci_topo_free(&c->topo);
	gci_free(c->ranks);
	gci_free(c);
}

/* ---- do all ranks call the same? */

static int mismatch(gcoll_comm *c, uint64_t op, int peer)
{
	struct gci_engine *e = c->engine;
	char what[GCI_SIGNATURE_NBYTES] = "one thing";
	struct gci_sign own;

	if (gci_calls_find(&e->calls, c->id, op, &own))
		gci_sign_print(&own, what, sizeof(what));
	gci_engine_ask_call(e, peer, c->id, op);
	/* Either may be wrong: nobody is named as the one who failed. */
	gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
		"operation %" PRIu64
		": rank %d (%s) calls %s, rank %d (%s) " GCI_CTL_SOMETHING_ELSE,
		op, e->rank, e->hosts[e->rank], what, peer, e->hosts[peer]);
	return 0;
}

int gci_comm_check(gcoll_comm *c, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	uint64_t op = key->seq >> GCI_WINDOW_BITS;
	struct gci_seen_op *seen = &c->seen[op % GCI_SEEN_OPS];

	if (key->seq & GCI_SEQ_MESSAGE)
		return gci_message_check(c, peer, key, digest);
	if (!seen->set || seen->op < op)
		*seen = (struct gci_seen_op){op, digest, peer, 1};
	if (seen->op == op && seen->digest != digest && op < c->next_op)
		return mismatch(c, op, peer);
	return 1;
}

int gci_comm_see(gcoll_comm *c, uint64_t op, uint64_t digest)
{
	struct gci_seen_op *seen = &c->seen[op % GCI_SEEN_OPS];

	if (seen->set && seen->op == op && seen->digest != digest) {
		mismatch(c, op, seen->peer);
		return GCOLL_ERR_MISMATCH;
	}
	*seen = (struct gci_seen_op){op, digest, c->engine->rank, 1};
	return 0;
}

/* ---- Communicators made from others. Their number, which is in every message's key, must differ from
 * that of any other one that two of the ranks share: the highest that any rank of the parent has
 * free. Parts of one split share no ranks, and so have the same. */

static int compare(const void *a, const void *b)
{
	const struct gci_vote *x = a, *y = b;

	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int derive(struct gci_split *s, uint32_t id, gcoll_comm **out)
{
	gcoll_comm *c = s->parent;
	const struct gci_vote *votes = s->votes;
	int *ranks = gci_calloc((size_t)c->size, sizeof(*ranks));
	int i, n = 0, me = -1;

	if (!ranks)
		return -1;
	qsort(s->votes, (size_t)c->size, sizeof(*votes), compare);
	for (i = 0; i < c->size; i++) {
		if (votes[i].color != s->mine.color)
			continue;
		if (votes[i].rank == c->rank)
			me = n;
		ranks[n++] = (int)votes[i].rank;
	}
	*out = gci_comm_derive(c, id, ranks, n, me);
	gci_free(ranks);
	return *out ? 0 : -1;
}

int gci_split_start(struct gci_split *s, gcoll_comm *c, const char *name, int color, int key)
{
	struct gci_call call = {.kind = GCI_ALLGATHER,
		.name = name,
		.internal = 1,
		.send = &s->mine,
		.count = 1,
		.type = GCOLL_ELEMENT(sizeof(s->mine))};
	int rc;

	*s = (struct gci_split){
		.parent = c, .mine = {color < 0 ? -1 : color, key, c->engine->next_id, c->rank}};
	s->votes = gci_calloc((size_t)c->size, sizeof(*s->votes));
	if (!s->votes)
		return gci_req_error(c->engine, gci_engine_nomem(c->engine));
	call.recv = s->votes;
	rc = gci_collective_make(&call, c, &s->req);
	return rc ? rc : gci_req_launch(&s->req);
}

int gci_split_end(struct gci_split *s, int status, gcoll_comm **out)
{
	gcoll_comm *c = s->parent;
	struct gci_engine *e = c->engine;
	uint64_t id = 0;
	int i;

	*out = NULL;
	for (i = 0; i < c->size && !status; i++)
		id = s->votes[i].next_id > id ? s->votes[i].next_id : id;
	if (!status && id >= UINT32_MAX)
		status = gci_comm_error(GCOLL_ERR_UNSUPPORTED, "too many communicators were made");
	if (!status) {
		e->next_id = (uint32_t)id + 1;
		if (s->mine.color >= 0 && derive(s, (uint32_t)id, out))
			status = gci_req_error(e, gci_engine_nomem(e));
	}
	gci_free(s->votes);
	return status;
}

/* Numbers are agreed upon for one communicator at a time. */
static int may_split(const struct gci_engine *e)
{
	if (!e->splitting)
		return gci_req_may_wait(e);
	return gci_comm_error(GCOLL_ERR_INVAL,
		"another thread is in gcoll_comm_split or gcoll_comm_dup, expected one at a time");
}

static int split(gcoll_comm *c, const char *name, int color, int key, gcoll_comm **out)
{
	struct gci_split s;
	int rc;

	if (!out || !c)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", out ? "the communicator" : "out");
	rc = gci_enter(c->engine);
	if (rc)
		return rc;
	rc = may_split(c->engine);
	if (!rc) {
		c->engine->splitting = 1;
		rc = gci_split_start(&s, c, name, color, key);
		if (!rc)
			rc = gci_req_wait(&s.req);
		rc = gci_split_end(&s, rc, out);
		c->engine->splitting = 0;
	}
	gci_leave(c->engine);
	return rc;
}

int gcoll_comm_split(gcoll_comm *c, int color, int key, gcoll_comm **out)
{
	return split(c, "split", color, key, out);
}

int gcoll_comm_dup(gcoll_comm *c, gcoll_comm **out)
{
	return split(c, "dup", 0, 0, out);
}

int gcoll_comm_free(gcoll_comm **c)
{
	struct gci_engine *e;
	int rc;

	if (!c || !*c)
		return 0;
	e = (*c)->engine;
	rc = gci_enter(e);
	if (rc)
		return rc;
	if (*c == e->world) {
		rc = gci_comm_error(GCOLL_ERR_INVAL, "the world is freed by gcoll_finalize");
	} else if ((*c)->nrequests) {
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%u requests on the communicator are not freed", (*c)->nrequests);
	} else {
		gci_comm_drop(*c);
		*c = NULL;
	}
	gci_leave(e);
	return rc;
}
