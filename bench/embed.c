/* SPDX-License-Identifier: MIT
 * What each way to make progress costs and brings, in microseconds, medians of rank 0:
 *	wait	a blocking allreduce of 8 bytes
 *	call	the same by a callback: begun, then waited for as the form does
 *	move	an allreduce of 4 MiB, by a callback
 *	both	the same, while the program computes for about as long (`compute`) without calling
 * `hidden` is how much of the shorter of the two the other one hides. Where computing and moving
 * share processors, none can be.
 *
 *	gridcoll-run -n 2 --quiet-prefix bench_embed calls|spin|poll|loop|thread|thread-spin */
#include "base/clock.h"
#include "comm/comm.h"

#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define COUNT  (1u << 20) /* floats */
#define SMALL  400
#define LARGE  15
#define UNIT   10000 /* of computing */
#define WARMUP 3

static gcoll_comm *world;
static uv_loop_t loop;
static const char *form;
static float *vector;
static int over;
static sem_t done;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "bench_embed: %s\n", gcoll_last_error());
	exit(1);
}

static void on_done(int status, void *ctx)
{
	(void)ctx;
	must(status);
	over = 1;
	sem_post(&done);
}

static void await_callback(void)
{
	struct pollfd p = {.events = POLLIN};
	uint64_t ns;

	if (!strcmp(form, "loop")) {
		uv_run(&loop, UV_RUN_DEFAULT);
	} else if (!strcmp(form, "poll")) {
		p.fd = gcoll_comm_fd(world);
		while (!over) {
			ns = gcoll_comm_timeout_ns(world);
			poll(&p, 1, ns == GCOLL_NEVER ? -1 : (int)((ns + 999999) / 1000000));
			must(gcoll_progress(world, 0));
		}
	} else if (!strncmp(form, "thread", 6)) {
		sem_wait(&done);
		return;
	} else {
		while (!over)
			must(gcoll_progress(world, GCOLL_NEVER));
	}
	sem_wait(&done);
}

static void begin(uint64_t count)
{
	gcoll_req *req;

	over = 0;
	must(gcoll_iallreduce(
		GCOLL_IN_PLACE, vector, count, GCOLL_FLOAT32, GCOLL_MAX, world, &req));
	must(gcoll_on_done(&req, on_done, NULL));
}

static void compute(uint64_t units)
{
	volatile double x = 1;
	uint64_t i;

	for (i = 0; i < units * UNIT; i++)
		x = x * 0.999 + 1;
}

/* ---- what is measured: `units` is how much is computed */

static void by_wait(uint64_t units)
{
	(void)units;
	must(gcoll_allreduce(GCOLL_IN_PLACE, vector, 2, GCOLL_FLOAT32, GCOLL_MAX, world));
}

static void by_call(uint64_t units)
{
	(void)units;
	begin(2);
	await_callback();
}

static void by_both(uint64_t units)
{
	begin(COUNT);
	compute(units);
	await_callback();
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median_us(void (*what)(uint64_t units), uint64_t units, int n)
{
	uint64_t ns[SMALL];
	int i;

	for (i = -WARMUP; i < n; i++) {
		uint64_t start;

		must(gcoll_barrier(world));
		start = gci_now_ns();
		what(units);
		if (i >= 0)
			ns[i] = gci_now_ns() - start;
	}
	qsort(ns, (size_t)n, sizeof(*ns), compare);
	return (double)ns[n / 2] / 1000;
}

/* The same number on all ranks. */
static uint64_t units_for(double us)
{
	uint64_t start, ns, least = UINT64_MAX, units;
	int i;

	for (i = 0; i < 20; i++) {
		start = gci_now_ns();
		compute(20);
		ns = gci_now_ns() - start;
		least = ns < least ? ns : least;
	}
	units = (uint64_t)(us * 1000 * 20 / (double)least);
	must(gcoll_bcast(&units, 1, GCOLL_UINT64, 0, world));
	return units ? units : 1;
}

static void report(void)
{
	double wait = median_us(by_wait, 0, SMALL), call = median_us(by_call, 0, SMALL);
	double move = median_us(by_both, 0, LARGE), both, computed;
	uint64_t units = units_for(move);

	both = median_us(by_both, units, LARGE);
	computed = median_us(compute, units, LARGE);
	if (gcoll_rank(world) == 0)
		printf("%-12s wait %7.1f  call %7.1f  move %8.0f  compute %8.0f  both %8.0f  "
		       "hidden %3.0f %%\n",
			form, wait, call, move, computed, both,
			100 * (move + computed - both) / (move < computed ? move : computed));
}

int main(int argc, char **argv)
{
	struct gcoll_options options = {.progress_thread = 0};

	form = argc == 2 ? argv[1] : "";
	options.progress_thread = !strncmp(form, "thread", 6);
	if (!strcmp(form, "loop"))
		options.uv_loop = &loop;
	vector = calloc(COUNT, sizeof(*vector));
	uv_loop_init(&loop);
	sem_init(&done, 0, 0);
	if (!vector || gcoll_init_options(&world, &options)) {
		fprintf(stderr, "bench_embed: %s\n", gcoll_last_error());
		return 1;
	}
	if (strstr(form, "spin"))
		must(gcoll_comm_set(world, "spin", "100us"));
	report();
	gcoll_finalize(world);
	free(vector);
	return uv_loop_close(&loop) != 0;
}
