/* SPDX-License-Identifier: MIT
 * Requests over the control socket: whatever comes, each line gets one reply, which is one line of
 * JSON that says whether all was well. */
#include "launcher/ctl.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int budget(
	void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	const char *from;
	uint64_t rate;
	int rc = gci_json_string(request, "from", 64, &from);

	(void)user;
	(void)e;
	if (!rc)
		rc = gci_json_uint(request, "rate", 1, UINT64_C(1) << 60, &rate);
	if (!rc)
		json_object_set_new(reply, "from", json_string(from));
	return rc;
}

static const char *const budget_keys[] = {"cmd", "from", "rate", NULL};
static const struct gci_jobctl_command commands[] = {
	{"budget", budget_keys, budget}, {NULL, NULL, NULL}};

static void check(const char *line, size_t len)
{
	struct gci_buf out = {0};
	json_t *reply;

	gci_jobctl_answer(commands, NULL, line, len, &out);
	if (out.failed || !out.len || memchr(out.data, '\n', out.len) != out.data + out.len - 1)
		abort();
	reply = json_loadb((const char *)out.data, out.len, 0, NULL);
	if (!json_is_boolean(json_object_get(reply, "ok")) ||
		json_is_true(json_object_get(reply, "ok")) ==
			json_is_string(json_object_get(reply, "error")))
		abort();
	json_decref(reply);
	gci_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_buf in = {0};
	size_t len, used;
	const char *line;

	gci_buf_put(&in, data, size);
	while (gci_jobctl_line(&in, &line, &len, &used) > 0) {
		check(line, len);
		gci_buf_consume(&in, used);
	}
	gci_buf_free(&in);
	return 0;
}
