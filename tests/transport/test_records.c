/* SPDX-License-Identifier: MIT
 * Records by themselves: RFC 8448's trace, every size, pieces and padding of any kind, and all that
 * must not pass. Beside OpenSSL they are in test_secure_records.c. */
#include "tests/test.h"

#include "base/prng.h"
#include "transport/records.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME (GCI_RECORD_HEAD + GCI_RECORD_TAIL)

static const uint8_t secret[GCI_RECORD_SECRET] = "any secret does";

struct pair {
	struct gci_records tx, rx;
};

static void open_with(struct pair *p, const uint8_t key[GCI_RECORD_SECRET])
{
	assert_int_equal(gci_records_init(&p->tx, key, 1), 0);
	assert_int_equal(gci_records_init(&p->rx, key, 0), 0);
}

static void open_pair(struct pair *p)
{
	open_with(p, secret);
}

static void close_pair(struct pair *p)
{
	gci_records_deinit(&p->tx);
	gci_records_deinit(&p->rx);
}

static size_t from_hex(const char *hex, uint8_t *out, size_t most)
{
	size_t n;

	assert_int_equal(OPENSSL_hexstr2buf_ex(out, most, &n, hex, ' '), 1);
	return n;
}

/* RFC 8448, 3: what the client sends with its traffic secret, 50 bytes and a close_notify. */
static void the_rfc_s_trace(void **state)
{
	static const char *const records[2] = {
		"17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 "
		"aa 66 bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 "
		"92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4",
		"17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3"};
	uint8_t key[GCI_RECORD_SECRET], content[2][50] = {{0}, {1, 0}}, got[50], is[100], was[100];
	static const size_t nbytes[2] = {50, 2};
	static const enum gci_record_type types[2] = {GCI_RECORD_DATA, GCI_RECORD_ALERT};
	struct iovec v;
	struct pair p;
	size_t i, n;
	int type;

	(void)state;
	from_hex("9e 40 64 6c e7 9a 7f 9d c0 5a f8 88 9b ce 65 52 87 5a fa 0b 06 df 00 87 f7 92 eb "
		 "b7 c1 75 04 a5",
		key, sizeof(key));
	for (i = 0; i < 50; i++)
		content[0][i] = (uint8_t)i;
	open_with(&p, key);
	for (i = 0; i < 2; i++) {
		n = from_hex(records[i], was, sizeof(was));
		v = (struct iovec){content[i], nbytes[i]};
		assert_int_equal(gci_records_seal(&p.tx, types[i], &v, 1, 0, nbytes[i], is), n);
		assert_memory_equal(is, was, n);
		assert_int_equal(gci_records_glance(was, n), n);
		v = (struct iovec){got, gci_records_room(n)};
		assert_int_equal(gci_records_open(&p.rx, was, n, &v, 1, 0, &type), nbytes[i]);
		assert_int_equal(type, types[i]);
		assert_memory_equal(got, content[i], nbytes[i]);
	}
	close_pair(&p);
}

/* Cuts n bytes at p into up to `most` pieces behind `skip` bytes of another memory. */
static int cut(struct gci_prng *prng, uint8_t *other, size_t skip, uint8_t *p, size_t n, int most,
	struct iovec *v)
{
	int i;

	v[0] = (struct iovec){other, skip};
	for (i = 1; i < most; i++) {
		v[i].iov_base = p;
		v[i].iov_len = i == most - 1 ? n : gci_prng_below(prng, n + 1);
		p += v[i].iov_len;
		n -= v[i].iov_len;
	}
	return most;
}

/* All sizes around those of AES's blocks and of OpenSSL's and other ways to take several at once,
 * the longest ones, and some between; with renewed keys now and then. */
