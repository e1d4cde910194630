/* SPDX-License-Identifier: MIT
 * The maps of a device's program are found by the program, and that by where it is attached: so
 * there are no files, nothing to clean up but the attachment itself, and a device that goes away
 * takes all with it. */
#include "shaping/edt.h"

#include "base/mem.h"
#include "shaping/bpf.h"
#include "shaping/edt_hook.h"
#include "shaping/edt_shared.h"
#include "shaping/edt_tables.h"
#include "shaping/qdisc.h"
#include "shaping/trie.h"
#include "shaping/trie_shared.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int gci_edt_tables_get_about(const struct gci_edt_tables *t, struct gci_edt_about *about);

/* ---- the hook: a program on the way out of a device, and who holds it there */

/* Of linux/bpf.h since 6.6. */
#define TCX_EGRESS   ((enum bpf_attach_type)47)
#define TCX_BEFORE   8u /* BPF_F_BEFORE: the first of all */
#define TCX_PROGRAMS 64

/* By these the clsact filter is ours ("gc"). */
#define PRIORITY 0x6763
#define HANDLE   1

/* A descriptor of the program if it is ours, else -1. */
static int our_program(uint32_t id)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0)
		return -1;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, GCI_EDT_PROGRAM))
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

/* The link that attaches a program, or -1: it is attached without one. */
static int link_of(uint32_t prog_id)
{
	uint32_t id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {0};
		uint32_t len = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.prog_id == prog_id)
			return fd;
		close(fd);
	}
	return -1;
}

/* 0, or -1 with errno where the kernel has no TCX. */
static int find_tcx(struct gci_edt_hook *h)
{
	uint32_t ids[TCX_PROGRAMS], i;
	LIBBPF_OPTS(bpf_prog_query_opts, q, .prog_ids = ids, .prog_cnt = TCX_PROGRAMS);

	if (bpf_prog_query_opts(h->ifindex, TCX_EGRESS, &q))
		return -1;
	for (i = 0; i < q.prog_cnt && h->prog_fd < 0; i++) {
		h->prog_fd = our_program(ids[i]);
		if (h->prog_fd < 0 && errno != ENOENT)
			return -1;
		if (h->prog_fd < 0)
			continue;
		h->at = GCI_EDT_TCX;
		h->link_fd = link_of(ids[i]);
	}
	return 0;
}

/* libbpf refuses options whose padding is not zero, as it may be when a function returns them. */
#define CLSACT(name, h) \
	LIBBPF_OPTS(bpf_tc_hook, name, .ifindex = (h)->ifindex, .attach_point = BPF_TC_EGRESS)

static int find_clsact(struct gci_edt_hook *h, struct gci_error *e)
{
	CLSACT(hook, h);
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = HANDLE, .priority = PRIORITY);
	int rc = bpf_tc_query(&hook, &o);

	if (rc == -EPERM) {
		errno = EPERM;
		return gci_bpf_refused("cannot ask for filters", e);
	}
	if (rc) /* no filter, or no clsact qdisc at all */
		return 0;
	h->prog_fd = our_program(o.prog_id);
	if (h->prog_fd < 0)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"a filter of priority %d that is not gridcoll's is in the way", PRIORITY);
	h->at = GCI_EDT_CLSACT;
	return 0;
}

int gci_edt_hook_find(struct gci_edt_hook *h, int ifindex, struct gci_error *e)
{
	*h = (struct gci_edt_hook){.ifindex = ifindex, .prog_fd = -1, .link_fd = -1};
	if (find_tcx(h) && (errno == EPERM || errno == ENODEV))
		return gci_bpf_refused("cannot ask for programs", e);
	return h->prog_fd >= 0 ? 0 : find_clsact(h, e);
}

/* A link, which goes with its last holder; or (6.6, too) an attachment that stays. */
static int attach_tcx(struct gci_edt_hook *h, int prog_fd, int standing)
{
	LIBBPF_OPTS(bpf_link_create_opts, o, .flags = TCX_BEFORE);

	if (standing)
		return bpf_prog_attach(prog_fd, h->ifindex, TCX_EGRESS, TCX_BEFORE);
	h->link_fd = bpf_link_create(prog_fd, h->ifindex, TCX_EGRESS, &o);
	return h->link_fd < 0 ? -1 : 0;
}

