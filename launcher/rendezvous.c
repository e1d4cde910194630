/* SPDX-License-Identifier: MIT */
#include "launcher/rendezvous.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/coll.h"
#include "launcher/rdv_internal.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

static void send_plain(struct gci_rdv *r, enum gci_ctl_type type);

/* ---- Ranks that others start: what they say of themselves is all that is known of them, and the end of
 * their control connection the only sign of theirs. */

/* It is the job's fault: others would wait in vain for the rank that this one should have been. */
static int refuse_all(struct gci_rdv *r, struct gci_rdv_conn *c, const char *why, uint64_t now_ns)
{
	gci_rdv_give_up(r, GCOLL_ERR_INVAL, why, now_ns);
	gci_rdv_turn_away(r, c, GCOLL_ERR_INVAL, why);
	return 0;
}

static int admit_guest(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m, uint64_t now_ns)
{
	char why[GCI_CTL_TEXT];

	if (m->size && m->size != r->config.size) {
		snprintf(why, sizeof(why),
			"rank %u%s%s was started as one of %u (GRIDCOLL_SIZE), "
			"but gridcoll-run serves a job of %u (-n): expected the same number",
			m->rank, *m->host ? " on " : "", m->host, m->size, r->config.size);
		return refuse_all(r, c, why, now_ns);
	}
	if (r->config.arrive &&
		r->config.arrive(r->config.guests, m->rank, m->host, m->cluster, why, sizeof(why)))
		return refuse_all(r, c, why, now_ns);
	return 1;
}

/* A process that comes as a rank that is there may be one too many, or another rank that was told a
 * wrong number. */
static void tell_of_double(struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m)
{
	const uint32_t rank = m->rank;
	char why[GCI_CTL_TEXT];

	if (!gci_rdv_is_guest(r, rank)) {
		snprintf(why, sizeof(why), "rank %u has joined already", rank);
	} else {
		snprintf(why, sizeof(why),
			"rank %u has joined already, from another process: "
			"expected a number of its own for each "
			"(GRIDCOLL_RANK, GRIDCOLL_RANK_FROM or --rank-from)",
			rank);
		gci_buf_printf(&r->news, "a second process%s%s came as rank %u\n",
			*m->host ? " on " : "", m->host, rank);
	}
	gci_rdv_turn_away(r, c, GCOLL_ERR_INVAL, why);
}

/* A stranger with the secret and a wrong number is no failure of the job, before it begins or later. */
static void turn_away_too_high(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m)
{
	char why[GCI_CTL_TEXT];

	snprintf(why, sizeof(why),
		"a process%s%s came as rank %u, but gridcoll-run serves a job of %u ranks (-n), "
		"from 0",
		*m->host ? " on " : "", m->host, m->rank, r->config.size);
	gci_buf_printf(&r->news, "turned away: %s\n", why);
	gci_rdv_turn_away(r, c, GCOLL_ERR_INVAL, why);
}

/* May this rank join by what it says? Else it was told why not, and 0. */
static int admit(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m, uint64_t now_ns)
{
	if (m->rank >= r->config.size) {
		turn_away_too_high(r, c, m);
		return 0;
	}
	if (r->ranks[m->rank].joined) {
		tell_of_double(r, c, m);
		return 0;
	}
	if (r->ranks[m->rank].missing) { /* it was started after all */
		gci_rdv_turn_away(r, c, GCOLL_ERR_ABORTED, "the job goes on without this rank");
		return 0;
	}
	return gci_rdv_is_guest(r, m->rank) ? admit_guest(r, c, m, now_ns) : 1;
}

/* ---- Connections until it is known who is there. */

static void count_places(struct gci_rdv *r)
{
	r->unauth.most = GCI_RDV_STRANGERS + r->config.size - r->njoined;
}

int gci_rdv_is_crowded(const struct gci_rdv *r)
{
	return gci_unauth_is_full(&r->unauth);
}

int gci_rdv_is_stranger(const struct gci_rdv_conn *c)
{
	return c->rank < 0;
}

struct gci_rdv_conn *gci_rdv_open(
	struct gci_rdv *r, void *user, const struct gci_reach *from, uint64_t now_ns)
{
	struct gci_rdv_conn *c = gci_calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	while (gci_unauth_is_full(&r->unauth)) {
		struct gci_unauth_place *p = gci_unauth_gives_way(&r->unauth);

		gci_rdv_drop(r, gci_container(p, struct gci_rdv_conn, place));
	}
	c->rank = c->named = -1;
	c->user = user;
	c->since_ns = now_ns;
	c->from = *from;
	gci_unauth_enter(&r->unauth, &c->place, from->ip[0]);
	gci_list_push(&r->conns, &c->link);
	return c;
}

