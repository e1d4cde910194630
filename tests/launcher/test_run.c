/* SPDX-License-Identifier: MIT
 * gridcoll-run on this machine, jobs that go well: output, input, signals, arguments. */

#include "tests/harness.h"

#include "base/clock.h"
#include "base/prng.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void lines_get_a_prefix(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "4", "--", "sh", "-c",
		"echo out $GRIDCOLL_RANK of $GRIDCOLL_SIZE; printf 'err' >&2", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(sorted(job_out(&j)), "[0] out 0 of 4\n[1] out 1 of 4\n"
						 "[2] out 2 of 4\n[3] out 3 of 4\n");
	assert_string_equal(sorted(job_err(&j)), "[0] err\n[1] err\n[2] err\n[3] err\n");
	job_free(&j);
}

static void no_prefix(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "--quiet-prefix", "-n", "3", "echo", "same", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_out(&j), "same\nsame\nsame\n");
	job_free(&j);
}

static void many_ranks(void **state)
{
	struct job j = {0};
	const char *p;
	int n = 0;

	(void)state;
	/* As long as 64 processes take to begin. */
	job_start(&j, NULL, "--start-timeout", "3600s", "-n", "64", peer(), "ok", NULL);
	if (job_wait(&j))
		fail_msg("%s", job_err(&j));
	for (p = job_out(&j); (p = strstr(p, "size 64 host ")); p++)
		n++;
	assert_int_equal(n, 64);
	assert_non_null(strstr(job_out(&j), "[63] size 64 host 63 addr 127.0.0.1:40063"));
	assert_string_equal(job_err(&j), "");
	job_free(&j);
}

/* A file of noise, removed by the caller. */
static void make_noise(char *path, size_t nbytes)
{
	struct gci_prng prng = {.state = 7};
	int fd = mkstemp(path);
	size_t i;

	assert_true(fd >= 0);
	for (i = 0; i < nbytes; i += 8) {
		uint64_t v = gci_prng_next(&prng);

		assert_int_equal(write(fd, &v, 8), 8);
	}
	close(fd);
}

static void input_reaches_rank_0(void **state)
{
	char path[] = "/tmp/gridcoll-test-XXXXXX";
	struct gci_prng prng = {.state = 7};
	struct job j = {0};
	size_t i;

	(void)state;
	make_noise(path, 10 << 20);
	job_start(&j, path, "--quiet-prefix", "-n", "3", "cat", NULL);
	assert_int_equal(job_wait(&j), 0);
	job_out(&j);
	assert_true(j.out_text.len == 10 << 20);
	for (i = 0; i < j.out_text.len; i += 8)
		assert_true(gci_load_u64(j.out_text.data + i) == gci_prng_next(&prng));
	unlink(path);
	job_free(&j);
}

static void input_that_nobody_wants(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, "/dev/zero", "-n", "2", "sh", "-c", "exec <&-; sleep 0.2; echo done", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(sorted(job_out(&j)), "[0] done\n[1] done\n");
	job_free(&j);
}

static void closing_output_is_not_the_end(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "2", "sh", "-c",
		"echo a; exec >&-; sleep 0.2; echo end >&2; exit 0", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(sorted(job_out(&j)), "[0] a\n[1] a\n");
	assert_string_equal(sorted(job_err(&j)), "[0] end\n[1] end\n");
	job_free(&j);
}

/* Each line whole, in its rank's order, however they come. */
static void lines_stay_whole(void **state)
{
	struct job j = {0};
	char want[64], *line, *save, *copy;
	unsigned next[4] = {0}, r;

	(void)state;
	job_start(&j, NULL, "-n", "4", "sh", "-c",
		"i=0; while [ $i -lt 2000 ]; do printf 'r%d ' $GRIDCOLL_RANK; echo line $i; "
		"i=$((i+1)); done",
		NULL);
	assert_int_equal(job_wait(&j), 0);
	copy = strdup(job_out(&j));
	for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		assert_int_equal(sscanf(line, "[%u]", &r), 1);
		assert_true(r < 4);
		snprintf(want, sizeof(want), "[%u] r%u line %u", r, r, next[r]++);
		assert_string_equal(line, want);
	}
	for (r = 0; r < 4; r++)
		assert_int_equal(next[r], 2000);
	free(copy);
	job_free(&j);
}

static long peak_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* Nobody reads: the ranks wait, memory does not grow; then all of it arrives. */
static void slow_reader(void **state)
{
	struct job j = {0};
	char bytes[65536];
	long before, after;
	size_t total = 0;
	ssize_t n;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	j.keep_out = fds[1];
	job_start(&j, NULL, "--quiet-prefix", "-n", "2", "sh", "-c",
		"yes 'some line' | head -c 60000000", NULL);
	close(fds[1]);
	gci_sleep_ns(300 * GCI_NS_PER_MS);
	before = peak_kib(j.pid);
	gci_sleep_ns(700 * GCI_NS_PER_MS);
	after = peak_kib(j.pid);
	assert_true(before > 0);
	assert_true(after - before < 20 << 10);
	while ((n = read(fds[0], bytes, sizeof(bytes))) > 0)
		total += (size_t)n;
	close(fds[0]);
	assert_int_equal(job_wait(&j), 0);
	assert_true(total == 120000000);
	job_free(&j);
}

