/* SPDX-License-Identifier: MIT
 * Output for programs: JSON objects whose making may run out of memory, told once at the end.
 *
 *	json_t *o = json_object();
 *	int failed = 0;
 *
 *	gct_json_set(o, "bytes", gct_json_whole(n), &failed);
 *	return gct_json_print(o, failed, &out); */
#ifndef GCT_JSON_OUT_H
#define GCT_JSON_OUT_H

#include "base/buf.h"

#include <jansson.h>

/* JSON's numbers here end at 2^63 - 1; what is more is that. */
json_t *gct_json_whole(uint64_t v);

/* Take over `v`, which may be NULL: that is a failure, too. */
void gct_json_set(json_t *object, const char *key, json_t *v, int *failed);
void gct_json_append(json_t *array, json_t *v, int *failed);

/* Takes over `root`. 0 or GCOLL_ERR_NOMEM. */
int gct_json_print(json_t *root, int failed, struct gci_buf *out);

#endif
