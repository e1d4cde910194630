/* SPDX-License-Identifier: MIT
 * Programs for the kernel, which are built into this one.
 *
 *	struct bpf_object *o;
 *
 *	rc = gci_bpf_load(&o, GCI_BPF_EDT, &e);
 *	fd = bpf_program__fd(bpf_object__find_program_by_name(o, "gci_edt"));
 *	...
 *	bpf_object__close(o);
 *
 * libbpf's own messages go to our log at debug level, once gci_bpf_quiet() was called. */
#ifndef GCI_SHAPING_BPF_H
#define GCI_SHAPING_BPF_H

#include "base/error.h"

struct bpf_object;

enum gci_bpf_which { GCI_BPF_EDT, GCI_BPF_SOCKOPS };

void gci_bpf_quiet(void);

/* Into the kernel, with maps of its own, attached to nothing. GCOLL_ERR_UNSUPPORTED with the reason
 * where the kernel does not take it or this process may not. */
int gci_bpf_load(struct bpf_object **o, enum gci_bpf_which which, struct gci_error *e);

/* GCOLL_ERR_UNSUPPORTED where errno tells of rights that are missing, with what is needed, or of bpf()
 * itself; else GCOLL_ERR_SYS. `what` could not be done. */
int gci_bpf_refused(const char *what, struct gci_error *e);

#endif