static void reader_that_goes(void **state)
{
	struct job j = {0};
	char line[16];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	j.keep_out = fds[1];
	job_start(&j, NULL, "-n", "2", "yes", NULL);
	close(fds[1]);
	assert_true(read(fds[0], line, sizeof(line)) > 0);
	close(fds[0]);
	assert_int_equal(job_wait(&j), 128 + SIGPIPE);
	job_free(&j);
}

/* A full disk is our own failure: no rank is blamed, whether they have ended or go on. */
static void output_that_is_lost(void **state)
{
	static const char *const commands[] = {"echo hi", "yes", "echo hi; exec sleep 9999"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		struct job j = {.keep_out = open("/dev/full", O_WRONLY | O_CLOEXEC)};

		assert_true(j.keep_out > 0);
		job_start(&j, NULL, "-n", "3", "sh", "-c", commands[i], NULL);
		close(j.keep_out);
		assert_int_equal(job_wait(&j), 1);
		assert_string_equal(
			job_err(&j), "gridcoll-run: standard output: No space left on device\n");
		job_free(&j);
	}
	/* So is one that is closed, but nobody misses what is not printed. */
	assert_int_equal(
		WEXITSTATUS(run_shell("%s -n 2 echo hi >&- 2>&-", env_path("GRIDCOLL_RUN"))), 1);
	assert_int_equal(run_shell("%s -n 2 true >&-", env_path("GRIDCOLL_RUN")), 0);
	assert_int_equal(run_shell("%s -n 2 true <&- >&- 2>&-", env_path("GRIDCOLL_RUN")), 0);
}

static void signals_are_forwarded(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "3", "sh", "-c",
		"trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.05; done", NULL);
	job_await(&j, "[0] ready");
	job_await(&j, "[1] ready");
	job_await(&j, "[2] ready");
	kill(j.pid, SIGUSR1);
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(sorted(job_out(&j)),
		"[0] got\n[0] ready\n[1] got\n[1] ready\n[2] got\n[2] ready\n");
	job_free(&j);
}

static void told_to_end(int sig, const char *name)
{
	struct job j = {0};
	char want[80];

	signal(sig, SIG_DFL); /* under nohup SIGHUP is ignored, and by gridcoll-run, too */
	job_start(&j, NULL, "-n", "2", "sleep", long_sleep(), NULL);
	await_processes(long_sleep(), 3);
	kill(j.pid, sig);
	assert_int_equal(job_wait(&j), 128 + sig);
	snprintf(want, sizeof(want), "gridcoll-run: told to end (%s), as were all ranks\n", name);
	assert_string_equal(job_err(&j), want);
	assert_int_equal(processes(long_sleep()), 0);
	job_free(&j);
}

static void terminated(void **state)
{
	(void)state;
	told_to_end(SIGTERM, "Terminated");
	told_to_end(SIGHUP, "Hangup");
}

static void second_interrupt_kills(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "2", "sh", "-c",
		"trap 'echo no' INT; echo ready; while :; do sleep 0.05; done", NULL);
	job_await(&j, "[0] ready");
	job_await(&j, "[1] ready");
	kill(j.pid, SIGINT);
	job_await(&j, "[0] no");
	kill(j.pid, SIGINT);
	assert_int_equal(job_wait(&j), 128 + SIGINT);
	assert_string_equal(job_err(&j), "gridcoll-run: interrupted twice, all ranks killed\n");
	job_free(&j);
}

/* Stopped ranks too, and those that do not listen: by the second order at the latest. */
static void termination_reaches_all(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "2", "sh", "-c", "echo ready; kill -STOP $$; sleep 1000", NULL);
	job_await(&j, "[0] ready");
	job_await(&j, "[1] ready");
	kill(j.pid, SIGTERM);
	assert_int_equal(job_wait(&j), 128 + SIGTERM);
	job_free(&j);
	j = (struct job){0};
	job_start(&j, NULL, "-n", "2", "sh", "-c",
		"trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done", NULL);
	job_await(&j, "[0] ready");
	job_await(&j, "[1] ready");
	kill(j.pid, SIGTERM);
	job_await(&j, "[0] no");
	kill(j.pid, SIGTERM);
	assert_int_equal(job_wait(&j), 128 + SIGTERM);
	job_free(&j);
}

