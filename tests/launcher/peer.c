/* SPDX-License-Identifier: MIT
 * A rank that speaks the control protocol by hand, and misbehaves as told.
 *
 *	peer MODE [RANK=MODE ...]
 *
 * Other arguments are ignored. See the table at the end for the modes. What it learns goes to
 * standard output. */
#include "base/clock.h"
#include "base/units.h"
#include "collectives/coll.h"
#include "job/control_io.h"
#include "transport/control.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint32_t rank;
static uint8_t secret[GCI_SECRET_NBYTES];
static struct gci_control_io ctl;
static struct gci_buf in;
static uint64_t other_schedules;
static volatile sig_atomic_t told;

static void die(const char *what)
{
	fprintf(stderr, "peer %u: %s: %s\n", rank, what, strerror(errno));
	exit(99);
}

static const char *need(const char *name)
{
	const char *s = getenv(name);

	if (!s)
		die(name);
	return s;
}

static void read_secret(void)
{
	int fd = atoi(need("GRIDCOLL_SECRET_FD"));
	char more;

	if (read(fd, secret, sizeof(secret)) != sizeof(secret) || read(fd, &more, 1) != 0)
		die("secret");
	close(fd);
}

static void send_all(struct gci_buf *b)
{
	if (b->failed || gci_control_io_send(&ctl, b->data, b->len, 0) != (ssize_t)b->len)
		die("send");
	gci_buf_free(b);
}

static void send_plain(enum gci_ctl_type type)
{
	struct gci_buf b = {0};

	if (type == GCI_CTL_BEAT)
		gci_ctl_put_got(&b, type, 0);
	else
		gci_ctl_put_plain(&b, type);
	send_all(&b);
}

static void dial(void)
{
	const char *tls = getenv("GRIDCOLL_CONTROL_TLS"); /* not set: nobody of gridcoll-run's */
	char ip[GCI_ADDRESS_TEXT];
	struct gci_error e = {0};

	if (gci_control_io_open(&ctl, need("GRIDCOLL_RENDEZVOUS"), ip, &e))
		die(e.text);
	if ((!tls || *tls == '1') && gci_control_io_secure(&ctl, secret, rank,
					     (uint32_t)atoi(need("GRIDCOLL_SIZE")), &e))
		die(e.text);
}

static void hello(void)
{
	struct gci_ctl_hello m = {.version = GCI_CTL_VERSION,
		.rank = rank,
		.host = "peer",
		.release = "0.0.1",
		.schedules = gci_build.schedules ^ other_schedules,
		.big_endian = gci_build.big_endian};
	struct gci_address self = {.len = sizeof(self.v6)};
	struct gci_buf b = {0};

	getsockname(ctl.fd, &self.any, &self.len);
	m.reach = gci_reach_of(&self);
	m.reach.port = (uint16_t)(40000 + rank % 1000);
	if (gci_ctl_token(secret, rank, m.token))
		die("token");
	gci_ctl_put_hello(&b, &m);
	send_all(&b);
}

