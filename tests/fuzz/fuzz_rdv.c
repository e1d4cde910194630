/* SPDX-License-Identifier: MIT
 * The control server as its ranks and strangers meet it: connections, messages in any order, whole,
 * in pieces or broken, ends of processes, the launcher's own orders, lack of memory, and time. The
 * input is a program of small instructions. What the server sends is read as a rank would read it,
 * and must fit what that one has said before; a job in which all do as they should has no verdict;
 * and once all is over, so is the job. */
#include "base/mem.h"
#include "collectives/coll.h"
#include "launcher/placement.h"
#include "launcher/rdv_internal.h"
#include "launcher/traffic.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 6
#define NWIRES     80 /* more than the server holds */
#define NNAMED     12 /* of them, those that instructions name */
#define MOST_STEPS 400
#define MS         GCI_NS_PER_MS
#define SEC        GCI_NS_PER_S

/* One end of a connection. */
struct wire {
	struct gci_rdv_conn *conn; /* NULL: there is none */
	int rank;                  /* whose it is by now, or -1 */
	int naborts;               /* that a stranger got */
	int resumes, restarts;     /* RESUMED is to come (2: perhaps), and START again */
	int deaf;                  /* broken, and nobody knows: nothing comes through */
	int said_bye,
		agrees; /* perhaps, behind the half of a HELLO: before anybody knows whose it is */
	struct gci_buf pending; /* bytes that are still to come */
};

/* What a rank knows, which outlives its connections. */
struct rank {
	int joined, ended;
	int said_bye, agrees; /* perhaps: it may be half a message, or have been lost */
	int got_bye, naborts; /* in this epoch */
	uint32_t epoch;       /* 0: it has got no START */
	uint32_t life;
	uint64_t got; /* counted messages */
	int lied;     /* of those: what comes now need not fit */
};

struct world {
	struct gci_rdv *rdv;
	struct gci_rdv_config config;
	struct gci_placement place;
	struct gci_traffic *traffic;
	struct wire wires[NWIRES];
	struct rank ranks[MOST_RANKS];
	int began;
	uint64_t now;
	unsigned fail_next; /* the so manieth allocation */
	int blamable;       /* something has happened for which a job may fail */
	int gave_up;
	uint32_t judged_epoch; /* 0: there was no verdict yet */
	struct gci_rdv_verdict verdict;
};

static const char grid_text[] = "[cluster k]\nhosts = k[1-4]\n[cluster t]\nhosts = t[1-4]\n"
				"[link k t]\n";

static void expected(int line, const char *what)
{
	fprintf(stderr, "%s:%d: expected %s\n", __FILE__, line, what);
	abort();
}

#define expect(what) ((what) ? (void)0 : expected(__LINE__, #what))

static int is_guest(const struct world *w, uint32_t rank)
{
	return rank >= w->config.size - w->config.nguests;
}

/* For people: nothing in it that a terminal would obey. */
static void expect_printable(const char *text)
{
	for (; *text; text++)
		expect(!iscntrl((unsigned char)*text));
}

/* ---- what the server sends */

static void on_start(struct world *w, struct wire *x, struct rank *k, const struct gci_ctl_start *m)
{
	uint32_t i;

	/* Once, or again behind RESUMED to a rank that says that nothing has come. */
	expect(!k->epoch || x->restarts);
	x->restarts = 0;
	expect(m->size == w->config.size && w->rdv->njoined + w->rdv->nmissing == m->size);
	expect(m->epoch == 1);
	for (i = 0; i < m->size; i++)
		expect(m->ranks[i].host == w->place.hosts[i]);
	w->began = 1;
	k->epoch = k->epoch ? k->epoch : 1;
}

static void on_survivors(
	struct world *w, const struct wire *x, struct rank *k, const struct gci_ctl_survivors *m)
{
	uint32_t i;

	expect(w->config.survives && k->naborts && m->epoch == k->epoch + 1);
	for (i = 0; i < m->n && m->ranks[i] != (uint32_t)x->rank; i++)
		;
	expect(i < m->n && m->n <= w->config.size);
	k->epoch = m->epoch;
	k->naborts = k->got_bye = 0;
}