/* Connects to the control port and says `text`. */
static int stranger(const char *where, const char *text)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_port = htons((uint16_t)atoi(strchr(where, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	if (*text)
		assert_true(send(fd, text, strlen(text), MSG_NOSIGNAL) > 0);
	return fd;
}

static void strangers_on_the_control_port(void **state)
{
	struct job j = {0};
	char command[600], byte;
	int fds[100], i;

	(void)state;
	snprintf(command, sizeof(command), "echo at $GRIDCOLL_RENDEZVOUS; exec %s linger", peer());
	job_start(&j, NULL, "-n", "3", "sh", "-c", command, NULL);
	job_await(&j, "[0] size 3");
	for (i = 0; i < 100; i++)
		fds[i] = stranger(strstr(job_out(&j), "at "),
			i % 3 ? "" : "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(read(fds[0], &byte, 1) <= 0); /* turned away, told nothing */
	job_await(&j, "[1] size 3");
	job_await(&j, "[2] size 3");
	kill(j.pid, SIGUSR1);
	assert_int_equal(job_wait(&j), 0);
	for (i = 0; i < 100; i++)
		close(fds[i]);
	assert_string_equal(job_err(&j), "");
	job_free(&j);
}

static void secret_is_not_to_be_seen(void **state)
{
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "2", peer(), "spy", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "[0] secret seen 0 times\n"));
	assert_non_null(strstr(job_out(&j), "[1] secret seen 0 times\n"));
	job_free(&j);
	memset(&j, 0, sizeof(j));
	job_start(&j, NULL, "-n", "2", peer(), "ok", "1=dig", NULL);
	assert_int_equal(job_wait(&j), 0);
	if (!strstr(job_out(&j), "nowhere to look"))
		assert_non_null(strstr(job_out(&j), "[1] secret found 0 times, arguments too\n"));
	job_free(&j);
}

/* On a terminal progress lines pass without prefix, and whole lines wipe them. */
static void progress_on_a_terminal(void **state)
{
	char text[4096] = "";
	size_t at = 0;
	ssize_t n;
	int master, status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = forkpty(&master, NULL, NULL, NULL);
	if (pid < 0) { /* a container without /dev/pts */
		print_message("no pseudo-terminal: %s\n", strerror(errno));
		skip();
	}
	if (!pid) {
		execl(env_path("GRIDCOLL_RUN"), "gridcoll-run", "-n", "1", "sh", "-c",
			"printf \"50%% $GRIDCOLL_PROGRESS\\r\" >&2; sleep 0.1; echo end >&2", NULL);
		_exit(99);
	}
	while (at < sizeof(text) - 1 && (n = read(master, text + at, sizeof(text) - 1 - at)) > 0)
		at += (size_t)n;
	close(master);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_string_equal(text, "50% 1\r\033[K[0] end\r\n");
}

static void no_terminal_no_progress(void **state)
{
	struct job j = {0};

	(void)state;
	setenv("GRIDCOLL_PROGRESS", "1", 1);
	job_start(&j, NULL, "-n", "1", "sh", "-c", "echo \"<$GRIDCOLL_PROGRESS>\"", NULL);
	unsetenv("GRIDCOLL_PROGRESS");
	assert_int_equal(job_wait(&j), 0);
	assert_string_equal(job_out(&j), "[0] <>\n");
	job_free(&j);
}

static void timers_and_ports(void **state)
{
	struct job j = {0};
	char command[600], path[8];
	unsigned port;

	(void)state;
	snprintf(command, sizeof(command),
		"echo ports $GRIDCOLL_PORT_RANGE at $GRIDCOLL_RENDEZVOUS $GRIDCOLL_DATA_PATH; "
		"exec %s ok",
		peer());
	job_start(&j, NULL, "-n", "2", "--timers", "fast", "--port-range", "28000-29999",
		"--data-path", "uring", "sh", "-c", command, NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "dead 4000"));
	assert_int_equal(sscanf(strstr(job_out(&j), "ports"),
				 "ports 28000-29999 at 127.0.0.1:%u %7s", &port, path),
		2);
	assert_string_equal(path, "uring");
	assert_in_range(port, 28000, 29999);
	job_free(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_get_a_prefix),
		cmocka_unit_test(no_prefix),
		cmocka_unit_test(many_ranks),
		cmocka_unit_test(input_reaches_rank_0),
		cmocka_unit_test(input_that_nobody_wants),
		cmocka_unit_test(closing_output_is_not_the_end),
		cmocka_unit_test(lines_stay_whole),
		cmocka_unit_test(slow_reader),
		cmocka_unit_test(reader_that_goes),
		cmocka_unit_test(output_that_is_lost),
		cmocka_unit_test(signals_are_forwarded),
		cmocka_unit_test(terminated),
		cmocka_unit_test(second_interrupt_kills),
		cmocka_unit_test(termination_reaches_all),
		cmocka_unit_test(strangers_on_the_control_port),
		cmocka_unit_test(secret_is_not_to_be_seen),
		cmocka_unit_test(progress_on_a_terminal),
		cmocka_unit_test(no_terminal_no_progress),
		cmocka_unit_test(timers_and_ports),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