static int attach_clsact(struct gci_edt_hook *h, int prog_fd, struct gci_error *e)
{
	CLSACT(hook, h);
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = HANDLE, .priority = PRIORITY, .prog_fd = prog_fd);
	int rc = bpf_tc_hook_create(&hook);

	h->made_clsact = !rc;
	if (!rc || rc == -EEXIST)
		rc = bpf_tc_attach(&hook, &o);
	if (!rc)
		return 0;
	errno = -rc;
	gci_error_errno(e, "cannot attach a filter (clsact, cls_bpf)");
	gci_edt_hook_detach(h, h->made_clsact);
	return GCOLL_ERR_SYS;
}

int gci_edt_hook_attach(struct gci_edt_hook *h, int prog_fd, int standing, struct gci_error *e)
{
	int mine = dup(prog_fd), rc = 0;

	if (mine < 0)
		return gci_error_errno(e, "cannot keep a program");
	if (h->at)
		gci_edt_hook_detach(h, 0);
	if (!attach_tcx(h, mine, standing)) {
		h->at = GCI_EDT_TCX;
	} else if (errno == EPERM) {
		rc = gci_bpf_refused("cannot attach a program", e);
	} else {
		rc = attach_clsact(h, mine, e);
		h->at = rc ? GCI_EDT_NOWHERE : GCI_EDT_CLSACT;
	}
	if (rc)
		close(mine);
	else
		h->prog_fd = mine;
	return rc;
}

/* Since `shape clear` and another job's attaching, the filter may be theirs. */
static int has_another(const struct gci_edt_hook *h, const struct bpf_tc_hook *hook)
{
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = HANDLE, .priority = PRIORITY);
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	return h->prog_fd >= 0 && !bpf_tc_query(hook, &o) &&
	       !bpf_obj_get_info_by_fd(h->prog_fd, &info, &len) && info.id != o.prog_id;
}

static void detach_clsact(const struct gci_edt_hook *h, int made_clsact)
{
	CLSACT(hook, h);
	LIBBPF_OPTS(bpf_tc_opts, o, .handle = HANDLE, .priority = PRIORITY);

	if (has_another(h, &hook))
		return;
	if (h->prog_fd >= 0)
		bpf_tc_detach(&hook, &o);
	if (made_clsact && !gci_qdisc_has_filters(h->ifindex, NULL)) {
		hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS; /* the qdisc itself */
		bpf_tc_hook_destroy(&hook);
	}
}

void gci_edt_hook_detach(struct gci_edt_hook *h, int made_clsact)
{
	if (h->at == GCI_EDT_TCX && h->link_fd >= 0)
		bpf_link_detach(h->link_fd);
	else if (h->at == GCI_EDT_TCX)
		bpf_prog_detach2(h->prog_fd, h->ifindex, TCX_EGRESS);
	else
		detach_clsact(h, made_clsact);
	gci_edt_hook_close(h);
	h->at = GCI_EDT_NOWHERE;
}

void gci_edt_hook_close(struct gci_edt_hook *h)
{
	if (h->prog_fd >= 0)
		close(h->prog_fd);
	if (h->link_fd >= 0)
		close(h->link_fd);
	h->prog_fd = h->link_fd = -1;
}

/* ---- the tables of such a program */

#define PROGRAM_MAPS 16

