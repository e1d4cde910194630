/* SPDX-License-Identifier: MIT
 * gridcoll lab doctor, and the choice that --backend auto makes. */
#include "base/buf.h"
#include "netem/host.h"
#include "netem/plan.h"
#include "netem/tap.h"
#include "netem/trial.h"
#include "netem/uml.h"
#include "tools/lab.h"
#include "tools/tools.h"

#include <stdio.h>

enum lab_backend lab_choose(const struct lab_options *o, struct gci_error *e)
{
	static int (*const checks[])(struct gci_error * e) = {
		[LAB_HOST] = gci_host_check, [LAB_TAP] = gci_tap_check, [LAB_UML] = gci_uml_check};
	static const char *const names[] = {
		[LAB_HOST] = "host", [LAB_TAP] = "tap", [LAB_UML] = "uml"};
	struct gci_error why[LAB_UML + 1] = {0};
	enum lab_backend b;

	for (b = LAB_HOST; b <= LAB_UML; b++)
		if ((o->backend == LAB_AUTO || o->backend == b) && !checks[b](&why[b]))
			return b;
	b = o->backend;
	if (b == LAB_AUTO)
		gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"no backend for a lab. host: %s. tap: %s. uml: %s", why[LAB_HOST].text,
			why[LAB_TAP].text, why[LAB_UML].text);
	else
		gci_error_set(e, why[b].status, "no %s backend: %s", names[b], why[b].text);
	return LAB_AUTO;
}

uint32_t lab_dilation(struct lab_options *o, const struct gci_grid *g)
{
	struct gci_trial_result found = {.bps = GCI_LAB_GUEST_BPS};

	if (o->backend == LAB_AUTO)
		o->backend = lab_choose(o, NULL);
	/* Where no trial can be made, there is another reason for it, told of when the lab comes up. */
	if ((o->backend == LAB_TAP || o->backend == LAB_HOST) && gci_trial_run(&found, NULL))
		found = (struct gci_trial_result){.bps = GCI_LAB_GUEST_BPS};
	return gci_lab_choose_dilation(g, found.bps, found.late_ns);
}

/* Boots a guest with a small grid, which tries all that a lab needs. */
static int try_uml(struct gci_error *e)
{
	static const char grid[] = "[cluster a]\nhosts = a\nnic = 1Gbit\nlan_delay = 50us\n"
				   "[cluster b]\nhosts = b\nnic = 1Gbit\n"
				   "[link a b]\nrate = 1Gbit\ndelay = 1ms\n";
	struct gci_uml_options options = {grid, 1, 512u << 20};
	uint64_t network_ns, all_ns;
	struct gci_uml *u;

	if (gci_uml_check(e))
		return -1;
	u = gci_uml_boot(&options, -1, e);
	if (!u)
		return -1;
	gci_uml_boot_times(u, &network_ns, &all_ns);
	printf("uml:  works: a guest with a small grid was up in %.1f s\n", (double)all_ns / 1e9);
	gci_uml_stop(u);
	return 0;
}

static int describe_grid(struct lab_options *o)
{
	struct gci_grid g;
	uint32_t k;
	int rc;

	o->dilate_auto = 0;
	o->dilation = 1;
	rc = lab_load_grid(o, &g);
	if (rc)
		return rc;
	k = lab_dilation(o, &g);
	printf("grid: %s: %d hosts in %d clusters; --dilate auto would choose %u; in uml with %llu "
	       "MiB of memory\n",
		o->grid_file, g.nhosts, g.nclusters, k,
		(unsigned long long)(lab_memory(o, &g) >> 20));
	gci_grid_free(&g);
	return GCT_OK;
}

int lab_doctor(int argc, char **argv)
{
	static const char usage[] = "doctor [GRID]";
	struct gci_error host = {0}, tap = {0}, uml = {0};
	struct lab_options o;
	int rc = lab_parse(&o, argc, argv, 0, usage);
	int host_works, tap_works, uml_works;

	if (rc)
		return rc - 1;
	if (*o.command && lab_nothing_more(o.command + 1, usage))
		return GCT_USAGE;
	host_works = !gci_host_check(&host);
	if (host_works)
		printf("host: works: root, with netem, tbf, fq and ifb\n");
	else
		printf("host: no: %s\n", host.text);
	tap_works = !gci_tap_check(&tap);
	printf("tap:  %s%s\n", tap_works ? "works: veth, bridge, tun, and tbf" : "no: ", tap.text);
	uml_works = !try_uml(&uml);
	if (!uml_works)
		printf("uml:  no: %s\n", uml.text);
	printf("auto: %s\n", host_works  ? "host"
			     : tap_works ? "tap"
			     : uml_works ? "uml"
					 : "none works here");
	if (*o.command) {
		o.grid_file = o.command[0];
		rc = describe_grid(&o);
	}
	return rc ? rc : host_works || tap_works || uml_works ? GCT_OK : GCT_FAILED;
}
