/* SPDX-License-Identifier: MIT */
#include "tests/tools/xml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16

struct names {
	char open[DEPTH][16];
	int n;
};

static size_t name_length(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '-' || s[n] == ':')
		n++;
	return n;
}

/* Characters up to one of `end`; entities among them are complete. NULL: something else is there.
 */
static const char *skip_text(const char *s, const char *end)
{
	for (; *s && !strchr(end, *s); s++) {
		if (*s == '<' || *s == '>' || ((unsigned char)*s < ' ' && *s != '\n'))
			return NULL;
		if (*s == '&' && strncmp(s, "&lt;", 4) != 0 && strncmp(s, "&gt;", 4) != 0 &&
			strncmp(s, "&amp;", 5) != 0 && strncmp(s, "&quot;", 6) != 0)
			return NULL;
	}
	return s;
}

static const char *skip_attributes(const char *s)
{
	while (s && *s == ' ') {
		s++;
		s += name_length(s);
		if (strncmp(s, "=\"", 2) != 0)
			return NULL;
		s = skip_text(s + 2, "\"");
		if (!s || *s++ != '"')
			return NULL;
	}
	return s;
}

static const char *skip_tag(const char *s, struct names *names)
{
	int closes = s[1] == '/';
	size_t n = name_length(s += 1 + closes);
	const char *name = s;

	if (!n || n >= sizeof(*names->open))
		return NULL;
	s = skip_attributes(s + n);
	if (s && !strncmp(s, "/>", 2) && !closes)
		return s + 2;
	if (!s || *s != '>')
		return NULL;
	if (!closes) {
		if (names->n == DEPTH)
			return NULL;
		memcpy(names->open[names->n], name, n);
		names->open[names->n++][n] = '\0';
		return s + 1;
	}
	if (!names->n || strlen(names->open[names->n - 1]) != n ||
		strncmp(names->open[--names->n], name, n) != 0)
		return NULL;
	return s + 1;
}

const char *xml_wrong(const char *text, size_t len)
{
	struct names names = {.n = 0};
	const char *s = text;

	if (strlen(text) != len)
		return "a zero byte";
	do {
		s = *s == '<' ? skip_tag(s, &names) : skip_text(s, "<");
		if (!s)
			return "a tag or a character";
	} while (*s && names.n);
	while (s && *s == '\n')
		s++;
	return names.n ? "a tag is not closed" : *s ? "something after the end" : NULL;
}