static void on_abort(struct world *w, struct wire *x, const struct gci_ctl_failure *m)
{
	struct rank *k = x->rank < 0 ? NULL : &w->ranks[x->rank];

	expect(m->status < 0 && m->rank < (int32_t)w->config.size && *m->text);
	expect_printable(m->text);
	/* A survivor is told of the failure, that the job goes on without it, and that it does not
	 * go on. */
	if (!k)
		expect(++x->naborts == 1);
	else
		expect(++k->naborts <= (w->config.survives ? 2 + w->gave_up : 1));
}

static void on_message(struct world *w, struct wire *x, const struct gci_ctl_message *m)
{
	struct rank *k = x->rank < 0 ? NULL : &w->ranks[x->rank];

	expect(k || m->type == GCI_CTL_ABORT);
	expect(m->type == GCI_CTL_RESUMED ? x->resumes
					  : x->resumes != 1 || m->type == GCI_CTL_ABORT);
	if (k)
		k->got += (uint64_t)gci_ctl_counts(m->type);
	switch (m->type) {
	case GCI_CTL_START:
		on_start(w, x, k, &m->start);
		break;
	case GCI_CTL_RESUMED:
		x->resumes = 0;
		k->naborts = k->naborts > 0; /* who comes back, and asks again, is told again */
		break;
	case GCI_CTL_SURVIVORS:
		on_survivors(w, x, k, &m->survivors);
		break;
	case GCI_CTL_ABORT:
		on_abort(w, x, &m->failure);
		break;
	case GCI_CTL_AGREED:
		expect(k->agrees && m->agree.epoch == k->epoch && m->agree.status <= 0);
		expect(!m->agree.status == !*m->agree.text);
		break;
	case GCI_CTL_BYE:
		expect(k->said_bye && !k->got_bye++);
		break;
	case GCI_CTL_WAIT:
		expect(k->said_bye && m->wait.rank < w->config.size);
		break;
	case GCI_CTL_ASK:
		expect(m->call.rank < w->config.size);
		break;
	case GCI_CTL_BUDGET:
	case GCI_CTL_WATCH:
		expect(k->epoch != 0);
		break;
	default:
		expect(m->type == GCI_CTL_BEAT);
	}
}

static void read_all(struct world *w, struct wire *x, struct gci_buf *bytes)
{
	struct gci_ctl_message m;

	expect(bytes->len > 0);
	while (gci_ctl_get(bytes, GCI_CTL_MAX_MESSAGE, &m, NULL) == 1) {
		if (!x->deaf && (x->rank < 0 || !w->ranks[x->rank].lied))
			on_message(w, x, &m);
		gci_ctl_message_free(&m);
	}
	expect(!bytes->len); /* only whole messages, all of them well-formed */
	gci_buf_free(bytes);
}

static void hung_up(struct wire *x)
{
	gci_buf_free(&x->pending);
	*x = (struct wire){.rank = -1};
}

/* ---- what must always hold */

static void check_verdict(struct world *w)
{
	const struct gci_rdv_verdict *v = gci_rdv_verdict(w->rdv);
	int status = gci_rdv_exit_status(w->rdv);

	if (!v) {
		expect(!status && !gci_rdv_is_over(w->rdv));
		return;
	}
	expect(w->blamable && status > 0 && status < 256);
	if (w->judged_epoch == w->rdv->members.epoch) { /* there is one, and it stays */
		expect(!memcmp(v, &w->verdict, sizeof(*v)));
		return;
	}
	expect(v->status < 0 && v->rank >= -1 && v->rank < (int32_t)w->config.size);
	expect(*v->cause && *v->sentence);
	expect_printable(v->who);
	expect_printable(v->cause);
	expect_printable(v->sentence);
	w->judged_epoch = w->rdv->members.epoch;
	w->verdict = *v;
}

static void check_memory(const struct world *w)
{
	const struct gci_list *it;
	size_t n = 0;
	uint32_t i;

	gci_list_each (it, &w->rdv->conns) {
		const struct gci_rdv_conn *c = gci_container(it, struct gci_rdv_conn, link);

		n += !c->away;
		expect(c->in.len <= 4 + GCI_CTL_MAX_HELLO && (c->away || !c->out.len));
	}
	expect(n <= NWIRES && w->rdv->unauth.n <= GCI_RDV_STRANGERS + w->config.size);
	for (i = 0; i < w->config.size; i++)
		expect(w->rdv->ranks[i].link.kept.len <= GCI_CTL_MAX_KEPT);
}

