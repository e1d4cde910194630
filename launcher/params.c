/* SPDX-License-Identifier: MIT
 * What gridcoll probe measured of the job's grid, as far as ranks go by it: how many streams a link
 * is worth. They find it in the grid's text. */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "collectives/models/params_json.h"
#include "launcher/placement.h"

int gci_placement_params(struct gci_placement *p, const struct gci_options *o, struct gci_error *e)
{
	struct gci_params params = {0};
	struct gci_buf text = {0};
	int rc;

	if (!o->params)
		return 0;
	rc = gci_file_read(o->params, GCI_PARAMS_MAX_TEXT, &text, e);
	if (!rc)
		rc = gci_params_parse(
			&params, (const char *)text.data, text.len, o->params, &p->grid, e);
	if (!rc) {
		if (gci_params_streams(&params, &p->grid) + gci_params_senders(&params, &p->grid))
			rc = gci_placement_retell(p, e);
		gci_params_free(&params);
	}
	gci_buf_free(&text);
	return rc;
}
