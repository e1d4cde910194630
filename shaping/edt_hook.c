/* SPDX-License-Identifier: MIT */
#include "shaping/edt_hook.h"

#include "shaping/bpf.h"
#include "shaping/edt_shared.h"
#include "shaping/qdisc.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

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
