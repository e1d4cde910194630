/* SPDX-License-Identifier: MIT
 * The source looks at what it is to send: files, and trees of them. Directories are taken one after the
 * other, and their entries in the order of their names, so the list is always the same. */
#include "base/mem.h"
#include "base/units.h"
#include "collectives/grid/grid.h"
#include "tools/cp/cp.h"
#include "tools/cp/impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- --to and --from: ranks by number, by host or by cluster. */

/* "3" or "2-5". True if it is one of them; then *lo and *hi are ranks of the job, or it says why
 * not. */
static int is_range(const char *s, uint64_t n, uint64_t *lo, uint64_t *hi, struct gci_error *e)
{
	size_t digits = strspn(s, "0123456789");
	char first[32];

	if (!digits || digits >= sizeof(first) || (s[digits] && s[digits] != '-'))
		return 0;
	snprintf(first, sizeof(first), "%.*s", (int)digits, s);
	if (s[digits] && s[digits + 1 + strspn(s + digits + 1, "0123456789")])
		return 0;
	if (gci_parse_uint(first, INT64_MAX, lo) ||
		gci_parse_uint(s[digits] ? s + digits + 1 : first, INT64_MAX, hi) || *hi >= n)
		gci_error_set(
			e, GCOLL_ERR_INVAL, "--to %s, expected ranks from 0 to %d", s, (int)n - 1);
	else if (*lo > *hi)
		gci_error_set(e, GCOLL_ERR_INVAL, "--to %s, expected the lower rank first", s);
	return 1;
}

/* Those of this cluster, and on this host. Returns whether there are any. */
static int choose_named(const struct gct_cp_ranks *r, const char *name, uint8_t *chosen)
{
	int i, any = 0;

	for (i = 0; i < r->n; i++) {
		if (strcmp(r->hosts[i], name) && strcmp(r->clusters[i], name))
			continue;
		chosen[i] = 1;
		any = 1;
	}
	return any;
}

/* One part of the list, "k[1-8]" among them. */
static int choose(
	const struct gct_cp_ranks *r, const char *part, uint8_t *chosen, struct gci_error *e)
{
	struct gci_error why = {0};
	uint64_t lo, hi;
	char **hosts = NULL;
	int n = 0, i;

	if (choose_named(r, part, chosen))
		return 0;
	if (is_range(part, (uint64_t)r->n, &lo, &hi, e)) {
		for (; !e->status && lo <= hi; lo++)
			chosen[lo] = 1;
		return e->status;
	}
	if (gci_hosts_expand(part, &hosts, &n, &why))
		gci_error_set(e, why.status == GCOLL_ERR_PARSE ? GCOLL_ERR_INVAL : why.status,
			"--to %s: %s", part, why.text);
	else
		for (i = 0; i < n && !e->status; i++)
			if (!choose_named(r, hosts[i], chosen))
				gci_error_set(e, GCOLL_ERR_INVAL,
					"--to %s, expected ranks, hosts or clusters of the job",
					hosts[i]);
	for (i = 0; i < n; i++)
		gci_free(hosts[i]);
	gci_free(hosts);
	return e->status;
}

/* The length of the part at the list's beginning: a comma in brackets is not its end. */
static size_t part_length(const char *list)
{
	size_t n;
	int inside = 0;

	for (n = 0; list[n] && (inside || list[n] != ','); n++) {
		if (list[n] == '[')
			inside = 1;
		else if (list[n] == ']')
			inside = 0;
	}
	return n;
}

int gct_cp_select(
	const struct gct_cp_ranks *r, const char *list, uint8_t *chosen, struct gci_error *e)
{
	memset(chosen, 0, (size_t)r->n);
	for (;;) {
		size_t n = part_length(list);
		char *part = gci_strndup(list, n);

		if (!part)
			return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		if (!n)
			gci_error_set(e, GCOLL_ERR_INVAL, "--to: an empty place in the list");
		else
			choose(r, part, chosen, e);
		gci_free(part);
		if (e->status || !list[n])
			return e->status;
		list += n + 1;
	}
}

int gct_cp_select_one(const struct gct_cp_ranks *r, const char *option, const char *name, int *rank,
	struct gci_error *e)
{
	uint64_t number;
	int i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->hosts[i], name)) {
			*rank = i;
			return 0;
		}
	if (gci_parse_uint(name, (uint64_t)r->n - 1, &number))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%s %s, expected a host or a rank of the job", option, name);
	*rank = (int)number;
	return 0;
}

