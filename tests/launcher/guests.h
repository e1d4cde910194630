/* SPDX-License-Identifier: MIT
 * Jobs whose ranks others start: gridcoll-run only serves them, or each rank comes by gridcoll-run
 * --join. */
#ifndef TESTS_LAUNCHER_GUESTS_H
#define TESTS_LAUNCHER_GUESTS_H

#include "tests/harness.h"

#define MOST_GUESTS 6

/* A directory with files of two jobs' secrets, and where the service is. */
extern char dir[64], secret[96], other[96], where[128];
extern struct job service, ranks[MOST_GUESTS];

/* Of each test: the directory; and that nothing is left. */
int guests_setup(void **state);
int guests_teardown(void **state);

/* The program that tests' ranks are. */
const char *guest(void);

/* A service comes up, and says where it is. */
void serve_with(const char *const *options);
#define serve(...) serve_with((const char *const[]){__VA_ARGS__, NULL})

/* One rank more, as its manager would start it. */
void start(int i, const char *rank, const char *file, const char *const *rest);
#define start_rank(i, rank, ...) start(i, rank, secret, (const char *const[]){__VA_ARGS__, NULL})
/* On a host, in a cluster. */
void start_in(int i, const char *rank, const char *host, const char *cluster);
/* Ranks 0 to n - 1, the last one first. */
void start_all(int n, const char *mode, const char *arg);

void expect(struct job *j, int status, const char *err);
/* For another one in its place. */
void forget(struct job *j);

/* `where`: a port that was free just now. */
void find_port(void);

#endif
