/* SPDX-License-Identifier: MIT
 * iperf3, of as many bytes, by its own word. It sends one small buffer again and again, which the
 * cache helps, and does not look at what it receives. */
#include "bench/peers/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT  "5297"
#define TRIES 50

static pid_t start_server(const struct gcb_pair *p)
{
	pid_t pid = fork();
	int null;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null = open("/dev/null", O_WRONLY);
	dup2(null, 1);
	dup2(null, 2);
	if (p->veth && gcb_veth_join(p->veth))
		_exit(1);
	execlp("iperf3", "iperf3", "-s", "-1", "-p", PORT, "-B", gcb_pair_ip(p, 1), (char *)NULL);
	_exit(127);
}

/* What the client has to say; NULL: it cannot be understood. */
static json_t *run_client(const struct gcb_pair *p)
{
	char command[200];
	json_t *said;
	FILE *f;

	snprintf(command, sizeof(command), "iperf3 -c %s -p " PORT " -n %llu -J 2>/dev/null",
		gcb_pair_ip(p, 1), (unsigned long long)p->nbytes);
	f = popen(command, "re");
	if (!f)
		return NULL;
	said = json_loadf(f, 0, NULL);
	pclose(f);
	return said;
}

static int read_said(json_t *said, struct gcb_pair_result *r, struct gci_error *e)
{
	double seconds = 0, host = 0, remote = 0;

	if (json_unpack(said, "{s:{s:{s:F}, s:{s:F, s:F}}}", "end", "sum_received", "seconds",
		    &seconds, "cpu_utilization_percent", "host_total", &host, "remote_total",
		    &remote) ||
		seconds <= 0)
		return gci_error_set(e, GCOLL_ERR_SYS, "iperf3 did not measure anything");
	r->ns = (uint64_t)(seconds * 1e9);
	r->cpu_ns[0] = (uint64_t)(host / 100 * seconds * 1e9);
	r->cpu_ns[1] = (uint64_t)(remote / 100 * seconds * 1e9);
	return 0;
}

static int alone(struct gcb_pair *p, struct gcb_pair_result *r, struct gci_error *e)
{
	json_t *said = NULL;
	pid_t server;
	int i, rc;

	if (system("command -v iperf3 >/dev/null"))
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "iperf3 is not installed");
	server = start_server(p);
	/* The server says nothing when it is ready: the client tries. */
	for (i = 0; i < TRIES && server > 0; i++) {
		usleep(50000);
		json_decref(said);
		said = run_client(p);
		if (said && !json_object_get(said, "error"))
			break;
	}
	rc = read_said(said, r, e);
	json_decref(said);
	if (server > 0) {
		kill(server, SIGTERM);
		waitpid(server, NULL, 0);
	}
	return rc;
}

const struct gcb_way gcb_iperf_stream = {
	.name = "iperf3", .what = "by its own word, one buffer of 128 KiB", .alone = alone};
