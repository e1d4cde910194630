/* SPDX-License-Identifier: MIT
 * What the parts of the grid file's parser share: grid_parse.c reads line by line, collectives/grid/routes.c
 * finds the links' ways over the wires, grid.c looks at the whole, names it, and has the keys that are no part of the model. */
#ifndef GCI_COLLECTIVES_GRID_GRID_IMPL_H
#define GCI_COLLECTIVES_GRID_GRID_IMPL_H

#include "collectives/grid/grid.h"

#define GCI_GRID_NAME_LIMIT 49 /* libinih keeps 50 bytes of a section's or key's name */
#define GCI_GRID_PAIR_LIMIT \
	(2 * GCI_GRID_NAME_LIMIT + 9) /* "route A > B", which our own reader keeps */

#define GCI_GRID_MAX_KEYS 12 /* of one section */
#define GCI_GRID_MAX_ENDS (GCI_GRID_MAX_CLUSTERS + GCI_GRID_MAX_SWITCHES)

/* [host NAME], kept until all hosts are known. */
struct gci_host_section {
	char *name;
	int line;
	struct gci_grid_own own;
};

/* One direction of [link A B] or [route A B]. */
struct gci_link_section {
	struct gci_link link;
	int line;
	int is_route;  /* no wire: a choice of wires */
	int via, nvia; /* where its ends stand in `via` of the parser */
	int via_line;  /* 0: not said */
};

struct gci_grid_key {
	char name[16];
	int line;
};

struct gci_grid_parser {
	struct gci_grid *g;
	const char *file;
	struct gci_error *e;
	/* reader */
	const char *text, *end;
	int line;
	/* the section we are in */
	char section[GCI_GRID_PAIR_LIMIT + 1];
	struct gci_grid_key keys[GCI_GRID_MAX_KEYS]; /* that it has */
	int nkeys;
	int cluster;   /* index, or -1 */
	int nlinks;    /* the last one or two of `links` */
	int in_switch; /* which has no keys */
	int in_host;   /* the last of `own` */
	int in_dilated;
	int dilated_line;               /* 0: none */
	struct gci_link_section *links; /* as they stand in the file */
	size_t nlinks_all, links_cap;
	int *link_at; /* [from * GCI_GRID_MAX_ENDS + to]: 1 + its place in `links`; 0: none */
	int *via;     /* ends that routes pass, section by section */
	size_t nvia, via_cap;
	int *cluster_lines; /* where each cluster was opened */
	size_t cluster_lines_cap;
	int *host_lines; /* where each host was named, in the order of all */
	size_t nhost_lines, host_lines_cap;
	struct gci_host_section *own;
	size_t nown, own_cap;
};

/* Both return what they set. */
__attribute__((format(printf, 3, 4))) int gci_grid_fail_at(
	struct gci_grid_parser *p, int line, const char *fmt, ...);
int gci_grid_nomem(struct gci_grid_parser *p);

/* Counts hosts, refuses what no single line shows, gives [host] sections to their hosts. */
int gci_grid_check(struct gci_grid_parser *p);

/* Wires and links, from the sections that the file has, once all clusters are known. */
int gci_grid_route(struct gci_grid_parser *p);

/* The section [dilated] begins; one of its keys. */
int gci_grid_open_dilated(struct gci_grid_parser *p);
int gci_grid_dilated_key(struct gci_grid_parser *p, const char *key, const char *value);

/* "interfaces" and "ports", of a cluster or a host. */
int gci_grid_is_access_key(const char *key);
int gci_grid_access_key(
	struct gci_grid_parser *p, const char *key, const char *value, struct gci_access *a);

/* Of the whole grid, once it is checked. */
int gci_grid_set_digest(struct gci_grid_parser *p);

#endif
