/* SPDX-License-Identifier: MIT */
#include "transport/sockbuf.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNSENT       (256u << 10)
#define LEAST_UNSENT (32u << 10)
#define MOST_UNSENT  (1u << 20)

static uint64_t third(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t v[3] = {0};

	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &v[0], &v[1], &v[2]) != 3)
		v[2] = 0;
	fclose(f);
	return v[2];
}

/* rmem_max and wmem_max are not shown in every network namespace; asking for too much tells. */
static uint64_t most(int fd, int name)
{
	int value = 1 << 30;
	socklen_t len = sizeof(value);

	if (setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value)) ||
		getsockopt(fd, SOL_SOCKET, name, &value, &len) || value < 0)
		return 0;
	return (uint64_t)value / 2;
}

int gci_sockbuf_ask(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 ? fd : socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

void gci_sockmax_read(struct gci_sockmax *max)
{
	int fd = gci_sockbuf_ask();

	*max = (struct gci_sockmax){
		third("/proc/sys/net/ipv4/tcp_rmem"), third("/proc/sys/net/ipv4/tcp_wmem"), 0, 0};
	if (fd < 0)
		return;
	max->rmem_max = most(fd, SO_RCVBUF);
	max->wmem_max = most(fd, SO_SNDBUF);
	close(fd);
}

static uint64_t twice(uint64_t v)
{
	return v > UINT64_MAX / 2 ? UINT64_MAX : 2 * v;
}

/* `tuned` and `asked`: bytes in flight with autotuning at its most, and with the most asked for. */
static void choose(struct gci_sockbuf *b, uint64_t flight, uint64_t tuned, uint64_t asked,
	uint64_t most_nbytes)
{
	*b = (struct gci_sockbuf){0, tuned ? tuned : UINT64_MAX};
	if (!flight || !tuned || tuned >= flight || asked <= tuned)
		return;
	b->set_nbytes = flight < most_nbytes ? flight : most_nbytes;
	b->reach_nbytes = flight < asked ? flight : asked;
}

void gci_sockbuf_send(struct gci_sockbuf *b, uint64_t flight, const struct gci_sockmax *max)
{
	choose(b, flight, max->tcp_wmem, twice(max->wmem_max), max->wmem_max);
}

void gci_sockbuf_receive(struct gci_sockbuf *b, uint64_t flight, const struct gci_sockmax *max)
{
	choose(b, flight, max->tcp_rmem / 2, max->rmem_max, max->rmem_max);
}

uint64_t gci_sockbuf_sysctl(uint64_t flight)
{
	uint64_t most = INT32_MAX, mib = 1u << 20;

	return flight < most / 2 - mib ? (2 * flight + mib - 1) / mib * mib : most;
}

uint32_t gci_sockbuf_unsent(uint64_t flight, uint32_t streams)
{
	if (flight / 32 > UNSENT)
		return flight / 32 < MOST_UNSENT ? (uint32_t)(flight / 32) : MOST_UNSENT;
	if (!flight || streams < 2 || flight / 2 >= UNSENT)
		return UNSENT;
	return flight / 2 > LEAST_UNSENT ? (uint32_t)(flight / 2) : LEAST_UNSENT;
}

uint64_t gci_sockbuf_rate(uint64_t nbytes, uint32_t streams, uint64_t rtt_ns)
{
	unsigned __int128 bits = (unsigned __int128)nbytes * streams * 8;

	if (!rtt_ns || bits > UINT64_MAX)
		return UINT64_MAX;
	bits = bits * GCI_NS_PER_S / rtt_ns;
	return bits > UINT64_MAX ? UINT64_MAX : (uint64_t)bits;
}
