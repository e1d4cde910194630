/* SPDX-License-Identifier: MIT
 * An agent as a relay: it is told to start others, here commands of a shell. */
#include "tests/harness.h"
#include "tests/launcher/places.h"

#include "base/file.h"
#include "base/mem.h"
#include "launcher/agent_msg.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AWAIT_DONE "while ! [ -e done ]; do sleep 0.02; done"

/* Says it to an agent, whose input ends when `until` has, a shell's command, and whose output goes
 * through `filter`. */
static void tell_agent(
	struct gci_buf *said, const char *until, const char *filter, struct gci_buf *answer)
{
	FILE *f = fopen(in_dir("said"), "w");

	assert_non_null(f);
	assert_false(said->failed);
	assert_int_equal(fwrite(said->data, 1, said->len, f), said->len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(run_shell("cd %s; { cat said; %s; } | %s --agent 2>complaints %s >answer",
				 in_dir(""), until, env_path("GRIDCOLL_RUN"), filter),
		0);
	gci_buf_consume(answer, answer->len);
	assert_int_equal(gci_file_read(in_dir("answer"), 64 << 20, answer, NULL), 0);
	gci_buf_free(said);
}

/* The next frame behind the magic, which has to be of that type. */
static struct gci_agent_msg take(struct gci_buf *answer, size_t *at, enum gci_agent_msg_type type)
{
	struct gci_error e = {0};
	struct gci_agent_msg f;

	if (!*at) {
		*at = strlen(GCI_AGENT_MSG_MAGIC);
		assert_true(answer->len >= *at);
		assert_memory_equal(answer->data, GCI_AGENT_MSG_MAGIC, *at);
	}
	assert_int_equal(gci_agent_msg_next(answer, at, &f, &e), 1);
	assert_int_equal(f.type, type);
	return f;
}

/* What agent `id` says, up to its end, how it ended. */
static void take_all(struct gci_buf *answer, size_t *at, uint32_t id, struct gci_buf *out,
	struct gci_agent_msg_ended *end)
{
	struct gci_error e = {0};
	struct gci_agent_msg_relay_data m;
	struct gci_agent_msg f;
	size_t next;

