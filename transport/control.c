/* SPDX-License-Identifier: MIT */
#include "transport/control.h"

#include "base/buf.h"
#include "base/mem.h"
#include "transport/taps.h"

#include <ctype.h>
#include <string.h>

static void put_flow(struct gci_buf *out, const struct gci_flow *f)
{
	gci_buf_put_u64(out, f->sent_nbytes);
	gci_buf_put_u64(out, f->resent_nbytes);
	gci_buf_put_u64(out, f->acked_nbytes);
	gci_buf_put_u64(out, f->received_nbytes);
	gci_buf_put_u64(out, f->resent);
	gci_buf_put_u64(out, f->rtt_ns);
	gci_buf_put_u64(out, f->cwnd_nbytes);
	gci_buf_put_u64(out, f->pacing_bps);
	gci_buf_put_u64(out, f->delivery_bps);
}

static void read_flow(struct gci_reader *r, struct gci_flow *f)
{
	f->sent_nbytes = gci_read_u64(r);
	f->resent_nbytes = gci_read_u64(r);
	f->acked_nbytes = gci_read_u64(r);
	f->received_nbytes = gci_read_u64(r);
	f->resent = gci_read_u64(r);
	f->rtt_ns = gci_read_u64(r);
	f->cwnd_nbytes = gci_read_u64(r);
	f->pacing_bps = gci_read_u64(r);
	f->delivery_bps = gci_read_u64(r);
}

static void put_watch(struct gci_buf *out, const struct gci_ctl_watch *m)
{
	gci_buf_put_u32(out, m->period_ms);
	gci_buf_put_u32(out, m->flows);
}

/* What is no such message makes the reader a failed one; so the other two. */
static void read_watch(struct gci_reader *r, struct gci_ctl_watch *m)
{
	m->period_ms = gci_read_u32(r);
	m->flows = gci_read_u32(r);
	if (m->period_ms > GCI_REPORT_PERIOD || m->flows > 1)
		r->failed = 1;
}

static void put_report(struct gci_buf *out, const struct gci_ctl_report *m)
{
	uint32_t i;

	gci_buf_put_u32(out, m->cluster);
	gci_buf_put_u32(out, m->connections);
	put_flow(out, &m->sum);
	gci_buf_put_u64(out, m->end_bin);
	gci_buf_put_u32(out, m->nbins);
	for (i = 0; i < m->nbins; i++)
		gci_buf_put_u32(out, m->bins[i]);
}

static void read_report(struct gci_reader *r, struct gci_ctl_report *m)
{
	uint32_t i;

	m->cluster = gci_read_u32(r);
	m->connections = gci_read_u32(r);
	read_flow(r, &m->sum);
	m->end_bin = gci_read_u64(r);
	m->nbins = gci_read_u32(r);
	if (m->nbins > GCI_REPORT_BINS || m->nbins > m->end_bin)
		r->failed = 1;
	for (i = 0; !r->failed && i < m->nbins; i++)
		m->bins[i] = gci_read_u32(r);
}

static void put_flows(struct gci_buf *out, const struct gci_ctl_flows *m)
{
	uint32_t i;

	gci_buf_put_u32(out, m->first);
	gci_buf_put_u32(out, m->n);
	for (i = 0; i < m->n; i++) {
		gci_buf_put_u32(out, (uint32_t)m->flows[i].peer);
		gci_buf_put_u32(out, m->flows[i].stream);
		put_flow(out, &m->flows[i]);
	}
}

static void read_flows(struct gci_reader *r, struct gci_ctl_flows *m)
{
	uint32_t i;

	m->first = gci_read_u32(r);
	m->n = gci_read_u32(r);
	if (m->n > GCI_FLOWS_MOST || m->first > 1)
		r->failed = 1;
	for (i = 0; !r->failed && i < m->n; i++) {
		m->flows[i].peer = (int)gci_read_u32(r);
		m->flows[i].stream = gci_read_u32(r);
		m->flows[i].open = 1;
		read_flow(r, &m->flows[i]);
		if (m->flows[i].peer < 0)
			r->failed = 1;
	}
}

#define LEN_NBYTES 4

