/* SPDX-License-Identifier: MIT
 * Where the ranks of a comparison meet, beside the libraries: a file that all of them map. They
 * are processes of one machine, with one clock, in one or in several network namespaces.
 *
 *	rc = gcb_meeting_open(&m, dir, rank, size);
 *	start = gcb_meeting_start(&m);		// all ranks are here; sleeps until then
 *	... what is measured ...
 *	gcb_meeting_end(&m);
 *	... a barrier of the library's, so that it sends what it still has to ...
 *	gcb_meeting_wait(&m);			// all ranks have come so far
 *	ns = gcb_meeting_collect(&m, good, &moved);	// rank 0: from start to the last rank's end
 */
#ifndef GCB_MEETING_H
#define GCB_MEETING_H

#include <stdint.h>

#define GCB_MAX_RANKS 1024

struct gcb_meeting_file;

struct gcb_meeting {
	struct gcb_meeting_file *file;
	int rank, size;
	uint64_t turn, start_ns, received;
	int counts; /* the lowest rank in its network namespace: reads the counters */
};

/* All ranks; returns when all are here. Rank 0 makes the file, in a directory that has none yet.
 * 0, or -1 and errno. */
int gcb_meeting_open(struct gcb_meeting *m, const char *dir, int rank, int size);
void gcb_meeting_close(struct gcb_meeting *m);

/* True if all ranks are in one network namespace. */
int gcb_meeting_one_net(const struct gcb_meeting *m);

uint64_t gcb_meeting_start(struct gcb_meeting *m);
void gcb_meeting_end(struct gcb_meeting *m);

/* All ranks; returns when all are here, without the network. */
void gcb_meeting_wait(struct gcb_meeting *m);

/* All ranks. On rank 0: nanoseconds from the start to the last rank's end, 0 when a result was
 * wrong, and what all interfaces together received since. */
uint64_t gcb_meeting_collect(struct gcb_meeting *m, int good, uint64_t *moved);

#endif
