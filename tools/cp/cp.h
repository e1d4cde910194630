/* SPDX-License-Identifier: MIT
 * `gridcoll cp`: files as one byte stream. Each file's contents are followed by their CRC32C, so a
 * receiver knows whether it has the file whole before it gives it its name. Directories are made
 * before the stream, symbolic links and the directories' modes and times behind it.
 *
 *	stream = { contents, u32 crc32c(contents) } per file, in the manifest's order, but for
 *		those that all receivers have
 *
 *	the source			the others
 *	gct_cp_manifest_scan		gct_cp_manifest_decode
 *	gct_cp_source_init		gct_cp_sink_init, gct_cp_sink_start
 *	gct_cp_move			gct_cp_move
 *	gct_cp_source_close		gct_cp_sink_finish, gct_cp_sink_close */
#ifndef GCT_CP_H
#define GCT_CP_H

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define GCT_CP_TRAILER      4
#define GCT_CP_MAX_FILES    (1u << 20) /* with directories and links */
#define GCT_CP_MAX_MANIFEST (128u << 20)
#define GCT_CP_MAX_NAME     255
#define GCT_CP_MAX_TARGET   4095
#define GCT_CP_NAMED        20  /* of what is skipped */
#define GCT_CP_MAX_DEPTH    256 /* of directories in each other */
#define GCT_CP_CHUNK_NBYTES (1u << 20)
#define GCT_CP_CHUNKS       64 /* at once: under way, or waiting to be written */

/* A directory of the list is named by its number: 0 is DEST, k is dirs[k - 1]. It stands behind the
 * one that it is in. */
struct gct_cp_dir {
	char *name; /* without directories, as all names here */
	uint32_t parent;
	uint32_t mode; /* permission bits */
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t depth; /* 1: in DEST */
	char *origin;   /* at the source: the path of one that is in DEST, else NULL */
};

struct gct_cp_file {
	char *name;
	uint64_t size;
	uint32_t mode;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t dir;
	char *origin; /* as a directory's */
	uint64_t begin,
		whole; /* at the source, of a part: where in the file it is, and the file's size */
	int is_there;  /* all receivers have it whole: it is not in the stream */
};

/* What it takes of the stream. */
static inline uint64_t gct_cp_length(const struct gct_cp_file *f)
{
	return f->is_there ? 0 : f->size + GCT_CP_TRAILER;
}

struct gct_cp_link { /* a symbolic one */
	char *name;
	char *target;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t dir;
};

struct gct_cp_manifest {
	struct gct_cp_file *files;
	struct gct_cp_dir *dirs;
	struct gct_cp_link *links;
	uint32_t nfiles, ndirs, nlinks;
	uint64_t stream_nbytes; /* of all files in it, with their trailers */
	int into_directory;     /* names are kept; else the only file is called as DEST says */
	int is_scattered;       /* the files are parts of one, for a receiver each */
	/* At the source only: */
	int recursive;
	uint32_t nskipped; /* neither of the three: FIFOs, sockets, devices */
	char **skipped;    /* paths of the first of them, for a terminal */
};

#define GCT_CP_INTO      1u /* DEST is a directory */
#define GCT_CP_RECURSIVE 2u /* with what is in directories; links are kept as links */

/* Reads what the source is to send. Every path must be a readable regular file, or with
 * GCT_CP_RECURSIVE a directory or a symbolic link. Of a path that ends in a slash, "." or ".." it
 * is what the directory holds. (scan.c) */
int gct_cp_manifest_scan(struct gct_cp_manifest *m, char *const *paths, int npaths, unsigned how,
	struct gci_error *e);

/* In place of the only file, n parts of it, as long as each other but for a byte. */
int gct_cp_manifest_scatter(struct gct_cp_manifest *m, int n, struct gci_error *e);

/* Whether it is one component of a path, which leads nowhere but into its directory. */
int gct_cp_is_name(const char *name);

/* The list of one file that is in `m`, whose memory it shares: not to be freed. */
struct gct_cp_manifest gct_cp_manifest_part(const struct gct_cp_manifest *m, uint32_t file);

void gct_cp_manifest_encode(const struct gct_cp_manifest *m, struct gci_buf *out);

/* Whatever the bytes: what is accepted names places inside of DEST only, at most GCT_CP_MAX_DEPTH
 * deep, and each directory before what is in it. */
int gct_cp_manifest_decode(
	struct gct_cp_manifest *m, const uint8_t *data, size_t len, struct gci_error *e);
