/* SPDX-License-Identifier: MIT */
#include "tests/tools/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pid_t job_pid(struct job *j, int rank)
{
	char line[32];
	pid_t pid;

	snprintf(line, sizeof(line), "[%d] pid ", rank);
	job_await(j, line);
	pid = (pid_t)atoi(strstr(job_out(j), line) + strlen(line));
	assert_true(pid > 1);
	return pid;
}

void assert_one_line(const char *text, const char *begin, const char *end)
{
	size_t len = strlen(text), tail = strlen(end);
	const char *newline = strchr(text, '\n');

	if (!newline || newline[1] || strncmp(text, begin, strlen(begin)) || len < tail + 1 ||
		strncmp(text + len - 1 - tail, end, tail))
		fail_msg("expected one line \"%s...%s\", got:\n%s", begin, end, text);
}

int jobs_teardown(void **state)
{
	jobs_end();
	return scratch_remove(state);
}

const char *two_clusters(void)
{
	const char *path = in_scratch("two.grid");

	make_text(path, "[cluster near]\nhosts = 127.0.0.1\n"
			"[cluster far]\nhosts = 127.0.0.2\n"
			"[link near far]\nrate = 1Gbit\ndelay = 1ms\n");
	return path;
}

void run_job_line(const char *const *argv, int status, const char *begin, const char *end)
{
	struct job j = {0};
	int got;

	job_startv(&j, NULL, argv);
	got = job_wait(&j);
	assert_one_line(job_err(&j), begin, end);
	assert_int_equal(got, status);
	job_free(&j);
}
