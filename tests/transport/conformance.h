/* SPDX-License-Identifier: MIT
 * What every transport backend must do: a table of cases, run on a table of backends. */
#ifndef GCI_TESTS_TRANSPORT_CONFORMANCE_H
#define GCI_TESTS_TRANSPORT_CONFORMANCE_H

/* Before cmocka, whose macro is called fail, too. */
#include "transport/transport.h"

#include "tests/test.h"

#define MAX_RANKS 8

struct world;

struct backend {
	const char *name;
	/* Makes w->tp[0 .. size-1] from w->config. 0 or a status, then nothing is left. */
	int (*open)(struct world *w);
	/* What is left after the transports were freed. */
	void (*close)(struct world *w);
	/* A little progress on all ranks that there are. Returns 0 if none can come any more. */
	int (*step)(struct world *w);
};

struct world {
	const struct backend *backend;
	int size;
	struct gci_tp_link link;
	struct gci_tp *tp[MAX_RANKS]; /* NULL: freed */
	struct gci_tp_config config[MAX_RANKS];
	struct gci_tp_failure failure[MAX_RANKS];
	int nfailures[MAX_RANKS];
	int refuse[MAX_RANKS]; /* check() of this rank says no */
	int nchecked[MAX_RANKS];
	void *private;
};

extern int differing_rank;       /* its idea of links is not the others'; -1: none */
extern int differs_in_checksums; /* else in streams */
extern enum gci_data_path world_path;
extern int world_encrypted;          /* all links are */
extern uint64_t world_replay_nbytes; /* of links that do not say */

/* One message under test. */
struct message {
	struct gci_tp_req r;
	int ndone;
	int status;
	uint8_t *times; /* piece(): how often each byte came */
	uint64_t npieces;
};

/* Asserts success. `link` NULL: 1 stream, 64 KiB eager. */
void world_open(struct world *w, const struct backend *b, int size, const struct gci_tp_link *link);
int world_try_open(
	struct world *w, const struct backend *b, int size, const struct gci_tp_link *link);
void world_free_rank(struct world *w, int rank);
void world_close(struct world *w);

/* Steps until cond(arg), with a guard against hanging. */
void world_run(struct world *w, int (*cond)(void *arg), void *arg);

/* Steps until all of msgs[0 .. n-1] are done. */
void world_finish(struct world *w, struct message *msgs, size_t n);

/* Fills in and starts a message. */
void send_to(struct world *w, int rank, struct message *m, int peer, uint32_t tag, void *buf,
	uint64_t nbytes);
void recv_from(struct world *w, int rank, struct message *m, int peer, uint32_t tag, void *buf,
	uint64_t nbytes);
void message_init(struct message *m, int peer, struct gci_tp_key key, void *buf, uint64_t nbytes);

/* A number of steps, whatever they bring. */
void steps(struct world *w, int n);

/* As the `piece` of a message: counts into `times`, copies to `buf`. */
void on_piece(struct gci_tp_req *r, uint64_t offset, const void *data, size_t nbytes);

void *room(size_t n); /* zeros; free() it */
void fill(uint8_t *p, size_t n, uint64_t seed);

/* The backend that is being tested, and the tables of cases. */
extern const struct backend *conformance_backend;
extern const struct CMUnitTest conformance_data[], conformance_progress[], conformance_failures[];
extern const size_t conformance_data_n, conformance_progress_n, conformance_failures_n;

/* Runs all cases, then the backend's own. */
int conformance_main(const struct backend *b, const struct CMUnitTest *more, size_t nmore);

#endif