void gci_rdv_named(struct gci_rdv_conn *c, uint32_t rank)
{
	c->named = (int32_t)rank;
	gci_unauth_leave(&c->place);
}

/* Of each address once a minute, and of so many: whoever can connect may do this at will. */
static int is_worth_a_line(struct gci_rdv *r, const uint8_t ip[16], uint64_t now_ns)
{
	int i, old = -1;

	for (i = 0; i < RDV_TOLD; i++) {
		if (!r->wrong.told_of[i].at_ns || now_ns - r->wrong.told_of[i].at_ns >= RDV_TOLD_NS)
			old = i;
		else if (!memcmp(r->wrong.told_of[i].ip, ip, sizeof(r->wrong.told_of[i].ip)))
			return 0;
	}
	if (old < 0)
		return 0;
	memcpy(r->wrong.told_of[old].ip, ip, sizeof(r->wrong.told_of[old].ip));
	r->wrong.told_of[old].at_ns = now_ns;
	return 1;
}

void gci_rdv_wrong_secret(struct gci_rdv *r, const struct gci_rdv_conn *c, uint64_t now_ns)
{
	const uint8_t *ip = c->from.ip[0];
	char text[INET6_ADDRSTRLEN] = "";

	if (!r->config.nguests)
		return;
	if (!is_worth_a_line(r, ip, now_ns)) {
		r->wrong.nuntold++;
		return;
	}
	inet_ntop(c->from.six & 1 ? AF_INET6 : AF_INET, ip, text, sizeof(text));
	gci_buf_printf(&r->news,
		"turned away: a process at %s has another secret, expected that of "
		"this job (--secret-file)",
		text);
	if (r->wrong.nuntold)
		gci_buf_printf(&r->news, "; since the last such line %u more", r->wrong.nuntold);
	gci_buf_printf(&r->news, "\n");
	r->wrong.nuntold = 0;
}

static void drop_old_strangers(struct gci_rdv *r, uint64_t now_ns)
{
	struct gci_list *it;

	/* As long as ranks are to come, each may be one that has had no processor yet. */
	if (!r->started)
		return;
	gci_list_each (it, &r->conns) {
		struct gci_rdv_conn *c = gci_container(it, struct gci_rdv_conn, link);

		if (c->rank < 0 && now_ns - c->since_ns >= GCI_RDV_STRANGER_NS)
			gci_rdv_drop(r, c);
	}
}

/* ---- What ranks that have joined say, to the launcher or through it to each other. */

/* Only a rank that has left will never do what another waits for; others may be about to. */
static void pass_on_wait(struct gci_rdv *r, uint32_t from, const struct gci_ctl_wait *w)
{
	struct gci_ctl_wait there = *w;
	int32_t to = gci_rdv_job_rank(r, (int32_t)w->rank);
	struct gci_rdv_conn *c;

	if (to < 0 || !r->ranks[to].bye)
		return;
	c = r->ranks[to].conn;
	if (!c || c->closing)
		return;
	there.rank = (uint32_t)gci_rdv_number(r, (int32_t)from);
	gci_ctl_put_wait(&c->out, &there);
	gci_rdv_mark_dirty(r, c);
}

static void pass_on_ask(struct gci_rdv *r, uint32_t from, const struct gci_ctl_call *m)
{
	struct rdv_rank *k = &r->ranks[from];
	struct gci_ctl_call there = *m;
	int32_t to = gci_rdv_job_rank(r, (int32_t)m->rank);
	struct gci_rdv_conn *c;

	if (k->asked.is_asked || to < 0) /* the first word counts, as of failures */
		return;
	c = r->ranks[to].conn;
	if (!c || c->closing)
		return;
	k->asked.is_asked = 1;
	k->asked.rank = (uint32_t)to;
	k->asked.comm = m->comm;
	k->asked.op = m->op;
	there.rank = (uint32_t)gci_rdv_number(r, (int32_t)from);
	gci_ctl_put_call(&c->out, GCI_CTL_ASK, &there);
	gci_rdv_mark_dirty(r, c);
}

static void take_answer(struct gci_rdv *r, uint32_t from, const struct gci_ctl_call *m)
{
	int32_t by = gci_rdv_job_rank(r, (int32_t)m->rank);
	const struct rdv_rank *k = by >= 0 ? &r->ranks[by] : NULL;

	if (k && k->asked.is_asked && k->asked.rank == from && k->asked.comm == m->comm &&
		k->asked.op == m->op)
		gci_rdv_answer(r, (uint32_t)by, m->text);
}

