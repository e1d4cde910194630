/* SPDX-License-Identifier: MIT
 * Which data path. */
#include "transport/path.h"

#include "base/log.h"
#include "transport/tcp_impl.h"

#include <string.h>

static const char *const names[] = {"auto", "poll", "uring"};

int gci_data_path_parse(const char *name, enum gci_data_path *out)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*out = (enum gci_data_path)i;
		return 0;
	}
	return GCOLL_ERR_INVAL;
}

void gci_path_open(struct gci_tcp *t, enum gci_data_path which)
{
	char why[GCI_PATH_WHY] = "";

	t->path_open = 1;
	t->path = &gci_path_poll;
	if (which == GCI_DATA_PATH_URING && !gci_path_uring.open(t, why))
		t->path = &gci_path_uring;
	if (which == GCI_DATA_PATH_URING && t->path != &gci_path_uring)
		gci_log(GCI_LOG_WARN, "data path: poll; uring was asked for, but: %s", why);
	else
		gci_log(GCI_LOG_INFO, "data path: %s%s", t->path->name,
			which == GCI_DATA_PATH_AUTO ? " (auto)" : "");
}