static void check_news(struct world *w)
{
	struct gci_buf news;
	char *line, *rest = NULL;

	gci_rdv_news(w->rdv, &news);
	for (line = strtok_r((char *)(uintptr_t)gci_buf_cstr(&news), "\n", &rest); line;
		line = strtok_r(NULL, "\n", &rest))
		expect_printable(line);
	gci_buf_free(&news);
}

/* Who has joined, or is there again, shows before the server is done with the connection. */
static void note_joined(struct world *w)
{
	struct wire *x;

	for (x = w->wires; x < w->wires + NNAMED; x++) {
		if (!x->conn)
			continue;
		x->rank = x->conn->rank;
		if (x->rank < 0)
			continue;
		w->ranks[x->rank].joined = 1;
		w->ranks[x->rank].said_bye |= x->said_bye;
		w->ranks[x->rank].agrees |= x->agrees;
		x->said_bye = x->agrees = 0;
	}
}

static void drain(struct world *w)
{
	struct gci_rdv_event ev;
	struct wire *x;
	int n = 0;

	if (gci_mem_failed())
		w->blamable = 1;
	gci_mem_fail_at(0);
	w->fail_next = 0;
	note_joined(w);
	check_verdict(w);
	while (gci_rdv_next(w->rdv, &ev)) {
		x = ev.user;
		expect(x && x->conn && n++ < 10 * NWIRES);
		if (ev.type == GCI_RDV_SEND)
			read_all(w, x, &ev.data);
		else
			hung_up(x);
	}
	expect(!w->began || w->rdv->njoined + w->rdv->nmissing == w->config.size);
}

static void may_fail(struct world *w)
{
	gci_mem_fail_at(w->fail_next);
}

/* ---- time */

static void tick(struct world *w)
{
	may_fail(w);
	gci_rdv_tick(w->rdv, w->now);
	drain(w);
}

static void give(struct world *w, struct wire *x, const void *data, size_t n)
{
	if (!x->conn || x->deaf)
		return;
	may_fail(w);
	gci_rdv_input(w->rdv, x->conn, data, n, w->now);
	drain(w);
}

/* Of a rank that cannot, since it has no connection or is in the midst of a message, the server
 * hears nothing. */
static void beat_all(struct world *w)
{
	int i, nbeating = 0, njoined = 0;

	for (i = 0; i < NNAMED; i++) {
		struct wire *x = &w->wires[i];
		struct gci_buf b = {0};

		if (x->rank < 0)
			continue;
		if (x->deaf ||
			x->pending.len) { /* also of who has left, as long as it does not hang up */
			w->blamable = 1;
			continue;
		}
		nbeating++;
		gci_ctl_put_got(&b, GCI_CTL_BEAT, w->ranks[x->rank].got);
		give(w, x, b.data, b.len);
		gci_buf_free(&b);
	}
	for (i = 0; i < MOST_RANKS; i++)
		njoined += w->ranks[i].joined && !w->ranks[i].got_bye;
	w->blamable |= nbeating < njoined;
}

/* Until `ns` have passed, and deadlines are met. Whatever is due is done, or the server would ask for the same time for ever. */
static void pass(struct world *w, uint64_t ns, int beating)
{
	uint64_t end = w->now + ns, at;

	for (at = gci_rdv_deadline(w->rdv); at <= end; at = gci_rdv_deadline(w->rdv)) {
		w->now = at > w->now ? at : w->now;
		if (beating)
			beat_all(w);
		tick(w);
		expect(gci_rdv_deadline(w->rdv) > w->now);
	}
	w->now = end;
}

/* ---- instructions */

/* What it says counts, or will when the half of a HELLO is followed by the other. */
static int is_heard(const struct wire *x)
{
	return x->rank >= 0 || x->pending.len > 0;
}

static struct wire *a_wire(struct world *w, struct gci_reader *in)
{
	return &w->wires[gci_read_u8(in) % NNAMED];
}