static void take_flows(struct gci_rdv *r, uint32_t from, struct gci_ctl_flows *m)
{
	uint32_t i;

	for (i = 0; i < m->n; i++) {
		m->flows[i].peer = gci_rdv_job_rank(r, m->flows[i].peer);
		if (m->flows[i].peer < 0)
			return; /* of an epoch that is over */
	}
	if (r->config.reports.flows)
		r->config.reports.flows(r->config.reports.user, from, m);
}

/* To a question that nobody will answer any more. Whoever asks learned of the first failure from
 * one ABORT; the second tells that there is nothing to go on with. */
static int turned_away(struct gci_rdv *r, struct gci_rdv_conn *c)
{
	if (!r->config.survives)
		return 0;
	if (gci_rdv_is_over(r))
		gci_rdv_turn_away(r, c, GCOLL_ERR_ABORTED, r->verdict.sentence);
	else if (!gci_rdv_counts(r, (uint32_t)c->rank))
		gci_rdv_turn_away(r, c, GCOLL_ERR_ABORTED, "the job goes on without this rank");
	return c->closing;
}

static void take_bye(struct gci_rdv *r, uint32_t from)
{
	struct rdv_rank *k = &r->ranks[from];

	if (k->bye || !gci_rdv_counts(r, from))
		return;
	k->bye = 1;
	gci_members_leaves(&r->members, from);
	if (++r->nbye == r->members.n)
		send_plain(r, GCI_CTL_BYE);
}

static void on_message(
	struct gci_rdv *r, struct gci_rdv_conn *c, struct gci_ctl_message *m, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[c->rank];

	k->link.got += (uint64_t)gci_ctl_counts(m->type);
	switch (m->type) {
	case GCI_CTL_BEAT:
		if (!gci_ctl_link_acked(&k->link, m->got.n))
			break;
		gci_rdv_tell(r, (uint32_t)c->rank, c->rank, GCOLL_ERR_PROTO,
			"has heard more messages than there were", now_ns);
		gci_rdv_drop(r, c);
		break;
	case GCI_CTL_FAIL:
		gci_rdv_tell(r, (uint32_t)c->rank, gci_rdv_job_rank(r, m->failure.rank),
			m->failure.status, m->failure.text, now_ns);
		break;
	case GCI_CTL_BYE:
		take_bye(r, (uint32_t)c->rank);
		break;
	case GCI_CTL_ASK:
		pass_on_ask(r, (uint32_t)c->rank, &m->call);
		break;
	case GCI_CTL_CALLED:
		take_answer(r, (uint32_t)c->rank, &m->call);
		break;
	case GCI_CTL_REPORT:
		if (r->config.reports.report)
			r->config.reports.report(
				r->config.reports.user, (uint32_t)c->rank, &m->report);
		break;
	case GCI_CTL_FLOWS:
		take_flows(r, (uint32_t)c->rank, &m->flows);
		break;
	case GCI_CTL_AGREE:
		if (!turned_away(r, c))
			gci_rdv_on_agree(r, (uint32_t)c->rank, &m->agree);
		break;
	case GCI_CTL_SHRINK:
		if (!turned_away(r, c))
			gci_rdv_on_shrink(r, (uint32_t)c->rank, &m->survivors, now_ns);
		break;
	case GCI_CTL_WAIT:
		pass_on_wait(r, (uint32_t)c->rank, &m->wait);
		break;
	default:
		gci_rdv_tell(r, (uint32_t)c->rank, c->rank, GCOLL_ERR_PROTO,
			"sent a control message that only the launcher sends", now_ns);
		gci_rdv_drop(r, c);
	}
}

/* ---- Connections of ranks. */

#define NOBODYS_PORT 1 /* tcpmux, which nobody has */

int gci_rdv_create(struct gci_rdv **out, const struct gci_rdv_config *config, uint64_t now_ns)
{
	struct gci_rdv *r = gci_calloc(1, sizeof(*r));

	*out = r;
	if (!r)
		return GCOLL_ERR_NOMEM;
	r->config = *config;
	r->verdict_ns = r->times.joined_ns = r->times.silence_ns = GCI_NEVER;
	r->times.ticked_ns = r->times.began_ns = now_ns;
	r->times.beat_ns = now_ns + config->beat_ns;
	gci_list_init(&r->conns);
	gci_list_init(&r->dirty);
	gci_unauth_init(&r->unauth, 0, gci_digest_bytes(now_ns, config->secret, GCI_SECRET_NBYTES));
	count_places(r);
	r->ranks = gci_calloc(config->size, sizeof(*r->ranks));
	if (r->ranks && !gci_members_create(&r->members, config->size, config->shrink_ns))
		return 0;
	gci_rdv_free(r);
	*out = NULL;
	return GCOLL_ERR_NOMEM;
}

