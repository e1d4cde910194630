/* SPDX-License-Identifier: MIT
 * What a running job can be asked, and told: commands in lines of JSON over a Unix socket of
 * gridcoll-run.
 *
 *	{"cmd": "budget", "budget": "a>b=2Gbit"}
 *	{"ok": true, ...}
 *	{"ok": false, "error": "unknown cluster x, expected one of: a, b"}
 *
 * One request, one reply, each a JSON object in a line of its own; as many as the client likes, one
 * after the other. A new command is a row in the table of launcher/watch.c:
 *
 *	static int budget(void *user, const struct gci_json_node *request, struct json_t *reply,
 *		struct gci_error *e)
 *	{
 *		rc = gci_json_string(request, "budget", MOST_BUDGET, &text);
 *		...
 *		return rc;
 *	}
 *	static const char *const budget_arguments[] = {"cmd", "budget", NULL};
 *	{"budget", budget_arguments, budget},
 *
 * Commands are called on the launcher's loop and must not block. */
#ifndef GCI_LAUNCHER_CTL_H
#define GCI_LAUNCHER_CTL_H

#include "base/buf.h"
#include "base/jsontext.h"

#include <uv.h>

#define GCI_JOBCTL_REQUEST_NBYTES 4096 /* the longest, without the end of its line */
#define GCI_JOBCTL_CLIENTS        16   /* at a time */
#define GCI_JOBCTL_PATH_NBYTES    108  /* of a Unix socket's address */

struct gci_jobctl_command {
	const char *name;
	const char *const *keys; /* all that its request may have, "cmd" too; ends with NULL */
	/* Adds to `reply`, an object; or returns GCOLL_ERR_* with the reason in `e`. */
	int (*run)(void *user, const struct gci_json_node *request, struct json_t *reply,
		struct gci_error *e);
};

/* Appends the reply to one request, and the end of its line. The table ends with a row without a
 * name. */
void gci_jobctl_answer(const struct gci_jobctl_command *commands, void *user, const char *line,
	size_t len, struct gci_buf *out);

/* Takes the first line off `in`, without its end, as the `len` bytes at *line, until `in` changes;
 * *used is what it takes up there. 1, 0: no whole line yet, -1: it is longer than a request may be.
 */
int gci_jobctl_line(const struct gci_buf *in, const char **line, size_t *len, size_t *used);

/* ---- the socket */

struct gci_jobctl_client;

struct gci_jobctl {
	uv_pipe_t listener;
	const struct gci_jobctl_command *commands;
	void *user;
	unsigned nclients;
	struct gci_jobctl_client *next;    /* for who comes next; NULL: there was no memory */
	int is_waiting;                    /* somebody is, for that memory */
	char path[GCI_JOBCTL_PATH_NBYTES]; /* "": it is not open */
};

/* The directory of this user's sockets: gridcoll in XDG_RUNTIME_DIR, where that is this user's;
 * else /run/gridcoll-0 for root and /tmp/gridcoll-UID for others. Makes it where it is missing;
 * refuses one that others can write to or read. */
int gci_jobctl_directory(char path[GCI_JOBCTL_PATH_NBYTES], struct gci_error *e);

/* Listens at DIRECTORY/PID, PID being this process's. */
int gci_jobctl_open(struct gci_jobctl *c, uv_loop_t *loop,
	const struct gci_jobctl_command *commands, void *user, struct gci_error *e);

/* Takes the socket's name away, so that nobody finds it any more, and the directory unless other jobs
 * are in it. The loop is not run again. */
void gci_jobctl_close(struct gci_jobctl *c);

/* Removes the names of sockets at which nobody listens any more. */
void gci_jobctl_tidy(const char *directory);

/* Connects to the socket at `path`: a descriptor that blocks, or -1 with errno. Does not wait:
 * EAGAIN where somebody listens who has not taken those before (a stopped gridcoll-run). */
int gci_jobctl_connect(const char *path);

#endif
