/* SPDX-License-Identifier: MIT
 * The maps of a device's program are found by the program, and that by where it is attached: so
 * there are no files, nothing to clean up but the attachment itself, and a device that goes away
 * takes all with it. */
#include "shaping/edt.h"

#include "base/mem.h"
#include "shaping/bpf.h"
#include "shaping/edt_hook.h"
#include "shaping/edt_tables.h"
#include "shaping/qdisc.h"
#include "shaping/trie.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

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
