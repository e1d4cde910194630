/* SPDX-License-Identifier: MIT
 * The list of files that rank 0 sends. What the decoder takes names things inside DEST only, each
 * directory before what is in it, and encodes to the same bytes. */
#include "tools/cp/cp.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static void check_name(const char *name)
{
	check(*name && strlen(name) <= GCT_CP_MAX_NAME && !strchr(name, '/'));
	check(strcmp(name, ".") && strcmp(name, ".."));
}

/* The path of any of them leads down from DEST. */
static void check_path(const struct gct_cp_manifest *m, uint32_t dir, const char *name)
{
	char *path = gct_cp_path(m, "DEST", dir, name, NULL);

	check(path && !strncmp(path, "DEST/", 5) && !strstr(path, "/../") && !strstr(path, "//"));
	gci_free(path);
}

static void check_lists(const struct gct_cp_manifest *m)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < m->ndirs; i++) {
		check_name(m->dirs[i].name);
		check(m->dirs[i].parent <= i && m->dirs[i].mode <= 0777);
		check(m->dirs[i].depth <= GCT_CP_MAX_DEPTH);
		check_path(m, m->dirs[i].parent, m->dirs[i].name);
	}
	for (i = 0; i < m->nlinks; i++) {
		const char *target = m->links[i].target;

		check_name(m->links[i].name);
		check(*target && strlen(target) <= GCT_CP_MAX_TARGET &&
			m->links[i].dir <= m->ndirs);
		check_path(m, m->links[i].dir, m->links[i].name);
	}
	for (i = 0; i < m->nfiles; i++) {
		const struct gct_cp_file *f = &m->files[i];

		check_name(f->name);
		check(f->mode <= 0777 && f->size <= INT64_MAX && f->dir <= m->ndirs);
		check_path(m, f->dir, f->name);
		sum += f->size + GCT_CP_TRAILER;
		check(sum <= INT64_MAX);
	}
	check(sum == m->stream_nbytes);
	check(m->into_directory || m->is_scattered || (m->nfiles == 1 && !m->ndirs && !m->nlinks));
	check(!m->is_scattered || (m->nfiles && !m->ndirs && !m->nlinks));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gct_cp_manifest m;
	struct gci_error e = {0};
	struct gci_buf again = {0};
	int rc = gct_cp_manifest_decode(&m, data, size, &e);

	check(!rc == !e.status && !rc == !e.text[0]);
	if (!rc) {
		check_lists(&m);
		gct_cp_manifest_encode(&m, &again);
		check(again.len == size && !memcmp(again.data, data, size));
	}
	gci_buf_free(&again);
	gct_cp_manifest_free(&m);
	return 0;
}