void gct_cp_manifest_free(struct gct_cp_manifest *m);

/* Sums up m->stream_nbytes. True if it is more than INT64_MAX. */
int gct_cp_manifest_add_up(struct gct_cp_manifest *m);

/* The path of what is called `name` in directory `dir`, below `root`; with root NULL, that at
 * the source, `origin` for what is in DEST. To be freed; NULL: out of memory. */
char *gct_cp_path(const struct gct_cp_manifest *m, const char *root, uint32_t dir, const char *name,
	const char *origin);

/* One open directory of the list at a time, for the calls that end in "at". No symbolic link is
 * followed below DEST, or below the sources, whatever becomes of the directories meanwhile. */
struct gct_cp_place {
	const struct gct_cp_manifest *manifest;
	const char *root; /* DEST; NULL at the source, where directory 0 is none */
	size_t fixed; /* bytes of it that no rank has a say in: the way does not lead out of them */
	int fd;       /* for nothing but to start from (O_PATH) */
	uint32_t dir;
};

void gct_cp_place_init(struct gct_cp_place *p, const struct gct_cp_manifest *m, const char *root);
/* Its descriptor, good until the next call; -1: errno says why not. */
int gct_cp_place_go(struct gct_cp_place *p, uint32_t dir);
void gct_cp_place_close(struct gct_cp_place *p);

/* True if the list's directories, as far as they are there, are in one mount with DEST: who has DEST
 * has all of them. */
int gct_cp_place_is_one(struct gct_cp_place *p);
/* The same file. */
int gct_cp_is_one(const struct stat *a, const struct stat *b);
/* Whether `path`, which may be cut up, is in that directory, or will be when it is made. */
int gct_cp_is_within(char *path, const struct stat *directory);
/* How many names at the end of a path are not there. */
int gct_cp_count_missing(const char *path, uint64_t *n, struct gci_error *e);
/* Removes up to `n` directories at the end of a path, which is cut up, as far as they are empty or not
 * there. */
void gct_cp_remove_empty(char *path, uint64_t n);

/* A place in the stream. */
struct gct_cp_point {
	uint32_t file;
	uint64_t offset; /* in it, trailer included; 0: at its beginning */
	uint32_t crc;    /* of the contents before that */
};

#define GCT_CP_MARKS (3 * GCT_CP_CHUNKS + 1) /* no rank is further behind what was read */

/* Checksums of whole files, at the source. (move.c) */
struct gct_cp_sum {
	uint32_t crc; /* CRC32C */
	uint8_t sha256[32];
	uint8_t has; /* which of them */
};

struct gct_cp_sums {
	const struct gct_cp_manifest *manifest;
	struct gct_cp_sum *files;
	int wants_sha256, failed;
	void *md;      /* of the file in hand (OpenSSL's EVP_MD_CTX) */
	uint32_t file; /* which one that is, and how much of it was added */
	uint64_t at;
};

int gct_cp_sums_init(struct gct_cp_sums *s, const struct gct_cp_manifest *m, int wants_sha256,
	struct gci_error *e);
void gct_cp_sums_free(struct gct_cp_sums *s);

/* One line for each file, as sha256sum prints and checks them: names below DEST. GCOLL_ERR_NOMEM. */
int gct_cp_sums_print(const struct gct_cp_sums *s, struct gci_buf *out);

/* The stream's source: opens one file after the other. */
struct gct_cp_source {
	const struct gct_cp_manifest *manifest;
	struct gct_cp_place place;
	uint32_t file;
	uint64_t offset;      /* in the file, trailer included */
	uint64_t stretch_end; /* up to there it is all hole, or all data */
	int in_hole;
	int fd;
	uint32_t crc;
	struct gct_cp_point marks[GCT_CP_MARKS]; /* where reads began, the last of them */
	uint64_t nmarks;
	const uint32_t *crcs; /* of the first ncrcs blocks (see gct_cp_sum_blocks); not owned */
	uint64_t ncrcs;
	struct gct_cp_sums *sums; /* gets what is read; or NULL */
};

void gct_cp_source_init(struct gct_cp_source *s, const struct gct_cp_manifest *m);

/* The stream's next n bytes. An error if a file is not any more what the manifest says. */
int gct_cp_source_read(struct gct_cp_source *s, char *buf, size_t n, struct gci_error *e);
void gct_cp_source_close(struct gct_cp_source *s);

/* Goes on at this place of the stream, whatever was read before. If a read began there lately, or
 * blocks' checksums are known, what is before it in its file need not be read for its checksum. */
