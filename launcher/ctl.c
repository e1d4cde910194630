/* SPDX-License-Identifier: MIT */
#include "launcher/ctl.h"

#include "base/mem.h"
#include "launcher/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const struct gci_jobctl_command *find(
	const struct gci_jobctl_command *commands, const char *name)
{
	for (; commands->name; commands++)
		if (!strcmp(commands->name, name))
			return commands;
	return NULL;
}

static int unknown(const struct gci_jobctl_command *commands, const struct gci_json_node *request)
{
	char list[200] = "";

	for (; commands->name; commands++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			*list ? ", " : "", commands->name);
	return gci_json_expected(request, "cmd", "one of %s", list);
}

static int run(const struct gci_jobctl_command *commands, void *user,
	const struct gci_json_node *request, json_t *reply, struct gci_error *e)
{
	const struct gci_jobctl_command *c;
	const char *name;
	int rc = gci_json_string(request, "cmd", 40, &name);

	if (rc)
		return rc;
	c = find(commands, name);
	if (!c)
		return unknown(commands, request);
	rc = gci_json_keys(request, c->keys);
	return rc ? rc : c->run(user, request, reply, e);
}

/* What cannot be told for lack of memory makes the buffer a failed one, and ends the connection. */
static void put(struct gci_buf *out, json_t *reply)
{
	char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

	if (text)
		gci_buf_printf(out, "%s\n", text);
	else
		out->failed = 1;
	free(text); /* jansson's */
}

void gci_jobctl_answer(const struct gci_jobctl_command *commands, void *user, const char *line,
	size_t len, struct gci_buf *out)
{
	json_t *reply = json_pack("{s:b}", "ok", 1);
	struct gci_json_node request;
	struct gci_error e = {0};
	struct gci_json j;
	int rc = gci_json_open(&j, &request, line, len, GCI_JOBCTL_REQUEST_NBYTES, "request", &e);

	if (!rc)
		rc = run(commands, user, &request, reply, &e);
	gci_json_close(&j);
	if (rc) {
		json_decref(reply);
		reply = json_pack(
			"{s:b, s:s}", "ok", 0, "error", *e.text ? e.text : gcoll_strerror(rc));
	}
	put(out, reply);
	json_decref(reply);
}

int gci_jobctl_line(const struct gci_buf *in, const char **line, size_t *len, size_t *used)
{
	const uint8_t *end = in->len ? memchr(in->data, '\n', in->len) : NULL;

	if (!end)
		return in->len > GCI_JOBCTL_REQUEST_NBYTES ? -1 : 0;
	*line = (const char *)in->data;
	*len = (size_t)(end - in->data);
	*used = *len + 1;
	return *len > GCI_JOBCTL_REQUEST_NBYTES ? -1 : 1;
}

/* ---- The socket. Only its user can reach it: the directory is closed to others, and so is the socket.
 * A client is read no further while a reply to it is on its way, so none can make the launcher's memory
 * grow. */

#define TRIES 100 /* to make the directory, while other jobs end and remove it */

struct gci_jobctl_client {
	uv_pipe_t pipe;
	struct gci_jobctl *ctl;
	struct gci_buf in;
	int replying;
};

static void on_connection(uv_stream_t *listener, int status);

static void on_closed(uv_handle_t *h)
{
	struct gci_jobctl_client *c = h->data;
	struct gci_jobctl *ctl = c->ctl;

	ctl->nclients--;
	gci_buf_free(&c->in);
	if (ctl->next) {
		gci_free(c);
		return;
	}
	memset(c, 0, sizeof(*c));
	ctl->next = c;
	if (ctl->is_waiting)
		on_connection((uv_stream_t *)&ctl->listener, 0);
}

static void hang_up(struct gci_jobctl_client *c)
{
	if (!uv_is_closing((uv_handle_t *)&c->pipe))
		uv_close((uv_handle_t *)&c->pipe, on_closed);
}

static void take_requests(struct gci_jobctl_client *c);

