/* SPDX-License-Identifier: MIT */
#include "comm/comm.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/units.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/message.h"
#include "comm/op.h"
#include "comm/planning.h"
#include "transport/path.h"
#include "transport/sockopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	struct gci_engine *e = c->engine;

	if (when < 0)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "warm: \"%s\", expected on, now or off", value);
	e->settings.warm = (enum gci_warm_when)when;
	if (when == GCI_WARM_NOW && e->flow.begins)
		e->flow.begins(e);
	return 0;
}

static int set_pace(gcoll_comm *c, const char *value)
{
	struct gci_error e = {0};
	enum gci_pace_how how;

	if (gci_pace_parse(value, &how))
		return gci_comm_error(
			GCOLL_ERR_INVAL, "pace: \"%s\", expected " GCI_PACE_EXPECTED, value);
	if (!c->engine->flow.set_pace || !c->engine->flow.set_pace(c->engine, how, &e))
		return 0;
	return gci_comm_error(e.status, "pace: %s", e.text);
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
	if (gci_hash_add(&e->comms.by_id, &c->by_id, gci_mix64(id))) {
		gci_free(c);
		return NULL;
	}
	c->engine = e;
	c->rank = rank;
	c->size = size;
	gci_list_init(&c->ops);
	for (i = 0; i < GCI_MESSAGE_SLOTS; i++)
		gci_list_init(&c->messages[i]);
	gci_list_push(&e->comms.all, &c->link);
	return c;
}

/* At once, whatever uses it. */
static void comm_drop(gcoll_comm *c)
{
	struct gci_engine *e = c->engine;

	if (c->id) /* late messages may come */
		e->comms.absent.freed[e->comms.absent.nfreed++ % GCI_FREED_COMMS] =
			(struct gci_freed_comm){c->id, c->next_op};
	gci_list_del(&c->link);
	gci_hash_del(&e->comms.by_id, &c->by_id);
	gci_sched_cache_forget(&e->cache, &c->topo);
	gci_messages_free(c);
	gci_planning_free(c);
	gci_decider_free(&c->decider);
	gci_topo_free(&c->topo);
	gci_free(c->ranks);
	gci_free(c);
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
	e->comms.next_id = 1;
	e->comms.drop = comm_drop;
	e->comms.fail = gci_messages_fail;
	e->comms.expected_ns = gci_ops_expected_ns;
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
		const struct gci_early_op *o = &e->comms.absent.early[i];
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
		comm_drop(c);
		return NULL;
	}
	for (i = 0; i < size; i++)
		c->ranks[i] = gci_comm_world_rank(parent, ranks[i]);
	c->topo_digest = gci_topo_digest(&c->topo);
	gci_comm_inherit(c, parent);
	take_early(c);
	return c;
}

/* ---- What the transport asks. */

#define REPLAY_NBYTES (64u << 20)

/* Within a machine nothing is congested: what paces its packets, as BBR does, only sets timers and
 * waits for them. */
static const char *congestion_of(const struct gci_engine *e, int far)
{
	if (far && *e->settings.congestion)
		return e->settings.congestion;
	return e->world->topo.one_host ? "reno" : NULL;
}

/* Encrypted links always: the lengths of TLS records have no sum, so one that has changed on the way
 * cannot be told from a sender that computes, and its connection can only be made again. */
static int replays(const struct gci_engine *e, int far, int encrypted)
{
	switch (e->settings.replay) {
	case GCI_REPLAY_AUTO: /* nothing on the way resets what goes from memory to memory */
		return encrypted || far || !e->world->topo.one_host;
	case GCI_REPLAY_WAN:
		return encrypted || far;
	default:
		return encrypted || e->settings.replay == GCI_REPLAY_ALWAYS;
	}
}

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	struct gci_engine *e = user;
	const struct gci_topo *t = &e->world->topo;
	int a = t->cluster[e->rank], b = t->cluster[peer];
	struct gci_flight f, back;

	gci_topo_flight(t, a, b, e->settings.streams, &f);
	gci_topo_flight(t, b, a, e->settings.streams, &back);
	*out = (struct gci_tp_link){.streams = f.streams,
		.eager_nbytes = a == b ? GCI_LAN_EAGER : GCI_WAN_EAGER,
		.sockbuf_nbytes = e->settings.sockbuf_nbytes,
		.flight_nbytes =
			back.stream_nbytes > f.stream_nbytes ? back.stream_nbytes : f.stream_nbytes,
		.rtt_ns = f.rtt_ns,
		.congestion = congestion_of(e, a != b),
		/* A machine's own network does not fall silent, but drops when it is loaded. */
		.dead_ns = t->one_host ? 0 : e->job.dead_ns,
		.unchecked = e->settings.checksum == GCI_CHECKSUM_OFF ||
			     (e->settings.checksum == GCI_CHECKSUM_AUTO && t->one_host),
		.encrypted = gci_security_encrypts(e->settings.security, a != b),
		.open = e->settings.security == GCI_SECURITY_OFF,
		.path = e->settings.data_path,
		.pace_group = a == b ? 0 : gci_engine_pace_group(t->in_grid[b])};
	if (replays(e, a != b, out->encrypted))
		out->replay_nbytes = REPLAY_NBYTES;
	if (a == b && e->job.lanes) {
		out->streams = e->job.lanes(e->job.world, e->rank, peer);
		out->flight_nbytes /= out->streams;
	}
}

