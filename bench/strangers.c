/* SPDX-License-Identifier: MIT
 * How fast a job is while strangers call its ranks and its launcher all the time:
 *
 *	gridcoll-run -n 2 --quiet-prefix --security encrypt bench_strangers [--rate 1000]
 *		[--rounds 10] [--nbytes 4MiB] [--theirs PROCESSOR] [--check]
 *		[--kind silent|garbage|half|heard|forged]
 *
 * Allreduces for half a second alone, half a second while strangers call somebody else on this
 * machine (decoys: the same calls by the same process, which nobody accepts), half a second while
 * they call the job; so many rounds of that in one run. All ranks and the launcher share all
 * processors but one, which is the strangers', by default the last.
 *
 * What strangers cost the job is its speed beside that with decoys. Beside its speed alone there is
 * also what their own work takes from it when they call from this machine, as no stranger must:
 * processors share cores, caches and memory. Both are told. Where other programs run, too, the
 * processor time is what to look at. --check: exit status 1 unless the speed is at least 0.9 of
 * that with decoys, and no process has grown by 32 MiB. */
#include "bench/strangers.h"

#include "base/clock.h"
#include "base/median.h"
#include "base/units.h"
#include "gridcoll/gridcoll.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WINDOW_NS   (GCI_NS_PER_S / 2)
#define WARMUP      5
#define MOST_FD     256
#define LEAST_RATIO 0.9
#define MOST_GROWTH (32l << 20)

static struct {
	unsigned rate, rounds, theirs;
	uint64_t nbytes;
	int kind, check;
} options = {.rate = 1000, .rounds = 10, .nbytes = 4 << 20, .kind = -1};

/* Of windows of each sort, by round. */
struct figures {
	double *alone;               /* operations a second */
	double *beside_alone, *cost; /* with strangers: speed, processor time */
	double *beside_decoys, *cost_decoys;
};

static gcoll_comm *world;
static uint8_t secret[GCI_SECRET_NBYTES];
static float *vector;
static pid_t junk_pid;

static __attribute__((noreturn)) void die(const char *what)
{
	fprintf(stderr, "bench_strangers: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "bench_strangers: %s\n", gcoll_last_error());
	exit(2);
}

static void read_options(int argc, char **argv)
{
	static const struct option known[] = {{"rate", required_argument, NULL, 'r'},
		{"rounds", required_argument, NULL, 'o'}, {"nbytes", required_argument, NULL, 'n'},
		{"kind", required_argument, NULL, 'k'}, {"theirs", required_argument, NULL, 't'},
		{"check", no_argument, NULL, 'c'}, {0}};
	uint64_t n = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	uint64_t rate = options.rate, rounds = options.rounds, theirs = n - 1;
	int c, bad = 0;

	while ((c = getopt_long(argc, argv, "", known, NULL)) >= 0)
		switch (c) {
		case 'r':
			bad |= gci_parse_uint(optarg, UINT_MAX, &rate);
			break;
		case 'o':
			bad |= gci_parse_uint(optarg, UINT_MAX, &rounds);
			break;
		case 't':
			bad |= gci_parse_uint(optarg, n - 1, &theirs);
			break;
		case 'n':
			bad |= gci_parse_bytes(optarg, &options.nbytes);
			break;
		case 'k':
			for (options.kind = 0; options.kind < JUNK_KINDS; options.kind++)
				if (!strcmp(junk_kinds[options.kind], optarg))
					break;
			break;
		case 'c':
			options.check = 1;
			break;
		default:
			exit(2);
		}
	options.rate = (unsigned)rate;
	options.rounds = (unsigned)rounds;
	options.theirs = (unsigned)theirs;
	options.nbytes -= options.nbytes % sizeof(*vector);
	if (bad || !rate || rounds < 2 || options.nbytes < 8 || options.kind == JUNK_KINDS) {
		fprintf(stderr, "bench_strangers: see the top of its source\n");
		exit(2);
	}
}

/* The library will read it again. */
static void read_secret(void)
{
	const char *fd = getenv("GRIDCOLL_SECRET_FD");
	char number[16];
	int fds[2];

	if (!fd || read(atoi(fd), secret, sizeof(secret)) != sizeof(secret) || pipe(fds) ||
		write(fds[1], secret, sizeof(secret)) != sizeof(secret))
		die("the job's secret (start this with gridcoll-run)");
	close(atoi(fd));
	close(fds[1]);
	snprintf(number, sizeof(number), "%d", fds[0]);
	setenv("GRIDCOLL_SECRET_FD", number, 1);
}

/* Where the library listens. */
static uint16_t own_port(void)
{
	struct sockaddr_in6 a;
	socklen_t len;
	int fd, on;

	for (fd = 3; fd < MOST_FD; fd++) {
		len = sizeof(on);
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) || !on)
			continue;
		len = sizeof(a);
		if (!getsockname(fd, (struct sockaddr *)&a, &len))
			return ntohs(a.sin6_port); /* at the same place for IPv4 */
	}
	die("no listening socket");
	return 0;
}

