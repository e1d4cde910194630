/* SPDX-License-Identifier: MIT
 * Where a value stands in JSON text. The text has been found valid by others; if it is not, the
 * line is some line of it. */
#include "base/jsontext.h"

#include <string.h>

struct scan {
	const char *at, *end;
	int line;
};

static char next(const struct scan *s)
{
	return s->at < s->end ? *s->at : '\0';
}

static void skip_space(struct scan *s)
{
	for (; s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at; s->at++)
		s->line += *s->at == '\n';
}

/* Takes one character, and the space behind it, if it is there. */
static int take(struct scan *s, char c)
{
	if (next(s) != c)
		return 0;
	s->at++;
	skip_space(s);
	return 1;
}

/* From its first quote to behind the last. */
static void skip_string(struct scan *s)
{
	for (s->at++; s->at < s->end && *s->at != '"'; s->at++)
		if (*s->at == '\\' && s->at + 1 < s->end)
			s->at++;
	if (s->at < s->end)
		s->at++;
}

static void skip_word(struct scan *s)
{
	while (s->at < s->end && !memchr(",:[]{}\" \t\r\n", *s->at, 11))
		s->at++;
}

/* A value and the space behind it. Without recursion: files may be nested deeply. */
static void skip_value(struct scan *s)
{
	size_t depth = 0;

	do {
		switch (next(s)) {
		case '"':
			skip_string(s);
			break;
		case '{':
		case '[':
			depth++;
			s->at++;
			break;
		case '}':
		case ']':
			depth -= depth > 0;
			s->at++;
			break;
		case ',':
		case ':':
			s->at++;
			break;
		default:
			if (next(s))
				skip_word(s);
			else if (s->at < s->end)
				s->at++;
		}
		skip_space(s);
	} while (depth && s->at < s->end);
}

/* To the value of a key of the object that begins here. */
static int enter_key(struct scan *s, const char *key, size_t len)
{
	const char *name;
	size_t n;

	if (!take(s, '{'))
		return 0;
	while (next(s) == '"') {
		name = s->at + 1;
		skip_string(s);
		n = (size_t)(s->at - name);
		skip_space(s);
		if (!take(s, ':'))
			return 0;
		if (n == len + 1 && !memcmp(name, key, len))
			return 1;
		skip_value(s);
		if (!take(s, ','))
			return 0;
	}
	return 0;
}

static int enter_item(struct scan *s, size_t i)
{
	if (!take(s, '['))
		return 0;
	for (; i; i--) {
		skip_value(s);
		if (!take(s, ','))
			return 0;
	}
	return next(s) && next(s) != ']';
}

static int enter(struct scan *s, const char **path)
{
	const char *p = *path;
	size_t n = 0, len;

	if (*p == '[') {
		for (p++; *p >= '0' && *p <= '9'; p++)
			n = n * 10 + (size_t)(*p - '0');
		*path = p + (*p == ']');
		return *p == ']' && enter_item(s, n);
	}
	p += *p == '.';
	len = strcspn(p, ".[");
	*path = p + len;
	return enter_key(s, p, len);
}

int gci_json_line(const char *text, size_t len, const char *path)
{
	struct scan s = {text, text + len, 1};
	int line;

	skip_space(&s);
	do
		line = s.line;
	while (*path && enter(&s, &path));
	return line;
}