static void take_map(struct gci_edt_tables *t, int fd, const struct bpf_map_info *info)
{
	const struct {
		const char *name;
		int *fd;
		uint32_t key, value;
	} maps[] = {
		{"edt_about", &t->about, sizeof(uint32_t), sizeof(struct gci_edt_about)},
		{"edt_rates", &t->rates, sizeof(uint32_t), sizeof(struct gci_edt_rate)},
		{"edt_clocks", &t->clocks, sizeof(uint32_t), sizeof(struct gci_edt_clock)},
		{"edt_nets", &t->nets, sizeof(struct gci_trie_key), sizeof(struct gci_trie_value)},
		{"edt_holds", &t->holds, sizeof(struct gci_edt_hold_key),
			sizeof(struct gci_edt_hold)},
	};
	size_t i;

	for (i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		if (!strcmp(info->name, maps[i].name) && info->key_size == maps[i].key &&
			info->value_size == maps[i].value && *maps[i].fd < 0) {
			*maps[i].fd = fd;
			return;
		}
	close(fd);
}

/* Those of a program. GCOLL_ERR_UNSUPPORTED where they are another version's. */
static int gci_edt_tables_of(struct gci_edt_tables *t, int prog_fd, struct gci_error *e)
{
	uint32_t ids[PROGRAM_MAPS] = {0}, i, len;
	struct bpf_prog_info prog = {.nr_map_ids = PROGRAM_MAPS, .map_ids = (uintptr_t)ids};
	struct gci_edt_about about;

	*t = (struct gci_edt_tables){-1, -1, -1, -1, -1, 0};
	len = sizeof(prog);
	if (bpf_obj_get_info_by_fd(prog_fd, &prog, &len))
		return gci_error_errno(e, "cannot ask for a program's maps");
	for (i = 0; i < prog.nr_map_ids && i < PROGRAM_MAPS; i++) {
		struct bpf_map_info info = {0};
		int fd = bpf_map_get_fd_by_id(ids[i]);

		len = sizeof(info);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len))
			take_map(t, fd, &info);
		else if (fd >= 0)
			close(fd);
	}
	if (t->about >= 0 && t->rates >= 0 && t->clocks >= 0 && t->nets >= 0 && t->holds >= 0 &&
		!gci_edt_tables_get_about(t, &about) && about.version == GCI_EDT_VERSION)
		return 0;
	gci_edt_tables_close(t);
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"another version of gridcoll shapes there already; \"gridcoll shape clear\" "
		"takes it away");
}

int gci_edt_tables_new(struct gci_edt_tables *t, struct bpf_object *o, struct gci_error *e)
{
	static const char *const for_loaders[] = {"edt_about", "edt_holds"};
	struct bpf_program *p = bpf_object__find_program_by_name(o, GCI_EDT_PROGRAM);
	struct gci_edt_about about = {.version = GCI_EDT_VERSION};
	uint32_t zero = 0;
	size_t i;

	/* The program itself does not use these. */
	for (i = 0; i < 2; i++)
		if (bpf_prog_bind_map(bpf_program__fd(p),
			    bpf_object__find_map_fd_by_name(o, for_loaders[i]), NULL))
			return gci_bpf_refused("cannot bind a map to a program", e);
	if (bpf_map_update_elem(
		    bpf_object__find_map_fd_by_name(o, for_loaders[0]), &zero, &about, BPF_ANY))
		return gci_bpf_refused("cannot write to a map", e);
	return gci_edt_tables_of(t, bpf_program__fd(p), e);
}

void gci_edt_tables_close(struct gci_edt_tables *t)
{
	int *fds[] = {&t->about, &t->rates, &t->clocks, &t->nets, &t->holds};
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int gci_edt_tables_get_about(const struct gci_edt_tables *t, struct gci_edt_about *about)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(t->about, &zero, about);
}

static int gci_edt_tables_put_about(
	const struct gci_edt_tables *t, const struct gci_edt_about *about)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(t->about, &zero, about, BPF_ANY);
}

int gci_edt_tables_rate(const struct gci_edt_tables *t, int number, struct gci_edt_rate *r)
{
	uint32_t key = (uint32_t)number;

	if (number < 0 || number >= GCI_EDT_MAX_CLASS || bpf_map_lookup_elem(t->rates, &key, r) ||
		!*r->name)
		return GCOLL_ERR_INVAL;
	r->name[sizeof(r->name) - 1] = '\0';
	return 0;
}

