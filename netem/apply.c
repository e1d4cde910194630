/* SPDX-License-Identifier: MIT */
#include "netem/apply.h"

#include "base/clock.h"
#include "base/mem.h"
#include "netem/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Running ip and tc. */

static int write_all(int fd, const char *s)
{
	size_t len = strlen(s);

	while (len) {
		ssize_t n = write(fd, s, len);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			s += n;
			len -= (size_t)n;
		}
	}
	return lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

/* Users' PATHs often lack the directories where ip and tc are. */
static void exec_tool(const char *const *argv)
{
	static const char *const dirs[] = {"/usr/sbin", "/sbin", "/usr/local/sbin"};
	char path[256];
	size_t i;

	execvp(argv[0], (char *const *)argv);
	for (i = 0; errno == ENOENT && i < sizeof(dirs) / sizeof(*dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], argv[0]);
		execv(path, (char *const *)argv);
	}
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Reads what the tool says; the first line of it stays in `text`. */
static void first_line(int fd, char *text, size_t size)
{
	size_t len = 0;
	char rest[256];
	ssize_t n;

	for (;;) {
		n = len < size - 1 ? read(fd, text + len, size - 1 - len)
				   : read(fd, rest, sizeof(rest));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (len < size - 1)
			len += (size_t)n;
	}
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* "Command failed -:12" tells the line. */
static int failing_line(const char *says, const char *input, char *out, size_t size)
{
	int number;
	const char *at = strstr(says, "-:");

	if (!at || !input || sscanf(at, "-:%d", &number) != 1)
		return 0;
	while (--number > 0 && (input = strchr(input, '\n')))
		input++;
	if (!input)
		return 0;
	snprintf(out, size, "%.*s", (int)strcspn(input, "\n"), input);
	return 1;
}

int gci_lab_tool_run(const char *const *argv, const char *input, struct gci_error *e)
{
	char says[2048], line[200] = "";
	int in = -1, err[2] = {-1, -1}, status = 0;
	pid_t pid;

	in = input ? memfd_create("gridcoll-batch", MFD_CLOEXEC) : open("/dev/null", O_RDONLY);
	if (in < 0 || (input && write_all(in, input)) || pipe2(err, O_CLOEXEC)) {
		gci_error_errno(e, "cannot run %s", argv[0]);
		if (in >= 0)
			close(in);
		return GCOLL_ERR_SYS;
	}
	pid = fork();
	if (!pid) {
		dup2(in, 0);
		dup2(err[1], 1);
		dup2(err[1], 2);
		exec_tool(argv);
	}
	close(in);
	close(err[1]);
	if (pid < 0) {
		close(err[0]);
		return gci_error_errno(e, "cannot run %s", argv[0]);
	}
	first_line(err[0], says, sizeof(says));
	close(err[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (failing_line(says, input, line, sizeof(line)))
		return gci_error_set(e, GCOLL_ERR_SYS, "%s %s: failed", argv[0], line);
	return gci_error_set(
		e, GCOLL_ERR_SYS, "%s: %s", argv[0], *says ? says : "failed without a word");
}

/* ---- Waiting for a lab to forward: one ICMP echo per host and per pair of clusters, repeated until all
 * have been answered. */

struct probe {
	const struct gci_lab_host *from;
	const char *to;
	int fd;
	int answered;
};

static uint16_t checksum(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static int open_probe(
	struct probe *p, const struct gci_lab_host *from, const char *to, struct gci_error *e)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	int home = gci_netns_open(NULL, e);
	int rc;

	p->from = from;
	p->to = to;
	p->fd = -1;
	if (home < 0)
		return GCOLL_ERR_SYS;
	rc = gci_netns_enter(from->netns, e);
	if (!rc)
		p->fd = socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMP);
	gci_netns_leave(home);
	inet_pton(AF_INET, to, &sin.sin_addr);
	if (!rc && (p->fd < 0 || connect(p->fd, (struct sockaddr *)&sin, sizeof(sin))))
		rc = gci_error_errno(e, "cannot ping %s from %s", to, from->name);
	return rc;
}

static void send_echo(const struct probe *p)
{
	struct icmphdr h = {.type = ICMP_ECHO};

	h.un.echo.id = htons((uint16_t)getpid());
	h.checksum = checksum(&h, sizeof(h));
	/* Not reachable yet is what we wait out. */
	(void)!send(p->fd, &h, sizeof(h), MSG_NOSIGNAL);
}

static void hear(struct probe *p)
{
	uint8_t packet[256];
	ssize_t n;

	/* Connected: only the other end's packets, each with its IP header in front. */
	while ((n = recv(p->fd, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		size_t header = (size_t)(packet[0] & 15) * 4;

		if ((size_t)n > header && packet[header] == ICMP_ECHOREPLY)
			p->answered = 1;
	}
}

/* The probes: each host to its router; the first host of each cluster to that of each other. */
static int open_all(
	const struct gci_lab_plan *plan, struct probe *probes, int *n, struct gci_error *e)
{
	int i, j, rc = 0;

	for (i = 0; i < plan->nhosts && !rc; i++)
		rc = open_probe(&probes[(*n)++], &plan->hosts[i], plan->hosts[i].gateway, e);
	for (i = 0; i < plan->nhosts && !rc; i++) {
		if (i && plan->hosts[i].cluster == plan->hosts[i - 1].cluster)
			continue;
		for (j = 0; j < plan->nhosts && !rc; j++)
			if (plan->hosts[j].cluster != plan->hosts[i].cluster &&
				(!j || plan->hosts[j].cluster != plan->hosts[j - 1].cluster))
				rc = open_probe(
					&probes[(*n)++], &plan->hosts[i], plan->hosts[j].addr, e);
	}
	return rc;
}

static int wait_all(struct probe *probes, int n, uint64_t timeout_ns, struct gci_error *e)
{
	const uint64_t repeat_ns = 100 * GCI_NS_PER_MS;
	uint64_t start = gci_now_ns(), sent = 0, now;
	int i, missing;

	for (;;) {
		now = gci_now_ns();
		for (i = 0; i < n; i++)
			hear(&probes[i]);
		for (i = 0, missing = -1; i < n; i++) {
			if (probes[i].answered)
				continue;
			missing = i;
			if (!sent || now - sent >= repeat_ns)
				send_echo(&probes[i]);
		}
		if (missing < 0)
			return 0;
		if (now - start > timeout_ns)
			return gci_error_set(e, GCOLL_ERR_TIMEOUT,
				"host %s gets no answer from %s over the lab's network",
				probes[missing].from->name, probes[missing].to);
		if (!sent || now - sent >= repeat_ns)
			sent = now;
		gci_sleep_ns(2 * GCI_NS_PER_MS);
	}
}

int gci_lab_wait(const struct gci_lab_plan *plan, uint64_t timeout_ns, struct gci_error *e)
{
	int clusters = plan->hosts[plan->nhosts - 1].cluster + 1;
	struct probe *probes =
		gci_calloc((size_t)plan->nhosts + (size_t)(clusters * clusters), sizeof(*probes));
	int i, n = 0, rc;

	if (!probes)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	rc = open_all(plan, probes, &n, e);
	if (!rc)
		rc = wait_all(probes, n, timeout_ns, e);
	for (i = 0; i < n; i++)
		if (probes[i].fd >= 0)
			close(probes[i].fd);
	gci_free(probes);
	return rc;
}

/* ---- Doing what a plan says. */

/* "net.ipv4.tcp_rmem 4096 131072 33554432": /proc/sys/net shows the namespace we are in. A key that
 * this kernel lacks (IPv6 switched off) is passed over. */
static int set_sysctl(const char *line, size_t len, struct gci_error *e)
{
	char path[512] = "/proc/sys/", *p;
	size_t key = strcspn(line, " ");
	int fd, rc = 0;

	if (key + 11 > sizeof(path) || key >= len)
		return gci_error_set(e, GCOLL_ERR_INVAL, "bad sysctl line");
	memcpy(path + 10, line, key);
	path[10 + key] = '\0';
	for (p = path + 10; *p; p++)
		if (*p == '.')
			*p = '/';
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : gci_error_errno(e, "%s", path);
	if (write(fd, line + key + 1, len - key - 1) < 0)
		rc = gci_error_errno(e, "%.*s", (int)len, line);
	close(fd);
	return rc;
}

static int set_sysctls(const char *lines, struct gci_error *e)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");
		int rc = len ? set_sysctl(lines, len, e) : 0;

		if (rc)
			return rc;
		lines += len + (lines[len] == '\n');
	}
	return 0;
}

static int do_step(const struct gci_lab_step *s, struct gci_error *e)
{
	const char *argv[] = {s->tool == GCI_LAB_IP ? "ip" : "tc", "-batch", "-", NULL};

	if (s->tool == GCI_LAB_SYSCTL)
		return set_sysctls(s->lines, e);
	return gci_lab_tool_run(argv, s->lines, e);
}

int gci_lab_has_cubic(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
	char list[256] = "";

	if (!f)
		return 0;
	if (!fgets(list, sizeof(list), f))
		list[0] = '\0';
	fclose(f);
	return strstr(list, "cubic") != NULL;
}

int gci_lab_apply(const struct gci_lab_plan *plan, struct gci_error *e)
{
	struct gci_error why = {0};
	int home = gci_netns_open(NULL, e);
	size_t i;
	int rc = 0;

	if (home < 0)
		return GCOLL_ERR_SYS;
	for (i = 0; i < plan->nsteps && !rc; i++) {
		const struct gci_lab_step *s = &plan->steps[i];
		int back = s->netns ? dup(home) : -1;

		if (s->netns)
			rc = gci_netns_enter(s->netns, &why);
		if (!rc)
			rc = do_step(s, &why);
		if (back >= 0)
			gci_netns_leave(back);
		if (rc)
			gci_error_set(e, rc, "%s%s%s", s->netns ? s->netns : "",
				s->netns ? ": " : "", why.text);
	}
	close(home);
	return rc;
}
