/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/prng.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <string.h>

static void values_come_back(void **state)
{
	struct gci_buf b = {0};
	struct gci_reader r = {0};
	char *s;

	(void)state;
	gci_buf_put_u8(&b, 0xab);
	gci_buf_put_u16(&b, 0xcdef);
	gci_buf_put_u32(&b, 0x12345678);
	gci_buf_put_u64(&b, 0x1122334455667788ull);
	gci_buf_put_str(&b, "host");
	assert_false(b.failed);
	assert_int_equal(b.data[1], 0xef); /* little-endian on every machine */
	r.data = b.data;
	r.len = b.len;
	assert_int_equal(gci_read_u8(&r), 0xab);
	assert_int_equal(gci_read_u16(&r), 0xcdef);
	assert_int_equal(gci_read_u32(&r), 0x12345678);
	assert_true(gci_read_u64(&r) == 0x1122334455667788ull);
	s = gci_read_str(&r, 4);
	assert_string_equal(s, "host");
	gci_free(s);
	assert_int_equal(r.len, 0);
	assert_false(r.failed);
	gci_buf_free(&b);
}

static void reader_stops_at_the_end(void **state)
{
	uint8_t bytes[] = {255, 255, 255, 255, 'a'};
	struct gci_reader r = {bytes, sizeof(bytes), 0};

	(void)state;
	assert_null(gci_read_str(&r, 1000)); /* claims 4 GiB */
	assert_true(r.failed);
	assert_int_equal(gci_read_u8(&r), 0); /* and stays failed */
	r = (struct gci_reader){bytes, 3, 0};
	assert_int_equal(gci_read_u32(&r), 0);
	assert_true(r.failed);
}

static void string_with_zero_is_refused(void **state)
{
	uint8_t bytes[] = {2, 0, 0, 0, 'a', 0};
	struct gci_reader r = {bytes, sizeof(bytes), 0};

	(void)state;
	assert_null(gci_read_str(&r, 10));
	assert_true(r.failed);
}

static void lack_of_memory_is_remembered(void **state)
{
	struct gci_buf b = {0};

	(void)state;
	gci_mem_fail_at(1);
	gci_buf_put_u32(&b, 1);
	assert_true(gci_mem_failed());
	assert_true(b.failed);
	gci_buf_put_u32(&b, 2);
	assert_int_equal(b.len, 0);
	assert_string_equal(gci_buf_cstr(&b), "");
	gci_buf_free(&b);
}

static void consume_keeps_the_rest(void **state)
{
	struct gci_buf b = {0};

	(void)state;
	gci_buf_printf(&b, "%s-%d", "abc", 7);
	gci_buf_consume(&b, 2);
	assert_string_equal(gci_buf_cstr(&b), "c-7");
	gci_buf_consume(&b, 100);
	assert_int_equal(b.len, 0);
	gci_buf_free(&b);
}

/* RFC 3720, B.4 and the usual check value. */
/* Each time that it grows, and at its end: what was there is gone. The allocator has it still. */
static void secrets_are_wiped(void **state)
{
	struct gci_buf b = {.secret = 1}, plain = {0};
	const uint8_t zeros[16] = {0};
	int i;

	(void)state;
	gci_buf_put(&b, "0123456789abcdef", 16);
	for (i = 0; i < 1000; i++)
		gci_buf_put_u8(&b, 7);
	assert_int_equal(b.len, 1016);
	assert_memory_equal(b.data, "0123456789abcdef", 16);
	gci_buf_consume(&b, 1008);
	assert_int_equal(b.len, 8);
	for (i = 0; i < 63; i++)
		assert_memory_equal(b.data + 8 + 16 * i, zeros, 16);
	gci_buf_put(&plain, "0123456789", 10);
	gci_buf_consume(&plain, 2);
	assert_memory_equal(plain.data, "2345678989", 10); /* none wipes what is no secret */
	gci_mem_fail_at(1);
	gci_buf_put(&b, b.data, b.cap - b.len + 1);
	gci_mem_fail_at(0);
	assert_true(b.failed);
	assert_int_equal(b.len, 8);
	gci_buf_free(&b);
	gci_buf_free(&plain);
}

