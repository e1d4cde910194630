/* SPDX-License-Identifier: MIT
 * The stream in chunks: each a bcast to those that need it, several under way. Files are read and
 * written by a thread, for disks may be slow and others wait for what this rank passes on.
 *
 * A barrier follows each group of chunks: a rank enters it when they are written. When it ends, all
 * ranks have them; that is what the progress bar shows, and no rank runs far ahead of the slowest.
 * Nobody waits for it while there are chunks to move, and without a bar the last ones have none: the
 * end of the copy tells.
 *
 * Memory is taken for a chunk when its bcast begins, and as few are under way as keep the links
 * busy: what was used last is taken first, and still in the cache. A chunk that waits for the disk
 * takes more. */
#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "comm/thread.h"
#include "tools/cp_impl.h"

#include <pthread.h>

#define LOOK_EVERY (100 * GCI_NS_PER_MS) /* at the clock, for the progress bar */
#define GROUP      4                     /* chunks to a barrier */
#define LEAST      4                     /* chunks under way */

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
	uint64_t entered, agreed; /* barriers; as many as there are groups */
	uint64_t group, ngroups;
	uint64_t at;      /* how far this rank had the stream in the beginning */
	uint64_t end;     /* and up to where it wants it */
	uint64_t filed;   /* chunks that the thread has read or written, as last seen */
	size_t chunk;     /* bytes */
	uint64_t nring;   /* chunks that there is memory for */
	uint64_t ahead;   /* chunks under way that keep the links busy */
	uint64_t *starts; /* the first chunk of each span, and all; NULL: no spans */
	uint64_t wait_ns; /* until the next chunk may go */

	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t may, done;        /* chunks that have come, and that the thread has handled */
	uint64_t freed;            /* chunks whose memory is free again */
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
		return (struct piece){m->root, 0, at, left < v->chunk ? (size_t)left : v->chunk, 0};
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

/* ---- memory of chunks */

/* Call with the lock held, as the next one. */
static void give(struct gct_cp_move *m, uint64_t at)
{
	gci_blocks_give(&m->chunks, m->memory[at]);
	m->memory[at] = NULL;
}

/* For chunk i. What has been moved and handled is free, in the order of the stream. */
static char *take(struct mover *v, uint64_t i, struct gci_error *e)
{
	char *chunk;

	for (; v->freed < v->may && v->freed < v->done; v->freed++)
		give(v->m, v->freed % v->nring);
	chunk = gci_blocks_take(&v->m->chunks);
	if (!chunk)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return v->m->memory[i % v->nring] = chunk;
}

/* ---- the thread */

