/* SPDX-License-Identifier: MIT
 * What does not go together on the command line, and defaults of the environment. */
#include "launcher/options.h"

#include <stdlib.h>

int gci_options_elsewhere(const struct gci_options *o)
{
	return o->help || o->version || o->agent || o->new_secret;
}

/* Of jobs whose ranks others start. */
static int check_guests(struct gci_options *o, struct gci_error *e)
{
	const char *secret = getenv("GRIDCOLL_SECRET_FILE");
	int joins = o->join || o->slurm;

	if (!o->secret_file && secret && *secret)
		o->secret_file = secret;
	if (!o->secret_file && o->slurm)
		o->secret_file = "-";
	if (o->serve && joins)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--serve and --join or --slurm: expected one of them "
			"(--join --rank-0-serves does both)");
	if ((o->rank_from || o->size_from || o->rank_0_serves) && !joins)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--rank-from, --size-from and --rank-0-serves: expected --join with them");
	if ((o->serve || joins) && o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--lab: gridcoll-run starts a lab's ranks itself, expected no --serve or "
			"--join with it");
	if ((o->serve || joins) && !o->secret_file)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no secret, expected --secret-file FILE "
			"(gridcoll-run --new-secret makes one)");
	if (o->serve && *o->argv)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--serve with a command, \"%s\": expected none, others start the ranks",
			*o->argv);
	if (o->serve && !o->nranks && !o->grid && !o->hosts)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "--serve: expected -n N, or --grid or --hosts with it");
	return 0;
}

int gci_options_check(struct gci_options *o, struct gci_error *e)
{
	if (o->new_secret && *o->argv)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--new-secret with a command, \"%s\": expected none", *o->argv);
	if (gci_options_elsewhere(o))
		return 0;
	if (o->grid && o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--grid and --lab: expected one of them (a lab has its grid with it)");
	if (check_guests(o, e))
		return e->status;
	if (!o->lab && !o->grid && !o->serve && !o->join && !o->slurm) {
		const char *lab = getenv("GRIDCOLL_LAB");

		o->lab = lab && *lab ? lab : NULL;
		o->lab_from_environment = o->lab != NULL;
	}
	if (!o->table) {
		const char *table = getenv("GRIDCOLL_TABLE");

		o->table = table && *table ? table : NULL;
		o->table_from_environment = o->table != NULL;
	}
	if (o->per_host && !o->grid && !o->hosts && !o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--per-host %u: expected --grid, --hosts or --lab with it", o->per_host);
	if (!o->serve && (!*o->argv || !**o->argv))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]");
	return 0;
}
