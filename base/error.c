/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *gcoll_strerror(int status)
{
	switch (status) {
	case GCOLL_OK:
		return "success";
#define X(name, value, text) \
	case value:          \
		return text;
		GCOLL_ERRORS(X)
#undef X
	}
	return "unknown error";
}

void gci_make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

#define WORD 64 /* shorter ones are not cut */

/* The longest run without a space. */
static char *longest_word(char *text, size_t *len)
{
	char *longest = text;
	size_t n;

	for (*len = 0; *text; text += n + (text[n] == ' ')) {
		n = strcspn(text, " ");
		if (n > *len) {
			longest = text;
			*len = n;
		}
	}
	return longest;
}

/* `n` bytes become at most `keep`, and no UTF-8 character less than whole. */
static void cut_middle(char *p, size_t n, size_t keep)
{
	size_t head = (keep - 3) / 2, tail = keep - 3 - head;

	while (head && (p[head] & 0xc0) == 0x80)
		head--;
	while (tail && (p[n - tail] & 0xc0) == 0x80)
		tail--;
	memcpy(p + head, "...", 3);
	memmove(p + head + 3, p + n - tail, strlen(p + n - tail) + 1);
}

void gci_shorten(char *text, size_t most)
{
	size_t len, n, keep;
	char *word;

	while ((len = strlen(text)) > most) {
		word = longest_word(text, &n);
		/* By half at most: of two long ones no one loses all. */
		keep = len - most < n / 2 ? n - (len - most) : n / 2;
		if (n < WORD) {
			word = text;
			n = len;
			keep = most;
		}
		cut_middle(word, n, keep);
	}
}

static void put_text(struct gci_error *e, const char *why, const char *fmt, va_list ap)
{
	char text[GCI_ERROR_WHOLE];
	size_t used;

	vsnprintf(text, sizeof(text), fmt, ap);
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, "%s%s", why ? ": " : "", why ? why : "");
	gci_make_printable(text);
	gci_shorten(text, sizeof(e->text) - 1);
	memcpy(e->text, text, strlen(text) + 1);
}

int gci_error_set(struct gci_error *e, int status, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->status)
		return status;
	e->status = status;
	va_start(ap, fmt);
	put_text(e, NULL, fmt, ap);
	va_end(ap);
	return status;
}

int gci_error_errno(struct gci_error *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (!e || e->status)
		return GCOLL_ERR_SYS;
	e->status = GCOLL_ERR_SYS;
	va_start(ap, fmt);
	put_text(e, strerror(saved), fmt, ap);
	va_end(ap);
	return GCOLL_ERR_SYS;
}

void gci_error_clear(struct gci_error *e)
{
	e->status = GCOLL_OK;
	e->text[0] = '\0';
}