/* Beats until a message of `type` comes, or SIGUSR1 with `type` 0. */
static void await(enum gci_ctl_type type, struct gci_ctl_message *m)
{
	struct gci_error e = {0};
	char bytes[4096];
	size_t had;
	ssize_t n;
	int rc;

	for (;;) {
		struct pollfd p = {.fd = ctl.fd, .events = POLLIN};

		while ((rc = gci_ctl_get(&in, GCI_CTL_MAX_MESSAGE, m, &e)) == 1) {
			if (m->type == type)
				return;
			if (m->type == GCI_CTL_ABORT) {
				printf("aborted: %s\n", m->failure.text);
				exit(1);
			}
			gci_ctl_message_free(m);
		}
		if (rc < 0)
			die(e.text);
		if (!type && told)
			return;
		if (poll(&p, 1, 100) <= 0) {
			send_plain(GCI_CTL_BEAT);
			continue;
		}
		had = in.len;
		while ((n = gci_control_io_recv(&ctl, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
			gci_buf_put(&in, bytes, (size_t)n);
		if (in.len == had && (!n || errno != EAGAIN))
			die("the launcher hung up");
	}
}

static void join(void)
{
	char text[GCI_REACH_TEXT];
	struct gci_ctl_message m;

	dial();
	hello();
	await(GCI_CTL_START, &m);
	printf("size %u host %u addr %s dead %llu\n", m.start.size, m.start.ranks[rank].host,
		gci_reach_format(&m.start.ranks[rank].reach, text),
		(unsigned long long)(m.start.dead_ns / GCI_NS_PER_MS));
	fflush(stdout);
	gci_ctl_message_free(&m);
}

static int leave(void)
{
	struct gci_ctl_message m;

	send_plain(GCI_CTL_BYE);
	await(GCI_CTL_BYE, &m);
	gci_control_io_close(&ctl); /* as the library does: its process may end later */
	return 0;
}

static int ok(void)
{
	join();
	return leave();
}

/* As a library that was built of other sources. */
static int other(void)
{
	other_schedules = 1;
	return ok();
}

static int stay(void)
{
	struct gci_ctl_message m;

	join();
	await(GCI_CTL_ABORT, &m);
	printf("aborted: %s\n", m.failure.text);
	return 1;
}

/* Deaf to everything but SIGKILL. */
static int stubborn(void)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	join();
	for (;;) {
		send_plain(GCI_CTL_BEAT);
		gci_sleep_ns(100 * GCI_NS_PER_MS);
	}
	return 0;
}

static int killed(void)
{
	join();
	gci_sleep_ns(100 * GCI_NS_PER_MS);
	raise(SIGKILL);
	return 0;
}

static int fail_with(int about, const char *text)
{
	struct gci_ctl_failure f = {.status = GCOLL_ERR_IO, .rank = about};
	struct gci_buf b = {0};

	join();
	snprintf(f.text, sizeof(f.text), "%s", text);
	gci_ctl_put_failure(&b, GCI_CTL_FAIL, &f);
	send_all(&b);
	return 3;
}

static int fail(void)
{
	return fail_with((int)rank, "cannot write /there: No space left on device");
}

static int blame(void)
{
	return fail_with(0, "the connection was lost");
}

static int mute(void)
{
	join();
	for (;;)
		pause();
	return 0;
}

static int desert(void)
{
	join();
	return 0;
}

static int absent(void)
{
	return 0;
}

static int late(void)
{
	for (;;)
		pause();
	return 0;
}

static void on_told(int sig)
{
	(void)sig;
	told = 1;
}

/* Until SIGUSR1. */
static int linger(void)
{
	struct gci_ctl_message m;

	signal(SIGUSR1, on_told);
	join();
	await(0, &m);
	return leave();
}

static int holds_secret(const char *pid, const char *file)
{
	static char text[1 << 20];
	char path[300], hex[2 * GCI_SECRET_NBYTES + 1];
	size_t n = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	while (n < sizeof(text) && (got = read(fd, text + n, sizeof(text) - n)) > 0)
		n += (size_t)got;
	close(fd);
	gci_format_hex(secret, GCI_SECRET_NBYTES, hex);
	return memmem(text, n, secret, 16) || memmem(text, n, hex, 32);
}

/* Looks for the secret where other users could see it. */
static int spy(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int seen = 0, looked = 0;

	while (dir && (d = readdir(dir))) {
		if (atoi(d->d_name) <= 0)
			continue;
		looked++;
		seen += holds_secret(d->d_name, "cmdline") + holds_secret(d->d_name, "environ");
	}
	if (dir)
		closedir(dir);
	printf("secret seen %d times%s\n", seen, looked > 1 ? "" : " (nowhere to look)");
	return ok();
}

#define MOST_SOUGHT 32

/* In [lo, hi) of another process's memory. */
static int count_in(int mem, unsigned long lo, unsigned long hi, const void *what, size_t len)
{
	static uint8_t bytes[(1 << 20) + MOST_SOUGHT];
	size_t kept = 0;
	int n = 0;

	while (lo < hi) {
		size_t want = hi - lo < 1 << 20 ? hi - lo : 1 << 20;
		ssize_t got = pread(mem, bytes + kept, want, (off_t)lo);
		uint8_t *p = bytes, *end;

		if (got <= 0)
			break;
		end = bytes + kept + got;
		while ((p = memmem(p, (size_t)(end - p), what, len)) != NULL) {
			n++;
			p++;
		}
		kept = (size_t)(end - bytes);
		kept = kept < len - 1 ? kept : len - 1; /* of one cut in two */
		memmove(bytes, end - kept, kept);
		lo += (unsigned long)got;
	}
	return n;
}

/* Looks for the secret in the memory of the agent, which needs it no more; and for its arguments,
 * which show that it was looked into. */
static int dig(void)
{
	static const char argv[] = "/proc/self/exe\0--agent";
	unsigned long lo, hi;
	char path[64], line[512], rights[8];
	int mem, n = 0, seen = 0;
	FILE *maps;

	join();
	snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
	mem = open(path, O_RDONLY);
	snprintf(path, sizeof(path), "/proc/%d/maps", getppid());
	maps = fopen(path, "r");
	while (mem >= 0 && maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &lo, &hi, rights) == 3 && rights[1] == 'w' &&
			hi - lo < 1ul << 30) {
			n += count_in(mem, lo, hi, secret, 16);
			seen += count_in(mem, lo, hi, argv, sizeof(argv));
		}
	if (mem >= 0 && maps)
		printf("secret found %d times, arguments %s\n", n, seen ? "too" : "not");
	else
		printf("nowhere to look\n");
	return leave();
}

static const struct {
	const char *name;
	int (*run)(void);
} modes[] = {
	{"ok", ok},             /* joins and leaves */
	{"other", other},       /* the same, with other schedules */
	{"stay", stay},         /* until ABORT */
	{"stubborn", stubborn}, /* until SIGKILL */
	{"linger", linger},     /* until SIGUSR1 */
	{"killed", killed},     /* by SIGKILL */
	{"fail", fail},         /* FAIL about itself, exit 3 */
	{"blame", blame},       /* FAIL about rank 0, exit 3 */
	{"mute", mute},         /* no heartbeats */
	{"desert", desert},     /* exit 0 without BYE */
	{"absent", absent},     /* exit 0 without HELLO */
	{"late", late},         /* never HELLO, never ends */
	{"spy", spy},           /* looks for the secret */
	{"dig", dig},           /* ... in the agent's memory */
};

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	size_t k;
	int i;

	rank = (uint32_t)atoi(need("GRIDCOLL_RANK"));
	for (i = 2; i < argc; i++) {
		char *end;

		if (strtoul(argv[i], &end, 10) == rank && *end == '=')
			mode = end + 1;
	}
	read_secret();
	for (k = 0; k < sizeof(modes) / sizeof(*modes); k++)
		if (!strcmp(modes[k].name, mode))
			return modes[k].run();
	fprintf(stderr, "peer: unknown mode \"%s\"\n", mode);
	return 99;
}
