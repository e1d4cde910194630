/* SPDX-License-Identifier: MIT */
#include "base/jsontext.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Texts from a file that end up in an error: short, and nothing that moves a cursor. */
static void printable(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

static void path_of(const struct gci_json_node *node, const char *key, char *out, size_t size)
{
	snprintf(out, size, "%.46s%s%.40s", node->path, *node->path && key ? "." : "",
		key ? key : "");
}

static int vfail(const struct gci_json_node *node, const char *key, int status, const char *before,
	const char *fmt, va_list ap)
{
	char path[sizeof(node->path) + 48], text[320];

	path_of(node, key, path, sizeof(path));
	vsnprintf(text, sizeof(text), fmt, ap);
	return gci_error_set(node->doc->e, status, "%s:%d: %s%s", node->doc->name,
		gci_json_line(node->doc->text, node->doc->len, path), before, text);
}

int gci_json_fail(
	const struct gci_json_node *node, const char *key, int status, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = vfail(node, key, status, "", fmt, ap);
	va_end(ap);
	return rc;
}

static void describe(const json_t *v, char out[64])
{
	switch (json_typeof(v)) {
	case JSON_STRING:
		snprintf(out, 64, "\"%.40s\"", json_string_value(v));
		break;
	case JSON_INTEGER:
		snprintf(out, 64, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		snprintf(out, 64, "%g", json_real_value(v));
		break;
	case JSON_OBJECT:
		snprintf(out, 64, "an object");
		break;
	case JSON_ARRAY:
		snprintf(out, 64, "an array of %zu", json_array_size(v));
		break;
	default:
		snprintf(out, 64, "%s",
			json_is_null(v)   ? "null"
			: json_is_true(v) ? "true"
					  : "false");
	}
	printable(out);
}

int gci_json_expected(const struct gci_json_node *node, const char *key, const char *fmt, ...)
{
	const json_t *v = key ? json_object_get(node->value, key) : node->value;
	char path[sizeof(node->path) + 48], value[64], before[sizeof(path) + sizeof(value) + 32];
	va_list ap;
	int rc;

	path_of(node, key, path, sizeof(path));
	printable(path);
	if (v) {
		describe(v, value);
		snprintf(before, sizeof(before), "%s%s%s, expected ", path, *path ? " = " : "",
			value);
	} else {
		snprintf(before, sizeof(before), "no %s, expected ", path);
	}
	va_start(ap, fmt);
	rc = vfail(node, key, GCOLL_ERR_PARSE, before, fmt, ap);
	va_end(ap);
	return rc;
}

/* jansson takes a hundred times the space of some short texts. */
static int too_many_containers(const char *text, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += text[i] == '{' || text[i] == '[';
	return n > GCI_JSON_MAX_CONTAINERS;
}

int gci_json_open(struct gci_json *j, struct gci_json_node *root, const char *text, size_t len,
	size_t most, const char *name, struct gci_error *e)
{
	json_error_t why;

	text = len ? text : "";
	*j = (struct gci_json){.text = text, .len = len, .name = name, .e = e};
	*root = (struct gci_json_node){.doc = j};
	if (len > most)
		return gci_error_set(e, GCOLL_ERR_PARSE, "%s:1: larger than %zu bytes", name, most);
	if (too_many_containers(text, len))
		return gci_error_set(e, GCOLL_ERR_PARSE, "%s:1: more than %u objects and arrays",
			name, GCI_JSON_MAX_CONTAINERS);
	j->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!j->root && json_error_code(&why) == json_error_out_of_memory)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!j->root) {
		printable(why.text);
		return gci_error_set(e, GCOLL_ERR_PARSE, "%s:%d: %s, expected JSON", name,
			why.line > 0 ? why.line : 1, why.text);
	}
	root->value = j->root;
	if (!json_is_object(j->root))
		return gci_json_expected(root, NULL, "an object");
	return 0;
}

void gci_json_close(struct gci_json *j)
{
	json_decref(j->root);
	j->root = NULL;
}

static int is_one_of(const char *key, const char *const *known)
{
	for (; *known; known++)
		if (!strcmp(key, *known))
			return 1;
	return 0;
}

int gci_json_keys(const struct gci_json_node *object, const char *const *known)
{
	char list[200] = "", shown[44];
	const char *const *k;
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)object->value, key, v) {
		if (is_one_of(key, known))
			continue;
		for (k = known; *k; k++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				k == known ? ""
				: k[1]     ? ", "
					   : " or ",
				*k);
		snprintf(shown, sizeof(shown), "%.40s", key);
		printable(shown);
		return gci_json_fail(object, key, GCOLL_ERR_PARSE,
			"unknown key \"%s\", expected %s", shown, list);
	}
	return 0;
}

int gci_json_has(const struct gci_json_node *object, const char *key)
{
	return json_object_get(object->value, key) != NULL;
}

