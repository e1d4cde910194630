/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/prng.h"
#include "netem/guest_msg.h"

#include <string.h>

static void frames_come_back_byte_by_byte(void **state)
{
	struct gci_buf out = {0}, in = {0};
	uint8_t body[GCI_GUEST_MSG_MAX];
	struct gci_guest_msg f;
	size_t i;
	int len = 0;

	(void)state;
	for (i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 7);
	gci_guest_msg_put(&out, GCI_GUEST_MSG_OUT, 3, body, sizeof(body));
	for (i = 0; i < out.len; i++) {
		assert_int_equal(len, 0);
		gci_buf_put_u8(&in, out.data[i]);
		len = gci_guest_msg_get(&in, &f);
	}
	assert_int_equal(len, GCI_GUEST_MSG_HEADER + GCI_GUEST_MSG_MAX);
	assert_int_equal(f.type, GCI_GUEST_MSG_OUT);
	assert_int_equal(f.session, 3);
	assert_int_equal(f.body.len, sizeof(body));
	assert_memory_equal(f.body.data, body, sizeof(body));
	gci_buf_free(&out);
	gci_buf_free(&in);
}

static int first(const uint8_t *bytes, size_t len)
{
	struct gci_buf in = {0};
	struct gci_guest_msg f;
	int rc;

	gci_buf_put(&in, bytes, len);
	rc = gci_guest_msg_get(&in, &f);
	gci_buf_free(&in);
	return rc;
}

static void garbage_is_refused(void **state)
{
	(void)state;
	assert_int_equal(first((const uint8_t *)"x", 1), -1);
	assert_int_equal(first((const uint8_t[]){0xa7, 0, 0, 0, 0, 0, 0, 0}, 8), -1);   /* type */
	assert_int_equal(first((const uint8_t[]){0xa7, 200, 0, 0, 0, 0, 0, 0}, 8), -1); /* type */
	assert_int_equal(first((const uint8_t[]){0xa7, 1, 8, 0, 0, 0, 0, 0}, 8), -1);  /* session */
	assert_int_equal(first((const uint8_t[]){0xa7, 1, 0, 0, 1, 16, 0, 0}, 8), -1); /* length */
	assert_int_equal(first((const uint8_t[]){0xa7, 1, 0, 0, 255, 255, 255, 255}, 8), -1);
	assert_int_equal(first((const uint8_t[]){0xa7, 1, 0, 0, 1, 0, 0}, 7), 0); /* more */
	assert_int_equal(first(NULL, 0), 0);
}

static void random_bytes_do_no_harm(void **state)
{
	struct gci_prng r = {1};
	uint8_t bytes[64];
	int round;
	size_t i;

	(void)state;
	for (round = 0; round < 20000; round++) {
		size_t len = gci_prng_below(&r, sizeof(bytes));
		int rc;

		for (i = 0; i < len; i++)
			bytes[i] = (uint8_t)gci_prng_next(&r);
		if (len > 1) {
			bytes[0] = 0xa7;
			bytes[1] %= 16;
		}
		if (len > 8)
			bytes[5] = bytes[6] = bytes[7] = 0;
		rc = first(bytes, len);
		assert_true(rc >= -1 && rc <= (int)len);
	}
}

static void put_job(struct gci_buf *b)
{
	char *argv[] = {(char *)"cp", (char *)"", (char *)"a b", NULL};
	char *env[] = {(char *)"PATH=/bin", NULL};
	struct gci_job job = {(char *)"/home", argv, env};

	gci_job_put(b, &job);
}

static void jobs_come_back(void **state)
{
	struct gci_buf b = {0};
	struct gci_reader r;
	struct gci_job job;

	(void)state;
	put_job(&b);
	r = (struct gci_reader){b.data, b.len, 0};
	assert_int_equal(gci_job_get(&r, &job), 0);
	assert_string_equal(job.cwd, "/home");
	assert_string_equal(job.argv[0], "cp");
	assert_string_equal(job.argv[1], "");
	assert_string_equal(job.argv[2], "a b");
	assert_null(job.argv[3]);
	assert_string_equal(job.env[0], "PATH=/bin");
	assert_null(job.env[1]);
	gci_job_free(&job);
	gci_buf_free(&b);
}

static void cut_jobs_are_refused(void **state)
{
	struct gci_buf b = {0};
	struct gci_job job;
	size_t len;

	(void)state;
	put_job(&b);
	for (len = 0; len < b.len; len++) {
		struct gci_reader r = {b.data, len, 0};

		assert_int_equal(gci_job_get(&r, &job), GCOLL_ERR_PROTO);
		assert_null(job.argv);
	}
	gci_buf_free(&b);
}

static void a_job_needs_a_command(void **state)
{
	char *none[] = {NULL};
	struct gci_job job = {(char *)"/", none, none};
	struct gci_buf b = {0};
	struct gci_reader r;

	(void)state;
	gci_job_put(&b, &job);
	r = (struct gci_reader){b.data, b.len, 0};
	assert_int_equal(gci_job_get(&r, &job), GCOLL_ERR_PROTO);
	gci_buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_back_byte_by_byte),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(random_bytes_do_no_harm),
		cmocka_unit_test(jobs_come_back),
		cmocka_unit_test(cut_jobs_are_refused),
		cmocka_unit_test(a_job_needs_a_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
