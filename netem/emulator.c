/* SPDX-License-Identifier: MIT */
#include "netem/emulator.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/threads.h"
#include "netem/netns.h"
#include "netem/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

/* A packet lies in up to three pieces, so that small ones take little: what one read fills. */
#define NPIECES 3
static const size_t piece_nbytes[NPIECES] = {2048, 14336, 49280};

#define MOST_HELD  (UINT64_C(1) << 30) /* bytes of packets under way in one group */
#define MOST_READS 16                  /* of one device in a row */
#define MOST_LEAD  (300 * GCI_NS_PER_US)
#define LATE_BINS  252 /* four for each power of two */

struct packet {
	struct virtio_net_hdr vnet;
	struct gci_segments segments;
	uint8_t *piece[NPIECES];
	size_t nbytes, held;
};

struct tap {
	int fd;
	int path; /* of the way that begins here */
};

/* Wires that share nothing with others', with threads of their own. */
struct group {
	struct gci_emulator *m;
	struct gci_wires *wires;
	int *to;         /* [path]: the device at its end */
	int epoll, stop; /* stop: readable at the end */
	pthread_t reader, writer;
	int has_reader, has_writer;
	pthread_mutex_t lock; /* of all below, and of `wires` */
	pthread_cond_t changed;
	uint64_t sleeps_until;
	int stopping;
	uint64_t held, no_room;
	struct gci_blocks pieces[NPIECES], packets;
	uint64_t late[LATE_BINS], late_max, npackets;
	int is_realtime;
	/* The writer's own. */
	uint64_t lead;
	struct gci_prng prng;
};

struct gci_emulator {
	struct tap *taps;
	int ntaps;
	struct group *groups;
	int ngroups;
	int *wire_group, *wire_at; /* [wire]: its group, and its number there */
};

/* ---- devices */

static int open_tap(const struct gci_emulator_tap *t, struct gci_error *e)
{
	unsigned offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int home = t->netns ? gci_netns_open(NULL, e) : -1, fd = -1;

	if (t->netns && (home < 0 || gci_netns_enter(t->netns, e))) {
		if (home >= 0)
			close(home);
		return -1;
	}
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", t->dev);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		gci_error_errno(e, "/dev/net/tun");
	} else if (ioctl(fd, TUNSETIFF, &ifr) || ioctl(fd, TUNSETOFFLOAD, offloads)) {
		gci_error_errno(e, "cannot open the device %s", t->dev);
		close(fd);
		fd = -1;
	}
	if (home >= 0)
		gci_netns_leave(home);
	return fd;
}

/* ---- packets */

static void free_packet(struct group *g, struct packet *p)
{
	int i;

	g->held -= p->held;
	for (i = 0; i < NPIECES; i++)
		if (p->piece[i])
			gci_blocks_give(&g->pieces[i], p->piece[i]);
	gci_blocks_give(&g->packets, p);
}

/* With all its pieces; NULL: no room. */
static struct packet *new_packet(struct group *g)
{
	struct packet *p = g->held < MOST_HELD ? gci_blocks_take(&g->packets) : NULL;
	int i;

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	for (i = 0; i < NPIECES; i++) {
		p->piece[i] = gci_blocks_take(&g->pieces[i]);
		if (!p->piece[i]) {
			free_packet(g, p);
			return NULL;
		}
	}
	return p;
}

/* Gives back the pieces that are not needed. */
static void trim(struct group *g, struct packet *p)
{
	size_t begin = 0;
	int i;

	for (i = 0; i < NPIECES; begin += piece_nbytes[i++]) {
		if (i && p->nbytes <= begin) {
			gci_blocks_give(&g->pieces[i], p->piece[i]);
			p->piece[i] = NULL;
		} else {
			p->held += piece_nbytes[i];
		}
	}
	g->held += p->held;
}

/* Bytes offset .. offset + nbytes - 1 of a packet; how many entries of iov that takes. */
static int slice(const struct packet *p, size_t offset, size_t nbytes, struct iovec *iov)
{
	size_t begin = 0, from, to;
	int i, n = 0;

	for (i = 0; i < NPIECES && nbytes; begin += piece_nbytes[i++]) {
		from = offset > begin ? offset - begin : 0;
		to = offset + nbytes - begin;
		if (offset + nbytes <= begin || from >= piece_nbytes[i])
			continue;
		to = to < piece_nbytes[i] ? to : piece_nbytes[i];
		iov[n++] = (struct iovec){p->piece[i] + from, to - from};
	}
	return n;
}

