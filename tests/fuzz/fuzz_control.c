/* SPDX-License-Identifier: MIT
 * The control protocol's decoder. What it takes must encode to what decodes to the same. */
#include "base/mem.h"
#include "transport/control.h"

#include <stdlib.h>
#include <string.h>

static void put(struct gci_buf *out, const struct gci_ctl_message *m)
{
	switch (m->type) {
	case GCI_CTL_HELLO:
		gci_ctl_put_hello(out, &m->hello);
		break;
	case GCI_CTL_START:
		gci_ctl_put_start(out, &m->start);
		break;
	case GCI_CTL_FAIL:
	case GCI_CTL_ABORT:
		gci_ctl_put_failure(out, m->type, &m->failure);
		break;
	case GCI_CTL_WAIT:
		gci_ctl_put_wait(out, &m->wait);
		break;
	case GCI_CTL_ASK:
	case GCI_CTL_CALLED:
		gci_ctl_put_call(out, m->type, &m->call);
		break;
	case GCI_CTL_BUDGET:
		gci_ctl_put_budget(out, &m->budget);
		break;
	case GCI_CTL_WATCH:
		gci_ctl_put_watch(out, &m->watch);
		break;
	case GCI_CTL_REPORT:
		gci_ctl_put_report(out, &m->report);
		break;
	case GCI_CTL_FLOWS:
		gci_ctl_put_flows(out, &m->flows);
		break;
	case GCI_CTL_AGREE:
	case GCI_CTL_AGREED:
		gci_ctl_put_agree(out, m->type, &m->agree);
		break;
	case GCI_CTL_SHRINK:
	case GCI_CTL_SURVIVORS:
		gci_ctl_put_survivors(out, m->type, &m->survivors);
		break;
	case GCI_CTL_BEAT:
	case GCI_CTL_RESUMED:
		gci_ctl_put_got(out, m->type, m->got.n);
		break;
	case GCI_CTL_RESUME:
		gci_ctl_put_resume(out, &m->resume);
		break;
	case GCI_CTL_BYE:
		gci_ctl_put_plain(out, m->type);
		break;
	default:
		abort();
	}
}

static void check(const struct gci_ctl_message *m)
{
	struct gci_buf once = {0}, twice = {0};
	struct gci_ctl_message again;
	struct gci_buf in = {0};

	put(&once, m);
	gci_buf_put(&in, once.data, once.len);
	if (gci_ctl_get(&in, GCI_CTL_MAX_MESSAGE, &again, NULL) != 1 || in.len)
		abort();
	put(&twice, &again);
	if (once.len != twice.len || memcmp(once.data, twice.data, once.len))
		abort();
	gci_ctl_message_free(&again);
	gci_buf_free(&once);
	gci_buf_free(&twice);
	gci_buf_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gci_error e = {0};
	struct gci_ctl_message m;
	struct gci_buf in = {0};
	int rc;

	gci_buf_put(&in, data, size);
	while ((rc = gci_ctl_get(&in, GCI_CTL_MAX_HELLO, &m, &e)) == 1) {
		check(&m);
		gci_ctl_message_free(&m);
	}
	if (rc < 0 && (!e.status || !e.text[0]))
		abort();
	gci_buf_free(&in);
	return 0;
}