int gci_json_uint(const struct gci_json_node *object, const char *key, uint64_t least,
	uint64_t most, uint64_t *out)
{
	const json_t *v = json_object_get(object->value, key);
	json_int_t n = json_integer_value(v);

	if (json_is_integer(v) && n >= 0 && (uint64_t)n >= least && (uint64_t)n <= most) {
		*out = (uint64_t)n;
		return 0;
	}
	if (least == most)
		return gci_json_expected(object, key, "%llu", (unsigned long long)least);
	return gci_json_expected(object, key, "a whole number from %llu to %llu",
		(unsigned long long)least, (unsigned long long)most);
}

int gci_json_bool(const struct gci_json_node *object, const char *key, int *out)
{
	const json_t *v = json_object_get(object->value, key);

	if (!json_is_boolean(v))
		return gci_json_expected(object, key, "true or false");
	*out = json_is_true(v);
	return 0;
}

/* NULL: it is no such text. */
static const char *plain_string(const json_t *v, size_t most)
{
	const char *s = json_string_value(v), *c;

	if (!s || !*s || json_string_length(v) > most)
		return NULL;
	for (c = s; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			return NULL;
	return s;
}

int gci_json_string(
	const struct gci_json_node *object, const char *key, size_t most, const char **out)
{
	const char *s = plain_string(json_object_get(object->value, key), most);

	if (!s)
		return gci_json_expected(object, key, "a text of 1 to %zu plain characters", most);
	*out = s;
	return 0;
}

int gci_json_digest(const struct gci_json_node *object, const char *key, uint64_t *out)
{
	static const char digits[] = "0123456789abcdef";
	const char *s = json_string_value(json_object_get(object->value, key));
	uint64_t v = 0;
	int i;

	if (!s || strlen(s) != 16 || strspn(s, digits) != 16)
		return gci_json_expected(object, key, "16 digits from 0 to f");
	for (i = 0; i < 16; i++)
		v = v << 4 | (uint64_t)(strchr(digits, s[i]) - digits);
	*out = v;
	return 0;
}

static int is_date(const char *s)
{
	static const char like[] = "dddd-dd-ddTdd:dd:ddZ";
	unsigned month, day, hour, minute, second;
	size_t i;

	if (strlen(s) != sizeof(like) - 1)
		return 0;
	for (i = 0; like[i]; i++)
		if (like[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != like[i])
			return 0;
	if (sscanf(s + 5, "%2u-%2uT%2u:%2u:%2u", &month, &day, &hour, &minute, &second) != 5)
		return 0;
	return month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour < 24 && minute < 60 &&
	       second <= 60;
}

int gci_json_date(const struct gci_json_node *object, const char *key, const char **out)
{
	const char *s = json_string_value(json_object_get(object->value, key));

	if (!s || !is_date(s))
		return gci_json_expected(
			object, key, "a time in UTC such as \"2026-01-31T23:59:00Z\"");
	*out = s;
	return 0;
}

static void child(const struct gci_json_node *parent, const char *key, const json_t *v,
	struct gci_json_node *out)
{
	out->doc = parent->doc;
	out->value = v;
	out->n = json_array_size(v);
	path_of(parent, key, out->path, sizeof(out->path));
}

int gci_json_object(const struct gci_json_node *object, const char *key, struct gci_json_node *out)
{
	const json_t *v = json_object_get(object->value, key);

	if (!json_is_object(v))
		return gci_json_expected(object, key, "an object");
	child(object, key, v, out);
	return 0;
}

int gci_json_array(const struct gci_json_node *object, const char *key, size_t least, size_t most,
	struct gci_json_node *out)
{
	const json_t *v = json_object_get(object->value, key);

	if (!json_is_array(v) || json_array_size(v) < least || json_array_size(v) > most)
		return gci_json_expected(object, key, "an array of %zu to %zu", least, most);
	child(object, key, v, out);
	return 0;
}

void gci_json_at(const struct gci_json_node *array, size_t i, struct gci_json_node *out)
{
	out->doc = array->doc;
	out->value = json_array_get(array->value, i);
	out->n = 0;
	snprintf(out->path, sizeof(out->path), "%.60s[%zu]", array->path, i);
}

int gci_json_item(const struct gci_json_node *array, size_t i, struct gci_json_node *out)
{
	gci_json_at(array, i, out);
	return json_is_object(out->value) ? 0 : gci_json_expected(out, NULL, "an object");
}

int gci_json_string_item(const struct gci_json_node *array, size_t i, size_t most, const char **out)
{
	struct gci_json_node it;

	gci_json_at(array, i, &it);
	*out = plain_string(it.value, most);
	if (*out)
		return 0;
	return gci_json_expected(&it, NULL, "a text of 1 to %zu plain characters", most);
}
