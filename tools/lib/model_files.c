/* SPDX-License-Identifier: MIT */
#include "tools/lib/model_files.h"

#include "base/file.h"
#include "collectives/models/params_json.h"

int gct_read_grid(const char *path, struct gci_grid *g, struct gci_error *e)
{
	struct gci_buf text = {0};
	int rc = gci_file_read(path, GCI_GRID_MAX_TEXT, &text, e);

	if (!rc)
		rc = gci_grid_parse(g, (const char *)text.data, text.len, path, e);
	gci_buf_free(&text);
	return rc;
}

int gct_read_params(
	const char *path, const struct gci_grid *g, struct gci_params *p, struct gci_error *e)
{
	struct gci_buf text = {0};
	int rc = gci_file_read(path, GCI_PARAMS_MAX_TEXT, &text, e);

	if (!rc)
		rc = gci_params_parse(p, (const char *)text.data, text.len, path, g, e);
	gci_buf_free(&text);
	if (!rc)
		gci_params_dilate(p, g->dilation);
	return rc;
}
