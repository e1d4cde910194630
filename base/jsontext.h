/* SPDX-License-Identifier: MIT
 * JSON files that come from outside, read with jansson: bounded, strict, and with the line of what
 * is wrong, which jansson does not keep.
 *
 *	struct gci_json j;
 *	struct gci_json_node root, links, l;
 *
 *	rc = gci_json_open(&j, &root, text, len, MOST, "p.json", e);
 *	if (!rc)
 *		rc = gci_json_keys(&root, keys);	// nothing else may be there
 *	if (!rc)
 *		rc = gci_json_array(&root, "links", 0, 100, &links);
 *	for (i = 0; !rc && i < links.n; i++) {
 *		rc = gci_json_item(&links, i, &l);
 *		if (!rc)
 *			rc = gci_json_uint(&l, "latency_ns", 0, 1000, &latency_ns);
 *	}
 *	gci_json_close(&j);	// after a failed open, too
 *
 * Errors are "p.json:7: links[0].latency_ns = -5, expected a whole number from 0 to 1000". All that
 * can fail return 0, GCOLL_ERR_PARSE or GCOLL_ERR_NOMEM. What a node points to lives as long as
 * the document; the text must stay as long. */
#ifndef GCI_BASE_JSONTEXT_H
#define GCI_BASE_JSONTEXT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct json_t;

/* Objects and arrays of one file: jansson needs some 200 bytes for an empty one. */
#define GCI_JSON_MAX_CONTAINERS (1u << 18)

struct gci_json {
	struct json_t *root;
	const char *text, *name;
	size_t len;
	struct gci_error *e;
};

/* A value and where it stands. */
struct gci_json_node {
	const struct gci_json *doc;
	const struct json_t *value;
	size_t n; /* of an array: its elements */
	char path[88];
};

/* The text, of at most `most` bytes, must be one object without the same key twice. */
int gci_json_open(struct gci_json *j, struct gci_json_node *root, const char *text, size_t len,
	size_t most, const char *name, struct gci_error *e);
void gci_json_close(struct gci_json *j);

/* Refuses keys of the object that are not in `known`, which ends with NULL. */
int gci_json_keys(const struct gci_json_node *object, const char *const *known);

int gci_json_has(const struct gci_json_node *object, const char *key);

/* The value of a key that must be there, and of this kind and within these bounds. */
int gci_json_uint(const struct gci_json_node *object, const char *key, uint64_t least,
	uint64_t most, uint64_t *out);
int gci_json_bool(const struct gci_json_node *object, const char *key, int *out);
/* Not empty, at most `most` bytes, printable ASCII without quotes and backslashes. */
int gci_json_string(
	const struct gci_json_node *object, const char *key, size_t most, const char **out);
/* 64 bits as 16 lower-case hexadecimal digits. */
int gci_json_digest(const struct gci_json_node *object, const char *key, uint64_t *out);
/* "2026-11-21T16:29:00Z" */
int gci_json_date(const struct gci_json_node *object, const char *key, const char **out);
int gci_json_object(const struct gci_json_node *object, const char *key, struct gci_json_node *out);
int gci_json_array(const struct gci_json_node *object, const char *key, size_t least, size_t most,
	struct gci_json_node *out);

/* Element i of an array: any, an object, or a string as above. */
void gci_json_at(const struct gci_json_node *array, size_t i, struct gci_json_node *out);
int gci_json_item(const struct gci_json_node *array, size_t i, struct gci_json_node *out);
int gci_json_string_item(
	const struct gci_json_node *array, size_t i, size_t most, const char **out);

/* "NAME:LINE: PATH = VALUE, expected ...", of the node's key, or of the node with key NULL; "no
 * PATH, expected ..." where there is no such key. Sets and returns GCOLL_ERR_PARSE. */
int gci_json_expected(const struct gci_json_node *node, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* "NAME:LINE: ..." with the line of the same; sets and returns `status`. */
int gci_json_fail(const struct gci_json_node *node, const char *key, int status, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* The line (from 1) where the value at a path like "links[3].gap[2]" begins, in a text that is
 * valid JSON; of the innermost one around it where there is none. Keys with '.', '[' or escapes are
 * not found. */
int gci_json_line(const char *text, size_t len, const char *path);

#endif