/* ---- reading */

/* True where there may be more. */
static int read_packet(struct group *g, struct tap *t, struct packet **spare)
{
	struct packet *p;
	struct iovec iov[1 + NPIECES];
	struct gci_wire_packet wire;
	uint64_t now;
	ssize_t n;
	int i;

	if (!*spare) {
		pthread_mutex_lock(&g->lock);
		*spare = new_packet(g);
		pthread_mutex_unlock(&g->lock);
	}
	p = *spare;
	if (!p) { /* it must go somewhere */
		uint8_t nowhere[16];

		n = read(t->fd, nowhere, sizeof(nowhere));
		pthread_mutex_lock(&g->lock);
		g->no_room += n > 0;
		pthread_mutex_unlock(&g->lock);
		return n > 0;
	}
	iov[0] = (struct iovec){&p->vnet, sizeof(p->vnet)};
	for (i = 0; i < NPIECES; i++)
		iov[1 + i] = (struct iovec){p->piece[i], piece_nbytes[i]};
	n = readv(t->fd, iov, 1 + NPIECES);
	if (n <= (ssize_t)sizeof(p->vnet))
		return 0;
	now = gci_now_ns();
	p->nbytes = (size_t)n - sizeof(p->vnet);
	gci_segments_read(&p->segments, &p->vnet, p->piece[0],
		p->nbytes < piece_nbytes[0] ? p->nbytes : piece_nbytes[0], p->nbytes);
	wire = (struct gci_wire_packet){.cookie = (uintptr_t)p,
		.flow = p->segments.flow,
		.sender = p->segments.sender,
		.segment_nbytes = p->segments.segment_nbytes,
		.last_nbytes = p->segments.last_nbytes,
		.nsegs = p->segments.n};
	pthread_mutex_lock(&g->lock);
	if (gci_wires_put(g->wires, t->path, &wire, now)) {
		g->no_room += wire.nsegs;
	} else {
		trim(g, p);
		*spare = NULL;
	}
	if (gci_wires_next(g->wires) < g->sleeps_until)
		pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->lock);
	return 1;
}

