/* SPDX-License-Identifier: MIT */
#include "launcher/start.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/terminal.h"
#include "launcher/ssh.h"
#include "transport/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- What --dry-run shows: each rank's place, and by which commands. */

static void print_rank(const struct gci_placement *p, const struct gci_place *l, uint32_t rank,
	struct gci_buf *out)
{
	const struct gci_access *a = &l->access;

	gci_buf_printf(out, "rank %u: %s, cluster %s, %s%s", rank, p->names[rank],
		p->grid.clusters[gci_grid_cluster_of(&p->grid, (int)p->hosts[rank])].name,
		l->how == GCI_PLACE_SSH     ? "by ssh"
		: l->how == GCI_PLACE_NETNS ? "in namespace "
					    : "on this machine",
		l->netns ? l->netns : "");
	if (a->interfaces)
		gci_buf_printf(out, ", interfaces %s", a->interfaces);
	if (a->ports.lo)
		gci_buf_printf(out, ", ports %u-%u", a->ports.lo, a->ports.hi);
	gci_buf_printf(out, "\n");
}

static void print_guests(const struct gci_placement *p, struct gci_buf *out)
{
	uint32_t first = p->size - p->nguests;

	if (p->nguests > 1)
		gci_buf_printf(out, "ranks %u-%u", first, p->size - 1);
	else
		gci_buf_printf(out, "rank %u", first);
	gci_buf_printf(out, ": started by others, %s",
		p->hosts_are_said ? "on any hosts" : "on these hosts");
	if (!p->hosts_are_said)
		gci_buf_printf(out, ": %d in %d cluster%s", p->grid.nhosts, p->grid.nclusters,
			p->grid.nclusters > 1 ? "s" : "");
	gci_buf_printf(out, "\nthey come to %s, port %u%s\n",
		p->listen_ip ? p->listen_ip : "any address of this machine", p->listen_ports.lo,
		p->listen_ports.lo ? "" : " (any that is free)");
}

void gci_dry_run(const struct gci_placement *p, const struct gci_options *o, struct gci_buf *out)
{
	uint32_t i, k;
	char **s;

	for (i = 0; i < p->nplaces; i++)
		for (k = p->places[i].first; k < p->places[i].first + p->places[i].nranks; k++)
			print_rank(p, &p->places[i], k, out);
	if (p->nguests)
		print_guests(p, out);
	for (i = 0; i < p->nplaces; i++) {
		const struct gci_place *l = &p->places[i];

		if (l->how != GCI_PLACE_SSH)
			continue;
		if (l->starter != GCI_STARTER_SELF)
			gci_buf_printf(out, "on %s: ", p->places[l->starter].host);
		gci_ssh_print(out, l->host, o->ssh.remote_path,
			l->starter == GCI_STARTER_SELF ? o->ssh.limit_ns
						       : gci_ssh_elsewhere_ns(o->ssh.limit_ns));
		gci_buf_printf(out, "\n");
	}
	for (s = o->argv; *s; s++) {
		gci_buf_printf(out, "%s", s == o->argv ? "command: " : " ");
		gci_quote_if_needed(out, *s);
	}
	if (*o->argv)
		gci_buf_printf(out, "\n");
}

/* ---- Starting the agents: what they and their ranks have to know. */

struct strings {
	char **v;
	size_t n, cap;
};

/* Takes `s` over; NULL counts as lack of memory. */
static int add(struct strings *l, char *s)
{
	if (!s || gci_grow(&l->v, &l->cap, l->n + 2, sizeof(*l->v))) {
		gci_free(s);
		return GCOLL_ERR_NOMEM;
	}
	l->v[l->n++] = s;
	l->v[l->n] = NULL;
	return 0;
}

static void strings_free(struct strings *l)
{
	while (l->n)
		gci_free(l->v[--l->n]);
	gci_free(l->v);
}

#define NO_RANK UINT32_MAX

/* By which of our addresses we reach each place by ssh; "": not known. */
struct routes {
	char (*v)[64];
	uint32_t launch_rank; /* the first one on this machine, or NO_RANK */
	char machine[GCI_FILE_MACHINE];
};