static void dial(struct world *w, struct gci_reader *in)
{
	struct wire *x = a_wire(w, in);
	uint8_t host = gci_read_u8(in);
	const struct gci_reach from = {.n = 1, .ip = {{10, 0, 0, host % 4}}};

	if (x->conn)
		return;
	may_fail(w);
	x->conn = gci_rdv_open(w->rdv, x, &from, w->now);
	if (x->conn && host & 0x80) /* TLS says who it is */
		gci_rdv_named(x->conn, host >> 4 & 7);
	drain(w);
}

/* Bytes of one connection, behind those that were held back: all, a half now, or one after the
 * other. */
static void deliver(struct world *w, struct wire *x, struct gci_buf *b, uint8_t how)
{
	struct gci_buf all = x->pending;
	size_t n, at, step;

	gci_buf_put(&all, b->data, b->len);
	gci_buf_free(b);
	memset(&x->pending, 0, sizeof(x->pending));
	n = how % 4 == 1 ? all.len / 2 : all.len;
	step = how % 4 == 2 && n < 200 ? 1 : n + 1;
	for (at = 0; at < n && x->conn; at += step)
		give(w, x, all.data + at, step < n - at ? step : n - at);
	if (x->conn && n < all.len)
		gci_buf_put(&x->pending, all.data + n, all.len - n);
	gci_buf_free(&all);
}

static void read_name(struct gci_reader *in, char *out, size_t size)
{
	static const char *const names[] = {
		"", "k1", "k2", "k1.site.example", "t1", "..", "u@k3", "k[1-9]"};
	uint8_t which = gci_read_u8(in);
	const uint8_t *p = which >= 0xf0 ? gci_read(in, which & 15) : NULL;

	if (p)
		memcpy(out, p, which & 15);
	else
		strncpy(out, names[which % 8], size - 1);
}

static void session_of(uint8_t rank, uint8_t session[GCI_CTL_SESSION])
{
	memset(session, rank, GCI_CTL_SESSION);
}

/* A token that holds, another version, a wrong number: some of each. */
static void say_hello(struct world *w, struct wire *x, uint8_t rank, struct gci_reader *in)
{
	uint8_t how = gci_read_u8(in);
	struct gci_ctl_hello m = {.version = GCI_CTL_VERSION,
		.rank = rank % (MOST_RANKS + 2),
		.schedules = gci_build.schedules,
		.big_endian = gci_build.big_endian};
	struct gci_buf b = {0};

	gci_ctl_token(w->config.secret, m.rank, m.token);
	m.token[0] ^= (how & 15) == 1;
	m.version += (how & 15) == 2;
	m.schedules ^= (how & 15) == 6;
	m.size = (how & 15) == 3 ? gci_read_u8(in) : 0;
	session_of((uint8_t)m.rank, m.session);
	m.reach = (struct gci_reach){5000, 1, 0, {{10, 0, 0, rank}}};
	if ((how & 15) == 4)
		m.reach = (struct gci_reach){5000, 1, 1, {{0xfd, [15] = rank}}};
	if ((how & 15) == 5)
		m.reach.ip[0][0] = 127;
	if ((how & 15) >= 8) {
		read_name(in, m.host, sizeof(m.host));
		read_name(in, m.cluster, sizeof(m.cluster));
	} else {
		memcpy(m.host, m.rank % 2 ? "k1" : "t1", 3);
	}
	/* Who has not the secret, is one too many or comes too late does no harm. */
	if (is_heard(x) || ((how & 15) >= 2 && m.rank < w->config.size && !w->ranks[m.rank].joined))
		w->blamable = 1;
	gci_ctl_put_hello(&b, &m);
	deliver(w, x, &b, how >> 4);
}