static size_t begin(struct gci_buf *out, enum gci_ctl_type type)
{
	size_t at = out->len;

	gci_buf_put_u32(out, 0);
	gci_buf_put_u8(out, (uint8_t)type);
	return at;
}

static void end(struct gci_buf *out, size_t at)
{
	if (!out->failed)
		gci_store_u32(out->data + at, (uint32_t)(out->len - at - LEN_NBYTES));
}

void gci_ctl_put_hello(struct gci_buf *out, const struct gci_ctl_hello *m)
{
	size_t at = begin(out, GCI_CTL_HELLO);

	gci_buf_put_u32(out, m->version);
	gci_buf_put_u32(out, m->rank);
	gci_buf_put(out, m->token, sizeof(m->token));
	gci_reach_put(out, &m->reach);
	gci_buf_put_u32(out, m->size);
	gci_buf_put_str(out, m->host);
	gci_buf_put_str(out, m->cluster);
	gci_buf_put_str(out, m->release);
	gci_buf_put_u64(out, m->schedules);
	gci_buf_put_u8(out, m->big_endian);
	gci_buf_put(out, m->session, sizeof(m->session));
	end(out, at);
}

void gci_ctl_put_start(struct gci_buf *out, const struct gci_ctl_start *m)
{
	size_t at = begin(out, GCI_CTL_START);
	uint32_t i;

	gci_buf_put_u32(out, m->size);
	gci_buf_put_u32(out, m->epoch);
	gci_buf_put_u64(out, m->beat_ns);
	gci_buf_put_u64(out, m->dead_ns);
	gci_buf_put_str(out, m->grid);
	gci_buf_put_str(out, m->table);
	gci_buf_put_u64(out, m->table_digest);
	gci_buf_put_u8(out, m->survives);
	for (i = 0; i < m->size; i++) {
		gci_buf_put_u32(out, m->ranks[i].host);
		gci_reach_put(out, &m->ranks[i].reach);
	}
	end(out, at);
}

void gci_ctl_put_failure(
	struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_failure *m)
{
	size_t at = begin(out, type);

	gci_buf_put_u32(out, (uint32_t)m->status);
	gci_buf_put_u32(out, (uint32_t)m->rank);
	gci_buf_put_str(out, m->text);
	end(out, at);
}

void gci_ctl_put_wait(struct gci_buf *out, const struct gci_ctl_wait *m)
{
	size_t at = begin(out, GCI_CTL_WAIT);

	gci_buf_put_u32(out, m->rank);
	gci_buf_put_u32(out, m->comm);
	gci_buf_put_u32(out, m->tag);
	gci_buf_put_u64(out, m->seq);
	end(out, at);
}

void gci_ctl_put_call(struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_call *m)
{
	size_t at = begin(out, type);

	gci_buf_put_u32(out, m->rank);
	gci_buf_put_u32(out, m->comm);
	gci_buf_put_u64(out, m->op);
	gci_buf_put_str(out, m->text);
	end(out, at);
}

void gci_ctl_put_budget(struct gci_buf *out, const struct gci_ctl_budget *m)
{
	size_t at = begin(out, GCI_CTL_BUDGET);

	gci_buf_put_u32(out, m->from);
	gci_buf_put_u32(out, m->to);
	gci_buf_put_u64(out, m->bps);
	end(out, at);
}

void gci_ctl_put_watch(struct gci_buf *out, const struct gci_ctl_watch *m)
{
	size_t at = begin(out, GCI_CTL_WATCH);

	put_watch(out, m);
	end(out, at);
}

void gci_ctl_put_report(struct gci_buf *out, const struct gci_ctl_report *m)
{
	size_t at = begin(out, GCI_CTL_REPORT);

	put_report(out, m);
	end(out, at);
}

void gci_ctl_put_flows(struct gci_buf *out, const struct gci_ctl_flows *m)
{
	size_t at = begin(out, GCI_CTL_FLOWS);

	put_flows(out, m);
	end(out, at);
}

void gci_ctl_put_agree(struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_agree *m)
{
	size_t at = begin(out, type);

	gci_buf_put_u32(out, m->epoch);
	gci_buf_put_u64(out, m->flags);
	gci_buf_put_u32(out, (uint32_t)m->status);
	gci_buf_put_str(out, m->text);
	end(out, at);
}

