/* SPDX-License-Identifier: MIT
 * Requests: what is common to all that gcoll_wait() may wait for. Each sort is a struct that begins
 * with a gcoll_req and has a table of functions; its file makes it:
 *
 *	rc = gci_req_create(c, &ops, sizeof(struct mine), &req);	// prepared
 *	rc = gci_req_launch(&req);					// and begun
 */
#ifndef GCI_COMM_REQUEST_H
#define GCI_COMM_REQUEST_H

#include "comm/comm.h"
#include "comm/thread.h"

struct gci_req_ops {
	/* Begins. gci_req_end is called when it is over, from progress or from here. 0, or an error
	 * (with gcoll_last_error() set, or the engine failed): then it is not called. */
	int (*start)(gcoll_req *r);
	/* Frees what the request owns; it may be under way if the transport is gone. */
	void (*drop)(gcoll_req *r);
	/* In words, for those who wait for it. */
	void (*name)(const gcoll_req *r, char out[GCI_SIGNATURE_NBYTES]);
	/* It has been waited for in vain for a while: may its peer have left? Or NULL. */
	void (*ask)(const gcoll_req *r);
};

struct gcoll_req {
	const struct gci_req_ops *ops;
	gcoll_comm *comm;
	size_t size;
	struct gci_list link; /* engine->requests, in the order they were begun */
	int persistent, blocking;
	int active; /* begun and not waited for */
	int over;   /* read by threads that are not inside the gate, too */
	int status;
	int awaited;            /* by a thread, since it was begun */
	gcoll_done_fn *fn;      /* called instead of being waited for; or NULL */
	void *ctx;              /* its */
	struct gci_list untold; /* engine->untold */
	uint64_t asked_ns;      /* engine->waited_ns when `ask` was last called */
};

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

/* Calls `ask` of all that nobody asks for in gcoll_wait or gcoll_test: those of callbacks, and
 * those that threads wait for. */
void gci_reqs_ask(struct gci_engine *e);

/* How long from now that may be waited with: never 0. */
uint64_t gci_reqs_ask_in(const struct gci_engine *e);

/* It is over. */
void gci_req_end(gcoll_req *r, int status);

/* Frees it whatever its state. */
void gci_req_drop(gcoll_req *r);

/* What is kept of freed ones. */
void gci_reqs_free(struct gci_engine *e);

/* The one that has been under way for longest. */
void gci_req_name_oldest(const struct gci_engine *e, char out[GCI_SIGNATURE_NBYTES]);

/* Refuses, with GCOLL_ERR_INVAL, to wait from within a callback. */
int gci_req_may_wait(const struct gci_engine *e);

/* The engine's failure as this call's error; without one, `status` and what was said of it. */
int gci_req_error(struct gci_engine *e, int status) __attribute__((cold));

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
