/* SPDX-License-Identifier: MIT
 * The commands of gridcoll-run's control socket. */
#include "launcher/job.h"

#include <jansson.h>
#include <stddef.h>
#include <unistd.h>

static int job(void *user, const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	const struct gci_placement *p = gci_job.plan;
	char **argv = user;

	(void)request;
	if (json_object_set_new(reply, "pid", json_integer(getpid())) ||
		json_object_set_new(reply, "command", json_string(*argv)) ||
		json_object_set_new(reply, "ranks", json_integer(p->size)) ||
		json_object_set_new(reply, "clusters", json_integer(p->grid.nclusters)) ||
		json_object_set_new(reply, "dilation", json_integer(p->grid.dilation)))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	return 0;
}

static const char *const no_arguments[] = {"cmd", NULL};

const struct gci_jobctl_command gci_job_commands[] = {
	{"job", no_arguments, job},
	{NULL, NULL, NULL},
};
