/* SPDX-License-Identifier: MIT
 * The control server in simulated time: no sockets, no processes, no clock.
 *
 *	static void a_test(void **state)		// with rdv_setup and rdv_teardown
 *	{
 *		struct world *w = *state;
 *		rdv_join_all(w);
 *		rdv_end(w, 3, 7, 0);			// rank 3 exits with 7
 *		rdv_pass(w, SEC);
 *		puts(rdv_verdict(w));
 *	} */
#ifndef GCI_TESTS_LAUNCHER_RDV_H
#define GCI_TESTS_LAUNCHER_RDV_H

#include "tests/test.h"

#include "base/mem.h"
#include "launcher/rendezvous.h"

#define NRANKS 8
#define SEC    GCI_NS_PER_S
#define MS     GCI_NS_PER_MS
#define START  (100 * SEC)

/* One end of a simulated connection. */
struct wire {
	struct gci_rdv_conn *conn;
	struct gci_buf got; /* what the launcher sent */
	int closed;
	int beating;
	uint64_t heard; /* messages, as its beats say */
};

struct world {
	struct gci_rdv *rdv;
	struct gci_rdv_config config;
	struct wire ranks[NRANKS];
	uint64_t now;
	int nrenewed[NRANKS]; /* connections, as the launcher was told */
};

/* Delivers what the server has to send. */
void rdv_drain(struct world *w);

int rdv_setup(void **state);
/* A job that survives failures. */
int rdv_setup_surviving(void **state);
int rdv_teardown(void **state);

/* Bytes from a rank, which are freed. */
void rdv_give(struct world *w, struct wire *x, struct gci_buf *bytes);
void rdv_dial(struct world *w, struct wire *x);
void rdv_dial_from(struct world *w, struct wire *x, uint8_t host);
struct gci_ctl_hello rdv_hello_of(struct world *w, uint32_t rank);
void rdv_say_hello(struct world *w, struct wire *x, const struct gci_ctl_hello *m);
void rdv_join(struct world *w, uint32_t rank);
void rdv_join_all(struct world *w);
void rdv_say(struct world *w, uint32_t rank, enum gci_ctl_type type);
void rdv_say_fail(struct world *w, uint32_t by, int32_t rank, const char *text);
void rdv_hang_up(struct world *w, uint32_t rank);
/* A process ends. */
void rdv_end(struct world *w, uint32_t rank, int code, int sig);

/* Lets `ns` pass: deadlines are met, and who beats does so twice a second. */
void rdv_pass(struct world *w, uint64_t ns);
const char *rdv_verdict(struct world *w);

/* Takes messages up to one of `type` off what a rank got; counts those before. -1: none. The
 * second: true if there was one. */
int rdv_next_of(struct wire *x, enum gci_ctl_type type, struct gci_ctl_message *m);

int rdv_gets(struct world *w, uint32_t rank, enum gci_ctl_type type, struct gci_ctl_message *m);

/* ---- of jobs that survive */

void rdv_say_agree(struct world *w, uint32_t rank, uint32_t epoch, uint64_t flags);
void rdv_say_shrink(struct world *w, uint32_t rank, uint32_t epoch);
/* Its connection and its process end. */
void rdv_kill(struct world *w, uint32_t rank);

/* The next message of its kind that a rank got says so. */
void rdv_expect_abort(struct world *w, uint32_t rank, const char *text);
void rdv_expect_agreed(struct world *w, uint32_t rank, uint64_t flags, int status);
void rdv_expect_survivors(
	struct world *w, uint32_t rank, uint32_t epoch, const uint32_t *ranks, uint32_t n);

/* What the launcher has to tell its user since it was last asked. */
void rdv_expect_news(struct world *w, const char *text);

#define T(f) cmocka_unit_test_setup_teardown(f, rdv_setup, rdv_teardown)
#define S(f) cmocka_unit_test_setup_teardown(f, rdv_setup_surviving, rdv_teardown)

#endif
