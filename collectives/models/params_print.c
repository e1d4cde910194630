/* SPDX-License-Identifier: MIT
 * One line to a point, so that a change of one shows as one. */
#include "base/buf.h"
#include "collectives/models/params_json.h"

#include <inttypes.h>

static const char *comma(size_t i)
{
	return i ? ",\n" : "\n";
}

static void print_points(const struct gci_params_link *l, struct gci_buf *out)
{
	size_t i;

	if (!l->npoints)
		return;
	gci_buf_printf(out, ",\n      \"points\": [");
	for (i = 0; i < l->npoints; i++) {
		const struct gci_params_point *p = &l->points[i];

		gci_buf_printf(out,
			"%s        {\"nbytes\": %" PRIu64 ", \"os_ns\": %" PRIu64
			", \"or_ns\": %" PRIu64 ", \"gap_ns\": %" PRIu64 "}",
			comma(i), p->nbytes, p->os_ns, p->or_ns, p->gap_ns);
	}
	gci_buf_printf(out, "\n      ]");
}

static void print_rates(const char *key, const char *number, const struct gci_params_rate *r,
	size_t n, struct gci_buf *out)
{
	size_t i;

	if (!n)
		return;
	gci_buf_printf(out, ",\n      \"%s\": [", key);
	for (i = 0; i < n; i++)
		gci_buf_printf(out, "%s        {\"%s\": %" PRIu32 ", \"bps\": %" PRIu64 "}",
			comma(i), number, r[i].streams, r[i].bps);
	gci_buf_printf(out, "\n      ]");
}

static void print_isends(const struct gci_params_link *l, struct gci_buf *out)
{
	size_t i;

	if (!l->nisends)
		return;
	gci_buf_printf(out, ",\n      \"isends\": [");
	for (i = 0; i < l->nisends; i++) {
		const struct gci_params_isend *s = &l->isends[i];

		gci_buf_printf(out,
			"%s        {\"nbytes\": %" PRIu64
			", \"immediate\": %s, \"initial\": %" PRIu32 ", \"mid\": %" PRIu32
			", \"os_start_ns\": %" PRIu64 ", \"os_spike_ns\": %" PRIu64
			", \"os_mid_ns\": %" PRIu64 "}",
			comma(i), s->nbytes, s->immediate ? "true" : "false", s->initial, s->mid,
			s->os_start_ns, s->os_spike_ns, s->os_mid_ns);
	}
	gci_buf_printf(out, "\n      ]");
}

static void print_links(const struct gci_params *p, struct gci_buf *out)
{
	const struct gci_params_link *l;
	size_t n = 0;
	int a, b;

	for (a = 0; a < p->nclusters; a++)
		for (b = 0; b < p->nclusters; b++) {
			l = gci_params_link(p, a, b);
			if (!l->latency_ns && !l->npoints && !l->nrates && !l->nsenders &&
				!l->nisends)
				continue;
			gci_buf_printf(out,
				"%s    {\n      \"from\": \"%s\", \"to\": \"%s\",\n"
				"      \"latency_ns\": %" PRIu64,
				comma(n++), p->clusters[a], p->clusters[b], l->latency_ns);
			print_points(l, out);
			print_rates("rates", "streams", l->rates, l->nrates, out);
			print_rates("senders", "senders", l->senders, l->nsenders, out);
			print_isends(l, out);
			gci_buf_printf(out, "\n    }");
		}
}

void gci_params_print(const struct gci_params *p, struct gci_buf *out)
{
	int c;

	gci_buf_printf(out,
		"{\n  \"version\": 1,\n  \"date\": \"%s\",\n  \"grid_digest\": \"%016" PRIx64
		"\",\n  \"dilation\": %" PRIu32 ",\n  \"latency\": \"%s\",\n  \"clusters\": [",
		p->date, p->grid_digest, p->dilation,
		p->latency == GCI_LATENCY_ONE_WAY ? "one way" : "half a round trip");
	for (c = 0; c < p->nclusters; c++)
		gci_buf_printf(out, "%s\"%s\"", c ? ", " : "", p->clusters[c]);
	gci_buf_printf(out, "],\n  \"links\": [");
	print_links(p, out);
	gci_buf_printf(out, "\n  ]\n}\n");
}
