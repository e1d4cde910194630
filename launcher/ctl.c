/* SPDX-License-Identifier: MIT */
#include "launcher/ctl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gci_jobctl_command *find(
	const struct gci_jobctl_command *commands, const char *name)
{
	for (; commands->name; commands++)
		if (!strcmp(commands->name, name))
			return commands;
	return NULL;
}

static int unknown(const struct gci_jobctl_command *commands, const struct gci_json_node *request)
{
	char list[200] = "";

	for (; commands->name; commands++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			*list ? ", " : "", commands->name);
	return gci_json_expected(request, "cmd", "one of %s", list);
}

static int run(const struct gci_jobctl_command *commands, void *user,
	const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	const struct gci_jobctl_command *c;
	const char *name;
	int rc = gci_json_string(request, "cmd", 40, &name);

	if (rc)
		return rc;
	c = find(commands, name);
	if (!c)
		return unknown(commands, request);
	rc = gci_json_keys(request, c->keys);
	return rc ? rc : c->run(user, request, reply, e);
}

/* What cannot be told for lack of memory makes the buffer a failed one, and ends the connection. */
static void put(struct gci_buf *out, json_t *reply)
{
	char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

	if (text)
		gci_buf_printf(out, "%s\n", text);
	else
		out->failed = 1;
	free(text); /* jansson's */
}

void gci_jobctl_answer(const struct gci_jobctl_command *commands, void *user, const char *line,
	size_t len, struct gci_buf *out)
{
	json_t *reply = json_pack("{s:b}", "ok", 1);
	struct gci_json_node request;
	struct gci_error e = {0};
	struct gci_json j;
	int rc = gci_json_open(&j, &request, line, len, GCI_JOBCTL_REQUEST_NBYTES, "request", &e);

	if (!rc)
		rc = run(commands, user, &request, reply, &e);
	gci_json_close(&j);
	if (rc) {
		json_decref(reply);
		reply = json_pack(
			"{s:b, s:s}", "ok", 0, "error", *e.text ? e.text : gcoll_strerror(rc));
	}
	put(out, reply);
	json_decref(reply);
}

int gci_jobctl_line(const struct gci_buf *in, const char **line, size_t *len, size_t *used)
{
	const uint8_t *end = in->len ? memchr(in->data, '\n', in->len) : NULL;

	if (!end)
		return in->len > GCI_JOBCTL_REQUEST_NBYTES ? -1 : 0;
	*line = (const char *)in->data;
	*len = (size_t)(end - in->data);
	*used = *len + 1;
	return *len > GCI_JOBCTL_REQUEST_NBYTES ? -1 : 1;
}
