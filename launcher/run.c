/* SPDX-License-Identifier: MIT */
#include "launcher/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "launcher/job.h"
#include "launcher/secret.h"
#include "launcher/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HELD_LONG_MS 500 /* twice this is too long */
#define MAX_GRACE_NS GCI_NS_PER_S

struct gci_job gci_job;

/* ---- output ---- */

size_t gci_job_backlog(void)
{
	return gci_sink_backlog(&gci_job.sinks[0]) + gci_sink_backlog(&gci_job.sinks[1]);
}

static void give_credit(int force)
{
	uint32_t i;

	if (gci_job_backlog() >= GCI_JOB_BACKLOG_HIGH)
		return;
	for (i = 0; i < gci_job.nagents; i++) {
		struct gci_agent *a = &gci_job.agents[i];
		struct gci_buf b = {0};

		if (!a->owed || (!force && a->owed < GCI_FRAME_WINDOW / 4))
			continue;
		gci_frame_put_u32(&b, GCI_FRAME_CREDIT, a->owed);
		a->owed = 0;
		gci_agent_send(a, &b);
	}
}

void gci_job_to_all(enum gci_frame_type type, uint32_t v)
{
	uint32_t i;

	for (i = 0; i < gci_job.nagents; i++) {
		struct gci_buf b = {0};

		if (v)
			gci_frame_put_u32(&b, type, v);
		else
			gci_frame_put_plain(&b, type);
		gci_agent_send(&gci_job.agents[i], &b);
	}
}

/* What the ranks printed is lost, and that is no rank's fault. */
static void output_lost(uint32_t stream, int error)
{
	char cause[128];

	snprintf(cause, sizeof(cause), "standard %s: %s", stream == 2 ? "error" : "output",
		strerror(error));
	gci_rdv_give_up(gci_job.server.rdv, GCOLL_ERR_IO, cause, gci_now_ns());
	if (!gci_job.closing)
		gci_server_kick(&gci_job.server);
}

/* When our reader is gone, the ranks shall see that as they would without us between. */
static void on_drained(struct gci_sink *s)
{
	uint32_t stream = s == &gci_job.sinks[1] ? 2 : 1;

	if (s->error && !gci_job.hushed[stream - 1]) {
		gci_job.hushed[stream - 1] = 1;
		if (s->error != EPIPE)
			output_lost(stream, s->error);
		gci_job_to_all(GCI_FRAME_HUSH, stream);
	}
	give_credit(1);
	gci_job_check_end();
}

static void on_output(
	struct gci_agent *a, uint32_t rank, uint32_t stream, const uint8_t *data, size_t nbytes)
{
	struct gci_sink *s = &gci_job.sinks[stream - 1];
	struct gci_job_rank *k = &gci_job.ranks[rank];

	(void)a;
	if (nbytes && !k->closed[stream - 1]) {
		gci_output_put(&s->o, &k->lines[stream - 1], data, nbytes);
	} else if (!k->closed[stream - 1]) {
		k->closed[stream - 1] = 1;
		gci_output_end(&s->o, &k->lines[stream - 1]);
	}
	if (k->lines[stream - 1].part.failed || s->o.out.failed) {
		fprintf(stderr, "gridcoll-run: out of memory\n");
		_exit(1); /* rather than drop output; the agents end all the rest */
	}
	gci_sink_flush(s);
	give_credit(0);
	gci_job_check_end();
}

/* Others have waited for the end of a long line: half a second to a second is enough. */
static void on_held(uv_timer_t *t)
{
	int i;

	(void)t;
	for (i = 0; i < 2; i++) {
		gci_job.held_ticks[i] = gci_job.sinks[i].o.held ? gci_job.held_ticks[i] + 1 : 0;
		if (gci_job.held_ticks[i] < 2)
			continue;
		gci_job.held_ticks[i] = 0;
		gci_output_break(&gci_job.sinks[i].o);
		gci_sink_flush(&gci_job.sinks[i]);
	}
}

/* ---- input ---- */

static void read_stdin(void)
{
	if (gci_job.nagents && !gci_job.stdin_ended && !gci_job.closing)
		gci_source_read(&gci_job.input, gci_job.stdin_room);
}

static void on_stdin(struct gci_source *s, const char *data, size_t nbytes)
{
	struct gci_buf b = {0};
	size_t at = gci_frame_begin(&b, GCI_FRAME_STDIN);

	(void)s;
	gci_buf_put(&b, data, nbytes);
	gci_frame_end(&b, at);
	gci_agent_send(&gci_job.agents[0], &b);
	gci_job.stdin_room -= nbytes;
	gci_job.stdin_ended = !nbytes;
	read_stdin();
}

static void on_taken(struct gci_agent *a, uint32_t nbytes)
{
	(void)a;
	gci_job.stdin_room += nbytes;
	if (gci_job.stdin_room > GCI_FRAME_WINDOW)
		gci_job.stdin_room = GCI_FRAME_WINDOW;
	read_stdin();
}

