/* SPDX-License-Identifier: MIT
 * `gridcoll cp`: files as one byte stream. Each file's contents are followed by their CRC32C, so a
 * receiver knows whether it has the file whole before it gives it its name.
 *
 *	stream = { contents, u32 crc32c(contents) } per file, in the manifest's order
 *
 *	rank 0				the others
 *	gct_cp_manifest_scan		gct_cp_manifest_decode
 *	gct_cp_source_init		gct_cp_sink_init, gct_cp_sink_start
 *	gct_cp_move			gct_cp_move
 *	gct_cp_source_close		gct_cp_sink_finish, gct_cp_sink_close */
#ifndef GCT_CP_H
#define GCT_CP_H

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>
#include <time.h>

#define GCT_CP_TRAILER      4
#define GCT_CP_MAX_FILES    (1u << 20)
#define GCT_CP_MAX_MANIFEST (32u << 20) /* a command line of 6 MiB, Linux's most, needs 26 MiB */
#define GCT_CP_MAX_NAME     255
#define GCT_CP_CHUNK_NBYTES (4u << 20)
#define GCT_CP_CHUNKS       16 /* at once: under way, or waiting to be written */

struct gct_cp_file {
	char *name; /* without directories */
	uint64_t size;
	uint32_t mode; /* permission bits */
	int64_t mtime_s;
	uint32_t mtime_ns;
};

struct gct_cp_manifest {
	struct gct_cp_file *files;
	uint32_t nfiles;
	uint64_t stream_nbytes; /* of all files with their trailers */
	int into_directory;     /* names are kept; else the only file is called as DEST says */
};

/* Reads what rank 0 is to send. Every path must be a readable regular file. */
int gct_cp_manifest_scan(struct gct_cp_manifest *m, char *const *paths, int npaths,
	int into_directory, struct gci_error *e);
void gct_cp_manifest_encode(const struct gct_cp_manifest *m, struct gci_buf *out);
int gct_cp_manifest_decode(
	struct gct_cp_manifest *m, const uint8_t *data, size_t len, struct gci_error *e);
void gct_cp_manifest_free(struct gct_cp_manifest *m);

/* The stream's source: opens one file after the other. */
struct gct_cp_source {
	const struct gct_cp_manifest *manifest;
	char *const *paths;
	uint32_t file;
	uint64_t offset;      /* in the file, trailer included */
	uint64_t stretch_end; /* up to there it is all hole, or all data */
	int in_hole;
	int fd;
	uint32_t crc;
};

void gct_cp_source_init(
	struct gct_cp_source *s, const struct gct_cp_manifest *m, char *const *paths);

/* The stream's next n bytes. An error if a file is not any more what the manifest says. */
int gct_cp_source_read(struct gct_cp_source *s, char *buf, size_t n, struct gci_error *e);
void gct_cp_source_close(struct gct_cp_source *s);

/* The stream's end at a receiver: writes each file under a temporary name in its directory, skips
 * blocks of zeros (the copy of a sparse file is sparse), and renames it when its checksum agrees.
 * What is not whole is removed. */
struct gct_cp_sink {
	const struct gct_cp_manifest *manifest;
	const char *dest;   /* a directory, or the only file's name */
	int into_directory; /* which of them */
	int sync;           /* to the disk before the file gets its name */
	uint32_t file;
	uint64_t offset;
	int fd;
	uint32_t crc, want;
	char *path;      /* of the file in hand */
	char *temporary; /* one name for all files, one after the other: never changes */
	uint64_t nfiles_done;
};

/* `dest` must live as long as the sink. */
int gct_cp_sink_init(struct gct_cp_sink *s, const struct gct_cp_manifest *m, const char *dest,
	int into_directory, int sync, struct gci_error *e);

/* Makes the first temporary file: a destination that cannot be written is found before anything
 * is sent. */
int gct_cp_sink_start(struct gct_cp_sink *s, struct gci_error *e);
int gct_cp_sink_write(struct gct_cp_sink *s, const char *data, size_t n, struct gci_error *e);

/* At the stream's end: an error if it came too early. */
int gct_cp_sink_finish(struct gct_cp_sink *s, struct gci_error *e);

/* Removes what is incomplete. */
void gct_cp_sink_close(struct gct_cp_sink *s);

/* SIGINT, SIGTERM and SIGHUP end the process, as ever, but not without removing the temporary
 * file. One sink per process. */
void gct_cp_sink_guard(const struct gct_cp_sink *s);

/* One rank's part in moving the stream, in bounded memory. */
struct gct_cp_move {
	gcoll_comm *comm;
	struct gct_cp_source *source; /* on rank 0, else NULL */
	struct gct_cp_sink *sink;     /* NULL: this rank keeps no copy */
	uint64_t nbytes;
	/* Called often, on every rank, with what all ranks have written by now. */
	void (*progress)(void *user, uint64_t nbytes);
	void *user;
	char *chunk[GCT_CP_CHUNKS];
};

/* Ends when all ranks have written all. */
int gct_cp_move(struct gct_cp_move *m, struct gci_error *e);

/* After gcoll_finalize: until then the transport may look at what was under way. */
void gct_cp_move_free(struct gct_cp_move *m);

/* Replaces %r by the rank, %h by the host's name, %% by %. NULL, with the reason in `e`, when
 * something else follows a %. */
char *gct_cp_expand(const char *pattern, int rank, const char *host, struct gci_error *e);

/* Makes the directory and those above it. */
int gct_cp_make_directories(const char *path, struct gci_error *e);

/* A line like " 63 % [=======>    ] 81.2 MB/s  0:12 left", to be followed by '\r'. */
void gct_cp_progress_line(char *out, size_t size, uint64_t done, uint64_t all, uint64_t elapsed_ns);

#endif
