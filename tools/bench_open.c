/* SPDX-License-Identifier: MIT
 * What all measurements of one job share. */
#include "base/mem.h"
#include "tools/bench.h"

#include <string.h>

int gct_bench_open(struct gct_bench *b, int root)
{
	const struct gci_topo *t = &b->comm->topo;
	struct gci_error e = {0};
	int i, rc = gcoll_comm_dup(b->comm, &b->own);

	b->root = root;
	if (!rc && gct_lab_read(&b->lab, &e))
		rc = gci_comm_error(e.status, "%s", e.text);
	for (i = 0; i < t->nclusters * t->nclusters; i++)
		if (t->links[i].delay_ns > b->longest_delay_ns)
			b->longest_delay_ns = t->links[i].delay_ns;
	return rc;
}

int gct_bench_buffers(struct gct_bench *b, uint64_t nbytes)
{
	nbytes += (uint64_t)b->comm->size; /* equal blocks may be more than was asked for */
	b->send = gci_calloc(nbytes, 1);
	b->recv = gci_calloc(nbytes, 1);
	if (!b->send || !b->recv)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for two buffers of the size");
	/* First touches are the kernel's time, not the operation's. */
	memset(b->send, 1, nbytes);
	memset(b->recv, 1, nbytes);
	return 0;
}

void gct_bench_close(struct gct_bench *b)
{
	gcoll_finalize(b->comm);
	gct_lab_free(&b->lab);
	gci_free(b->send);
	gci_free(b->recv);
	gci_free((char *)b->pattern);
}
