/* SPDX-License-Identifier: MIT
 * The list of files that rank 0 sends. What the decoder takes names files inside a directory only,
 * and encodes to the same bytes. */
#include "tools/cp.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gct_cp_manifest m;
	struct gci_error e = {0};
	struct gci_buf again = {0};
	uint64_t sum = 0;
	uint32_t i;
	int rc = gct_cp_manifest_decode(&m, data, size, &e);

	if (!rc != !e.status || !rc != !e.text[0])
		abort();
	if (!rc && (!m.nfiles || (m.nfiles > 1 && !m.into_directory)))
		abort();
	for (i = 0; !rc && i < m.nfiles; i++) {
		const struct gct_cp_file *f = &m.files[i];

		if (!*f->name || strlen(f->name) > GCT_CP_MAX_NAME || strchr(f->name, '/') ||
			!strcmp(f->name, ".") || !strcmp(f->name, "..") || f->mode > 0777 ||
			f->size > INT64_MAX)
			abort();
		sum += f->size + GCT_CP_TRAILER;
		if (sum > INT64_MAX)
			abort();
	}
	if (!rc) {
		gct_cp_manifest_encode(&m, &again);
		if (sum != m.stream_nbytes || again.len != size || memcmp(again.data, data, size))
			abort();
	}
	gci_buf_free(&again);
	gct_cp_manifest_free(&m);
	return 0;
}
