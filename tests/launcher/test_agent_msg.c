/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "launcher/agent_msg.h"

#include <string.h>

static char *argv[] = {(char *)"cp", (char *)"a b", (char *)"", NULL};
static char *env[] = {(char *)"A=1", (char *)"B", NULL};
static uint32_t ranks[] = {4, 5};

static struct gci_agent_msg_start example(void)
{
	struct gci_agent_msg_start m = {.ranks = ranks,
		.nranks = 2,
		.argv = argv,
		.env = env,
		.cwd = (char *)"/tmp",
		.or_home = 1,
		.rendezvous = (char *)"[::1]:5",
		.dead_ns = 7};

	memset(m.secret, 0xa5, sizeof(m.secret));
	return m;
}

static void start_comes_back(void **state)
{
	struct gci_agent_msg_start m = example(), got;
	struct gci_buf b = {0};
	struct gci_error e = {0};
	struct gci_agent_msg f;
	size_t at = 0, i;

	(void)state;
	gci_agent_msg_put_start(&b, &m);
	gci_agent_msg_put_signal(&b, 15, 4);
	for (i = 0; i < b.len; i++) {
		struct gci_buf part = {.data = b.data, .len = i};

		at = 0;
		assert_int_equal(
			gci_agent_msg_next(&part, &at, &f, &e), i >= gci_load_u32(b.data) + 4);
	}
	at = 0;
	assert_int_equal(gci_agent_msg_next(&b, &at, &f, &e), 1);
	assert_int_equal(f.type, GCI_AGENT_MSG_START);
	assert_int_equal(gci_agent_msg_get_start(&f, &got), 0);
	assert_int_equal(got.nranks, 2);
	assert_int_equal(got.ranks[1], 5);
	assert_string_equal(got.argv[1], "a b");
	assert_string_equal(got.argv[2], "");
	assert_null(got.argv[3]);
	assert_string_equal(got.env[1], "B");
	assert_null(got.env[2]);
	assert_string_equal(got.cwd, "/tmp");
	assert_int_equal(got.or_home, 1);
	assert_string_equal(got.rendezvous, "[::1]:5");
	assert_true(got.dead_ns == 7);
	assert_memory_equal(got.secret, m.secret, sizeof(m.secret));
	gci_agent_msg_start_free(&got);
	assert_int_equal(gci_agent_msg_next(&b, &at, &f, &e), 1);
	assert_int_equal(f.type, GCI_AGENT_MSG_SIGNAL);
	assert_int_equal(gci_read_u32(&f.r), 15);
	assert_int_equal(gci_read_u32(&f.r), 4);
	assert_int_equal(gci_agent_msg_next(&b, &at, &f, &e), 0);
	assert_true(at == b.len);
	gci_buf_free(&b);
}

static void bad_lengths(void **state)
{
	struct gci_error e = {0};
	struct gci_buf b = {0};
	struct gci_agent_msg f;
	size_t at = 0;

	(void)state;
	gci_buf_put_u32(&b, 0);
	assert_int_equal(gci_agent_msg_next(&b, &at, &f, &e), GCOLL_ERR_PROTO);
	gci_buf_consume(&b, 4);
	gci_error_clear(&e);
	gci_buf_put_u32(&b, GCI_AGENT_MSG_MAX + 1);
	assert_int_equal(gci_agent_msg_next(&b, &at, &f, &e), GCOLL_ERR_PROTO);
	gci_buf_free(&b);
}

/* Whatever is changed in a start message, it is read or refused, never more. */
static void damaged_start(void **state)
{
	struct gci_prng prng = {.state = 3};
	struct gci_agent_msg_start m = example(), got;
	struct gci_error e = {0};
	struct gci_buf b = {0};
	struct gci_agent_msg f;
	int i, refused = 0;

	(void)state;
	gci_agent_msg_put_start(&b, &m);
	for (i = 0; i < 5000; i++) {
		size_t at = 0, where = 5 + gci_prng_below(&prng, b.len - 5);
		uint8_t before = b.data[where];

		b.data[where] ^= (uint8_t)(1 + gci_prng_below(&prng, 255));
		assert_int_equal(gci_agent_msg_next(&b, &at, &f, &e), 1);
		f.r.len -= gci_prng_below(&prng, 2) * gci_prng_below(&prng, f.r.len);
		if (gci_agent_msg_get_start(&f, &got))
			refused++;
		else
			gci_agent_msg_start_free(&got);
		b.data[where] = before;
	}
	assert_in_range(refused, 1000, 5000);
	gci_buf_free(&b);
}