static void on_replied(uv_stream_t *to, size_t nbytes, int status)
{
	struct gci_jobctl_client *c = to->data;

	(void)nbytes;
	c->replying = 0;
	if (status)
		hang_up(c);
	else
		take_requests(c);
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[GCI_JOBCTL_REQUEST_NBYTES]; /* used up before the next read */

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

static void on_read(uv_stream_t *from, ssize_t n, const uv_buf_t *buf)
{
	struct gci_jobctl_client *c = from->data;

	if (n < 0) {
		hang_up(c);
		return;
	}
	gci_buf_put(&c->in, buf->base, (size_t)n);
	take_requests(c);
}

/* One request at a time: the next when its reply is out. */
static void take_requests(struct gci_jobctl_client *c)
{
	struct gci_buf out = {0};
	size_t len = 0, used = 0;
	const char *line = "";
	int rc = c->in.failed ? -1 : gci_jobctl_line(&c->in, &line, &len, &used);

	if (uv_is_closing((uv_handle_t *)&c->pipe))
		return;
	if (rc < 0) {
		hang_up(c);
		return;
	}
	if (!rc) {
		uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
		return;
	}
	uv_read_stop((uv_stream_t *)&c->pipe);
	gci_jobctl_answer(c->ctl->commands, c->ctl->user, line, len, &out);
	gci_buf_consume(&c->in, used);
	c->replying = 1;
	if (gci_pipe_send((uv_stream_t *)&c->pipe, &out, on_replied))
		hang_up(c);
}

/* libuv tells of no other connection before this one is accepted. Where memory is missing that is when a client
 * has gone; the next one's is taken in advance, so that there is a client to go. */
static void on_connection(uv_stream_t *listener, int status)
{
	struct gci_jobctl *ctl = listener->data;
	struct gci_jobctl_client *c = ctl->next;

	ctl->is_waiting = !status && !c;
	if (status || !c)
		return;
	ctl->next = gci_calloc(1, sizeof(*c));
	c->ctl = ctl;
	uv_pipe_init(listener->loop, &c->pipe, 0);
	c->pipe.data = c;
	ctl->nclients++;
	if (uv_accept(listener, (uv_stream_t *)&c->pipe) || ctl->nclients > GCI_JOBCTL_CLIENTS)
		hang_up(c);
	else
		take_requests(c);
}

static int address(struct sockaddr_un *a, const char *path)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(a->sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(a->sun_path, path, strlen(path));
	return 0;
}

int gci_jobctl_connect(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
	struct sockaddr_un a;

	if (fd < 0)
		return -1;
	if (!address(&a, path) && !connect(fd, (struct sockaddr *)&a, sizeof(a)) &&
		!fcntl(fd, F_SETFL, 0))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Makes the directory unless it is there; -1 with errno ENOENT: it was, and another job's end has removed
 * it. */
static int look_at(const char *path, struct stat *st)
{
	return (mkdir(path, 0700) && errno != EEXIST) || lstat(path, st) ? -1 : 0;
}

int gci_jobctl_directory(char path[GCI_JOBCTL_PATH_NBYTES], struct gci_error *e)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n, rc = -1;

	/* In a lab's guest, or after su, the variable may name what is not there. The guest shares
	 * /tmp with its host, whose sockets do not answer there; /run is its own. */
	if (runtime && *runtime == '/' && !stat(runtime, &st) && st.st_uid == geteuid())
		n = snprintf(path, GCI_JOBCTL_PATH_NBYTES, "%s/gridcoll", runtime);
	else
		n = snprintf(path, GCI_JOBCTL_PATH_NBYTES, "/%s/gridcoll-%u",
			geteuid() ? "tmp" : "run", (unsigned)geteuid());
	if (n >= GCI_JOBCTL_PATH_NBYTES - 24)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"XDG_RUNTIME_DIR=%s is too long for the names of sockets", runtime);
	for (n = 0; n < TRIES && (rc = look_at(path, &st)) && errno == ENOENT; n++)
		;
	if (rc)
		return gci_error_errno(e, "cannot make the directory %s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"%s: expected a directory of this user's, closed to all others", path);
	return 0;
}

/* The names begin to exist only when the sockets are listened at (see publish), so whoever does not
 * answer there never will. */
void gci_jobctl_tidy(const char *directory)
{
	DIR *d = opendir(directory);
	char path[GCI_JOBCTL_PATH_NBYTES];
	struct dirent *entry;
	int fd;

	while (d && (entry = readdir(d))) {
		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) ||
			snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >=
				(int)sizeof(path))
			continue;
		fd = gci_jobctl_connect(path);
		if (fd >= 0)
			close(fd);
		else if (errno == ECONNREFUSED)
			unlink(path);
	}
	if (d)
		closedir(d);
}