int gci_edt_tables_class(const struct gci_edt_tables *t, const char *name, struct gci_error *e)
{
	struct gci_edt_clock clock = {0};
	struct gci_edt_rate r = {.horizon_ns = t->horizon_ns};
	int number, unused = -1;
	uint32_t key;

	if (!*name || strlen(name) >= sizeof(r.name))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"\"%s\", expected a class's name of at most %zu bytes", name,
			sizeof(r.name) - 1);
	for (number = 0; number < GCI_EDT_MAX_CLASS; number++) {
		struct gci_edt_rate other;

		if (gci_edt_tables_rate(t, number, &other))
			unused = unused < 0 ? number : unused;
		else if (!strcmp(other.name, name))
			return number;
	}
	if (unused < 0)
		return gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "more than %d classes", GCI_EDT_MAX_CLASS);
	key = (uint32_t)unused;
	memcpy(r.name, name, strlen(name));
	if (bpf_map_update_elem(t->clocks, &key, &clock, BPF_ANY) ||
		bpf_map_update_elem(t->rates, &key, &r, BPF_ANY))
		return gci_error_errno(e, "cannot make class %s", name);
	return unused;
}

int gci_edt_tables_route(const struct gci_edt_tables *t, int number, const struct gci_net *nets,
	size_t n, struct gci_error *e)
{
	struct gci_edt_rate r = {.name = "?"};
	char text[GCI_NET_TEXT];
	int other;
	size_t i = gci_trie_find_other(t->nets, nets, n, number, &other);

	if (i == n)
		return gci_trie_add(t->nets, nets, n, number, e);
	gci_edt_tables_rate(t, other, &r);
	return gci_error_set(e, GCOLL_ERR_INVAL, "%s belongs to class %s already",
		gci_net_text(&nets[i], text), r.name);
}

static struct gci_edt_hold_key hold_key(const struct gci_hold *h, int number)
{
	return (struct gci_edt_hold_key){
		.holder = h->id, .realm = h->id ? h->realm : 0, .class = (uint32_t)number};
}

int gci_edt_tables_ask(const struct gci_edt_tables *t, const struct gci_hold *h, int number,
	uint64_t bps, struct gci_error *e)
{
	struct gci_edt_hold_key key = hold_key(h, number);
	struct gci_edt_hold hold = {bps};

	if (bpf_map_update_elem(t->holds, &key, &hold, BPF_ANY))
		return gci_error_errno(e, "cannot hold a class");
	return 0;
}

struct hold {
	struct gci_edt_hold_key key;
	struct gci_edt_hold asks;
};

/* All holds, to be freed; NULL without memory. */
static struct hold *read_holds(const struct gci_edt_tables *t, unsigned *n)
{
	struct hold *v = gci_calloc(GCI_EDT_MAX_HOLDS, sizeof(*v));
	struct gci_edt_hold_key next;
	int rc = bpf_map_get_next_key(t->holds, NULL, &next);

	*n = 0;
	while (v && !rc && *n < GCI_EDT_MAX_HOLDS) {
		v[*n].key = next;
		if (!bpf_map_lookup_elem(t->holds, &next, &v[*n].asks))
			++*n;
		rc = bpf_map_get_next_key(t->holds, &next, &next);
	}
	return v;
}

void gci_edt_tables_leave(const struct gci_edt_tables *t, const struct gci_hold *h, int number)
{
	struct gci_edt_hold_key key;
	int c;

	for (c = 0; c <= GCI_EDT_MAX_CLASS; c++) {
		key = hold_key(h, c);
		if (number < 0 || c == number)
			bpf_map_delete_elem(t->holds, &key);
	}
}

/* 0, no limit, is the highest. */
static uint64_t lower(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void settle_class(
	const struct gci_edt_tables *t, int number, const struct hold *v, unsigned n)
{
	struct gci_edt_rate r, none = {0};
	uint32_t key = (uint32_t)number;
	unsigned i, holders = 0;
	uint64_t bps = 0;

	if (gci_edt_tables_rate(t, number, &r))
		return;
	for (i = 0; i < n; i++)
		if (v[i].key.class == key) {
			bps = lower(bps, v[i].asks.bps);
			holders++;
		}
	if (!holders) {
		gci_trie_remove(t->nets, number);
		bpf_map_update_elem(t->rates, &key, &none, BPF_ANY);
	} else if (bps != r.bps) {
		r.bps = bps;
		bpf_map_update_elem(t->rates, &key, &r, BPF_ANY);
	}
}

int gci_edt_tables_settle(const struct gci_edt_tables *t, const struct gci_hold *h, unsigned *left,
	struct gci_error *e)
{
	unsigned n, i, alive = 0;
	struct hold *v = read_holds(t, &n);
	int number;

	*left = 0;
	if (!v)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < n; i++) {
		const struct gci_edt_hold_key *k = &v[i].key;

		if (k->holder && k->realm == h->realm && !gci_hold_lives(h, k->holder))
			bpf_map_delete_elem(t->holds, k);
		else
			v[alive++] = v[i];
	}
	for (number = 0; number < GCI_EDT_MAX_CLASS; number++)
		settle_class(t, number, v, alive);
	*left = alive;
	gci_free(v);
	return 0;
}

