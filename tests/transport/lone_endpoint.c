/* SPDX-License-Identifier: MIT */
#include "tests/transport/lone_endpoint.h"

#include "base/crc32c.h"

#include <string.h>

struct gci_ep ep;
struct gci_tp_link link_of_peers;
int nkicks, nfailures, ndone, last_status;

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	(void)user;
	(void)peer;
	*out = link_of_peers;
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	(void)user;
	(void)f;
	nfailures++;
}

static const struct gci_tp_config config = {
	.rank = 0, .size = 3, .epoch = 5, .link = on_link, .on_failure = on_failure};

static void on_kick(void *user, int peer)
{
	(void)user;
	(void)peer;
	nkicks++;
}

static void on_need(void *user, int peer)
{
	(void)user;
	(void)peer;
}

static void on_done(struct gci_tp_req *r, int status)
{
	(void)r;
	ndone++;
	last_status = status;
}

static void open_it(void)
{
	static const struct gci_ep_io io = {.need = on_need, .kick = on_kick};

	assert_int_equal(gci_ep_init(&ep, &config, &io), 0);
	assert_non_null(gci_ep_peer(&ep, 1));
}

void reopen(void)
{
	gci_ep_free(&ep);
	open_it();
}

int setup(void **state)
{
	(void)state;
	nkicks = nfailures = ndone = last_status = 0;
	link_of_peers = (struct gci_tp_link){.streams = 2, .eager_nbytes = EAGER};
	open_it();
	return 0;
}

int teardown(void **state)
{
	(void)state;
	gci_ep_free(&ep);
	return 0;
}

int feed(struct gci_frame f)
{
	static const uint8_t zeros[GCI_TP_FRAME_NBYTES];
	uint8_t head[GCI_FRAME_HEAD_NBYTES];
	struct gci_ep_sink sink;
	int rc;

	f.epoch = f.epoch ? f.epoch : 5;
	f.source = f.source ? f.source : 1;
	f.crc = f.crc ? f.crc : gci_crc32c(0, zeros, f.nbytes);
	gci_frame_encode(&f, head);
	rc = gci_ep_head(&ep, 1, NULL, head, &sink);
	if (rc || sink.type != GCI_FRAME_DATA)
		return rc;
	if (sink.nbytes)
		memset(sink.dst, 0, sink.nbytes);
	gci_ep_landed(&sink, sink.nbytes / 3);
	gci_ep_landed(&sink, sink.nbytes - sink.nbytes / 3);
	rc = gci_ep_payload(&ep, 1, &sink);
	gci_ep_drop(&ep, &sink);
	return rc;
}

struct gci_frame frame(uint32_t tag, uint64_t length, uint64_t offset, uint32_t nbytes)
{
	return (struct gci_frame){.type = GCI_FRAME_DATA,
		.flags = GCI_FRAME_EAGER,
		.id = (uint16_t)tag,
		.key = {.tag = tag},
		.length = length,
		.offset = offset,
		.nbytes = nbytes};
}

struct gci_frame credit(uint32_t tag, uint64_t length)
{
	return (struct gci_frame){.type = GCI_FRAME_CREDIT, .key = {.tag = tag}, .length = length};
}

struct gci_tp_req request(uint32_t tag, void *buf, uint64_t nbytes)
{
	return (struct gci_tp_req){.peer = 1,
		.key = {.tag = tag},
		.buf = buf,
		.nbytes = nbytes,
		.align = 1,
		.done = on_done};
}

void expect_failure(int rc, int status, const char *why)
{
	assert_int_equal(rc, status);
	assert_int_equal(gci_ep_status(&ep), status);
	if (!strstr(ep.failure.text, why))
		fail_msg("\"%s\" does not say \"%s\"", ep.failure.text, why);
	gci_ep_run(&ep);
	gci_ep_run(&ep);
	assert_int_equal(nfailures, 1);
}
