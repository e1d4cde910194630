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

/* What a chunk is. */
struct piece {
	int root;
	uint32_t span;
	uint64_t begin; /* in the stream */
	size_t n;
	int is_last; /* of its span */
};

struct mover {
	struct gct_cp_move *m;
	int rank;
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
	uint64_t *starts;         /* the first chunk of each span, and all; NULL: no spans */
	uint64_t wait_ns;         /* until the next chunk may go */

	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t may, done;        /* chunks that have come, and that the thread has handled */
	uint64_t done_ns, busy_ns; /* see struct gct_cp_move */
	int stop;
	struct gci_error error; /* the thread's */
};

static uint64_t count_chunks(uint64_t nbytes, size_t chunk)
{
	return nbytes / chunk + (nbytes % chunk != 0);
}

/* Spans do not share chunks: each comes from one rank. */
static int find_starts(struct mover *v, struct gci_error *e)
{
	const struct gct_cp_move *m = v->m;
	uint32_t s;

	if (!m->spans)
		return 0;
	v->starts = gci_calloc(m->nspans + 1, sizeof(*v->starts));
	if (!v->starts)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (s = 0; s < m->nspans; s++)
		v->starts[s + 1] = v->starts[s] + count_chunks(m->spans[s].nbytes, v->chunk);
	v->nchunks = v->starts[m->nspans];
	return 0;
}

static struct piece piece(const struct mover *v, uint64_t i)
{
	const struct gct_cp_move *m = v->m;
	uint32_t least = 0, most = m->nspans, middle;
	uint64_t at = i * v->chunk, left = m->nbytes - at;

	if (!m->spans)
		return (struct piece){0, 0, at, left < v->chunk ? (size_t)left : v->chunk, 0};
	while (most - least > 1) {
		middle = least + (most - least) / 2;
		if (v->starts[middle] <= i)
			least = middle;
		else
			most = middle;
	}
	at = (i - v->starts[least]) * v->chunk;
	left = m->spans[least].nbytes - at;
	return (struct piece){m->spans[least].root, least, m->spans[least].begin + at,
		left < v->chunk ? (size_t)left : v->chunk, left <= v->chunk};
}

/* ---- the thread */

static void handle_chunk(struct mover *v, uint64_t i, struct gci_error *e)
{
	struct gct_cp_move *m = v->m;
	struct piece p = piece(v, i);
	struct gct_cp_sink *sink = m->spans && m->sink_of ? m->sink_of(m->user, p.span) : m->sink;
	char *chunk = m->chunk[i % v->nring];
	uint64_t from, to;

	if (p.root == v->rank && gct_cp_source_read(m->source, chunk, p.n, e))
		return;
	if (!sink)
		return;
	/* Some of it may be here already, or another's. */
	from = v->at > p.begin ? v->at - p.begin : 0;
	to = v->end > p.begin ? v->end - p.begin : 0;
	to = to < p.n ? to : p.n;
	if (from < to && gct_cp_sink_write(sink, chunk + from, (size_t)(to - from), e))
		return;
	if (p.is_last && !gct_cp_sink_finish(sink, e))
		gct_cp_place_close(&sink->place); /* there may be many */
}

/* Whether chunk i may be handled: read, if there is memory for it, or written, when it has come. */
static int may_handle(const struct mover *v, uint64_t i)
{
	return i < (piece(v, i).root == v->rank ? v->may + v->nring : v->may);
}

static void *handle_chunks(void *arg)
{
	struct mover *v = arg;
	struct gci_error e = {0};
	uint64_t begun_ns, now_ns;

	pthread_mutex_lock(&v->lock);
	while (!e.status && v->done < v->nchunks) {
		while (!v->stop && !may_handle(v, v->done))
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
	pthread_mutex_lock(&v->lock);
	if (v->may != v->ended) {
		v->may = v->ended;
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
	struct piece p = piece(v, i);
	int n = 0, r, size = gcoll_size(comm);

	for (r = 0; r < size; r++)
		if (r != p.root && v->m->at[r] < p.begin + p.n && end_of(v->m, r) > p.begin)
			v->dests[n++] = r;
	if (n == size - 1)
		return gcoll_ibcast(chunk, p.n, GCOLL_BYTE, p.root, comm, req);
	return gcoll_imulticast(chunk, p.n, GCOLL_BYTE, p.root, v->dests, n, comm, req);
}

/* When the limit lets it go. */
static int may_go(struct mover *v, uint64_t i)
{
	struct gct_cp_throttle *t = &v->m->throttle;
	uint64_t now_ns;

	if (!t->rate)
		return 1;
	now_ns = gci_now_ns();
	v->wait_ns = gct_cp_throttle_wait(t, piece(v, i).n, now_ns);
	if (v->wait_ns)
		return 0;
	gct_cp_throttle_sent(t, piece(v, i).n, now_ns);
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
	uint64_t i = v->posted, have = v->ended < v->filed ? v->ended : v->filed;

	if (v->entered == v->nchunks)
		return 0;
	if (i < v->nchunks && i < v->entered + v->nring) {
		if (piece(v, i).root == v->rank && (v->filed <= i || !may_go(v, i)))
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
		at = v->agreed < v->nchunks ? piece(v, v->agreed).begin : all;
		v->m->progress(v->m->user, at, reached(v));
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
			*chunk = gci_calloc(v->m->nbytes < v->chunk ? v->m->nbytes : v->chunk, 1);
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
	return least < m->nbytes ? least / chunk : count_chunks(m->nbytes, chunk);
}

int gct_cp_move(struct gct_cp_move *m, struct gci_error *e)
{
	size_t chunk = gct_cp_chunk_nbytes(m->throttle.rate);
	struct mover v = {.m = m,
		.chunk = chunk,
		.nring = (uint64_t)gct_cp_chunks(m->throttle.rate),
		.rank = gcoll_rank(m->comm),
		.at = m->at[gcoll_rank(m->comm)],
		.end = end_of(m, gcoll_rank(m->comm)),
		.first = find_first(m, chunk),
		.nchunks = count_chunks(m->nbytes, chunk)};

	v.posted = v.ended = v.entered = v.agreed = v.filed = v.may = v.done = v.first;
	if (!m->spans && m->source && v.first < v.nchunks &&
		gct_cp_source_seek(m->source, v.first * chunk, e))
		return e->status;
	if (find_starts(&v, e) || allocate(&v, e)) {
		gci_free(v.starts);
		return e->status;
	}
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
	gci_free(v.starts);
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
