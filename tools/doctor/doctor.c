/* SPDX-License-Identifier: MIT */
#include "tools/doctor/doctor.h"

#include "base/mem.h"
#include "launcher/placement.h"
#include "netem/host.h"
#include "netem/tap.h"
#include "netem/uml.h"
#include "tools/doctor/impl.h"
#include "tools/lib/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

/* ---- What a grid asks of one of its hosts. */

static int add_link(struct gct_needs *n, const struct gci_grid *g, const struct gci_link *l)
{
	const struct gci_link *back = gci_grid_link(g, l->to, l->from);
	const struct gci_cluster *a = &g->clusters[l->from], *b = &g->clusters[l->to];
	struct gct_need *need;

	if (gci_grow(&n->links, &n->cap, n->nlinks + 1, sizeof(*n->links)))
		return GCOLL_ERR_NOMEM;
	need = &n->links[n->nlinks++];
	*need = (struct gct_need){.loss_ppm = l->loss_ppm,
		.sends = n->own_cluster < 0 || l->from == n->own_cluster,
		.receives = n->own_cluster < 0 || l->to == n->own_cluster};
	snprintf(need->name, sizeof(need->name), "%.60s > %.60s", a->name, b->name);
	gci_flight_make(&need->flight, l, back ? back : l, a->nic_bps, b->nic_bps);
	return 0;
}

/* Of a rank in `cluster`, if there is one on every host and all talk to all. */
static uint64_t connections(const struct gci_grid *g, int cluster)
{
	uint64_t n = (uint64_t)g->clusters[cluster].nhosts - 1;
	int c;

	for (c = 0; c < g->nclusters; c++) {
		const struct gci_link *there = gci_grid_link(g, cluster, c);
		const struct gci_link *back = gci_grid_link(g, c, cluster);
		struct gci_flight f;

		if (!there || !back)
			continue;
		gci_flight_make(
			&f, there, back, g->clusters[cluster].nic_bps, g->clusters[c].nic_bps);
		n += (uint64_t)f.streams * (uint64_t)g->clusters[c].nhosts;
	}
	return n;
}

/* A grid may have "k1" or "k1.example.org" for the host that calls itself by the other. */
static int find_host(const struct gci_grid *g, const char *host)
{
	size_t n = strcspn(host, ".");
	int i = gci_grid_find_host(g, host), c, h, at = 0;

	if (i >= 0 || !n)
		return i;
	for (c = 0; c < g->nclusters; c++)
		for (h = 0; h < g->clusters[c].nhosts; h++, at++) {
			const char *name = g->clusters[c].hosts[h];

			if (strcspn(name, ".") == n && !strncmp(name, host, n) &&
				(!host[n] || !name[n]))
				return at;
		}
	return -1;
}

int gct_needs_make(struct gct_needs *n, const struct gci_grid *g, const char *host)
{
	int i, rc = 0, number = host ? find_host(g, host) : -1;

	n->has_grid = 1;
	n->own_cluster = number < 0 ? -1 : gci_grid_cluster_of(g, number);
	if (n->own_cluster >= 0)
		n->nic_bps = gci_grid_nic_bps(g, number);
	for (i = 0; !rc && i < g->nlinks; i++)
		if (n->own_cluster < 0 || g->links[i].from == n->own_cluster ||
			g->links[i].to == n->own_cluster)
			rc = add_link(n, g, &g->links[i]);
	for (i = 0; i < g->nclusters; i++)
		if (n->own_cluster < 0 || n->own_cluster == i) {
			uint64_t most = connections(g, i);

			n->connections = most > n->connections ? most : n->connections;
		}
	return rc;
}

void gct_needs_free(struct gct_needs *n)
{
	gci_free(n->links);
	memset(n, 0, sizeof(*n));
}

static int rank(enum gct_level l)
{
	static const int ranks[] = {3, 1, 0, 2};

	return ranks[l];
}

