/* SPDX-License-Identifier: MIT
 * A rank of a job that calls operations until it fails, and then writes when that was, and why, to
 * the file LOG. Rank 1 may do something to itself in mid-operation, and writes when.
 *
 *	detect_job LOG [kill|stop] */
#include "tests/comm/rank.h"

#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COUNT  (1u << 18)
#define ROUNDS 10 /* before anything happens */

static uint32_t in[COUNT], out[COUNT];

/* One line, whole: others write, too. */
static void note(const char *log, const char *who, const char *text)
{
	char line[1024];
	int fd = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
	int n = snprintf(line, sizeof(line), "%s %" PRIu64 " %s\n", who, gci_now_ns(), text);

	expect(fd >= 0 && write(fd, line, (size_t)n) == n, "log");
	close(fd);
}

static int run(const char *log, int sig)
{
	gcoll_req *req;
	int round, done, rc = 0;

	for (round = 0; !rc; round++) {
		rc = gcoll_iallreduce(in, out, COUNT, GCOLL_UINT32, GCOLL_SUM, world, &req);
		if (!rc && sig && round == ROUNDS && gcoll_rank(world) == 1) {
			gcoll_test(&req, &done);
			note(log, "event", "");
			raise(sig);
		}
		if (!rc)
			rc = gcoll_wait(&req);
		if (!rc && round == ROUNDS && !gcoll_rank(world)) {
			printf("ready\n");
			fflush(stdout);
		}
	}
	return rc;
}

int main(int argc, char **argv)
{
	char who[16];

	expect(argc >= 2, "usage");
	must(gcoll_init(&world), "init");
	run(argv[1], argc < 3 ? 0 : !strcmp(argv[2], "kill") ? SIGKILL : SIGSTOP);
	snprintf(who, sizeof(who), "%d", gcoll_rank(world));
	note(argv[1], who, gcoll_last_error());
	return 1;
}
