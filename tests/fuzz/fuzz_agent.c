/* SPDX-License-Identifier: MIT
 * What gridcoll-run and its agents say to each other. A frame that is taken must encode to one that
 * decodes to the same. */
#include "base/mem.h"
#include "launcher/agent_msg.h"

#include <stdlib.h>
#include <string.h>

/* The first time, fields may have bits that do not count. */
static void check(struct gci_agent_msg *f, struct gci_buf *out)
{
	struct gci_agent_msg_relay_data data;
	struct gci_agent_msg_start start;
	struct gci_agent_msg_ended ended;
	char **argv, *origin;
	uint32_t id;

	switch (f->type) {
	case GCI_AGENT_MSG_START:
		if (gci_agent_msg_get_start(f, &start))
			return;
		gci_agent_msg_put_start(out, &start);
		gci_agent_msg_start_free(&start);
		break;
	case GCI_AGENT_MSG_ENDED:
	case GCI_AGENT_MSG_RELAY_ENDED:
		if (gci_agent_msg_get_ended(f, &ended))
			return;
		gci_agent_msg_put_ended(out, f->type, &ended);
		gci_free(ended.why);
		break;
	case GCI_AGENT_MSG_RELAY_START:
		if (gci_agent_msg_get_relay_start(f, &id, &argv))
			return;
		gci_agent_msg_put_relay_start(out, id, argv);
		gci_agent_msg_argv_free(argv);
		break;
	case GCI_AGENT_MSG_RELAY_DATA:
		if (gci_agent_msg_get_relay_data(f, &data))
			return;
		gci_agent_msg_put_relay_data(out, &data);
		break;
	case GCI_AGENT_MSG_ORIGIN:
		origin = gci_agent_msg_get_origin(f);
		if (origin)
			gci_agent_msg_put_origin(out, origin);
		gci_free(origin);
		break;
	default:
		return;
	}
	if (out->failed)
		abort();
}

static void check_twice(struct gci_agent_msg *f)
{
	struct gci_buf once = {0}, twice = {0};
	struct gci_agent_msg again;
	size_t at = 0;

	check(f, &once);
	if (once.len) {
		if (gci_agent_msg_next(&once, &at, &again, NULL) != 1 || at != once.len)
			abort();
		check(&again, &twice);
		if (once.len != twice.len || memcmp(once.data, twice.data, once.len))
			abort();
	}
	gci_buf_free(&once);
	gci_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_error e = {0};
	struct gci_buf in = {0};
	struct gci_agent_msg f;
	size_t at = 0;
	int rc;

	gci_buf_put(&in, data, size);
	while ((rc = gci_agent_msg_next(&in, &at, &f, &e)) == 1)
		check_twice(&f);
	if (rc < 0 && !e.text[0])
		abort();
	gci_buf_free(&in);
	return 0;
}