/* Worst first, else in the order of the checks. */
static void sort(struct gct_report *r)
{
	size_t i, k;

	for (i = 1; i < r->n; i++) {
		struct gct_finding f = r->list[i];

		for (k = i; k && rank(r->list[k - 1].level) > rank(f.level); k--)
			r->list[k] = r->list[k - 1];
		r->list[k] = f;
	}
}

int gct_doctor_check(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	gct_check_buffers(f, n, r);
	gct_check_tcp(f, n, r);
	gct_check_nics(f, n, r);
	gct_check_host(f, n, r);
	sort(r);
	return r->failed ? GCOLL_ERR_NOMEM : 0;
}

/* ---- Facts that only trying tells. */

/* A kernel that has it wants a connection. */
static int try_tls(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error = 0;

	if (fd < 0)
		return errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) && errno != ENOTCONN)
		error = errno;
	close(fd);
	return error;
}

/* Its headers do not tell, and `openssl list -disabled` tells of the tool. A library that can hand
 * its keys to the kernel keeps this mark; TLS 1.3 it leaves to it when receiving since 3.2. */
static int ask_openssl(void)
{
	const int control_message = 74, mark = 0x1000; /* bio.h: BIO_CTRL_SET_KTLS_SEND_CTRL_MSG */
	BIO *b = BIO_new(BIO_s_socket());
	int can;

	if (!b)
		return 0;
	BIO_ctrl(b, control_message, 0, NULL);
	can = BIO_test_flags(b, mark) != 0;
	BIO_free(b);
	return can ? 1 + (OpenSSL_version_num() >= 0x30200000) : 0;
}

static void ask_clock(struct gct_facts *f)
{
	struct timex t = {0};
	int state = adjtimex(&t);

	if (state < 0)
		return;
	f->synced = state != TIME_ERROR && !(t.status & STA_UNSYNC);
	f->clock_error_us = t.maxerror > 0 ? (uint64_t)t.maxerror : 0;
}

static int offload(int fd, const char *nic, uint32_t command)
{
	struct ethtool_value v = {.cmd = command};
	struct ifreq r = {.ifr_data = (char *)&v};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%.15s", nic);
	return ioctl(fd, SIOCETHTOOL, &r) ? -1 : !!v.data;
}

static void ask_nics(struct gct_facts *f)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), i;

	for (i = 0; fd >= 0 && i < f->nnics; i++) {
		struct gct_nic *n = &f->nics[i];

		n->offload[GCT_TSO] = offload(fd, n->name, ETHTOOL_GTSO);
		n->offload[GCT_GSO] = offload(fd, n->name, ETHTOOL_GGSO);
		n->offload[GCT_GRO] = offload(fd, n->name, ETHTOOL_GGRO);
	}
	if (fd >= 0)
		close(fd);
}

static void ask_qdiscs(struct gct_facts *f)
{
	static const enum gct_module modules[] = {GCT_FQ, GCT_NETEM, GCT_TBF, GCT_HTB};
	size_t i;
	int has;

	for (i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		has = gci_host_has_qdisc(gct_module_name(modules[i]) + strlen("sch_"));
		if (has >= 0)
			f->module[modules[i]] = has;
	}
}

/* As `gridcoll lab doctor`, but that no guest is booted. */
static void ask_lab(struct gct_facts *f)
{
	struct gci_error host = {0}, tap = {0}, uml = {0};

	gci_host_check(&host);
	gci_tap_check(&tap);
	gci_uml_check(&uml);
	f->lab = !host.status || !tap.status || !uml.status;
	snprintf(f->lab_host, sizeof(f->lab_host), "%.190s", host.text);
	snprintf(f->lab_tap, sizeof(f->lab_tap), "%.190s", tap.text);
	snprintf(f->lab_uml, sizeof(f->lab_uml), "%.190s", uml.text);
}

/* What only trying tells of this machine: system calls, and as root `tc` in a network namespace of
 * its own, by which the kernel may load modules. Changes nothing else. */
