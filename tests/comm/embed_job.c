/* SPDX-License-Identifier: MIT
 * A rank of a real job whose program owns its loop, or leaves all to the progress thread. Run by
 * gridcoll-run as `embed_job FORM WHAT...`; the exit status tells.
 * FORM is poll, loop or thread; WHAT, one after the other, is
 *	work	two operations at once, then a prepared one again and again
 *	idle	all wait for the last rank, which is late; nobody may spin
 *	vanish	rank 1 exits in mid-job
 *	never	the last rank never comes: the others have a time-out
 *	busy	the program is busy for longer than that, while all that it waits for comes
 *	leave	rank 1 leaves while others receive from it
 *	turns	threads of the program take turns, and end
 *	wait	calls that wait, in the program's loop or beside the thread
 *	many	several threads of the program at once, with a progress thread
 *	spin	again what "wait" does, looking for a while before sleeping
 *	cancel	last: all leave with a request under way */
#include "base/clock.h"
#include "comm/comm.h"
#include "comm/progress.h"
#include "tests/comm/rank.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define COUNT      (100 * 1000 + 7)
#define AGAIN      20
#define LATE_NS    (300 * GCI_NS_PER_MS)
#define MAX_ROUNDS 200 /* while a rank is late: one that spins has thousands */

/* Bytes. ThreadSanitizer looks at each of them. */
#ifdef __SANITIZE_THREAD__
#define BIG (1u << 20)
#else
#define BIG (8u << 20)
#endif

static uv_loop_t loop;
static uint8_t big[BIG];
static uint32_t in[COUNT], out[COUNT], value;
static enum { POLL, LOOP, THREAD } form;
static uint64_t rounds;

/* ---- each form's way to wait for a number of callbacks */

static int ncalled; /* by whatever thread */

static int called(void)
{
	return __atomic_load_n(&ncalled, __ATOMIC_ACQUIRE);
}

static void count_call(void)
{
	__atomic_add_fetch(&ncalled, 1, __ATOMIC_RELEASE);
}

static int poll_ms(uint64_t ns)
{
	return ns == GCOLL_NEVER ? -1 : (int)((ns + 999999) / 1000000);
}

static void poll_until(int n)
{
	struct pollfd p = {.fd = gcoll_comm_fd(world), .events = POLLIN};

	expect(p.fd >= 0, "descriptor");
	while (called() < n) {
		rounds++;
		poll(&p, 1, poll_ms(gcoll_comm_timeout_ns(world)));
		gcoll_progress(world, 0);
	}
}

static void on_prepare(uv_prepare_t *h)
{
	(void)h;
	rounds++;
}