static void crc32c_known_values(void **state)
{
	uint8_t zeros[32] = {0}, ones[32], up[32];
	int i;

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (i = 0; i < 32; i++)
		up[i] = (uint8_t)i;
	assert_true(gci_crc32c(0, zeros, 32) == 0x8a9136aau);
	assert_true(gci_crc32c(0, ones, 32) == 0x62a8ab43u);
	assert_true(gci_crc32c(0, up, 32) == 0x46dd794eu);
	assert_true(gci_crc32c(0, "123456789", 9) == 0xe3069283u);
	assert_true(gci_crc32c(gci_crc32c(0, "1234", 4), "56789", 5) == 0xe3069283u);
}

/* Of all lengths, and cut in two anywhere, against the definition. */
static void crc32c_of_any_length(void **state)
{
	uint8_t data[600];
	uint32_t sum = ~0u, whole;
	size_t i, cut;
	int bit;

	(void)state;
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)gci_mix64(i);
	for (i = 0; i < sizeof(data); i++) {
		whole = gci_crc32c(0, data, i);
		assert_true(whole == ~sum);
		for (cut = 0; cut <= i; cut += 1 + i / 7)
			assert_true(
				gci_crc32c(gci_crc32c(0, data, cut), data + cut, i - cut) == whole);
		sum ^= data[i];
		for (bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
	}
}

#if defined(__x86_64__)

#define AVX_AND_ZMM_UPPER (1u << 2 | 1u << 6) /* of XCR0 */

/* The processor's word on which parts of the registers are in use; -1: it does not tell. */
static long registers_in_use(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a & 1u << 2))
		return -1;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
	return a;
}

/* Else all SSE code after it is slow. */
static void crc32c_leaves_no_wide_registers(void **state)
{
	static uint8_t data[4096];
	long used;

	(void)state;
	gci_crc32c(0, data, sizeof(data));
	used = registers_in_use();
	if (used < 0)
		skip();
	assert_true(!(used & AVX_AND_ZMM_UPPER));
}

#else

static void crc32c_leaves_no_wide_registers(void **state)
{
	(void)state;
	skip();
}

#endif

static void digest_tells_apart(void **state)
{
	(void)state;
	assert_true(gci_digest_bytes(0, "ab", 2) != gci_digest_bytes(0, "ba", 2));
	assert_true(gci_digest_bytes(0, "a\0", 2) != gci_digest_bytes(0, "a", 1));
	assert_true(gci_digest_bytes(0, "12345678", 8) == gci_digest_bytes(0, "12345678", 8));
}

static void crc32c_of_joined_pieces(void **state)
{
	static uint8_t bytes[70000];
	static const size_t cuts[] = {0, 1, 2, 7, 64, 255, 4096, 65535, 65536, 69999, 70000};
	struct gci_prng prng = {3};
	uint32_t whole, far;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)gci_prng_next(&prng);
	whole = gci_crc32c(0, bytes, sizeof(bytes));
	for (i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
		uint32_t a = gci_crc32c(0, bytes, cuts[i]);
		uint32_t b = gci_crc32c(0, bytes + cuts[i], sizeof(bytes) - cuts[i]);

		assert_true(gci_crc32c_join(a, b, sizeof(bytes) - cuts[i]) == whole);
	}
	/* Lengths that no test can hold: in one step, or in many. */
	far = gci_crc32c_join(whole, 0, 1ull << 40 | 12345);
	for (i = 0; i < 1024; i++)
		whole = gci_crc32c_join(whole, 0, 1ull << 30);
	assert_true(gci_crc32c_join(whole, 0, 12345) == far);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_back),
		cmocka_unit_test(reader_stops_at_the_end),
		cmocka_unit_test(string_with_zero_is_refused),
		cmocka_unit_test(lack_of_memory_is_remembered),
		cmocka_unit_test(consume_keeps_the_rest),
		cmocka_unit_test(secrets_are_wiped),
		cmocka_unit_test(crc32c_known_values),
		cmocka_unit_test(crc32c_of_joined_pieces),
		cmocka_unit_test(crc32c_of_any_length),
		cmocka_unit_test(crc32c_leaves_no_wide_registers),
		cmocka_unit_test(digest_tells_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
