/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "netem/guest.h"
#include "netem/uml_impl.h"
#include "netem/uml_start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_TIMEOUT_NS (120 * GCI_NS_PER_S)

int gci_uml_check(struct gci_error *e)
{
	char path[4096];

	return gci_uml_find(path, sizeof(path), e);
}

static int write_file(
	const char *dir, const char *name, const struct gci_buf *b, struct gci_error *e)
{
	char path[4200], tmp[4300];
	size_t done = 0;
	int fd, rc = 0;

	/* A new file each time: the guest caches what it has seen of an old one. */
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return gci_error_errno(e, "%s", tmp);
	while (!rc && done < b->len) {
		ssize_t n = write(fd, b->data + done, b->len - done);

		if (n < 0 && errno != EINTR)
			rc = gci_error_errno(e, "%s", tmp);
		else if (n > 0)
			done += (size_t)n;
	}
	close(fd);
	if (!rc && rename(tmp, path))
		rc = gci_error_errno(e, "%s", path);
	return rc;
}

/* Files for the guest, pipes to it, and its processes. */
static int start(struct gci_uml *u, const struct gci_uml_options *o, struct gci_error *e)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, con[2] = {-1, -1};
	const char *tmp = getenv("TMPDIR");
	struct gci_buf boot = {0};
	int rc;

	u->dir = gci_asprintf("%s/gridcoll-lab-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!u->dir)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!mkdtemp(u->dir)) {
		rc = gci_error_errno(e, "%s", u->dir);
		gci_free(u->dir);
		u->dir = NULL;
		return rc;
	}
	gci_guest_boot_put(&boot, o->dilation, o->grid);
	rc = boot.failed ? gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory")
			 : write_file(u->dir, "boot", &boot, e);
	gci_buf_free(&boot);
	if (!rc && (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(con, O_CLOEXEC)))
		rc = gci_error_errno(e, "cannot make a pipe");
	if (!rc)
		rc = gci_uml_launch(&u->keeper, u->dir, o->mem_nbytes, con[1], in[0], out[1], e);
	close(in[0]);
	close(out[1]);
	close(con[1]);
	u->to_guest = in[1];
	u->from_guest = out[0];
	u->console = con[0];
	return rc;
}

static int wait_ready(struct gci_uml *u, int wake_fd, struct gci_error *e)
{
	uint64_t deadline = gci_now_ns() + BOOT_TIMEOUT_NS;
	struct pollfd wake = {wake_fd, POLLIN, 0};

	while (!u->ready) {
		int rc = gci_uml_pump(u, &wake, 1, 1000, e);

		if (rc)
			return rc;
		if (wake.revents)
			return gci_error_set(
				e, GCOLL_ERR_ABORTED, "stopped while the guest booted");
		if (gci_now_ns() > deadline)
			return gci_error_set(e, GCOLL_ERR_TIMEOUT,
				"the lab's guest is not up after %d s: %s",
				(int)(BOOT_TIMEOUT_NS / GCI_NS_PER_S), gci_uml_last_words(u));
	}
	return 0;
}

struct gci_uml *gci_uml_boot(
	const struct gci_uml_options *options, int wake_fd, struct gci_error *e)
{
	struct gci_uml *u = gci_calloc(1, sizeof(*u));
	uint64_t begin = gci_now_ns();

	if (!u) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		return NULL;
	}
	u->to_guest = u->from_guest = u->console = -1;
	if (start(u, options, e) || wait_ready(u, wake_fd, e)) {
		gci_uml_stop(u);
		return NULL;
	}
	u->all_ns = gci_now_ns() - begin;
	return u;
}

void gci_uml_boot_times(const struct gci_uml *u, uint64_t *network_ns, uint64_t *all_ns)
{
	*network_ns = u->network_ns;
	*all_ns = u->all_ns;
}

int gci_uml_start(
	struct gci_uml *u, const struct gci_job *job, const int stdio[3], struct gci_error *e)
{
	struct gci_buf file = {0};
	char name[32];
	unsigned id = 0;
	int rc;

	while (id < GCI_MAX_SESSIONS && u->sessions[id].used)
		id++;
	if (id == GCI_MAX_SESSIONS)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "%d commands run in the lab already",
			GCI_MAX_SESSIONS);
	gci_job_put(&file, job);
	snprintf(name, sizeof(name), "job-%u", u->jobs);
	rc = file.failed || file.len > GCI_JOB_MAX
		     ? gci_error_set(e, GCOLL_ERR_INVAL, "command and environment are too long")
		     : write_file(u->dir, name, &file, e);
	gci_buf_free(&file);
	if (rc)
		return rc;
	u->sessions[id] =
		(struct gci_uml_session){.used = 1, .fds = {stdio[0], stdio[1], stdio[2]}};
	gci_uml_send_u32(u, GCI_FRAME_START, id, u->jobs++);
	if (stdio[0] < 0)
		gci_uml_send_frame(u, GCI_FRAME_IN_END, id, NULL, 0);
	return (int)id;
}

int gci_uml_ended(struct gci_uml *u, int id, struct gci_uml_end *end)
{
	struct gci_uml_session *s = &u->sessions[id];

	if (!s->ended)
		return 0;
	*end = s->end;
	memset(s, 0, sizeof(*s));
	return 1;
}

void gci_uml_stop(struct gci_uml *u)
{
	if (!u)
		return;
	if (u->keeper.pid > 0)
		gci_keeper_stop(&u->keeper); /* removes the directory too */
	else if (u->dir)
		gci_remove_tree(u->dir);
	if (u->to_guest >= 0)
		close(u->to_guest);
	if (u->from_guest >= 0)
		close(u->from_guest);
	if (u->console >= 0)
		close(u->console);
	gci_buf_free(&u->received);
	gci_buf_free(&u->log);
	gci_free(u->dir);
	gci_free(u);
}
