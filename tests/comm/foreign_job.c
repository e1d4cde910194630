/* SPDX-License-Identifier: MIT
 * A rank of a real job in which somebody calls who must not: a child by fork, or a second thread.
 * Run by gridcoll-run as `foreign_job FORM WHAT`; the exit status tells.
 * FORM is calls, loop or thread: who makes progress. WHAT is
 *	fork	children by fork, of which one outlives the rank's time in the job
 *	late	the rank itself does, and a child with it, for longer than silence is death
 *	threads	a second thread of the program calls, without a progress thread
 *	abort	a second thread ends what the first one waits in */
#include "comm/comm.h"
#include "tests/comm/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define COUNT 100003
#define FDS   1024

static enum { CALLS, LOOP, THREAD } form;
static uv_loop_t loop;
static uint32_t data[COUNT];
static char were_open[FDS];

/* Of a process that was forked from one with several threads, the sanitizer sees neither the stacks of
 * those threads nor what stands there. */
static int is_child;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}

static int is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void look_what_is_open(void)
{
	int fd;

	for (fd = 0; fd < FDS; fd++)
		were_open[fd] = (char)is_open(fd);
}

/* What is executed inherits nothing of ours. */
static void expect_to_close_on_exec(void)
{
	int fd, flags, n = 0;

	for (fd = 0; fd < FDS; fd++) {
		flags = were_open[fd] ? -1 : fcntl(fd, F_GETFD);
		expect(flags < 0 || flags & FD_CLOEXEC, "close on exec");
		n += flags >= 0;
	}
	expect(n > 3, "descriptors of a world");
}

static void move_data(void)
{
	uint32_t i, bad = 0, n = (uint32_t)gcoll_size(world);

	for (i = 0; i < COUNT; i++)
		data[i] = gcoll_rank(world) ? 0 : i;
	must(gcoll_bcast(data, COUNT, GCOLL_UINT32, 0, world), "bcast");
	must(gcoll_allreduce(GCOLL_IN_PLACE, data, COUNT, GCOLL_UINT32, GCOLL_SUM, world),
		"allreduce");
	for (i = 0; i < COUNT; i++)
		bad |= data[i] ^ n * i;
	expect(!bad, "data");
	must(gcoll_barrier(world), "barrier");
}

/* ---- children by fork */

static void forked(int status, const char *what)
{
	expect(status == GCOLL_ERR_FORKED, what);
	expect(strstr(gcoll_last_error(), "child by fork") != NULL, "the reason");
}

static void on_done(int status, void *ctx)
{
	(void)ctx;
	(void)status;
}

/* All that there is. */
static void call_as_a_child(gcoll_comm *dup, gcoll_req *req)
{
	gcoll_comm *c = world;
	uint64_t flags = 1;
	gcoll_req *other;
	int done;

	expect(gcoll_init(&c) == GCOLL_ERR_FORKED, "init");
	forked(gcoll_barrier(world), "barrier");
	forked(gcoll_ibcast(data, COUNT, GCOLL_UINT32, 0, world, &other), "ibcast");
	forked(gcoll_allgather_init(data, data, 1, GCOLL_UINT32, dup, &other), "allgather_init");
	forked(gcoll_alltoallv(data, NULL, NULL, data, NULL, NULL, GCOLL_UINT32, world),
		"alltoallv");
	forked(gcoll_send(data, 1, GCOLL_UINT32, 0, 1, world), "send");
	forked(gcoll_recv(data, 1, GCOLL_UINT32, 0, 1, dup), "recv");
	forked(gcoll_start(req), "start");
	forked(gcoll_wait(&req), "wait");
	forked(gcoll_test(&req, &done), "test");
	forked(gcoll_on_done(&req, on_done, NULL), "on_done");
	forked(gcoll_req_free(&req), "req_free");
	forked(gcoll_comm_set(world, "order", "any"), "set");
	forked(gcoll_comm_dup(world, &c), "dup");
	forked(gcoll_comm_split(world, 0, 0, &c), "split");
	forked(gcoll_comm_free(&dup), "comm_free");
	forked(gcoll_comm_agree(world, &flags), "agree");
	forked(gcoll_comm_shrink(world, &c), "shrink");
	forked(gcoll_progress(world, 0), "progress");
	forked(gcoll_comm_fd(world), "fd");
	expect(gcoll_comm_timeout_ns(world) == GCOLL_NEVER, "timeout_ns");
	gcoll_comm_abort(world, "by a child");
	expect(req && dup && flags == 1, "nothing was done");
	gcoll_finalize(world);
	gcoll_finalize(world);
	/* What does not need the others. */
	expect(gcoll_rank(world) >= 0 && gcoll_size(world) > 1, "rank and size");
	expect(gcoll_host(world, 0)[0] != '\0', "host");
}

