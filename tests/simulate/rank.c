/* SPDX-License-Identifier: MIT */
#include "tests/simulate/rank.h"

#include "tests/simulate/launcher.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void complain(struct rank *k, const char *fmt, ...)
{
	va_list ap;

	if (*k->wrong)
		return;
	va_start(ap, fmt);
	vsnprintf(k->wrong, sizeof(k->wrong), fmt, ap);
	va_end(ap);
}

/* A call has failed: takes down what it says. True if it has. */
static int failed(struct rank *k, const char *what, int rc)
{
	if (!rc || k->status)
		return rc != 0;
	k->status = rc;
	k->blamed = k->comms[ON_WORLD] ? k->comms[ON_WORLD]->engine->failure.rank : INT_MIN;
	snprintf(k->what, sizeof(k->what), "%s", what);
	snprintf(k->text, sizeof(k->text), "%s", gcoll_last_error());
	os_trace("rank %d: step %d, %s: %s", k->rank, k->at_step, what, k->text);
	return 1;
}

/* ---- data, which is the simulation's and nobody's memory */

static struct trial_data *data_of(struct rank *k, int which)
{
	struct job *j = k->job;
	const struct plan_call *c = &j->plan.steps[k->at_step].calls[which];
	int topo = plan_topo_of(c->on, k->rank);
	struct trial_data **d = &j->data[k->at_step][which][topo == ON_PART + 1];
	struct heap *owner;

	if (*d)
		return *d;
	owner = heap_owner(NULL);
	*d = trial_data_new(&c->trial, &j->plan.topo[topo]);
	trial_data_fill(*d, 0);
	heap_owner(owner);
	return *d;
}

static void drop_data(struct job *j, int step)
{
	int i;

	for (i = 0; i < 4; i++) {
		trial_data_free(j->data[step][i / 2][i % 2]);
		j->data[step][i / 2][i % 2] = NULL;
	}
}

void rank_free_data(struct job *j)
{
	int step, r;

	for (step = 0; step < PLAN_MAX_STEPS; step++) {
		drop_data(j, step);
		heap_free(j->sent[step]);
		for (r = 0; r < j->plan.n; r++) {
			heap_free(j->ranks[r].received[step]);
			heap_free(j->ranks[r].sending[step]);
		}
	}
}

/* ---- waiting */

static int wait_by_tests(gcoll_req **req)
{
	int rc = 0, done = 0;

	while (!done) {
		rc = gcoll_test(req, &done);
		if (!done)
			gci_sleep_ns(GCI_NS_PER_US * os_between(1, 5000));
	}
	return rc;
}

static void wait_all(struct rank *k, const char *what, gcoll_req **reqs, int n, int tests)
{
	int i;

	for (i = 0; i < n; i++) {
		int had = reqs[i] != NULL;
		int rc = tests ? wait_by_tests(&reqs[i]) : gcoll_wait(&reqs[i]);

		if (!failed(k, what, rc) && had)
			k->job->ncalls++;
		if (reqs[i])
			complain(k, "a request is there after its end");
	}
}

/* ---- collectives */

static void do_calls(struct rank *k, const struct plan_step *s)
{
	gcoll_req *reqs[2] = {NULL};
	char text[300];
	int i;

	for (i = 0; i < s->ncalls; i++) {
		const struct plan_call *c = &s->calls[i];
		gcoll_comm *comm = k->comms[c->on];
		const char *kind = gci_kind_name(c->trial.kind);
		struct trial_data *d = data_of(k, i);
		int rank = plan_rank_in(&k->job->plan, c->on, k->rank);

		if (failed(k, c->how, gcoll_comm_set(comm, kind, c->how)) ||
			failed(k, kind, trial_data_call(d, rank, comm, &reqs[i])))
			break;
	}
	wait_all(k, gci_kind_name(s->calls[0].trial.kind), reqs, 2, s->tests);
	for (i = 0; i < s->ncalls && !k->status; i++) {
		int rank = plan_rank_in(&k->job->plan, s->calls[i].on, k->rank);

		if (trial_data_check(data_of(k, i), rank, text, sizeof(text)))
			complain(k, "step %d, %s: %s", k->at_step, s->calls[i].how, text);
		/* What is sent again by now must be a copy. */
		trial_data_reuse(data_of(k, i), rank);
	}
}

/* ---- messages */

