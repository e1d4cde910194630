/* SPDX-License-Identifier: MIT */
#include "launcher/agent_msg.h"

#include "base/mem.h"

#include <openssl/crypto.h>
#include <string.h>

#define MAX_STRINGS (1u << 17)

size_t gci_agent_msg_begin(struct gci_buf *out, enum gci_agent_msg_type type)
{
	size_t at = out->len;

	gci_buf_put_u32(out, 0);
	gci_buf_put_u8(out, (uint8_t)type);
	return at;
}

void gci_agent_msg_end(struct gci_buf *out, size_t at)
{
	if (!out->failed)
		gci_store_u32(out->data + at, (uint32_t)(out->len - at - 4));
}

void gci_agent_msg_put_u32(struct gci_buf *out, enum gci_agent_msg_type type, uint32_t v)
{
	size_t at = gci_agent_msg_begin(out, type);

	gci_buf_put_u32(out, v);
	gci_agent_msg_end(out, at);
}

void gci_agent_msg_put_plain(struct gci_buf *out, enum gci_agent_msg_type type)
{
	gci_agent_msg_end(out, gci_agent_msg_begin(out, type));
}

void gci_agent_msg_put_signal(struct gci_buf *out, int sig, uint32_t rank)
{
	size_t at = gci_agent_msg_begin(out, GCI_AGENT_MSG_SIGNAL);

	gci_buf_put_u32(out, (uint32_t)sig);
	gci_buf_put_u32(out, rank);
	gci_agent_msg_end(out, at);
}

int gci_agent_msg_next(
	const struct gci_buf *in, size_t *at, struct gci_agent_msg *f, struct gci_error *e)
{
	uint32_t len;

	if (in->failed)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (in->len - *at < 4)
		return 0;
	len = gci_load_u32(in->data + *at);
	if (!len || len > GCI_AGENT_MSG_MAX)
		return gci_error_set(e, GCOLL_ERR_PROTO, "malformed frame of %u bytes", len);
	if (in->len - *at - 4 < len)
		return 0;
	f->type = in->data[*at + 4];
	f->r = (struct gci_reader){.data = in->data + *at + 5, .len = len - 1};
	*at += 4 + (size_t)len;
	return 1;
}

static void put_strings(struct gci_buf *out, char *const *list)
{
	uint32_t n = 0, i;

	while (list[n])
		n++;
	gci_buf_put_u32(out, n);
	for (i = 0; i < n; i++)
		gci_buf_put_str(out, list[i]);
}

static char **get_strings(struct gci_reader *r)
{
	uint32_t n = gci_read_u32(r), i;
	char **list;

	if (r->failed || n > MAX_STRINGS || n > r->len / 4) {
		r->failed = 1;
		return NULL;
	}
	list = gci_calloc((size_t)n + 1, sizeof(*list));
	if (!list)
		r->failed = 1;
	for (i = 0; list && i < n && !r->failed; i++)
		list[i] = gci_read_str(r, GCI_AGENT_MSG_MAX);
	return list;
}

static void free_strings(char **list)
{
	char **s;

	for (s = list; s && *s; s++)
		gci_free(*s);
	gci_free(list);
}

void gci_agent_msg_put_start(struct gci_buf *out, const struct gci_agent_msg_start *m)
{
	size_t at = gci_agent_msg_begin(out, GCI_AGENT_MSG_START);
	uint32_t i;

	gci_buf_put(out, m->secret, sizeof(m->secret));
	gci_buf_put_u64(out, m->dead_ns);
	gci_buf_put_str(out, m->cwd);
	gci_buf_put_u8(out, m->or_home);
	gci_buf_put_str(out, m->rendezvous);
	put_strings(out, m->argv);
	put_strings(out, m->env);
	gci_buf_put_u32(out, m->nranks);
	for (i = 0; i < m->nranks; i++)
		gci_buf_put_u32(out, m->ranks[i]);
	gci_agent_msg_end(out, at);
}