/* ---- files and trees at the source */

struct scan {
	struct gct_cp_manifest *m;
	struct gct_cp_place place;
	struct gci_error *e;
};

/* Where an entry is, and what it is called there and at the receivers. */
struct entry {
	int at; /* a directory, or AT_FDCWD */
	const char *path;
	const char *name;
	uint32_t dir;
	const char *origin; /* see struct gct_cp_dir */
};

static int no_memory(struct scan *s)
{
	return gci_error_set(s->e, GCOLL_ERR_NOMEM, "out of memory");
}

static char *full_path(const struct scan *s, const struct entry *n)
{
	return gct_cp_path(s->m, NULL, n->dir, n->name, n->origin);
}

static int cannot_read(struct scan *s, const struct entry *n)
{
	int was = errno;
	char *path = full_path(s, n);

	errno = was;
	gct_cp_io_error(s->e, "read", path ? path : n->name);
	gci_free(path);
	return s->e->status;
}

/* Room for one more of whatever kind. */
static int make_room(struct scan *s, void *vec, uint32_t n, size_t size)
{
	const struct gct_cp_manifest *m = s->m;

	if (m->nfiles + m->ndirs + m->nlinks >= GCT_CP_MAX_FILES)
		return gci_error_set(s->e, GCOLL_ERR_INVAL,
			"too many sources, expected at most %u files, directories and links",
			GCT_CP_MAX_FILES);
	return gci_grow_by_one(vec, n, size) ? no_memory(s) : 0;
}

static int add_file(struct scan *s, const struct entry *n, const struct stat *st)
{
	struct gct_cp_manifest *m = s->m;
	struct gct_cp_file *f;

	if (make_room(s, &m->files, m->nfiles, sizeof(*m->files)))
		return s->e->status;
	f = &m->files[m->nfiles++];
	*f = (struct gct_cp_file){.name = gci_strdup(n->name),
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode & 0777,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.dir = n->dir,
		.origin = n->origin ? gci_strdup(n->origin) : NULL};
	return !f->name || (n->origin && !f->origin) ? no_memory(s) : 0;
}

/* A file that cannot be read is found now. */
static int scan_file(struct scan *s, const struct entry *n)
{
	int follow = s->m->recursive ? O_NOFOLLOW : 0;
	int fd = openat(n->at, n->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | follow);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		cannot_read(s, n);
	} else if (!S_ISREG(st.st_mode)) {
		gci_error_set(s->e, GCOLL_ERR_IO, "%s is %s", n->path,
			S_ISDIR(st.st_mode) ? "a directory, expected a regular file, or --recursive"
					    : "no file with contents, expected a regular file");
	} else {
		add_file(s, n, &st);
	}
	if (fd >= 0)
		close(fd);
	return s->e->status;
}

static int scan_link(struct scan *s, const struct entry *n, const struct stat *st)
{
	struct gct_cp_manifest *m = s->m;
	struct gct_cp_link *l;
	char target[GCT_CP_MAX_TARGET + 1];
	ssize_t len = readlinkat(n->at, n->path, target, sizeof(target));

	if (len == sizeof(target))
		errno = ENAMETOOLONG;
	if (len <= 0 || len == sizeof(target))
		return cannot_read(s, n);
	if (make_room(s, &m->links, m->nlinks, sizeof(*m->links)))
		return s->e->status;
	l = &m->links[m->nlinks++];
	*l = (struct gct_cp_link){gci_strdup(n->name), gci_strndup(target, (size_t)len),
		st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec, n->dir};
	m->into_directory = 1;
	return !l->name || !l->target ? no_memory(s) : 0;
}

/* What it holds is looked at later. */
static int add_dir(struct scan *s, const struct entry *n, const struct stat *st)
{
	struct gct_cp_manifest *m = s->m;
	struct gct_cp_dir *d;
	uint32_t depth = n->dir ? m->dirs[n->dir - 1].depth + 1 : 1;

	if (depth > GCT_CP_MAX_DEPTH)
		return gci_error_set(s->e, GCOLL_ERR_INVAL, "%s is more than %d directories deep",
			n->name, GCT_CP_MAX_DEPTH);
	if (make_room(s, &m->dirs, m->ndirs, sizeof(*m->dirs)))
		return s->e->status;
	d = &m->dirs[m->ndirs++];
	*d = (struct gct_cp_dir){.name = gci_strdup(n->name),
		.parent = n->dir,
		.mode = st->st_mode & 0777,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.depth = depth,
		.origin = n->origin ? gci_strdup(n->origin) : NULL};
	m->into_directory = 1;
	return !d->name || (n->origin && !d->origin) ? no_memory(s) : 0;
}