static void await_child(pid_t pid)
{
	int status = 1;

	expect(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "child");
}

static pid_t begin_child(gcoll_comm *dup, gcoll_req *req)
{
	pid_t pid = fork(), grandchild;

	if (pid)
		return pid;
	is_child = 1;
	call_as_a_child(dup, req);
	if (form == LOOP) { /* callbacks of ours in it do nothing */
		expect(!uv_loop_fork(&loop), "uv_loop_fork");
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	grandchild = fork();
	if (!grandchild) {
		call_as_a_child(dup, req);
		exit(0);
	}
	await_child(grandchild);
	exit(0); /* with all that is done at exit */
}

/* It has all descriptors of the rank's, until the rank has ended. */
static void begin_lasting_child(void)
{
	int ends[2];
	char c;

	expect(!pipe(ends), "pipe");
	if (fork()) {
		close(ends[0]); /* the other end stays open until we exit */
		return;
	}
	close(0);
	close(1);
	close(2);
	close(ends[1]);
	while (read(ends[0], &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* The launcher must not take it for dead: it has left. */
static int stays(void)
{
	move_data();
	begin_lasting_child();
	gcoll_finalize(world);
	sleep(6);
	return 0;
}

static int forks(void)
{
	int me = gcoll_rank(world), n = gcoll_size(world), i;
	uint32_t got = 0;
	gcoll_comm *dup;
	gcoll_req *req;

	move_data();
	expect_to_close_on_exec();
	must(gcoll_comm_dup(world, &dup), "dup");
	must(gcoll_irecv(&got, 1, GCOLL_UINT32, (me + 1) % n, 3, world, &req), "irecv");
	begin_lasting_child();
	for (i = 0; i < 3; i++) {
		await_child(begin_child(dup, req));
		move_data();
	}
	must(gcoll_send(&(uint32_t){(uint32_t)me}, 1, GCOLL_UINT32, (me + n - 1) % n, 3, world),
		"send");
	must(gcoll_wait(&req), "wait");
	expect(got == (uint32_t)((me + 1) % n), "recv");
	return 0;
}

/* ---- threads */

static void expect_refusal(int status, const char *why)
{
	expect(status == GCOLL_ERR_INVAL, "refused");
	expect(strstr(gcoll_last_error(), why) && strstr(gcoll_last_error(), "progress thread"),
		"the reason");
}

static void await_call(void)
{
	while (!__atomic_load_n(&world->engine->callers.caller, __ATOMIC_ACQUIRE))
		usleep(100);
}

/* While the other thread waits for rank 1, which waits for the signal. */
static void *call_beside(void *arg)
{
	static const char why[] = "another thread is in a call";
	uint64_t flags = 1;
	gcoll_req *req;
	gcoll_comm *c;

	await_call();
	expect_refusal(gcoll_barrier(world), why);
	expect_refusal(gcoll_ibcast(data, COUNT, GCOLL_UINT32, 0, world, &req), why);
	expect_refusal(gcoll_comm_set(world, "order", "any"), why);
	expect_refusal(gcoll_comm_dup(world, &c), why);
	expect_refusal(gcoll_comm_agree(world, &flags), why);
	expect_refusal(gcoll_comm_fd(world), why);
	expect_refusal(gcoll_progress(world, 0), why);
	expect(!kill(*(pid_t *)arg, SIGUSR1), "kill");
	return NULL;
}

static void wait_beside(void)
{
	int pid[2] = {(int)getpid(), 0}, sig = 0, me = gcoll_rank(world);
	sigset_t usr1;
	pthread_t t;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	must(gcoll_bcast(pid, 1, GCOLL_INT32, 1, world), "bcast");
	if (me == 1) {
		expect(!sigwait(&usr1, &sig), "sigwait");
		must(gcoll_send(&pid[1], 1, GCOLL_INT32, 0, 7, world), "send");
	} else if (!me) {
		expect(!pthread_create(&t, NULL, call_beside, pid), "thread");
		must(gcoll_recv(&pid[1], 1, GCOLL_INT32, 1, 7, world), "recv");
		pthread_join(t, NULL);
	}
}

static uv_async_t hold;
static uv_sem_t is_held, may_go;

/* Here the loop is between two looks at the network, for as long as it takes. */
static void on_hold(uv_async_t *a)
{
	uv_sem_post(&is_held);
	uv_sem_wait(&may_go);
	uv_close((uv_handle_t *)a, NULL);
}

static void *call_beside_loop(void *arg)
{
	static const char why[] = "another thread runs the program's loop";
	gcoll_req *req;
	int rc;

	(void)arg;
	do
		rc = gcoll_comm_set(world, "order", "any");
	while (!rc);
	expect_refusal(rc, "another thread");
	uv_async_send(&hold);
	uv_sem_wait(&is_held);
	expect_refusal(gcoll_barrier(world), why);
	expect_refusal(gcoll_ibarrier(world, &req), why);
	gcoll_finalize(world); /* which says so, and does nothing */
	uv_sem_post(&may_go);
	return NULL;
}

static int threads(void)
{
	pthread_t t;

	move_data();
	if (form == LOOP) {
		uv_async_init(&loop, &hold, on_hold);
		expect(!uv_sem_init(&is_held, 0) && !uv_sem_init(&may_go, 0), "semaphores");
		expect(!pthread_create(&t, NULL, call_beside_loop, NULL), "thread");
		uv_run(&loop, UV_RUN_DEFAULT);
		pthread_join(t, NULL);
	} else {
		wait_beside();
	}
	move_data();
	return 0;
}

static void *abort_beside(void *arg)
{
	(void)arg;
	await_call();
	gcoll_comm_abort(world, "enough of that");
	return NULL;
}

static int aborts(void)
{
	pthread_t t;
	int rc;

	move_data();
	if (!gcoll_rank(world))
		expect(!pthread_create(&t, NULL, abort_beside, NULL), "thread");
	rc = gcoll_recv(
		data, 1, GCOLL_UINT32, (gcoll_rank(world) + 1) % gcoll_size(world), 1, world);
	if (!gcoll_rank(world))
		pthread_join(t, NULL);
	expect(rc == GCOLL_ERR_ABORTED && strstr(gcoll_last_error(), "enough of that"), "aborted");
	printf("aborted\n");
	return 1;
}

int main(int argc, char **argv)
{
	struct gcoll_options options = {0};
	int rc;

	if (argc != 3)
		return 2;
	form = !strcmp(argv[1], "calls") ? CALLS : !strcmp(argv[1], "loop") ? LOOP : THREAD;
	options.progress_thread = form == THREAD;
	options.uv_loop = form == LOOP ? &loop : NULL;
	uv_loop_init(&loop);
	look_what_is_open();
	must(gcoll_init_options(&world, &options), "init");
	if (!strcmp(argv[2], "late"))
		return stays();
	rc = !strcmp(argv[2], "fork")      ? forks()
	     : !strcmp(argv[2], "threads") ? threads()
					   : aborts();
	gcoll_finalize(world);
	return rc;
}
