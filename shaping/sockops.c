/* SPDX-License-Identifier: MIT */
#include "shaping/sockops.h"

#include "base/mem.h"
#include "shaping/bpf.h"
#include "shaping/sockops_shared.h"
#include "shaping/trie.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct gci_sockops {
	struct bpf_object *object;
	int link, nets, wants, counts, conns; /* descriptors */
	int classes;
};

static int attach(struct gci_sockops *s, const char *cgroup, struct gci_error *e)
{
	int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	struct bpf_program *p = bpf_object__find_program_by_name(s->object, GCI_SOCKOPS_PROGRAM);

	if (fd < 0)
		return gci_error_errno(e, "cgroup %s", cgroup);
	s->link = bpf_link_create(bpf_program__fd(p), fd, BPF_CGROUP_SOCK_OPS, NULL);
	if (s->link < 0)
		rc = gci_bpf_refused("cannot attach a program to the cgroup", e);
	close(fd);
	return rc;
}

int gci_sockops_open(struct gci_sockops **out, const char *cgroup, struct gci_error *e)
{
	struct gci_sockops *s = gci_calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (!s)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	s->link = -1;
	rc = gci_bpf_load(&s->object, GCI_BPF_SOCKOPS, e);
	rc = rc ? rc : attach(s, cgroup, e);
	if (rc) {
		gci_sockops_close(s);
		return rc;
	}
	s->nets = bpf_object__find_map_fd_by_name(s->object, "sop_nets");
	s->wants = bpf_object__find_map_fd_by_name(s->object, "sop_wants");
	s->counts = bpf_object__find_map_fd_by_name(s->object, "sop_counts");
	s->conns = bpf_object__find_map_fd_by_name(s->object, "sop_conns");
	*out = s;
	return 0;
}

void gci_sockops_close(struct gci_sockops *s)
{
	if (!s)
		return;
	if (s->link >= 0)
		close(s->link);
	bpf_object__close(s->object);
	gci_free(s);
}

static struct gci_sockops_setting to_setting(const struct gci_sockops_want *w)
{
	struct gci_sockops_setting k = {.initial_window = w->initial_window};
	uint64_t pacing = w->pacing_bps / 8, rto_us = w->rto_min_ns / 1000;

	memcpy(k.congestion, w->congestion, sizeof(k.congestion) - 1);
	k.rto_min_us = rto_us > UINT32_MAX ? UINT32_MAX : (uint32_t)rto_us;
	/* The largest means no limit to the kernel. */
	k.pacing = pacing >= UINT32_MAX ? UINT32_MAX - 1 : (uint32_t)pacing;
	return k;
}

int gci_sockops_set(
	struct gci_sockops *s, int number, const struct gci_sockops_want *want, struct gci_error *e)
{
	struct gci_sockops_setting k = to_setting(want);
	uint32_t key = (uint32_t)number;

	if (number < 0 || number >= s->classes)
		return gci_error_set(e, GCOLL_ERR_INVAL, "there is no class %d", number);
	if (bpf_map_update_elem(s->wants, &key, &k, BPF_ANY))
		return gci_error_errno(e, "cannot change the settings of class %d", number);
	return 0;
}

int gci_sockops_class(struct gci_sockops *s, const struct gci_net *nets, size_t n,
	const struct gci_sockops_want *want, struct gci_error *e)
{
	char text[GCI_NET_TEXT];
	int number = s->classes, other, rc;
	size_t i = gci_trie_find_other(s->nets, nets, n, number, &other);

	if (i < n)
		return gci_error_set(e, GCOLL_ERR_INVAL, "%s belongs to another class already",
			gci_net_text(&nets[i], text));
	if (number == GCI_SOCKOPS_CLASSES)
		return gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "more than %d classes", GCI_SOCKOPS_CLASSES);
	s->classes++;
	/* First what they are told, then whom it is for. */
	rc = gci_sockops_set(s, number, want, e);
	rc = rc ? rc : gci_trie_add(s->nets, nets, n, number, e);
	return rc ? rc : number;
}

int gci_sockops_count(struct gci_sockops *s, int number, struct gci_sockops_counters *c)
{
	struct gci_sockops_count k;
	uint32_t key = (uint32_t)number;

	if (number < 0 || number >= s->classes || bpf_map_lookup_elem(s->counts, &key, &k))
		return GCOLL_ERR_INVAL;
	*c = (struct gci_sockops_counters){k.opened, k.closed, k.retransmitted, k.refused};
	return 0;
}

unsigned gci_sockops_list(struct gci_sockops *s, struct gci_sockops_seen *out, unsigned max)
{
	uint64_t cookie, next;
	unsigned n = 0;
	int rc = bpf_map_get_next_key(s->conns, NULL, &next);

	while (!rc && n < max) {
		struct gci_sockops_conn k;

		cookie = next;
		rc = bpf_map_get_next_key(s->conns, &cookie, &next);
		if (bpf_map_lookup_elem(s->conns, &cookie, &k))
			continue;
		out[n++] = (struct gci_sockops_seen){.local = gci_net_of_ip(k.local_ip),
			.remote = gci_net_of_ip(k.remote_ip),
			.local_port = (uint16_t)k.local_port,
			.remote_port = (uint16_t)k.remote_port,
			.number = (int)k.class,
			.cookie = cookie,
			.retransmitted = k.retransmitted,
			.refused = k.refused,
			.closed = k.closed != 0};
	}
	return n;
}
