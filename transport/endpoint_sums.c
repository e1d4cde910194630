/* SPDX-License-Identifier: MIT
 * The checksums of payload: made once, at its origin. What is received to be sent on (a request
 * with `sums`) keeps the sums that it came with, by granules, so that it can be cut elsewhere; when
 * it is sent on, its frames' sums are joined from those. */
#include "base/crc32c.h"
#include "transport/endpoint.h"

#include <string.h>

uint32_t gci_ep_granule(uint32_t align)
{
	return align > GCI_EP_GRANULE_NBYTES ? align : GCI_EP_GRANULE_NBYTES / align * align;
}

/* Frames end where granules do, so that a forwarder has the sums of what it sends on. */
uint32_t gci_ep_cut(const struct gci_tp_req *r, uint32_t turn)
{
	uint64_t rest = r->nbytes - r->moved, whole;
	uint32_t granule, most;

	if (rest <= turn && r->nbytes + r->align <= GCI_EP_GRANULE_NBYTES)
		return (uint32_t)rest; /* there is but one granule */
	granule = gci_ep_granule(r->align);
	whole = (r->moved + turn) / granule * granule;
	most = turn < r->align ? r->align : turn / r->align * r->align;
	if (whole > r->moved && whole - r->moved <= most)
		most = (uint32_t)(whole - r->moved);
	return rest < most ? (uint32_t)rest : most;
}

int gci_ep_sum(struct gci_ep *ep, const struct gci_tp_req *r, struct gci_frame *f)
{
	const uint8_t *payload = r->buf;

	if (!f->nbytes)
		return 0;
	payload += f->offset;
	if (!r->sums)
		f->crc = gci_crc32c(0, payload, f->nbytes);
	else if (gci_sums_get(r->sums, payload, f->nbytes, &f->crc))
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, ep->config->rank,
			"at rank %d, %u bytes for rank %d (operation %llu, tag %u) changed in "
			"memory after they had come from another rank",
			ep->config->rank, f->nbytes, r->peer, (unsigned long long)r->key.seq,
			r->key.tag);
	return 0;
}

void gci_ep_want_sums(struct gci_ep_sink *sink, const struct gci_tp_req *r)
{
	if (!sink->checked || !r->sums)
		return;
	sink->sums = r->sums;
	sink->granule = gci_ep_granule(r->align);
	memset(sink->parts, 0, sizeof(sink->parts));
}

/* Up to the end of a granule, or of the frame. */
static uint32_t part_rest(const struct gci_ep_sink *sink)
{
	uint32_t granule = sink->granule - (uint32_t)((sink->offset + sink->got) % sink->granule);
	uint32_t frame = sink->nbytes - sink->got;

	return granule < frame ? granule : frame;
}

static void sum_parts(struct gci_ep_sink *sink, size_t nbytes)
{
	while (nbytes) {
		uint32_t rest = part_rest(sink), n = nbytes < rest ? (uint32_t)nbytes : rest;
		struct gci_sum *part = &sink->parts[sink->nparts];

		if (!part->nbytes)
			part->at = (uintptr_t)(sink->dst + sink->got);
		part->crc = gci_crc32c(part->crc, sink->dst + sink->got, n);
		part->nbytes += n;
		sink->got += n;
		nbytes -= n;
		if (n == rest) {
			sink->sum = gci_crc32c_join(sink->sum, part->crc, part->nbytes);
			sink->nparts++;
		}
	}
}

void gci_ep_landed(struct gci_ep_sink *sink, size_t nbytes)
{
	if (sink->sums) {
		sum_parts(sink, nbytes);
		return;
	}
	if (sink->checked && nbytes)
		sink->sum = gci_crc32c(sink->sum, sink->dst + sink->got, nbytes);
	sink->got += (uint32_t)nbytes;
}

void gci_ep_keep_sums(const struct gci_ep_sink *sink)
{
	struct gci_msg *m = sink->msg;
	unsigned i;

	for (i = 0; sink->sums && i < sink->nparts; i++)
		gci_sums_put(sink->sums, (const void *)sink->parts[i].at, sink->parts[i].nbytes,
			sink->parts[i].crc);
	if (m->early) /* a sum of all, in whatever order the frames come */
		m->sum ^= gci_crc32c_join(sink->crc, 0, m->nbytes - sink->offset - sink->nbytes);
}

int gci_ep_check_early(struct gci_ep *ep, const struct gci_msg *m, const void *at)
{
	struct gci_tp_req *r = m->req;

	if (ep->peers[m->peer]->link.unchecked || !m->nbytes)
		return 0;
	if (gci_crc32c(0, at, m->nbytes) != m->sum)
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, ep->config->rank,
			"at rank %d, %llu bytes from rank %d (operation %llu, tag %u) changed in "
			"memory before they were asked for",
			ep->config->rank, (unsigned long long)m->nbytes, m->peer,
			(unsigned long long)m->key.seq, m->key.tag);
	if (r->sums && at == r->buf)
		gci_sums_put(r->sums, at, (uint32_t)m->nbytes, m->sum);
	return 0;
}