void gci_ctl_put_survivors(
	struct gci_buf *out, enum gci_ctl_type type, const struct gci_ctl_survivors *m)
{
	size_t at = begin(out, type);
	uint32_t i;

	gci_buf_put_u32(out, m->epoch);
	gci_buf_put_u32(out, m->n);
	for (i = 0; i < m->n; i++)
		gci_buf_put_u32(out, m->ranks[i]);
	end(out, at);
}

void gci_ctl_put_plain(struct gci_buf *out, enum gci_ctl_type type)
{
	end(out, begin(out, type));
}

void gci_ctl_put_got(struct gci_buf *out, enum gci_ctl_type type, uint64_t n)
{
	size_t at = begin(out, type);

	gci_buf_put_u64(out, n);
	end(out, at);
}

void gci_ctl_put_resume(struct gci_buf *out, const struct gci_ctl_resume *m)
{
	size_t at = begin(out, GCI_CTL_RESUME);

	gci_buf_put_u32(out, m->rank);
	gci_buf_put_u32(out, m->life);
	gci_buf_put_u64(out, m->got);
	gci_buf_put(out, m->token, sizeof(m->token));
	end(out, at);
}

static void read_text(struct gci_reader *r, char *out, size_t size)
{
	char *s = gci_read_str(r, size - 1);

	if (s)
		memcpy(out, s, strlen(s) + 1);
	gci_free(s);
}

static void read_bytes(struct gci_reader *r, uint8_t *out, size_t n)
{
	const uint8_t *p = gci_read(r, n);

	if (p)
		memcpy(out, p, n);
}

/* Names are printed: nothing in them may be obeyed by a terminal, or look like a line of ours. */
static void read_name(struct gci_reader *r, char *out, size_t size)
{
	read_text(r, out, size);
	for (; *out; out++)
		r->failed |= iscntrl((unsigned char)*out) != 0;
}

static void read_hello(struct gci_reader *r, struct gci_ctl_hello *m)
{
	m->version = gci_read_u32(r);
	m->rank = gci_read_u32(r);
	read_bytes(r, m->token, sizeof(m->token));
	if (m->version != GCI_CTL_VERSION) {
		gci_read(r, r->len); /* what another release says there; it will be told so */
		return;
	}
	gci_reach_read(r, &m->reach);
	m->size = gci_read_u32(r);
	read_name(r, m->host, sizeof(m->host));
	read_name(r, m->cluster, sizeof(m->cluster));
	read_name(r, m->release, sizeof(m->release));
	m->schedules = gci_read_u64(r);
	m->big_endian = gci_read_u8(r);
	read_bytes(r, m->session, sizeof(m->session));
	if (m->size > GCI_CTL_MAX_RANKS || m->big_endian > 1)
		r->failed = 1;
}

static int read_start(struct gci_reader *r, struct gci_ctl_start *m)
{
	uint32_t i;

	m->size = gci_read_u32(r);
	m->epoch = gci_read_u32(r);
	m->beat_ns = gci_read_u64(r);
	m->dead_ns = gci_read_u64(r);
	m->grid = gci_read_str(r, GCI_CTL_MAX_MESSAGE);
	m->table = gci_read_str(r, GCI_CTL_MAX_MESSAGE);
	m->table_digest = gci_read_u64(r);
	m->survives = gci_read_u8(r);
	if (!m->size || m->size > GCI_CTL_MAX_RANKS || !m->beat_ns || m->dead_ns < m->beat_ns ||
		m->survives > 1)
		r->failed = 1;
	if (r->failed)
		return 0;
	m->ranks = gci_calloc(m->size, sizeof(*m->ranks));
	if (!m->ranks)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < m->size; i++) {
		m->ranks[i].host = gci_read_u32(r);
		gci_reach_read(r, &m->ranks[i].reach);
	}
	return 0;
}

static void read_failure(struct gci_reader *r, struct gci_ctl_failure *m)
{
	m->status = (int32_t)gci_read_u32(r);
	m->rank = (int32_t)gci_read_u32(r);
	read_text(r, m->text, sizeof(m->text));
	if (m->status >= 0 || m->rank < -1)
		r->failed = 1;
}