/* Honest, or one that cannot be. */
static void say_resume(struct world *w, struct wire *x, uint8_t rank, uint8_t how)
{
	struct rank *k = &w->ranks[rank % w->config.size];
	struct gci_ctl_resume m = {
		.rank = (uint32_t)(k - w->ranks), .life = k->life + 1, .got = k->got};
	uint8_t key[32], session[GCI_CTL_SESSION];
	struct gci_buf b = {0};
	struct wire *old;

	if (!x->conn || x->rank >= 0 || x->deaf)
		return;
	m.got += (how & 15) == 1 ? how : 0; /* it lies */
	m.life -= (how & 15) == 2;          /* an old one */
	session_of((uint8_t)m.rank, session);
	gci_ctl_resume_key(w->config.secret, m.rank, key);
	gci_ctl_resume_token(key, &m, session, m.token);
	m.token[0] ^= (how & 15) == 3; /* or one by somebody else */
	for (old = w->wires; old < w->wires + NNAMED && (how & 15) != 3; old++)
		old->deaf |= old->rank == (int)m.rank; /* it has given that up */
	if ((how & 15) != 3) {
		/* An old one holds if what came after it has been lost, half of one if the rank has joined
		 * when the rest comes. */
		x->resumes =
			!k->joined || (how & 15) == 2 || how >> 4 & 1 || x->pending.len ? 2 : 1;
		k->life += (how & 15) != 2;
		x->restarts = !m.got || (x->pending.len && x->restarts);
		w->blamable |= k->lied |= (how & 15) == 1;
	}
	w->blamable |= is_heard(x); /* as one who is known has no use for it */
	gci_ctl_put_resume(&b, &m);
	deliver(w, x, &b, how >> 4);
}

/* All that are to come do, and as they should. */
static void all_join(struct world *w)
{
	static uint8_t plain;
	uint32_t i;

	for (i = 0; i < w->config.size; i++) {
		struct wire *x = &w->wires[i];
		struct gci_reader none = {.data = &plain, .len = 1};
		const struct gci_reach from = {.n = 1, .ip = {{10, 0, 0, (uint8_t)i}}};

		if (w->ranks[i].joined || x->rank >= 0)
			continue;
		if (!x->conn)
			x->conn = gci_rdv_open(w->rdv, x, &from, w->now);
		say_hello(w, x, (uint8_t)i, &none);
	}
}

static void put_text(char *out, size_t size, struct gci_reader *in)
{
	uint8_t n = gci_read_u8(in);
	const uint8_t *p = n < 32 ? gci_read(in, n) : NULL;
	size_t i;

	memset(out, 0, size);
	if (p)
		memcpy(out, p, n);
	else if (n & 1)
		memset(out, 'x', size - 1);
	else
		strncpy(out, "rank 1: reads " GCI_CTL_SOMETHING_ELSE, size - 1);
	for (i = strlen(out); i < size; i++)
		out[i] = 0;
}

static void put_failure(struct world *w, struct gci_buf *b, struct gci_reader *in)
{
	struct gci_ctl_failure m = {.status = -1 - gci_read_u8(in) % 20};

	m.rank = (int8_t)gci_read_u8(in);
	m.rank = m.rank < -1 ? -1 : m.rank;
	put_text(m.text, sizeof(m.text), in);
	gci_ctl_put_failure(b, GCI_CTL_FAIL, &m);
	w->blamable = 1;
}

static void put_call(struct gci_buf *b, enum gci_ctl_type type, struct gci_reader *in)
{
	struct gci_ctl_call m = {.rank = gci_read_u8(in) % 8};

	m.comm = m.rank / 4;
	m.op = gci_read_u8(in) % 2;
	put_text(m.text, sizeof(m.text), in);
	gci_ctl_put_call(b, type, &m);
}

static void put_report(struct world *w, struct gci_buf *b, struct gci_reader *in)
{
	struct gci_ctl_report m = {.cluster = gci_read_u8(in) % 4, .connections = 1};
	uint8_t how = gci_read_u8(in);
	uint32_t i;

	m.sum.sent_nbytes = how & 1 ? UINT64_MAX : 100;
	m.end_bin = how & 2 ? w->now / GCI_BIN_NS + how : (uint64_t)how << (how & 63);
	m.nbins = gci_read_u8(in);
	m.nbins = m.nbins < m.end_bin ? m.nbins : (uint32_t)m.end_bin;
	for (i = 0; i < m.nbins; i++)
		m.bins[i] = how & 4 ? UINT32_MAX : i;
	gci_ctl_put_report(b, &m);
}

static void put_flows(struct gci_buf *b, struct gci_reader *in)
{
	struct gci_ctl_flows m = {.first = gci_read_u8(in) % 2, .n = gci_read_u8(in) % 33};
	uint32_t i;

	for (i = 0; i < m.n; i++)
		m.flows[i].peer = gci_read_u8(in) % 8;
	gci_ctl_put_flows(b, &m);
}

