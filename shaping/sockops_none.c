/* SPDX-License-Identifier: MIT
 * In place of sockops.c where gridcoll is built without libbpf. */
#include "shaping/sockops.h"

int gci_sockops_open(struct gci_sockops **s, const char *cgroup, struct gci_error *e)
{
	(void)cgroup;
	*s = NULL;
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "gridcoll was built without eBPF");
}

/* What follows is never called: nothing opens. */

void gci_sockops_close(struct gci_sockops *s)
{
	(void)s;
}

int gci_sockops_class(struct gci_sockops *s, const struct gci_net *nets, size_t n,
	const struct gci_sockops_want *want, struct gci_error *e)
{
	(void)nets;
	(void)n;
	return gci_sockops_set(s, 0, want, e);
}

int gci_sockops_set(
	struct gci_sockops *s, int number, const struct gci_sockops_want *want, struct gci_error *e)
{
	(void)number;
	(void)want;
	return gci_sockops_open(&s, "", e);
}

int gci_sockops_count(struct gci_sockops *s, int number, struct gci_sockops_counters *c)
{
	(void)s;
	(void)number;
	(void)c;
	return GCOLL_ERR_UNSUPPORTED;
}

unsigned gci_sockops_list(struct gci_sockops *s, struct gci_sockops_seen *out, unsigned max)
{
	(void)s;
	(void)out;
	(void)max;
	return 0;
}