int gci_agent_msg_get_start(struct gci_agent_msg *f, struct gci_agent_msg_start *m)
{
	struct gci_reader *r = &f->r;
	const uint8_t *secret = gci_read(r, sizeof(m->secret));
	uint32_t i;

	memset(m, 0, sizeof(*m));
	if (secret)
		memcpy(m->secret, secret, sizeof(m->secret));
	m->dead_ns = gci_read_u64(r);
	m->cwd = gci_read_str(r, GCI_AGENT_MSG_MAX);
	m->or_home = gci_read_u8(r);
	m->rendezvous = gci_read_str(r, 128);
	m->argv = get_strings(r);
	m->env = get_strings(r);
	m->nranks = gci_read_u32(r);
	if (!r->failed && m->argv[0] && m->nranks && r->len == 4 * (size_t)m->nranks)
		m->ranks = gci_calloc(m->nranks, sizeof(*m->ranks));
	for (i = 0; m->ranks && i < m->nranks; i++)
		m->ranks[i] = gci_read_u32(r);
	if (m->ranks)
		return 0;
	gci_agent_msg_start_free(m);
	return GCOLL_ERR_PROTO;
}

void gci_agent_msg_start_free(struct gci_agent_msg_start *m)
{
	gci_free(m->ranks);
	gci_free(m->cwd);
	gci_free(m->rendezvous);
	free_strings(m->argv);
	free_strings(m->env);
	OPENSSL_cleanse(m, sizeof(*m));
}

void gci_agent_msg_put_relay_start(struct gci_buf *out, uint32_t id, char *const *argv)
{
	size_t at = gci_agent_msg_begin(out, GCI_AGENT_MSG_RELAY_START);

	gci_buf_put_u32(out, id);
	put_strings(out, argv);
	gci_agent_msg_end(out, at);
}

int gci_agent_msg_get_relay_start(struct gci_agent_msg *f, uint32_t *id, char ***argv)
{
	*id = gci_read_u32(&f->r);
	*argv = get_strings(&f->r);
	if (!f->r.failed && !f->r.len && **argv)
		return 0;
	free_strings(*argv);
	*argv = NULL;
	return GCOLL_ERR_PROTO;
}

void gci_agent_msg_argv_free(char **argv)
{
	free_strings(argv);
}

void gci_agent_msg_put_relay_data(struct gci_buf *out, const struct gci_agent_msg_relay_data *m)
{
	size_t at = gci_agent_msg_begin(out, GCI_AGENT_MSG_RELAY_DATA);

	gci_buf_put_u32(out, m->id);
	gci_buf_put_u32(out, m->stream);
	gci_buf_put(out, m->data, m->nbytes);
	gci_agent_msg_end(out, at);
}

int gci_agent_msg_get_relay_data(struct gci_agent_msg *f, struct gci_agent_msg_relay_data *m)
{
	m->id = gci_read_u32(&f->r);
	m->stream = gci_read_u32(&f->r);
	m->data = f->r.data;
	m->nbytes = f->r.len;
	return f->r.failed || m->stream > 2 || m->nbytes > GCI_AGENT_MSG_RELAYED ? GCOLL_ERR_PROTO
										 : 0;
}

void gci_agent_msg_put_ended(
	struct gci_buf *out, enum gci_agent_msg_type type, const struct gci_agent_msg_ended *m)
{
	size_t at = gci_agent_msg_begin(out, type);

	gci_buf_put_u32(out, m->id);
	gci_buf_put_u32(out, (uint32_t)m->code);
	gci_buf_put_u32(out, (uint32_t)m->sig);
	gci_buf_put_str(out, m->why);
	gci_agent_msg_end(out, at);
}

int gci_agent_msg_get_ended(struct gci_agent_msg *f, struct gci_agent_msg_ended *m)
{
	m->id = gci_read_u32(&f->r);
	m->code = (int)(gci_read_u32(&f->r) & 255);
	m->sig = (int)(gci_read_u32(&f->r) & 127);
	m->why = gci_read_str(&f->r, GCI_AGENT_MSG_DATA);
	if (!f->r.failed)
		return 0;
	gci_free(m->why);
	m->why = NULL;
	return GCOLL_ERR_PROTO;
}

void gci_agent_msg_put_origin(struct gci_buf *out, const char *address)
{
	size_t at = gci_agent_msg_begin(out, GCI_AGENT_MSG_ORIGIN);

	gci_buf_put_str(out, address);
	gci_agent_msg_end(out, at);
}

char *gci_agent_msg_get_origin(struct gci_agent_msg *f)
{
	return gci_read_str(&f->r, GCI_AGENT_MSG_ADDRESS);
}