static void put_agree(struct rank *k, struct gci_buf *b, struct gci_reader *in)
{
	struct gci_ctl_agree m = {.epoch = k->epoch, .flags = gci_read_u8(in)};

	m.epoch += !(m.flags & 15);
	k->agrees |= m.epoch == k->epoch;
	gci_ctl_put_agree(b, GCI_CTL_AGREE, &m);
}

/* A message of a rank, well-formed. */
static void say(struct world *w, struct wire *x, struct gci_reader *in)
{
	static const enum gci_ctl_type types[] = {GCI_CTL_BEAT, GCI_CTL_FAIL, GCI_CTL_BYE,
		GCI_CTL_WAIT, GCI_CTL_ASK, GCI_CTL_CALLED, GCI_CTL_REPORT, GCI_CTL_FLOWS,
		GCI_CTL_AGREE, GCI_CTL_SHRINK, GCI_CTL_ABORT};
	uint8_t how = gci_read_u8(in), type = types[(how & 15) % 11];
	struct rank nobody = {0}, *k = x->rank < 0 ? &nobody : &w->ranks[x->rank];
	struct gci_ctl_survivors shrink = {.epoch = k->epoch + !k->epoch};
	struct gci_ctl_wait wait = {.rank = how >> 4};
	struct gci_buf b = {0};

	if (type == GCI_CTL_FAIL)
		put_failure(w, &b, in);
	else if (type == GCI_CTL_WAIT)
		gci_ctl_put_wait(&b, &wait);
	else if (type == GCI_CTL_ASK || type == GCI_CTL_CALLED)
		put_call(&b, type, in);
	else if (type == GCI_CTL_REPORT)
		put_report(w, &b, in);
	else if (type == GCI_CTL_FLOWS)
		put_flows(&b, in);
	else if (type == GCI_CTL_AGREE)
		put_agree(k, &b, in);
	else if (type == GCI_CTL_SHRINK)
		gci_ctl_put_survivors(&b, type, &shrink);
	else if (type == GCI_CTL_BEAT)
		gci_ctl_put_got(&b, type, k->got);
	else if (type == GCI_CTL_ABORT) /* which the launcher alone says */
		gci_ctl_put_failure(&b, type, &(struct gci_ctl_failure){.status = -1});
	else
		gci_ctl_put_plain(&b, type);
	/* A beat behind the half of a RESUME counts less than that. */
	w->blamable |=
		(type == GCI_CTL_ABORT || (type == GCI_CTL_BEAT && x->rank < 0)) && is_heard(x);
	k->said_bye |= type == GCI_CTL_BYE;
	x->said_bye |= nobody.said_bye;
	x->agrees |= x->rank < 0 && type == GCI_CTL_AGREE;
	deliver(w, x, &b, type == GCI_CTL_WAIT ? 0 : how >> 4);
}

/* Anything. */
static void babble(struct world *w, struct wire *x, struct gci_reader *in)
{
	uint8_t n = gci_read_u8(in);
	const uint8_t *p = gci_read(in, n % 64);
	struct gci_buf b = {0};
	int i;

	gci_buf_put(&b, p, p ? n % 64 : 0);
	for (i = 0; i < 5000 && n & 64; i++) /* more than any message may have */
		gci_buf_put_u8(&b, (uint8_t)n);
	w->blamable |= is_heard(x);
	x->said_bye = x->agrees = 1;
	deliver(w, x, &b, n >> 6);
}

/* In order, or not: then the rank may come back. */
static void close_wire(struct world *w, struct wire *x, int broken)
{
	if (!x->conn)
		return;
	w->blamable |= !broken && x->rank >= 0 && !w->ranks[x->rank].got_bye;
	may_fail(w);
	gci_rdv_closed(w->rdv, x->conn, broken, w->now);
	hung_up(x);
	drain(w);
}

