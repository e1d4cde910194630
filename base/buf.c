/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gci_buf_free(struct gci_buf *b)
{
	if (b->secret && b->data)
		explicit_bzero(b->data, b->cap);
	gci_free(b->data);
	memset(b, 0, sizeof(*b));
}

static int grow(struct gci_buf *b, size_t need)
{
	struct gci_buf old = *b;

	if (!b->secret || need <= b->cap)
		return gci_grow(&b->data, &b->cap, need, 1);
	b->data = NULL;
	b->cap = 0;
	if (gci_grow(&b->data, &b->cap, need, 1)) {
		*b = old;
		return -1;
	}
	if (old.len)
		memcpy(b->data, old.data, old.len);
	gci_buf_free(&old);
	return 0;
}

uint8_t *gci_buf_room(struct gci_buf *b, size_t len)
{
	if (b->failed || len > SIZE_MAX - b->len || grow(b, b->len + len)) {
		b->failed = 1;
		return NULL;
	}
	return b->data + b->len;
}

void gci_buf_put(struct gci_buf *b, const void *data, size_t len)
{
	uint8_t *p = len ? gci_buf_room(b, len) : NULL;

	if (!p)
		return;
	memcpy(p, data, len);
	b->len += len;
}

void gci_buf_put_u8(struct gci_buf *b, uint8_t v)
{
	gci_buf_put(b, &v, 1);
}

void gci_buf_put_u16(struct gci_buf *b, uint16_t v)
{
	uint8_t p[2] = {(uint8_t)v, (uint8_t)(v >> 8)};

	gci_buf_put(b, p, sizeof(p));
}

void gci_buf_put_u32(struct gci_buf *b, uint32_t v)
{
	uint8_t p[4];

	gci_store_u32(p, v);
	gci_buf_put(b, p, sizeof(p));
}

void gci_buf_put_u64(struct gci_buf *b, uint64_t v)
{
	uint8_t p[8];

	gci_store_u64(p, v);
	gci_buf_put(b, p, sizeof(p));
}

void gci_buf_put_str(struct gci_buf *b, const char *s)
{
	size_t len = s ? strlen(s) : 0;

	gci_buf_put_u32(b, (uint32_t)len);
	gci_buf_put(b, s, len);
}

void gci_buf_printf(struct gci_buf *b, const char *fmt, ...)
{
	va_list ap, again;
	uint8_t *p;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	p = len < 0 ? NULL : gci_buf_room(b, (size_t)len + 1);
	if (p) {
		vsnprintf((char *)p, (size_t)len + 1, fmt, again);
		b->len += (size_t)len;
	} else {
		b->failed = 1;
	}
	va_end(again);
	va_end(ap);
}

const char *gci_buf_cstr(struct gci_buf *b)
{
	uint8_t *p = gci_buf_room(b, 1);

	if (!p)
		return "";
	*p = 0;
	return (const char *)b->data;
}

void gci_buf_consume(struct gci_buf *b, size_t n)
{
	if (n > b->len)
		n = b->len;
	b->len -= n;
	if (b->len)
		memmove(b->data, b->data + n, b->len);
	if (b->secret && n)
		explicit_bzero(b->data + b->len, n);
}

const uint8_t *gci_read(struct gci_reader *r, size_t len)
{
	const uint8_t *p = r->data;

	if (r->failed || len > r->len) {
		r->failed = 1;
		return NULL;
	}
	r->data += len;
	r->len -= len;
	return p;
}

uint8_t gci_read_u8(struct gci_reader *r)
{
	const uint8_t *p = gci_read(r, 1);

	return p ? *p : 0;
}

uint16_t gci_read_u16(struct gci_reader *r)
{
	const uint8_t *p = gci_read(r, 2);

	return p ? (uint16_t)(p[0] | p[1] << 8) : 0;
}

uint32_t gci_read_u32(struct gci_reader *r)
{
	const uint8_t *p = gci_read(r, 4);

	return p ? gci_load_u32(p) : 0;
}

uint64_t gci_read_u64(struct gci_reader *r)
{
	const uint8_t *p = gci_read(r, 8);

	return p ? gci_load_u64(p) : 0;
}

char *gci_read_str(struct gci_reader *r, size_t max)
{
	uint32_t len = gci_read_u32(r);
	const uint8_t *p = len > max ? NULL : gci_read(r, len);
	char *s = NULL;

	if (p && !memchr(p, 0, len))
		s = gci_strndup((const char *)p, len);
	if (!s)
		r->failed = 1;
	return s;
}
