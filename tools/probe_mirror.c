/* SPDX-License-Identifier: MIT
 * The other side of a measured link. It says READY (an empty message) when its receives are begun
 * and their credits on their way ahead of that, so that a message never waits for its receiver. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tools/probe.h"

#include <stdlib.h>

/* A round of progress takes so much, or more. */
#define PUSH_NBYTES (64u << 10)
#define MORE_PUSHES 8

static int expect(struct gct_wire *w, int peer, uint32_t n, uint64_t nbytes)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		gct_wire_recv(w, &w->flights[i], peer, w->in, nbytes);
	return gct_wire_say(w, peer, NULL, 0);
}

static int rounds(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < c->reps && !rc; i++) {
		rc = expect(w, peer, c->n, c->nbytes);
		if (!rc)
			rc = gct_wire_wait(w, w->flights, c->n);
		if (!rc)
			rc = gct_wire_say(w, peer, NULL, 0);
	}
	return rc;
}

static int replies(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint32_t i;
	int rc = expect(w, peer, c->n, c->nbytes);

	for (i = 0; i < c->n && !rc; i++) {
		rc = gct_wire_wait(w, &w->flights[i], 1);
		if (!rc)
			rc = gct_wire_say(w, peer, NULL, 0);
	}
	return rc;
}

/* The time that taking the message keeps this process busy; GCI_TRIAL_LATE when not all of it was
 * there: more than the socket buffers hold never is. */
static int take_late(struct gct_wire *w, const struct gct_command *c, uint64_t *busy_ns)
{
	uint64_t from, pushes = c->nbytes / PUSH_NBYTES + MORE_PUSHES;
	int rc = 0;

	gci_sleep_ns(c->wait_ns + 2 * gct_pause_ns(c->wait_ns));
	from = gci_now_ns();
	while (!rc && !w->flights[0].done && pushes--)
		rc = gct_wire_push(w);
	*busy_ns = w->flights[0].done ? gci_now_ns() - from : GCI_TRIAL_LATE;
	return rc ? rc : gct_wire_wait(w, w->flights, 1);
}

static int receives(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint64_t ns[GCI_SAMPLES_MOST];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < c->reps && !rc; i++) {
		rc = expect(w, peer, 1, c->nbytes);
		if (!rc)
			rc = take_late(w, c, &ns[i]);
	}
	return rc ? rc : gct_wire_say(w, peer, ns, c->reps * sizeof(*ns));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int pieces(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint64_t *at_ns = gci_calloc(c->n, sizeof(*at_ns));
	uint32_t i;
	int rc = at_ns ? 0 : gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for times");

	if (!rc)
		rc = expect(w, peer, c->n, c->nbytes);
	if (!rc)
		rc = gct_wire_wait(w, w->flights, c->n);
	for (i = 0; i < c->n && !rc; i++)
		at_ns[i] = w->flights[i].at_ns;
	if (!rc) {
		qsort(at_ns, c->n, sizeof(*at_ns), compare);
		rc = gct_wire_say(w, peer, at_ns, c->n * sizeof(*at_ns));
	}
	gci_free(at_ns);
	return rc;
}

static int stamps(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint64_t ns[GCI_SAMPLES_MOST], sent, now;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < c->reps && !rc; i++) {
		gct_wire_recv(w, &w->flights[0], peer, &sent, sizeof(sent));
		rc = gct_wire_say(w, peer, NULL, 0);
		if (!rc)
			rc = gct_wire_wait(w, w->flights, 1);
		now = gci_wall_ns();
		ns[i] = now > sent ? now - sent : 0;
	}
	return rc ? rc : gct_wire_say(w, peer, ns, c->reps * sizeof(*ns));
}

static int (*const parts[GCT_NCOMMANDS])(
	struct gct_wire *w, int peer, const struct gct_command *c) = {
	[GCT_ROUNDS] = rounds,
	[GCT_REPLIES] = replies,
	[GCT_RECEIVES] = receives,
	[GCT_PIECES] = pieces,
	[GCT_STAMPS] = stamps,
};

static int hear(struct gct_wire *w, int peer, struct gct_command *c)
{
	uint8_t data[GCT_COMMAND_NBYTES];
	int rc = gct_wire_hear(w, peer, data, sizeof(data));

	if (rc)
		return rc;
	c->kind = gci_load_u32(data);
	c->n = gci_load_u32(data + 4);
	c->reps = gci_load_u32(data + 8);
	c->nbytes = gci_load_u64(data + 12);
	c->wait_ns = gci_load_u64(data + 20);
	if (c->kind >= GCT_NCOMMANDS || c->n > GCT_WIRE_MESSAGES || c->reps > GCI_SAMPLES_MOST ||
		c->nbytes > w->most)
		return gci_comm_error(GCOLL_ERR_PROTO,
			"rank %d asks for %u x %u messages of %llu bytes by command %u", peer,
			c->reps, c->n, (unsigned long long)c->nbytes, c->kind);
	return 0;
}

int gct_mirror(struct gct_wire *w, int peer)
{
	struct gct_command c;
	int rc;

	for (;;) {
		rc = hear(w, peer, &c);
		if (rc || c.kind == GCT_END)
			return rc;
		rc = parts[c.kind](w, peer, &c);
		if (rc)
			return rc;
	}
}
