/* SPDX-License-Identifier: MIT
 * Waiting for a lab to forward: one ICMP echo per host and per pair of clusters, repeated until all
 * have been answered. */
#include "base/clock.h"
#include "base/mem.h"
#include "netem/apply.h"
#include "netem/netns.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct probe {
	const struct gci_lab_host *from;
	const char *to;
	int fd;
	int answered;
};

static uint16_t checksum(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static int open_probe(
	struct probe *p, const struct gci_lab_host *from, const char *to, struct gci_error *e)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	int home = gci_netns_open(NULL, e);
	int rc;

	p->from = from;
	p->to = to;
	p->fd = -1;
	if (home < 0)
		return GCOLL_ERR_SYS;
	rc = gci_netns_enter(from->netns, e);
	if (!rc)
		p->fd = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMP);
	gci_netns_leave(home);
	inet_pton(AF_INET, to, &sin.sin_addr);
	if (!rc && (p->fd < 0 || connect(p->fd, (struct sockaddr *)&sin, sizeof(sin))))
		rc = gci_error_errno(e, "cannot ping %s from %s", to, from->name);
	return rc;
}

static void send_echo(const struct probe *p)
{
	struct icmphdr h = {.type = ICMP_ECHO};

	h.un.echo.id = htons((uint16_t)getpid());
	h.checksum = checksum(&h, sizeof(h));
	/* Not reachable yet is what we wait out. */
	(void)!send(p->fd, &h, sizeof(h), MSG_NOSIGNAL);
}

static void hear(struct probe *p)
{
	uint8_t packet[256];
	ssize_t n;

	/* Connected: only the other end's packets, each with its IP header in front. */
	while ((n = recv(p->fd, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		size_t header = (size_t)(packet[0] & 15) * 4;

		if ((size_t)n > header && packet[header] == ICMP_ECHOREPLY)
			p->answered = 1;
	}
}

/* The probes: each host to its router; the first host of each cluster to that of each other. */
static int open_all(
	const struct gci_lab_plan *plan, struct probe *probes, int *n, struct gci_error *e)
{
	int i, j, rc = 0;

	for (i = 0; i < plan->nhosts && !rc; i++)
		rc = open_probe(&probes[(*n)++], &plan->hosts[i], plan->hosts[i].gateway, e);
	for (i = 0; i < plan->nhosts && !rc; i++) {
		if (i && plan->hosts[i].cluster == plan->hosts[i - 1].cluster)
			continue;
		for (j = 0; j < plan->nhosts && !rc; j++)
			if (plan->hosts[j].cluster != plan->hosts[i].cluster &&
				(!j || plan->hosts[j].cluster != plan->hosts[j - 1].cluster))
				rc = open_probe(
					&probes[(*n)++], &plan->hosts[i], plan->hosts[j].addr, e);
	}
	return rc;
}

static int wait_all(struct probe *probes, int n, uint64_t timeout_ns, struct gci_error *e)
{
	const uint64_t repeat_ns = 100 * GCI_NS_PER_MS;
	uint64_t start = gci_now_ns(), sent = 0, now;
	int i, missing;

	for (;;) {
		now = gci_now_ns();
		for (i = 0; i < n; i++)
			hear(&probes[i]);
		for (i = 0, missing = -1; i < n; i++) {
			if (probes[i].answered)
				continue;
			missing = i;
			if (!sent || now - sent >= repeat_ns)
				send_echo(&probes[i]);
		}
		if (missing < 0)
			return 0;
		if (now - start > timeout_ns)
			return gci_error_set(e, GCOLL_ERR_TIMEOUT,
				"host %s gets no answer from %s over the lab's network",
				probes[missing].from->name, probes[missing].to);
		if (!sent || now - sent >= repeat_ns)
			sent = now;
		gci_sleep_ns(2 * GCI_NS_PER_MS);
	}
}

int gci_lab_wait(const struct gci_lab_plan *plan, uint64_t timeout_ns, struct gci_error *e)
{
	int clusters = plan->hosts[plan->nhosts - 1].cluster + 1;
	struct probe *probes =
		gci_calloc((size_t)plan->nhosts + (size_t)(clusters * clusters), sizeof(*probes));
	int i, n = 0, rc;

	if (!probes)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	rc = open_all(plan, probes, &n, e);
	if (!rc)
		rc = wait_all(probes, n, timeout_ns, e);
	for (i = 0; i < n; i++)
		if (probes[i].fd >= 0)
			close(probes[i].fd);
	gci_free(probes);
	return rc;
}
