/* SPDX-License-Identifier: MIT */
#include "shaping/facts.h"

#include "base/mem.h"
#include "shaping/qdisc.h"
#include "transport/reach.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int takes_rate(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;
	unsigned long rate = ~0ul;

	if (fd < 0)
		fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	rc = setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
	close(fd);
	return !rc;
}

static int has(const struct gci_nic_addr *a, const struct gci_address *at)
{
	if (a->six == 6)
		return at->any.sa_family == AF_INET6 && !memcmp(a->ip, &at->v6.sin6_addr, 16);
	return at->any.sa_family == AF_INET && !memcmp(a->ip, &at->v4.sin_addr, 4);
}

/* "" where no device has the address. */
static const char *device_of(
	const struct gci_nic_addr *have, unsigned n, const struct gci_address *at)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (has(&have[i], at))
			return have[i].nic;
	return "";
}

static void find_devices(struct gci_ladder_facts *f, const struct gci_own *own)
{
	struct gci_nic_addr *have = NULL;
	unsigned i, n = 0;
	const char *name;

	if (gci_own_list(&have, &n, NULL))
		n = 0;
	for (i = 0; i < own->n; i++) {
		name = device_of(have, n, &own->at[i]);
		if (!i)
			snprintf(f->device, sizeof(f->device), "%s", name);
		else if (strcmp(name, f->device) != 0 && !*f->other)
			snprintf(f->other, sizeof(f->other), "%s", name);
	}
	gci_free(have);
}

static void look_for_fq(struct gci_ladder_facts *f)
{
	struct gci_qdisc *q = gci_calloc(GCI_QDISCS, sizeof(*q));
	char why[GCI_QDISC_WHY] = "out of memory";
	struct gci_error e = {0};
	int n;

	n = q ? gci_qdisc_list((int)if_nametoindex(f->device), q, &e) : -1;
	if (n >= 0)
		f->fq = gci_qdisc_has_fq(q, (unsigned)n, f->device, why);
	if (!f->fq)
		snprintf(f->fq_why, sizeof(f->fq_why), "%.*s", (int)sizeof(f->fq_why) - 1,
			e.status ? e.text : why);
	gci_free(q);
}

void gci_ladder_look(struct gci_ladder_facts *f, const struct gci_own *own)
{
	memset(f, 0, sizeof(*f));
	f->socket = takes_rate();
	find_devices(f, own);
	if (*f->device)
		look_for_fq(f);
	else
		snprintf(f->fq_why, sizeof(f->fq_why), "no device has this process's address");
	f->htb = *f->device != '\0'; /* whether it may be made shows when it is */
	snprintf(f->htb_why, sizeof(f->htb_why), "no device has this process's address");
	snprintf(f->edt_why, sizeof(f->edt_why), "not tried");
}
