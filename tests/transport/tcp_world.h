/* SPDX-License-Identifier: MIT
 * The TCP backend under test, and what its own tests share. */
#ifndef GCI_TESTS_TRANSPORT_TCP_WORLD_H
#define GCI_TESTS_TRANSPORT_TCP_WORLD_H

#include "tests/transport/conformance.h"

#include "transport/address.h"
#include "transport/frame.h"
#include "transport/tcp.h"

#include <sys/types.h>

#define SECRET "0123456789"

/* Each rank with a loop of its own; all ranks on one. */
extern const struct backend own, on_shared_loop;

int own_step(struct world *w);

/* $GCI_TEST_PATH: poll, uring (77 is the test's exit status where it is not to be had) or refused:
 * uring is asked for, but a seccomp filter like a container's forbids it; or tls: all links are
 * encrypted. */
void choose_path(void);

/* What a test wants to be different when it opens a world. */
extern const char *listen_ip;
extern const char *secret_of_rank_1;
extern int opens_nothing;
extern uint64_t stranger_ns;
extern const uint32_t *behind; /* of each rank, as in struct gci_tcp_config */
extern void (*reroute)(int size, char addrs[][GCI_ADDRESS_TEXT]); /* may change where ranks seem to
								   * listen */

/* Where the ranks of the last world listen. */
extern char last_addrs[MAX_RANKS][GCI_ADDRESS_TEXT];

/* At any port of `ip`; `addr` tells which. And what others are told of it. */
void listen_on(const char *ip, int *fd, char addr[GCI_ADDRESS_TEXT]);
struct gci_reach reach_of(const char *addr);

/* Connects to a listener as anyone could; from an address of ours. */
int knock(const char *addr);
int knock_from(const char *ip, const char *addr);

/* What a rank of that world says to a higher one, on its first stream. */
struct gci_hello hello_of(const struct world *w, uint32_t from, uint32_t to);

/* A message each way between ranks 0 and 1. */
void exchange(struct world *w);

/* The cases of tcp_strangers.c. */
extern const struct CMUnitTest stranger_tests[], caller_tests[];
extern const size_t stranger_tests_n, caller_tests_n;

/* Rank 1, a process of its own, is killed while it sends to or receives from two others, who are
 * to find out. With the link that is given, or the usual one. */
enum killed { KILLED_SENDING, KILLED_RECEIVING };
void a_rank_is_killed(enum killed when, const struct gci_tp_link *link);

/* One rank whose peer's address is the test's choice; NULL: refused. */
struct gci_tp *lonely(struct world *w, const char *peer_addr, uint64_t connect_ns);

#endif
