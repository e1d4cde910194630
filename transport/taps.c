/* SPDX-License-Identifier: MIT */
#include "transport/taps.h"

#include "base/mem.h"
#include "transport/sockopt.h"

#include <pthread.h>
#include <stddef.h>

struct tap {
	int fd, peer;
	uint32_t stream;
};

struct gci_taps {
	pthread_mutex_t lock;
	struct tap *open;
	struct gci_flow *gone; /* by peer, in no order */
	size_t nopen, open_cap, ngone, gone_cap;
};

struct gci_taps *gci_taps_create(void)
{
	struct gci_taps *t = gci_calloc(1, sizeof(*t));

	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void gci_taps_free(struct gci_taps *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	gci_free(t->open);
	gci_free(t->gone);
	gci_free(t);
}

/* Without memory for it, it goes unseen. */
void gci_taps_add(struct gci_taps *t, int fd, int peer, uint32_t stream)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	if (!gci_grow(&t->open, &t->open_cap, t->nopen + 1, sizeof(*t->open)))
		t->open[t->nopen++] = (struct tap){fd, peer, stream};
	pthread_mutex_unlock(&t->lock);
}

static struct gci_flow *gone_of(struct gci_taps *t, int peer)
{
	size_t i;

	for (i = 0; i < t->ngone; i++)
		if (t->gone[i].peer == peer)
			return &t->gone[i];
	if (gci_grow(&t->gone, &t->gone_cap, t->ngone + 1, sizeof(*t->gone)))
		return NULL;
	t->gone[t->ngone] = (struct gci_flow){.peer = peer};
	return &t->gone[t->ngone++];
}

static void look(const struct tap *tap, struct gci_flow *f)
{
	*f = (struct gci_flow){.peer = tap->peer, .stream = tap->stream, .open = 1};
	gci_sockopt_flow(tap->fd, f);
}

/* What it has moved stays known. */
static void keep(struct gci_taps *t, const struct tap *tap)
{
	struct gci_flow last, *sum = gone_of(t, tap->peer);

	if (!sum)
		return;
	look(tap, &last);
	sum->sent_nbytes += last.sent_nbytes;
	sum->resent_nbytes += last.resent_nbytes;
	sum->acked_nbytes += last.acked_nbytes;
	sum->received_nbytes += last.received_nbytes;
	sum->resent += last.resent;
}

void gci_taps_remove(struct gci_taps *t, int fd)
{
	size_t i;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	for (i = 0; i < t->nopen && t->open[i].fd != fd; i++)
		;
	if (i < t->nopen) {
		keep(t, &t->open[i]);
		t->open[i] = t->open[--t->nopen];
	}
	pthread_mutex_unlock(&t->lock);
}

void gci_taps_look(
	struct gci_taps *t, void (*each)(void *user, const struct gci_flow *f), void *user)
{
	struct gci_flow f;
	size_t i;

	pthread_mutex_lock(&t->lock);
	for (i = 0; i < t->ngone; i++)
		each(user, &t->gone[i]);
	for (i = 0; i < t->nopen; i++) {
		look(&t->open[i], &f);
		each(user, &f);
	}
	pthread_mutex_unlock(&t->lock);
}

unsigned gci_taps_count(struct gci_taps *t)
{
	unsigned n;

	pthread_mutex_lock(&t->lock);
	n = (unsigned)t->nopen;
	pthread_mutex_unlock(&t->lock);
	return n;
}