/* GRIDCOLL_LOG and the like go along to other hosts; what describes a job is this job's own. */
static int goes_along(const char *setting)
{
	static const char *const own[] = {"RANK=", "RANK_FROM=", "SIZE=", "SIZE_FROM=",
		"RENDEZVOUS=", "SECRET_FD=", "SECRET_FILE=", "HOST=", "CLUSTER=", "JOIN_TIMEOUT=",
		"PROGRESS=", "LAB=", "GRID=", "GRID_TEXT=", "TERMINAL=", "PORT_RANGE=",
		"INTERFACES=", "CONTROL_TLS=", "LAUNCH_RANK=", "LAUNCH_MACHINE="};
	size_t i;

	if (strncmp(setting, "GRIDCOLL_", 9))
		return 0;
	for (i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strncmp(setting + 9, own[i], strlen(own[i])))
			return 0;
	return 1;
}

int gci_start_tls(const struct gci_options *o, const struct gci_placement *p)
{
	const char *said = o->net.security ? o->net.security : getenv("GRIDCOLL_SECURITY");
	enum gci_security s = GCI_SECURITY_AUTO;

	return !(said && *said && gci_security_parse(said, &s)) &&
	       gci_security_encrypts(s, p->nguests || p->grid.nclusters > 1);
}

/* For what asks for the file by its name, which may be on this machine alone. */
static int add_grid(struct strings *env, const struct gci_options *o, const struct gci_placement *p)
{
	int small = o->grid && p->grid_text && strlen(p->grid_text) < GCI_GRID_HANDED;
	int rc = add(env,
		small ? gci_asprintf("GRIDCOLL_GRID=%s", o->grid) : gci_strdup("GRIDCOLL_GRID"));

	return rc ? rc
		  : add(env, small ? gci_asprintf("GRIDCOLL_GRID_TEXT=%s", p->grid_text)
				   : gci_strdup("GRIDCOLL_GRID_TEXT"));
}

/* Which rank runs on the machine where the command was typed: by that, one may tell whose files are
 * meant. A host known by its address only has to prove it, by the machine's id. */
static int add_launch_rank(struct strings *env, const struct routes *r)
{
	int rc = add(env, r->launch_rank == NO_RANK
				  ? gci_strdup("GRIDCOLL_LAUNCH_RANK")
				  : gci_asprintf("GRIDCOLL_LAUNCH_RANK=%u", r->launch_rank));

	return rc ? rc : add(env, gci_asprintf("GRIDCOLL_LAUNCH_MACHINE=%s", r->machine));
}

static int make_environment(struct strings *env, const struct gci_options *o,
	const struct gci_placement *p, const struct routes *routes)
{
	char **s;
	int rc = 0;

	for (s = environ; *s && !rc; s++)
		if (goes_along(*s))
			rc = add(env, gci_strdup(*s));
	if (!rc)
		rc = add(env, gci_asprintf("GRIDCOLL_SIZE=%u", p->size));
	if (!rc)
		rc = add(env, gci_strdup(gci_is_terminal(STDERR_FILENO) ? "GRIDCOLL_PROGRESS=1"
									: "GRIDCOLL_PROGRESS"));
	if (!rc)
		rc = add(env, p->lab ? gci_asprintf("GRIDCOLL_LAB=%s", p->lab)
				     : gci_strdup("GRIDCOLL_LAB"));
	if (!rc)
		rc = add_grid(env, o, p);
	if (!rc && o->net.data_path)
		rc = add(env, gci_asprintf("GRIDCOLL_DATA_PATH=%s", o->net.data_path));
	if (!rc && o->net.security)
		rc = add(env, gci_asprintf("GRIDCOLL_SECURITY=%s", o->net.security));
	else if (!rc && !getenv("GRIDCOLL_SECURITY")) /* whatever a remote host thinks */
		rc = add(env, gci_strdup("GRIDCOLL_SECURITY"));
	if (!rc)
		rc = add(env, gci_asprintf("GRIDCOLL_CONTROL_TLS=%d", gci_start_tls(o, p)));
	if (!rc) /* we are there already */
		rc = add(env, gci_strdup("GRIDCOLL_JOIN_TIMEOUT=0s"));
	if (!rc && o->net.congestion)
		rc = add(env, gci_asprintf("GRIDCOLL_CONGESTION=%s", o->net.congestion));
	if (!rc && o->net.pace)
		rc = add(env, gci_asprintf("GRIDCOLL_PACE=%s", o->net.pace));
	return rc ? rc : add_launch_rank(env, routes);
}