static void conn_free(struct gci_rdv *r, struct gci_rdv_conn *c)
{
	if (c->rank >= 0)
		r->ranks[c->rank].conn = NULL;
	gci_unauth_leave(&c->place);
	gci_list_del(&c->link);
	gci_list_del(&c->dirty);
	gci_buf_free(&c->in);
	gci_buf_free(&c->out);
	gci_free(c);
}

void gci_rdv_free(struct gci_rdv *r)
{
	uint32_t i;

	if (!r)
		return;
	while (!gci_list_empty(&r->conns))
		conn_free(r, gci_container(r->conns.next, struct gci_rdv_conn, link));
	for (i = 0; r->ranks && i < r->config.size; i++) {
		gci_ctl_link_free(&r->ranks[i].link);
		gci_free(r->ranks[i].told.text);
		gci_free(r->ranks[i].asked.answer);
		gci_free(r->ranks[i].last_words);
	}
	gci_free(r->ranks);
	gci_free(r->budgets.v);
	gci_members_free(&r->members);
	gci_buf_free(&r->news);
	OPENSSL_cleanse(r->config.secret, sizeof(r->config.secret));
	gci_free(r);
}

/* To all that have joined, and belong to the present epoch; frees the bytes. */
static void send_all(struct gci_rdv *r, struct gci_buf *bytes)
{
	struct gci_list *it;

	gci_list_each (it, &r->conns) {
		struct gci_rdv_conn *c = gci_container(it, struct gci_rdv_conn, link);

		if (c->rank < 0 || c->closing || !gci_rdv_counts(r, (uint32_t)c->rank))
			continue;
		gci_buf_put(&c->out, bytes->data, bytes->len);
		c->out.failed |= bytes->failed;
		gci_rdv_mark_dirty(r, c);
	}
	gci_buf_free(bytes);
}

static void send_plain(struct gci_rdv *r, enum gci_ctl_type type)
{
	struct gci_buf bytes = {0};

	gci_ctl_put_plain(&bytes, type);
	send_all(r, &bytes);
}

static void send_beats(struct gci_rdv *r)
{
	struct gci_list *it;

	gci_list_each (it, &r->conns) {
		struct gci_rdv_conn *c = gci_container(it, struct gci_rdv_conn, link);

		if (c->rank < 0 || c->closing || c->away)
			continue;
		gci_ctl_put_got(&c->out, GCI_CTL_BEAT, r->ranks[c->rank].link.got);
		gci_rdv_mark_dirty(r, c);
	}
}

static void put_start(const struct gci_rdv *r, struct gci_buf *bytes)
{
	struct gci_ctl_start m = {.size = r->config.size,
		.epoch = 1, /* of later ones SURVIVORS tells, also who has lost both */
		.beat_ns = r->config.beat_ns,
		.dead_ns = r->config.dead_ns,
		.grid = (char *)(uintptr_t)r->config.grid,
		.table = (char *)(uintptr_t)r->config.table,
		.table_digest = r->config.table_digest,
		.survives = r->config.survives != 0};
	struct gci_reach nowhere;
	uint32_t i;

	/* Whoever calls one that is missing, before it hears so, finds nobody. */
	for (i = 0; i < m.size && !r->ranks[i].joined; i++)
		;
	nowhere = r->ranks[i].reach;
	nowhere.port = NOBODYS_PORT;
	m.ranks = gci_calloc(m.size, sizeof(*m.ranks));
	for (i = 0; m.ranks && i < m.size; i++) {
		m.ranks[i].host = r->config.hosts[i];
		m.ranks[i].reach = r->ranks[i].joined ? r->ranks[i].reach : nowhere;
	}
	if (m.ranks)
		gci_ctl_put_start(bytes, &m);
	bytes->failed |= !m.ranks;
	gci_free(m.ranks);
}

static void send_start(struct gci_rdv *r, uint64_t now_ns)
{
	struct gci_buf start = {0}, bytes = {0};
	uint32_t i;
	size_t k;

	put_start(r, &start);
	for (k = 0; k < r->budgets.n; k++)
		gci_ctl_put_budget(&bytes, &r->budgets.v[k]);
	for (i = 0; i < r->config.size; i++) {
		struct gci_rdv_conn *c = r->ranks[i].conn;

		r->ranks[i].heard_ns = now_ns;
		if (!c || c->closing)
			continue;
		if (!c->away) /* else it follows RESUMED */
			gci_buf_put(&c->out, start.data, start.len);
		gci_buf_put(&c->out, bytes.data, bytes.len);
		c->out.failed |= start.failed || bytes.failed;
		if (r->watch.period_ms)
			gci_ctl_put_watch(&c->out, &r->watch);
		gci_rdv_mark_dirty(r, c);
	}
	r->started = 1;
	gci_buf_free(&start);
	gci_buf_free(&bytes);
}

