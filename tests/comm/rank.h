/* SPDX-License-Identifier: MIT
 * What programs share that tests run as ranks of real jobs. Such a program's exit status tells;
 * what was wrong goes to standard error.
 *
 *	must(gcoll_init(&world), "init");
 *	must(gcoll_allreduce(&in, &out, 1, GCOLL_INT32, GCOLL_SUM, world), "allreduce");
 *	expect(out == gcoll_size(world), "allreduce: wrong result");
 *	gcoll_finalize(world); */
#ifndef GCI_TESTS_COMM_RANK_H
#define GCI_TESTS_COMM_RANK_H

#include <gridcoll/gridcoll.h>

extern gcoll_comm *world;

/* Exit with 1 unless `rc` is 0, and `ok` is not. `what` was done, or is wrong. */
void must(int rc, const char *what);
void expect(int ok, const char *what);

#endif