static void lack_of_memory(void **state)
{
	struct gci_agent_msg_start m = example(), got;
	struct gci_error e = {0};
	struct gci_buf b = {0};
	struct gci_agent_msg f;
	unsigned long n;

	(void)state;
	gci_agent_msg_put_start(&b, &m);
	for (n = 1;; n++) {
		size_t at = 0;
		int rc;

		assert_int_equal(gci_agent_msg_next(&b, &at, &f, &e), 1);
		gci_mem_fail_at(n);
		rc = gci_agent_msg_get_start(&f, &got);
		if (!gci_mem_failed()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_true(rc < 0);
	}
	gci_mem_fail_at(0);
	assert_true(n > 8);
	gci_agent_msg_start_free(&got);
	gci_buf_free(&b);
}

static struct gci_agent_msg next(const struct gci_buf *b, size_t *at, enum gci_agent_msg_type type)
{
	struct gci_error e = {0};
	struct gci_agent_msg f;

	assert_int_equal(gci_agent_msg_next(b, at, &f, &e), 1);
	assert_int_equal(f.type, type);
	return f;
}

/* Frames about agents behind a relay come back; cut anywhere, they are refused. */
static void relays(void **state)
{
	const struct gci_agent_msg_relay_data data = {7, 2, (const uint8_t *)"ab", 2};
	const struct gci_agent_msg_ended ended = {7, 255, 9, (char *)"why"};
	struct gci_agent_msg_relay_data d;
	struct gci_agent_msg_ended end;
	struct gci_buf b = {0};
	struct gci_agent_msg f, cut;
	size_t at = 0, i;
	char **got, *text;
	uint32_t id;

	(void)state;
	gci_agent_msg_put_relay_start(&b, 7, argv);
	gci_agent_msg_put_relay_data(&b, &data);
	gci_agent_msg_put_ended(&b, GCI_AGENT_MSG_RELAY_ENDED, &ended);
	gci_agent_msg_put_origin(&b, "::1");
	f = next(&b, &at, GCI_AGENT_MSG_RELAY_START);
	for (i = 0; i < f.r.len; i++) {
		cut = f;
		cut.r.len = i;
		assert_int_equal(gci_agent_msg_get_relay_start(&cut, &id, &got), GCOLL_ERR_PROTO);
		assert_null(got);
	}
	assert_int_equal(gci_agent_msg_get_relay_start(&f, &id, &got), 0);
	assert_int_equal(id, 7);
	assert_string_equal(got[1], "a b");
	assert_null(got[3]);
	gci_agent_msg_argv_free(got);
	f = next(&b, &at, GCI_AGENT_MSG_RELAY_DATA);
	for (i = 0; i < 8; i++) {
		cut = f;
		cut.r.len = i;
		assert_int_equal(gci_agent_msg_get_relay_data(&cut, &d), GCOLL_ERR_PROTO);
	}
	assert_int_equal(gci_agent_msg_get_relay_data(&f, &d), 0);
	assert_int_equal(d.id, 7);
	assert_int_equal(d.stream, 2);
	assert_int_equal(d.nbytes, 2);
	assert_memory_equal(d.data, "ab", 2);
	f = next(&b, &at, GCI_AGENT_MSG_RELAY_ENDED);
	for (i = 0; i < f.r.len; i++) {
		cut = f;
		cut.r.len = i;
		assert_int_equal(gci_agent_msg_get_ended(&cut, &end), GCOLL_ERR_PROTO);
	}
	assert_int_equal(gci_agent_msg_get_ended(&f, &end), 0);
	assert_int_equal(end.code, 255);
	assert_int_equal(end.sig, 9);
	assert_string_equal(end.why, "why");
	gci_free(end.why);
	f = next(&b, &at, GCI_AGENT_MSG_ORIGIN);
	text = gci_agent_msg_get_origin(&f);
	assert_string_equal(text, "::1");
	gci_free(text);
	gci_buf_free(&b);
}

/* Streams that there are not, more than is ever sent at once, an empty command. */
static void bad_relays(void **state)
{
	static const uint8_t much[GCI_AGENT_MSG_RELAYED + 1];
	const struct gci_agent_msg_relay_data stream = {.stream = 3};
	const struct gci_agent_msg_relay_data length = {.data = much, .nbytes = sizeof(much)};
	char *none[] = {NULL}, **got;
	struct gci_agent_msg_relay_data d;
	struct gci_buf b = {0};
	struct gci_agent_msg f;
	size_t at = 0;
	uint32_t id;

	(void)state;
	gci_agent_msg_put_relay_data(&b, &stream);
	gci_agent_msg_put_relay_data(&b, &length);
	gci_agent_msg_put_relay_start(&b, 1, none);
	f = next(&b, &at, GCI_AGENT_MSG_RELAY_DATA);
	assert_int_equal(gci_agent_msg_get_relay_data(&f, &d), GCOLL_ERR_PROTO);
	f = next(&b, &at, GCI_AGENT_MSG_RELAY_DATA);
	assert_int_equal(gci_agent_msg_get_relay_data(&f, &d), GCOLL_ERR_PROTO);
	f = next(&b, &at, GCI_AGENT_MSG_RELAY_START);
	assert_int_equal(gci_agent_msg_get_relay_start(&f, &id, &got), GCOLL_ERR_PROTO);
	gci_buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_comes_back),
		cmocka_unit_test(bad_lengths),
		cmocka_unit_test(damaged_start),
		cmocka_unit_test(lack_of_memory),
		cmocka_unit_test(relays),
		cmocka_unit_test(bad_relays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