static size_t make_messages(struct rank *k, const struct plan_step *s)
{
	struct job *j = k->job;
	struct gci_prng prng = {j->plan.seed + (uint64_t)k->at_step};
	size_t n = 1, i;

	for (i = 0; i < (size_t)s->nmessages; i++)
		n += s->messages[i].nbytes;
	if (!j->sent[k->at_step]) {
		j->sent[k->at_step] = heap_calloc(n, 1);
		for (i = 0; i < n; i++)
			j->sent[k->at_step][i] = (char)gci_prng_next(&prng);
	}
	k->received[k->at_step] = heap_calloc(n, 1);
	k->sending[k->at_step] = heap_calloc(n, 1);
	memcpy(k->sending[k->at_step], j->sent[k->at_step], n);
	return n;
}

static void do_messages(struct rank *k, const struct plan_step *s)
{
	gcoll_req *reqs[2 * PLAN_MAX_MESSAGES] = {NULL};
	gcoll_comm *c = k->comms[ON_WORLD];
	size_t at = 0, nbytes = make_messages(k, s);
	int i, n = 0, rc = 0;

	for (i = 0; i < s->nmessages && !rc; at += s->messages[i++].nbytes) {
		const struct plan_message *m = &s->messages[i];
		char *to = k->received[k->at_step] + at, *from = k->sending[k->at_step] + at;

		if (m->to == k->rank)
			rc = gcoll_irecv(to, m->nbytes, GCOLL_BYTE, m->from, m->tag, c, &reqs[n++]);
		if (m->from == k->rank && !rc)
			rc = gcoll_isend(from, m->nbytes, GCOLL_BYTE, m->to, m->tag, c, &reqs[n++]);
		failed(k, "message", rc);
	}
	wait_all(k, "message", reqs, n, s->tests);
	if (!k->status)
		memset(k->sending[k->at_step], 0, nbytes);
	for (i = 0, at = 0; i < s->nmessages && !k->status; at += s->messages[i++].nbytes)
		if (s->messages[i].to == k->rank &&
			memcmp(k->received[k->at_step] + at, k->job->sent[k->at_step] + at,
				s->messages[i].nbytes) != 0)
			complain(k, "step %d: message %d came with other bytes", k->at_step, i);
}

/* ---- the program */

static int set(struct rank *k, const char *key, const char *value)
{
	return failed(k, key, gcoll_comm_set(k->comms[ON_WORLD], key, value));
}

static int begin(struct rank *k)
{
	const struct plan *p = &k->job->plan;
	gcoll_comm **c = k->comms;

	if (failed(k, "gcoll_init", world_join(&c[ON_WORLD])))
		return -1;
	c[ON_WORLD]->engine->settings.window_nbytes = p->window_nbytes;
	if (set(k, "replay", p->replay) || set(k, "checksum", p->checksum) ||
		set(k, "tuning", p->tuning) || set(k, "spin", p->spin) ||
		set(k, "order", p->fixed_order ? "fixed" : "any"))
		return -1;
	if (failed(k, "dup", gcoll_comm_dup(c[ON_WORLD], &c[ON_TWIN])))
		return -1;
	return failed(k, "split", gcoll_comm_split(c[ON_WORLD], k->rank % 2, -k->rank, &c[ON_PART]))
		       ? -1
		       : 0;
}

static void do_step(struct rank *k, const struct plan_step *s)
{
	if (s->late_ns)
		gci_sleep_ns(os_between(0, s->late_ns));
	os_trace("rank %d: step %d begins", k->rank, k->at_step);
	k->begun++;
	if (s->nmessages)
		do_messages(k, s);
	else
		do_calls(k, s);
	if (!k->status && ++k->job->npassed[k->at_step] == k->job->plan.n)
		drop_data(k->job, k->at_step);
}

void *rank_main(void *arg)
{
	struct rank *k = arg;
	const struct plan *p = &k->job->plan;

	if (!begin(k))
		for (; k->at_step < p->nsteps && !k->status; k->at_step++)
			do_step(k, &p->steps[k->at_step]);
	gcoll_finalize(k->comms[ON_WORLD]);
	k->ended = 1;
	k->ended_ns = os_now;
	k->left_pieces = k->process->heap.npieces;
	os_trace("rank %d ends with status %d", k->rank, k->status);
	if (!gci_list_empty(&k->process->files))
		complain(k, "descriptors are open after gcoll_finalize");
	launcher_exited((uint32_t)k->rank, k->status != 0, 0);
	return NULL;
}
