/* SPDX-License-Identifier: MIT */
#include "netem/host.h"

#include "base/clock.h"
#include "netem/apply.h"
#include "netem/labfile.h"
#include "netem/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK     GCI_HOST_DIR "/lock"
#define STATE    GCI_HOST_DIR "/namespaces" /* "standing" or "run", then a name a line */
#define STANDING "standing"

static int try_module(const char *const *argv, const char *module, struct gci_error *e)
{
	struct gci_error why = {0};

	if (!gci_lab_tool_run(argv, NULL, &why))
		return 0;
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"this kernel has no %s (%s); try: modprobe %s", module, why.text, module);
}

/* Into a network namespace of our own; returns what leads back, or an error. */
static int enter(struct gci_error *e)
{
	int home = gci_netns_open(NULL, e);

	if (home < 0)
		return GCOLL_ERR_SYS;
	if (unshare(CLONE_NEWNET)) {
		gci_error_errno(e, "cannot make a network namespace");
		close(home);
		return GCOLL_ERR_SYS;
	}
	return home;
}

/* What a lab's plan needs of the kernel, tried in a network namespace of our own. */
static int try_all(struct gci_error *e)
{
	static const char *const netem[] = {
		"tc", "qdisc", "add", "dev", "lo", "root", "handle", "2:", "netem", NULL};
	static const char *const tbf[] = {"tc", "qdisc", "add", "dev", "lo", "parent", "2:1",
		"handle", "1:", "tbf", "rate", "1mbit", "burst", "16384", "limit", "65536", NULL};
	static const char *const fq[] = {
		"tc", "qdisc", "add", "dev", "lo", "parent", "1:1", "fq", NULL};
	static const char *const ifb[] = {"ip", "link", "add", "in0", "type", "ifb", NULL};
	static const char *const ingress[] = {"tc", "qdisc", "add", "dev", "lo", "ingress", NULL};
	static const char *const matchall[] = {"tc", "filter", "add", "dev", "lo", "parent",
		"ffff:", "protocol", "all", "matchall", "flowid", "1:1", NULL};
	static const char *const mirred[] = {"tc", "actions", "add", "action", "mirred", "egress",
		"redirect", "dev", "in0", NULL};
	int rc = try_module(netem, "sch_netem", e);

	rc = rc ? rc : try_module(tbf, "sch_tbf", e);
	rc = rc ? rc : try_module(fq, "sch_fq", e);
	rc = rc ? rc : try_module(ifb, "ifb", e);
	rc = rc ? rc : try_module(ingress, "sch_ingress", e);
	rc = rc ? rc : try_module(matchall, "cls_matchall", e);
	return rc ? rc : try_module(mirred, "act_mirred", e);
}

int gci_host_check(struct gci_error *e)
{
	static const char *const version[] = {"ip", "-V", NULL};
	int home, rc;

	if (geteuid())
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "it needs root");
	if (gci_lab_tool_run(version, NULL, NULL))
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"ip and tc are not there, get them with: apt-get install iproute2");
	home = enter(e);
	if (home < 0)
		return home;
	rc = try_all(e);
	gci_netns_leave(home);
	return rc;
}

int gci_host_has_qdisc(const char *name)
{
	const char *argv[14] = {"tc", "qdisc", "add", "dev", "lo", "root", name};
	static const char *const tbf[] = {"rate", "1mbit", "burst", "16384", "limit", "65536"};
	struct gci_error e = {0};
	int home, rc;

	if (!strcmp(name, "tbf"))
		memcpy(argv + 7, tbf, sizeof(tbf));
	home = geteuid() ? -1 : enter(&e);
	if (home < 0)
		return -1;
	rc = gci_lab_tool_run(argv, NULL, &e);
	gci_netns_leave(home);
	return !rc ? 1 : strstr(e.text, "unknown") ? 0 : -1;
}

static int take_lock(int *lock, struct gci_error *e)
{
	if (mkdir(GCI_HOST_DIR, 0755) && errno != EEXIST)
		return gci_error_errno(e, GCI_HOST_DIR);
	*lock = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*lock < 0)
		return gci_error_errno(e, LOCK);
	if (!flock(*lock, LOCK_EX | LOCK_NB))
		return 0;
	close(*lock);
	*lock = -1;
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"another gridcoll lab is in use on this machine, expected one at a time");
}

