/* SPDX-License-Identifier: MIT
 * For lab tests: several processes send all they can, and what leaves the device is measured.
 *
 *	lab_rates take PORT				takes and drops what comes, for ever
 *	lab_rates send ADDR PORT FLOWS TIME DEV RATE
 *	lab_rates hold DEV CLASS RATE NETWORK		shapes until it is ended, says "holds"
 *
 * `send` prints mean / RATE and the windows of 1 s and 100 ms that are farthest from RATE, in
 * wire bytes: "mean 0.998 second 0.991 1.002 tenth 0.951 1.031". */
#include "base/clock.h"
#include "base/units.h"
#include "shaping/edt.h"
#include "shaping/qdisc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_FLOWS  64
#define MOST_TENTHS 1200
#define TENTH_NS    100000000

static char chunk[262144];

static int take(const char *port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	struct pollfd p[1 + MOST_FLOWS];
	int n = 1, i, on = 1;

	p[0] = (struct pollfd){socket(AF_INET, SOCK_STREAM, 0), POLLIN, 0};
	setsockopt(p[0].fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(p[0].fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(p[0].fd, MOST_FLOWS))
		return 1;
	while (poll(p, (nfds_t)n, -1) > 0) {
		if (p[0].revents && n <= MOST_FLOWS)
			p[n++] = (struct pollfd){accept(p[0].fd, NULL, NULL), POLLIN, 0};
		for (i = n - 1; i > 0; i--)
			if (p[i].revents && recv(p[i].fd, chunk, sizeof(chunk), 0) <= 0) {
				close(p[i].fd);
				p[i] = p[--n];
			}
	}
	return 1;
}

static void send_for_ever(const char *addr, const char *port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int fd, tries;

	inet_pton(AF_INET, addr, &sin.sin_addr);
	for (tries = 0; tries < 100; tries++) { /* the taker may not listen yet */
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, (struct sockaddr *)&sin, sizeof(sin)))
			break;
		close(fd);
		usleep(50000);
	}
	while (send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
		;
	_exit(1);
}

struct sample {
	uint64_t ns, nbytes;
};

static struct sample look(const char *dev)
{
	struct gci_qdisc q[GCI_QDISCS];
	struct sample s = {gci_now_ns(), 0};
	int n = gci_qdisc_list((int)if_nametoindex(dev), q, NULL), i;

	for (i = 0; i < n; i++)
		if (!strcmp(q[i].kind, "fq"))
			s.nbytes += q[i].nbytes;
	return s;
}

/* Sent in a window, as a part of what the rate allows in it. */
static double part(const struct sample *a, const struct sample *b, double bps)
{
	return (double)(b->nbytes - a->nbytes) * 8e9 / ((double)(b->ns - a->ns) * bps);
}

static void print_extremes(const char *name, const struct sample *s, int n, int width, double bps)
{
	double least = 1e9, most = 0, p;
	int i;

	for (i = 0; i + width <= n; i++) {
		p = part(&s[i], &s[i + width], bps);
		least = p < least ? p : least;
		most = p > most ? p : most;
	}
	printf(" %s %.3f %.3f", name, least, most);
}

static int measure(char **argv)
{
	static struct sample s[MOST_TENTHS + 1];
	int flows = atoi(argv[4]), n, i;
	pid_t pids[MOST_FLOWS];
	uint64_t bps, time_ns;

	if (flows < 1 || flows > MOST_FLOWS || gci_parse_time(argv[5], &time_ns) ||
		time_ns < TENTH_NS || time_ns / TENTH_NS > MOST_TENTHS ||
		gci_parse_rate(argv[7], &bps))
		return 2;
	n = (int)(time_ns / TENTH_NS);
	for (i = 0; i < flows; i++) {
		pids[i] = fork();
		if (!pids[i])
			send_for_ever(argv[2], argv[3]);
	}
	usleep(500000); /* they have begun */
	for (i = 0; i <= n; i++) {
		s[i] = look(argv[6]);
		usleep(TENTH_NS / 1000);
	}
	printf("mean %.3f", part(&s[0], &s[n], (double)bps));
	if (n >= 10)
		print_extremes("second", s, n, 10, (double)bps);
	print_extremes("tenth", s, n, 1, (double)bps);
	printf("\n");
	for (i = 0; i < flows; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return 0;
}

static int hold(char **argv)
{
	struct gci_error e = {0};
	struct gci_edt *edt;
	struct gci_net net;
	uint64_t bps;

	if (gci_parse_rate(argv[4], &bps) || gci_net_parse(&net, argv[5], &e))
		return 2;
	if (gci_edt_open(&edt, argv[2], 0, &e) ||
		gci_edt_class(edt, argv[3], &net, 1, bps, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	printf("holds\n");
	fflush(stdout);
	while (read(0, chunk, sizeof(chunk)) > 0)
		;
	gci_edt_close(edt);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "take"))
		return take(argv[2]);
	if (argc == 8 && !strcmp(argv[1], "send"))
		return measure(argv);
	if (argc == 6 && !strcmp(argv[1], "hold"))
		return hold(argv);
	return 2;
}
