/* SPDX-License-Identifier: MIT
 * Ranks in one thread, and messages between them, for tests. */
#include "tests/transport/conformance.h"

#include "base/clock.h"
#include "base/prng.h"

#include <stdlib.h>
#include <string.h>

#define HANG_NS          (120 * GCI_NS_PER_S) /* a guard only: nothing here takes as long */
#define ENCRYPTED_REPLAY (1 << 20)            /* of links that do not say */

/* `user` of a rank's configuration: finds both the world and the rank. */
struct rank_user {
	struct world *w;
	int rank;
};

static struct rank_user users[MAX_RANKS];
int differing_rank = -1;
uint64_t world_replay_nbytes;
int differs_in_checksums;
enum gci_data_path world_path;
int world_encrypted;

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	struct rank_user *u = user;

	(void)peer;
	*out = u->w->link;
	out->path = world_path;
	out->encrypted |= world_encrypted;
	if (!out->replay_nbytes)
		out->replay_nbytes = out->encrypted ? ENCRYPTED_REPLAY : world_replay_nbytes;
	if (u->rank == differing_rank && differs_in_checksums)
		out->unchecked = 1;
	else if (u->rank == differing_rank)
		out->streams++;
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	struct rank_user *u = user;

	u->w->failure[u->rank] = *f;
	u->w->nfailures[u->rank]++;
}

static int on_check(void *user, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	struct rank_user *u = user;

	(void)peer;
	(void)key;
	(void)digest;
	u->w->nchecked[u->rank]++;
	return !u->w->refuse[u->rank];
}

int world_try_open(
	struct world *w, const struct backend *b, int size, const struct gci_tp_link *link)
{
	static const struct gci_tp_link plain = {.streams = 1, .eager_nbytes = 64 << 10};
	int i;

	memset(w, 0, sizeof(*w));
	w->backend = b;
	w->size = size;
	w->link = link ? *link : plain;
	for (i = 0; i < size; i++) {
		users[i] = (struct rank_user){w, i};
		w->config[i] = (struct gci_tp_config){.rank = i,
			.size = size,
			.epoch = 3,
			.user = &users[i],
			.link = on_link,
			.on_failure = on_failure,
			.check = on_check};
	}
	return b->open(w);
}

void world_open(struct world *w, const struct backend *b, int size, const struct gci_tp_link *link)
{
	assert_int_equal(world_try_open(w, b, size, link), 0);
}

void world_free_rank(struct world *w, int rank)
{
	gci_tp_free(w->tp[rank]);
	w->tp[rank] = NULL;
}

void world_close(struct world *w)
{
	int i;

	for (i = 0; i < w->size; i++)
		world_free_rank(w, i);
	w->backend->close(w);
}

void world_run(struct world *w, int (*cond)(void *arg), void *arg)
{
	uint64_t end = gci_now_ns() + HANG_NS;

	while (!cond(arg)) {
		if (!w->backend->step(w) && !cond(arg))
			fail_msg("deadlock: nothing moves, and the end is not reached");
		if (gci_now_ns() > end)
			fail_msg("hangs");
	}
}

struct all_done {
	const struct message *msgs;
	size_t n, at;
};

static int all_done(void *arg)
{
	struct all_done *a = arg;

	while (a->at < a->n && a->msgs[a->at].ndone)
		a->at++;
	return a->at == a->n;
}

void world_finish(struct world *w, struct message *msgs, size_t n)
{
	struct all_done a = {msgs, n, 0};

	world_run(w, all_done, &a);
}

static void on_done(struct gci_tp_req *r, int status)
{
	struct message *m = r->user;

	m->ndone++;
	m->status = status;
}

void message_init(struct message *m, int peer, struct gci_tp_key key, void *buf, uint64_t nbytes)
{
	memset(m, 0, sizeof(*m));
	m->r.peer = peer;
	m->r.key = key;
	m->r.buf = buf;
	m->r.nbytes = nbytes;
	m->r.digest = 77;
	m->r.align = 1;
	m->r.done = on_done;
	m->r.user = m;
}

void send_to(struct world *w, int rank, struct message *m, int peer, uint32_t tag, void *buf,
	uint64_t nbytes)
{
	message_init(m, peer, (struct gci_tp_key){.tag = tag}, buf, nbytes);
	gci_tp_isend(w->tp[rank], &m->r);
}

void recv_from(struct world *w, int rank, struct message *m, int peer, uint32_t tag, void *buf,
	uint64_t nbytes)
{
	message_init(m, peer, (struct gci_tp_key){.tag = tag}, buf, nbytes);
	gci_tp_irecv(w->tp[rank], &m->r);
}

void fill(uint8_t *p, size_t n, uint64_t seed)
{
	struct gci_prng prng = {seed};
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		uint64_t v = gci_prng_next(&prng);

		memcpy(p + i, &v, 8);
	}
	for (; i < n; i++)
		p[i] = (uint8_t)(i * 7 + seed);
}

void *room(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	assert_non_null(p);
	return p;
}

void steps(struct world *w, int n)
{
	while (n-- > 0)
		w->backend->step(w);
}

void on_piece(struct gci_tp_req *r, uint64_t offset, const void *data, size_t nbytes)
{
	struct message *m = r->user;
	size_t i;

	m->npieces++;
	assert_true(nbytes > 0 && offset + nbytes <= r->nbytes);
	assert_int_equal(offset % r->align, 0);
	assert_int_equal(nbytes % r->align, 0);
	assert_int_equal((uintptr_t)data % 8, 0);
	for (i = 0; i < nbytes; i++)
		m->times[offset + i]++;
	memcpy((uint8_t *)r->buf + offset, data, nbytes); /* `buf` is ours: piece is set */
}

const struct backend *conformance_backend;

int conformance_main(const struct backend *b, const struct CMUnitTest *more, size_t nmore)
{
	int failed;

	conformance_backend = b;
	failed = _cmocka_run_group_tests(b->name, conformance_data, conformance_data_n, NULL, NULL);
	failed += _cmocka_run_group_tests(
		b->name, conformance_progress, conformance_progress_n, NULL, NULL);
	failed += _cmocka_run_group_tests(
		b->name, conformance_failures, conformance_failures_n, NULL, NULL);
	if (nmore)
		failed += _cmocka_run_group_tests(b->name, more, nmore, NULL, NULL);
	return failed;
}
