/* SPDX-License-Identifier: MIT
 * The lab's backends: which of them works here, and how each brings up a grid for a command. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/terminal.h"
#include "netem/cpu.h"
#include "netem/host.h"
#include "netem/plan.h"
#include "netem/tap.h"
#include "netem/trial.h"
#include "netem/uml.h"
#include "tools/lab/lab.h"
#include "tools/lib/tools.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS (10 * GCI_NS_PER_S)
#define NOT_TRUE    "TIMES ARE THIS MACHINE'S, NOT THE NETWORK'S; a larger --dilate helps\n"

/* ---- the command, and what it has around it */

/* What the machine has to spare, by /proc/meminfo. */
static uint64_t available_nbytes(void)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}

/* The guest's memory is a sparse file, so much costs little until it is used; but its page cache
 * grows to fill it. */
uint64_t lab_memory(const struct lab_options *o, const struct gci_grid *g)
{
	uint64_t want = (256u << 20) + (uint64_t)g->nhosts * (160u << 20);
	uint64_t most = available_nbytes() / 2;

	if (o->mem_nbytes)
		return o->mem_nbytes;
	if (want > most && most > (512u << 20))
		want = most;
	return want;
}

struct env {
	char **v;
	size_t n, cap;
	int failed;
};

static void env_add(struct env *env, char *entry)
{
	if (!entry || gci_grow(&env->v, &env->cap, env->n + 2, sizeof(*env->v))) {
		gci_free(entry);
		env->failed = 1;
		return;
	}
	env->v[env->n++] = entry;
	env->v[env->n] = NULL;
}

/* Our own program's directory first in PATH, so that gridcoll-run is found; in a build directory it
 * lies beside. */
static char *path_entry(const char *old)
{
	char self[4096], *slash, *entry;
	char beside[4200];

	if (gci_self_path(self, sizeof(self), NULL))
		return gci_asprintf("PATH=%s", old);
	slash = strrchr(self, '/');
	*slash = '\0';
	snprintf(beside, sizeof(beside), "%s/../launcher/gridcoll-run", self);
	if (!access(beside, X_OK))
		entry = gci_asprintf("PATH=%s:%s/../launcher:%s", self, self, old);
	else
		entry = gci_asprintf("PATH=%s:%s", self, old);
	return entry;
}

static void add_terminal(struct env *env)
{
	if (!isatty(2))
		return;
	env_add(env, gci_strdup(GCI_TERMINAL "=")); /* a guest fills it in: its pipe's name */
	env_add(env, gci_asprintf("COLUMNS=%d", gci_terminal_columns(2)));
}

static char **make_env(void)
{
	static const char *const ours[] = {"PATH=", "GRIDCOLL_LAB=", "COLUMNS=", GCI_TERMINAL "="};
	const char *path = getenv("PATH");
	struct env env = {0};
	size_t i, k;

	for (i = 0; environ[i]; i++) {
		for (k = 0; k < 4 && strncmp(environ[i], ours[k], strlen(ours[k])); k++)
			;
		if (k == 4)
			env_add(&env, gci_strdup(environ[i]));
	}
	env_add(&env, path_entry(path ? path : "/usr/local/bin:/usr/bin:/bin"));
	add_terminal(&env);
	if (!env.failed)
		return env.v;
	for (i = 0; i < env.n; i++)
		gci_free(env.v[i]);
	gci_free(env.v);
	return NULL;
}

static int make_job(const struct lab_options *o, struct gci_job *job, struct gci_error *e)
{
	char cwd[4096];
	size_t n = 0, i;

	memset(job, 0, sizeof(*job));
	if (!getcwd(cwd, sizeof(cwd)))
		return gci_error_errno(e, "the current directory");
	while (o->command[n])
		n++;
	job->cwd = gci_strdup(cwd);
	job->env = make_env();
	job->argv = gci_calloc(n + 1, sizeof(*job->argv));
	for (i = 0; job->argv && i < n; i++)
		job->argv[i] = gci_strdup(o->command[i]);
	for (i = 0; job->argv && i < n && job->argv[i]; i++)
		;
	if (job->cwd && job->env && job->argv && i == n)
		return 0;
	gci_job_free(job);
	return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
}

