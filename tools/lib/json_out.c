/* SPDX-License-Identifier: MIT */
#include "tools/lib/json_out.h"

#include "base/error.h"

#include <stdlib.h>

json_t *gct_json_whole(uint64_t v)
{
	return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

void gct_json_set(json_t *object, const char *key, json_t *v, int *failed)
{
	*failed |= json_object_set_new(object, key, v) != 0;
}

void gct_json_append(json_t *array, json_t *v, int *failed)
{
	*failed |= json_array_append_new(array, v) != 0;
}

int gct_json_print(json_t *root, int failed, struct gci_buf *out)
{
	char *text = root && !failed ? json_dumps(root, JSON_INDENT(1)) : NULL;

	if (text)
		gci_buf_printf(out, "%s\n", text);
	failed |= !text;
	free(text); /* jansson's */
	json_decref(root);
	return failed || out->failed ? GCOLL_ERR_NOMEM : 0;
}
