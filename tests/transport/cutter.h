/* SPDX-License-Identifier: MIT
 * A proxy between the ranks of a test that cuts connections or spoils what they carry, in the
 * test's own thread.
 *
 *	struct cutter c = {.prng.state = 1, .cut_every = 1 << 20};
 *	cutter_open(&c, size, addrs);	// addrs[i]: where rank i listens; then where it seems to
 *	while (...)
 *		own_step(&w), cutter_step(&c);
 *	cutter_close(&c);
 *
 * A cut ends a connection at any byte. Either side sees a reset or an end of file, at once or some
 * time after the other. A fault hits one byte of one connection: the n-th that was made. */
#ifndef GCI_TESTS_TRANSPORT_CUTTER_H
#define GCI_TESTS_TRANSPORT_CUTTER_H

#include "tests/transport/tcp_world.h"

#include "base/prng.h"

#define CUTTER_PIPES 64
#define CUTTER_ROOM  (64u << 10)

enum cutter_what { CUTTER_NOTHING, CUTTER_RESET, CUTTER_FLIP };

struct cutter_fault {
	enum cutter_what what;
	unsigned number; /* of the connection, from 0 */
	int side;        /* bytes from this one: 0, who connected; 1, who listens */
	uint64_t at;     /* a reset comes in place of it */
	uint8_t mask;    /* the bits that are flipped */
};

struct cutter_pipe {
	unsigned number;    /* connections before this one */
	uint64_t passed[2]; /* bytes that have come from fd[i] */
	int fd[2];          /* to who connected, to who listens; -1: closed */
	uint8_t *held[2];   /* bytes from fd[i] that fd[1 - i] has not taken */
	size_t lo[2], hi[2];
	int lingers[2]; /* steps until this side is closed, too; 0: it is in use */
	int spoils;     /* 1 + the side whose first bytes are changed; 0: neither */
};

struct cutter {
	struct gci_prng prng;
	uint64_t cut_every; /* bytes between two cuts, on the average; 0: never */
	unsigned most_cuts;
	size_t slice; /* most bytes at once; 0: CUTTER_ROOM */
	struct cutter_fault fault;
	int struck; /* the fault has happened */
	unsigned npipes;
	unsigned nspoilt; /* so many connections from now on have a wrong byte early on */
	int size;
	int listen_fd[MAX_RANKS];
	char behind[MAX_RANKS][GCI_ADDRESS_TEXT];
	struct cutter_pipe pipes[CUTTER_PIPES];
	unsigned ncuts;
	uint64_t next_cut, moved;
};

void cutter_open(struct cutter *c, int size, char addrs[][GCI_ADDRESS_TEXT]);
void cutter_step(struct cutter *c);
void cutter_cut_all(struct cutter *c);

/* The sides that linger after a cut are closed at once: a rank may lose a connection while nothing steps
 * the cutter. */
void cutter_end_cuts(struct cutter *c);

/* Nobody listens there any more. */
void cutter_deafen(struct cutter *c, int rank);
void cutter_close(struct cutter *c);

#endif
