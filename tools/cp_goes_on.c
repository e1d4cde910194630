/* SPDX-License-Identifier: MIT
 * --resume, as all ranks do it together: each receiver learns how far it has the stream, and all
 * which files need not be in it, because every receiver has them. */
#include "tools/cp_copy.h"

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "tools/cp_impl.h"

/* What ranks claim before anything is compared; of all of them the largest. */
struct claims {
	uint64_t nblocks; /* see gct_cp_claim */
	uint64_t spread;
	uint64_t has_none; /* true: somebody has no file whole, so there is none that all have */
};

#define CLAIMS_WORDS (sizeof(struct claims) / sizeof(uint64_t))

enum spread {
	NO_FILES,
	IN_A_ROW, /* from the first one on */
	WITH_GAPS
};

static enum spread spread_of(const struct gct_cp_manifest *m, const uint64_t *set)
{
	uint32_t i, first = gct_cp_first_missing(m, set);

	for (i = first; i < m->nfiles; i++)
		if (gct_cp_is_in(set, i))
			return WITH_GAPS;
	return first ? IN_A_ROW : NO_FILES;
}

/* In a world after another's failure, this rank knows already what all have. */
static int has_agreed(const struct gct_cp_copy *c)
{
	return c->phase > GCT_CP_RESUME;
}

/* What this rank has, or seems to have; who is no receiver has nothing against any file. */
static struct claims claim(struct gct_cp_copy *c, uint64_t *set)
{
	const struct gct_cp_manifest *m = &c->manifest;
	int asks = c->writes && !has_agreed(c);
	struct claims mine = {.nblocks = asks ? gct_cp_claim(&c->sink, set) : 0};
	uint32_t i;

	for (i = 0; i < m->nfiles && !asks; i++)
		gct_cp_put(set, i, !has_agreed(c) || m->files[i].is_there);
	if (!asks && !has_agreed(c))
		return mine;
	mine.spread = spread_of(m, set);
	/* Of a single file nothing stands behind what is missing. */
	mine.has_none = m->nfiles < 2 || mine.spread == NO_FILES;
	return mine;
}

/* Others' failures do not wait until all is read; then what was summed stays. */
static int on_block(void *user, uint64_t n, struct gci_error *e)
{
	struct gct_cp_copy *c = user;

	gct_cp_show_compared(c, n);
	return gct_cp_progress(c->comm, 0, e);
}

/* Room for n checksums; those that are made stay. */
static int make_room(struct gct_cp_copy *c, uint64_t n, struct gci_error *e)
{
	uint32_t *more;

	c->nwanted = n;
	if (c->crcs && n <= c->ncrcs)
		return 0;
	more = gci_reallocarray(c->crcs, n + 1, sizeof(*more));
	if (!more)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	memset(more + c->ncrcs, 0, (n - c->ncrcs) * sizeof(*more));
	c->crcs = more;
	c->ncrcs = n;
	return 0;
}

/* The root sums up the first n blocks and the files in the set, and all get it; what is between them
 * is not known. */
static int share_sums(struct gct_cp_copy *c, uint64_t n, uint64_t *set,
	const struct gct_cp_look *look, struct gci_error *e)
{
	if (make_room(c, gct_cp_reach(&c->manifest, set, n), e))
		return e->status;
	if (gct_cp_is_root(c)) {
		gct_cp_sum_blocks(&c->manifest, c->crcs, n, set, look, e);
		c->source.crcs = c->crcs;
		c->source.ncrcs = c->ncrcs;
	}
	return e->status ? e->status
			 : gct_cp_operation_error(e, gcoll_bcast(c->crcs, c->nwanted, GCOLL_UINT32,
							     c->root, c->comm));
}

/* What is in every rank's set. */
static int intersect(
	struct gct_cp_copy *c, const uint64_t *mine, uint64_t *all, struct gci_error *e)
{
	return gct_cp_operation_error(e, gcoll_allreduce(mine, all, gct_cp_set_words(&c->manifest),
						 GCOLL_UINT64, GCOLL_BAND, c->comm));
}

