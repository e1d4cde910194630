/* SPDX-License-Identifier: MIT */
#include "launcher/agents.h"

#include "base/mem.h"
#include "launcher/pipes.h"
#include "launcher/spawn.h"

#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_COMPLAINT 300

static void lose(struct gci_agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Where ssh or a shell complained, its last line tells more than we know. */
static void lose(struct gci_agent *a, const char *fmt, ...)
{
	char why[GCI_CTL_TEXT];
	const char *said = gci_buf_cstr(&a->complaint);
	va_list ap;
	int n;

	if (a->lost || a->closed)
		return;
	a->lost = 1;
	va_start(ap, fmt);
	n = vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (*said && n >= 0 && (size_t)n < sizeof(why))
		snprintf(why + n, sizeof(why) - (size_t)n, ": %s", said);
	a->events->lost(a, why);
}

static void on_frame(struct gci_agent *a, struct gci_frame *f)
{
	uint32_t rank = 0, x, y;
	char *text = NULL;

	if (f->type == GCI_FRAME_OUTPUT || f->type == GCI_FRAME_ENDED) {
		rank = gci_read_u32(&f->r);
		if (rank < a->place->first || rank - a->place->first >= a->place->nranks)
			f->r.failed = 1;
	}
	switch (f->type) {
	case GCI_FRAME_OUTPUT:
		x = gci_read_u32(&f->r);
		if (x != 1 && x != 2)
			f->r.failed = 1;
		if (f->r.failed)
			break;
		a->owed += (uint32_t)f->r.len;
		a->events->output(a, rank, x, f->r.data, f->r.len);
		break;
	case GCI_FRAME_ENDED:
		x = gci_read_u32(&f->r);
		y = gci_read_u32(&f->r);
		text = gci_read_str(&f->r, GCI_FRAME_DATA);
		if (!f->r.failed)
			a->events->ended(a, rank, (int)(x & 255), (int)(y & 127), text);
		break;
	case GCI_FRAME_TAKEN:
		x = gci_read_u32(&f->r);
		if (!f->r.failed)
			a->events->taken(a, x);
		break;
	case GCI_FRAME_ERROR:
		text = gci_read_str(&f->r, GCI_FRAME_DATA);
		lose(a, "the agent failed: %s", text ? text : "");
		break;
	default:
		f->r.failed = 1;
	}
	if (f->r.failed)
		lose(a, "the agent spoke nonsense (frame %d)", (int)f->type);
	gci_free(text);
}

/* A login script may have printed something before. */
static int find_magic(struct gci_agent *a)
{
	size_t len = strlen(GCI_FRAME_MAGIC);
	const uint8_t *at = memmem(a->input.data, a->input.len, GCI_FRAME_MAGIC, len);

	if (at) {
		a->spoke = 1;
		gci_buf_consume(&a->input, (size_t)(at - a->input.data) + len);
	} else if (a->input.len > GCI_FRAME_MAX_NOISE) {
		lose(a, "no agent answered, but something else did");
	}
	return a->spoke;
}

static void on_input(struct gci_agent *a)
{
	struct gci_error e = {0};
	struct gci_frame f;
	size_t at = 0;

	if (a->input.failed) {
		lose(a, "out of memory for what its agent said");
		return;
	}
	if (!a->spoke && !find_magic(a))
		return;
	while (!a->lost && gci_frame_next(&a->input, &at, &f, &e) == 1)
		on_frame(a, &f);
	gci_buf_consume(&a->input, at);
	if (e.status)
		lose(a, "the agent spoke nonsense (%s)", e.text);
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	static char space[65536];

	(void)h;
	(void)want;
	*buf = uv_buf_init(space, sizeof(space));
}

static void on_closed(uv_handle_t *h)
{
	(void)h;
}

static void close_pipe(uv_pipe_t *p)
{
	if (!uv_is_closing((uv_handle_t *)p))
		uv_close((uv_handle_t *)p, on_closed);
}

static void on_up(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct gci_agent *a = s->data;

	if (n < 0) {
		close_pipe(&a->up);
		/* Its process's end will tell why, if it comes. */
		if (!a->pid)
			lose(a, "the agent ended");
		return;
	}
	if (a->lost)
		return;
	gci_buf_put(&a->input, buf->base, (size_t)n);
	on_input(a);
}

/* Keeps the last line that says something. */
static void on_err(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct gci_agent *a = s->data;
	ssize_t i;

	if (n < 0) {
		close_pipe(&a->err);
		return;
	}
	for (i = 0; i < n; i++) {
		char c = buf->base[i];

		if (c == '\n' || c == '\r') {
			a->nopen = 0; /* the next character begins a new line */
			if (a->spoke && c == '\n' && a->complaint.len)
				a->events->grumble(a, gci_buf_cstr(&a->complaint));
			continue;
		}
		if (!a->nopen)
			gci_buf_consume(&a->complaint, a->complaint.len);
		a->nopen = 1;
		if (a->complaint.len < MAX_COMPLAINT)
			gci_buf_put_u8(&a->complaint, (uint8_t)c);
	}
}

/* What still stands in a pipe when its writer is dead already. */
static void drain(uv_pipe_t *p, uv_read_cb on_read)
{
	static char space[16384];
	uv_buf_t buf = uv_buf_init(space, sizeof(space));
	uv_os_fd_t fd;
	ssize_t n;

	while (!uv_is_closing((uv_handle_t *)p) && !uv_fileno((uv_handle_t *)p, &fd)) {
		n = read(fd, space, sizeof(space));
		if (n <= 0)
			return;
		on_read((uv_stream_t *)p, n, &buf);
	}
}

/* For a shell. */
static void quote(struct gci_buf *out, const char *s)
{
	gci_buf_put_u8(out, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			gci_buf_printf(out, "'\\''");
		else
			gci_buf_put_u8(out, (uint8_t)*s);
	}
	gci_buf_put_u8(out, '\'');
}

void gci_quote_if_needed(struct gci_buf *out, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=:,./@%";

	if (*s && !s[strspn(s, plain)])
		gci_buf_printf(out, "%s", s);
	else
		quote(out, s);
}

/* ssh's arguments, which `far` has a part of, for the agent of a host. */
static void make_ssh(
	char *argv[7], struct gci_buf *far, const struct gci_place *place, const char *remote_path)
{
	static char ssh[] = "ssh", batch[] = "-oBatchMode=yes", t[] = "-T";
	/* A master connection made by us would end with us, with others' sessions on it. */
	static char master[] = "-oControlMaster=no";
	char *const all[] = {ssh, batch, master, t, (char *)(uintptr_t)place->host};

	quote(far, remote_path);
	gci_buf_printf(far, " --agent");
	memcpy(argv, all, sizeof(all));
	argv[5] = (char *)(uintptr_t)gci_buf_cstr(far);
	argv[6] = NULL;
}

void gci_agent_print_ssh(
	struct gci_buf *out, const struct gci_place *place, const char *remote_path)
{
	struct gci_buf far = {0};
	char *argv[7], **s;

	make_ssh(argv, &far, place, remote_path);
	for (s = argv; *s; s++) {
		gci_buf_printf(out, "%s", s == argv ? "" : " ");
		gci_quote_if_needed(out, *s);
	}
	out->failed |= far.failed;
	gci_buf_free(&far);
}

static int run_agent(
	struct gci_agent *a, const char *remote_path, const int *fds, struct gci_error *e)
{
	static char self[] = "/proc/self/exe", flag[] = "--agent", netns[] = "--netns";
	char *local[] = {self, flag, a->place->netns ? netns : NULL, a->place->netns, NULL};
	char *remote[7];
	struct gci_buf far = {0};
	/* An ssh that outlives us would keep the far agent alive; a local agent ends by itself, and
	 * must live long enough to end its descendants. */
	struct gci_spawn s = {.argv = local, .fds = {fds[0], fds[1], fds[2], -1}, .new_session = 1};
	int rc;

	if (a->place->how == GCI_PLACE_SSH) {
		make_ssh(remote, &far, a->place, remote_path);
		s.argv = remote;
		s.death_signal = SIGTERM;
	}
	rc = gci_spawn(&s, &a->pid, e);
	gci_buf_free(&far);
	return rc;
}

static int open_pipe(struct gci_agent *a, uv_loop_t *loop, uv_pipe_t *p, int fd, uv_read_cb on_read)
{
	int rc = uv_pipe_init(loop, p, 0);

	p->data = a;
	if (!rc)
		rc = uv_pipe_open(p, fd);
	if (rc)
		close(fd);
	else if (on_read)
		rc = uv_read_start((uv_stream_t *)p, on_alloc, on_read);
	return rc;
}

int gci_agent_start(struct gci_agent *a, uv_loop_t *loop, const struct gci_place *place,
	const char *remote_path, const struct gci_agent_events *events, void *user,
	struct gci_error *e)
{
	int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1}, fds[2], i, rc = 0;

	memset(a, 0, sizeof(*a));
	a->place = place;
	a->events = events;
	a->user = user;
	for (i = 0; i < 3 && !rc; i++) {
		rc = gci_pipe(fds, e);
		if (rc)
			break;
		theirs[i] = fds[i > 0];
		ours[i] = fds[!i];
	}
	if (!rc)
		rc = run_agent(a, remote_path, theirs, e);
	for (i = 0; i < 3; i++) {
		if (theirs[i] >= 0)
			close(theirs[i]);
		if (rc && ours[i] >= 0)
			close(ours[i]);
	}
	if (rc)
		return rc;
	rc = open_pipe(a, loop, &a->down, ours[0], NULL);
	rc |= open_pipe(a, loop, &a->up, ours[1], on_up);
	rc |= open_pipe(a, loop, &a->err, ours[2], on_err);
	return rc ? gci_error_set(e, GCOLL_ERR_SYS, "cannot use a pipe") : 0;
}