static void gct_facts_ask(struct gct_facts *f)
{
	f->uring = -gci_uring_probe(f->uring_why);
	f->tls_kernel = try_tls();
	f->tls_openssl = ask_openssl();
	ask_clock(f);
	ask_nics(f);
	ask_qdiscs(f);
	ask_lab(f);
}

/* ---- the command */

struct options {
	struct gci_options run;
	const char *host, *root;
	uint64_t streams; /* 0: not said */
	int lines, json;
};

static const struct gci_option options[] = {
	{'g', "grid", "FILE",
		"check buffers and limits against this grid (default: the job's, or the lab's, in "
		"$GRIDCOLL_LAB)",
		GCI_OPTION_TEXT(struct options, run.grid)},
	{'s', "streams", "N",
		"if a pair of ranks has so many connections (default: as the grid says, see "
		"gridcoll-grid(5))",
		GCI_OPTION_NUMBER(struct options, streams, 1, GCI_GRID_MAX_STREAMS)},
	{'p', "params", "FILE", "if gridcoll-run is given these parameters, too",
		GCI_OPTION_TEXT(struct options, run.params)},
	{0, "host", "NAME", "as this host of the grid (default: this host's name)",
		GCI_OPTION_TEXT(struct options, host)},
	{0, "root", "DIR", "read proc and sys below DIR, and try nothing",
		GCI_OPTION_TEXT(struct options, root)},
	{'l', "lines", NULL, "a line per finding, with the host's name (default in a job)",
		GCI_OPTION_FLAG(struct options, lines)},
	{'j', "json", NULL, "for programs", GCI_OPTION_FLAG(struct options, json)}, {0}};

static const struct gct_usage command_line = {"doctor",
	"usage: gridcoll doctor [options]\n"
	"       gridcoll-run ... gridcoll doctor [options]\n"
	"Checks this host for what slows bulk data down on long fat networks, and prints\n"
	"what to change, why, and the command. Changes nothing.\n",
	"Exit status: 0 no problem, 1 problems, 2 wrong usage. In a job always 0.\n"
	"example: gridcoll doctor --grid my.grid --host k1\n",
	options};

static int parse(struct options *o, int argc, char **argv)
{
	const char *lab = getenv("GRIDCOLL_LAB"), *job = getenv("GRIDCOLL_GRID");
	const char *text = getenv("GRIDCOLL_GRID_TEXT");
	int first, rc;

	o->lines = !!getenv("GRIDCOLL_RANK");
	rc = gct_options(&command_line, o, argc, argv, GCI_OPTIONS_ANYWHERE, &first);
	if (rc)
		return rc;
	if (first < argc)
		return gct_wrong("doctor", "argument \"%s\", expected options only", argv[first]);
	/* The file need not be on every host. */
	if (job && text && getenv("GRIDCOLL_RANK") &&
		(o->run.grid ? !strcmp(o->run.grid, job) : !(lab && *lab))) {
		o->run.grid = job;
		o->run.grid_text = text;
	}
	if (!o->run.grid && lab && *lab) {
		o->run.lab = lab;
		o->run.lab_from_environment = 1;
	}
	return 0;
}

/* In a lab all hosts share this machine's name; a job with a rank on each tells them apart. */
static const char *lab_host(const struct gci_placement *p)
{
	const char *rank = getenv("GRIDCOLL_RANK"), *size = getenv("GRIDCOLL_SIZE");
	uint32_t r = rank ? (uint32_t)strtoul(rank, NULL, 10) : UINT32_MAX;

	return size && strtoul(size, NULL, 10) == p->size && r < p->size ? p->names[r] : NULL;
}

static int complain(const struct gci_error *e)
{
	fprintf(stderr, "gridcoll doctor: %s\n", e->text);
	return e->status == GCOLL_ERR_NOMEM ? GCT_FAILED : GCT_USAGE;
}