int gct_cp_source_seek(struct gct_cp_source *s, uint64_t at, struct gci_error *e);

/* How far into the stream that is. */
uint64_t gct_cp_stream_at(const struct gct_cp_manifest *m, uint32_t file, uint64_t offset);
/* The other way round, but for the checksum. */
void gct_cp_point_of(const struct gct_cp_manifest *m, uint64_t at, struct gct_cp_point *p);

/* The stream's end at a receiver: writes each file in its directory without a name, or under a
 * temporary one where the file system wants that, skips blocks of zeros (the copy of a sparse file
 * is sparse), and names it when its checksum agrees. What is not whole is removed. */
#define GCT_CP_SYNC 1u /* to the disk before a file gets its name */
#define GCT_CP_KEEP 2u /* what is not whole is not removed; see gct_cp_claim */

struct gct_cp_sink {
	const struct gct_cp_manifest *manifest;
	const char *dest;   /* a directory, or the only file's name */
	int into_directory; /* which of them */
	int sync, keep;     /* see above */
	char *root;         /* the directory in which all of it is */
	struct gct_cp_place place;
	uint32_t file;
	uint64_t offset;
	int fd, is_unnamed;
	int has_unnamed; /* 1: so may files be on file system `device`; 0: not; -1: none was tried */
	uint64_t device;
	uint32_t crc, want;
	char *path;      /* of the file in hand, for messages */
	char *temporary; /* its name, which is nobody else's; one for all files */
	char *part;      /* its name instead, if it is kept; NULL: it is not */
	int part_fd;     /* locked: the part of file `part_file`, not in hand yet */
	uint32_t part_file;
	uint32_t taken; /* the file whose part another process had when this one looked */
	int lock_errno; /* why parts cannot be locked here, or 0 */
	uint64_t nfiles_done;
	uint8_t *made; /* [directory]: by this sink */
	int has_tree, is_finished;
	int failed; /* GCOLL_ERR_*: nothing is written any more */
};

/* `dest` must live as long as the sink. */
int gct_cp_sink_init(struct gct_cp_sink *s, const struct gct_cp_manifest *m, const char *dest,
	int into_directory, unsigned how, struct gci_error *e);

/* Makes the directories and the first temporary file: a destination that cannot be written is found
 * before anything is sent. */
int gct_cp_sink_start(struct gct_cp_sink *s, struct gci_error *e);

/* After an error, here or in gct_cp_sink_start, all further calls fail. */
int gct_cp_sink_write(struct gct_cp_sink *s, const char *data, size_t n, struct gci_error *e);

/* Before start: goes on from there, of a file that is there in part, which gct_cp_claim and
 * gct_cp_verify have found. */
int gct_cp_sink_resume(struct gct_cp_sink *s, const struct gct_cp_point *p, struct gci_error *e);

/* How far into the stream it has written. */
uint64_t gct_cp_sink_at(const struct gct_cp_sink *s);

/* A file's path here, and the one it is kept under until it is whole. To be freed; NULL: out of
 * memory. */
char *gct_cp_sink_path(const struct gct_cp_sink *s, uint32_t file);
char *gct_cp_sink_part(const struct gct_cp_sink *s, uint32_t file);

/* At the stream's end: links, and the directories' modes and times. An error if it came too early.
 * Done once, however often it is called. */
int gct_cp_sink_finish(struct gct_cp_sink *s, struct gci_error *e);

/* After a failure, before it is closed: removes directories that it has made, and that are empty. */
void gct_cp_sink_undo(struct gct_cp_sink *s);

/* Removes what is incomplete, or keeps it. */
void gct_cp_sink_close(struct gct_cp_sink *s);

/* SIGINT, SIGTERM and SIGHUP end the process, as ever, but not without removing the temporary
 * file. One sink per process. */
void gct_cp_sink_guard(const struct gct_cp_sink *s);

/* What is there of an earlier copy, in blocks of GCT_CP_BLOCK_NBYTES of each file (its last one may
 * be shorter), file after file. A receiver counts what looks like the first of them and marks the
 * files that look whole, the source tells checksums, and the receiver compares: what agrees, up to the
 * first block that does not, need not come again, nor a file that all receivers have, wherever it
 * is. A checksum of 0 is one that is not known, or so by chance, and then as good as that. */
#define GCT_CP_BLOCK_NBYTES (4u << 20)
#define GCT_CP_MAX_BLOCKS   (1u << 24) /* 64 TiB */

uint64_t gct_cp_nblocks(const struct gct_cp_manifest *m);

