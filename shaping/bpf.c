/* SPDX-License-Identifier: MIT */
#include "shaping/bpf.h"

#include "base/log.h"
#include "base/mem.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_SAID 1048576

/* libbpf reads ELF in place. */
static const uint8_t edt_object[] __attribute__((aligned(8))) = {
#include "shaping/edt.bpf.inc"
};

static const uint8_t sockops_object[] __attribute__((aligned(8))) = {
#include "shaping/sockops.bpf.inc"
};

static const struct object {
	const char *name;
	const uint8_t *data;
	size_t nbytes;
} objects[] = {
	[GCI_BPF_EDT] = {"gridcoll_edt", edt_object, sizeof(edt_object)},
	[GCI_BPF_SOCKOPS] = {"gridcoll_sockops", sockops_object, sizeof(sockops_object)},
};

/* The verifier says many lines at once. */
static int say(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char *text, *line, *save = NULL;

	if (level == LIBBPF_DEBUG || !gci_log_enabled(GCI_LOG_DEBUG))
		return 0;
	text = gci_calloc(1, MOST_SAID);
	if (!text)
		return 0;
	vsnprintf(text, MOST_SAID, fmt, args);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		gci_log(GCI_LOG_DEBUG, "%s", line);
	gci_free(text);
	return 0;
}

void gci_bpf_quiet(void)
{
	libbpf_set_print(say);
}

int gci_bpf_refused(const char *what, struct gci_error *e)
{
	if (errno == EPERM)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"%s: not allowed, this needs root (CAP_BPF, CAP_NET_ADMIN and "
			"CAP_SYS_ADMIN)",
			what);
	if (errno == ENOSYS)
		return gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "%s: this kernel has no bpf()", what);
	return gci_error_errno(e, "%s", what);
}

int gci_bpf_load(struct bpf_object **o, enum gci_bpf_which which, struct gci_error *e)
{
	const struct object *p = &objects[which];
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = p->name);

	gci_bpf_quiet();
	*o = bpf_object__open_mem(p->data, p->nbytes, &opts);
	if (!*o)
		return gci_error_errno(e, "cannot read the eBPF program %s", p->name);
	if (!bpf_object__load(*o))
		return 0;
	/* EACCES is the verifier's word; with GRIDCOLL_LOG=debug its reasons are in the log. */
	gci_bpf_refused("the kernel does not take the eBPF program", e);
	bpf_object__close(*o);
	*o = NULL;
	return GCOLL_ERR_UNSUPPORTED;
}
