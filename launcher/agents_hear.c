/* SPDX-License-Identifier: MIT
 * What agents say. */
#include "base/clock.h"
#include "base/mem.h"
#include "launcher/agents_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_COMPLAINT 300

/* Where ssh or a shell complained, its last line tells more than we know. Those that it started are
 * lost with it, but it was the first. */
void gci_agent_lose(struct gci_agent *a, const char *fmt, ...)
{
	char why[GCI_CTL_TEXT];
	const char *said = gci_buf_cstr(&a->complaint);
	struct gci_agent *k;
	va_list ap;
	int n;

	if (a->lost || a->closed)
		return;
	a->lost = 1;
	va_start(ap, fmt);
	n = vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (*said && n >= 0 && (size_t)n < sizeof(why))
		snprintf(why + n, sizeof(why) - (size_t)n, ": %s", said);
	a->all->events->lost(a, why);
	for (k = a->starts; k; k = k->next)
		gci_agent_lose(k, "%s, which passed on what its agent said, is lost: %s",
			a->place->host, why);
}

static int has_rank(const struct gci_agent *a, uint32_t rank)
{
	return rank >= a->place->first && rank - a->place->first < a->place->nranks;
}

/* Of those that it started, by the number that it knows it by. */
static struct gci_agent *started_by(const struct gci_agent *a, uint32_t id)
{
	struct gci_agent *k = a->starts;

	while (k && k->place->first != id)
		k = k->next;
	return k && k->runs ? k : NULL;
}

static int on_output(struct gci_agent *a, struct gci_frame *f)
{
	uint32_t rank = gci_read_u32(&f->r), stream = gci_read_u32(&f->r);

	if (f->r.failed || !has_rank(a, rank) || (stream != 1 && stream != 2))
		return -1;
	a->owed += (uint32_t)f->r.len;
	a->all->events->output(a, rank, stream, f->r.data, f->r.len);
	return 0;
}

static int on_ended(struct gci_agent *a, struct gci_frame *f)
{
	struct gci_frame_ended m;
	int rc = -1;

	if (gci_frame_get_ended(f, &m))
		return -1;
	if (has_rank(a, m.id)) {
		a->all->events->ended(a, m.id, m.code, m.sig, m.why);
		rc = 0;
	}
	gci_free(m.why);
	return rc;
}

static int on_relay_data(struct gci_agent *a, struct gci_frame *f)
{
	struct gci_frame_relay_data m;
	struct gci_agent *k = gci_frame_get_relay_data(f, &m) ? NULL : started_by(a, m.id);

	if (!k || !m.stream)
		return -1;
	if (m.stream == 1)
		gci_agent_hear(k, m.data, m.nbytes);
	else
		gci_agent_hear_complaint(k, (const char *)m.data, m.nbytes);
	return 0;
}

static int on_relay_ended(struct gci_agent *a, struct gci_frame *f)
{
	struct gci_frame_ended m;
	struct gci_agent *k;

	if (gci_frame_get_ended(f, &m))
		return -1;
	k = started_by(a, m.id);
	if (k)
		gci_agent_relayed_one_ended(k, &m);
	gci_free(m.why);
	return k ? 0 : -1;
}

static int on_frame(struct gci_agent *a, struct gci_frame *f)
{
	uint32_t n;
	char *text;

	switch (f->type) {
	case GCI_FRAME_OUTPUT:
		return on_output(a, f);
	case GCI_FRAME_ENDED:
		return on_ended(a, f);
	case GCI_FRAME_TAKEN:
		n = gci_read_u32(&f->r);
		if (!f->r.failed)
			a->all->events->taken(a, n);
		return f->r.failed;
	case GCI_FRAME_ERROR:
		text = gci_read_str(&f->r, GCI_FRAME_DATA);
		gci_agent_lose(a, "the agent failed: %s", text ? text : "");
		gci_free(text);
		return 0;
	case GCI_FRAME_PONG:
		a->answered = 1;
		return 0;
	case GCI_FRAME_RELAY_DATA:
		return on_relay_data(a, f);
	case GCI_FRAME_RELAY_ENDED:
		return on_relay_ended(a, f);
	default:
		return -1;
	}
}

/* What an agent of another release begins with. */
static int is_of_another_release(const struct gci_agent *a)
{
	static const char any[] = "\ngridcoll agent ";
	const uint8_t *at = memmem(a->input.data, a->input.len, any, sizeof(any) - 1);

	return at && memchr(at + 1, '\n', a->input.len - (size_t)(at + 1 - a->input.data));
}

/* A login script may have printed something before. */
static int find_magic(struct gci_agent *a)
{
	size_t len = strlen(GCI_FRAME_MAGIC);
	const uint8_t *at = memmem(a->input.data, a->input.len, GCI_FRAME_MAGIC, len);
	struct gci_agent *k;

	if (at) {
		a->spoke = 1;
		for (k = a->starts; k; k = k->next)
			k->tried_ns = a->heard_ns; /* what is held says so */
		gci_buf_consume(&a->input, (size_t)(at - a->input.data) + len);
		if (a->held.len)
			gci_agent_send(a, &a->held);
	} else if (is_of_another_release(a)) {
		gci_agent_lose(a, "gridcoll-run there is of another release than here");
	} else if (a->input.len > GCI_FRAME_MAX_NOISE) {
		gci_agent_lose(a, "no agent answered, but something else did");
	}
	return a->spoke;
}

void gci_agent_hear(struct gci_agent *a, const uint8_t *data, size_t nbytes)
{
	struct gci_error e = {0};
	struct gci_frame f;
	size_t at = 0;

	if (a->lost)
		return;
	a->heard_ns = gci_now_ns();
	gci_buf_put(&a->input, data, nbytes);
	if (a->input.failed) {
		gci_agent_lose(a, "out of memory for what its agent said");
		return;
	}
	if (!a->spoke && !find_magic(a))
		return;
	while (!a->lost && gci_frame_next(&a->input, &at, &f, &e) == 1)
		if (on_frame(a, &f))
			gci_agent_lose(a, "the agent spoke nonsense (frame %d)", (int)f.type);
	gci_buf_consume(&a->input, at);
	if (e.status)
		gci_agent_lose(a, "the agent spoke nonsense (%s)", e.text);
}

/* Keeps the last line that says something. */
void gci_agent_hear_complaint(struct gci_agent *a, const char *data, size_t nbytes)
{
	size_t i;

	for (i = 0; i < nbytes; i++) {
		char c = data[i];

		if (c == '\n' || c == '\r') {
			a->nopen = 0; /* the next character begins a new line */
			if (a->spoke && c == '\n' && a->complaint.len)
				a->all->events->grumble(a, gci_buf_cstr(&a->complaint));
			continue;
		}
		if (!a->nopen)
			gci_buf_consume(&a->complaint, a->complaint.len);
		a->nopen = 1;
		if (a->complaint.len < MAX_COMPLAINT)
			gci_buf_put_u8(&a->complaint, (uint8_t)c);
	}
}