/* A set of files: a bit for each, in so many words. */
static inline size_t gct_cp_set_words(const struct gct_cp_manifest *m)
{
	return (m->nfiles + 63) / 64;
}

static inline int gct_cp_is_in(const uint64_t *set, uint32_t file)
{
	return set[file / 64] >> file % 64 & 1;
}

static inline void gct_cp_put(uint64_t *set, uint32_t file, int is_in)
{
	uint64_t bit = UINT64_C(1) << file % 64;

	set[file / 64] = is_in ? set[file / 64] | bit : set[file / 64] & ~bit;
}

/* The first file that is not in it, or m->nfiles. */
uint32_t gct_cp_first_missing(const struct gct_cp_manifest *m, const uint64_t *set);

/* The part that is kept of a file has one name for all, and DEST may be shared: by ranks of this
 * host, by hosts, by jobs. Whoever writes to it or gives it another name holds its lock (flock), from
 * the first look at it to the last. Who finds it locked, or can lock nothing here, writes a file of
 * his own, and keeps nothing of it. */

/* Blocks that may be there: of files with the right size and time, then of one that was kept, which is
 * this sink's alone from now on. All files with the right size and time go to `set`. */
uint64_t gct_cp_claim(struct gct_cp_sink *s, uint64_t *set);

/* How many checksums have the first n blocks and the set's files among them. What is beyond
 * GCT_CP_MAX_BLOCKS is taken out of the set. */
uint64_t gct_cp_reach(const struct gct_cp_manifest *m, uint64_t *set, uint64_t n);

/* Called after each block, of which there may be hours: up to the n-th it is done. An error ends the
 * work. */
struct gct_cp_look {
	int (*look)(void *user, uint64_t n, struct gci_error *e);
	void *user;
};

/* Sums of the files that the source has not read from end to end: by their blocks' checksums, of
 * the first ncrcs, or else they are read now. */
int gct_cp_sums_rest(struct gct_cp_sums *s, const uint32_t *crcs, uint64_t ncrcs,
	const struct gct_cp_look *look, struct gci_error *e);

/* Checksums, at the source, of the first n blocks and of those of the files in `set` (or NULL), as
 * far as they are not known. `look` may be NULL. */
int gct_cp_sum_blocks(const struct gct_cp_manifest *m, uint32_t *crcs, uint64_t n,
	const uint64_t *set, const struct gct_cp_look *look, struct gci_error *e);

/* Leaves in the set what the receiver has whole, by n checksums; p is how far it has the stream,
 * were all files in it. What cannot be read is not there. GCOLL_ERR_NOMEM, or what `look` says,
 * which may be NULL. */
int gct_cp_verify(struct gct_cp_sink *s, const uint32_t *crcs, uint64_t n, uint64_t *set,
	struct gct_cp_point *p, const struct gct_cp_look *look, struct gci_error *e);

/* Bytes of files that a receiver has which is at p, and has what all receivers have. */
uint64_t gct_cp_had(const struct gct_cp_manifest *m, const struct gct_cp_point *p);

/* At most so many bytes of the stream per second leave the source. Initialised with the rate, or zero
 * for no limit. */
struct gct_cp_throttle {
	uint64_t rate;
	uint64_t
		from_ns; /* when the time of the next ones began, which go at its end; 0: not yet */
};

/* "100Mbit" or "12MB", per second; bytes per second. 0 or -1. */
int gct_cp_parse_limit(const char *s, uint64_t *rate);
#define GCT_CP_LIMIT_EXPECTED "a rate such as 100Mbit, or bytes per second such as 12MB"

/* How much goes at once, and how many such are under way, by the limit (0: none). */
size_t gct_cp_chunk_nbytes(uint64_t rate);
int gct_cp_chunks(uint64_t rate);

/* How long the next chunk of so many bytes has to wait; and one has gone. */
uint64_t gct_cp_throttle_wait(struct gct_cp_throttle *t, uint64_t nbytes, uint64_t now_ns);
void gct_cp_throttle_sent(struct gct_cp_throttle *t, uint64_t nbytes, uint64_t now_ns);

/* A part of the stream that comes from another rank than others do. */
struct gct_cp_span {
	int root;
	uint64_t begin, nbytes;
};

