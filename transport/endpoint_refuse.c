/* SPDX-License-Identifier: MIT
 * What came is not what was sent. Where frames are kept until they are acknowledged, a corrupted
 * one is asked for again the way lost ones are: its connection is closed, and the LOST frame says
 * how many came whole before it. Elsewhere nobody has the bytes any more. A stream's count begins
 * anew with each frame that has moved something; LOST, which each new connection begins with, has
 * not. */
#include "transport/endpoint.h"

#include <stdio.h>

#define MOST_RESENDS 3 /* of the same message, or of one stream's frames in a row */

int gci_ep_refuse(struct gci_ep *ep, int peer, const struct gci_life *life, struct gci_msg *m,
	const char *what)
{
	struct gci_ep_peer *p = ep->peers[peer];
	unsigned times;

	if (gci_ep_status(ep))
		return gci_ep_status(ep);
	p->stats.refused++;
	if (!life)
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, peer,
			"%s from rank %d arrived corrupted at rank %d, and are not kept to be sent "
			"again on this link",
			what, peer, ep->config->rank);
	times = m ? ++m->refused : ++p->refused[life->stream];
	if (times > MOST_RESENDS)
		return gci_ep_fail(ep, GCOLL_ERR_CORRUPT, peer,
			"%s from rank %d arrived corrupted at rank %d, %u times", what, peer,
			ep->config->rank, times);
	snprintf(ep->refusal, sizeof(ep->refusal), "%s arrived corrupted and are asked for again",
		what);
	return GCI_EP_LOST;
}

int gci_ep_refuse_payload(struct gci_ep *ep, int peer, const struct gci_ep_sink *sink)
{
	struct gci_msg *m = sink->msg;
	char what[96];

	snprintf(what, sizeof(what), "%u bytes at %llu of operation %llu, tag %u", sink->nbytes,
		(unsigned long long)sink->offset, (unsigned long long)m->key.seq, m->key.tag);
	return gci_ep_refuse(ep, peer, sink->life, m, what);
}

void gci_ep_accept(struct gci_ep_peer *p, const struct gci_life *life)
{
	if (life)
		p->refused[life->stream] = 0;
}
