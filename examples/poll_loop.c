/* SPDX-License-Identifier: MIT
 * A program with a poll(2) loop of its own: it serves other descriptors while a long vector is
 * summed over all ranks. Here the other descriptor is a pipe that stands for clients.
 *
 *	cc poll_loop.c $(pkg-config --cflags --libs gridcoll) -o poll_loop
 *	gridcoll-run -n 4 ./poll_loop */
#include <gridcoll/gridcoll.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT (1 << 20)

static int running;

/* Called by gcoll_progress. */
static void on_sum(int status, void *ctx)
{
	const double *sum = ctx;

	if (status == GCOLL_OK)
		printf("the sum is %g\n", sum[COUNT - 1]);
	else
		fprintf(stderr, "poll_loop: %s\n", gcoll_last_error());
	running = 0;
}

static void serve(int fd)
{
	char text[64];
	ssize_t n = read(fd, text, sizeof(text));

	if (n > 0)
		printf("a client says %.*s\n", (int)n, text);
}

/* Whole milliseconds for poll, rounded up: too early would be a loop that waits for nothing. */
static int poll_ms(uint64_t ns)
{
	if (ns == GCOLL_NEVER)
		return -1;
	return ns / 1000000 < 60000 ? (int)((ns + 999999) / 1000000) : 60000;
}

static int loop(gcoll_comm *world, int client)
{
	struct pollfd fds[2] = {
		{.fd = gcoll_comm_fd(world), .events = POLLIN}, {.fd = client, .events = POLLIN}};
	int rc = 0;

	while (running && !rc) {
		/* Asked right before the wait, whatever was called since the last one. */
		if (poll(fds, 2, poll_ms(gcoll_comm_timeout_ns(world))) > 0 && fds[1].revents)
			serve(client);
		rc = gcoll_progress(world, 0);
	}
	return rc;
}

int main(void)
{
	double *mine = calloc(COUNT, sizeof(*mine)), *sum = calloc(COUNT, sizeof(*sum));
	gcoll_req *req = NULL;
	gcoll_comm *world;
	int i, rc, clients[2];

	if (!mine || !sum || pipe(clients) || gcoll_init(&world) != GCOLL_OK) {
		fprintf(stderr, "poll_loop: cannot begin: %s\n", gcoll_last_error());
		return 1;
	}
	for (i = 0; i < COUNT; i++)
		mine[i] = gcoll_rank(world);
	running = 1;
	rc = gcoll_iallreduce(mine, sum, COUNT, GCOLL_FLOAT64, GCOLL_SUM, world, &req);
	if (rc == GCOLL_OK)
		rc = gcoll_on_done(&req, on_sum, sum);
	if (rc == GCOLL_OK && write(clients[1], "hello", 5) == 5)
		rc = loop(world, clients[0]);
	if (rc != GCOLL_OK)
		fprintf(stderr, "poll_loop: %s\n", gcoll_last_error());
	gcoll_finalize(world);
	free(mine);
	free(sum);
	return rc != GCOLL_OK;
}
