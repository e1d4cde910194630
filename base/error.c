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

int gci_error_set(struct gci_error *e, int status, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->status)
		return status;
	e->status = status;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	gci_make_printable(e->text);
	return status;
}

int gci_error_errno(struct gci_error *e, const char *fmt, ...)
{
	int saved = errno;
	size_t used;
	va_list ap;

	if (!e || e->status)
		return GCOLL_ERR_SYS;
	e->status = GCOLL_ERR_SYS;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	snprintf(e->text + used, sizeof(e->text) - used, ": %s", strerror(saved));
	gci_make_printable(e->text);
	return GCOLL_ERR_SYS;
}

void gci_error_clear(struct gci_error *e)
{
	e->status = GCOLL_OK;
	e->text[0] = '\0';
}
