/* SPDX-License-Identifier: MIT */
#include "tests/launcher/guests.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

char dir[64], secret[96], other[96], where[128];
struct job service, ranks[MOST_GUESTS];

const char *guest(void)
{
	return env_path("GRIDCOLL_TEST_GUEST");
}

int guests_setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/gridcoll-guests-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(secret, sizeof(secret), "%s/secret", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	return run_shell("umask 077 && $GRIDCOLL_RUN --new-secret >%s && "
			 "$GRIDCOLL_RUN --new-secret >%s",
		secret, other);
}

void forget(struct job *j)
{
	if (j->pid)
		job_free(j);
	memset(j, 0, sizeof(*j));
}

int guests_teardown(void **state)
{
	int i;

	(void)state;
	jobs_end();
	forget(&service);
	for (i = 0; i < MOST_GUESTS; i++)
		forget(&ranks[i]);
	return run_shell("rm -rf %s", dir);
}

void serve_with(const char *const *options)
{
	const char *argv[24] = {
		"--serve", "127.0.0.1:0", "--secret-file", secret, "--timers", "fast"};
	char *line;
	int n = 6;

	while (*options)
		argv[n++] = *options++;
	job_startv(&service, NULL, argv);
	job_await(&service, "\n");
	assert_int_equal(strncmp(job_out(&service), "GRIDCOLL_RENDEZVOUS=", 20), 0);
	snprintf(where, sizeof(where), "%s", job_out(&service) + 20);
	line = strchr(where, '\n');
	*line = '\0';
}

void start(int i, const char *rank, const char *file, const char *const *rest)
{
	const char *argv[24] = {"--join", where, "--secret-file", file, "--rank-from", "TEST_RANK"};
	int n = 6;

	while (*rest)
		argv[n++] = *rest++;
	setenv("TEST_RANK", rank, 1);
	job_startv(&ranks[i], NULL, argv);
	unsetenv("TEST_RANK");
}

void start_all(int n, const char *mode, const char *arg)
{
	char rank[16];
	int i;

	for (i = n - 1; i >= 0; i--) {
		snprintf(rank, sizeof(rank), "%d", i);
		start_rank(i, rank, guest(), mode, arg);
	}
}

void expect(struct job *j, int status, const char *err)
{
	int got = job_wait(j);

	if (got != status || !strstr(job_err(j), err) || (!*err && *job_err(j)))
		fail_msg("status %d, \"%s\": expected %d, \"%s\"", got, job_err(j), status, err);
}

/* Below those that the kernel gives to connections, which any program may be given in between. */
void find_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
	int fd, rc, tries = 0;
	uint16_t some;

	do {
		assert_true(tries++ < 100);
		assert_int_equal(getrandom(&some, sizeof(some), 0), sizeof(some));
		a.sin_port = htons((uint16_t)(10000 + some % 10000));
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd >= 0);
		rc = bind(fd, (struct sockaddr *)&a, sizeof(a));
		close(fd);
	} while (rc);
	snprintf(where, sizeof(where), "localhost:%u", ntohs(a.sin_port));
}

void start_in(int i, const char *rank, const char *host, const char *cluster)
{
	setenv("GRIDCOLL_HOST", host, 1);
	setenv("GRIDCOLL_CLUSTER", cluster, 1);
	start_rank(i, rank, guest(), "sum");
	unsetenv("GRIDCOLL_HOST");
	unsetenv("GRIDCOLL_CLUSTER");
}
