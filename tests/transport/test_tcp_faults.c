/* SPDX-License-Identifier: MIT
 * Two ranks through a proxy that does one thing wrong: resets the connection before some byte, or
 * flips a bit of it, for each byte of the greeting and of what follows; or passes on a byte at a
 * time. Messages come whole, or their operation fails; wherever lost frames are sent again, nothing
 * fails for what happens behind the greeting.
 *
 * Without GCI_ALL=1, a sample of the bytes. */
#include "tests/transport/cutter.h"

#include "transport/frame.h"

#include <stdlib.h>
#include <string.h>

#define SHORT 100
#define LONG  20000
#define NMSGS 4

static struct cutter cutter;
static struct backend proxied;
static const struct cutter_fault *running;
static uint64_t ntrials, nfailed, nrepaired;

static void through_cutter(int size, char addrs[][GCI_ADDRESS_TEXT])
{
	cutter_open(&cutter, size, addrs);
}

/* Nobody waits: all that moves is moved from here. */
static int step(struct world *w)
{
	int i;

	for (i = 0; i < w->size; i++)
		gci_tp_progress(w->tp[i], 0);
	cutter_step(&cutter);
	return 1;
}

struct trial {
	struct world w;
	struct message sent[NMSGS], got[NMSGS];
	uint8_t from[NMSGS][LONG], to[NMSGS][LONG];
};

static struct trial t;

static size_t size_of(int i)
{
	return i < 2 ? SHORT : LONG;
}

static void begin(int i)
{
	int a = i % 2;

	fill(t.from[i], LONG, (uint64_t)i);
	memset(t.to[i], 0, LONG);
	recv_from(&t.w, 1 - a, &t.got[i], a, (uint32_t)i, t.to[i], size_of(i));
	send_to(&t.w, a, &t.sent[i], 1 - a, (uint32_t)i, t.from[i], size_of(i));
}

static int is_over(void *arg)
{
	int i, all = 1;

	(void)arg;
	for (i = 0; i < NMSGS; i++)
		all &= t.got[i].ndone && t.sent[i].ndone;
	return all || t.w.nfailures[0] || t.w.nfailures[1];
}

/* 0, or the failure of whoever noticed something. */
static int run(uint64_t replay_nbytes, size_t slice, const struct cutter_fault *fault)
{
	struct gci_tp_link link = {.streams = 1,
		.eager_nbytes = 4096,
		.replay_nbytes = replay_nbytes,
		.dead_ns = 500000000};
	int i, failed = 0;

	memset(&cutter, 0, sizeof(cutter));
	cutter.prng.state = 5;
	cutter.slice = slice;
	if (fault)
		cutter.fault = *fault;
	proxied = own;
	proxied.step = step;
	reroute = through_cutter;
	stranger_ns = 300000000;
	world_open(&t.w, &proxied, 2, &link);
	reroute = NULL;
	for (i = 0; i < NMSGS; i++)
		begin(i);
	world_run(&t.w, is_over, NULL);
	for (i = 0; i < NMSGS; i++)
		if (t.got[i].ndone && !t.got[i].status)
			assert_memory_equal(t.from[i], t.to[i], size_of(i));
	for (i = 0; i < 2 && !failed; i++)
		failed = t.w.nfailures[i] ? t.w.failure[i].status : 0;
	world_close(&t.w);
	cutter_close(&cutter);
	return failed;
}

static void tell_fault(const struct cutter_fault *f, const char *status)
{
	print_message("%s at byte %llu of connection %u from side %d: %s%s\n",
		f->what == CUTTER_RESET ? "reset" : "flip", (unsigned long long)f->at, f->number,
		f->side, status, t.w.failure[t.w.nfailures[0] ? 0 : 1].text);
}

static int is_one_of(int status, const int *list)
{
	while (*list && *list != status)
		list++;
	return *list != 0;
}

static void try_fault(uint64_t replay_nbytes, const struct cutter_fault *f, uint64_t greeting)
{
	/* Of a peer that is not what it should be, or not there any more, or bytes that are not. */
	static const int proper[] = {GCOLL_ERR_PEER, GCOLL_ERR_PROTO, GCOLL_ERR_CORRUPT, 0};
	int status;

	running = f;
	status = run(replay_nbytes, 0, f);
	assert_true(cutter.struck);
	ntrials++;
	nfailed += status != 0;
	if ((status && !is_one_of(status, proper)) ||
		(status && replay_nbytes && f->at >= greeting)) {
		tell_fault(f, "");
		fail_msg("that fault");
	}
	nrepaired += !status && f->at >= greeting;
	if (!replay_nbytes && f->at >= greeting)
		assert_int_not_equal(status, 0);
	running = NULL;
}

/* All bytes up to the end of the first frames that carry something, then some of the rest. */
static uint64_t next(uint64_t at, uint64_t head, uint64_t end, int all)
{
	uint64_t step = at < head ? (all ? 1 : 23) : end / (all ? 200 : 4);

	return at + step;
}

static void every_byte(uint64_t replay_nbytes, enum cutter_what what)
{
	int all = getenv("GCI_ALL") != NULL, side;
	uint64_t greeting[2], end[2], at, head;

	assert_int_equal(run(replay_nbytes, 0, NULL), 0);
	for (side = 0; side < 2; side++)
		end[side] = cutter.pipes[0].passed[side];
	for (side = 0; side < 2; side++) {
		greeting[side] = world_encrypted ? end[side] - LONG - SHORT : GCI_HELLO_NBYTES;
		head = world_encrypted ? greeting[side] : GCI_HELLO_NBYTES + 5 * 76 + SHORT;
		/* The last bytes are goodbyes, which nobody waits for here. */
		for (at = side; at + 400 < end[side]; at = next(at, head, end[side], all)) {
			static struct cutter_fault f;

			f = (struct cutter_fault){.what = what,
				.side = side,
				.at = at,
				.mask = what == CUTTER_FLIP ? (uint8_t)(1 << (at * 5 + 3) % 8) : 0};

			try_fault(replay_nbytes, &f, greeting[side]);
		}
	}
}

/* With replay and without it, but encrypted links always have it. */
static void on_each_link(enum cutter_what what)
{
	every_byte(1 << 20, what);
	if (!world_encrypted)
		every_byte(0, what);
}

static void resets(void **state)
{
	(void)state;
	on_each_link(CUTTER_RESET);
}

static void flipped_bits(void **state)
{
	(void)state;
	on_each_link(CUTTER_FLIP);
}

static void a_byte_at_a_time(void **state)
{
	(void)state;
	assert_int_equal(run(0, 1, NULL), 0);
	assert_int_equal(run(1 << 20, 1, NULL), 0);
	assert_int_equal(run(1 << 20, 7, NULL), 0);
}

/* Also when it hangs. */
static int after(void **state)
{
	(void)state;
	if (running)
		tell_fault(running, "the last one");
	running = NULL;
	return 0;
}

static int tell(void **state)
{
	(void)state;
	print_message("%llu faults: %llu failures, %llu repaired behind the greeting\n",
		(unsigned long long)ntrials, (unsigned long long)nfailed,
		(unsigned long long)nrepaired);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(resets, after),
		cmocka_unit_test_teardown(flipped_bits, after),
		cmocka_unit_test(a_byte_at_a_time),
	};

	choose_path();
	return cmocka_run_group_tests(tests, NULL, tell);
}
