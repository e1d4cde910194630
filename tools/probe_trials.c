/* SPDX-License-Identifier: MIT
 * The measuring side. A "send call" is an isend and one round of progress, which hands to the
 * sockets what they take without waiting: what MPI_Isend does in the papers. */
#include "base/clock.h"
#include "tools/probe.h"

static int send_call(struct gct_wire *w, struct gct_flight *f, int peer, uint32_t streams,
	uint64_t nbytes, uint64_t *busy_ns)
{
	uint64_t from = gci_now_ns();
	int rc;

	gct_wire_send(w, f, peer, w->out, nbytes, streams);
	rc = gct_wire_push(w);
	*busy_ns = gci_now_ns() - from;
	return rc;
}

static int begin(struct gct_wire *w, int peer, const struct gct_command *c)
{
	return gct_command_say(w, peer, c);
}

static int ready(struct gct_wire *w, int peer)
{
	return gct_wire_hear(w, peer, NULL, 0);
}

/* What did not fit into the socket buffers is taken to cost as much per byte as what did. */
static uint64_t of_whole(const struct gct_flight *f, uint64_t busy_ns)
{
	if (f->done || !f->tp.moved)
		return busy_ns;
	return (uint64_t)((unsigned __int128)busy_ns * f->tp.nbytes / f->tp.moved);
}

static int one_round(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *time)
{
	struct gct_flight reply;
	uint64_t from, busy = 0;
	uint32_t i;
	int rc = ready(w, peer);

	if (rc)
		return rc;
	gct_wire_recv(w, &reply, peer, NULL, 0);
	rc = gct_wire_push(w);
	from = gci_now_ns();
	for (i = 0; i < t->n && !rc; i++)
		rc = send_call(w, &w->flights[i], peer, streams, t->nbytes, &busy);
	if (!rc)
		time->busy_ns = of_whole(&w->flights[0], busy);
	if (!rc)
		rc = gct_wire_wait(w, &reply, 1);
	time->total_ns = gci_now_ns() - from;
	return rc ? rc : gct_wire_wait(w, w->flights, t->n);
}

/* Waits, and takes what comes, until then. */
static int idle_until(struct gct_wire *w, uint64_t end_ns)
{
	uint64_t now = gci_now_ns();
	int rc = 0;

	while (!rc && now < end_ns) {
		rc = gct_wire_idle(w, end_ns - now);
		now = gci_now_ns();
	}
	return rc;
}

/* Round trips that do not wait for each other. */
static int spaced_rounds(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *times)
{
	struct gct_flight reply[GCI_SAMPLES_MOST];
	uint64_t from[GCI_SAMPLES_MOST];
	uint32_t i;
	int rc = ready(w, peer);

	if (rc)
		return rc;
	for (i = 0; i < t->reps; i++)
		gct_wire_recv(w, &reply[i], peer, NULL, 0);
	rc = gct_wire_push(w);
	for (i = 0; i < t->reps && !rc; i++) {
		from[i] = gci_now_ns();
		rc = send_call(w, &w->flights[i], peer, streams, t->nbytes, &times[i].busy_ns);
		times[i].busy_ns = of_whole(&w->flights[i], times[i].busy_ns);
		if (!rc && i + 1 < t->reps)
			rc = idle_until(w, from[i] + t->space_ns);
	}
	if (!rc)
		rc = gct_wire_wait(w, reply, t->reps);
	for (i = 0; i < t->reps && !rc; i++)
		times[i].total_ns = reply[i].at_ns - from[i];
	return rc ? rc : gct_wire_wait(w, w->flights, t->reps);
}

static int receives(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *times)
{
	uint64_t ns[GCI_SAMPLES_MOST];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < t->reps && !rc; i++) {
		rc = ready(w, peer);
		if (rc)
			break;
		gci_sleep_ns(gct_pause_ns(t->wait_ns));
		gct_wire_send(w, &w->flights[0], peer, w->out, t->nbytes, streams);
		rc = gct_wire_wait(w, w->flights, 1);
	}
	if (!rc)
		rc = gct_wire_hear(w, peer, ns, t->reps * sizeof(*ns));
	for (i = 0; i < t->reps && !rc; i++)
		times[i] = (struct gci_trial_time){.busy_ns = ns[i]};
	return rc;
}

int gct_trial(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *times)
{
	int late = t->kind == GCI_TRIAL_RECEIVE;
	struct gct_command c = {
		late ? GCT_RECEIVES : GCT_ROUNDS, t->n, t->reps, t->nbytes, t->wait_ns};
	uint32_t i;
	int rc;

	if (t->space_ns && !late)
		c = (struct gct_command){GCT_REPLIES, t->reps, 1, t->nbytes, 0};
	rc = begin(w, peer, &c);
	if (!rc && late)
		return receives(w, peer, streams, t, times);
	if (!rc && t->space_ns)
		return spaced_rounds(w, peer, streams, t, times);
	for (i = 0; i < t->reps && !rc; i++)
		rc = one_round(w, peer, streams, t, &times[i]);
	return rc;
}

int gct_trial_pieces(struct gct_wire *w, int peer, uint32_t streams, uint32_t n, uint64_t nbytes,
	uint64_t *at_ns)
{
	struct gct_command c = {GCT_PIECES, n, 1, nbytes, 0};
	uint32_t i;
	int rc = begin(w, peer, &c);

	if (!rc)
		rc = ready(w, peer);
	for (i = 0; i < n && !rc; i++)
		gct_wire_send(w, &w->flights[i], peer, w->out, nbytes, streams);
	if (!rc)
		rc = gct_wire_wait(w, w->flights, n);
	return rc ? rc : gct_wire_hear(w, peer, at_ns, n * sizeof(*at_ns));
}

int gct_trial_isends(
	struct gct_wire *w, int peer, uint32_t streams, uint32_t n, uint64_t nbytes, uint64_t *ns)
{
	struct gct_command c = {GCT_ROUNDS, n, 1, nbytes, 0};
	uint32_t i;
	int rc = begin(w, peer, &c);

	if (!rc)
		rc = ready(w, peer);
	for (i = 0; i < n && !rc; i++)
		rc = send_call(w, &w->flights[i], peer, streams, nbytes, &ns[i]);
	if (!rc)
		rc = gct_wire_wait(w, w->flights, n);
	return rc ? rc : gct_wire_hear(w, peer, NULL, 0); /* the reply */
}

int gct_trial_stamps(struct gct_wire *w, int peer, uint32_t reps, uint64_t *ns)
{
	struct gct_command c = {GCT_STAMPS, 1, reps, sizeof(uint64_t), 0};
	uint64_t now;
	uint32_t i;
	int rc = begin(w, peer, &c);

	for (i = 0; i < reps && !rc; i++) {
		rc = ready(w, peer);
		now = gci_wall_ns();
		if (!rc)
			rc = gct_wire_say(w, peer, &now, sizeof(now));
	}
	return rc ? rc : gct_wire_hear(w, peer, ns, reps * sizeof(*ns));
}
