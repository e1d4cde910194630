/* SPDX-License-Identifier: MIT
 * Requests to a running job: what is no request is refused, and named. */
#include "tests/test.h"

#include "base/mem.h"
#include "launcher/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int add(void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	uint64_t n;
	int rc = gci_json_uint(request, "n", 0, 100, &n);

	if (rc)
		return rc;
	if (n == 13)
		return gci_error_set(e, GCOLL_ERR_INVAL, "n = 13, expected luck");
	*(uint64_t *)user += n;
	json_object_set_new(reply, "sum", json_integer((json_int_t) * (uint64_t *)user));
	return 0;
}

static const char *const add_keys[] = {"cmd", "n", NULL};
static const struct gci_jobctl_command commands[] = {{"add", add_keys, add}, {NULL, NULL, NULL}};

static const char *answer(struct gci_buf *out, const char *line, uint64_t *sum)
{
	gci_buf_free(out);
	gci_jobctl_answer(commands, sum, line, strlen(line), out);
	return gci_buf_cstr(out);
}

static void commands_are_run(void **state)
{
	struct gci_buf out = {0};
	uint64_t sum = 0;

	(void)state;
	assert_string_equal(
		answer(&out, "{\"cmd\":\"add\",\"n\":5}", &sum), "{\"ok\":true,\"sum\":5}\n");
	assert_string_equal(answer(&out, " { \"n\" : 7, \"cmd\" : \"add\" } ", &sum),
		"{\"ok\":true,\"sum\":12}\n");
	assert_int_equal(sum, 12);
	gci_buf_free(&out);
}

static void what_is_no_request_is_refused(void **state)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{"", "expected JSON"},
		{"hello", "expected JSON"},
		{"[1]", "expected an object"},
		{"{}", "no cmd, expected"},
		{"{\"cmd\":5}", "cmd = 5, expected"},
		{"{\"cmd\":\"sub\"}", "expected one of add"},
		{"{\"cmd\":\"add\"}", "no n, expected"},
		{"{\"cmd\":\"add\",\"n\":101}", "n = 101, expected a whole number from 0 to 100"},
		{"{\"cmd\":\"add\",\"n\":1,\"m\":2}", "unknown key"},
		{"{\"cmd\":\"add\",\"n\":1,\"n\":2}", "expected JSON"},
		{"{\"cmd\":\"add\",\"n\":13}", "expected luck"},
	};
	struct gci_buf out = {0};
	uint64_t sum = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		json_t *reply = json_loads(answer(&out, bad[i].line, &sum), 0, NULL);

		assert_true(json_is_false(json_object_get(reply, "ok")));
		if (!strstr(json_string_value(json_object_get(reply, "error")), bad[i].says))
			fail_msg("%s: %s", bad[i].line, gci_buf_cstr(&out));
		json_decref(reply);
	}
	assert_int_equal(sum, 0);
	gci_buf_free(&out);
}

static void lines_are_bounded(void **state)
{
	struct gci_buf in = {0};
	size_t len = 0, used = 0;
	const char *line = NULL;

	(void)state;
	assert_int_equal(gci_jobctl_line(&in, &line, &len, &used), 0);
	gci_buf_put(&in, "{}\n{", 4);
	assert_int_equal(gci_jobctl_line(&in, &line, &len, &used), 1);
	assert_int_equal(len, 2);
	assert_memory_equal(line, "{}", 2);
	gci_buf_consume(&in, used);
	assert_int_equal(gci_jobctl_line(&in, &line, &len, &used), 0);
	while (in.len < GCI_JOBCTL_REQUEST_NBYTES)
		gci_buf_put(&in, " ", 1);
	assert_int_equal(gci_jobctl_line(&in, &line, &len, &used), 0);
	gci_buf_put(&in, "\n", 1);
	assert_int_equal(gci_jobctl_line(&in, &line, &len, &used), 1);
	in.data[in.len - 1] = ' ';
	assert_int_equal(gci_jobctl_line(&in, &line, &len, &used), -1);
	gci_buf_put(&in, "\n", 1);
	assert_int_equal(gci_jobctl_line(&in, &line, &len, &used), -1);
	gci_buf_free(&in);
}

/* One who listens, but takes nobody: all get in that there is room for, nobody waits for it, and
 * the name stays. */
static void a_stopped_job_holds_nobody_up(void **state)
{
	char directory[] = "/tmp/gridcoll-ctl-XXXXXX";
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[20], n = 0;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/1", directory);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 2), 0);
	while (n < 20 && (fds[n] = gci_jobctl_connect(a.sun_path)) >= 0)
		assert_false(fcntl(fds[n++], F_GETFL) & O_NONBLOCK);
	assert_int_equal(errno, EAGAIN);
	assert_in_range(n, 1, 19);
	gci_jobctl_tidy(directory);
	assert_int_equal(access(a.sun_path, F_OK), 0);
	while (n)
		close(fds[--n]);
	close(listener);
	gci_jobctl_tidy(directory); /* now nobody listens */
	assert_int_equal(rmdir(directory), 0);
}

