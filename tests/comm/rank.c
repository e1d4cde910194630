/* SPDX-License-Identifier: MIT */
#include "tests/comm/rank.h"

#include <stdio.h>
#include <stdlib.h>

gcoll_comm *world;

void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", gcoll_rank(world), what, gcoll_last_error());
	exit(1);
}

void expect(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rank %d: not as expected: %s\n", gcoll_rank(world), what);
	exit(1);
}