static void end_process(struct world *w, uint32_t rank, uint8_t how)
{
	static const int signals[] = {0, 9, 11, 15};
	int sig = signals[how & 3], code = sig ? 0 : how >> 2 & 3;

	if (is_guest(w, rank) || w->ranks[rank].ended)
		return; /* nobody tells of the ends of guests */
	w->ranks[rank].ended = 1;
	w->blamable |= !w->rdv->ranks[rank].bye || sig || code;
	may_fail(w);
	if (how & 0x80) {
		w->blamable = 1;
		gci_rdv_failed(w->rdv, rank, 1 + code, "cannot be started", w->now);
	} else {
		gci_rdv_exited(w->rdv, rank, code, sig, w->now);
	}
	drain(w);
}

/* Strangers, so many that some have to give way. */
static void crowd(struct world *w)
{
	static const struct gci_reach from = {.n = 1, .ip = {{10, 0, 1, 1}}};
	int i;

	for (i = NNAMED; i < NWIRES; i++) {
		if (!w->wires[i].conn)
			w->wires[i].conn = gci_rdv_open(w->rdv, &w->wires[i], &from, w->now);
		drain(w);
	}
}

static void order(struct world *w, struct gci_reader *in)
{
	uint8_t how = gci_read_u8(in);

	may_fail(w);
	if (how % 8 == 7) {
		w->gave_up = w->blamable = 1;
		w->judged_epoch = 0;
		gci_rdv_give_up(w->rdv, GCOLL_ERR_SYS, "cannot go on", w->now);
	} else if (how & 1) {
		gci_rdv_watch(w->rdv, &(struct gci_ctl_watch){.period_ms = how});
	} else {
		gci_rdv_budget(w->rdv, &(struct gci_ctl_budget){
					       .from = how >> 3 & 3, .to = how >> 5, .bps = 1000});
	}
	drain(w);
}

static void wait_for(struct world *w, struct gci_reader *in)
{
	uint8_t how = gci_read_u8(in);
	uint64_t ns = MS << (how & 15);

	w->blamable |= !w->began; /* ranks are late */
	if (how & 0x40) {         /* the launcher itself was stopped; it looks at the time first */
		w->now += ns;
		tick(w);
		beat_all(w);
		return;
	}
	/* Whoever is late is not heard either, nor a rank in the midst of a message. */
	w->blamable |= !(how & 0x80);
	pass(w, ns, how & 0x80);
}

static void step(struct world *w, struct gci_reader *in)
{
	uint8_t op = gci_read_u8(in);
	struct wire *x;

	switch (op % 16) {
	case 0:
		dial(w, in);
		break;
	case 1:
		x = a_wire(w, in);
		op = gci_read_u8(in);
		if (x->conn)
			say_hello(w, x, op, in);
		break;
	case 2:
		all_join(w);
		break;
	case 3:
		babble(w, a_wire(w, in), in);
		break;
	case 4:
		x = a_wire(w, in);
		close_wire(w, x, gci_read_u8(in) & 1);
		break;
	case 5:
		op = gci_read_u8(in);
		end_process(w, op % w->config.size, gci_read_u8(in));
		break;
	case 6:
		order(w, in);
		break;
	case 7:
		wait_for(w, in);
		break;
	case 8:
		crowd(w);
		break;
	case 9:
		x = a_wire(w, in);
		op = gci_read_u8(in);
		say_resume(w, x, op, gci_read_u8(in));
		break;
	case 10:
		x = a_wire(w, in);
		x->deaf = x->conn != NULL;
		break;
	case 11:
		w->fail_next = gci_read_u8(in) % 32;
		break;
	default:
		x = a_wire(w, in);
		if (x->conn)
			say(w, x, in);
	}
}

/* ---- a job from its beginning to its end */

static void on_report(void *user, uint32_t rank, const struct gci_ctl_report *m)
{
	struct world *w = user;

	gci_traffic_report(w->traffic, rank, m, w->now);
}

static void on_flows(void *user, uint32_t rank, const struct gci_ctl_flows *m)
{
	struct world *w = user;

	gci_traffic_flows(w->traffic, rank, m);
}

static void on_renewed(void *user, uint32_t rank)
{
	struct world *w = user;

	gci_traffic_renew(w->traffic, rank);
}

