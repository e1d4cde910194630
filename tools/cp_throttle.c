/* SPDX-License-Identifier: MIT
 * --bwlimit: how much of the stream may leave the source. What goes to receivers and over links follows
 * from it, since each byte of the stream goes to each of them once. */
#include "base/clock.h"
#include "base/units.h"
#include "tools/cp.h"

#include <string.h>

#define STEP_NBYTES (64u << 10)
#define PER_SECOND  8 /* chunks, at least: a limited stream is not to come in bursts */

/* Under way: most of a second's. What all have is known when that many more were sent. */
#define LEAST_CHUNKS (PER_SECOND * 3 / 4)

int gct_cp_parse_limit(const char *s, uint64_t *rate)
{
	uint64_t v;

	if (!gci_parse_rate(s, &v))
		v /= 8;
	else if (!s[strspn(s, "0123456789.")] || gci_parse_bytes(s, &v))
		return -1; /* a bare number is kilobytes here, kilobits there: not said */
	if (!v)
		return -1;
	*rate = v;
	return 0;
}

size_t gct_cp_chunk_nbytes(uint64_t rate)
{
	uint64_t n = rate / PER_SECOND / STEP_NBYTES * STEP_NBYTES;

	if (!rate || n > GCT_CP_CHUNK_NBYTES)
		return GCT_CP_CHUNK_NBYTES;
	return n ? (size_t)n : STEP_NBYTES;
}

int gct_cp_chunks(uint64_t rate)
{
	uint64_t n = rate / PER_SECOND / gct_cp_chunk_nbytes(rate);

	if (!rate || n > GCT_CP_CHUNKS / LEAST_CHUNKS)
		return GCT_CP_CHUNKS;
	return n ? (int)n * LEAST_CHUNKS : LEAST_CHUNKS;
}

/* What n bytes take. */
static uint64_t duration_ns(const struct gct_cp_throttle *t, uint64_t nbytes)
{
	unsigned __int128 ns = (unsigned __int128)nbytes * GCI_NS_PER_S / t->rate;

	return ns > INT64_MAX / 2 ? INT64_MAX / 2 : (uint64_t)ns;
}

uint64_t gct_cp_throttle_wait(struct gct_cp_throttle *t, uint64_t nbytes, uint64_t now_ns)
{
	uint64_t due_ns;

	if (!t->rate)
		return 0;
	if (!t->from_ns)
		t->from_ns = now_ns;
	due_ns = t->from_ns + duration_ns(t, nbytes);
	return due_ns > now_ns ? due_ns - now_ns : 0;
}

void gct_cp_throttle_sent(struct gct_cp_throttle *t, uint64_t nbytes, uint64_t now_ns)
{
	uint64_t ns, least;

	if (!t->rate)
		return;
	/* Who was late may make up for one chunk, not for a pause. */
	ns = duration_ns(t, nbytes);
	least = now_ns > ns ? now_ns - ns : 0;
	t->from_ns = t->from_ns + ns > least ? t->from_ns + ns : least;
}