/* Not every container may. */
static int become_realtime(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	prctl(PR_SET_TIMERSLACK, 1ul);
	if (!pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return 1;
	setpriority(PRIO_PROCESS, 0, -20);
	return 0;
}

static void *run_reader(void *arg)
{
	struct group *g = arg;
	struct epoll_event events[16];
	struct packet *spare = NULL;
	int i, k, n;

	pthread_setname_np(pthread_self(), "wires-in");
	become_realtime(2);
	for (;;) {
		n = epoll_wait(g->epoll, events, 16, -1);
		for (i = 0; i < n; i++) {
			struct tap *t = events[i].data.ptr;

			if (!t)
				goto out;
			for (k = 0; k < MOST_READS && read_packet(g, t, &spare); k++)
				;
		}
	}
out:
	pthread_mutex_lock(&g->lock);
	if (spare)
		free_packet(g, spare);
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* ---- writing */

static size_t gather(const struct packet *p, uint8_t *out)
{
	struct iovec iov[NPIECES];
	size_t n = 0;
	int i, k = slice(p, 0, p->nbytes, iov);

	for (i = 0; i < k; n += iov[i++].iov_len)
		memcpy(out + n, iov[i].iov_base, iov[i].iov_len);
	return n;
}

static ssize_t write_corrupt(
	struct group *g, int fd, const struct packet *p, const struct gci_segments_cut *cut)
{
	static _Thread_local uint8_t whole[65536 + 256];
	struct virtio_net_hdr vnet = cut->vnet;
	struct iovec iov[2] = {{&vnet, sizeof(vnet)}, {whole, 0}};
	size_t n = gather(p, whole);

	if (cut->nheaders) {
		memmove(whole + cut->nheaders, whole + cut->offset, cut->nbytes);
		memcpy(whole, cut->headers, cut->nheaders);
		n = cut->nheaders + cut->nbytes;
	}
	gci_segments_corrupt(&vnet, whole, n, gci_prng_next(&g->prng));
	iov[1].iov_len = n;
	return writev(fd, iov, 2);
}

/* Segments of a packet into the device at the end of their path; 0 where that did not take them. */
static int write_packet(struct group *g, int fd, const struct gci_wire_out *out)
{
	const struct packet *p = (const struct packet *)(uintptr_t)out->cookie; /* NOLINT */
	struct gci_segments_cut cut;
	struct iovec iov[2 + NPIECES];
	int n = 1;

	gci_segments_cut(&p->segments, &p->vnet, p->piece[0], out->first, out->count, &cut);
	if (out->corrupt)
		return write_corrupt(g, fd, p, &cut) > 0;
	iov[0] = (struct iovec){&cut.vnet, sizeof(cut.vnet)};
	if (cut.nheaders)
		iov[n++] = (struct iovec){cut.headers, cut.nheaders};
	n += slice(p, cut.offset, cut.nbytes, iov + n);
	return writev(fd, iov, n) > 0;
}

static int late_bin(uint64_t late)
{
	int power = late < 4 ? 1 : 63 - __builtin_clzll(late);

	return late < 4 ? (int)late : 4 * (power - 1) + (int)(late >> (power - 2) & 3);
}

static uint64_t late_bin_end(int bin)
{
	return bin < 4 ? (uint64_t)bin : ((uint64_t)(5 + bin % 4) << (bin / 4 - 1)) - 1;
}

static void note_late(struct group *g, uint64_t due, uint64_t now)
{
	uint64_t late = now > due ? now - due : 0;

	g->npackets++;
	g->late[late_bin(late)]++;
	g->late_max = late > g->late_max ? late : g->late_max;
}

/* Sleeps until shortly before something is due. By how much: an idle processor takes a while to wake,
 * so the lead follows how late that was, until half of all times it is too early. */
static void sleep_until(struct group *g, uint64_t due)
{
	const uint64_t step = GCI_NS_PER_US;
	uint64_t at = due == GCI_NEVER ? due : due - (due > g->lead ? g->lead : due), now;
	struct timespec ts = {(time_t)(at / GCI_NS_PER_S), (long)(at % GCI_NS_PER_S)};
	int rc = 0;

	g->sleeps_until = due;
	if (due == GCI_NEVER)
		pthread_cond_wait(&g->changed, &g->lock);
	else if (at > gci_now_ns())
		rc = pthread_cond_timedwait(&g->changed, &g->lock, &ts);
	g->sleeps_until = 0;
	if (rc != ETIMEDOUT)
		return;
	now = gci_now_ns();
	if (now > due && g->lead + step <= MOST_LEAD)
		g->lead += step;
	else if (now < due && g->lead >= step)
		g->lead -= step;
}

static void *run_writer(void *arg)
{
	struct group *g = arg;
	struct gci_wire_out out;
	uint64_t now;
	int taken, is_realtime;

	pthread_setname_np(pthread_self(), "wires-out");
	is_realtime = become_realtime(1);
	pthread_mutex_lock(&g->lock);
	g->is_realtime = is_realtime;
	while (!g->stopping) {
		now = gci_now_ns();
		/* What is due before one could wake again goes now. */
		if (!gci_wires_take(g->wires, now, g->lead, &out)) {
			sleep_until(g, gci_wires_next(g->wires));
			continue;
		}
		if (out.count) {
			pthread_mutex_unlock(&g->lock);
			taken = write_packet(g, g->m->taps[g->to[out.path]].fd, &out);
			pthread_mutex_lock(&g->lock);
			note_late(g, out.due_ns, now);
			g->no_room += taken ? 0 : out.count;
		}
		if (out.last)
			free_packet(g, (struct packet *)(uintptr_t)out.cookie); /* NOLINT */
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* ---- the whole */

/* Wires that some way passes, one after the other, belong together. */
static int root_of(const int *parent, int wire)
{
	while (parent[wire] != wire)
		wire = parent[wire];
	return wire;
}

static int unite(struct gci_emulator *m, const struct gci_emulator_config *c)
{
	int *parent = gci_calloc((size_t)c->nwires, sizeof(*parent)), next = 0, i, k;

	if (!parent)
		return -1;
	for (i = 0; i < c->nwires; i++)
		parent[i] = i;
	for (i = 0; i < c->nways; i++)
		for (k = 1; k < c->ways[i].nwires; k++)
			parent[root_of(parent, c->ways[i].wires[k])] =
				root_of(parent, c->ways[i].wires[0]);
	for (i = 0; i < c->nwires; i++)
		if (parent[i] == i)
			m->wire_group[i] = next++ % m->ngroups;
	for (i = 0; i < c->nwires; i++)
		m->wire_group[i] = m->wire_group[root_of(parent, i)];
	gci_free(parent);
	return 0;
}

static int make_group(struct group *g, struct gci_emulator *m, const struct gci_emulator_config *c)
{
	struct epoll_event end = {.events = EPOLLIN, .data = {.ptr = NULL}};
	pthread_condattr_t attr;
	int i, n = 0, number = (int)(g - m->groups);

	g->m = m;
	g->prng.state = c->seed ^ (uint64_t)number;
	for (i = 0; i < c->nwires; i++)
		if (m->wire_group[i] == number)
			m->wire_at[i] = n++;
	g->wires = gci_wires_new(n, c->seed + (uint64_t)number);
	g->to = gci_calloc((size_t)c->nways, sizeof(*g->to));
	if (!g->wires || !g->to)
		return -1;
	for (i = 0; i < c->nwires; i++)
		if (m->wire_group[i] == number)
			gci_wires_set(g->wires, m->wire_at[i], &c->models[i]);
	for (i = 0; i < NPIECES; i++)
		g->pieces[i] = (struct gci_blocks){
			.size = piece_nbytes[i], .most = 1024, .is_modest = 1, .stays = 1};
	g->packets = (struct gci_blocks){
		.size = sizeof(struct packet), .most = 16384, .is_modest = 1, .stays = 1};
	pthread_mutex_init(&g->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->changed, &attr);
	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	g->stop = eventfd(0, EFD_CLOEXEC);
	return g->epoll < 0 || g->stop < 0 || epoll_ctl(g->epoll, EPOLL_CTL_ADD, g->stop, &end);
}

static int add_way(struct gci_emulator *m, const struct gci_emulator_way *way)
{
	struct tap *t = &m->taps[way->from];
	int number = m->wire_group[way->wires[0]], wires[GCI_WIRES_MAX_HOPS], i;
	struct group *g = &m->groups[number];
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = t}};

	for (i = 0; i < way->nwires; i++)
		wires[i] = m->wire_at[way->wires[i]];
	t->path = gci_wires_path(g->wires, wires, way->nwires);
	if (t->path < 0)
		return -1;
	g->to[t->path] = way->to;
	return epoll_ctl(g->epoll, EPOLL_CTL_ADD, t->fd, &ev);
}

static int start_threads(struct group *g)
{
	g->has_writer = !gci_thread_create(&g->writer, run_writer, g);
	g->has_reader = !gci_thread_create(&g->reader, run_reader, g);
	return g->has_writer && g->has_reader ? 0 : -1;
}

static int make_all(
	struct gci_emulator *m, const struct gci_emulator_config *c, struct gci_error *e)
{
	int i;

	m->taps = gci_calloc((size_t)c->ntaps, sizeof(*m->taps));
	m->groups = gci_calloc((size_t)m->ngroups, sizeof(*m->groups));
	m->wire_group = gci_calloc((size_t)c->nwires, sizeof(*m->wire_group));
	m->wire_at = gci_calloc((size_t)c->nwires, sizeof(*m->wire_at));
	for (i = 0; m->groups && i < m->ngroups; i++)
		m->groups[i].epoll = m->groups[i].stop = -1;
	if (!m->taps || !m->groups || !m->wire_group || !m->wire_at || unite(m, c))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (; m->ntaps < c->ntaps; m->ntaps++) {
		m->taps[m->ntaps] = (struct tap){.fd = open_tap(&c->taps[m->ntaps], e)};
		if (m->taps[m->ntaps].fd < 0)
			return GCOLL_ERR_SYS;
	}
	for (i = 0; i < m->ngroups; i++)
		if (make_group(&m->groups[i], m, c))
			return gci_error_errno(e, "cannot make the lab's wires");
	for (i = 0; i < c->nways; i++)
		if (add_way(m, &c->ways[i]))
			return gci_error_errno(e, "cannot make the lab's wires");
	for (i = 0; i < m->ngroups; i++)
		if (start_threads(&m->groups[i]))
			return gci_error_set(e, GCOLL_ERR_SYS, "cannot start a thread");
	return 0;
}

struct gci_emulator *gci_emulator_start(const struct gci_emulator_config *c, struct gci_error *e)
{
	struct gci_emulator *m = gci_calloc(1, sizeof(*m));
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!m) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		return NULL;
	}
	m->ngroups = cpus < 1 ? 1 : (int)cpus;
	m->ngroups = m->ngroups < c->nwires ? m->ngroups : c->nwires;
	if (!make_all(m, c, e))
		return m;
	gci_emulator_stop(m);
	return NULL;
}

