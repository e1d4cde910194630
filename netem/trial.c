/* SPDX-License-Identifier: MIT */
#include "netem/trial.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "netem/netns.h"
#include "netem/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NHOSTS  4
#define NCHAINS 2 /* one there, one back */
#define BLOCK   262144
#define PORT    7000
#define WARM_NS (300 * GCI_NS_PER_MS)
#define RUN_NS  (700 * GCI_NS_PER_MS)

/* A fifth stays idle; and a job's hops, with frames, sums of every piece and acknowledgements of their
 * own, take a quarter longer than these (a bcast of 32 MiB by eight hosts, against the trial). */
#define SHARE_PERCENT 65

static const char grid_text[] = "[cluster a]\nhosts = a[1-2]\nnic = 100Gbit\n"
				"[cluster b]\nhosts = b[1-2]\nnic = 100Gbit\n"
				"[link a b]\ndelay = 100us\n";
static const char *const netns[NHOSTS] = {"gcl-a1", "gcl-a2", "gcl-b1", "gcl-b2"};
static const char *const addr[NHOSTS] = {"10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"};

/* One host of a chain: takes blocks, sums them, and passes them on. */
struct hop {
	int in, out; /* -1: the chain begins, ends here */
	_Atomic uint64_t nbytes;
	pthread_t thread;
	int has_thread;
};

static void *run_hop(void *arg)
{
	struct hop *h = arg;
	uint8_t *block = gci_calloc(1, BLOCK);
	ssize_t n = BLOCK, k, sent;
	uint32_t sum = 0;

	while (block && n > 0) {
		n = h->in < 0 ? BLOCK : recv(h->in, block, BLOCK, 0);
		if (n <= 0)
			break;
		sum = gci_crc32c(sum, block, (size_t)n);
		for (k = 0; h->out >= 0 && k < n; k += sent) {
			sent = send(h->out, block + k, (size_t)(n - k), MSG_NOSIGNAL);
			if (sent <= 0)
				goto out;
		}
		if (h->in >= 0)
			atomic_fetch_add(&h->nbytes, (uint64_t)n);
	}
out:
	gci_free(block);
	return NULL;
}

static int open_in(const char *name, struct gci_error *e)
{
	int fd = -1, home = gci_netns_open(NULL, e);

	if (home < 0)
		return -1;
	if (!gci_netns_enter(name, e)) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			gci_error_errno(e, "cannot make a socket");
	}
	gci_netns_leave(home);
	return fd;
}

/* A connection from one host to another: out of *out, into *in. */
static int connect_hosts(int from, int to, int port, int *out, int *in, struct gci_error *e)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int listener = open_in(netns[to], e);

	inet_pton(AF_INET, addr[to], &a.sin_addr);
	*out = open_in(netns[from], e);
	if (listener >= 0 && *out >= 0 && !bind(listener, (struct sockaddr *)&a, sizeof(a)) &&
		!listen(listener, 1) && !connect(*out, (struct sockaddr *)&a, sizeof(a)))
		*in = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (*in < 0)
		gci_error_errno(e, "cannot connect two hosts of a lab");
	if (listener >= 0)
		close(listener);
	return e->status;
}

static int connect_chains(struct hop hops[NCHAINS][NHOSTS], struct gci_error *e)
{
	int c, i, rc = 0;

	for (c = 0; c < NCHAINS; c++)
		for (i = 0; i < NHOSTS; i++)
			hops[c][i].in = hops[c][i].out = -1;
	for (c = 0; c < NCHAINS; c++)
		for (i = 0; !rc && i + 1 < NHOSTS; i++)
			rc = connect_hosts(c ? NHOSTS - 1 - i : i, c ? NHOSTS - 2 - i : i + 1,
				PORT + c, &hops[c][i].out, &hops[c][i + 1].in, e);
	return rc;
}

static uint64_t passed(struct hop hops[NCHAINS][NHOSTS])
{
	uint64_t n = 0;
	int c, i;

	for (c = 0; c < NCHAINS; c++)
		for (i = 0; i < NHOSTS; i++)
			n += atomic_load(&hops[c][i].nbytes);
	return n;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / GCI_NS_PER_S), (long)(ns % GCI_NS_PER_S)};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Bits per second, of all hops together. */
static uint64_t measure(struct hop hops[NCHAINS][NHOSTS])
{
	uint64_t begin, nbytes, ns;

	sleep_ns(WARM_NS);
	begin = gci_now_ns();
	nbytes = passed(hops);
	sleep_ns(RUN_NS);
	nbytes = passed(hops) - nbytes;
	ns = gci_now_ns() - begin;
	return (uint64_t)((double)nbytes * 8e9 / (double)ns);
}

static int run_chains(uint64_t *bps, struct gci_error *e)
{
	static struct hop hops[NCHAINS][NHOSTS];
	int c, i, rc = connect_chains(hops, e);

	for (c = 0; c < NCHAINS; c++)
		for (i = 0; !rc && i < NHOSTS; i++) {
			struct hop *h = &hops[c][i];

			h->has_thread = !pthread_create(&h->thread, NULL, run_hop, h);
			if (!h->has_thread)
				rc = gci_error_set(e, GCOLL_ERR_SYS, "cannot start a thread");
		}
	if (!rc)
		*bps = measure(hops);
	for (c = 0; c < NCHAINS; c++)
		for (i = 0; i < NHOSTS; i++) {
			shutdown(hops[c][i].in, SHUT_RDWR);
			shutdown(hops[c][i].out, SHUT_RDWR);
		}
	for (c = 0; c < NCHAINS; c++)
		for (i = 0; i < NHOSTS; i++)
			if (hops[c][i].has_thread)
				pthread_join(hops[c][i].thread, NULL);
	return rc;
}

struct result {
	struct gci_trial_result found;
	struct gci_error e;
};

static void try_it(struct result *r)
{
	struct gci_emulator_gauge gauge;
	struct gci_grid g;
	struct gci_tap *t = NULL;

	if (!gci_grid_parse(&g, grid_text, strlen(grid_text), "trial", &r->e))
		t = gci_tap_up(&g, 1, &r->e);
	if (t && !run_chains(&r->found.bps, &r->e) && !r->found.bps)
		gci_error_set(&r->e, GCOLL_ERR_SYS, "nothing passed in a lab for a trial");
	if (!t)
		return;
	gci_tap_end(t, &gauge);
	r->found.late_ns = gauge.late_p99_ns;
}

/* In a child, since who brings up a lab stays in its namespace of mounts. */
int gci_trial_run(struct gci_trial_result *out, struct gci_error *e)
{
	struct result r = {0};
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe(ends))
		return gci_error_errno(e, "cannot make a pipe");
	pid = fork();
	if (!pid) {
		try_it(&r);
		n = write(ends[1], &r, sizeof(r));
		_exit(n != sizeof(r));
	}
	close(ends[1]);
	n = read(ends[0], &r, sizeof(r));
	close(ends[0]);
	if (pid < 0)
		return gci_error_errno(e, "cannot start a process");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != sizeof(r))
		return gci_error_set(e, GCOLL_ERR_SYS, "the trial of a lab ended early");
	*out = r.found;
	out->bps = r.found.bps / 100 * SHARE_PERCENT;
	return r.e.status ? gci_error_set(e, r.e.status, "%s", r.e.text) : 0;
}
