/* SPDX-License-Identifier: MIT
 * What the parts of uml.h know of each other: how a guest is started (uml.c), and what is said to
 * it (uml_talk.c). */
#ifndef GCI_NETEM_UML_IMPL_H
#define GCI_NETEM_UML_IMPL_H

#include "netem/guest.h"
#include "netem/keeper.h"
#include "netem/uml.h"

struct gci_uml_session {
	int used, ended;
	int fds[3];
	uint32_t credit;
	struct gci_uml_end end;
};

struct gci_uml {
	struct gci_keeper keeper;
	char *dir;
	int to_guest, from_guest, console;
	int ready, gone;
	uint64_t network_ns, all_ns;
	struct gci_buf received;
	struct gci_error failure;
	struct gci_buf log;   /* the last of what the console said */
	uint32_t jobs;        /* started so far */
	uint64_t sent, taken; /* bytes of frames, by the guest's own count */
	struct gci_uml_session sessions[GCI_MAX_SESSIONS];
};

/* Blocks until the line has taken it; a guest that is gone is found by the next pump. */
void gci_uml_send_frame(
	struct gci_uml *u, enum gci_frame_type type, unsigned id, const void *body, size_t len);
void gci_uml_send_u32(struct gci_uml *u, enum gci_frame_type type, unsigned id, uint32_t v);

/* What the console said last, or of a panic. Good until the next call. */
const char *gci_uml_last_words(struct gci_uml *u);

#endif
