/* SPDX-License-Identifier: MIT */
#include "tools/model_files.h"

#include "collectives/models/params_json.h"

#include <errno.h>
#include <stdio.h>

int gct_read_file(const char *path, size_t most, struct gci_buf *out, struct gci_error *e)
{
	char chunk[16384];
	FILE *f = fopen(path, "re");
	int rc = 0;
	size_t n;

	*out = (struct gci_buf){0};
	if (!f)
		return gci_error_errno(e, "cannot read %s", path);
	errno = 0;
	while (out->len <= most && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		gci_buf_put(out, chunk, n);
	if (ferror(f))
		rc = gci_error_errno(e, "cannot read %s", path);
	else if (out->failed)
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	else if (out->len > most)
		rc = gci_error_set(e, GCOLL_ERR_PARSE, "%s:1: larger than %zu bytes", path, most);
	fclose(f);
	if (rc)
		gci_buf_free(out);
	return rc;
}

int gct_read_grid(const char *path, struct gci_grid *g, struct gci_error *e)
{
	struct gci_buf text;
	int rc = gct_read_file(path, GCI_GRID_MAX_TEXT, &text, e);

	if (rc)
		return rc;
	rc = gci_grid_parse(g, (const char *)text.data, text.len, path, e);
	gci_buf_free(&text);
	return rc;
}

int gct_read_params(
	const char *path, const struct gci_grid *g, struct gci_params *p, struct gci_error *e)
{
	struct gci_buf text;
	int rc = gct_read_file(path, GCI_PARAMS_MAX_TEXT, &text, e);

	if (rc)
		return rc;
	rc = gci_params_parse(p, (const char *)text.data, text.len, path, g, e);
	gci_buf_free(&text);
	if (!rc)
		gci_params_dilate(p, g->dilation);
	return rc;
}