#define NLOCAL 2 /* variables that each place has its own of */

static int add_local(struct strings *env, const struct gci_access *a)
{
	int rc = add(env,
		a->ports.lo ? gci_asprintf("GRIDCOLL_PORT_RANGE=%u-%u", a->ports.lo, a->ports.hi)
			    : gci_strdup("GRIDCOLL_PORT_RANGE"));

	if (!rc)
		rc = add(env, a->interfaces ? gci_asprintf("GRIDCOLL_INTERFACES=%s", a->interfaces)
					    : gci_strdup("GRIDCOLL_INTERFACES"));
	return rc;
}

static void drop_local(struct strings *env)
{
	int i;

	for (i = 0; i < NLOCAL; i++)
		gci_free(env->v[--env->n]);
	env->v[env->n] = NULL;
}

static char *join_address(const char *ip, uint16_t port)
{
	return gci_asprintf(strchr(ip, ':') ? "[%s]:%u" : "%s:%u", ip, port);
}

/* Another host can use it: it is not loopback, and its meaning does not depend on the host. */
static int leads_here(const char *ip)
{
	return strncmp(ip, "127.", 4) != 0 && strcmp(ip, "::1") != 0 && !strchr(ip, '%');
}

/* By how ranks are started. Where others start them nobody has typed a command here. */
static uint32_t find_local(const struct gci_placement *p)
{
	uint32_t i;

	for (i = 0; i < p->nplaces && !p->nguests; i++)
		if (p->places[i].how != GCI_PLACE_SSH)
			return p->places[i].first;
	return NO_RANK;
}

/* Before any agent is started, since it would hear nothing of us meanwhile. Names may mean something
 * to ssh alone; a name service that has let us wait for nothing once is not asked again. */
static int find_routes(struct routes *routes, const struct gci_placement *p)
{
	uint32_t i;
	int rc = 0, is_own;

	gci_file_machine(routes->machine);
	routes->launch_rank = find_local(p);
	routes->v = gci_calloc(p->nplaces, sizeof(*routes->v));
	if (!routes->v)
		return GCOLL_ERR_NOMEM;
	if (p->rendezvous || p->listen_ip)
		return 0;
	for (i = 0; i < p->nplaces && rc != GCOLL_ERR_TIMEOUT; i++) {
		if (p->places[i].how != GCI_PLACE_SSH)
			continue;
		if (p->address && routes->launch_rank != NO_RANK)
			return 0; /* that is all one wants to know */
		rc = gci_route_to(p->places[i].host, routes->v[i], sizeof(routes->v[i]), &is_own);
		if (rc)
			*routes->v[i] = '\0';
		else if (is_own && *routes->machine && routes->launch_rank == NO_RANK)
			routes->launch_rank = p->places[i].first;
		if (rc == GCOLL_ERR_TIMEOUT)
			gci_log(GCI_LOG_INFO, "no name service answers that knows %s",
				p->places[i].host);
	}
	return 0;
}

/* By which address do other hosts see this one? Loopback if all of them are this one. */
static const char *seen_at(const struct gci_placement *p, const struct routes *routes)
{
	const char *loopback = NULL;
	uint32_t i;

	for (i = 0; i < p->nplaces; i++) {
		if (!*routes->v[i])
			continue;
		if (leads_here(routes->v[i]))
			return routes->v[i];
		if (!strchr(routes->v[i], '%'))
			loopback = routes->v[i];
	}
	return loopback;
}

/* And whether there are others. */
static const char *first_remote(const struct gci_placement *p, int *others)
{
	const char *first = NULL;
	uint32_t i;

	*others = 0;
	for (i = 0; i < p->nplaces; i++) {
		if (p->places[i].how != GCI_PLACE_SSH)
			continue;
		*others |= first != NULL;
		first = first ? first : p->places[i].host;
	}
	return first ? first : "";
}

/* Where the ranks of a place find the control server: the address by which we reach their host.
 * Those of this machine beside remote ones take the one that remote hosts see, since they will
 * listen for data there as well. ":PORT": the far agent asks ssh. */