static void read_wait(struct gci_reader *r, struct gci_ctl_wait *m)
{
	m->rank = gci_read_u32(r);
	m->comm = gci_read_u32(r);
	m->tag = gci_read_u32(r);
	m->seq = gci_read_u64(r);
}

static void read_call(struct gci_reader *r, struct gci_ctl_call *m)
{
	m->rank = gci_read_u32(r);
	m->comm = gci_read_u32(r);
	m->op = gci_read_u64(r);
	read_text(r, m->text, sizeof(m->text));
}

static void read_budget(struct gci_reader *r, struct gci_ctl_budget *m)
{
	m->from = gci_read_u32(r);
	m->to = gci_read_u32(r);
	m->bps = gci_read_u64(r);
}

static void read_agree(struct gci_reader *r, struct gci_ctl_agree *m)
{
	m->epoch = gci_read_u32(r);
	m->flags = gci_read_u64(r);
	m->status = (int32_t)gci_read_u32(r);
	read_text(r, m->text, sizeof(m->text));
	if (m->status > 0)
		r->failed = 1;
}

static int read_survivors(struct gci_reader *r, uint8_t type, struct gci_ctl_survivors *m)
{
	uint32_t i;

	m->epoch = gci_read_u32(r);
	m->n = gci_read_u32(r);
	if (m->n > GCI_CTL_MAX_RANKS || r->len != 4 * (size_t)m->n || !m->epoch ||
		!m->n != (type == GCI_CTL_SHRINK))
		r->failed = 1;
	if (r->failed || !m->n)
		return 0;
	m->ranks = gci_calloc(m->n, sizeof(*m->ranks));
	if (!m->ranks)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < m->n; i++) {
		m->ranks[i] = gci_read_u32(r);
		if (m->ranks[i] >= GCI_CTL_MAX_RANKS || (i && m->ranks[i] <= m->ranks[i - 1]))
			r->failed = 1;
	}
	return 0;
}

static void read_resume(struct gci_reader *r, struct gci_ctl_resume *m)
{
	m->rank = gci_read_u32(r);
	m->life = gci_read_u32(r);
	m->got = gci_read_u64(r);
	read_bytes(r, m->token, sizeof(m->token));
}

int gci_ctl_get(struct gci_buf *in, uint32_t max, struct gci_ctl_message *m, struct gci_error *e)
{
	struct gci_reader r = {0};
	uint32_t len;
	int rc = 0;

	if (in->len < LEN_NBYTES)
		return 0;
	len = gci_load_u32(in->data);
	if (!len || len > max)
		return gci_error_set(e, GCOLL_ERR_PROTO,
			"control message of %u bytes, expected 1 to %u", len, max);
	if (in->len < LEN_NBYTES + (size_t)len)
		return 0;
	r.data = in->data + LEN_NBYTES;
	r.len = len;
	memset(m, 0, sizeof(*m));
	m->type = gci_read_u8(&r);
	switch (m->type) {
	case GCI_CTL_HELLO:
		read_hello(&r, &m->hello);
		break;
	case GCI_CTL_START:
		rc = read_start(&r, &m->start);
		break;
	case GCI_CTL_FAIL:
	case GCI_CTL_ABORT:
		read_failure(&r, &m->failure);
		break;
	case GCI_CTL_WAIT:
		read_wait(&r, &m->wait);
		break;
	case GCI_CTL_ASK:
	case GCI_CTL_CALLED:
		read_call(&r, &m->call);
		break;
	case GCI_CTL_BUDGET:
		read_budget(&r, &m->budget);
		break;
	case GCI_CTL_WATCH:
		read_watch(&r, &m->watch);
		break;
	case GCI_CTL_REPORT:
		read_report(&r, &m->report);
		break;
	case GCI_CTL_FLOWS:
		read_flows(&r, &m->flows);
		break;
	case GCI_CTL_AGREE:
	case GCI_CTL_AGREED:
		read_agree(&r, &m->agree);
		break;
	case GCI_CTL_SHRINK:
	case GCI_CTL_SURVIVORS:
		rc = read_survivors(&r, m->type, &m->survivors);
		break;
	case GCI_CTL_BEAT:
	case GCI_CTL_RESUMED:
		m->got.n = gci_read_u64(&r);
		break;
	case GCI_CTL_RESUME:
		read_resume(&r, &m->resume);
		break;
	case GCI_CTL_BYE:
		break;
	default:
		r.failed = 1;
	}
	if (!rc && !r.failed && !r.len) {
		gci_buf_consume(in, LEN_NBYTES + (size_t)len);
		return 1;
	}
	gci_ctl_message_free(m);
	if (rc)
		return gci_error_set(e, rc, "out of memory");
	return gci_error_set(
		e, GCOLL_ERR_PROTO, "malformed control message of type %u", in->data[LEN_NBYTES]);
}