static void stop_group(struct group *g)
{
	struct gci_wire_out out;
	int i;

	if (g->has_writer) {
		pthread_mutex_lock(&g->lock);
		g->stopping = 1;
		pthread_cond_signal(&g->changed);
		pthread_mutex_unlock(&g->lock);
		pthread_join(g->writer, NULL);
	}
	if (g->has_reader) {
		eventfd_write(g->stop, 1);
		pthread_join(g->reader, NULL);
	}
	while (g->wires && g->m && gci_wires_take(g->wires, GCI_NEVER - 1, 0, &out))
		if (out.last)
			free_packet(g, (struct packet *)(uintptr_t)out.cookie); /* NOLINT */
	for (i = 0; i < NPIECES; i++)
		gci_blocks_drain(&g->pieces[i]);
	gci_blocks_drain(&g->packets);
	gci_wires_free(g->wires);
	gci_free(g->to);
	if (g->epoll >= 0)
		close(g->epoll);
	if (g->stop >= 0)
		close(g->stop);
}

void gci_emulator_stop(struct gci_emulator *m)
{
	int i;

	for (i = 0; m && m->groups && i < m->ngroups; i++)
		stop_group(&m->groups[i]);
	for (i = 0; m && i < m->ntaps; i++)
		close(m->taps[i].fd);
	if (m) {
		gci_free(m->taps);
		gci_free(m->groups);
		gci_free(m->wire_group);
		gci_free(m->wire_at);
	}
	gci_free(m);
}