unsigned gci_edt_tables_holders(const struct gci_edt_tables *t, int number, int *standing)
{
	unsigned n, i, holders = 0;
	struct hold *v = read_holds(t, &n);

	*standing = 0;
	for (i = 0; v && i < n; i++)
		if (v[i].key.class == (uint32_t)number) {
			holders++;
			*standing |= !v[i].key.holder;
		}
	gci_free(v);
	return holders;
}

/* ---- rates of classes, at a device */

#define HORIZON_NS 2000000000ull

struct gci_edt {
	struct gci_edt_hook hook;
	struct gci_edt_tables tables;
	struct gci_hold hold;
	uint64_t horizon_ns;
	int looks; /* holds nothing */
};

int gci_edt_is_built(void)
{
	return 1;
}

/* Finds the device, and takes the lock. */
static int begin(struct gci_edt *d, const char *dev, int *ifindex, struct gci_error *e)
{
	int rc;

	*d = (struct gci_edt){.hook = {.prog_fd = -1, .link_fd = -1},
		.tables = {-1, -1, -1, -1, -1, 0},
		.hold = {.fd = -1}};
	gci_bpf_quiet();
	*ifindex = (int)if_nametoindex(dev);
	if (!*ifindex)
		return gci_error_set(e, GCOLL_ERR_INVAL, "there is no network device %s", dev);
	rc = gci_hold_open(&d->hold, e);
	return rc ? rc : gci_hold_lock(&d->hold, e);
}

static void end(struct gci_edt *d)
{
	gci_edt_tables_close(&d->tables);
	gci_edt_hook_close(&d->hook);
	gci_hold_close(&d->hold); /* the lock, too */
}

/* Where fq forgets packets before we would, its horizon is ours. */
static int check_fq(struct gci_edt *d, const char *dev, struct gci_error *e)
{
	struct gci_qdisc q[GCI_QDISCS];
	char why[GCI_QDISC_WHY];
	int n = gci_qdisc_list(d->hook.ifindex, q, e);
	uint64_t horizon_ns;

	if (n < 0)
		return n;
	if (!gci_qdisc_has_fq(q, (unsigned)n, dev, why))
		return gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "earliest departure times need fq, and %s", why);
	horizon_ns = gci_qdisc_horizon_ns(q, (unsigned)n);
	d->horizon_ns = horizon_ns && horizon_ns < HORIZON_NS ? horizon_ns : HORIZON_NS;
	return 0;
}

/* A new program with empty maps. */
static int install(struct gci_edt *d, int standing, struct gci_error *e)
{
	struct gci_edt_about about;
	struct bpf_object *o;
	int fd, rc = gci_bpf_load(&o, GCI_BPF_EDT, e);

	if (rc)
		return rc;
	fd = bpf_program__fd(bpf_object__find_program_by_name(o, GCI_EDT_PROGRAM));
	rc = gci_edt_tables_new(&d->tables, o, e);
	rc = rc ? rc : gci_edt_hook_attach(&d->hook, fd, standing, e);
	if (!rc && !gci_edt_tables_get_about(&d->tables, &about)) {
		about.made_clsact = (uint32_t)d->hook.made_clsact;
		gci_edt_tables_put_about(&d->tables, &about);
	}
	bpf_object__close(o);
	return rc;
}

/* What is there already, without what the dead left; where only they held it, it goes. */
static int join(struct gci_edt *d, int standing, struct gci_error *e)
{
	unsigned left;
	int rc = gci_edt_tables_of(&d->tables, d->hook.prog_fd, e);

	rc = rc ? rc : gci_edt_tables_settle(&d->tables, &d->hold, &left, e);
	if (!rc && standing && d->hook.link_fd >= 0) /* a job's, which would go with it */
		rc = gci_edt_hook_attach(&d->hook, d->hook.prog_fd, 1, e);
	return rc;
}