/* With those that the launcher has. */
static void use_processors(pid_t pid)
{
	long n = sysconf(_SC_NPROCESSORS_CONF), i;
	cpu_set_t set;

	CPU_ZERO(&set);
	for (i = 0; i < n; i++)
		if (n == 1 || i != (long)options.theirs)
			CPU_SET((size_t)i, &set);
	if (sched_setaffinity(pid, sizeof(set), &set))
		die("affinity");
}

static pid_t parent_of(pid_t pid)
{
	char path[64], line[512];
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f) || !strrchr(line, ')') ||
		sscanf(strrchr(line, ')'), ") %*c %d", &parent) != 1)
		die(path);
	fclose(f);
	return parent;
}

static long resident_nbytes(pid_t pid)
{
	char path[64];
	long size, resident;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
		die(path);
	fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Half a second; the sum of first elements tells all ranks that it is over. Operations per second,
 * and this rank's processor time for each of them. */
static double window(int rank, double *cpu)
{
	uint64_t count = options.nbytes / sizeof(float), n = 0, begin, now;

	must(gcoll_barrier(world));
	*cpu = -cpu_s();
	begin = now = gci_now_ns();
	do {
		memset(vector, 0, sizeof(float));
		vector[0] = !rank && now - begin >= WINDOW_NS ? 1 : 0;
		must(gcoll_allreduce(
			GCOLL_IN_PLACE, vector, count, GCOLL_FLOAT32, GCOLL_SUM, world));
		now = gci_now_ns();
		n++;
	} while (vector[0] == 0);
	*cpu = (*cpu + cpu_s()) / (double)n;
	return (double)n * (double)GCI_NS_PER_S / (double)(now - begin);
}

static struct junk_state *start_junk(const uint16_t *ports, unsigned nports)
{
	struct junk j = {.ports = ports,
		.nports = nports,
		.rate = options.rate,
		.only = options.kind,
		.cpu = (int)options.theirs,
		.size = (uint32_t)gcoll_size(world)};

	j.state = mmap(
		NULL, sizeof(*j.state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (j.state == MAP_FAILED)
		die("mmap");
	memcpy(j.secret, secret, sizeof(secret));
	junk_pid = junk_start(&j);
	if (junk_pid < 0)
		die("strangers");
	explicit_bzero(&j.secret, sizeof(j.secret));
	return j.state;
}

static void tell(const char *what, double *speeds, double *costs, unsigned n)
{
	double speed = gci_median(speeds, n);

	printf("with strangers beside %s: %.3f of the speed "
	       "(rounds: %.3f to %.3f), at %.3f times the processor time\n",
		what, speed, speeds[0], speeds[n - 1], gci_median(costs, n));
}

static int report(const struct figures *f, unsigned n, const struct junk_state *s, long most_growth,
	long launcher_growth)
{
	uint64_t made = 0;
	int k;

	for (k = 0; k < JUNK_KINDS; k++)
		made += s->made[k];
	printf("allreduce of %.1f MiB, %d ranks: %.1f a second alone\n",
		(double)options.nbytes / (1 << 20), gcoll_size(world), gci_median(f->alone, n));
	tell("alone", f->beside_alone, f->cost, n);
	tell("decoys", f->beside_decoys, f->cost_decoys, n);
	printf("strangers: %.0f a second, %llu refused:",
		(double)made / n * (double)GCI_NS_PER_S / (double)WINDOW_NS,
		(unsigned long long)s->refused);
	for (k = 0; k < JUNK_KINDS; k++)
		printf(" %s %llu", junk_kinds[k], (unsigned long long)s->made[k]);
	printf("\n");
	printf("grown meanwhile: a rank by %ld KiB, the launcher by %ld KiB\n", most_growth >> 10,
		launcher_growth >> 10);
	return options.check && (gci_median(f->beside_decoys, n) < LEAST_RATIO ||
					most_growth > MOST_GROWTH || launcher_growth > MOST_GROWTH);
}

static void one_round(int rank, struct junk_state *state, const struct figures *f, unsigned i)
{
	double speed[JUNK_AT_JOB + 1], cpu[JUNK_AT_JOB + 1];
	int at;

	for (at = JUNK_NOWHERE; at <= JUNK_AT_JOB; at++) {
		if (!rank)
			state->at = at;
		speed[at] = window(rank, &cpu[at]);
		if (!rank)
			state->at = JUNK_NOWHERE;
	}
	f->alone[i] = speed[JUNK_NOWHERE];
	f->beside_alone[i] = speed[JUNK_AT_JOB] / speed[JUNK_NOWHERE];
	f->cost[i] = cpu[JUNK_AT_JOB] / cpu[JUNK_NOWHERE];
	f->beside_decoys[i] = speed[JUNK_AT_JOB] / speed[JUNK_AT_DECOYS];
	f->cost_decoys[i] = cpu[JUNK_AT_JOB] / cpu[JUNK_AT_DECOYS];
}

static int measure(int rank, const uint16_t *ports, unsigned nports)
{
	unsigned n = options.rounds, i;
	double *numbers = calloc(n, 5 * sizeof(*numbers)), cpu;
	const struct figures f = {
		numbers, numbers + n, numbers + 2 * n, numbers + 3 * n, numbers + 4 * n};
	pid_t launcher = parent_of(getppid());
	struct junk_state *state = rank ? NULL : start_junk(ports, nports);
	int64_t growth, most;
	long before, launcher_before;
	int rc = 0;

	if (!numbers)
		die("memory");
	if (!rank)
		use_processors(launcher);
	for (i = 0; i < WARMUP; i++)
		window(rank, &cpu);
	before = resident_nbytes(getpid());
	launcher_before = resident_nbytes(launcher);
	for (i = 0; i < n; i++)
		one_round(rank, state, &f, i);
	growth = resident_nbytes(getpid()) - before;
	must(gcoll_allreduce(&growth, &most, 1, GCOLL_INT64, GCOLL_MAX, world));
	if (!rank) {
		rc = report(&f, n, state, (long)most, resident_nbytes(launcher) - launcher_before);
		kill(junk_pid, SIGKILL);
		waitpid(junk_pid, NULL, 0);
	}
	free(numbers);
	return rc;
}

int main(int argc, char **argv)
{
	const char *launcher = getenv("GRIDCOLL_RENDEZVOUS");
	uint16_t *ports, mine;
	int size, rank, rc;

	read_options(argc, argv);
	read_secret();
	use_processors(0);
	must(gcoll_init(&world));
	rank = gcoll_rank(world);
	size = gcoll_size(world);
	ports = calloc((size_t)size + 1, sizeof(*ports));
	vector = calloc(1, options.nbytes);
	if (!ports || !vector || size < 2)
		die("at least two ranks, and memory");
	mine = own_port();
	must(gcoll_allgather(&mine, ports, 1, GCOLL_UINT16, world));
	ports[size] = (uint16_t)atoi(strrchr(launcher, ':') + 1);
	rc = measure(rank, ports, (unsigned)size + 1);
	explicit_bzero(secret, sizeof(secret));
	gcoll_finalize(world);
	free(ports);
	free(vector);
	return rc;
}
