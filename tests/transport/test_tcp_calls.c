/* SPDX-License-Identifier: MIT
 * Every call of the system, of libuv, liburing and OpenSSL that an exchange between two ranks makes
 * fails once, with each error that it may plausibly have: the first one from each place that calls
 * it, and the n-th one, for n = 1, 2, ... A sample of those n, or with GCI_ALL in the environment,
 * most of them. Then the exchange succeeds, or ends with one error that says something; the data of
 * what was received are right, and no descriptor is left. */
#include "tests/failing/failing.h"
#include "tests/transport/tcp_trials.h"
#include "tests/transport/tcp_world.h"

#include "base/clock.h"
#include "transport/records.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the place of an n: */
#define NOTHING   0         /* fails */
#define NEW_PLACE ULONG_MAX /* the first one from a place that had no turn */

enum { RANKS = 2, STREAMS = 2, MESSAGES = 3, LONGEST = 70000 };

/* ---- one exchange */

static struct exchange {
	const struct trial *trial;
	unsigned long nth;
	uint64_t replay_nbytes;
	struct gci_tp *tp[RANKS];
	struct gci_tp_failure failure[RANKS];
	int nfailures[RANKS];
	struct message out[RANKS][MESSAGES], in[RANKS][MESSAGES];
	int refused; /* a rank could not be made */
} x;

static uv_loop_t *callers_loop; /* NULL: each rank has its own */
static const size_t lengths[MESSAGES] = {100, 3000, LONGEST};
static uint8_t from[RANKS][LONGEST], to[RANKS][MESSAGES][LONGEST];

static void fails(const char *what)
{
	failing_at(x.trial->what, 0, 0);
	fail_msg("call %ld (-1: from a new place) of %s with \"%s\", %s replay: %s; "
		 "rank 0 said \"%s\", rank 1 \"%s\"",
		(long)x.nth, failing_name(x.trial->what), strerror(x.trial->error),
		x.replay_nbytes ? "with" : "without", what, x.failure[0].text, x.failure[1].text);
}

static void check(int ok, const char *what)
{
	if (!ok)
		fails(what);
}

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	(void)user;
	(void)peer;
	*out = (struct gci_tp_link){.streams = STREAMS,
		.eager_nbytes = 1000,
		.sockbuf_nbytes = 50000,
		.congestion = "reno",
		.dead_ns = 5 * GCI_NS_PER_S,
		.replay_nbytes = x.replay_nbytes,
		.encrypted = world_encrypted,
		.path = world_path,
		.pace_group = 1};
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	int rank = *(const int *)user;

	x.failure[rank] = *f;
	x.nfailures[rank]++;
}

static int refused(int rc, const struct gci_error *e)
{
	if (!rc)
		return 0;
	check(rc < 0 && rc == e->status && *e->text, "refused without a word");
	x.refused = 1;
	return 1;
}

static int listens(int *fd, struct gci_reach *reach)
{
	const struct gci_ports any = {0};
	struct gci_error e = {0};
	struct gci_address at;
	int rc = gci_address_make(&at, "127.0.0.1", 0);

	if (rc) {
		x.refused = 1;
		return 0;
	}
	return !refused(gci_tcp_listen(&at, 1, &any, 0, fd, reach, &e), &e);
}

/* Both ranks; false: one was refused. */
static int begins(void)
{
	static int ranks[RANKS] = {0, 1};
	struct gci_reach reach[RANKS];
	struct gci_tcp_config tcp = {.reach = reach,
		.secret = SECRET,
		.loop = callers_loop,
		.rekey_records = world_encrypted ? 3 : 0};
	struct gci_pace pace = {.by = GCI_PACED_BY_FQ, .bps = 80000000000};
	int i, fd[RANKS] = {-1, -1};

	for (i = 0; i < RANKS && listens(&fd[i], &reach[i]); i++)
		;
	for (i = 0; i < RANKS; i++) {
		struct gci_tp_config config = {.rank = i,
			.size = RANKS,
			.epoch = 3,
			.user = &ranks[i],
			.link = on_link,
			.on_failure = on_failure};
		struct gci_error e = {0};

		tcp.listen_fd = fd[i];
		if (x.refused && fd[i] >= 0)
			close(fd[i]);
		else if (!x.refused && !refused(gci_tcp_create(&x.tp[i], &config, &tcp, &e), &e))
			gci_tp_pace(x.tp[i], 1, &pace);
	}
	return !x.refused;
}

