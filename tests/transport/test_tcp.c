/* SPDX-License-Identifier: MIT */
#include "tests/transport/conformance.h"

#include "base/mem.h"
#include "transport/tcp.h"

#include <errno.h>
#include <string.h>

static const char *listen_ip = "127.0.0.1";

static int open_all(struct world *w, uv_loop_t *loop)
{
	char addrs[MAX_RANKS][GCI_TCP_ADDR_NBYTES];
	const char *list[MAX_RANKS];
	struct gci_tcp_config tcp = {.addrs = list, .secret = "0123456789", .loop = loop};
	int fds[MAX_RANKS], i, rc = 0;

	for (i = 0; i < w->size; i++) {
		assert_int_equal(gci_tcp_listen(listen_ip, 0, 0, &fds[i], addrs[i], NULL), 0);
		list[i] = addrs[i];
	}
	for (i = 0; i < w->size; i++) {
		tcp.listen_fd = fds[i];
		if (gci_tcp_create(&w->tp[i], &w->config[i], &tcp, NULL))
			rc = GCOLL_ERR_NOMEM;
	}
	if (rc)
		world_close(w);
	return rc;
}

/* Each rank with a loop of its own. */
static int own_open(struct world *w)
{
	return open_all(w, NULL);
}

static void own_close(struct world *w)
{
	(void)w;
}

static int own_step(struct world *w)
{
	int i;

	for (i = 0; i < w->size; i++)
		if (w->tp[i])
			gci_tp_progress(w->tp[i], i ? 0 : 100000);
	return 1;
}

/* All ranks on one loop. */
static uv_loop_t shared;

static int shared_open(struct world *w)
{
	assert_int_equal(uv_loop_init(&shared), 0);
	w->private = &shared;
	return open_all(w, &shared);
}

static void shared_close(struct world *w)
{
	(void)w;
	uv_run(&shared, UV_RUN_DEFAULT); /* the last callbacks of what was freed */
	assert_int_equal(uv_loop_close(&shared), 0);
}

static const struct backend own = {
	.name = "tcp", .open = own_open, .close = own_close, .step = own_step};
static const struct backend on_shared_loop = {.name = "tcp on a shared loop",
	.open = shared_open,
	.close = shared_close,
	.step = own_step};

int main(void)
{
	return conformance_main(&own, NULL, 0) + conformance_main(&on_shared_loop, NULL, 0);
}