int gci_rdv_budget(struct gci_rdv *r, const struct gci_ctl_budget *b)
{
	struct gci_buf bytes = {0};
	size_t i = 0;

	while (i < r->budgets.n && (r->budgets.v[i].from != b->from || r->budgets.v[i].to != b->to))
		i++;
	if (gci_grow(&r->budgets.v, &r->budgets.cap, i + 1, sizeof(*r->budgets.v)))
		return GCOLL_ERR_NOMEM;
	r->budgets.v[i] = *b;
	r->budgets.n += i == r->budgets.n;
	if (!r->started) /* START brings it */
		return 0;
	gci_ctl_put_budget(&bytes, b);
	send_all(r, &bytes);
	return 0;
}

void gci_rdv_watch(struct gci_rdv *r, const struct gci_ctl_watch *m)
{
	struct gci_buf bytes = {0};

	r->watch = *m;
	if (!r->started)
		return;
	gci_ctl_put_watch(&bytes, m);
	send_all(r, &bytes);
}

/* `lonely` cannot be reached from `other`'s host. */
static int cannot_meet(const struct gci_rdv *r, uint32_t lonely, uint32_t other, const char *what,
	char *why, size_t size)
{
	char there[GCI_REACH_TEXT], here[GCI_REACH_TEXT];

	snprintf(why, size,
		"rank %u on %s takes connections at %.80s only, rank %u on %s at %.80s: expected "
		"%s (see --interfaces)",
		lonely, r->config.names[lonely], gci_reach_format(&r->ranks[lonely].reach, there),
		other, r->config.names[other], gci_reach_format(&r->ranks[other].reach, here),
		what);
	return -1;
}

/* Once all have joined: can they reach each other, as far as their addresses tell? 0, or -1 with
 * the reason. */
static int meet(const struct gci_rdv *r, char *why, size_t size)
{
	static const struct gci_reach four = {1, 1, 0, {{0}}}, six = {1, 1, 1, {{0}}};
	uint32_t only[2] = {r->config.size, r->config.size}; /* a rank of one family only */
	uint32_t lonely = r->config.size, other = r->config.size, i;

	for (i = 0; i < r->config.size; i++) {
		const struct gci_reach *reach = &r->ranks[i].reach;

		if (!r->ranks[i].joined)
			continue;
		if (!gci_reach_meet(reach, &six))
			only[0] = i;
		if (!gci_reach_meet(reach, &four))
			only[1] = i;
		if (gci_reach_is_loopback(reach))
			lonely = i;
		else
			other = i;
	}
	if (only[0] < r->config.size && only[1] < r->config.size)
		return cannot_meet(
			r, only[1], only[0], "addresses of one family, IPv4 or IPv6", why, size);
	/* All on loopback: they are on one machine, by whatever names. */
	if (lonely < r->config.size && other < r->config.size &&
		r->config.hosts[lonely] != r->config.hosts[other])
		return cannot_meet(
			r, lonely, other, "addresses that lead from host to host", why, size);
	return 0;
}

static void begin(struct gci_rdv *r, uint64_t now_ns)
{
	char why[GCI_CTL_TEXT];

	if (r->config.settle)
		r->config.grid = r->config.settle(r->config.guests, why, sizeof(why));
	if (!r->config.grid || meet(r, why, sizeof(why))) {
		gci_rdv_give_up(r, GCOLL_ERR_INVAL, why, now_ns);
		return;
	}
	send_start(r, now_ns);
	if (r->nmissing)
		gci_rdv_arm(r, now_ns, 0);
}

/* Begins the job, once all have come that can. */
static void begin_if_all(struct gci_rdv *r, uint64_t now_ns)
{
	if (r->njoined && r->njoined + r->nmissing == r->config.size && !r->started)
		begin(r, now_ns);
}

static int is_ours(struct gci_rdv *r, const struct gci_rdv_conn *c, const struct gci_ctl_message *m)
{
	uint8_t token[32];

	return m->type == GCI_CTL_HELLO && (r->config.nguests || m->hello.rank < r->config.size) &&
	       (c->named < 0 || (uint32_t)c->named == m->hello.rank) &&
	       !gci_ctl_token(r->config.secret, m->hello.rank, token) &&
	       !CRYPTO_memcmp(token, m->hello.token, sizeof(token));
}