static void any_size_in_any_pieces(void **state)
{
	static uint8_t in[GCI_RECORD_NBYTES], out[GCI_RECORD_NBYTES], other[64];
	static uint8_t record[GCI_RECORD_WHOLE];
	struct gci_prng prng = {11};
	struct iovec v[6];
	struct pair p;
	size_t i, n, skip, k;
	int nv, type;

	(void)state;
	open_pair(&p);
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)gci_prng_next(&prng);
	for (i = 0; i < 1500; i++) {
		n = i < 1100 ? i
			     : GCI_RECORD_NBYTES -
				       (i < 1150 ? i - 1100 : gci_prng_below(&prng, 16384));
		skip = gci_prng_below(&prng, sizeof(other));
		nv = cut(&prng, other, skip, in, n, 2 + (int)gci_prng_below(&prng, 5), v);
		k = (size_t)gci_records_seal(&p.tx, GCI_RECORD_DATA, v, nv, skip, n, record);
		assert_int_equal(k, n + FRAME);
		assert_int_equal(gci_records_glance(record, k), k);
		assert_true(n < 32 || memcmp(record + GCI_RECORD_HEAD, in, n) != 0);
		memset(out, 0, n);
		skip = gci_prng_below(&prng, sizeof(other));
		nv = cut(&prng, other, skip, out, n, 2 + (int)gci_prng_below(&prng, 5), v);
		assert_int_equal(gci_records_open(&p.rx, record, k, v, nv, skip, &type), n);
		assert_int_equal(type, GCI_RECORD_DATA);
		assert_memory_equal(in, out, n);
		if (i % 100 == 99) {
			assert_int_equal(gci_records_renew(&p.tx), 0);
			assert_int_equal(gci_records_renew(&p.rx), 0);
		}
	}
	close_pair(&p);
}

/* Content with a type of its own and padding: records end with a byte that is taken as their type,
 * so zero is a legal one to make, and the rest is content. */
static void padding_is_not_content(void **state)
{
	uint8_t in[300], out[300], record[300 + FRAME];
	struct iovec v[3] = {{in, 7}, {in + 7, sizeof(in) - 7}};
	struct pair p;
	size_t content, n;
	ssize_t k;
	int type;

	(void)state;
	open_pair(&p);
	for (content = 0; content <= 20; content++)
		for (n = content; n < 290; n += 1 + n / 4) {
			memset(in, 7, content);
			memset(in + content, 0, n - content + 1);
			in[content] = n > content ? GCI_RECORD_HANDSHAKE : 0;
			k = gci_records_seal(
				&p.tx, n > content ? 0 : GCI_RECORD_HANDSHAKE, v, 2, 0, n, record);
			assert_int_equal(k, n + FRAME);
			v[0] = (struct iovec){out, 5};
			v[1] = (struct iovec){out + 5, 4};
			v[2] = (struct iovec){out + 9, sizeof(out) - 9};
			k = gci_records_open(&p.rx, record, n + FRAME, v, 3, 2, &type);
			v[0] = (struct iovec){in, 7};
			v[1] = (struct iovec){in + 7, sizeof(in) - 7};
			if (!content) { /* legal of data only */
				assert_int_equal(k, -EBADMSG);
				continue;
			}
			assert_int_equal(k, content);
			assert_int_equal(type, GCI_RECORD_HANDSHAKE);
			assert_memory_equal(out + 2, in, content);
		}
	/* Nothing but padding has no type, whatever there was before it. */
	memset(in, 0, sizeof(in));
	memset(in, GCI_RECORD_DATA, 3);
	for (n = 0; n < 100; n += 33) {
		k = gci_records_seal(&p.tx, 0, v, 2, 3, n, record);
		assert_true(k > 0);
		k = gci_records_open(&p.rx, record, (size_t)k, v, 2, 3, &type);
		assert_int_equal(k, -EBADMSG);
	}
	close_pair(&p);
}

static int passes(struct pair *p, const uint8_t *record, size_t n)
{
	uint8_t out[100];
	struct iovec v = {out, sizeof(out)};
	int type;
	ssize_t k = gci_records_glance(record, n);

	return k == (ssize_t)n && gci_records_open(&p->rx, record, n, &v, 1, 0, &type) >= 0;
}

