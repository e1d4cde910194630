/* SPDX-License-Identifier: MIT
 * The smallest program: rank 0 greets all others.
 *
 *	cc hello_bcast.c $(pkg-config --cflags --libs gridcoll) -o hello_bcast
 *	gridcoll-run -n 4 ./hello_bcast */
#include <gridcoll/gridcoll.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	char text[64] = "";
	gcoll_comm *world;
	int rc = gcoll_init(&world);

	if (rc != GCOLL_OK) {
		fprintf(stderr, "hello_bcast: %s\n", gcoll_last_error());
		return 1;
	}
	if (gcoll_rank(world) == 0)
		snprintf(text, sizeof(text), "hello from %s", gcoll_host(world, 0));
	rc = gcoll_bcast(text, sizeof(text), GCOLL_BYTE, 0, world);
	if (rc == GCOLL_OK)
		printf("rank %d of %d on %s: %s\n", gcoll_rank(world), gcoll_size(world),
			gcoll_host(world, gcoll_rank(world)), text);
	else
		fprintf(stderr, "hello_bcast: %s\n", gcoll_last_error());
	gcoll_finalize(world);
	return rc != GCOLL_OK;
}