/* Ranks that do not make the same schedules would wait for each other's messages for ever. */
static int is_built_alike(const struct gci_ctl_hello *m, char *why, size_t size)
{
	static const char *const order[] = {"little-endian", "big-endian"};

	if (m->version != GCI_CTL_VERSION) {
		snprintf(why, size,
			"speaks version %u of the control protocol, expected %d (another release "
			"of gridcoll)",
			m->version, GCI_CTL_VERSION);
		return 0;
	}
	if (m->schedules == gci_build.schedules && m->big_endian == gci_build.big_endian)
		return 1;
	snprintf(why, size,
		"is of gridcoll %s with schedules %016llx, %s, but gridcoll-run of %s with "
		"%016llx, %s: expected the same on all hosts",
		m->release, (unsigned long long)m->schedules, order[m->big_endian],
		gci_build.release, (unsigned long long)gci_build.schedules,
		order[gci_build.big_endian]);
	return 0;
}

static void on_hello(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_hello *m, uint64_t now_ns)
{
	struct rdv_rank *k;
	char why[GCI_CTL_TEXT];

	if (!is_built_alike(m, why, sizeof(why))) {
		gci_rdv_turn_away(r, c, GCOLL_ERR_PROTO, why);
		if (m->rank < r->config.size && !r->ranks[m->rank].joined)
			gci_rdv_tell(r, m->rank, (int32_t)m->rank, GCOLL_ERR_PROTO, why, now_ns);
		return;
	}
	if (!admit(r, c, m, now_ns))
		return;
	k = &r->ranks[m->rank];
	gci_unauth_leave(&c->place);
	c->rank = (int32_t)m->rank;
	k->conn = c;
	k->joined = 1;
	k->heard_ns = now_ns;
	k->reach = m->reach;
	memcpy(k->session, m->session, sizeof(k->session));
	if (!r->njoined++)
		r->times.joined_ns = now_ns;
	count_places(r);
	if (gci_rdv_verdict(r))
		gci_rdv_turn_away(r, c, r->verdict.status, r->verdict.sentence);
	else
		begin_if_all(r, now_ns);
	if (!r->started)
		gci_rdv_check_leavers(r, now_ns);
}

/* ---- a connection that is made again */

static void note_heard(const struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (r->started && now_ns - k->heard_ns > r->config.dead_ns / 2)
		k->back_ns = now_ns;
	k->heard_ns = now_ns;
	k->returned |= k->missed;
	k->missed = 0;
}

static int may_resume(
	struct gci_rdv *r, const struct gci_rdv_conn *c, const struct gci_ctl_message *m)
{
	const struct gci_ctl_resume *said = &m->resume;
	uint8_t key[32], token[32];
	int ok = 0;

	if (m->type == GCI_CTL_RESUME && said->rank < r->config.size &&
		(c->named < 0 || (uint32_t)c->named == said->rank) && r->ranks[said->rank].joined &&
		said->life > r->ranks[said->rank].life &&
		!gci_ctl_resume_key(r->config.secret, said->rank, key))
		ok = !gci_ctl_resume_token(key, said, r->ranks[said->rank].session, token) &&
		     !CRYPTO_memcmp(token, said->token, sizeof(token));
	OPENSSL_cleanse(key, sizeof(key));
	return ok;
}

/* What its old connection had still to say goes behind what is said again. */
static void take_over(struct gci_rdv *r, struct gci_rdv_conn *c, uint32_t rank, int from_start)
{
	struct rdv_rank *k = &r->ranks[rank];
	struct gci_rdv_conn *old = k->conn;

	gci_ctl_put_got(&c->out, GCI_CTL_RESUMED, k->link.got);
	if (from_start)
		put_start(r, &c->out);
	gci_buf_put(&c->out, k->link.kept.data, k->link.kept.len);
	c->nkept = c->out.len;
	if (old) {
		gci_buf_consume(&old->out, old->nkept);
		gci_buf_put(&c->out, old->out.data, old->out.len);
		c->out.failed |= old->out.failed;
		gci_buf_free(&old->out);
		old->rank = -1;
		if (old->away)
			conn_free(r, old);
		else
			gci_rdv_drop(r, old);
	}
	gci_unauth_leave(&c->place);
	c->rank = (int32_t)rank;
	k->conn = c;
	gci_rdv_mark_dirty(r, c);
}

