/* SPDX-License-Identifier: MIT */
#include "tests/transport/cutter.h"

#include "transport/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t below(struct cutter *c, uint64_t n)
{
	return gci_prng_below(&c->prng, n);
}

static void plan_cut(struct cutter *c)
{
	c->next_cut = c->moved + 1 + below(c, 2 * c->cut_every);
}

void cutter_open(struct cutter *c, int size, char addrs[][GCI_ADDRESS_TEXT])
{
	int i;

	c->size = size;
	for (i = 0; i < CUTTER_PIPES; i++)
		c->pipes[i].fd[0] = c->pipes[i].fd[1] = -1;
	for (i = 0; i < size; i++) {
		memcpy(c->behind[i], addrs[i], GCI_ADDRESS_TEXT);
		listen_on("127.0.0.1", &c->listen_fd[i], addrs[i]);
	}
	if (c->cut_every)
		plan_cut(c);
}

/* With a reset, or as if the program had ended in order. */
static void close_side(struct cutter_pipe *p, int side, int reset)
{
	struct linger now = {.l_onoff = 1};

	if (p->fd[side] < 0)
		return;
	if (reset)
		setsockopt(p->fd[side], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(p->fd[side]);
	p->fd[side] = -1;
	free(p->held[side]);
	p->held[side] = NULL;
}

static void cut(struct cutter *c, struct cutter_pipe *p)
{
	int first = (int)below(c, 2);

	if (p->fd[0] < 0 || p->fd[1] < 0 || p->lingers[0] || p->lingers[1])
		return;
	c->ncuts++;
	close_side(p, first, (int)below(c, 2));
	p->lingers[1 - first] = 1 + (int)below(c, 2) * (int)below(c, 200);
}

static void take(struct cutter *c, int rank)
{
	struct cutter_pipe *p = c->pipes;
	int fd = accept4(c->listen_fd[rank], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int side;

	if (fd < 0)
		return;
	while (p->fd[0] >= 0 || p->fd[1] >= 0)
		assert_true(++p < c->pipes + CUTTER_PIPES);
	memset(p, 0, sizeof(*p));
	p->number = c->npipes++;
	p->fd[0] = fd;
	p->fd[1] = knock(c->behind[rank]);
	if (c->nspoilt && c->nspoilt--)
		p->spoils = 1 + (int)below(c, 2);
	for (side = 0; side < 2; side++)
		p->held[side] = room(CUTTER_ROOM);
}

/* True if one can go on. */
static int moved(ssize_t n)
{
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* How many bytes may come at once: the fault's is the first, or not among them. */
static size_t most(struct cutter *c, const struct cutter_pipe *p, int side)
{
	const struct cutter_fault *f = &c->fault;
	size_t n = 1 + below(c, c->slice ? c->slice : CUTTER_ROOM);

	if (f->what && !c->struck && f->number == p->number && f->side == side &&
		f->at > p->passed[side] && f->at - p->passed[side] < n)
		n = f->at - p->passed[side];
	return n;
}

/* `n` bytes have come. True if the connection is to be reset instead. */
static int strike(struct cutter *c, struct cutter_pipe *p, int side, size_t n)
{
	const struct cutter_fault *f = &c->fault;
	uint64_t at = p->passed[side];

	p->passed[side] += n;
	if (!f->what || c->struck || f->number != p->number || f->side != side || f->at != at || !n)
		return 0;
	c->struck = 1;
	p->held[side][0] ^= f->mask;
	return f->what == CUTTER_RESET;
}

/* From this side to the other; 0: the connection has ended. */
static int move(struct cutter *c, struct cutter_pipe *p, int side)
{
	ssize_t n;

	if (p->lo[side] == p->hi[side]) {
		n = recv(p->fd[side], p->held[side], most(c, p, side), MSG_DONTWAIT);
		if (!moved(n))
			return 0;
		p->lo[side] = 0;
		p->hi[side] = n > 0 ? (size_t)n : 0;
		if (strike(c, p, side, p->hi[side])) {
			close_side(p, 0, 1);
			close_side(p, 1, 1);
			return 1;
		}
		if (p->spoils == 1 + side && n > 0) {
			p->held[side][n < 80 ? n / 2 : 40] ^= 0x40;
			p->spoils = 0;
		}
	}
	if (p->lo[side] == p->hi[side])
		return 1;
	n = send(p->fd[1 - side], p->held[side] + p->lo[side], p->hi[side] - p->lo[side],
		MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!moved(n))
		return 0;
	p->lo[side] += n > 0 ? (size_t)n : 0;
	c->moved += n > 0 ? (uint64_t)n : 0;
	return 1;
}

static void step_pipe(struct cutter *c, struct cutter_pipe *p)
{
	int side;

	for (side = 0; side < 2; side++)
		if (p->lingers[side] && !--p->lingers[side])
			close_side(p, side, (int)below(c, 2));
	if (p->fd[0] < 0 || p->fd[1] < 0)
		return;
	if (c->cut_every && c->moved >= c->next_cut && c->ncuts < c->most_cuts) {
		cut(c, p);
		plan_cut(c);
		return;
	}
	/* An end of file is passed on only when nothing is held for the other side. */
	if ((!move(c, p, 0) && p->lo[1] == p->hi[1]) ||
		(p->fd[1] >= 0 && !move(c, p, 1) && p->lo[0] == p->hi[0])) {
		close_side(p, 0, 0);
		close_side(p, 1, 0);
	}
}

void cutter_step(struct cutter *c)
{
	int i, start = (int)below(c, CUTTER_PIPES);

	for (i = 0; i < c->size; i++)
		if (c->listen_fd[i] >= 0)
			take(c, i);
	for (i = 0; i < CUTTER_PIPES; i++)
		step_pipe(c, &c->pipes[(start + i) % CUTTER_PIPES]);
}

void cutter_cut_all(struct cutter *c)
{
	int i;

	for (i = 0; i < CUTTER_PIPES; i++)
		cut(c, &c->pipes[i]);
}

void cutter_end_cuts(struct cutter *c)
{
	int i, side;

	for (i = 0; i < CUTTER_PIPES; i++)
		for (side = 0; side < 2; side++)
			if (c->pipes[i].lingers[side]) {
				c->pipes[i].lingers[side] = 0;
				close_side(&c->pipes[i], side, (int)below(c, 2));
			}
}

void cutter_deafen(struct cutter *c, int rank)
{
	close(c->listen_fd[rank]);
	c->listen_fd[rank] = -1;
}

void cutter_close(struct cutter *c)
{
	int i;

	for (i = 0; i < CUTTER_PIPES; i++) {
		close_side(&c->pipes[i], 0, 0);
		close_side(&c->pipes[i], 1, 0);
	}
	for (i = 0; i < c->size; i++)
		if (c->listen_fd[i] >= 0)
			close(c->listen_fd[i]);
}