/* 0, unless a job could not open its socket. */
static int open_and_close(int times)
{
	struct gci_error e = {0};
	struct gci_jobctl c;
	uv_loop_t loop;

	uv_loop_init(&loop);
	for (; times && !gci_jobctl_open(&c, &loop, commands, NULL, &e); times--) {
		if (access(c.path, F_OK))
			return 1;
		gci_jobctl_close(&c);
		uv_close((uv_handle_t *)&c.listener, NULL);
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	if (times)
		print_error("%s\n", e.text);
	return times;
}

/* Asks on a connection until there is an answer; NULL: it was hung up. */
static const char *ask(uv_loop_t *loop, int fd, char reply[64])
{
	static const char request[] = "{\"cmd\":\"add\",\"n\":1}\n";
	ssize_t n;

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	while ((n = recv(fd, reply, 63, MSG_DONTWAIT)) < 0)
		uv_run(loop, UV_RUN_NOWAIT);
	reply[n] = '\0';
	return n ? reply : NULL;
}

/* A client for whom there is no memory is served when another one has gone, and so are those after it. */
static void clients_wait_for_memory(void **state)
{
	char runtime[] = "/tmp/gridcoll-ctl-XXXXXX", reply[64];
	int first, second, third, i;
	struct gci_error e = {0};
	struct gci_jobctl c;
	uint64_t sum = 0;
	uv_loop_t loop;

	(void)state;
	assert_non_null(mkdtemp(runtime));
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	uv_loop_init(&loop);
	assert_int_equal(gci_jobctl_open(&c, &loop, commands, &sum, &e), 0);
	first = gci_jobctl_connect(c.path);
	gci_mem_fail_at(1); /* the next client's */
	assert_string_equal(ask(&loop, first, reply), "{\"ok\":true,\"sum\":1}\n");
	assert_true(gci_mem_failed());
	second = gci_jobctl_connect(c.path);
	for (i = 0; i < 10; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_true(c.is_waiting);
	close(first);
	assert_string_equal(ask(&loop, second, reply), "{\"ok\":true,\"sum\":2}\n");
	third = gci_jobctl_connect(c.path);
	assert_string_equal(ask(&loop, third, reply), "{\"ok\":true,\"sum\":3}\n");
	close(second);
	close(third);
	while (c.nclients)
		uv_run(&loop, UV_RUN_ONCE);
	gci_jobctl_close(&c);
	uv_close((uv_handle_t *)&c.listener, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(rmdir(runtime), 0);
}

/* Jobs that begin while others end, and take the directory away with them: all find one. */
static void the_last_job_removes_the_directory(void **state)
{
	char runtime[] = "/tmp/gridcoll-ctl-XXXXXX", path[64];
	int i, status, bad = 0;

	(void)state;
	assert_non_null(mkdtemp(runtime));
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	for (i = 0; i < 3; i++)
		if (!fork())
			_exit(open_and_close(1000) != 0);
	while (wait(&status) > 0)
		bad += status != 0;
	unsetenv("XDG_RUNTIME_DIR");
	snprintf(path, sizeof(path), "%s/gridcoll", runtime);
	assert_int_equal(bad, 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(runtime), 0);
}

static void a_command_line_of_any_bytes_is_told(void **state)
{
	static char name[] = "./caf\xc3\xa9", broken[] = "\xff\n\x7f", longest[300];
	static const char request[] = "{\"cmd\":\"job\"}";
	char *argv[] = {name, broken, longest, NULL};
	struct gci_placement p = {0};
	struct gci_watch w = {.plan = &p, .argv = argv};
	struct gci_buf out = {0};
	json_t *reply;
	const char *said;

	(void)state;
	memset(longest, 0xc3, sizeof(longest) - 1);
	gci_jobctl_answer(gci_watch_commands, &w, request, strlen(request), &out);
	reply = json_loads(gci_buf_cstr(&out), 0, NULL);
	said = json_string_value(json_object_get(reply, "command"));
	assert_non_null(said);
	assert_memory_equal(said, "./caf?? ??? ??", 14);
	assert_int_equal(strlen(said), 199);
	json_decref(reply);
	gci_buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_are_run),
		cmocka_unit_test(what_is_no_request_is_refused),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(a_command_line_of_any_bytes_is_told),
		cmocka_unit_test(a_stopped_job_holds_nobody_up),
		cmocka_unit_test(clients_wait_for_memory),
		cmocka_unit_test(the_last_job_removes_the_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