static void on_resume(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_resume *m, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[m->rank];

	k->life = m->life;
	if (gci_rdv_is_over(r)) {
		gci_rdv_abort(r, c);
	} else if (k->exited || k->left_out || (k->lost && !k->bye)) {
		gci_rdv_turn_away(r, c, GCOLL_ERR_ABORTED, "the job goes on without this rank");
	} else if (gci_ctl_link_acked(&k->link, m->got) || k->link.gap) {
		gci_rdv_turn_away(r, c, GCOLL_ERR_PROTO,
			"its control connection was lost, with messages that cannot be sent again");
	} else {
		note_heard(r, m->rank, now_ns);
		take_over(r, c, m->rank, r->started && !m->got);
	}
}

/* Nobody is behind it any more. It is another process's end, or the network's doing. */
static int comes_back(const struct gci_rdv *r, const struct gci_rdv_conn *c)
{
	const struct rdv_rank *k = &r->ranks[c->rank];

	return !c->closing && !k->exited && !gci_rdv_is_over(r) &&
	       gci_rdv_counts(r, (uint32_t)c->rank) && !(k->bye && r->nbye == r->members.n);
}

/* One of a rank that does not come back any more: it counts as lost. */
static void end_away(struct gci_rdv *r, uint32_t rank, uint64_t now_ns)
{
	struct gci_rdv_conn *c = r->ranks[rank].conn;

	if (!c || !c->away)
		return;
	conn_free(r, c);
	gci_rdv_note_lost(r, rank, now_ns);
}

/* Before the job begins nobody looks for silence. */
static void end_all_away(struct gci_rdv *r, uint64_t now_ns)
{
	const uint64_t most_ns = r->started ? r->config.dead_ns : GCI_CTL_JOINING_NS;
	uint32_t i;

	for (i = 0; i < r->config.size; i++)
		if (r->ranks[i].conn && now_ns - r->ranks[i].conn->since_ns >= most_ns)
			end_away(r, i, now_ns);
}

static void refuse(
	struct gci_rdv *r, struct gci_rdv_conn *c, const struct gci_ctl_message *m, uint64_t now_ns)
{
	if (m->type == GCI_CTL_HELLO && c->named < 0)
		gci_rdv_wrong_secret(r, c, now_ns);
	gci_rdv_drop(r, c);
}

static void take_messages(struct gci_rdv *r, struct gci_rdv_conn *c, uint64_t now_ns)
{
	struct gci_ctl_message m;
	struct gci_error e = {0};
	int rc = 0;

	while (!c->closing && (rc = gci_ctl_get(&c->in, GCI_CTL_MAX_HELLO, &m, &e)) == 1) {
		if (c->rank >= 0)
			on_message(r, c, &m, now_ns);
		else if (is_ours(r, c, &m))
			on_hello(r, c, &m.hello, now_ns);
		else if (may_resume(r, c, &m))
			on_resume(r, c, &m.resume, now_ns);
		else
			refuse(r, c, &m, now_ns);
		gci_ctl_message_free(&m);
	}
	if (c->closing || (rc >= 0 && !c->in.failed))
		return;
	if (c->rank >= 0)
		gci_rdv_tell(r, (uint32_t)c->rank, c->rank, e.status ? e.status : GCOLL_ERR_NOMEM,
			e.text, now_ns);
	gci_rdv_drop(r, c);
}

void gci_rdv_input(
	struct gci_rdv *r, struct gci_rdv_conn *c, const void *data, size_t nbytes, uint64_t now_ns)
{
	const uint8_t *p = data;

	if (c->rank >= 0)
		note_heard(r, (uint32_t)c->rank, now_ns);
	/* In pieces, so that a sender in a hurry cannot make the buffer larger than a message. */
	while (nbytes && !c->closing) {
		size_t n = nbytes < GCI_CTL_MAX_HELLO ? nbytes : GCI_CTL_MAX_HELLO;

		gci_buf_put(&c->in, p, n);
		p += n;
		nbytes -= n;
		take_messages(r, c, now_ns);
	}
	gci_rdv_judge(r, now_ns);
}

void gci_rdv_closed(struct gci_rdv *r, struct gci_rdv_conn *c, int broken, uint64_t now_ns)
{
	int32_t rank = c->rank;

	if (rank >= 0 && broken && comes_back(r, c)) {
		c->away = 1;
		c->user = NULL;
		c->since_ns = now_ns;
		gci_buf_free(&c->in);
		return;
	}
	conn_free(r, c);
	if (rank < 0)
		return;
	gci_rdv_note_lost(r, (uint32_t)rank, now_ns);
	gci_rdv_judge(r, now_ns);
}

/* ---- Ends of processes. */