static const struct gci_agent_events events = {.output = on_output,
	.ended = gci_job_on_ended,
	.taken = on_taken,
	.lost = gci_job_on_lost,
	.grumble = gci_job_on_grumble,
	.detour = gci_job_on_detour};

/* ---- signals ---- */

/* There is no process of ours to pass it on to. */
static void interrupt_service(int signum)
{
	char why[64];

	snprintf(why, sizeof(why), "gridcoll-run --serve was told to end (%s)", strsignal(signum));
	gci_rdv_give_up(gci_job.server.rdv, GCOLL_ERR_ABORTED, why, gci_now_ns());
	gci_server_kick(&gci_job.server);
}

static void on_signal(uv_signal_t *h, int signum)
{
	(void)h;
	if (signum == SIGCONT) {
		read_stdin();
		return;
	}
	if (gci_job.closing && (signum == SIGINT || signum == SIGTERM))
		_exit(128 + signum); /* only the writing is left */
	if (!gci_job.nagents && (signum == SIGINT || signum == SIGTERM || signum == SIGHUP))
		interrupt_service(signum);
	if (signum == SIGINT || signum == SIGTERM || signum == SIGHUP)
		gci_job.order = signum;
	/* The first is a request, which a rank may take its time for; the second is an order. */
	if ((signum == SIGINT || signum == SIGTERM) && gci_job.interrupts++) {
		gci_job.failing = 1;
		gci_job_on_kill(&gci_job.escalation);
		return;
	}
	gci_job_signal_all(signum);
	if (signum == SIGTERM || signum == SIGHUP)
		gci_job_signal_all(SIGCONT); /* a stopped rank would never see it */
}

static void watch_signals(void)
{
	static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
	struct sigaction now;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	uv_signal_init(&gci_job.loop, &gci_job.children);
	uv_signal_start(&gci_job.children, gci_job_on_children, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++) {
		/* What is ignored from the beginning (nohup) stays so. */
		if (!sigaction(forwarded[i], NULL, &now) && now.sa_handler == SIG_IGN)
			continue;
		uv_signal_init(&gci_job.loop, &gci_job.signals[i]);
		uv_signal_start(&gci_job.signals[i], on_signal, forwarded[i]);
	}
}

/* ---- start ---- */

/* In a slow network the last words of a rank take longer. */
static uint64_t grace_ns(const struct gci_placement *p)
{
	uint64_t longest = 0;
	int i;

	for (i = 0; i < p->grid.nlinks; i++)
		if (p->grid.links[i].delay_ns > longest)
			longest = p->grid.links[i].delay_ns;
	longest = longest > MAX_GRACE_NS ? MAX_GRACE_NS : longest;
	longest = GCI_NS_PER_S / 2 + 2 * longest;
	return longest > MAX_GRACE_NS ? MAX_GRACE_NS : longest;
}

/* What a rank says may stand in the links' queues, for long in a dilated lab. Half of this is when
 * the first question goes out (keepalive), so the answer must have come in the other half. */
static uint64_t dead_ns(const struct gci_options *o, const struct gci_placement *p)
{
	return (o->fast_timers ? 4 : 20) * GCI_NS_PER_S + 2 * gci_grid_held_ns(&p->grid);
}

static const char *on_settled(void *plan, char *why, size_t size)
{
	const char *grid = gci_placement_settle(plan, why, size);

	if (grid)
		gci_watch_settle(&gci_job.watch);
	return grid;
}

/* Only of our own command is it known what it means by its exit status. */
static int is_copy(char *const *argv)
{
	const char *name = argv[0]; /* NULL: others start all ranks */
	const char *slash = name ? strrchr(name, '/') : NULL;

	return name && !strcmp(slash ? slash + 1 : name, "gridcoll") && argv[1] &&
	       !strcmp(argv[1], "cp");
}

static int open_server(const struct gci_options *o, struct gci_placement *p, struct gci_error *e)
{
	struct gci_rdv_config c = {.size = p->size,
		.names = p->names,
		.hosts = p->hosts,
		.grid = p->grid_text,
		.table = p->table_text,
		.table_digest = p->table_digest,
		.beat_ns = o->fast_timers ? GCI_NS_PER_S / 4 : GCI_NS_PER_S,
		.dead_ns = dead_ns(o, p),
		.start_ns = o->start_ns,
		.survives = o->survives,
		.partial = is_copy(o->argv) ? GCI_EXIT_PARTIAL : 0,
		.shrink_ns = o->shrink_ns,
		.grace_ns = grace_ns(p)};
	const struct gci_server_place at = {
		p->listen_ip, p->listen_netns, p->listen_ports, gci_job_tls(o, p)};
	int rc;

	c.report = gci_watch_report;
	c.flows = gci_watch_flows;
	c.renewed = gci_watch_renewed;
	c.user = &gci_job.watch;
	if (p->nguests) {
		c.nguests = p->nguests;
		c.arrive = gci_placement_arrive;
		c.settle = on_settled;
		c.guests = p;
	}
	memcpy(c.secret, gci_job.secret, sizeof(c.secret));
	gci_job.dead_ns = c.dead_ns;
	rc = gci_server_open(&gci_job.server, &gci_job.loop, &c, &at, gci_job_on_change, NULL, e);
	explicit_bzero(c.secret, sizeof(c.secret));
	return rc;
}