/* Listens under a name that nobody looks for, and then gives it the real one. GCOLL_ERR_PEER without an
 * error: the directory is gone. */
static int publish(int fd, const char *path, struct gci_error *e)
{
	char hidden[GCI_JOBCTL_PATH_NBYTES];
	const char *name = strrchr(path, '/') + 1;
	struct sockaddr_un a;
	int rc = 0;

	snprintf(hidden, sizeof(hidden), "%.*s.%s", (int)(name - path), path, name);
	unlink(hidden);
	if (address(&a, hidden) || bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return errno == ENOENT
			       ? GCOLL_ERR_PEER
			       : gci_error_errno(e, "cannot make the control socket %s", path);
	if (chmod(hidden, 0600) || listen(fd, GCI_JOBCTL_CLIENTS) || link(hidden, path))
		rc = gci_error_errno(e, "cannot make the control socket %s", path);
	unlink(hidden);
	return rc;
}

/* In the directory, which another job that ends removes as long as nothing is in it. */
static int publish_in(char path[GCI_JOBCTL_PATH_NBYTES], int fd, struct gci_error *e)
{
	int rc = GCOLL_ERR_PEER, tries;

	for (tries = 0; tries < TRIES && rc == GCOLL_ERR_PEER; tries++) {
		rc = gci_jobctl_directory(path, e);
		if (rc)
			return rc;
		gci_jobctl_tidy(path);
		snprintf(path + strlen(path), GCI_JOBCTL_PATH_NBYTES - strlen(path), "/%ld",
			(long)getpid());
		rc = publish(fd, path, e);
	}
	return rc == GCOLL_ERR_PEER ? gci_error_set(e, rc,
					      "cannot make the control socket %s: its directory is "
					      "removed again and again",
					      path)
				    : rc;
}

int gci_jobctl_open(struct gci_jobctl *c, uv_loop_t *loop,
	const struct gci_jobctl_command *commands, void *user, struct gci_error *e)
{
	char path[GCI_JOBCTL_PATH_NBYTES];
	int fd, rc;

	memset(c, 0, sizeof(*c));
	c->commands = commands;
	c->user = user;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return gci_error_errno(e, "cannot make the control socket");
	rc = publish_in(path, fd, e);
	if (rc) {
		close(fd);
		return rc;
	}
	memcpy(c->path, path, sizeof(path));
	uv_pipe_init(loop, &c->listener, 0);
	c->listener.data = c;
	c->next = gci_calloc(1, sizeof(*c->next));
	rc = c->next ? uv_pipe_open(&c->listener, fd) : UV_ENOMEM;
	if (rc)
		close(fd);
	else
		rc = uv_listen((uv_stream_t *)&c->listener, GCI_JOBCTL_CLIENTS, on_connection);
	if (!rc)
		return 0;
	gci_jobctl_close(c);
	return gci_error_set(e, GCOLL_ERR_SYS, "the control socket: %s", uv_strerror(rc));
}

void gci_jobctl_close(struct gci_jobctl *c)
{
	if (!*c->path)
		return;
	gci_free(c->next);
	c->next = NULL;
	unlink(c->path);
	*strrchr(c->path, '/') = '\0';
	rmdir(c->path); /* unless other jobs are in it */
	*c->path = '\0';
}
