/* SPDX-License-Identifier: MIT
 * In place of path_uring.c and uring.c where gridcoll is built without liburing. */
#include "transport/path.h"

#include <errno.h>
#include <stdio.h>

int gci_uring_probe(char why[GCI_PATH_WHY])
{
	snprintf(why, GCI_PATH_WHY, "gridcoll was built without liburing");
	return -ENOSYS;
}

static int refuse(struct gci_tcp *t, char why[GCI_PATH_WHY])
{
	(void)t;
	return gci_uring_probe(why);
}

const struct gci_path_ops gci_path_uring = {.name = "uring", .open = refuse};
