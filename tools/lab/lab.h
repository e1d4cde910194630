/* SPDX-License-Identifier: MIT
 * What the verbs of `gridcoll lab` share. */
#ifndef GCI_TOOLS_LAB_H
#define GCI_TOOLS_LAB_H

#include "collectives/grid/grid.h"
#include "netem/guest_msg.h"
#include "netem/weather.h"

enum lab_backend { LAB_AUTO, LAB_HOST, LAB_TAP, LAB_UML, LAB_NBACKENDS };

struct lab_options {
	enum lab_backend backend;
	int dilate_auto;
	uint32_t dilation;
	uint64_t mem_nbytes; /* 0: as the grid needs */
	int quiet;
	int keep_awake;           /* of `run` */
	const char *weather_file; /* of `run` */
	const char *grid_file;
	char **command; /* NULL-terminated */
};

/* Reads `-`-options, GRID where `wants_grid`, and the command. 0, or an exit status + 1. */
int lab_parse(struct lab_options *o, int argc, char **argv, int wants_grid, const char *usage);

/* Prints the usage, what its options mean, and an example. */
void lab_help(const char *usage);

/* For verbs that run no command: 0, or GCT_USAGE after telling of the first of `rest`, what the
 * verb has no use for. */
int lab_nothing_more(char **rest, const char *usage);

/* Reads the grid file and dilates it; complains. 0 or an exit status. */
int lab_load_grid(struct lab_options *o, struct gci_grid *g);

/* All of these, for verbs that take a grid and nothing more. 0, or an exit status + 1. */
int lab_parse_grid(
	struct lab_options *o, int argc, char **argv, const char *usage, struct gci_grid *g);

/* How each backend is asked for, and what it can; a row for each but LAB_AUTO, in the order in which
 * that tries them (backends.c). */
struct lab_way {
	const char *name;
	int (*check)(struct gci_error *e); /* whether it works here */
	/* An exit status, also where `e` has an error. */
	int (*run)(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e);
	/* NULL: a lab stands no longer than the command in it. */
	int (*up)(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e);
	int has_weather; /* links change while a command runs */
};
extern const struct lab_way lab_ways[LAB_NBACKENDS];

/* Which backend, for `auto` by what is there. */
enum lab_backend lab_choose(const struct lab_options *o, struct gci_error *e);

/* How far --dilate auto dilates here. Where the backend is auto, chooses that for good. */
uint32_t lab_dilation(struct lab_options *o, const struct gci_grid *g);

uint64_t lab_memory(const struct lab_options *o, const struct gci_grid *g);

/* Prints "gridcoll lab: error: TEXT"; GCT_USAGE or GCT_FAILED by the status. */
int lab_complain(const struct gci_error *e);

#endif