	gci_buf_consume(out, out->len);
	for (;;) {
		next = *at ? *at : strlen(GCI_AGENT_MSG_MAGIC);
		assert_int_equal(gci_agent_msg_next(answer, &next, &f, &e), 1);
		if (f.type != GCI_AGENT_MSG_RELAY_DATA)
			break;
		*at = next;
		assert_int_equal(gci_agent_msg_get_relay_data(&f, &m), 0);
		assert_int_equal(m.id, id);
		gci_buf_put(out, m.data, m.nbytes);
	}
	f = take(answer, at, GCI_AGENT_MSG_RELAY_ENDED);
	assert_int_equal(gci_agent_msg_get_ended(&f, end), 0);
	assert_int_equal(end->id, id);
}

static void put_start(struct gci_buf *said, uint32_t id, const char *command)
{
	char sh[] = "sh", c[] = "-c", *argv[] = {sh, c, (char *)(uintptr_t)command, NULL};

	gci_agent_msg_put_relay_start(said, id, argv);
}

static void put_data(struct gci_buf *said, uint32_t id, const char *text)
{
	const struct gci_agent_msg_relay_data m = {id, 0, (const uint8_t *)text, strlen(text)};

	gci_agent_msg_put_relay_data(said, &m);
}

/* Bytes go both ways as they are, ends are told, and the agent's own end is that of its input. */
static void bytes_pass(void **state)
{
	char nowhere[] = "/nowhere/ssh", *argv[] = {nowhere, NULL};
	struct gci_buf said = {0}, answer = {0}, out = {0};
	struct gci_agent_msg_ended end;
	size_t at = 0;

	(void)state;
	put_start(&said, 7, "cat; exit 3");
	put_data(&said, 7, "one ");
	put_data(&said, 8, "to nobody");
	put_data(&said, 7, "two");
	tell_agent(&said, ":", "", &answer);
	take_all(&answer, &at, 7, &out, &end);
	assert_string_equal(gci_buf_cstr(&out), "one two");
	assert_int_equal(end.code, 3);
	assert_int_equal(end.sig, 0);
	assert_string_equal(end.why, "");
	gci_free(end.why);
	assert_true(at == answer.len);
	/* Where ssh came from, it goes first. */
	setenv("SSH_CONNECTION", "10.1.2.3 40000 10.1.2.4 22", 1);
	put_start(&said, 1, "cat >&2; kill -TERM $$");
	tell_agent(&said, ":", "", &answer);
	unsetenv("SSH_CONNECTION");
	at = 0;
	take_all(&answer, &at, 1, &out, &end);
	assert_int_equal(out.len, 4 + 1 + 4 + 8);
	assert_memory_equal(out.data + 9, "10.1.2.3", 8);
	assert_int_equal(end.sig, SIGTERM);
	gci_free(end.why);
	/* Nothing to say: it is given up. */
	put_start(&said, 3, "sleep 1000");
	put_data(&said, 3, "");
	tell_agent(&said, ":", "", &answer);
	at = 0;
	take_all(&answer, &at, 3, &out, &end);
	assert_int_equal(end.sig, SIGKILL);
	gci_free(end.why);
	/* What cannot be started. */
	gci_agent_msg_put_relay_start(&said, 2, argv);
	tell_agent(&said, ":", "", &answer);
	at = 0;
	take_all(&answer, &at, 2, &out, &end);
	assert_non_null(strstr(end.why, "cannot run /nowhere/ssh: No such file"));
	gci_free(end.why);
	gci_buf_free(&answer);
	gci_buf_free(&out);
}

static void expect_error(struct gci_buf *said, const char *expected)
{
	struct gci_buf answer = {0};
	struct gci_agent_msg f;
	size_t at = 0;
	char *text;

	tell_agent(said, ":", "", &answer);
	f = take(&answer, &at, GCI_AGENT_MSG_ERROR);
	text = gci_read_str(&f.r, 1000);
	assert_string_equal(text, expected);
	gci_free(text);
	gci_buf_free(&answer);
}

static void malformed(void **state)
{
	struct gci_agent_msg_relay_data m = {.id = 1, .stream = 1};
	struct gci_buf said = {0};

	(void)state;
	gci_agent_msg_put_u32(&said, GCI_AGENT_MSG_RELAY_START, 7);
	expect_error(&said, "malformed message to start another agent");
	gci_agent_msg_put_plain(&said, GCI_AGENT_MSG_RELAY_DATA);
	expect_error(&said, "malformed message for another agent");
	gci_agent_msg_put_relay_data(&said, &m);
	expect_error(&said, "malformed message for another agent");
	gci_agent_msg_put_plain(&said, GCI_AGENT_MSG_ORIGIN);
	expect_error(&said, "malformed message of whence ssh came");
}

/* What nobody reads yet waits where it is made. */
static void memory_is_bounded(void **state)
{
	struct gci_buf said = {0}, answer = {0};
	unsigned long kib = 0;

	(void)state;
	if (TEST_SANITIZED) {
		print_message("skipped: sanitizers keep what was given back\n");
		skip();
	}
	put_start(&said, 1,
		"head -c 200000000 /dev/zero; grep VmHWM /proc/$PPID/status >peak; touch done");
	tell_agent(&said, AWAIT_DONE, "| { sleep 0.3; tail -c 200; }", &answer);
	unlink(in_dir("done"));
	gci_buf_consume(&answer, answer.len);
	assert_int_equal(gci_file_read(in_dir("peak"), 200, &answer, NULL), 0);
	assert_int_equal(sscanf(gci_buf_cstr(&answer), "VmHWM: %lu kB", &kib), 1);
	assert_in_range(kib, 1, 100000);
	gci_buf_free(&answer);
}

/* Behind a relay ":PORT" means the host that ssh to the relay came from. */
static void whence_ssh_came(void **state)
{
	char sh[] = "sh", c[] = "-c", command[] = "echo \"$GRIDCOLL_RENDEZVOUS\"; touch done";
	char *argv[] = {sh, c, command, NULL}, *env[] = {NULL}, port[] = ":7", cwd[256];
	uint32_t rank = 1;
	const struct gci_agent_msg_start m = {.ranks = &rank,
		.nranks = 1,
		.argv = argv,
		.env = env,
		.cwd = cwd,
		.rendezvous = port};
	struct gci_buf said = {0}, answer = {0};

	(void)state;
	snprintf(cwd, sizeof(cwd), "%s", in_dir(""));
	gci_agent_msg_put_origin(&said, "fd00::1");
	gci_agent_msg_put_start(&said, &m);
	setenv("SSH_CONNECTION", "10.1.2.3 40000 10.1.2.4 22", 1);
	tell_agent(&said, AWAIT_DONE, "", &answer);
	unlink(in_dir("done"));
	unsetenv("SSH_CONNECTION");
	assert_non_null(memmem(answer.data, answer.len, "[fd00::1]:7\n", 12));
	gci_buf_free(&answer);
}

/* What comes while ranks are being started is heard: those that are not started yet never are. */
static void told_to_end_while_it_starts(void **state)
{
	char sh[] = "sh", c[] = "-c", command[] = "touch \"begun$GRIDCOLL_RANK\"; exec sleep 1000";
	char where[] = "127.0.0.1:7", cwd[256], *argv[] = {sh, c, command, NULL}, *env[] = {NULL};
	uint32_t ranks[] = {0, 1, 2}, i;
	struct gci_agent_msg_start m = {.ranks = ranks,
		.nranks = 3,
		.argv = argv,
		.env = env,
		.cwd = cwd,
		.rendezvous = where};
	struct gci_buf said = {0}, answer = {0};
	struct gci_agent_msg_ended end;
	struct gci_agent_msg f;
	size_t at = 0;

	(void)state;
	snprintf(cwd, sizeof(cwd), "%s", in_dir(""));
	gci_agent_msg_put_start(&said, &m);
	gci_agent_msg_put_signal(&said, SIGINT, GCI_AGENT_MSG_ALL);
	tell_agent(&said, ":", "", &answer);
	for (i = 1; i <= 2; i++) {
		f = take(&answer, &at, GCI_AGENT_MSG_ENDED);
		assert_int_equal(gci_agent_msg_get_ended(&f, &end), 0);
		assert_int_equal(end.id, i);
		assert_int_equal(end.sig, SIGINT);
		gci_free(end.why);
	}
	assert_int_not_equal(access(in_dir("begun1"), F_OK), 0);
	assert_int_not_equal(access(in_dir("begun2"), F_OK), 0);
	unlink(in_dir("begun0"));
	gci_buf_free(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass),
		cmocka_unit_test(malformed),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(whence_ssh_came),
		cmocka_unit_test(told_to_end_while_it_starts),
	};

	unsetenv("SSH_CONNECTION");
	return cmocka_run_group_tests(tests, places_up, places_down);
}
