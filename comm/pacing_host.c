/* SPDX-License-Identifier: MIT */
#include "comm/pacing_host.h"

#include "base/mem.h"
#include "shaping/htb.h"
#include "shaping/mark.h"

#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

#define NO_LIMIT (1ull << 50)

struct gci_pacing_host {
	struct gci_htb htb; /* lock_fd -1: not by it */
	int mark_fd;        /* -1: none */
};

/* 1: another job has it. Those that share by departure times share the mark, too. What cannot be
 * opened tells nothing. */
static int take_mark(struct gci_pacing_host *h, const char *device, int share)
{
	h->mark_fd = gci_mark_open("pace", device);
	return h->mark_fd >= 0 && flock(h->mark_fd, (share ? LOCK_SH : LOCK_EX) | LOCK_NB) &&
	       errno == EWOULDBLOCK;
}

int gci_pacing_host_open(struct gci_pacing_host **out, const char *device, enum gci_pace_how holds,
	enum gci_pacing_mark mark, struct gci_error *e)
{
	struct gci_pacing_host *h = gci_calloc(1, sizeof(*h));
	int rc = 0;

	*out = NULL;
	if (!h)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	h->mark_fd = h->htb.lock_fd = -1;
	if (mark != GCI_PACING_NO_MARK && *device)
		rc = take_mark(h, device, holds == GCI_PACE_EDT);
	if (mark == GCI_PACING_MARK_AGAIN)
		rc = 0;
	if (holds == GCI_PACE_HTB && rc)
		rc = gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"pacing by htb: another job paces what this host sends by %s (--pace edt "
			"makes them share)",
			device);
	else if (holds == GCI_PACE_HTB)
		rc = gci_htb_open(&h->htb, device, e);
	if (rc < 0)
		gci_pacing_host_close(h);
	else
		*out = h;
	return rc;
}

void gci_pacing_host_close(struct gci_pacing_host *h)
{
	if (!h)
		return;
	gci_htb_close(&h->htb);
	if (h->mark_fd >= 0)
		close(h->mark_fd);
	gci_free(h);
}

int gci_pacing_host_rate(
	struct gci_pacing_host *h, unsigned group, uint64_t bps, struct gci_error *e)
{
	if (!h || h->htb.lock_fd < 0)
		return 0;
	return gci_htb_class(&h->htb, group, bps ? bps : NO_LIMIT, e);
}
