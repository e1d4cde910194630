/* SPDX-License-Identifier: MIT
 * Warming up: TCP sends little on a new connection and more with every round trip that goes well,
 * so a connection over a long path needs many of them before it carries what it can. Padding, which
 * the receiver drops, does that ahead of the first bulk data. It goes out only while no request of
 * the peer's is under way, only so much of it, and never again once bulk data has come or gone. */
#include "transport/endpoint.h"

#include "base/mem.h"

/* So much payload, to and from whomever, is bulk data. */
#define BULK_NBYTES (1u << 20)

/* Of one frame: about half of what a new connection may send, for data waits behind it. */
#define PIECE_NBYTES (8u << 10)

static const uint8_t nothing[PIECE_NBYTES];

static void add(struct gci_ep *ep, int peer, uint64_t stream_nbytes)
{
	struct gci_ep_peer *p = gci_ep_peer(ep, peer);

	if (!p || !stream_nbytes || ep->bulk)
		return;
	if (!p->pads)
		p->pads = gci_calloc(1, sizeof(*p->pads));
	if (!p->pads) {
		gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for padding");
		return;
	}
	if (p->pads->most < stream_nbytes)
		p->pads->most = stream_nbytes;
	ep->warming = 1;
	ep->io.kick(ep->io.user, peer);
}

static void end(struct gci_ep *ep)
{
	ep->bulk = 1;
	ep->warming = 0;
}

/* Also when it has to wait for a request's end. */
static int lacks_pads(const struct gci_ep_peer *p)
{
	unsigned i;

	for (i = 0; p && p->pads && i < p->link.streams; i++)
		if (p->pads->gone[i] < p->pads->most)
			return 1;
	return 0;
}

int gci_ep_wants_pads(const struct gci_ep *ep, int peer)
{
	const struct gci_ep_peer *p = ep->peers[peer];

	return ep->warming && !ep->silent && p && !p->requests && !gci_ep_status(ep) &&
	       lacks_pads(p);
}

static int warming(struct gci_ep *ep)
{
	int i;

	if (ep->bulk)
		return -1;
	for (i = 0; ep->warming && i < ep->config->size; i++)
		if (lacks_pads(ep->peers[i]))
			return 1;
	ep->warming = 0;
	return 0;
}

int gci_ep_warm(struct gci_ep *ep, int peer, uint64_t stream_nbytes)
{
	if (peer >= 0)
		add(ep, peer, stream_nbytes);
	else if (stream_nbytes)
		end(ep);
	return warming(ep);
}

void gci_ep_note_bulk(struct gci_ep *ep, uint32_t nbytes)
{
	if (ep->bulk)
		return;
	ep->short_nbytes += nbytes;
	if (ep->short_nbytes >= BULK_NBYTES)
		end(ep);
}

void gci_ep_resume_pads(struct gci_ep *ep)
{
	int i;

	if (warming(ep) <= 0)
		return;
	for (i = 0; i < ep->config->size; i++)
		if (gci_ep_wants_pads(ep, i))
			ep->io.kick(ep->io.user, i);
}

int gci_ep_pull_pad(struct gci_ep *ep, int peer, unsigned stream, struct gci_life *life,
	struct gci_ep_frame *out)
{
	struct gci_ep_peer *p = ep->peers[peer];
	struct gci_frame f = {.type = GCI_FRAME_PAD, .nbytes = PIECE_NBYTES};

	if (!gci_ep_wants_pads(ep, peer) || p->pads->gone[stream] >= p->pads->most)
		return 0;
	*out = (struct gci_ep_frame){.payload = nothing, .nbytes = f.nbytes, .pad = 1};
	gci_ep_encode(ep, p, life, &f, out);
	p->pads->gone[stream] += f.nbytes;
	p->stats.tx_pad_nbytes += f.nbytes;
	return 1;
}

int gci_ep_on_pad(struct gci_ep *ep, struct gci_ep_peer *p, const struct gci_frame *f,
	struct gci_ep_sink *sink)
{
	sink->nbytes = f->nbytes;
	sink->scratch = gci_blocks_take(&ep->blocks);
	sink->dst = sink->scratch;
	if (!sink->scratch)
		return gci_ep_fail(ep, GCOLL_ERR_NOMEM, -1, "out of memory for a frame");
	p->stats.rx_pad_nbytes += f->nbytes;
	return 0;
}
