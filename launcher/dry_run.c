/* SPDX-License-Identifier: MIT
 * What --dry-run shows: each rank's place, and by which commands. */
#include "launcher/placement.h"
#include "launcher/ssh.h"

static void print_rank(const struct gci_placement *p, const struct gci_place *l, uint32_t rank,
	struct gci_buf *out)
{
	const struct gci_access *a = &l->access;

	gci_buf_printf(out, "rank %u: %s, cluster %s, %s%s", rank, p->names[rank],
		p->grid.clusters[gci_grid_cluster_of(&p->grid, (int)p->hosts[rank])].name,
		l->how == GCI_PLACE_SSH     ? "by ssh"
		: l->how == GCI_PLACE_NETNS ? "in namespace "
					    : "on this machine",
		l->netns ? l->netns : "");
	if (a->interfaces)
		gci_buf_printf(out, ", interfaces %s", a->interfaces);
	if (a->ports.lo)
		gci_buf_printf(out, ", ports %u-%u", a->ports.lo, a->ports.hi);
	gci_buf_printf(out, "\n");
}

static void print_guests(const struct gci_placement *p, struct gci_buf *out)
{
	uint32_t first = p->size - p->nguests;

	if (p->nguests > 1)
		gci_buf_printf(out, "ranks %u-%u", first, p->size - 1);
	else
		gci_buf_printf(out, "rank %u", first);
	gci_buf_printf(out, ": started by others, %s",
		p->hosts_are_said ? "on any hosts" : "on these hosts");
	if (!p->hosts_are_said)
		gci_buf_printf(out, ": %d in %d cluster%s", p->grid.nhosts, p->grid.nclusters,
			p->grid.nclusters > 1 ? "s" : "");
	gci_buf_printf(out, "\nthey come to %s, port %u%s\n",
		p->listen_ip ? p->listen_ip : "any address of this machine", p->listen_ports.lo,
		p->listen_ports.lo ? "" : " (any that is free)");
}

void gci_dry_run(const struct gci_placement *p, const struct gci_options *o, struct gci_buf *out)
{
	uint32_t i, k;
	char **s;

	for (i = 0; i < p->nplaces; i++)
		for (k = p->places[i].first; k < p->places[i].first + p->places[i].nranks; k++)
			print_rank(p, &p->places[i], k, out);
	if (p->nguests)
		print_guests(p, out);
	for (i = 0; i < p->nplaces; i++) {
		const struct gci_place *l = &p->places[i];

		if (l->how != GCI_PLACE_SSH)
			continue;
		if (l->starter != GCI_STARTER_SELF)
			gci_buf_printf(out, "on %s: ", p->places[l->starter].host);
		gci_ssh_print(out, l->host, o->remote_path,
			l->starter == GCI_STARTER_SELF ? o->ssh_ns
						       : gci_ssh_elsewhere_ns(o->ssh_ns));
		gci_buf_printf(out, "\n");
	}
	for (s = o->argv; *s; s++) {
		gci_buf_printf(out, "%s", s == o->argv ? "command: " : " ");
		gci_quote_if_needed(out, *s);
	}
	if (*o->argv)
		gci_buf_printf(out, "\n");
}
