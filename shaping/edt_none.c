/* SPDX-License-Identifier: MIT
 * In place of edt.c where gridcoll is built without libbpf. */
#include "shaping/edt.h"

static int refuse(struct gci_error *e)
{
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "gridcoll was built without eBPF");
}

int gci_edt_is_built(void)
{
	return 0;
}

int gci_edt_open(struct gci_edt **edt, const char *dev, unsigned flags, struct gci_error *e)
{
	(void)dev;
	(void)flags;
	*edt = NULL;
	return refuse(e);
}

int gci_edt_look(struct gci_edt **edt, const char *dev, struct gci_error *e)
{
	return gci_edt_open(edt, dev, 0, e);
}

/* What follows is never called: nothing opens. */

void gci_edt_close(struct gci_edt *edt)
{
	(void)edt;
}

int gci_edt_class(struct gci_edt *edt, const char *name, const struct gci_net *nets, size_t n,
	uint64_t bps, struct gci_error *e)
{
	(void)edt;
	(void)name;
	(void)nets;
	(void)n;
	(void)bps;
	return refuse(e);
}

int gci_edt_set_rate(struct gci_edt *edt, int number, uint64_t bps, struct gci_error *e)
{
	(void)edt;
	(void)number;
	(void)bps;
	return refuse(e);
}

int gci_edt_drop(struct gci_edt *edt, int number, struct gci_error *e)
{
	return gci_edt_set_rate(edt, number, 0, e);
}

int gci_edt_count(struct gci_edt *edt, int number, struct gci_edt_counters *c)
{
	(void)c;
	return gci_edt_set_rate(edt, number, 0, NULL);
}

unsigned gci_edt_list(struct gci_edt *edt, struct gci_edt_class out[GCI_EDT_CLASSES])
{
	(void)edt;
	(void)out;
	return 0;
}

unsigned gci_edt_nets(struct gci_edt *edt, int number, struct gci_net *out, unsigned max)
{
	(void)number;
	(void)out;
	(void)max;
	(void)edt;
	return 0;
}

void gci_edt_sweep(void)
{
}

const char *gci_edt_how(const struct gci_edt *edt)
{
	(void)edt;
	return "not at all";
}

int gci_edt_clear(const char *dev, struct gci_error *e)
{
	(void)dev;
	return refuse(e);
}