/* In a job whose ranks have not got it handed over. */
static void add_advice(const struct options *o, struct gci_error *e)
{
	size_t used = strlen(e->text);

	if (o->run.grid && !o->run.grid_text && getenv("GRIDCOLL_RANK") &&
		access(o->run.grid, R_OK))
		snprintf(e->text + used, sizeof(e->text) - used,
			"; expected the file on each host: only gridcoll-run --grid hands it over, "
			"to ranks that it starts itself, by the same name and if it has less than "
			"%u KiB",
			GCI_GRID_HANDED >> 10);
}

static int read_grid(const struct options *o, struct gct_facts *f, struct gct_needs *n)
{
	struct gci_placement p = {0};
	struct gci_error e = {0};
	const char *host = o->host;
	int i, rc;

	if (!o->run.grid && !o->run.lab)
		return 0;
	if (gci_placement_make(&p, &o->run, &e)) {
		add_advice(o, &e);
		return complain(&e);
	}
	for (i = 0; o->streams && i < p.grid.nlinks; i++)
		p.grid.links[i].streams = (uint32_t)o->streams;
	if (!host && o->run.lab && lab_host(&p))
		snprintf(f->host, sizeof(f->host), "%.64s", lab_host(&p));
	if (gci_placement_params(&p, &o->run, &e) && e.status != GCOLL_ERR_INVAL) {
		gci_placement_free(&p);
		return complain(&e);
	}
	if (e.status)
		fprintf(stderr, "gridcoll doctor: %s; checking without them\n", e.text);
	if (host && gci_grid_find_host(&p.grid, host) < 0)
		rc = gct_wrong("doctor", "--host \"%s\", expected a host of the grid", host);
	else if (gct_needs_make(n, &p.grid, host ? host : f->host))
		rc = complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
	else
		rc = 0;
	snprintf(n->file, sizeof(n->file), "%.255s", o->run.grid ? o->run.grid : "the lab's grid");
	gci_placement_free(&p);
	return rc;
}

static int print(const struct options *o, const struct gct_report *r, const struct gct_needs *n,
	const struct gct_facts *f)
{
	struct gci_buf text = {0};
	int rc = 0;

	if (o->json) {
		rc = gct_doctor_json(r, n, f, &text);
		if (!rc)
			fwrite(text.data, 1, text.len, stdout);
	} else if (o->lines) {
		gct_doctor_lines(r, *f->host ? f->host : "this host", stdout);
	} else {
		gct_doctor_text(r, n, f, stdout);
	}
	gci_buf_free(&text);
	return rc;
}

/* Another directory than what was sent of a host has nothing to find a problem in. */
static int check_root(const char *root)
{
	static const char *const dirs[] = {"proc", "sys"};
	int i, n = 0;

	for (i = 0; i < 2; i++) {
		char *path = gci_asprintf("%s/%s", root, dirs[i]);
		struct stat st;

		if (!path)
			return complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
		n += !stat(path, &st) && S_ISDIR(st.st_mode);
		gci_free(path);
	}
	return n ? 0
		 : gct_wrong("doctor", "--root \"%s\", expected a directory with proc or sys in it",
			   root);
}

int gct_doctor_command(int argc, char **argv)
{
	struct options o = {.root = NULL};
	struct gct_facts *f;
	struct gct_needs needs = {.own_cluster = -1};
	struct gct_report report = {0};
	int rc = parse(&o, argc, argv);

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	rc = o.root ? check_root(o.root) : 0;
	if (rc)
		return rc;
	f = gci_calloc(1, sizeof(*f));
	if (!f)
		return complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
	gct_facts_read(f, o.root ? o.root : "");
	if (!o.root)
		gct_facts_ask(f);
	rc = read_grid(&o, f, &needs);
	if (!rc && (gct_doctor_check(f, &needs, &report) || print(&o, &report, &needs, f)))
		rc = complain(&(struct gci_error){GCOLL_ERR_NOMEM, "out of memory"});
	else if (!rc && gct_report_count(&report, GCT_PROBLEM) && !getenv("GRIDCOLL_RANK"))
		rc = GCT_FAILED;
	gct_report_free(&report);
	gct_needs_free(&needs);
	gci_free(f);
	return rc;
}