/* Files that all have leave the stream. What this rank lacks is not among them; and to one that has
 * agreed before, nothing is new. */
static int leave_out(
	struct gct_cp_copy *c, const uint64_t *mine, const uint64_t *all, struct gci_error *e)
{
	struct gct_cp_manifest *m = &c->manifest;
	uint32_t i;

	for (i = 0; i < m->nfiles; i++) {
		int is_in = gct_cp_is_in(all, i), had = gct_cp_is_in(mine, i);

		if (is_in > had || (has_agreed(c) && is_in != had))
			return gci_error_set(e, GCOLL_ERR_PROTO,
				"the ranks do not agree on what all of them have");
		m->files[i].is_there = is_in;
	}
	gct_cp_manifest_add_up(m);
	return 0;
}

/* What this rank claims is compared; then what all have whole. `mine` and `all` are what is claimed
 * here, and everywhere. */
static int compare(struct gct_cp_copy *c, enum spread spread, uint64_t *mine, uint64_t *all,
	const struct gct_cp_look *look, struct gci_error *e)
{
	uint32_t i, first = gct_cp_first_missing(&c->manifest, mine);
	int asks = c->writes && !has_agreed(c);
	struct gct_cp_point p;

	/* Behind the first one that is missing, it is of no use what others lack. */
	for (i = first; i < c->manifest.nfiles && asks; i++)
		gct_cp_put(mine, i, gct_cp_is_in(all, i));
	if (asks && gct_cp_verify(&c->sink, c->crcs, c->nwanted, mine, &p, look, e))
		return e->status;
	memset(all, 0, gct_cp_set_words(&c->manifest) * sizeof(*all));
	if ((spread != NO_FILES && intersect(c, mine, all, e)) || leave_out(c, mine, all, e) ||
		!asks)
		return e->status;
	c->had_nbytes = gct_cp_had(&c->manifest, &p);
	if (!gct_cp_sink_resume(&c->sink, &p, e))
		gct_cp_sink_start(&c->sink, e);
	return e->status;
}

/* `mine` and `all` have room for a set each. */
static int resume(struct gct_cp_copy *c, uint64_t *mine, uint64_t *all, struct gci_error *e)
{
	const struct gct_cp_look look = {on_block, c};
	const struct gct_cp_manifest *m = &c->manifest;
	struct claims claims = claim(c, mine);
	enum spread spread;

	if (gct_cp_operation_error(e, gcoll_allreduce(GCOLL_IN_PLACE, &claims, CLAIMS_WORDS,
					      GCOLL_UINT64, GCOLL_MAX, c->comm)))
		return e->status;
	if (claims.nblocks > GCT_CP_MAX_BLOCKS || claims.nblocks > gct_cp_nblocks(m))
		return gci_error_set(e, GCOLL_ERR_PROTO, "somebody has more than there is");
	spread = claims.has_none ? NO_FILES : (enum spread)claims.spread;
	if (spread == WITH_GAPS && intersect(c, mine, all, e))
		return e->status;
	return share_sums(c, claims.nblocks, all, &look, e)
		       ? e->status
		       : compare(c, spread, mine, all, &look, e);
}

int gct_cp_resume(struct gct_cp_copy *c, struct gci_error *e)
{
	size_t nwords = gct_cp_set_words(&c->manifest);
	uint64_t *mine, *all;

	if (!c->o->resume)
		return 0;
	if (!c->begun_ns)
		c->begun_ns = c->shown_ns = gci_now_ns();
	mine = gci_calloc(nwords, sizeof(*mine));
	all = gci_calloc(nwords, sizeof(*all));
	if (mine && all)
		resume(c, mine, all, e);
	else
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(mine);
	gci_free(all);
	return e->status;
}