/* False: it was known. */
static int take_end(struct gci_rdv *r, uint32_t rank, int code, int signal, uint64_t now_ns)
{
	struct rdv_rank *k = &r->ranks[rank];

	if (k->exited)
		return 0;
	k->exited = r->deaths = 1;
	k->code = code;
	k->signal = signal;
	k->end_ns = now_ns;
	end_away(r, rank, now_ns);
	return 1;
}

void gci_rdv_exited(struct gci_rdv *r, uint32_t rank, int code, int signal, uint64_t now_ns)
{
	if (!take_end(r, rank, code, signal, now_ns))
		return;
	gci_rdv_note_end(r, rank, now_ns);
	gci_rdv_judge(r, now_ns);
}

void gci_rdv_failed(
	struct gci_rdv *r, uint32_t rank, int exit_status, const char *cause, uint64_t now_ns)
{
	if (!take_end(r, rank, exit_status, 0, now_ns))
		return;
	if (gci_rdv_note_failure(r, rank, cause, now_ns))
		begin_if_all(r, now_ns);
	gci_rdv_judge(r, now_ns);
}

/* ---- Time. */

/* What came after we last looked has had less of the gap. */
static uint64_t postponed(uint64_t since_ns, uint64_t gap, uint64_t now_ns)
{
	return since_ns + gap < now_ns ? since_ns + gap : now_ns;
}

/* Time in which we ourselves did not run (a suspended machine, a short Ctrl-Z) is nobody's
 * silence. */
static void forgive_gap(struct gci_rdv *r, uint64_t now_ns)
{
	uint64_t gap = now_ns - r->times.ticked_ns;
	struct gci_list *it;
	uint32_t i;

	r->times.ticked_ns = now_ns;
	if (gap <= 2 * r->config.beat_ns)
		return;
	for (i = 0; i < r->config.size; i++)
		if (r->ranks[i].joined)
			r->ranks[i].heard_ns = postponed(r->ranks[i].heard_ns, gap, now_ns);
	gci_list_each (it, &r->conns) {
		struct gci_rdv_conn *c = gci_container(it, struct gci_rdv_conn, link);

		c->since_ns = postponed(c->since_ns, gap, now_ns);
	}
	if (r->times.joined_ns != GCI_NEVER)
		r->times.joined_ns = postponed(r->times.joined_ns, gap, now_ns);
	gci_members_postpone(&r->members, gap);
}

void gci_rdv_tick(struct gci_rdv *r, uint64_t now_ns)
{
	forgive_gap(r, now_ns);
	if (now_ns >= r->times.beat_ns) {
		r->times.beat_ns = now_ns + r->config.beat_ns;
		send_beats(r);
		drop_old_strangers(r, now_ns);
		end_all_away(r, now_ns);
		gci_rdv_check_silence(r, now_ns);
	} else if (now_ns >= r->times.silence_ns) {
		gci_rdv_check_silence(r, now_ns);
	}
	gci_rdv_judge(r, now_ns);
}

uint64_t gci_rdv_deadline(const struct gci_rdv *r)
{
	uint64_t soonest = r->verdict_ns < r->times.beat_ns ? r->verdict_ns : r->times.beat_ns;
	uint64_t late_ns = gci_rdv_is_over(r) ? GCI_NEVER : gci_members_deadline(&r->members);

	soonest = late_ns < soonest ? late_ns : soonest;
	return r->times.silence_ns < soonest ? r->times.silence_ns : soonest;
}

int gci_rdv_next(struct gci_rdv *r, struct gci_rdv_event *ev)
{
	struct gci_rdv_conn *c;

	for (;;) {
		if (gci_list_empty(&r->dirty))
			return 0;
		c = gci_container(r->dirty.next, struct gci_rdv_conn, dirty);
		if (!c->away)
			break;
		gci_list_del(&c->dirty);
		if (c->closing)
			end_away(r, (uint32_t)c->rank, r->times.ticked_ns);
	}
	memset(ev, 0, sizeof(*ev));
	ev->user = c->user;
	if (c->out.len && !c->out.failed) {
		ev->type = GCI_RDV_SEND;
		ev->data = c->out;
		if (c->rank >= 0)
			gci_ctl_link_keep(&r->ranks[c->rank].link, c->out.data + c->nkept,
				c->out.len - c->nkept);
		memset(&c->out, 0, sizeof(c->out));
		c->nkept = 0;
		if (!c->closing)
			gci_list_del(&c->dirty);
		return 1;
	}
	/* What cannot be told for lack of memory ends the connection: the rank then sees it. */
	ev->type = GCI_RDV_CLOSE;
	if (c->rank >= 0)
		gci_rdv_note_lost(r, (uint32_t)c->rank, r->times.ticked_ns);
	conn_free(r, c);
	return 1;
}
