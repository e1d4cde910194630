/* SPDX-License-Identifier: MIT */
#include "comm/gate.h"

void gci_gate_init(struct gci_gate *g)
{
	*g = (struct gci_gate){.next = 0};
	pthread_mutex_init(&g->mutex, NULL);
	pthread_cond_init(&g->turn, NULL);
	pthread_cond_init(&g->news, NULL);
}

void gci_gate_deinit(struct gci_gate *g)
{
	pthread_cond_destroy(&g->news);
	pthread_cond_destroy(&g->turn);
	pthread_mutex_destroy(&g->mutex);
}

static void enter(struct gci_gate *g)
{
	uint64_t mine = g->next++;

	while (g->serving != mine)
		pthread_cond_wait(&g->turn, &g->mutex);
}

static void leave(struct gci_gate *g)
{
	if (++g->serving != g->next)
		pthread_cond_broadcast(&g->turn);
}

void gci_gate_enter(struct gci_gate *g)
{
	pthread_mutex_lock(&g->mutex);
	enter(g);
	pthread_mutex_unlock(&g->mutex);
}

void gci_gate_leave(struct gci_gate *g)
{
	pthread_mutex_lock(&g->mutex);
	leave(g);
	pthread_mutex_unlock(&g->mutex);
}

void gci_gate_wait(struct gci_gate *g)
{
	uint64_t told;

	pthread_mutex_lock(&g->mutex);
	told = g->told;
	leave(g);
	while (g->told == told)
		pthread_cond_wait(&g->news, &g->mutex);
	enter(g);
	pthread_mutex_unlock(&g->mutex);
}

void gci_gate_tell(struct gci_gate *g)
{
	pthread_mutex_lock(&g->mutex);
	g->told++;
	pthread_cond_broadcast(&g->news);
	pthread_mutex_unlock(&g->mutex);
}