/* A communicator that is not here: another rank may be ahead of us in making it, or behind in
 * using it. An operation that was begun here on no communicator of this number is an error. */
static int check_absent(
	struct gci_engine *e, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	uint32_t i;

	if (key->comm >= e->comms.next_id) {
		e->comms.absent.early[e->comms.absent.nearly++ % GCI_EARLY_OPS] =
			(struct gci_early_op){key->comm, peer, key->seq, digest};
		return 1;
	}
	for (i = 0; i < GCI_FREED_COMMS; i++) {
		const struct gci_freed_comm *f = &e->comms.absent.freed[i];

		if (f->id != key->comm || key->seq & GCI_SEQ_MESSAGE ||
			key->seq >> GCI_WINDOW_BITS < f->next_op)
			continue;
		gci_engine_ask_call(e, peer, key->comm, key->seq >> GCI_WINDOW_BITS);
		gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
			"operation %" PRIu64 " on communicator %" PRIu32
			": rank %d (%s) has freed it, rank %d (%s) calls " GCI_CTL_SOMETHING_ELSE,
			key->seq >> GCI_WINDOW_BITS, key->comm, e->rank, e->hosts[e->rank], peer,
			e->hosts[peer]);
		return 0;
	}
	return 1;
}

/* Every message and credit names its operation: a peer that runs another one is found even if no
 * tag of theirs meets one of ours. */
static int on_check(void *user, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	struct gci_engine *e = user;
	gcoll_comm *c = gci_comm_find(e, key->comm);
	uint64_t op = key->seq >> GCI_WINDOW_BITS;

	if (e->finalizing && c && !(key->seq & GCI_SEQ_MESSAGE) && op >= c->next_op) {
		gci_engine_ask_call(e, peer, key->comm, op);
		gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
			"operation %" PRIu64 ": rank %d (%s) has left the job, rank %d (%s) "
			"calls " GCI_CTL_SOMETHING_ELSE,
			op, e->rank, e->hosts[e->rank], peer, e->hosts[peer]);
		return 0;
	}
	if (!c)
		return check_absent(e, peer, key, digest);
	if (key->seq & GCI_SEQ_MESSAGE)
		return gci_message_check(c, peer, key, digest);
	return gci_op_check(c, peer, op, digest);
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	gci_engine_lost(user, f);
}

struct gci_tp_config gci_comm_tp_config(struct gci_engine *e)
{
	return (struct gci_tp_config){.rank = e->rank,
		.size = e->size,
		.epoch = 1,
		.user = e,
		.link = on_link,
		.on_failure = on_failure,
		.check = on_check,
		.activity = &e->wait.activity,
		.taps = e->taps};
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

	*s = (struct gci_split){.parent = c,
		.mine = {color < 0 ? -1 : color, key, c->engine->comms.next_id, c->rank}};
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
		e->comms.next_id = (uint32_t)id + 1;
		if (s->mine.color >= 0 && derive(s, (uint32_t)id, out))
			status = gci_req_error(e, gci_engine_nomem(e));
	}
	gci_free(s->votes);
	return status;
}

/* Numbers are agreed upon for one communicator at a time. */
static int may_split(const struct gci_engine *e)
{
	if (!e->comms.splitting)
		return gci_may_wait(e);
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
		c->engine->comms.splitting = 1;
		rc = gci_split_start(&s, c, name, color, key);
		if (!rc)
			rc = gci_req_wait(&s.req);
		rc = gci_split_end(&s, rc, out);
		c->engine->comms.splitting = 0;
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
		comm_drop(*c);
		*c = NULL;
	}
	gci_leave(e);
	return rc;
}

/* ---- What it is, and its end by the program's wish. */

int gcoll_rank(const gcoll_comm *c)
{
	return c ? c->rank : -1;
}

int gcoll_size(const gcoll_comm *c)
{
	return c ? c->size : 0;
}

const char *gcoll_host(const gcoll_comm *c, int rank)
{
	return c && rank >= 0 && rank < c->size ? gci_comm_host(c, rank) : "";
}

int gcoll_cluster(const gcoll_comm *c, int rank)
{
	return c && rank >= 0 && rank < c->size ? c->topo.cluster[rank] : -1;
}

int gcoll_clusters(const gcoll_comm *c)
{
	return c ? c->topo.nclusters : 0;
}

/* Another thread is in a call, which the launcher's word will end. */
static void tell_launcher(struct gci_engine *e, const char *reason)
{
	struct gci_ctl_failure f = {.status = GCOLL_ERR_ABORTED, .rank = e->rank};

	snprintf(f.text, sizeof(f.text), "%s", reason);
	if (e->job.ctl)
		e->job.launcher->fail(e->job.ctl, &f);
}

void gcoll_comm_abort(gcoll_comm *c, const char *reason)
{
	struct gci_engine *e = c ? c->engine : NULL;
	int rc = c ? gci_enter(e) : 0;

	if (!reason || !*reason)
		reason = "no reason was given";
	if (rc && rc != GCOLL_ERR_FORKED)
		tell_launcher(e, reason);
	if (!c || rc)
		return;
	/* Where a failure has ended an epoch, this may be why the rank does not go on to the next one.
	 */
	if (e->failure.status && e->job.ctl && e->job.launcher->survives(e->job.ctl))
		tell_launcher(e, reason);
	gci_engine_fail(e, GCOLL_ERR_ABORTED, e->rank, "%s", reason);
	gci_thread_nudge(e);
	gci_leave(e);
}
