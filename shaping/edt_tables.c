/* SPDX-License-Identifier: MIT */
#include "shaping/edt_tables.h"

#include "base/mem.h"
#include "shaping/bpf.h"
#include "shaping/trie.h"
#include "shaping/trie_shared.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

int gci_edt_tables_of(struct gci_edt_tables *t, int prog_fd, struct gci_error *e)
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

int gci_edt_tables_get_about(const struct gci_edt_tables *t, struct gci_edt_about *about)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(t->about, &zero, about);
}

int gci_edt_tables_put_about(const struct gci_edt_tables *t, const struct gci_edt_about *about)
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
