/* SPDX-License-Identifier: MIT
 * Requests (comm/engine.h): made, begun and waited for. A file that has a sort of its own makes it:
 *
 *	rc = gci_req_create(c, &ops, sizeof(struct mine), &req);	// prepared
 *	rc = gci_req_launch(&req);					// and begun
 */
#ifndef GCI_COMM_REQUEST_H
#define GCI_COMM_REQUEST_H

#include "comm/comm.h"
#include "comm/progress.h"

/* A zeroed one of `size` bytes. On failure *req is NULL. */
int gci_req_create(gcoll_comm *c, const struct gci_req_ops *ops, size_t size, gcoll_req **req);

/* For functions that make requests: gives up one that is not complete, out of memory. */
int gci_req_give_up(gcoll_req **req);

/* Begins one; on failure it is freed, *req is NULL. */
int gci_req_launch(gcoll_req **req);
int gci_req_run(gcoll_req **req);  /* and waits for its end */
int gci_req_keep(gcoll_req **req); /* makes it persistent instead */

/* gcoll_wait, inside of the gate. */
int gci_req_wait(gcoll_req **req);

/* What is wrong with these, as an error of the call; 0: nothing. */
int gci_check_type(enum gcoll_type type, uint64_t count);
int gci_check_root(const char *what, int root, const gcoll_comm *c);

/* The three public forms of a call, made of its static function make_NAME(..., gcoll_req **req).
 * ARGS are the parameters' names in parentheses, then come their declarations. */
#define GCI_UNPACK(...) __VA_ARGS__
#define GCI_FORMS(name, args, ...)                                               \
	int gcoll_##name(__VA_ARGS__)                                            \
	{                                                                        \
		gcoll_req *own, **req = &own;                                    \
                                                                                 \
		GCI_FORM(make_##name(GCI_UNPACK args, req), gci_req_run(req))    \
	}                                                                        \
	int gcoll_i##name(__VA_ARGS__, gcoll_req **req)                          \
	{                                                                        \
		GCI_FORM(make_##name(GCI_UNPACK args, req), gci_req_launch(req)) \
	}                                                                        \
	int gcoll_##name##_init(__VA_ARGS__, gcoll_req **req)                    \
	{                                                                        \
		GCI_FORM(make_##name(GCI_UNPACK args, req), gci_req_keep(req))   \
	}

/* One of them, on the communicator `c`, which the caller may have given as NULL. */
#define GCI_FORM(make, then)                         \
	struct gci_engine *e = c ? c->engine : NULL; \
	int rc = e ? gci_enter(e) : 0;               \
                                                     \
	if (rc)                                      \
		return rc;                           \
	rc = make;                                   \
	if (!rc)                                     \
		rc = then;                           \
	if (e)                                       \
		gci_leave(e);                        \
	return rc;

#endif