static int skip(struct scan *s, const struct entry *n)
{
	struct gct_cp_manifest *m = s->m;
	char *p;

	if (m->nskipped >= GCT_CP_NAMED) {
		m->nskipped++;
		return 0;
	}
	if (gci_grow_by_one(&m->skipped, m->nskipped, sizeof(*m->skipped)))
		return no_memory(s);
	p = m->skipped[m->nskipped++] = full_path(s, n);
	if (!p)
		return no_memory(s);
	gci_make_printable(p);
	return 0;
}

/* Of a directory: whatever it is. */
static int scan_entry(struct scan *s, const struct entry *n)
{
	struct stat st;

	if (fstatat(n->at, n->path, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : cannot_read(s, n); /* it has gone meanwhile */
	if (S_ISDIR(st.st_mode))
		return add_dir(s, n, &st);
	if (S_ISLNK(st.st_mode))
		return scan_link(s, n, &st);
	return S_ISREG(st.st_mode) ? scan_file(s, n) : skip(s, n);
}

/* ---- what a directory holds */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(struct scan *s, DIR *dir, char ***names, size_t *n)
{
	struct dirent *d;

	while (errno = 0, (d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (gci_grow_by_one(names, *n, sizeof(**names)))
			return no_memory(s);
		(*names)[*n] = gci_strdup(d->d_name);
		if (!(*names)[(*n)++])
			return no_memory(s);
	}
	if (*n)
		qsort(*names, *n, sizeof(**names), compare_names);
	return errno;
}

/* Entries of the open directory `fd`, which is taken over: number `dir` of the list, or a source
 * whose contents go to DEST. */
static int scan_open(struct scan *s, int fd, uint32_t dir, const char *source)
{
	DIR *open_dir = fdopendir(fd);
	char **names = NULL;
	size_t n = 0, i;
	int rc = open_dir ? read_names(s, open_dir, &names, &n) : errno;

	for (i = 0; i < n && !rc && !s->e->status; i++) {
		char *origin = dir ? NULL : gci_asprintf("%s/%s", source, names[i]);
		const struct entry entry = {fd, names[i], names[i], dir, origin};

		if (!dir && !origin)
			no_memory(s);
		else
			scan_entry(s, &entry);
		gci_free(origin);
	}
	for (i = 0; i < n; i++)
		gci_free(names[i]);
	gci_free(names);
	if (open_dir)
		closedir(open_dir);
	else
		close(fd);
	errno = rc;
	return rc ? -1 : 0;
}

static int scan_dir(struct scan *s, uint32_t dir)
{
	const struct gct_cp_dir *d = &s->m->dirs[dir - 1];
	/* What it names stays, though the list may move. */
	const struct entry entry = {AT_FDCWD, d->name, d->name, d->parent, d->origin};
	int at = gct_cp_place_go(&s->place, dir);
	int fd = at < 0 ? -1 : openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if ((fd < 0 || scan_open(s, fd, dir, NULL)) && !s->e->status)
		cannot_read(s, &entry);
	return s->e->status;
}

/* ---- sources */

int gct_cp_is_contents(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

static int scan_contents(struct scan *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t len = strlen(path);
	char *source;

	s->m->into_directory = 1;
	if (fd < 0)
		return gct_cp_io_error(s->e, "read", path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	source = gci_strndup(path, len);
	if (!source) {
		close(fd);
		return no_memory(s);
	}
	if (scan_open(s, fd, 0, source))
		gct_cp_io_error(s->e, "read", path);
	gci_free(source);
	return s->e->status;
}

static int scan_source(struct scan *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct entry entry = {AT_FDCWD, path, slash ? slash + 1 : path, 0, path};
	struct stat st;

	if (!s->m->recursive)
		return scan_file(s, &entry);
	if (gct_cp_is_contents(path))
		return scan_contents(s, path);
	if (lstat(path, &st))
		return gct_cp_io_error(s->e, "read", path);
	/* Of what is asked for by name nothing is skipped. */
	return S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode) ? scan_entry(s, &entry)
							  : scan_file(s, &entry);
}

/* Two sources of one name would overwrite each other. */
static int check_names(struct scan *s)
{
	const struct gct_cp_manifest *m = s->m;
	char **names = gci_calloc((size_t)m->nfiles + m->ndirs + m->nlinks, sizeof(*names));
	size_t n = 0, i;

	if (!names)
		return no_memory(s);
	for (i = 0; i < m->nfiles; i++)
		if (!m->files[i].dir)
			names[n++] = m->files[i].name;
	for (i = 0; i < m->ndirs; i++)
		if (!m->dirs[i].parent)
			names[n++] = m->dirs[i].name;
	for (i = 0; i < m->nlinks; i++)
		if (!m->links[i].dir)
			names[n++] = m->links[i].name;
	qsort(names, n, sizeof(*names), compare_names);
	for (i = 1; i < n; i++)
		if (!strcmp(names[i - 1], names[i]))
			gci_error_set(s->e, GCOLL_ERR_INVAL,
				"two sources are called %s, expected different names", names[i]);
	gci_free(names);
	return s->e->status;
}

struct part {
	uint32_t dir;
	const char *name;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->dir == y->dir ? strcmp(x->name, y->name) : x->dir < y->dir ? -1 : 1;
}

/* Entries that are called as files' parts are. A link has no part: it is made under a name that is
 * nobody else's. */
static uint32_t find_parts(const struct gct_cp_manifest *m, struct part *parts)
{
	uint32_t i, n = 0;

	for (i = 0; i < m->nfiles; i++)
		parts[n++] = (struct part){m->files[i].dir, m->files[i].name};
	for (i = 0; i < m->nlinks; i++)
		parts[n++] = (struct part){m->links[i].dir, m->links[i].name};
	for (i = 0; i < m->ndirs; i++)
		parts[n++] = (struct part){m->dirs[i].parent, m->dirs[i].name};
	for (i = 0; i < n;)
		if (strncmp(parts[i].name, ".gridcoll-", 10))
			parts[i] = parts[--n];
		else
			i++;
	qsort(parts, n, sizeof(*parts), compare_parts);
	return n;
}

static int check_part(
	const struct part *parts, uint32_t n, uint32_t dir, const char *name, struct gci_error *e)
{
	static const char taken[] =
		"%s: %s is called so until it is whole, expected another name or no --resume";
	char *own = gct_cp_part_name(name);
	const struct part key = {dir, own};

	if (!own)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (bsearch(&key, parts, n, sizeof(*parts), compare_parts))
		gci_error_set(e, GCOLL_ERR_INVAL, taken, own, name);
	gci_free(own);
	return e->status;
}

int gct_cp_check_parts(const struct gct_cp_manifest *m, struct gci_error *e)
{
	struct part *parts = gci_calloc((size_t)m->nfiles + m->nlinks + m->ndirs, sizeof(*parts));
	uint32_t i, n = parts ? find_parts(m, parts) : 0;

	if (!parts)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; n && i < m->nfiles && !e->status; i++)
		check_part(parts, n, m->files[i].dir, m->files[i].name, e);
	gci_free(parts);
	return e->status;
}

int gct_cp_manifest_scan(struct gct_cp_manifest *m, char *const *paths, int npaths, unsigned how,
	struct gci_error *e)
{
	struct scan s = {.m = m, .e = e};
	uint32_t dir;
	int i;

	memset(m, 0, sizeof(*m));
	m->into_directory = (how & GCT_CP_INTO) != 0;
	m->recursive = (how & GCT_CP_RECURSIVE) != 0;
	gct_cp_place_init(&s.place, m, NULL);
	for (i = 0; i < npaths && !e->status; i++)
		scan_source(&s, paths[i]);
	for (dir = 1; dir <= m->ndirs && !e->status; dir++)
		scan_dir(&s, dir);
	gct_cp_place_close(&s.place);
	if (e->status)
		return e->status;
	if (gct_cp_manifest_add_up(m))
		return gci_error_set(e, GCOLL_ERR_IO, "the sources are larger than any disk");
	return check_names(&s);
}
