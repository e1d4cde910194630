/* SPDX-License-Identifier: MIT
 * What one link's measuring rank tells rank 0. */
#include "base/buf.h"
#include "base/mem.h"
#include "tools/probe.h"

#include <string.h>

#define MOST_ENTRIES 4096

static void put_rates(struct gci_buf *out, const struct gci_params_rate *r, size_t n)
{
	size_t i;

	gci_buf_put_u32(out, (uint32_t)n);
	for (i = 0; i < n; i++) {
		gci_buf_put_u32(out, r[i].streams);
		gci_buf_put_u64(out, r[i].bps);
	}
}

static void put_points(struct gci_buf *out, const struct gci_params_link *l)
{
	size_t i;

	gci_buf_put_u32(out, (uint32_t)l->npoints);
	for (i = 0; i < l->npoints; i++) {
		gci_buf_put_u64(out, l->points[i].nbytes);
		gci_buf_put_u64(out, l->points[i].os_ns);
		gci_buf_put_u64(out, l->points[i].or_ns);
		gci_buf_put_u64(out, l->points[i].gap_ns);
	}
}

static void put_isends(struct gci_buf *out, const struct gci_params_link *l)
{
	size_t i;

	gci_buf_put_u32(out, (uint32_t)l->nisends);
	for (i = 0; i < l->nisends; i++) {
		const struct gci_params_isend *s = &l->isends[i];

		gci_buf_put_u64(out, s->nbytes);
		gci_buf_put_u8(out, s->immediate != 0);
		gci_buf_put_u32(out, s->initial);
		gci_buf_put_u32(out, s->mid);
		gci_buf_put_u64(out, s->os_start_ns);
		gci_buf_put_u64(out, s->os_spike_ns);
		gci_buf_put_u64(out, s->os_mid_ns);
	}
}

void gct_probed_encode(const struct gct_probed *p, struct gci_buf *out)
{
	gci_buf_put_u32(out, p->streams);
	gci_buf_put_u32(out, p->one_way);
	gci_buf_put_u32(out, p->limits);
	gci_buf_put_u64(out, p->err_ppm);
	gci_buf_put_u64(out, p->took_ns);
	gci_buf_put_u64(out, p->nbytes);
	gci_buf_put_u64(out, p->link.latency_ns);
	put_points(out, &p->link);
	put_rates(out, p->link.rates, p->link.nrates);
	put_isends(out, &p->link);
}

/* The number of entries; memory for them in *list. */
static size_t open_list(struct gci_reader *r, size_t size, void **list)
{
	uint32_t n = gci_read_u32(r);

	if (r->failed || n > MOST_ENTRIES || !(*list = gci_calloc(n, size))) {
		r->failed = 1;
		return 0;
	}
	return n;
}

static void read_points(struct gci_reader *r, struct gci_params_link *l)
{
	void *list = NULL;
	size_t i, n = open_list(r, sizeof(*l->points), &list);

	l->points = list;
	for (i = 0; i < n; i++) {
		l->points[i].nbytes = gci_read_u64(r);
		l->points[i].os_ns = gci_read_u64(r);
		l->points[i].or_ns = gci_read_u64(r);
		l->points[i].gap_ns = gci_read_u64(r);
	}
	l->npoints = n;
}

static void read_rates(struct gci_reader *r, struct gci_params_link *l)
{
	void *list = NULL;
	size_t i, n = open_list(r, sizeof(*l->rates), &list);

	l->rates = list;
	for (i = 0; i < n; i++) {
		l->rates[i].streams = gci_read_u32(r);
		l->rates[i].bps = gci_read_u64(r);
	}
	l->nrates = n;
}

static void read_isends(struct gci_reader *r, struct gci_params_link *l)
{
	void *list = NULL;
	size_t i, n = open_list(r, sizeof(*l->isends), &list);

	l->isends = list;
	for (i = 0; i < n; i++) {
		struct gci_params_isend *s = &l->isends[i];

		s->nbytes = gci_read_u64(r);
		s->immediate = gci_read_u8(r);
		s->initial = gci_read_u32(r);
		s->mid = gci_read_u32(r);
		s->os_start_ns = gci_read_u64(r);
		s->os_spike_ns = gci_read_u64(r);
		s->os_mid_ns = gci_read_u64(r);
	}
	l->nisends = n;
}

int gct_probed_decode(struct gct_probed *p, const uint8_t *data, size_t len)
{
	struct gci_reader r = {.data = data, .len = len};

	p->streams = gci_read_u32(&r);
	p->one_way = gci_read_u32(&r);
	p->limits = gci_read_u32(&r);
	p->err_ppm = gci_read_u64(&r);
	p->took_ns = gci_read_u64(&r);
	p->nbytes = gci_read_u64(&r);
	p->link.latency_ns = gci_read_u64(&r);
	read_points(&r, &p->link);
	read_rates(&r, &p->link);
	read_isends(&r, &p->link);
	return r.failed ? GCOLL_ERR_PROTO : 0;
}

void gct_probed_free(struct gct_probed *p)
{
	gci_free(p->link.points);
	gci_free(p->link.rates);
	gci_free(p->link.isends);
	memset(&p->link, 0, sizeof(p->link));
}