/* The loop ends by itself when nothing is under way any more. */
static void loop_until(int n)
{
	uv_prepare_t prepare;

	uv_prepare_init(&loop, &prepare);
	uv_prepare_start(&prepare, on_prepare);
	uv_unref((uv_handle_t *)&prepare);
	uv_run(&loop, UV_RUN_DEFAULT);
	expect(called() == n, "the loop ends when all is done");
	uv_close((uv_handle_t *)&prepare, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
}

/* Computes: no call of the library. */
static void thread_until(int n)
{
	volatile uint32_t x = 1;

	while (called() < n) {
		x = x * 1664525 + 1013904223;
		if (!(x >> 26))
			usleep(1000); /* the machine may have few processors */
	}
}

static void wait_for(int n)
{
	if (form == POLL)
		poll_until(n);
	else if (form == LOOP)
		loop_until(n);
	else
		thread_until(n);
}

/* ---- what is done */

static char name_of_bcast[] = "bcast", name_of_allreduce[] = "allreduce",
	    name_of_barrier[] = "barrier";

static void on_done(int status, void *ctx)
{
	must(status, ctx);
	count_call();
}

static gcoll_req *again;

static void on_again(int status, void *ctx)
{
	uint32_t *left = ctx;

	must(status, "allreduce again");
	expect(value == (uint32_t)gcoll_size(world), "allreduce again");
	value = 1;
	if (--*left)
		must(gcoll_start(again), "start from a callback");
	else
		count_call();
}

static void prepared(void)
{
	uint32_t left = AGAIN;

	value = 1;
	must(gcoll_allreduce_init(
		     GCOLL_IN_PLACE, &value, 1, GCOLL_UINT32, GCOLL_SUM, world, &again),
		"init");
	must(gcoll_on_done(&again, on_again, &left), "on_done");
	expect(again != NULL, "a prepared request stays");
	must(gcoll_start(again), "start");
	wait_for(3);
	expect(gcoll_req_free(&again) == 0 && !again, "free");
}

static int work(void)
{
	uint32_t i, bad = 0, n = (uint32_t)gcoll_size(world), me = (uint32_t)gcoll_rank(world);
	gcoll_req *req;

	for (i = 0; i < BIG; i++)
		big[i] = me ? 0 : (uint8_t)(i * 31 >> 3);
	for (i = 0; i < COUNT; i++)
		in[i] = i + me;
	must(gcoll_ibcast(big, BIG, GCOLL_BYTE, 0, world, &req), "ibcast");
	must(gcoll_on_done(&req, on_done, name_of_bcast), "on_done");
	expect(!req, "the request is handed over");
	must(gcoll_iallreduce(in, out, COUNT, GCOLL_UINT32, GCOLL_SUM, world, &req), "iallreduce");
	must(gcoll_on_done(&req, on_done, name_of_allreduce), "on_done");
	wait_for(2);
	for (i = 0; i < BIG; i++)
		bad |= big[i] ^ (uint8_t)(i * 31 >> 3);
	for (i = 0; i < COUNT; i++)
		bad |= out[i] ^ (n * i + n * (n - 1) / 2);
	expect(!bad, "data");
	prepared();
	return 0;
}

static uint64_t rounds_of_thread(void)
{
	uint64_t n;

	gci_enter(world->engine);
	n = world->engine->callers.thread->rounds;
	gci_leave(world->engine);
	return n;
}

static int idle(void)
{
	int late = gcoll_rank(world) == gcoll_size(world) - 1;
	uint64_t before = form == THREAD ? rounds_of_thread() : 0;
	gcoll_req *req;

	if (late)
		gci_sleep_ns(LATE_NS);
	must(gcoll_ibarrier(world, &req), "ibarrier");
	must(gcoll_on_done(&req, on_done, name_of_barrier), "on_done");
	wait_for(1);
	if (form == THREAD)
		rounds = rounds_of_thread() - before;
	if (rounds > MAX_ROUNDS)
		fprintf(stderr, "rank %d: %llu rounds\n", gcoll_rank(world),
			(unsigned long long)rounds);
	expect(rounds <= MAX_ROUNDS, "idle");
	return 0;
}

static void on_failed(int status, void *ctx)
{
	int *result = ctx;

	*result = status;
	printf("%s: %s\n", gcoll_strerror(status), gcoll_last_error());
	count_call();
}

static int vanish(void)
{
	int result = 0;
	gcoll_req *req;

	if (gcoll_rank(world) == 1) { /* when the others have begun */
		must(gcoll_recv(&value, 1, GCOLL_UINT32, 0, 3, world), "recv");
		must(gcoll_recv(&value, 1, GCOLL_UINT32, 2, 3, world), "recv");
		_exit(7);
	}
	must(gcoll_iallreduce(in, out, COUNT, GCOLL_UINT32, GCOLL_SUM, world, &req), "iallreduce");
	must(gcoll_on_done(&req, on_failed, &result), "on_done");
	must(gcoll_isend(&value, 1, GCOLL_UINT32, 1, 3, world, &req), "isend");
	wait_for(1);
	return result ? 1 : 0;
}

static int never(void)
{
	int result = 0;
	gcoll_req *req;

	must(gcoll_comm_set(world, "timeout", "300ms"), "timeout");
	if (gcoll_rank(world) == gcoll_size(world) - 1) {
		while (!gcoll_progress(world, 0))
			gci_sleep_ns(10 * GCI_NS_PER_MS);
		return 1;
	}
	must(gcoll_ibarrier(world, &req), "ibarrier");
	must(gcoll_on_done(&req, on_failed, &result), "on_done");
	wait_for(1);
	return result ? 1 : 0;
}

/* ---- time that the program takes is no time without answers */

#define BUSY_NS (400 * GCI_NS_PER_MS)

static gcoll_req *watched;

static void on_async(uv_async_t *a)
{
	int done = 1;

	must(gcoll_test(&watched, &done), "test"); /* may be called from anywhere */
	if (done)
		count_call();
	else
		must(gcoll_on_done(&watched, on_done, name_of_barrier), "on_done");
	expect(gcoll_barrier(world) == GCOLL_ERR_INVAL, "the loop is not run from within");
	expect(strstr(gcoll_last_error(), "loop") != NULL, "the reason");
	expect(gcoll_progress(world, 0) == GCOLL_ERR_INVAL, "nor by gcoll_progress");
	gci_sleep_ns(BUSY_NS);
	uv_close((uv_handle_t *)a, NULL);
}

static void begin_to_be_busy(uv_async_t *a)
{
	struct pollfd p = {.fd = form == POLL ? gcoll_comm_fd(world) : -1, .events = POLLIN};

	if (form == LOOP) { /* from within the loop's wait */
		uv_async_init(&loop, a, on_async);
		uv_async_send(a);
		return;
	}
	while (!gcoll_comm_timeout_ns(world))
		gcoll_progress(world, 0);
	gci_sleep_ns(BUSY_NS);
	expect(poll(&p, 1, 60000) == 1, "it comes meanwhile");
}

static int busy(void)
{
	uv_async_t async;

	must(gcoll_barrier(world), "barrier"); /* connections are open */
	if (gcoll_rank(world))
		gci_sleep_ns(BUSY_NS / 4);
	else if (form != THREAD) /* whose waiting counts, however late the others are */
		must(gcoll_comm_set(world, "timeout", "200ms"), "timeout");
	must(gcoll_ibarrier(world, &watched), "ibarrier");
	if (gcoll_rank(world) || form != LOOP)
		must(gcoll_on_done(&watched, on_done, name_of_barrier), "on_done");
	if (!gcoll_rank(world) && form != THREAD)
		begin_to_be_busy(&async);
	wait_for(1);
	must(gcoll_comm_set(world, "timeout", "never"), "timeout");
	return 0;
}

static int leave(void)
{
	int result = 0;
	gcoll_req *req;

	if (gcoll_rank(world) == 1)
		return 1;
	must(gcoll_irecv(&value, 1, GCOLL_UINT32, 1, 3, world, &req), "irecv");
	must(gcoll_on_done(&req, on_failed, &result), "on_done");
	wait_for(1);
	return result ? 1 : 0;
}

static int cancelled;

static void on_cancelled(int status, void *ctx)
{
	gcoll_req *req;

	(void)ctx;
	expect(status == GCOLL_ERR_ABORTED, "cancelled");
	expect(strstr(gcoll_last_error(), "cancelled") != NULL, "the reason");
	expect(gcoll_ibarrier(world, &req) == GCOLL_ERR_ABORTED, "nothing begins any more");
	cancelled++;
}

static int cancel(void)
{
	int to = (gcoll_rank(world) + 1) % gcoll_size(world);
	gcoll_req *req;

	must(gcoll_irecv(&value, 1, GCOLL_UINT32, to, 3, world, &req), "irecv");
	must(gcoll_on_done(&req, on_cancelled, NULL), "on_done");
	return 0;
}

/* ---- several threads of the program */

#define NTHREADS 3

static gcoll_comm *own[NTHREADS];

static void *use(void *arg)
{
	gcoll_comm *c = *(gcoll_comm **)arg;
	uint32_t n = (uint32_t)gcoll_size(c), me = (uint32_t)gcoll_rank(c), x, y, i;
	gcoll_req *req[2];
	int done = 0;

	for (i = 0; i < AGAIN; i++) {
		x = me + i;
		must(gcoll_allreduce(&x, &y, 1, GCOLL_UINT32, GCOLL_SUM, c), "allreduce");
		expect(y == n * i + n * (n - 1) / 2, "allreduce");
		must(gcoll_ibcast(&x, 1, GCOLL_UINT32, (int)(i % n), c, &req[0]), "ibcast");
		must(gcoll_isend(&me, 1, GCOLL_UINT32, (int)((me + 1) % n), 5, c, &req[1]),
			"isend");
		must(gcoll_recv(&y, 1, GCOLL_UINT32, (int)((me + n - 1) % n), 5, c), "recv");
		expect(y == (me + n - 1) % n, "recv");
		for (done = 0; !done;) {
			must(gcoll_test(&req[0], &done), "test");
			usleep(done ? 0 : 100);
		}
		must(gcoll_wait(&req[1]), "wait");
		expect(x == i % n + i, "bcast");
	}
	return NULL;
}

static int many(void)
{
	pthread_t threads[NTHREADS];
	int i;

	for (i = 0; i < NTHREADS; i++)
		must(gcoll_comm_dup(world, &own[i]), "dup");
	for (i = 0; i < NTHREADS; i++)
		expect(!pthread_create(&threads[i], NULL, use, &own[i]), "thread");
	for (i = 0; i < NTHREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static void *one_turn(void *arg)
{
	(void)arg;
	must(gcoll_barrier(world), "barrier");
	must(gcoll_allreduce(in, out, COUNT, GCOLL_UINT32, GCOLL_SUM, world), "allreduce");
	return NULL;
}

static int turns(void)
{
	pthread_t t;
	int i;

	for (i = 0; i < 3; i++) {
		expect(!pthread_create(&t, NULL, one_turn, NULL), "thread");
		pthread_join(t, NULL);
	}
	one_turn(NULL);
	return 0;
}

/* Blocking calls, and what is refused. */
static int waiting(void)
{
	uint32_t n = (uint32_t)gcoll_size(world), x = (uint32_t)gcoll_rank(world), y = 0;
	gcoll_comm *c;

	if (form == POLL) {
		expect(gcoll_comm_fd(world) == gcoll_comm_fd(world), "always the same");
	} else {
		expect(gcoll_comm_fd(world) == GCOLL_ERR_INVAL, "no descriptor");
		expect(gcoll_comm_timeout_ns(world) == GCOLL_NEVER, "no time");
	}
	must(gcoll_comm_dup(world, &c), "dup");
	must(gcoll_allreduce(&x, &y, 1, GCOLL_UINT32, GCOLL_SUM, c), "allreduce");
	expect(y == n * (n - 1) / 2, "allreduce");
	must(gcoll_progress(c, 0), "progress");
	must(gcoll_comm_free(&c), "free");
	return 0;
}

static int spin(void)
{
	must(gcoll_comm_set(world, "spin", "100us"), "spin");
	waiting();
	work();
	must(gcoll_comm_set(world, "spin", "off"), "spin");
	return 0;
}

static int run(const char *what)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} table[] = {{"work", work}, {"idle", idle}, {"vanish", vanish}, {"never", never},
		{"busy", busy}, {"leave", leave}, {"cancel", cancel}, {"many", many},
		{"turns", turns}, {"wait", waiting}, {"spin", spin}};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, what))
			return table[i].run();
	return 2;
}

int main(int argc, char **argv)
{
	struct gcoll_options options = {.progress_thread = 1, .uv_loop = &loop};
	int rc, i;

	if (argc < 3)
		return 2;
	form = !strcmp(argv[1], "poll") ? POLL : !strcmp(argv[1], "loop") ? LOOP : THREAD;
	expect(gcoll_init_options(&world, &options) == GCOLL_ERR_INVAL, "one of both");
	options.progress_thread = form == THREAD;
	options.uv_loop = form == LOOP ? &loop : NULL;
	uv_loop_init(&loop);
	must(gcoll_init_options(&world, &options), "init");
	for (i = 2, rc = 0; i < argc && !rc; i++) {
		ncalled = 0;
		rc = run(argv[i]);
	}
	gcoll_finalize(world);
	expect(cancelled == !strcmp(argv[argc - 1], "cancel"), "cancelled once");
	expect(uv_loop_close(&loop) == 0, "nothing of ours is left in the loop");
	return rc;
}