static void transfer(void)
{
	int i, k;

	memset(to, 0, sizeof(to));
	for (i = 0; i < RANKS; i++)
		for (k = 0; k < MESSAGES; k++) {
			struct gci_tp_key key = {.tag = (uint32_t)k};

			message_init(&x.out[i][k], !i, key, from[i], lengths[k]);
			gci_tp_isend(x.tp[i], &x.out[i][k].r);
			message_init(&x.in[i][k], !i, key, to[i][k], lengths[k]);
			gci_tp_irecv(x.tp[i], &x.in[i][k].r);
		}
}

static int all_done(void)
{
	int i, k;

	for (i = 0; i < RANKS; i++)
		for (k = 0; k < MESSAGES; k++)
			if (!x.out[i][k].ndone || !x.in[i][k].ndone)
				return 0;
	return 1;
}

/* Until all is done. As the launcher does, tells others of a failure. */
static void progress(void)
{
	uint64_t end = gci_now_ns() + 60 * GCI_NS_PER_S; /* only a guard */
	int i, told = 0;

	while (!all_done()) {
		for (i = 0; i < RANKS; i++)
			gci_tp_progress(x.tp[i], i ? 0 : GCI_NS_PER_MS);
		for (i = 0; i < RANKS && !told && x.nfailures[0] + x.nfailures[1]; i++)
			if (!x.nfailures[i])
				gci_tp_fail(x.tp[i], GCOLL_ERR_ABORTED);
		told = x.nfailures[0] + x.nfailures[1];
		check(gci_now_ns() < end, "hangs");
	}
}

/* All that TLS tells of the other side's lack of memory. */
static int is_alert(const struct gci_tp_failure *f)
{
	return f->status == GCOLL_ERR_PROTO && strstr(f->text, "alert internal error");
}

static void judge(void)
{
	struct gci_tp_stats stats;
	int i, k, failed = x.nfailures[0] + x.nfailures[1];
	enum then then = x.trial->then;

	if (then == GOES_ON || (then == REPLAYED && x.replay_nbytes))
		check(!failed && !x.refused, "it should have gone on");
	for (i = 0; i < RANKS && !x.refused; i++) {
		int status = x.failure[i].status;

		check(x.nfailures[i] <= 1, "more than one failure was told");
		check(!x.nfailures[i] || *x.failure[i].text, "failed without a word");
		check(!status || status == GCOLL_ERR_PEER || status == GCOLL_ERR_SYS ||
				status == GCOLL_ERR_NOMEM || is_alert(&x.failure[i]),
			"the failure is of another kind");
		for (k = 0; k < MESSAGES; k++) {
			check(x.out[i][k].ndone == 1 && x.in[i][k].ndone == 1, "done twice");
			check(failed || (!x.out[i][k].status && !x.in[i][k].status),
				"a message failed, but nobody did");
			check(x.in[i][k].status || !memcmp(to[i][k], from[!i], lengths[k]),
				"wrong data");
		}
		gci_tp_stats(x.tp[i], !i, &stats);
	}
}

/* What an idle rank asks, after a while. */
static void idle(void)
{
	uint64_t end = gci_now_ns() + 30 * GCI_NS_PER_MS;

	while (gci_now_ns() < end)
		gci_tp_progress(x.tp[0], 2 * GCI_NS_PER_MS);
}

