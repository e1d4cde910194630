/* SPDX-License-Identifier: MIT
 * What may go wrong with each call that an exchange over TCP makes. */
#ifndef GCI_TESTS_TRANSPORT_TCP_TRIALS_H
#define GCI_TESTS_TRANSPORT_TCP_TRIALS_H

#include "tests/failing/failing.h"

#include <stddef.h>

/* What must become of the exchange. */
enum then {
	GOES_ON,  /* it succeeds */
	REPLAYED, /* it succeeds where the loss of a stream is survived */
	MAY_END,  /* it may end, with an error */
};

struct trial {
	enum failing what;
	int error;
	enum then then;
};

struct trials {
	const struct trial *list;
	size_t n;
};

/* Of every data path; of connections that are polled; of encrypted ones; of io_uring;
 * and on a loop that is the caller's. */
extern const struct trials common_trials, polled_trials, tls_trials, uring_trials, loop_trials;

#endif
