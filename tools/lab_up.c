/* SPDX-License-Identifier: MIT
 * gridcoll lab up and down: a grid that stands until it is taken down. Only in the running kernel:
 * a guest of user-mode Linux lives as long as the command it was booted for. */
#include "netem/host.h"
#include "tools/lab.h"
#include "tools/tools.h"

#include <stdio.h>

static int refuse(const char *backend)
{
	fprintf(stderr,
		"gridcoll lab: error: the %s backend has no standing labs, expected: gridcoll "
		"lab run GRID -- CMD (CMD may be a shell)\n",
		backend);
	return GCT_FAILED;
}

int lab_up(int argc, char **argv)
{
	static const char usage[] = "up [--backend auto|host] [--dilate K|auto] GRID";
	struct lab_options o;
	struct gci_error e = {0};
	struct gci_host h;
	struct gci_grid g;
	int rc = lab_parse_grid(&o, argc, argv, usage, &g);

	if (rc)
		return rc - 1;
	switch (lab_choose(&o, &e)) {
	case LAB_HOST:
		if (!gci_host_up(&h, &g, o.dilation, 1, &e)) {
			gci_host_leave(&h);
			printf("export GRIDCOLL_LAB=%s\n", GCI_HOST_LAB);
		}
		break;
	case LAB_UML:
		rc = refuse("uml");
		break;
	case LAB_TAP:
		rc = refuse("tap");
		break;
	default:
		break;
	}
	if (e.status)
		rc = lab_complain(&e);
	gci_grid_free(&g);
	return rc;
}

int lab_down(int argc, char **argv)
{
	struct lab_options o;
	struct gci_error e = {0};
	int found = 0, rc = lab_parse(&o, argc, argv, 0, "down");

	if (rc)
		return rc - 1;
	if (lab_nothing_more(o.command, "down"))
		return GCT_USAGE;
	if (gci_host_down(&found, &e))
		return lab_complain(&e);
	if (!found)
		fprintf(stderr, "gridcoll lab: no lab stands on this machine\n");
	return GCT_OK;
}
