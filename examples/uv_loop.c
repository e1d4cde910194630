/* SPDX-License-Identifier: MIT
 * A program on libuv: rank 0 sends a file's worth of blocks to all, one after the other, while a
 * timer of the program's ticks. Nothing but the loop makes progress.
 *
 *	cc uv_loop.c $(pkg-config --cflags --libs gridcoll libuv) -o uv_loop
 *	gridcoll-run -n 4 ./uv_loop */
#include <gridcoll/gridcoll.h>
#include <stdio.h>
#include <uv.h>

#define BLOCK_NBYTES (4u << 20)
#define NBLOCKS      8

static char block[BLOCK_NBYTES];
static uv_timer_t timer;
static gcoll_comm *world;
static gcoll_req *bcast; /* prepared once, started for each block */
static int nblocks, failed;

static void fail(void)
{
	fprintf(stderr, "uv_loop: %s\n", gcoll_last_error());
	failed = 1;
	uv_timer_stop(&timer);
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
	printf("rank %d has %d blocks\n", gcoll_rank(world), nblocks);
}

/* Called by the loop. What would wait must not be called here; beginning the next one may be. */
static void on_block(int status, void *ctx)
{
	(void)ctx;
	if (status != GCOLL_OK) {
		fail();
		return;
	}
	if (++nblocks == NBLOCKS) {
		uv_timer_stop(&timer); /* nothing is left: uv_run returns */
		return;
	}
	if (gcoll_rank(world) == 0)
		block[0] = (char)nblocks; /* ... read from the file ... */
	if (gcoll_start(bcast) != GCOLL_OK)
		fail();
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	struct gcoll_options options = {.uv_loop = loop};

	if (gcoll_init_options(&world, &options) != GCOLL_OK) {
		fprintf(stderr, "uv_loop: %s\n", gcoll_last_error());
		return 1;
	}
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 100, 100);
	if (gcoll_bcast_init(block, BLOCK_NBYTES, GCOLL_BYTE, 0, world, &bcast) != GCOLL_OK ||
		gcoll_on_done(&bcast, on_block, NULL) != GCOLL_OK || gcoll_start(bcast) != GCOLL_OK)
		fail();
	uv_run(loop, UV_RUN_DEFAULT);
	if (!failed)
		printf("rank %d is done: %d blocks\n", gcoll_rank(world), nblocks);
	/* Outside of uv_run: it waits for the other ranks in the loop, and takes its handles off.
	 */
	gcoll_finalize(world);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) || failed;
}