void gci_agent_send(struct gci_agent *a, struct gci_buf *b)
{
	int rc = 0;

	if (!a->closed && !uv_is_closing((uv_handle_t *)&a->down))
		rc = gci_pipe_send((uv_stream_t *)&a->down, b, NULL);
	gci_buf_free(b);
	/* A pipe without reader is noticed at the agent's end. */
	if (rc == UV_ENOMEM)
		lose(a, "out of memory for what its agent has to know");
}

void gci_agent_died(struct gci_agent *a, int wait_status)
{
	drain(&a->up, on_up);
	drain(&a->err, on_err);
	a->pid = 0;
	if (WIFSIGNALED(wait_status))
		lose(a, "%s was killed by signal %d",
			a->place->how == GCI_PLACE_SSH ? "its ssh" : "its agent",
			WTERMSIG(wait_status));
	else
		lose(a, "%s ended with status %d",
			a->place->how == GCI_PLACE_SSH ? "its ssh" : "its agent",
			WEXITSTATUS(wait_status));
}

void gci_agent_close(struct gci_agent *a)
{
	a->closed = 1;
	close_pipe(&a->down);
}

int gci_route_to(const char *host, char *ip, size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL, *it;
	struct sockaddr_storage self;
	socklen_t len;
	const char *at = strrchr(host, '@');
	int fd, rc = -1;

	if (getaddrinfo(at ? at + 1 : host, "9", &hints, &list))
		return -1;
	for (it = list; it && rc; it = it->ai_next) {
		fd = socket(it->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		len = sizeof(self);
		/* Connecting a datagram socket sends nothing, but looks the route up. */
		if (!connect(fd, it->ai_addr, it->ai_addrlen) &&
			!getsockname(fd, (struct sockaddr *)&self, &len))
			rc = getnameinfo((struct sockaddr *)&self, len, ip, (socklen_t)size, NULL,
				     0, NI_NUMERICHOST)
				     ? -1
				     : 0;
		close(fd);
	}
	freeaddrinfo(list);
	return rc;
}
