/* SPDX-License-Identifier: MIT
 * What the simulator says of the cases that are measured. */
#include "base/mem.h"
#include "tools/bench.h"
#include "tools/model_files.h"

#include <stdio.h>

struct gct_bench_predictor {
	struct gci_simnet net;
	struct gci_params params;
	int measured; /* params were read */
};

struct gct_bench_predictor *gct_bench_predict_begin(
	const struct gct_bench *b, const char *params, struct gci_error *e)
{
	struct gct_bench_predictor *p = gci_calloc(1, sizeof(*p));

	if (!p) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		return NULL;
	}
	if (params && gct_read_params(params, b->comm->engine->grid, &p->params, e))
		fprintf(stderr, "gridcoll bench: %s\nPredictions are from the grid file alone.\n",
			e->text);
	else
		p->measured = params != NULL;
	gci_error_clear(e);
	if (gci_simnet_init(&p->net, &b->comm->topo, p->measured ? &p->params : NULL)) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		gct_bench_predict_end(p);
		return NULL;
	}
	gci_simnet_streams(&p->net, b->comm->engine->settings.streams);
	return p;
}

void gct_bench_predict_end(struct gct_bench_predictor *p)
{
	if (!p)
		return;
	gci_simnet_free(&p->net);
	if (p->measured)
		gci_params_free(&p->params);
	gci_free(p);
}

uint64_t gct_bench_predict(
	struct gct_bench_predictor *p, const struct gci_coll *c, const struct gci_candidate *how)
{
	uint64_t ns;

	return gci_predict(&p->net, c, how, NULL, &ns) ? 0 : ns;
}