static void handle_chunk(struct mover *v, uint64_t i, char *chunk, struct gci_error *e)
{
	struct gct_cp_move *m = v->m;
	struct piece p = piece(v, i);
	struct gct_cp_sink *sink = m->spans && m->sink_of ? m->sink_of(m->user, p.span) : m->sink;
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

static int is_read(const struct mover *v, uint64_t i)
{
	return piece(v, i).root == v->rank;
}

/* Whether chunk i may be handled: read, if it is not too early, or written, when it has come. */
static int may_handle(const struct mover *v, uint64_t i)
{
	return i < (is_read(v, i) ? v->may + v->ahead : v->may);
}

static void *handle_chunks(void *arg)
{
	struct mover *v = arg;
	struct gci_error e = {0};
	uint64_t begun_ns, now_ns;
	char *chunk;

	pthread_mutex_lock(&v->lock);
	while (!e.status && v->done < v->nchunks) {
		while (!v->stop && !may_handle(v, v->done))
			pthread_cond_wait(&v->changed, &v->lock);
		if (v->stop)
			break;
		chunk = is_read(v, v->done) ? take(v, v->done, &e)
					    : v->m->memory[v->done % v->nring];
		pthread_mutex_unlock(&v->lock);
		begun_ns = gci_now_ns();
		if (chunk)
			handle_chunk(v, v->done, chunk, &e);
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
static void post_chunk(struct mover *v, uint64_t i, struct gci_error *e)
{
	gcoll_comm *comm = v->m->comm;
	gcoll_req **req = &v->bcast[i % v->nring];
	struct piece p = piece(v, i);
	int n = 0, r, size = gcoll_size(comm);
	char *chunk;

	pthread_mutex_lock(&v->lock);
	chunk = is_read(v, i) ? v->m->memory[i % v->nring] : take(v, i, e);
	pthread_mutex_unlock(&v->lock);
	if (!chunk)
		return;
	for (r = 0; r < size; r++)
		if (r != p.root && v->m->at[r] < p.begin + p.n && end_of(v->m, r) > p.begin)
			v->dests[n++] = r;
	gct_cp_operation_error(e,
		n == size - 1
			? gcoll_ibcast(chunk, p.n, GCOLL_BYTE, p.root, comm, req)
			: gcoll_imulticast(chunk, p.n, GCOLL_BYTE, p.root, v->dests, n, comm, req));
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

/* This rank has written group i, as all others have when it ends. To tell by cluster who was the
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

/* The chunk that ends the first n groups. */
static uint64_t end_of_groups(const struct mover *v, uint64_t n)
{
	uint64_t end = v->first + n * v->group;

	return end < v->nchunks ? end : v->nchunks;
}

/* Starts the next operation, if its time has come. The order is the same on every rank: as many
 * bcasts as there is memory for, then a barrier before those that take its group's memory. Returns
 * whether it did. */
static int post(struct mover *v, struct gci_error *e)
{
	uint64_t i = v->posted, have = v->ended < v->filed ? v->ended : v->filed;

	if (i < v->nchunks && i < end_of_groups(v, v->entered) + v->nring) {
		if (is_read(v, i) ? v->filed <= i || !may_go(v, i) : i >= v->ended + v->ahead)
			return 0;
		post_chunk(v, i, e);
		v->posted++;
		return 1;
	}
	if (v->entered == v->ngroups || have < end_of_groups(v, v->entered + 1) ||
		v->entered - v->agreed == v->nring / v->group)
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
	if (!v->m->tells_clusters || !v->agreed)
		return NULL;
	return v->m->reached[(v->agreed - 1) % v->nring];
}

static int is_over(const struct mover *v)
{
	return v->agreed == v->ngroups && v->ended == v->nchunks && v->filed == v->nchunks;
}

static void move(struct mover *v, struct gci_error *e)
{
	while (!e->status && !is_over(v)) {
		uint64_t all = v->m->nbytes, at;
		int moved = 0;

		v->wait_ns = 0;
		exchange(v, e);
		while (!e->status && post(v, e))
			moved = 1;
		moved |= collect(v, v->bcast, &v->ended, v->posted, e);
		moved |= collect(v, v->barrier, &v->agreed, v->entered, e);
		at = end_of_groups(v, v->agreed);
		at = at < v->nchunks ? piece(v, at).begin : all;
		v->m->progress(v->m->user, at, reached(v));
		if (!moved && !e->status) /* a failure must not wait for this rank's disk */
			gct_cp_progress(v->m->comm,
				v->wait_ns && v->wait_ns < LOOK_EVERY ? v->wait_ns : LOOK_EVERY, e);
	}
}

static int allocate(struct mover *v, struct gci_error *e)
{
	uint64_t i, n = v->ngroups < v->nring ? v->ngroups : v->nring;

	for (i = 0; i < GCT_CP_CHUNKS; i++) /* of an attempt that failed */
		give(v->m, i);
	gci_blocks_drain(&v->m->chunks);
	v->m->chunks.size = v->m->nbytes < v->chunk ? v->m->nbytes : v->chunk;
	v->m->chunks.most = v->nchunks < GCT_CP_CHUNKS ? (unsigned)v->nchunks : GCT_CP_CHUNKS;
	v->dests = gci_calloc((size_t)gcoll_size(v->m->comm), sizeof(*v->dests));
	for (i = 0; i < n && v->dests; i++) {
		uint64_t **reached = &v->m->reached[i];

		/* For any world: in another attempt there are fewer clusters. */
		if (!*reached)
			*reached =
				gci_calloc((size_t)gcoll_clusters(v->m->comm), sizeof(**reached));
		if (!*reached)
			break;
	}
	if (v->dests && i == n)
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

/* Bytes that the links between clusters hold, twice: on their way, and while credit for more comes
 * back. UINT64_MAX: not known. */
static uint64_t in_flight(const gcoll_comm *comm)
{
	const struct gci_topo *t = &comm->topo;
	uint64_t most = 0;
	struct gci_flight f;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			if (a == b)
				continue;
			gci_topo_flight(t, a, b, comm->engine->settings.streams, &f);
			if (!f.nbytes)
				return UINT64_MAX;
			most = f.nbytes > most ? f.nbytes : most;
		}
	return 2 * most;
}

/* All of this is the same on every rank: it makes the order of operations. */
static void plan(struct mover *v)
{
	const struct gct_cp_move *m = v->m;
	uint64_t nbytes = in_flight(m->comm);

	v->chunk = gct_cp_chunk_nbytes(m->throttle.rate);
	v->nring = (uint64_t)gct_cp_chunks(m->throttle.rate);
	v->ahead = nbytes / v->chunk + LEAST;
	v->ahead = v->ahead < v->nring ? v->ahead : v->nring;
	v->group = GROUP;
	/* Who watches wants to see each chunk, and soon. */
	if (m->tells_clusters || m->throttle.rate)
		v->group = 1;
	if (m->tells_clusters && v->nring > 2 * v->ahead)
		v->nring = 2 * v->ahead;
	v->first = find_first(m, v->chunk);
	v->nchunks = count_chunks(m->nbytes, v->chunk);
}

/* How many barriers there are: without a bar, those that a bcast comes after. */
static uint64_t count_groups(const struct mover *v)
{
	uint64_t n = v->nchunks > v->first ? v->nchunks - v->first : 0;

	if (!v->m->tells_clusters)
		n = n > v->nring ? n - v->nring : 0;
	return count_chunks(n, v->group);
}

int gct_cp_move(struct gct_cp_move *m, struct gci_error *e)
{
	struct mover v = {.m = m,
		.rank = gcoll_rank(m->comm),
		.at = m->at[gcoll_rank(m->comm)],
		.end = end_of(m, gcoll_rank(m->comm))};

	plan(&v);
	m->comm->stream_nbytes = m->nbytes;
	if (!m->spans && m->source && v.first < v.nchunks &&
		gct_cp_source_seek(m->source, v.first * v.chunk, e))
		return e->status;
	if (!find_starts(&v, e)) {
		v.posted = v.ended = v.filed = v.may = v.done = v.freed = v.first;
		v.ngroups = count_groups(&v);
	}
	if (e->status || allocate(&v, e)) {
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
	m->comm->stream_nbytes = 0;
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
		give(m, (uint64_t)i);
		gci_free(m->reached[i]);
	}
	gci_blocks_drain(&m->chunks);
}
