/* SPDX-License-Identifier: MIT */
#include "bench/peers/pair.h"

#include "base/clock.h"
#include "base/prng.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

uint64_t gcb_now_ns(void)
{
	return gci_now_ns();
}

void gcb_nap(void)
{
	gci_sleep_ns(50000);
}

static void *shared(size_t nbytes)
{
	void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int gcb_pair_open(
	struct gcb_pair *p, uint64_t nbytes, const struct gcb_veth *veth, struct gci_error *e)
{
	uint64_t i, word;

	memset(p, 0, sizeof(*p));
	p->veth = veth;
	p->nbytes = nbytes;
	p->shared = shared(sizeof(*p->shared));
	p->from = shared(nbytes);
	p->to = shared(nbytes);
	if (!p->shared || !p->from || !p->to) {
		gcb_pair_close(p);
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for two buffers");
	}
	for (i = 0; i + sizeof(word) <= nbytes; i += sizeof(word)) {
		word = gci_mix64(i);
		memcpy(p->from + i, &word, sizeof(word));
	}
	memset(p->to, 1, nbytes);
	return 0;
}

void gcb_pair_close(struct gcb_pair *p)
{
	if (p->shared)
		munmap(p->shared, sizeof(*p->shared));
	if (p->from)
		munmap(p->from, p->nbytes);
	if (p->to)
		munmap(p->to, p->nbytes);
	memset(p, 0, sizeof(*p));
}

const char *gcb_pair_ip(const struct gcb_pair *p, int rank)
{
	if (!p->veth)
		return "127.0.0.1";
	return rank ? GCB_VETH_IP1 : GCB_VETH_IP0;
}

int gcb_pair_fail(struct gcb_pair *p, const char *fmt, ...)
{
	va_list ap;

	if (atomic_exchange(&p->shared->failed, 1))
		return -1;
	va_start(ap, fmt);
	vsnprintf(p->shared->why, sizeof(p->shared->why), fmt, ap);
	va_end(ap);
	return -1;
}

void gcb_pair_tell(struct gcb_pair *p, const char *text)
{
	snprintf(p->shared->addr[p->rank], GCB_ADDR_NBYTES, "%s", text);
	atomic_store(&p->shared->told[p->rank], 1);
}

const char *gcb_pair_told(struct gcb_pair *p)
{
	int other = !p->rank;

	while (!atomic_load(&p->shared->told[other])) {
		if (atomic_load(&p->shared->failed))
			return NULL;
		gcb_nap();
	}
	return p->shared->addr[other];
}

static uint64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * GCI_NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* A new process maps shared pages one by one: that is not the transfer's time. */
static void fault_in(const struct gcb_pair *p)
{
	volatile uint8_t *page = p->rank ? p->to : p->from;
	uint64_t i;

	for (i = 0; i < p->nbytes; i += PAGE)
		if (p->rank)
			page[i] = page[i];
		else
			(void)page[i];
}

int gcb_pair_begin(struct gcb_pair *p)
{
	fault_in(p);
	atomic_fetch_add(&p->shared->arrived, 1);
	while (atomic_load(&p->shared->arrived) < 2) {
		if (atomic_load(&p->shared->failed))
			return -1;
		sched_yield();
	}
	p->cpu_from_ns = cpu_ns();
	if (!p->rank)
		p->shared->start_ns = gcb_now_ns();
	return 0;
}

void gcb_pair_end(struct gcb_pair *p)
{
	uint64_t now = gcb_now_ns();

	p->shared->cpu_ns[p->rank] = cpu_ns() - p->cpu_from_ns;
	if (p->rounds ? !p->rank : p->rank)
		p->shared->end_ns = now;
}

static pid_t start_side(struct gcb_pair *p, const struct gcb_way *way, int rank)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	p->rank = rank;
	if (rank && p->veth && gcb_veth_join(p->veth))
		_exit(gcb_pair_fail(p, "cannot enter the other namespace: %s", strerror(errno)) !=
			0);
	_exit(way->side(p) != 0);
}

/* Both sides, or what is left of them. */
static int reap(struct gcb_pair *p, pid_t pids[2], struct gci_error *e)
{
	int status, i, bad = 0;
	pid_t pid;

	for (i = 0; i < 2 && pids[0] > 0 && pids[1] > 0; i++) {
		do
			pid = waitpid(-1, &status, 0);
		while (pid > 0 && pid != pids[0] && pid != pids[1]);
		if (pid > 0 && !status)
			continue;
		bad = 1;
		gcb_pair_fail(p, "a process ended with status %#x", (unsigned)status);
		if (!i)
			kill(pid == pids[0] ? pids[1] : pids[0], SIGKILL);
	}
	if (pids[0] <= 0 || pids[1] <= 0)
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot start a process");
	return bad ? gci_error_set(e, GCOLL_ERR_SYS, "%s", p->shared->why) : 0;
}

static int run_sides(struct gcb_pair *p, const struct gcb_way *way, struct gcb_pair_result *r,
	struct gci_error *e)
{
	pid_t pids[2];
	int rc;

	memset(p->shared, 0, sizeof(*p->shared));
	fflush(NULL);
	pids[0] = start_side(p, way, 0);
	pids[1] = start_side(p, way, 1);
	rc = reap(p, pids, e);
	if (rc)
		return rc;
	r->ns = p->shared->end_ns - p->shared->start_ns;
	memcpy(r->cpu_ns, p->shared->cpu_ns, sizeof(r->cpu_ns));
	return 0;
}

int gcb_pair_run(struct gcb_pair *p, const struct gcb_way *way, struct gcb_pair_result *r,
	struct gci_error *e)
{
	uint64_t i;
	int rc;

	for (i = 0; way->checks && i < p->nbytes; i += PAGE)
		p->to[i] = (uint8_t)~p->from[i];
	rc = way->alone ? way->alone(p, r, e) : run_sides(p, way, r, e);
	if (!rc && way->checks && memcmp(p->from, p->to, p->nbytes) != 0)
		rc = gci_error_set(
			e, GCOLL_ERR_CORRUPT, "%s: what came is not what was sent", way->name);
	return rc;
}
