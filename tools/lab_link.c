/* SPDX-License-Identifier: MIT
 * gridcoll lab link and links: what a program in a lab does to its network. */
#include "base/buf.h"
#include "netem/apply.h"
#include "netem/labfile.h"
#include "netem/netns.h"
#include "netem/tap.h"
#include "tools/lab.h"
#include "tools/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int asks_for_help(int argc, char **argv)
{
	return argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

/* GRIDCOLL_LAB, or NULL after telling that it is not there. */
static const char *lab_file(const char *verb)
{
	const char *lab = getenv("GRIDCOLL_LAB");

	if (!lab)
		fprintf(stderr,
			"gridcoll lab %s: GRIDCOLL_LAB is not set, expected to run inside a lab\n",
			verb);
	return lab;
}

/* gridcoll lab link HOST up|down: pulls a host's cable at the switch's end. */
int lab_link(int argc, char **argv)
{
	static const char usage[] = "link HOST up|down";
	struct gci_lab_port port;
	struct gci_error e = {0};
	const char *lab;
	int home, rc;

	if (asks_for_help(argc, argv)) {
		lab_help(usage);
		return GCT_OK;
	}
	if (argc != 3 || (strcmp(argv[2], "up") && strcmp(argv[2], "down"))) {
		fprintf(stderr, "usage: gridcoll lab %s (inside a running lab)\n", usage);
		return GCT_USAGE;
	}
	lab = lab_file("link");
	if (!lab)
		return GCT_USAGE;
	rc = gci_labfile_port(lab, argv[1], &port, &e);
	home = rc ? -1 : gci_netns_open(NULL, &e);
	if (!rc && home >= 0)
		rc = gci_netns_enter(port.netns, &e);
	if (!rc && home >= 0) {
		const char *ip[] = {"ip", "link", "set", port.dev, argv[2], NULL};

		gci_lab_tool_run(ip, NULL, &e);
		gci_netns_leave(home);
	}
	return e.status ? lab_complain(&e) : GCT_OK;
}

/* gridcoll lab links [A B KEY=VALUE...]: what links between clusters did, or how they are from now. */
int lab_links(int argc, char **argv)
{
	static const char usage[] = "links [A B|\"A > B\"|all KEY=VALUE...]";
	struct gci_buf request = {0}, out = {0};
	struct gci_error e = {0};
	int i;

	if (asks_for_help(argc, argv)) {
		lab_help(usage);
		return GCT_OK;
	}
	if (!lab_file("links"))
		return GCT_USAGE;
	for (i = 1; i < argc; i++)
		gci_buf_printf(&request, "%s%s", i > 1 ? " " : "", argv[i]);
	if (request.failed)
		gci_error_set(&e, GCOLL_ERR_NOMEM, "out of memory");
	else if (request.len && memchr(request.data, '\n', request.len))
		gci_error_set(&e, GCOLL_ERR_INVAL, "expected one line");
	else if (!gci_tap_ask(gci_buf_cstr(&request), &out, &e) && out.len)
		fputs(gci_buf_cstr(&out), stdout);
	gci_buf_free(&request);
	gci_buf_free(&out);
	return e.status ? lab_complain(&e) : GCT_OK;
}
