/* SPDX-License-Identifier: MIT
 * A growing byte buffer, and a bounded reader: the one codec of all wire formats. Integers are
 * little-endian. Writers and readers remember a failure, so a sequence is checked once, at its
 * end. */
#ifndef GCI_BASE_BUF_H
#define GCI_BASE_BUF_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gci_buf {
	uint8_t *data;
	size_t len, cap;
	int failed; /* out of memory at some time: contents are incomplete */
	int secret; /* set by the owner: no memory is given back with anything in it */
};

void gci_buf_free(struct gci_buf *b);
void gci_buf_put(struct gci_buf *b, const void *data, size_t len);

/* Memory for `len` bytes more behind b->len, which whoever fills it moves on. NULL: no memory. */
uint8_t *gci_buf_room(struct gci_buf *b, size_t len);

void gci_buf_put_u8(struct gci_buf *b, uint8_t v);
void gci_buf_put_u16(struct gci_buf *b, uint16_t v);
void gci_buf_put_u32(struct gci_buf *b, uint32_t v);
void gci_buf_put_u64(struct gci_buf *b, uint64_t v);

/* u32 length and the bytes; NULL is the empty string. */
void gci_buf_put_str(struct gci_buf *b, const char *s);

/* printf at the end, without the terminating zero (gci_buf_cstr adds one). */
void gci_buf_printf(struct gci_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The contents as a C string, owned by the buffer; "" when out of memory. */
const char *gci_buf_cstr(struct gci_buf *b);

/* Drops the first n bytes. */
void gci_buf_consume(struct gci_buf *b, size_t n);

struct gci_reader {
	const uint8_t *data;
	size_t len;
	int failed; /* read past the end at some time: values read are zero */
};

const uint8_t *gci_read(struct gci_reader *r, size_t len); /* NULL when there is not as much */
uint8_t gci_read_u8(struct gci_reader *r);
uint16_t gci_read_u16(struct gci_reader *r);
uint32_t gci_read_u32(struct gci_reader *r);
uint64_t gci_read_u64(struct gci_reader *r);

/* A string of at most `max` bytes without zeros inside; new memory, or NULL (and failed). */
char *gci_read_str(struct gci_reader *r, size_t max);

/* Fixed places in a header: one instruction each, where a loop over bytes would not be. */
static inline void gci_store_u16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint16_t gci_load_u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline void gci_store_u32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void gci_store_u64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint32_t gci_load_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t gci_load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

#endif
