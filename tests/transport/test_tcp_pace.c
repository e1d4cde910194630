/* SPDX-License-Identifier: MIT
 * How paced connections begin: what the transport hands to their sockets, send by send. */
#include "tests/transport/tcp_world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define STREAMS      4
#define LONG_NBYTES  (4u << 20) /* several frames for each stream */
#define FRAME_NBYTES 200000     /* a part for each, and nothing is left to wake it for */
#define SHORT_NBYTES 4000
#define LEAST_NBYTES 200  /* credits and acknowledgements are shorter */
#define FIRST_NBYTES 1000 /* the first piece's most, encrypted */

/* The first sends, but for those short ones. */
static struct sent {
	int fd;
	size_t nbytes;
} sent[64];
static unsigned nsent;

ssize_t __real_send(int fd, const void *data, size_t nbytes, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t nbytes, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

static void note(int fd, size_t nbytes)
{
	if (nbytes > LEAST_NBYTES && nsent < sizeof(sent) / sizeof(*sent))
		sent[nsent++] = (struct sent){fd, nbytes};
}

ssize_t __wrap_send(int fd, const void *data, size_t nbytes, int flags)
{
	note(fd, nbytes);
	return __real_send(fd, data, nbytes, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	size_t i, nbytes = 0;

	for (i = 0; i < m->msg_iovlen; i++)
		nbytes += m->msg_iov[i].iov_len;
	note(fd, nbytes);
	return __real_sendmsg(fd, m, flags);
}

/* A message from rank 0, that is waited for already, by connections that have been idle. */
static void transfer(unsigned streams, enum gci_paced_by by, size_t nbytes)
{
	static uint8_t from[LONG_NBYTES], to[LONG_NBYTES];
	struct gci_tp_link link = {.streams = streams, .eager_nbytes = 1000, .pace_group = 1};
	struct gci_pace pace = {.by = by, .bps = 8000000000};
	struct message m[2];
	struct world w;

	fill(from, nbytes, nbytes);
	memset(to, 0, nbytes);
	world_open(&w, &own, 2, &link);
	exchange(&w);
	gci_tp_pace(w.tp[0], 1, &pace);
	recv_from(&w, 1, &m[1], 0, 2, to, nbytes);
	steps(&w, 20);
	nsent = 0;
	send_to(&w, 0, &m[0], 1, 2, from, nbytes);
	world_finish(&w, m, 2);
	assert_int_equal(m[1].status, 0);
	assert_memory_equal(from, to, nbytes);
	world_close(&w);
}

static int is_seen(void)
{
	const char *path = getenv("GCI_TEST_PATH");

	return !path || strcmp(path, "uring") != 0; /* which does not call sendmsg */
}

/* Each with hardly anything, before one of them sends more. */
static void all_begin_with_little(void **state)
{
	unsigned i, k;

	(void)state;
	transfer(STREAMS, GCI_PACED_BY_TCP, LONG_NBYTES);
	if (!is_seen())
		return;
	assert_true(nsent > 2 * STREAMS);
	for (i = 0; i < STREAMS; i++) {
		assert_true(sent[i].nbytes <= FIRST_NBYTES);
		for (k = 0; k < i; k++)
			assert_int_not_equal(sent[i].fd, sent[k].fd);
	}
	for (i = STREAMS; i < 2 * STREAMS; i++)
		assert_true(sent[i].nbytes > FIRST_NBYTES);
}

static void the_rest_follows_by_itself(void **state)
{
	(void)state;
	transfer(STREAMS, GCI_PACED_BY_TCP, FRAME_NBYTES);
	assert_true(!is_seen() || sent[0].nbytes <= FIRST_NBYTES);
}

static void one_alone_begins_with_little(void **state)
{
	(void)state;
	transfer(1, GCI_PACED_BY_FQ, LONG_NBYTES);
	if (!is_seen())
		return;
	assert_true(nsent > 1);
	assert_true(sent[0].nbytes <= FIRST_NBYTES);
	assert_true(sent[1].nbytes > FIRST_NBYTES);
}

/* What is one packet anyway goes as one, and so does all that TCP does not pace. */
static void others_begin_at_once(void **state)
{
	(void)state;
	transfer(1, GCI_PACED_BY_FQ, SHORT_NBYTES);
	assert_true(!is_seen() || sent[0].nbytes > SHORT_NBYTES);
	transfer(1, GCI_PACED_BY_CLASS, LONG_NBYTES);
	assert_true(!is_seen() || sent[0].nbytes > FIRST_NBYTES);
	transfer(1, GCI_PACED_BY_NOBODY, LONG_NBYTES);
	assert_true(!is_seen() || sent[0].nbytes > FIRST_NBYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_begin_with_little),
		cmocka_unit_test(the_rest_follows_by_itself),
		cmocka_unit_test(one_alone_begins_with_little),
		cmocka_unit_test(others_begin_at_once),
	};

	choose_path();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