static void set_up(struct world *w, struct gci_reader *in)
{
	uint8_t how = gci_read_u8(in), more = gci_read_u8(in);
	static const char *const names[] = {"k1", "k2", "k3", "t1", "t2", "t2"};
	static const uint32_t hosts[] = {0, 1, 2, 4, 5, 5};
	const uint32_t clusters[MOST_RANKS] = {0, 0, 0, 1, 1, 1};
	uint32_t size = 1 + how % MOST_RANKS, i;
	struct gci_rdv_config *c = &w->config;

	w->place = (struct gci_placement){.size = size,
		.nguests = more & 1 ? 1 + (more >> 1) % size : 0,
		.hosts_are_said = more & 1 && more & 0x80,
		.said = gci_calloc(size, sizeof(*w->place.said)),
		.hosts = gci_calloc(size, sizeof(*w->place.hosts)),
		.names = gci_calloc(size, sizeof(*w->place.names)),
		.clusters = gci_calloc(size, sizeof(*w->place.clusters))};
	for (i = 0; i < size - w->place.nguests; i++) {
		w->place.names[i] = names[i];
		w->place.hosts[i] = hosts[i];
	}
	if (!w->place.hosts_are_said) {
		w->place.grid_text = gci_strdup(grid_text);
		expect(!gci_grid_parse(&w->place.grid, grid_text, strlen(grid_text), "g", NULL));
	}
	expect(!gci_traffic_create(&w->traffic, size, clusters, 2));
	*c = (struct gci_rdv_config){.size = size,
		.names = w->place.names,
		.hosts = w->place.hosts,
		.grid = w->place.grid_text,
		.beat_ns = how & 0x40 ? SEC : 250 * MS,
		.dead_ns = how & 0x40 ? 8 * SEC : 2 * SEC,
		.start_ns = 5 * SEC,
		.survives = how >> 7,
		.shrink_ns = 3 * SEC,
		.nguests = w->place.nguests,
		.reports = {on_report, on_flows, on_renewed, w},
		.grace_ns = 500 * MS};
	if (w->place.nguests) {
		c->arrive = gci_placement_arrive;
		c->settle = gci_placement_settle;
		c->guests = &w->place;
	}
	memset(c->secret, 0x5a, sizeof(c->secret));
	for (i = 0; i < NWIRES; i++)
		w->wires[i].rank = -1;
	w->now = 100 * SEC;
	expect(!gci_rdv_create(&w->rdv, c, w->now));
}

/* All processes end, in order or not at all until the launcher has had enough of it. */
static void end_all(struct world *w, int silently)
{
	const uint64_t longest_ns =
		w->config.start_ns + w->config.shrink_ns + 2 * w->config.dead_ns + 10 * SEC;
	uint32_t i;

	w->blamable = 1;
	if (silently) {
		pass(w, longest_ns, 0);
		expect(!w->rdv->njoined || gci_rdv_verdict(w->rdv) ||
			w->rdv->nbye == w->rdv->members.n);
	}
	for (i = 0; i < NWIRES; i++)
		close_wire(w, &w->wires[i], !(i % 3));
	for (i = 0; i < w->config.size; i++)
		end_process(w, i, 0);
	for (i = 0; i < longest_ns / SEC && !gci_rdv_settled(w->rdv); i++)
		pass(w, SEC, 0);
	expect(gci_rdv_settled(w->rdv) ||
		(!w->rdv->njoined && w->config.nguests == w->config.size));
}

static void tear_down(struct world *w)
{
	uint32_t i;

	gci_rdv_free(w->rdv);
	gci_traffic_sum(w->traffic, w->now);
	gci_traffic_free(w->traffic);
	for (i = 0; i < w->place.size; i++)
		gci_free(w->place.said[i]);
	gci_free(w->place.said);
	gci_free(w->place.hosts);
	gci_free(w->place.names);
	gci_free(w->place.clusters);
	gci_grid_free(&w->place.grid);
	gci_free(w->place.grid_text);
	for (i = 0; i < NWIRES; i++)
		gci_buf_free(&w->wires[i].pending);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_reader in = {.data = data, .len = size};
	static struct world w;
	int i;

	memset(&w, 0, sizeof(w));
	set_up(&w, &in);
	for (i = 0; i < MOST_STEPS && in.len; i++) {
		step(&w, &in);
		check_memory(&w);
		check_news(&w);
	}
	end_all(&w, size & 1);
	tear_down(&w);
	return 0;
}