/* One rank's part in moving the stream, in bounded memory. */
struct gct_cp_move {
	gcoll_comm *comm;
	int root;                     /* the rank that has the files; with `spans`, none has all */
	struct gct_cp_source *source; /* at the root, else NULL */
	struct gct_cp_sink *sink;     /* NULL: this rank keeps no copy */
	uint64_t nbytes;
	/* With `spans` these are what the stream is made of, `source` is the rank's own one, and
	 * the sink of each is what sink_of() says, or NULL. */
	const struct gct_cp_span *spans;
	uint32_t nspans;
	struct gct_cp_sink *(*sink_of)(void *user, uint32_t span);
	const uint64_t *at;  /* [rank]: how far each has the stream; UINT64_MAX: it takes no part */
	const uint64_t *end; /* [rank]: up to where it is to have it, a part from `at`; NULL: all */
	struct gct_cp_throttle throttle; /* the same limit on every rank */
	/* Called often, on every rank, with what all ranks have written by now. `reached` is
	 * NULL, or with tells_clusters by cluster: see GCT_CP_REACHED. */
	void (*progress)(void *user, uint64_t nbytes, const uint64_t *reached);
	void *user;
	int tells_clusters; /* the same on every rank */
	uint64_t begun_ns;  /* what times are since */
	/* How it went: when this rank had written the last of it, and how long writing took. */
	uint64_t done_ns, busy_ns;
	struct gci_blocks chunks;
	char *memory[GCT_CP_CHUNKS]; /* of those in hand, [chunk modulo] */
	uint64_t *reached[GCT_CP_CHUNKS];
};

/* When all ranks of a cluster had written that much, in microseconds since the beginning, and the
 * last of them. [cluster]; 0: none of them writes. */
#define GCT_CP_REACHED(ns, rank) (((ns) / 1000) << 20 | (uint32_t)(rank))
#define GCT_CP_REACHED_NS(v)     (((v) >> 20) * 1000)
#define GCT_CP_REACHED_RANK(v)   ((int)((v)&0xfffff))

/* Ends when all ranks have written all. After a failure it may be called again on another
 * communicator: `root` is its number there, and `at` tells where each one is. */
int gct_cp_move(struct gct_cp_move *m, struct gci_error *e);

/* After gcoll_finalize: until then the transport may look at what was under way. */
void gct_cp_move_free(struct gct_cp_move *m);

/* Where the ranks of a job are. */
struct gct_cp_ranks {
	int n;
	const char **hosts, **clusters; /* [rank] */
};

/* Sets chosen[rank] to whether the rank is in the list: "3", "2-5", a host, a pattern of hosts such
 * as "k[1-8]", a cluster, or several of these with commas between. Names come before numbers. 0,
 * GCOLL_ERR_INVAL (what is none of these) or GCOLL_ERR_NOMEM. */
int gct_cp_select(
	const struct gct_cp_ranks *r, const char *list, uint8_t *chosen, struct gci_error *e);

/* The rank of that number, or the first one on the host of that name; a name comes before a number.
 * `option` is for the message. 0 or GCOLL_ERR_INVAL. */
int gct_cp_select_one(const struct gct_cp_ranks *r, const char *option, const char *name, int *rank,
	struct gci_error *e);

/* Opens directory `path` for nothing but to start from: wherever links of its later part lead, not out
 * of its first `fixed` bytes, which are a directory (0: the current one). With `make`, what is missing
 * of the later part is made, with `sync` on the disk. -1: errno says why not; EXDEV: it leads out. */
int gct_cp_open_beneath(const char *path, size_t fixed, int make, int sync);

/* Replaces %r by the rank, %h by the host's name, %% by %. NULL, with the reason in `e`, when
 * something else follows a %. */
char *gct_cp_expand(const char *pattern, int rank, const char *host, struct gci_error *e);

/* The length of the directories in `pattern` that are the same for all ranks, when expanded. */
size_t gct_cp_fixed_length(const char *pattern);

/* Makes the directory and those above it. With `sync` their names are on the disk then. */
int gct_cp_make_directories(const char *path, int sync, struct gci_error *e);

/* A cluster whose ranks all have as much as all ranks have: since when, and who was the last. */
struct gct_cp_seen {
	const char *cluster; /* NULL: none of its ranks writes */
	const char *last;    /* a host */
	uint64_t ns;         /* since the beginning */
};

/* A line like " 63 % [=======>    ] 81.2 MB/s  0:12 left  tokyo 81.2 MB/s (t3)", to be followed by
 * '\r': as many of the n clusters as there is room for, the slowest first. Sorts them. */
void gct_cp_progress_line(char *out, size_t size, uint64_t done, uint64_t all, uint64_t elapsed_ns,
	struct gct_cp_seen *seen, int n);

#endif