static int write_state(const struct gci_lab_plan *plan, int standing, struct gci_error *e)
{
	FILE *f = fopen(STATE, "we");
	size_t i;

	if (!f)
		return gci_error_errno(e, STATE);
	fprintf(f, "%s\n", standing ? STANDING : "run");
	for (i = 0; i < plan->nnetns; i++)
		fprintf(f, "%s\n", plan->netns[i]);
	return fclose(f) ? gci_error_errno(e, STATE) : 0;
}

/* Removes what the state file names; *found as its first line has it. */
static int remove_all(int *standing, int *found, struct gci_error *e)
{
	FILE *f = fopen(STATE, "re");
	char line[300];
	int first = 1, rc = 0;

	*found = !!f;
	*standing = 0;
	if (!f)
		return errno == ENOENT ? 0 : gci_error_errno(e, STATE);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (first)
			*standing = !strcmp(line, STANDING);
		else if (!strncmp(line, "gcl-", 4) && gci_netns_remove(line, e))
			rc = GCOLL_ERR_SYS;
		first = 0;
	}
	fclose(f);
	if (!rc) {
		unlink(GCI_HOST_LAB);
		unlink(STATE);
	}
	return rc;
}

static int is_standing(void)
{
	FILE *f = fopen(STATE, "re");
	char line[300] = "";
	int yes = f && fgets(line, sizeof(line), f) && !strcmp(line, STANDING "\n");

	if (f)
		fclose(f);
	return yes;
}

/* Names that exist already and are not ours to remove. */
static int check_free(const struct gci_lab_plan *plan, struct gci_error *e)
{
	char path[512];
	size_t i;

	for (i = 0; i < plan->nnetns; i++) {
		snprintf(path, sizeof(path), GCI_NETNS_DIR "/%s", plan->netns[i]);
		if (!access(path, F_OK))
			return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
				"there is a network namespace %s already, not made by gridcoll lab",
				plan->netns[i]);
	}
	return 0;
}

static uint64_t patience_ns(const struct gci_grid *g)
{
	uint64_t longest = 0;
	int i;

	for (i = 0; i < g->nlinks; i++)
		if (g->links[i].delay_ns > longest)
			longest = g->links[i].delay_ns;
	return 20 * GCI_NS_PER_S + 8 * longest;
}

static int build(const struct gci_grid *g, uint32_t dilation, int standing, struct gci_error *e)
{
	struct gci_lab_plan plan;
	int was_standing, found,
		rc = gci_lab_plan_make(
			&plan, g, dilation, (struct gci_lab_how){0, 1, gci_lab_has_cubic()}, e);

	if (rc)
		return rc;
	rc = check_free(&plan, e);
	if (!rc && !(rc = write_state(&plan, standing, e))) {
		rc = gci_lab_apply(&plan, e);
		rc = rc ? rc : gci_lab_wait(&plan, patience_ns(g), e);
		rc = rc ? rc : gci_labfile_write(GCI_HOST_LAB, &plan, g, dilation, "host", e);
		if (rc)
			remove_all(&was_standing, &found, NULL);
	}
	gci_lab_plan_free(&plan);
	return rc;
}

int gci_host_up(struct gci_host *h, const struct gci_grid *g, uint32_t dilation, int standing,
	struct gci_error *e)
{
	int was_standing, found, rc = take_lock(&h->lock, e);

	if (rc)
		return rc;
	if (is_standing())
		rc = gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"a lab stands on this machine already, expected: gridcoll lab down");
	rc = rc ? rc : remove_all(&was_standing, &found, e);
	rc = rc ? rc : build(g, dilation, standing, e);
	if (rc) {
		close(h->lock);
		h->lock = -1;
	}
	return rc;
}

int gci_host_end(struct gci_host *h, struct gci_error *e)
{
	int standing, found, rc = remove_all(&standing, &found, e);

	gci_host_leave(h);
	return rc;
}

void gci_host_leave(struct gci_host *h)
{
	if (h->lock >= 0)
		close(h->lock);
	h->lock = -1;
}

int gci_host_down(int *found, struct gci_error *e)
{
	struct gci_host h = {-1};
	int standing, rc = take_lock(&h.lock, e);

	if (rc)
		return rc;
	rc = remove_all(&standing, found, e);
	gci_host_leave(&h);
	return rc;
}