/* A goodbye from both, one after the other. */
static void part(void)
{
	gci_tp_stop(x.tp[0], 0);
	gci_tp_progress(x.tp[1], GCI_NS_PER_MS);
	gci_tp_stop(x.tp[1], 20 * GCI_NS_PER_MS);
}

/* True if there was an n-th call. */
static int run(const struct trial *t, unsigned long nth, uint64_t replay_nbytes)
{
	int i, happened, before = failing_descriptors();

	if (callers_loop)
		assert_int_equal(uv_loop_init(callers_loop), 0);
	memset(&x, 0, sizeof(x));
	x.trial = t;
	x.nth = nth;
	x.replay_nbytes = replay_nbytes;
	if (nth == NEW_PLACE)
		failing_anew(t->what, t->error);
	else
		failing_at(t->what, nth, t->error);
	if (t->what == FAILING_poll) /* which is only asked when descriptors are short */
		failing_at(FAILING_accept4, 1, EMFILE);
	if (begins()) {
		transfer();
		progress();
		if (t->what == FAILING_ioctl || t->what == FAILING_read ||
			t->what == FAILING_timerfd_settime)
			idle();
		if (!x.nfailures[0] && !x.nfailures[1])
			part();
	}
	judge();
	for (i = 0; i < RANKS; i++)
		gci_tp_free(x.tp[i]);
	if (callers_loop) {
		uv_run(callers_loop, UV_RUN_DEFAULT); /* the last callbacks of what was freed */
		check(!uv_loop_close(callers_loop), "handles are left");
	}
	happened = failing_happened(t->what);
	failing_at(t->what, 0, 0);
	if (t->what == FAILING_poll)
		failing_at(FAILING_accept4, 0, 0);
	check(nth == NOTHING || failing_descriptors() == before, "descriptors are left");
	return happened;
}

/* ---- all of them */

static unsigned long next(unsigned long nth)
{
	if (!getenv("GCI_ALL"))
		return nth + 1 + nth / 2;
	return nth + 1 + nth / 32;
}

/* Without replay and with it, which encrypted links always have. */
static void each(struct trials t)
{
	size_t i, round, first = world_encrypted, never = 0;
	unsigned long nth;

	for (i = 0; i < RANKS; i++)
		fill(from[i], sizeof(from[i]), i);
	run(t.list, NOTHING, first << 20); /* the first one may open what stays */
	for (i = 0; i < t.n; i++)
		for (round = first; round < 2; round++) {
			failing_forget(t.list[i].what);
			while (run(&t.list[i], NEW_PLACE, round << 20))
				;
			for (nth = 2; run(&t.list[i], nth, round << 20); nth = next(nth))
				;
		}
	for (i = 0; i < t.n; i++)
		if (!failing_total(t.list[i].what))
			print_error("ERROR: %s is never called\n", failing_name(t.list[i].what)),
				never++;
	assert_int_equal(never, 0);
}

static void each_call_may_fail(void **state)
{
	(void)state;
	each(common_trials);
}

static void each_of_the_paths_own(void **state)
{
	(void)state;
	if (world_encrypted)
		each(tls_trials);
#ifdef FAILING_HAS_URING
	else if (world_path == GCI_DATA_PATH_URING)
		each(uring_trials);
#endif
	else
		each(polled_trials);
}

static void each_on_a_loop_of_the_callers(void **state)
{
	uv_loop_t loop;

	(void)state;
	callers_loop = &loop;
	each(loop_trials);
	callers_loop = NULL;
}

/* How often each call has failed. */
static void tell(void)
{
	unsigned long all = 0, n;
	int i;

	for (i = 0; i < FAILING_N; i++) {
		n = failing_total((enum failing)i);
		all += n;
		if (n)
			print_message("%s: %lu\n", failing_name((enum failing)i), n);
	}
	print_message("together: %lu\n", all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_on_a_loop_of_the_callers),
		cmocka_unit_test(each_call_may_fail),
		cmocka_unit_test(each_of_the_paths_own),
	};
	int failed;

	choose_path();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tell();
	return failed;
}