static char *rendezvous(const struct gci_placement *p, const struct routes *routes,
	const struct gci_place *l, uint16_t port, struct gci_error *e)
{
	const char *route = routes->v[l - p->places], *first;
	int others;

	if (p->rendezvous)
		return gci_strdup(p->rendezvous);
	if (p->address && !p->listen_ip)
		return join_address(p->address, port);
	if (p->listen_ip)
		return join_address(p->listen_ip, port);
	if (l->how == GCI_PLACE_SSH) {
		if (!*route || strchr(route, '%'))
			return join_address("", port);
		if (leads_here(route))
			return join_address(route, port);
	}
	route = seen_at(p, routes);
	if (route)
		return join_address(route, port);
	first = first_remote(p, &others);
	gci_error_set(e, GCOLL_ERR_SYS,
		"cannot tell by which address other hosts reach this machine: %s does not resolve "
		"here%s; expected --address with this machine's name or address",
		first, others ? ", nor do the others" : "");
	return NULL;
}

static int send_start(struct gci_agent *a, const struct gci_placement *p, const struct gci_start *s,
	const struct routes *routes, struct gci_agent_msg_start *m, struct gci_error *e)
{
	const struct gci_place *l = a->place;
	struct gci_buf b = {.secret = 1};
	uint32_t i;

	m->nranks = l->nranks;
	m->dead_ns = l->how == GCI_PLACE_SSH ? s->dead_ns : 0;
	m->rendezvous = rendezvous(p, routes, l, s->port, e);
	m->ranks = gci_calloc(l->nranks, sizeof(*m->ranks));
	for (i = 0; m->ranks && i < l->nranks; i++)
		m->ranks[i] = l->first + i;
	if (m->ranks && m->rendezvous)
		gci_agent_msg_put_start(&b, m);
	else
		b.failed = 1;
	if (!b.failed && b.len > GCI_AGENT_MSG_MAX)
		gci_error_set(e, GCOLL_ERR_INVAL, "the command line is longer than %u bytes",
			GCI_AGENT_MSG_MAX);
	else if (b.failed)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(m->rendezvous);
	gci_free(m->ranks);
	if (e->status)
		gci_buf_free(&b);
	else
		gci_agent_send(a, &b);
	return e->status;
}

/* With what the place has of its own beside the environment that all have. */
static int start_place(struct gci_agent *a, const struct gci_placement *p,
	const struct gci_start *s, const struct routes *routes, struct gci_agent_msg_start *m,
	struct strings *env, struct gci_error *e)
{
	int rc;

	if (add_local(env, &a->place->access))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	m->env = env->v;
	rc = send_start(a, p, s, routes, m, e);
	drop_local(env);
	return rc;
}

static int start_agent(
	struct gci_agents *all, const struct gci_placement *p, uint32_t i, struct gci_error *e)
{
	const struct gci_place *l = &p->places[i];

	return gci_agent_start(
		&all->v[i], all, l, l->starter == GCI_STARTER_SELF ? NULL : &all->v[l->starter], e);
}

int gci_agents_start(struct gci_agents *all, const struct gci_options *o,
	const struct gci_placement *p, const struct gci_start *s, struct gci_error *e)
{
	struct gci_agent_msg_start m = {.argv = o->argv};
	struct strings env = {0};
	struct routes routes = {0};
	uint32_t i;
	int rc;

	m.cwd = o->chdir ? strdup(o->chdir) : getcwd(NULL, 0);
	m.or_home = !o->chdir;
	memcpy(m.secret, s->secret, sizeof(m.secret));
	rc = m.cwd ? 0 : gci_error_errno(e, "cannot tell the current directory");
	if (!rc && (find_routes(&routes, p) || make_environment(&env, o, p, &routes)))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < p->nplaces && !rc; i++) {
		rc = start_agent(all, p, i, e);
		if (!rc) {
			all->n++;
			rc = start_place(&all->v[i], p, s, &routes, &m, &env, e);
		}
	}
	free(m.cwd);
	strings_free(&env);
	gci_free(routes.v);
	explicit_bzero(m.secret, sizeof(m.secret));
	return rc;
}