/* The last one takes the program away. */
static void settle_or_detach(struct gci_edt *d)
{
	struct gci_edt_about about = {0};
	unsigned left;

	if (!gci_edt_tables_settle(&d->tables, &d->hold, &left, NULL) && !left) {
		gci_edt_tables_get_about(&d->tables, &about);
		gci_edt_hook_detach(&d->hook, (int)about.made_clsact);
	}
}

/* Of an operator, what was asked for stays. */
static void leave(struct gci_edt *d)
{
	if (gci_hold_lock(&d->hold, NULL))
		return;
	gci_edt_tables_leave(&d->tables, &d->hold, d->hold.id ? -1 : GCI_EDT_MAX_CLASS);
	settle_or_detach(d);
}

static int open_device(struct gci_edt *d, const char *dev, unsigned flags, struct gci_error *e)
{
	int standing = (flags & GCI_EDT_STANDING) != 0, ifindex, rc;

	rc = begin(d, dev, &ifindex, e);
	rc = rc ? rc : gci_edt_hook_find(&d->hook, ifindex, e);
	rc = rc ? rc : check_fq(d, dev, e);
	if (!rc)
		rc = d->hook.prog_fd < 0 ? install(d, standing, e) : join(d, standing, e);
	d->tables.horizon_ns = d->horizon_ns;
	if (!rc && !standing)
		rc = gci_hold_join(&d->hold, e);
	if (!rc)
		rc = gci_edt_tables_ask(&d->tables, &d->hold, GCI_EDT_MAX_CLASS, 0, e);
	if (!rc)
		gci_hold_unlock(&d->hold);
	return rc;
}

int gci_edt_open(struct gci_edt **edt, const char *dev, unsigned flags, struct gci_error *e)
{
	struct gci_edt *d = gci_calloc(1, sizeof(*d));
	int rc;

	*edt = NULL;
	if (!d)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	rc = open_device(d, dev, flags, e);
	if (rc) {
		if (d->tables.about >= 0)
			leave(d);
		end(d);
		gci_free(d);
		return rc;
	}
	*edt = d;
	return 0;
}

int gci_edt_look(struct gci_edt **edt, const char *dev, struct gci_error *e)
{
	struct gci_edt *d = gci_calloc(1, sizeof(*d));
	int ifindex, rc;

	*edt = NULL;
	if (!d)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	rc = begin(d, dev, &ifindex, e);
	rc = rc ? rc : gci_edt_hook_find(&d->hook, ifindex, e);
	if (!rc && d->hook.prog_fd >= 0)
		rc = gci_edt_tables_of(&d->tables, d->hook.prog_fd, e);
	if (!rc && d->hook.prog_fd >= 0) {
		gci_hold_unlock(&d->hold);
		d->looks = 1;
		*edt = d;
		return 0;
	}
	end(d);
	gci_free(d);
	return rc;
}

void gci_edt_close(struct gci_edt *d)
{
	if (!d)
		return;
	if (!d->looks)
		leave(d);
	end(d);
	gci_free(d);
}

/* After a change of what is asked for. */
static int settle(struct gci_edt *d, struct gci_error *e)
{
	unsigned left;

	return gci_edt_tables_settle(&d->tables, &d->hold, &left, e);
}

int gci_edt_class(struct gci_edt *d, const char *name, const struct gci_net *nets, size_t n,
	uint64_t bps, struct gci_error *e)
{
	int number, rc = gci_hold_lock(&d->hold, e);

	if (rc)
		return rc;
	number = rc = gci_edt_tables_class(&d->tables, name, e);
	if (number >= 0)
		rc = gci_edt_tables_route(&d->tables, number, nets, n, e);
	if (!rc)
		rc = gci_edt_tables_ask(&d->tables, &d->hold, number, bps, e);
	/* A class that nobody got is taken away again. */
	if (rc)
		settle(d, NULL);
	else
		rc = settle(d, e);
	gci_hold_unlock(&d->hold);
	return rc ? rc : number;
}