/* Every bit of a record and its header; a record out of turn; another key's. */
static void nothing_else_passes(void **state)
{
	uint8_t in[60] = "content", record[3][sizeof(in) + FRAME];
	const size_t n = sizeof(record[0]);
	struct iovec v = {in, sizeof(in)};
	struct pair p;
	size_t bit, i;

	(void)state;
	open_pair(&p);
	for (i = 0; i < 3; i++)
		assert_int_equal(
			gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, sizeof(in), record[i]),
			n);
	for (bit = 0; bit < 8 * n; bit++) {
		record[0][bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (passes(&p, record[0], n))
			fail_msg("bit %zu was not found", bit);
		record[0][bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_false(passes(&p, record[1], n)); /* before its turn */
	assert_true(passes(&p, record[0], n));
	assert_false(passes(&p, record[0], n)); /* again */
	assert_true(passes(&p, record[1], n));
	assert_int_equal(gci_records_renew(&p.rx), 0);
	assert_false(passes(&p, record[2], n)); /* with the key before */
	assert_int_equal(gci_records_renew(&p.tx), 0);
	assert_int_equal(
		gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, sizeof(in), record[0]), n);
	assert_true(passes(&p, record[0], n));
	close_pair(&p);
}

static void headers(void **state)
{
	uint8_t head[GCI_RECORD_HEAD] = {GCI_RECORD_DATA, 3, 3, 0x40, 0x11};
	size_t n, i;

	(void)state;
	for (n = 0; n < sizeof(head); n++)
		assert_int_equal(gci_records_glance(head, n), 0);
	assert_int_equal(gci_records_glance(head, n), GCI_RECORD_WHOLE);
	for (i = 0; i < 3; i++) {
		head[i] ^= 1;
		assert_int_equal(gci_records_glance(head, i), 0);
		assert_int_equal(gci_records_glance(head, i + 1), -1);
		head[i] ^= 1;
	}
	head[4] = 0x12; /* too long by one */
	assert_int_equal(gci_records_glance(head, n), -1);
	head[3] = 0;
	head[4] = GCI_RECORD_TAIL;
	assert_int_equal(gci_records_glance(head, n), GCI_RECORD_HEAD + GCI_RECORD_TAIL);
	head[4] = GCI_RECORD_TAIL - 1; /* without a type */
	assert_int_equal(gci_records_glance(head, n), -1);
}

static void a_key_has_its_limits(void **state)
{
	static uint8_t in[GCI_RECORD_NBYTES + 1], record[GCI_RECORD_WHOLE + 1];
	struct iovec v = {in, sizeof(in)};
	struct pair p;
	ssize_t n;
	int type;

	(void)state;
	open_pair(&p);
	assert_int_equal(
		gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, sizeof(in), record), -EINVAL);
	assert_int_equal(/* not so much there */
		gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, sizeof(in) - 5, 6, record),
		-EINVAL);
	p.tx.keys->nrecords = p.rx.keys->nrecords = GCI_RECORDS_MOST - 1;
	n = gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, 9, record);
	assert_int_equal(n, 9 + FRAME);
	assert_int_equal(gci_records_open(&p.rx, record, (size_t)n, &v, 1, 0, &type), 9);
	assert_int_equal(gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, 9, record), -EOVERFLOW);
	assert_int_equal(gci_records_renew(&p.tx), 0);
	assert_int_equal(gci_records_renew(&p.rx), 0);
	n = gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, 9, record);
	assert_int_equal(gci_records_open(&p.rx, record, (size_t)n, &v, 1, 0, &type), 9);
	p.rx.keys->nrecords = UINT64_MAX;
	assert_int_equal(gci_records_open(&p.rx, record, (size_t)n, &v, 1, 0, &type), -EOVERFLOW);
	close_pair(&p);
}

/* It has the keys' number of the next record, and would use each nonce a second time. */
static void a_child_by_fork_seals_nothing(void **state)
{
	uint8_t in[9] = "no child", out[9], record[100];
	struct iovec v = {in, sizeof(in)}, to = {out, sizeof(out)};
	struct pair p;
	ssize_t n;
	int status = -1, type;
	pid_t pid;

	(void)state;
	open_pair(&p);
	n = gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, sizeof(in), record);
	assert_int_equal(n, sizeof(in) + FRAME);
	pid = fork();
	if (!pid) {
		static const struct gci_record_keys zero;

		_exit(memcmp(p.tx.keys, &zero, sizeof(zero)) != 0 ||
			gci_records_seal(&p.tx, GCI_RECORD_DATA, &v, 1, 0, sizeof(in), record) !=
				-EOWNERDEAD ||
			gci_records_open(&p.rx, record, (size_t)n, &to, 1, 0, &type) !=
				-EOWNERDEAD);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
	assert_int_equal(gci_records_open(&p.rx, record, (size_t)n, &to, 1, 0, &type), sizeof(in));
	assert_memory_equal(in, out, sizeof(in));
	close_pair(&p);
}

static void keys_are_wiped(void **state)
{
	static const struct gci_records zero;
	struct pair p;

	(void)state;
	open_pair(&p);
	close_pair(&p);
	assert_memory_equal(&p.tx, &zero, sizeof(zero));
	gci_records_deinit(&p.tx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rfc_s_trace),
		cmocka_unit_test(any_size_in_any_pieces),
		cmocka_unit_test(padding_is_not_content),
		cmocka_unit_test(nothing_else_passes),
		cmocka_unit_test(headers),
		cmocka_unit_test(a_key_has_its_limits),
		cmocka_unit_test(a_child_by_fork_seals_nothing),
		cmocka_unit_test(keys_are_wiped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
