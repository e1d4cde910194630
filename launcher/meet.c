/* SPDX-License-Identifier: MIT
 * Whether the ranks can reach each other, as far as their addresses tell. */
#include "launcher/rdv_internal.h"

#include <stdio.h>

/* `lonely` cannot be reached from `other`'s host. */
static int refuse(const struct gci_rdv *r, uint32_t lonely, uint32_t other, const char *what,
	char *why, size_t size)
{
	char there[GCI_REACH_TEXT], here[GCI_REACH_TEXT];

	snprintf(why, size,
		"rank %u on %s takes connections at %.80s only, rank %u on %s at %.80s: expected "
		"%s (see --interfaces)",
		lonely, r->config.names[lonely], gci_reach_format(&r->ranks[lonely].reach, there),
		other, r->config.names[other], gci_reach_format(&r->ranks[other].reach, here),
		what);
	return -1;
}

int gci_rdv_meet(const struct gci_rdv *r, char *why, size_t size)
{
	static const struct gci_reach four = {1, 1, 0, {{0}}}, six = {1, 1, 1, {{0}}};
	uint32_t only[2] = {r->config.size, r->config.size}; /* a rank of one family only */
	uint32_t lonely = r->config.size, other = r->config.size, i;

	for (i = 0; i < r->config.size; i++) {
		const struct gci_reach *reach = &r->ranks[i].reach;

		if (!r->ranks[i].joined)
			continue;
		if (!gci_reach_meet(reach, &six))
			only[0] = i;
		if (!gci_reach_meet(reach, &four))
			only[1] = i;
		if (gci_reach_is_loopback(reach))
			lonely = i;
		else
			other = i;
	}
	if (only[0] < r->config.size && only[1] < r->config.size)
		return refuse(
			r, only[1], only[0], "addresses of one family, IPv4 or IPv6", why, size);
	/* All on loopback: they are on one machine, by whatever names. */
	if (lonely < r->config.size && other < r->config.size &&
		r->config.hosts[lonely] != r->config.hosts[other])
		return refuse(r, lonely, other, "addresses that lead from host to host", why, size);
	return 0;
}