void gci_ctl_message_free(struct gci_ctl_message *m)
{
	if (m->type == GCI_CTL_START) {
		gci_free(m->start.grid);
		gci_free(m->start.table);
		gci_free(m->start.ranks);
		m->start.grid = m->start.table = NULL;
		m->start.ranks = NULL;
	} else if (m->type == GCI_CTL_SHRINK || m->type == GCI_CTL_SURVIVORS) {
		gci_free(m->survivors.ranks);
		m->survivors.ranks = NULL;
	}
}

int gci_ctl_token(const uint8_t secret[GCI_SECRET_NBYTES], uint32_t rank, uint8_t token[32])
{
	return gci_derive(secret, "gridcoll control 2", &rank, 1, token);
}

int gci_ctl_resume_key(const uint8_t secret[GCI_SECRET_NBYTES], uint32_t rank, uint8_t key[32])
{
	return gci_derive(secret, "gridcoll resume key 1", &rank, 1, key);
}

int gci_ctl_resume_token(const uint8_t key[32], const struct gci_ctl_resume *m,
	const uint8_t session[GCI_CTL_SESSION], uint8_t token[32])
{
	const uint32_t said[] = {m->rank, m->life, (uint32_t)m->got, (uint32_t)(m->got >> 32),
		gci_load_u32(session), gci_load_u32(session + 4), gci_load_u32(session + 8),
		gci_load_u32(session + 12)};

	return gci_derive(key, "gridcoll resume 1", said, 8, token);
}

/* ---- a connection that is lost */

int gci_ctl_counts(enum gci_ctl_type type)
{
	switch (type) {
	case GCI_CTL_HELLO:
	case GCI_CTL_START:
	case GCI_CTL_BEAT:
	case GCI_CTL_REPORT:
	case GCI_CTL_FLOWS:
	case GCI_CTL_RESUME:
	case GCI_CTL_RESUMED:
		return 0;
	default:
		return 1;
	}
}

static size_t message_nbytes(const uint8_t *p)
{
	return LEN_NBYTES + (size_t)gci_load_u32(p);
}

void gci_ctl_link_keep(struct gci_ctl_link *l, const uint8_t *p, size_t nbytes)
{
	size_t n;

	for (; nbytes > LEN_NBYTES && message_nbytes(p) <= nbytes; p += n, nbytes -= n) {
		n = message_nbytes(p);
		if (!gci_ctl_counts(p[LEN_NBYTES]))
			continue;
		l->sent++;
		if (!l->gap && l->kept.len + n <= GCI_CTL_MAX_KEPT)
			gci_buf_put(&l->kept, p, n);
		else
			l->gap = 1;
		l->gap |= l->kept.failed;
	}
}

/* A gap ends with the last message before it. */
int gci_ctl_link_acked(struct gci_ctl_link *l, uint64_t got)
{
	size_t at = 0;

	if (got < l->acked || got > l->sent)
		return -1;
	for (; l->acked < got && at < l->kept.len; l->acked++)
		at += message_nbytes(l->kept.data + at);
	gci_buf_consume(&l->kept, at);
	l->acked = got;
	if (got == l->sent) {
		l->gap = 0;
		gci_buf_free(&l->kept);
	}
	return 0;
}

void gci_ctl_link_free(struct gci_ctl_link *l)
{
	gci_buf_free(&l->kept);
}