int gci_edt_set_rate(struct gci_edt *d, int number, uint64_t bps, struct gci_error *e)
{
	struct gci_edt_rate r;
	int rc = gci_hold_lock(&d->hold, e);

	if (rc)
		return rc;
	rc = gci_edt_tables_rate(&d->tables, number, &r);
	if (rc)
		gci_error_set(e, rc, "there is no class %d", number);
	rc = rc ? rc : gci_edt_tables_ask(&d->tables, &d->hold, number, bps, e);
	rc = rc ? rc : settle(d, e);
	gci_hold_unlock(&d->hold);
	return rc;
}

int gci_edt_drop(struct gci_edt *d, int number, struct gci_error *e)
{
	int rc = gci_hold_lock(&d->hold, e);

	if (rc)
		return rc;
	gci_edt_tables_leave(&d->tables, &d->hold, number);
	rc = settle(d, e);
	gci_hold_unlock(&d->hold);
	return rc;
}

int gci_edt_count(struct gci_edt *d, int number, struct gci_edt_counters *c)
{
	struct gci_edt_clock clock;
	struct gci_edt_rate r;
	uint32_t key = (uint32_t)number;
	int rc = gci_edt_tables_rate(&d->tables, number, &r);

	if (rc || bpf_map_lookup_elem(d->tables.clocks, &key, &clock))
		return GCOLL_ERR_INVAL;
	*c = (struct gci_edt_counters){.nbytes = clock.nbytes,
		.packets = clock.packets,
		.dropped = clock.dropped,
		.dropped_nbytes = clock.dropped_nbytes,
		.waited_ns = clock.waited_ns,
		.next_ns = clock.next_ns};
	return 0;
}

unsigned gci_edt_list(struct gci_edt *d, struct gci_edt_class out[GCI_EDT_CLASSES])
{
	struct gci_edt_rate r;
	unsigned n = 0;
	int number;

	for (number = 0; number < GCI_EDT_CLASSES; number++) {
		struct gci_edt_class *c = &out[n];

		if (gci_edt_tables_rate(&d->tables, number, &r) ||
			gci_edt_count(d, number, &c->counters))
			continue;
		c->number = number;
		memcpy(c->name, r.name, sizeof(c->name));
		c->bps = r.bps;
		c->horizon_ns = r.horizon_ns;
		c->holders = gci_edt_tables_holders(&d->tables, number, &c->standing);
		n++;
	}
	return n;
}

unsigned gci_edt_nets(struct gci_edt *d, int number, struct gci_net *out, unsigned max)
{
	return gci_trie_list(d->tables.nets, number, out, max);
}

const char *gci_edt_how(const struct gci_edt *d)
{
	return d->hook.at != GCI_EDT_TCX ? "clsact filter"
	       : d->hook.link_fd >= 0    ? "TCX link"
					 : "TCX";
}

static void sweep(const char *dev)
{
	struct gci_edt *d;

	if (gci_edt_look(&d, dev, NULL) || !d)
		return;
	if (!gci_hold_lock(&d->hold, NULL))
		settle_or_detach(d);
	gci_edt_close(d);
}

void gci_edt_sweep(void)
{
	struct if_nameindex *all, *i;

	/* Where nobody ever shaped there is nothing to look for. */
	if (access(GCI_HOLD_FILE, R_OK | W_OK))
		return;
	all = if_nameindex();
	for (i = all; i && i->if_name; i++)
		sweep(i->if_name);
	if (all)
		if_freenameindex(all);
}

int gci_edt_clear(const char *dev, struct gci_error *e)
{
	struct gci_edt_about about = {0};
	struct gci_edt d;
	int ifindex, found, rc;

	rc = begin(&d, dev, &ifindex, e);
	rc = rc ? rc : gci_edt_hook_find(&d.hook, ifindex, e);
	found = !rc && d.hook.prog_fd >= 0;
	if (found) {
		/* Of another version only the attachment is known, and a clsact qdisc is left. */
		if (!gci_edt_tables_of(&d.tables, d.hook.prog_fd, NULL))
			gci_edt_tables_get_about(&d.tables, &about);
		gci_edt_hook_detach(&d.hook, (int)about.made_clsact);
	}
	end(&d);
	return rc ? rc : found;
}
