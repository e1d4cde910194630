/* SPDX-License-Identifier: MIT */
#include "shaping/ladder.h"

#include "base/mem.h"
#include "shaping/facts.h"
#include "shaping/qdisc.h"
#include "transport/reach.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the facts that it is made from */

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

/* ---- the choice */

static const char *const names[] = {"auto", "fq", "tcp", "htb", "edt", "user", "off"};

#define NNAMES (sizeof(names) / sizeof(*names))

int gci_pace_parse(const char *name, enum gci_pace_how *out)
{
	size_t i;

	for (i = 0; i < NNAMES; i++)
		if (!strcmp(name, names[i])) {
			*out = (enum gci_pace_how)i;
			return 0;
		}
	return GCOLL_ERR_INVAL;
}

const char *gci_pace_name(enum gci_pace_how how)
{
	return names[how];
}

enum gci_paced_by gci_ladder_paced_by(enum gci_pace_how holds)
{
	switch (holds) {
	case GCI_PACE_FQ:
		return GCI_PACED_BY_FQ;
	case GCI_PACE_TCP:
		return GCI_PACED_BY_TCP;
	case GCI_PACE_USER:
		return GCI_PACED_BY_US;
	case GCI_PACE_HTB:
		return GCI_PACED_BY_CLASS;
	default:
		return GCI_PACED_BY_NOBODY;
	}
}

static const char *device(const struct gci_ladder_facts *f)
{
	return *f->device ? f->device : "the device";
}

static int refuse(struct gci_error *e, const char *name, const char *why)
{
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "pacing by %s: %s", name, why);
}

/* The best one that needs nobody's leave. */
static enum gci_pace_how best(const struct gci_ladder_facts *f)
{
	return !f->socket ? GCI_PACE_USER : f->fq ? GCI_PACE_FQ : GCI_PACE_TCP;
}

static void say(enum gci_pace_how holds, const struct gci_ladder_facts *f, char *why)
{
	switch (holds) {
	case GCI_PACE_FQ:
		snprintf(why, GCI_LADDER_WHY, "fq on %s paces each connection", device(f));
		break;
	case GCI_PACE_TCP:
		if (f->fq)
			snprintf(why, GCI_LADDER_WHY,
				"by TCP's own rate, which fq on %s keeps, since it is there",
				device(f));
		else
			snprintf(why, GCI_LADDER_WHY,
				"by TCP's own timers, since %s; fq would pace each packet",
				*f->fq_why ? f->fq_why : "no fq was found");
		break;
	case GCI_PACE_USER:
		snprintf(why, GCI_LADDER_WHY, "by a token bucket of this process%s",
			f->socket ? "" : ", since the kernel does not know SO_MAX_PACING_RATE");
		break;
	case GCI_PACE_HTB:
		snprintf(
			why, GCI_LADDER_WHY, "by a class of HTB on %s for each cluster", device(f));
		break;
	case GCI_PACE_EDT:
		snprintf(why, GCI_LADDER_WHY,
			"by earliest departure times on %s, for all jobs of this host", device(f));
		break;
	default:
		snprintf(why, GCI_LADDER_WHY, "nothing is paced");
	}
}

int gci_ladder_choose(enum gci_pace_how how, const struct gci_ladder_facts *f,
	enum gci_pace_how *holds, char why[GCI_LADDER_WHY], struct gci_error *e)
{
	if (how == GCI_PACE_FQ && (!f->fq || !f->socket))
		return refuse(e, "fq",
			f->socket ? f->fq_why : "this kernel does not know SO_MAX_PACING_RATE");
	if (how == GCI_PACE_TCP && !f->socket)
		return refuse(e, "tcp", "this kernel does not know SO_MAX_PACING_RATE");
	if (how == GCI_PACE_HTB && !f->htb)
		return refuse(e, "htb", f->htb_why);
	if (how == GCI_PACE_EDT && !f->edt)
		return refuse(e, "edt", f->edt_why);
	*holds = how == GCI_PACE_AUTO ? best(f) : how;
	/* Where fq is, it is fq that keeps what the socket is told. */
	if (*holds == GCI_PACE_TCP && f->fq) {
		say(GCI_PACE_TCP, f, why);
		*holds = GCI_PACE_FQ;
		return 0;
	}
	say(*holds, f, why);
	return 0;
}
