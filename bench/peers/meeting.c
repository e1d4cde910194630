/* SPDX-License-Identifier: MIT */
#include "bench/peers/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARGIN_NS   3000000ull
#define PER_RANK_NS 200000ull
#define OPEN_NS     60000000000ull

struct slot {
	_Atomic uint64_t net, ready, done;
	uint64_t end_ns, received, bad;
};

struct gcb_meeting_file {
	_Atomic uint64_t go;
	uint64_t start_ns;
	struct slot slots[GCB_MAX_RANKS];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Naps: whoever else is to come needs the processors. */
static void await(const _Atomic uint64_t *at, uint64_t least)
{
	while (atomic_load(at) < least)
		sleep_until(now_ns() + 100000);
}

static void await_all(struct gcb_meeting *m, int done, uint64_t turn)
{
	int r;

	for (r = 0; r < m->size; r++)
		await(done ? &m->file->slots[r].done : &m->file->slots[r].ready, turn);
}

/* Rank 0 makes it; others wait until it is there, and whole. */
static struct gcb_meeting_file *map(const char *path, int make)
{
	uint64_t give_up = now_ns() + OPEN_NS;
	struct stat st = {0};
	void *p = MAP_FAILED;
	int fd;

	do {
		fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_EXCL : 0), 0600);
		if (fd < 0 && !make)
			sleep_until(now_ns() + 1000000);
	} while (fd < 0 && !make && now_ns() < give_up);
	if (fd >= 0 && make && ftruncate(fd, (off_t)sizeof(struct gcb_meeting_file)))
		give_up = 0;
	while (fd >= 0 && !fstat(fd, &st) && !st.st_size && now_ns() < give_up)
		sleep_until(now_ns() + 1000000);
	if (fd >= 0 && st.st_size == (off_t)sizeof(struct gcb_meeting_file))
		p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

int gcb_meeting_open(struct gcb_meeting *m, const char *dir, int rank, int size)
{
	struct stat net = {0};
	char path[300];
	int r;

	memset(m, 0, sizeof(*m));
	m->rank = rank;
	m->size = size;
	snprintf(path, sizeof(path), "%s/meeting", dir);
	m->file = size > GCB_MAX_RANKS ? NULL : map(path, !rank);
	if (!m->file)
		return -1;
	if (stat("/proc/self/ns/net", &net))
		return -1;
	atomic_store(&m->file->slots[rank].net, net.st_ino + 1);
	for (r = 0; r < size; r++)
		await(&m->file->slots[r].net, 1);
	m->counts = 1;
	for (r = 0; r < rank; r++)
		if (atomic_load(&m->file->slots[r].net) == net.st_ino + 1)
			m->counts = 0;
	return 0;
}

void gcb_meeting_close(struct gcb_meeting *m)
{
	if (m->file)
		munmap(m->file, sizeof(*m->file));
	m->file = NULL;
}

int gcb_meeting_one_net(const struct gcb_meeting *m)
{
	int r;

	for (r = 1; r < m->size; r++)
		if (atomic_load(&m->file->slots[r].net) != atomic_load(&m->file->slots[0].net))
			return 0;
	return 1;
}

/* What this namespace's interfaces have received so far. */
static uint64_t received(void)
{
	unsigned long long n, sum = 0;
	FILE *f = fopen("/proc/net/dev", "re");
	char line[400];
	const char *colon;

	while (f && fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		if (colon && sscanf(colon + 1, "%llu", &n) == 1)
			sum += n;
	}
	if (f)
		fclose(f);
	return sum;
}

/* Rank 0 says when what comes next begins. */
void gcb_meeting_wait(struct gcb_meeting *m)
{
	struct gcb_meeting_file *f = m->file;

	m->turn++;
	atomic_store(&f->slots[m->rank].ready, m->turn);
	if (!m->rank) {
		await_all(m, 0, m->turn);
		f->start_ns = now_ns() + MARGIN_NS + PER_RANK_NS * (uint64_t)m->size;
		atomic_store(&f->go, m->turn);
	}
	await(&f->go, m->turn);
}

uint64_t gcb_meeting_start(struct gcb_meeting *m)
{
	m->received = m->counts ? received() : 0;
	gcb_meeting_wait(m);
	m->start_ns = m->file->start_ns;
	sleep_until(m->start_ns);
	return m->start_ns;
}

void gcb_meeting_end(struct gcb_meeting *m)
{
	m->file->slots[m->rank].end_ns = now_ns();
}

uint64_t gcb_meeting_collect(struct gcb_meeting *m, int good, uint64_t *moved)
{
	struct slot *s = &m->file->slots[m->rank];
	uint64_t last = 0, bad = 0;
	int r;

	s->bad = !good;
	s->received = m->counts ? received() - m->received : 0;
	atomic_store(&s->done, m->turn);
	*moved = 0;
	if (m->rank)
		return 0;
	await_all(m, 1, m->turn);
	for (r = 0; r < m->size; r++) {
		s = &m->file->slots[r];
		last = s->end_ns > last ? s->end_ns : last;
		bad |= s->bad;
		*moved += s->received;
	}
	return bad || last <= m->start_ns ? 0 : last - m->start_ns;
}