static int read_weather(const struct lab_options *o, const struct gci_grid *g,
	struct gci_weather *w, struct gci_error *e)
{
	struct gci_buf text = {0};
	int rc;

	memset(w, 0, sizeof(*w));
	if (!o->weather_file)
		return 0;
	rc = gci_file_read(o->weather_file, GCI_WEATHER_MAX_NBYTES, &text, e);
	if (!rc)
		rc = gci_weather_parse(w, text.len ? (const char *)text.data : "", text.len,
			o->weather_file, g, e);
	if (!rc)
		gci_weather_dilate(w, o->dilation);
	gci_buf_free(&text);
	return rc;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* True if it says that times are not the network's. */
static int warn_cpu(const char *backend, uint64_t busy, uint64_t total, uint64_t stolen)
{
	int percent = gci_cpu_percent(stolen, total);

	if (percent >= GCI_CPU_STOLEN_PERCENT)
		fprintf(stderr,
			"gridcoll lab: warning: %d %% of the processors' time went to other "
			"virtual "
			"machines (steal): times jump, whatever the dilation\n",
			percent);
	percent = gci_cpu_percent(busy, total);
	if (percent <= gci_cpu_most_percent(backend))
		return 0;
	fprintf(stderr,
		"gridcoll lab: warning: the lab's CPU was busy %d %% of this run: " NOT_TRUE,
		percent);
	return 1;
}

static void say_up(
	const struct lab_options *o, const struct gci_grid *g, const char *backend, uint64_t ns)
{
	if (!o->quiet)
		fprintf(stderr,
			"gridcoll lab: %d hosts in %d clusters, dilation %u, backend %s "
			"(up in %.1f s)\n",
			g->nhosts, g->nclusters, o->dilation, backend, (double)ns / 1e9);
}

/* Until the job ends; signals go to it. A job that does not heed one is given up after a while, or
 * at the third. The exit status. */
static int wait_job(struct gci_uml *u, int id, int signals, struct gci_error *e)
{
	struct pollfd extra = {signals, POLLIN, 0};
	struct signalfd_siginfo si = {0};
	struct gci_uml_end end;
	uint64_t deadline = GCI_NEVER;
	int nsignals = 0;

	while (!gci_uml_ended(u, id, &end)) {
		extra.revents = 0;
		if (gci_uml_pump(u, &extra, 1, deadline == GCI_NEVER ? -1 : 100, e))
			return GCT_FAILED;
		if (extra.revents && read(signals, &si, sizeof(si)) == sizeof(si)) {
			gci_uml_signal(u, id, (int)si.ssi_signo);
			deadline = gci_now_ns() + PATIENCE_NS;
			nsignals++;
		}
		if (nsignals > 2 || gci_now_ns() > deadline)
			return 128 + (int)si.ssi_signo;
	}
	warn_cpu("uml", end.busy, end.total, 0);
	return end.status;
}

static int run_in_uml(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e)
{
	struct gci_buf grid = {0};
	struct gci_job job = {0};
	struct gci_uml *u = NULL;
	int signals = open_signals(), id, status = GCT_FAILED;
	uint64_t network_ns, all_ns;

	gci_grid_print(g, &grid);
	if (make_job(o, &job, e))
		goto out;
	u = gci_uml_boot(
		&(struct gci_uml_options){gci_buf_cstr(&grid), o->dilation, lab_memory(o, g)},
		signals, e);
	if (!u)
		goto out;
	gci_uml_boot_times(u, &network_ns, &all_ns);
	say_up(o, g, "uml", all_ns);
	id = gci_uml_start(u, &job, (const int[]){0, 1, 2}, e);
	if (id >= 0)
		status = wait_job(u, id, signals, e);
out:
	gci_uml_stop(u);
	gci_job_free(&job);
	gci_buf_free(&grid);
	close(signals);
	return status;
}

/* In the child: the command, with the terminal's signals as if we were not there. What is named by process
 * ids of the lab's own is kept where only the lab looks. */
static void exec_job(const struct gci_job *job, int has_own_pids)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	environ = job->env;
	setenv("GRIDCOLL_LAB", GCI_HOST_LAB, 1);
	if (has_own_pids)
		setenv("XDG_RUNTIME_DIR", GCI_HOST_DIR, 1);
	execvp(job->argv[0], job->argv);
	fprintf(stderr, "gridcoll lab: %s: %s\n", job->argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* What goes on in a lab of our own links while its command runs. */
struct links {
	struct gci_tap *tap; /* NULL: they are the kernel's */
	struct gci_weather weather;
	size_t next; /* change */
	uint64_t begin;
	int is_doubted; /* that times were theirs, and it was said */
};

/* Does what is due; for how many milliseconds nothing is (-1: nothing will). */
static int change_links(struct links *l)
{
	uint64_t now = gci_now_ns(), at;

	for (; l->next < l->weather.nchanges; l->next++) {
		at = l->begin + l->weather.changes[l->next].at_ns;
		if (at > now)
			return (int)((at - now < 60 * GCI_NS_PER_S ? at - now : 60 * GCI_NS_PER_S) /
				       GCI_NS_PER_MS) +
			       1;
		gci_tap_change(l->tap, &l->weather.changes[l->next]);
	}
	return -1;
}

/* The terminal's own signals reach the command without us. One that does not heed them is given up after a
 * while, or at the third. */
static int wait_child(pid_t pid, int signals, struct links *links)
{
	struct pollfd fds[3] = {{signals, POLLIN, 0},
		{(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0},
		{links->tap ? gci_tap_fd(links->tap) : -1, POLLIN, 0}};
	struct signalfd_siginfo si;
	uint64_t deadline = GCI_NEVER;
	int status = 0, wait_ms, nsignals = 0, given_up = 0;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		wait_ms = change_links(links);
		if (deadline != GCI_NEVER && (unsigned)wait_ms > 100)
			wait_ms = 100;
		poll(fds, 3, fds[1].fd < 0 && (unsigned)wait_ms > 100 ? 100 : wait_ms);
		if (fds[2].revents)
			gci_tap_serve(links->tap);
		while (read(signals, &si, sizeof(si)) == sizeof(si)) {
			if (si.ssi_code != SI_KERNEL)
				kill(pid, (int)si.ssi_signo);
			deadline = gci_now_ns() + PATIENCE_NS;
			nsignals++;
		}
		if (!given_up && (nsignals > 2 || gci_now_ns() > deadline)) {
			given_up = 128 + (int)si.ssi_signo;
			kill(pid, SIGKILL);
		}
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	if (given_up)
		return given_up;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t just_fork(struct gci_error *e)
{
	pid_t pid = fork();

	if (pid < 0)
		gci_error_errno(e, "cannot start a process");
	if (!pid)
		gci_leave_group();
	return pid;
}

/* In the lab that stands: its exit status. */
static int run_here(struct gci_job *job, struct links *links, int signals, struct gci_error *e)
{
	uint64_t busy[2], total[2], stolen = gci_cpu_stolen();
	int status = GCT_FAILED;
	pid_t pid;

	gci_cpu_read(&busy[0], &total[0]);
	links->begin = gci_now_ns();
	change_links(links); /* what holds from the beginning */
	pid = links->tap ? gci_tap_fork(e) : just_fork(e);
	if (!pid)
		exec_job(job, links->tap != NULL);
	if (pid > 0)
		status = wait_child(pid, signals, links);
	gci_cpu_read(&busy[1], &total[1]);
	links->is_doubted = warn_cpu(links->tap ? "tap" : "host", busy[1] - busy[0],
		total[1] - total[0], gci_cpu_stolen() - stolen);
	return status;
}

static int run_on_host(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e)
{
	uint64_t begin = gci_now_ns();
	int signals = open_signals(), status = GCT_FAILED;
	struct gci_job job = {0};
	struct gci_host h;

	if (!make_job(o, &job, e) && !gci_host_up(&h, g, o->dilation, 0, e)) {
		say_up(o, g, "host", gci_now_ns() - begin);
		status = run_here(&job, &(struct links){0}, signals, e);
		gci_host_end(&h, e);
	}
	gci_job_free(&job);
	close(signals);
	return status;
}

/* Times are the network's only where packets came when their links let go of them. */
static void say_gauge(const struct lab_options *o, const struct gci_grid *g,
	const struct gci_emulator_gauge *gauge, int is_doubted)
{
	uint64_t shortest = GCI_NEVER;
	int i, trusted;

	for (i = 0; i < g->nlinks; i++)
		shortest = g->links[i].delay_ns < shortest ? g->links[i].delay_ns : shortest;
	trusted = gauge->late_p99_ns <= shortest / 20 && !gauge->no_room;
	if (!gauge->npackets || (o->quiet && trusted))
		return;
	fprintf(stderr,
		"gridcoll lab: of %llu packets on the links, half were at most %.0f us late, 99 %% "
		"%.0f us, all %.0f us%s\n",
		(unsigned long long)gauge->npackets, (double)gauge->late_p50_ns / 1e3,
		(double)gauge->late_p99_ns / 1e3, (double)gauge->late_max_ns / 1e3,
		gauge->is_realtime ? "" : " (no leave for real-time threads)");
	if (gauge->no_room)
		fprintf(stderr, "gridcoll lab: warning: %llu segments found no room\n",
			(unsigned long long)gauge->no_room);
	if (!trusted && !is_doubted)
		fprintf(stderr, "gridcoll lab: warning: " NOT_TRUE);
}

static int run_by_taps(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e)
{
	uint64_t begin = gci_now_ns();
	int signals, status = GCT_FAILED;
	struct gci_emulator_gauge gauge;
	struct links links = {0};
	struct gci_job job = {0};
	struct gci_tap *t = NULL;

	if (!make_job(o, &job, e) && !read_weather(o, g, &links.weather, e))
		t = gci_tap_up(g, o->dilation, e);
	links.tap = t;
	if (t) {
		/* Until here signals end us: nothing of such a lab outlives its process. */
		signals = open_signals();
		say_up(o, g, "tap", gci_now_ns() - begin);
		status = run_here(&job, &links, signals, e);
		close(signals);
		gci_tap_end(t, &gauge);
		say_gauge(o, g, &gauge, links.is_doubted);
	}
	gci_weather_free(&links.weather);
	gci_job_free(&job);
	return status;
}

static int host_up(const struct lab_options *o, const struct gci_grid *g, struct gci_error *e)
{
	struct gci_host h;

	if (gci_host_up(&h, g, o->dilation, 1, e))
		return GCT_FAILED;
	gci_host_leave(&h);
	printf("export GRIDCOLL_LAB=%s\n", GCI_HOST_LAB);
	return GCT_OK;
}

const struct lab_way lab_ways[LAB_NBACKENDS] = {
	[LAB_HOST] = {"host", gci_host_check, run_on_host, host_up, 0},
	[LAB_TAP] = {"tap", gci_tap_check, run_by_taps, NULL, 1},
	[LAB_UML] = {"uml", gci_uml_check, run_in_uml, NULL, 0},
};

/* ---- the choice among them */

enum lab_backend lab_choose(const struct lab_options *o, struct gci_error *e)
{
	struct gci_buf text = {0};
	enum lab_backend b;

	for (b = LAB_AUTO + 1; b < LAB_NBACKENDS; b++) {
		struct gci_error why = {0};

		if (o->backend != LAB_AUTO && o->backend != b)
			continue;
		if (!lab_ways[b].check(&why))
			break;
		if (o->backend == b)
			gci_error_set(
				e, why.status, "no %s backend: %s", lab_ways[b].name, why.text);
		gci_buf_printf(&text, " %s: %s.", lab_ways[b].name, why.text);
	}
	if (b == LAB_NBACKENDS && o->backend == LAB_AUTO)
		gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "no backend for a lab.%s", gci_buf_cstr(&text));
	gci_buf_free(&text);
	return b < LAB_NBACKENDS ? b : LAB_AUTO;
}

uint32_t lab_dilation(struct lab_options *o, const struct gci_grid *g)
{
	struct gci_trial_result found = {.bps = GCI_LAB_GUEST_BPS};

	if (o->backend == LAB_AUTO)
		o->backend = lab_choose(o, NULL);
	/* Where no trial can be made, there is another reason for it, told of when the lab comes up. */
	if ((o->backend == LAB_TAP || o->backend == LAB_HOST) && gci_trial_run(&found, NULL))
		found = (struct gci_trial_result){.bps = GCI_LAB_GUEST_BPS};
	return gci_lab_choose_dilation(g, found.bps, found.late_ns);
}