/* A job is worth more than its statistics. */
static void on_stats_drained(struct gci_sink *s)
{
	if (s->error && gci_job.watch.has_file) {
		gci_job.watch.has_file = 0;
		gci_log(GCI_LOG_WARN, "--stats: %s; no more is written", strerror(s->error));
	}
	gci_job_check_end();
}

static int open_job(const struct gci_options *o, struct gci_placement *p, struct gci_error *e)
{
	uint32_t i;
	int k;

	gci_job.plan = p;
	gci_job.ranks = gci_calloc(p->size, sizeof(*gci_job.ranks));
	gci_job.agents = gci_calloc(p->nplaces, sizeof(*gci_job.agents));
	if (!gci_job.ranks || !gci_job.agents)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < p->size; i++)
		gci_job.ranks[i].lines[0].rank = gci_job.ranks[i].lines[1].rank = i;
	for (i = p->size - p->nguests; i < p->size; i++)
		gci_job.ranks[i].closed[0] = gci_job.ranks[i].closed[1] = 1;
	if (uv_loop_init(&gci_job.loop))
		return gci_error_set(e, GCOLL_ERR_SYS, "cannot make an event loop");
	if (gci_job_secret(o, gci_job.secret, e))
		return e->status;
	uv_timer_init(&gci_job.loop, &gci_job.escalation);
	uv_timer_init(&gci_job.loop, &gci_job.left_out);
	uv_timer_init(&gci_job.loop, &gci_job.held);
	uv_timer_init(&gci_job.loop, &gci_job.ping);
	for (k = 0; k < 2; k++) {
		gci_sink_open(&gci_job.sinks[k], &gci_job.loop, k + 1, on_drained, NULL);
		/* Of guests nothing comes this way. */
		gci_job.sinks[k].o.prefix = !o->quiet_prefix && !o->join;
		gci_job.sinks[k].o.solo = !gci_job.sinks[k].o.prefix && p->size - p->nguests == 1;
	}
	if (gci_job.sinks[0].o.terminal && gci_job.sinks[1].o.terminal)
		gci_job.sinks[0].o.beside = &gci_job.sinks[1].o;
	gci_source_open(&gci_job.input, &gci_job.loop, STDIN_FILENO, on_stdin, NULL);
	gci_job.stdin_room = GCI_FRAME_WINDOW;
	gci_tree_adopt();
	gci_raise_fd_limit();
	watch_signals();
	if (gci_watch_open(&gci_job.watch, o, p, &gci_job.loop, on_stats_drained, e) ||
		open_server(o, p, e))
		return e->status;
	gci_watch_start(&gci_job.watch, &gci_job.server);
	return 0;
}

/* A job without one runs as well. */
static void open_ctl(const struct gci_options *o)
{
	struct gci_error e = {0};

	if (gci_jobctl_open(&gci_job.ctl, &gci_job.loop, gci_job_commands, o->argv, &e))
		gci_log(GCI_LOG_WARN, "%s; gridcoll top and gridcoll ctl will not find this job",
			e.text);
}

/* For whoever starts the ranks. */
static void say_where(const struct gci_options *o)
{
	char self[256] = "";
	const char *host = o->address ? o->address : o->serve_ip;

	if (!*host && !gethostname(self, sizeof(self) - 1))
		host = self;
	printf(strchr(host, ':') ? "GRIDCOLL_RENDEZVOUS=[%s]:%u\n" : "GRIDCOLL_RENDEZVOUS=%s:%u\n",
		host, gci_job.server.port);
	fflush(stdout);
}

int gci_run(const struct gci_options *o, struct gci_placement *p)
{
	struct gci_error e = {0};
	int rc = open_job(o, p, &e);

	if (!rc)
		open_ctl(o);
	if (!rc)
		rc = gci_job_start(o, p, &events, &e);
	explicit_bzero(gci_job.secret, sizeof(gci_job.secret));
	if (rc) {
		fprintf(stderr, "gridcoll-run: %s\n", e.text);
		gci_jobctl_close(&gci_job.ctl);
		gci_tree_end(2 * GCI_NS_PER_S);
		return e.status == GCOLL_ERR_INVAL ? GCI_USAGE_STATUS : 1;
	}
	if (o->serve)
		say_where(o);
	uv_timer_start(&gci_job.held, on_held, HELD_LONG_MS, HELD_LONG_MS);
	uv_timer_start(&gci_job.ping, gci_job_on_ping, 1000, 1000);
	read_stdin();
	uv_run(&gci_job.loop, UV_RUN_DEFAULT);
	gci_jobctl_close(&gci_job.ctl);
	gci_tree_end(GCI_NS_PER_S);
	if (gci_job.interrupts > 1)
		return 128 + gci_job.order;
	return gci_rdv_exit_status(gci_job.server.rdv);
}
