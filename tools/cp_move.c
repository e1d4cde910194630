/* SPDX-License-Identifier: MIT
 * The stream in chunks: each a bcast to those that need it, several under way. Files are read and
 * written by a thread, for disks may be slow and others wait for what this rank passes on.
 *
 * A barrier follows each chunk: a rank enters it when the chunk is written. When it ends, all ranks
 * have the chunk; that is what the progress bar shows, and no rank runs far ahead of the slowest.
 * Nobody waits for it while there are chunks to move. */
#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "comm/thread.h"
#include "tools/cp_impl.h"

#include <pthread.h>

#define LOOK_EVERY (100 * GCI_NS_PER_MS) /* at the clock, for the progress bar */

struct mover {
	struct gct_cp_move *m;
	int is_source;
	gcoll_req *bcast[GCT_CP_CHUNKS], *barrier[GCT_CP_CHUNKS];
	uint64_t first, nchunks; /* those before `first` all have */
	int *dests;
	uint64_t posted, ended;   /* bcasts */
	uint64_t entered, agreed; /* barriers */
	uint64_t at;              /* how far this rank had the stream in the beginning */
	uint64_t end;             /* and up to where it wants it */
	uint64_t filed;           /* chunks that the thread has read or written, as last seen */
	size_t chunk;             /* bytes */
	uint64_t nring;           /* chunks that there is memory for */
	uint64_t wait_ns;         /* until the next chunk may go */

	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t may, done;        /* chunks that the thread may handle, and has handled */
	uint64_t done_ns, busy_ns; /* see struct gct_cp_move */
	int stop;
	struct gci_error error; /* the thread's */
};

static uint64_t count_chunks(const struct gct_cp_move *m, size_t chunk)
{
	return m->nbytes / chunk + (m->nbytes % chunk != 0);
}

static size_t chunk_nbytes(const struct mover *v, uint64_t i)
{
	uint64_t left = v->m->nbytes - i * v->chunk;

	return left < v->chunk ? (size_t)left : v->chunk;
}

/* ---- the thread */

static void handle_chunk(struct mover *v, uint64_t i, struct gci_error *e)
{
	char *chunk = v->m->chunk[i % v->nring];
	uint64_t begin = i * v->chunk, from, to;
	size_t n = chunk_nbytes(v, i);

	if (v->is_source && gct_cp_source_read(v->m->source, chunk, n, e))
		return;
	if (!v->m->sink)
		return;
	/* Some of it may be here already, or another's. */
	from = v->at > begin ? v->at - begin : 0;
	to = v->end > begin ? v->end - begin : 0;
	to = to < n ? to : n;
	if (from < to)
		gct_cp_sink_write(v->m->sink, chunk + from, (size_t)(to - from), e);
}

