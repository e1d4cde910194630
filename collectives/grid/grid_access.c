/* SPDX-License-Identifier: MIT
 * How hosts are reached: the keys `interfaces` and `ports` of clusters and hosts. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/nics.h"
#include "collectives/grid/grid_impl.h"

#include <string.h>

#define fail(p, ...) gci_grid_fail_at(p, (p)->line, __VA_ARGS__)

static int interfaces_key(struct gci_grid_parser *p, const char *value, struct gci_access *a)
{
	struct gci_error why = {0};
	struct gci_nics nics;

	if (gci_nics_parse(&nics, value, &why))
		return fail(p, "interfaces: %s", why.text);
	if (!nics.n)
		return fail(p, "interfaces =, expected " GCI_NICS_EXPECTED);
	gci_free(a->interfaces); /* of a key that is there twice, which is refused next */
	a->interfaces = gci_strdup(value);
	return a->interfaces ? 0 : gci_grid_nomem(p);
}

int gci_grid_access_key(
	struct gci_grid_parser *p, const char *key, const char *value, struct gci_access *a)
{
	if (!strcmp(key, "interfaces"))
		return interfaces_key(p, value, a);
	if (gci_parse_ports(value, &a->ports))
		return fail(p, "ports = %s, expected " GCI_PORTS_EXPECTED, value);
	return 0;
}

int gci_grid_is_access_key(const char *key)
{
	return !strcmp(key, "interfaces") || !strcmp(key, "ports");
}

struct gci_access gci_grid_access(const struct gci_grid *g, int host)
{
	const struct gci_cluster *c = g->clusters;
	struct gci_access a;

	while (host >= c->nhosts)
		host -= c++->nhosts;
	a = c->access;
	if (c->own_access && c->own_access[host].interfaces)
		a.interfaces = c->own_access[host].interfaces;
	if (c->own_access && c->own_access[host].ports.lo)
		a.ports = c->own_access[host].ports;
	return a;
}

void gci_grid_print_access(const struct gci_access *a, struct gci_buf *out)
{
	if (a->interfaces)
		gci_buf_printf(out, "interfaces = %s\n", a->interfaces);
	if (a->ports.lo)
		gci_buf_printf(out, "ports = %u-%u\n", a->ports.lo, a->ports.hi);
}

void gci_grid_free_access(struct gci_cluster *c)
{
	int h;

	for (h = 0; c->own_access && h < c->nhosts; h++)
		gci_free(c->own_access[h].interfaces);
	gci_free(c->own_access);
	gci_free(c->access.interfaces);
}