void gci_emulator_set(struct gci_emulator *m, int wire, const struct gci_wire_model *model)
{
	struct group *g = &m->groups[m->wire_group[wire]];

	pthread_mutex_lock(&g->lock);
	gci_wires_set(g->wires, m->wire_at[wire], model);
	pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

struct gci_wire_counts gci_emulator_counts(struct gci_emulator *m, int wire)
{
	struct group *g = &m->groups[m->wire_group[wire]];
	struct gci_wire_counts counts;

	pthread_mutex_lock(&g->lock);
	counts = *gci_wires_counts(g->wires, m->wire_at[wire]);
	pthread_mutex_unlock(&g->lock);
	return counts;
}

/* The upper end of the bin in which the n-th lies; no more than the latest was. */
static uint64_t late_at(const uint64_t late[LATE_BINS], uint64_t n, uint64_t most)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < LATE_BINS - 1 && (sum += late[i]) <= n; i++)
		;
	return late_bin_end(i) < most ? late_bin_end(i) : most;
}

void gci_emulator_gauge(struct gci_emulator *m, struct gci_emulator_gauge *gauge)
{
	uint64_t late[LATE_BINS] = {0};
	int i, k;

	*gauge = (struct gci_emulator_gauge){.is_realtime = 1};
	for (i = 0; i < m->ngroups; i++) {
		struct group *g = &m->groups[i];

		pthread_mutex_lock(&g->lock);
		for (k = 0; k < LATE_BINS; k++)
			late[k] += g->late[k];
		gauge->npackets += g->npackets;
		gauge->no_room += g->no_room;
		gauge->is_realtime &= g->is_realtime;
		if (g->late_max > gauge->late_max_ns)
			gauge->late_max_ns = g->late_max;
		pthread_mutex_unlock(&g->lock);
	}
	if (!gauge->npackets)
		return;
	gauge->late_p50_ns = late_at(late, gauge->npackets / 2, gauge->late_max_ns);
	gauge->late_p99_ns =
		late_at(late, gauge->npackets - 1 - gauge->npackets / 100, gauge->late_max_ns);
}