static void *handle_chunks(void *arg)
{
	struct mover *v = arg;
	struct gci_error e = {0};
	uint64_t begun_ns, now_ns;

	pthread_mutex_lock(&v->lock);
	while (!e.status && v->done < v->nchunks) {
		while (!v->stop && v->may <= v->done)
			pthread_cond_wait(&v->changed, &v->lock);
		if (v->stop)
			break;
		pthread_mutex_unlock(&v->lock);
		begun_ns = gci_now_ns();
		handle_chunk(v, v->done, &e);
		now_ns = gci_now_ns();
		pthread_mutex_lock(&v->lock);
		v->busy_ns += now_ns - begun_ns;
		v->done_ns = now_ns;
		v->error = e;
		v->done += !e.status;
		gci_tp_wake(v->m->comm->engine->tp);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

/* What the thread may handle by now, for what it has. */
static void exchange(struct mover *v, struct gci_error *e)
{
	uint64_t may = v->is_source ? v->ended + v->nring : v->ended;

	pthread_mutex_lock(&v->lock);
	if (v->may != may) {
		v->may = may;
		pthread_cond_signal(&v->changed);
	}
	v->filed = v->done;
	if (v->error.status)
		gci_error_set(e, v->error.status, "%s", v->error.text);
	pthread_mutex_unlock(&v->lock);
}

static void end_thread(struct mover *v)
{
	pthread_mutex_lock(&v->lock);
	v->stop = 1;
	pthread_cond_signal(&v->changed);
	pthread_mutex_unlock(&v->lock);
	pthread_join(v->thread, NULL);
}

/* ---- the network */

static uint64_t end_of(const struct gct_cp_move *m, int rank)
{
	return m->end ? m->end[rank] : m->nbytes;
}

/* Chunk i goes to those that have not all of it that is theirs. */
static int post_chunk(struct mover *v, uint64_t i)
{
	gcoll_comm *comm = v->m->comm;
	char *chunk = v->m->chunk[i % v->nring];
	gcoll_req **req = &v->bcast[i % v->nring];
	uint64_t begin = i * v->chunk, end = begin + chunk_nbytes(v, i);
	int n = 0, r, size = gcoll_size(comm);

	for (r = 1; r < size; r++)
		if (v->m->at[r] < end && end_of(v->m, r) > begin)
			v->dests[n++] = r;
	if (n == size - 1)
		return gcoll_ibcast(chunk, chunk_nbytes(v, i), GCOLL_BYTE, 0, comm, req);
	return gcoll_imulticast(chunk, chunk_nbytes(v, i), GCOLL_BYTE, 0, v->dests, n, comm, req);
}

/* When the limit lets it go. */
static int may_go(struct mover *v, uint64_t i)
{
	struct gct_cp_throttle *t = &v->m->throttle;
	uint64_t now_ns;

	if (!t->rate)
		return 1;
	now_ns = gci_now_ns();
	v->wait_ns = gct_cp_throttle_wait(t, chunk_nbytes(v, i), now_ns);
	if (v->wait_ns)
		return 0;
	gct_cp_throttle_sent(t, chunk_nbytes(v, i), now_ns);
	return 1;
}

/* This rank has written chunk i, as all others have when it ends. To tell by cluster who was the
 * last is a reduction, and as good as a barrier: it too ends when all have come. */
static int post_written(struct mover *v, uint64_t i)
{
	struct gct_cp_move *m = v->m;
	gcoll_req **req = &v->barrier[i % v->nring];
	uint64_t *reached = m->reached[i % v->nring];
	int n = gcoll_clusters(m->comm), rank = gcoll_rank(m->comm);

	if (!m->tells_clusters)
		return gcoll_ibarrier(m->comm, req);
	memset(reached, 0, (size_t)n * sizeof(*reached));
	if (m->sink)
		reached[gcoll_cluster(m->comm, rank)] =
			GCT_CP_REACHED(gci_now_ns() - m->begun_ns, rank);
	return gcoll_iallreduce(
		GCOLL_IN_PLACE, reached, (uint64_t)n, GCOLL_UINT64, GCOLL_MAX, m->comm, req);
}

/* Starts the next operation, if its time has come. The order is the same on every rank: as many
 * bcasts as there is memory for, then a barrier before each that takes another's memory. Returns
 * whether it did. */
static int post(struct mover *v, struct gci_error *e)
{
	uint64_t i = v->posted, have = v->is_source ? v->ended : v->filed;

	if (v->entered == v->nchunks)
		return 0;
	if (i < v->nchunks && i < v->entered + v->nring) {
		if (v->is_source && (v->filed <= i || !may_go(v, i)))
			return 0;
		gct_cp_operation_error(e, post_chunk(v, i));
		v->posted++;
		return 1;
	}
	if (have <= v->entered || v->entered - v->agreed == v->nring)
		return 0;
	gct_cp_operation_error(e, post_written(v, v->entered));
	v->entered++;
	return 1;
}

/* Takes the ends of operations in their order. Returns whether there was one. */
static int collect(const struct mover *v, gcoll_req **ring, uint64_t *ended, uint64_t started,
	struct gci_error *e)
{
	int done, any = 0;

	while (!e->status && *ended < started) {
		gct_cp_operation_error(e, gcoll_test(&ring[*ended % v->nring], &done));
		if (!done)
			break;
		++*ended;
		any = 1;
	}
	return any;
}

int gct_cp_progress(gcoll_comm *comm, uint64_t timeout_ns, struct gci_error *e)
{
	struct gci_engine *engine = comm->engine;
	int rc;

	gci_enter(engine); /* connections may be warming up (comm/warm.h) */
	rc = gci_engine_progress(engine, timeout_ns);
	gci_leave(engine);
	if (!rc)
		return 0;
	gci_engine_await_verdict(engine, GCI_NEVER);
	return gci_error_set(e, engine->failure.status, "%s", engine->failure.text);
}

/* Of the last chunk that all have. */
static const uint64_t *reached(const struct mover *v)
{
	if (!v->m->tells_clusters || v->agreed == v->first)
		return NULL;
	return v->m->reached[(v->agreed - 1) % v->nring];
}

static void move(struct mover *v, struct gci_error *e)
{
	while (!e->status && v->agreed < v->nchunks) {
		uint64_t all = v->m->nbytes, at;
		int moved = 0;

		v->wait_ns = 0;
		exchange(v, e);
		while (!e->status && post(v, e))
			moved = 1;
		moved |= collect(v, v->bcast, &v->ended, v->posted, e);
		moved |= collect(v, v->barrier, &v->agreed, v->entered, e);
		at = v->agreed * v->chunk;
		v->m->progress(v->m->user, at < all ? at : all, reached(v));
		if (!moved && !e->status) /* a failure must not wait for this rank's disk */
			gct_cp_progress(v->m->comm,
				v->wait_ns && v->wait_ns < LOOK_EVERY ? v->wait_ns : LOOK_EVERY, e);
	}
}

static int allocate(struct mover *v, struct gci_error *e)
{
	uint64_t i, n = v->nchunks - v->first < v->nring ? v->nchunks - v->first : v->nring;

	v->dests = gci_calloc((size_t)gcoll_size(v->m->comm), sizeof(*v->dests));
	for (i = v->first; i < v->first + n && v->dests; i++) {
		char **chunk = &v->m->chunk[i % v->nring];
		uint64_t **reached = &v->m->reached[i % v->nring];

		/* For any chunk, and any world: in another attempt there are fewer clusters. */
		if (!*chunk)
			*chunk = gci_calloc(chunk_nbytes(v, 0), 1);
		if (!*reached)
			*reached =
				gci_calloc((size_t)gcoll_clusters(v->m->comm), sizeof(**reached));
		if (!*chunk || !*reached)
			break;
	}
	if (v->dests && i == v->first + n)
		return 0;
	gci_free(v->dests);
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

/* The chunk that somebody needs first. */
static uint64_t find_first(const struct gct_cp_move *m, size_t chunk)
{
	uint64_t least = UINT64_MAX;
	int r;

	for (r = 0; r < gcoll_size(m->comm); r++)
		least = m->at[r] < least ? m->at[r] : least;
	if (least == UINT64_MAX) /* a rank alone, which only reads */
		return 0;
	return least < m->nbytes ? least / chunk : count_chunks(m, chunk);
}

int gct_cp_move(struct gct_cp_move *m, struct gci_error *e)
{
	size_t chunk = gct_cp_chunk_nbytes(m->throttle.rate);
	struct mover v = {.m = m,
		.chunk = chunk,
		.nring = (uint64_t)gct_cp_chunks(m->throttle.rate),
		.is_source = m->source != NULL,
		.at = m->at[gcoll_rank(m->comm)],
		.end = end_of(m, gcoll_rank(m->comm)),
		.first = find_first(m, chunk),
		.nchunks = count_chunks(m, chunk)};

	v.posted = v.ended = v.entered = v.agreed = v.filed = v.may = v.done = v.first;
	if (v.is_source && v.first < v.nchunks && gct_cp_source_seek(m->source, v.first * chunk, e))
		return e->status;
	if (allocate(&v, e))
		return e->status;
	pthread_mutex_init(&v.lock, NULL);
	pthread_cond_init(&v.changed, NULL);
	errno = pthread_create(&v.thread, NULL, handle_chunks, &v);
	if (errno) {
		gci_error_errno(e, "starting a thread");
	} else {
		move(&v, e);
		end_thread(&v);
		m->done_ns = v.done_ns ? v.done_ns : m->done_ns;
		m->busy_ns += v.busy_ns;
		if (v.error.status) /* this rank's own, also when another's was known before it */
			*e = v.error;
	}
	pthread_cond_destroy(&v.changed);
	pthread_mutex_destroy(&v.lock);
	gci_free(v.dests);
	return e->status;
}

void gct_cp_move_free(struct gct_cp_move *m)
{
	int i;

	for (i = 0; i < GCT_CP_CHUNKS; i++) {
		gci_free(m->chunk[i]);
		gci_free(m->reached[i]);
	}
}
