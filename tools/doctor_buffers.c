/* SPDX-License-Identifier: MIT
 * Socket buffers, against what the grid's links have in flight. */
#include "base/units.h"
#include "tools/doctor_impl.h"
#include "transport/sockbuf.h"

#include <inttypes.h>
#include <stdio.h>

/* One of the two directions. */
struct side {
	const char *id, *what, *max_id;
	enum gct_sysctl max_sysctl;
	const uint64_t *figures; /* of the sysctl: least, first, largest */
	int receives;
};

static uint64_t known(uint64_t v)
{
	return v == GCT_UNKNOWN ? 0 : v;
}

static struct gci_sockmax sockmax(const struct gct_facts *f)
{
	return (struct gci_sockmax){known(f->tcp_rmem[2]), known(f->tcp_wmem[2]),
		known(f->sysctl[GCT_RMEM_MAX]), known(f->sysctl[GCT_WMEM_MAX])};
}

/* The link whose streams have the most in flight this way. */
static const struct gct_need *largest(const struct gct_needs *n, const struct side *s)
{
	const struct gct_need *best = NULL;
	size_t i;

	for (i = 0; i < n->nlinks; i++) {
		const struct gct_need *l = &n->links[i];

		if ((s->receives ? l->receives : l->sends) && l->flight.stream_nbytes &&
			(!best || l->flight.stream_nbytes > best->flight.stream_nbytes))
			best = l;
	}
	return best;
}

/* "1 Gbit/s x 20 ms = 2.5 MB in flight on kyoto > tokyo; 4 streams need 625 kB each" */
static void arithmetic(const struct gct_need *l, char *out, size_t size)
{
	const struct gci_flight *f = &l->flight;
	char rate[16], t[16], all[16], each[16];

	snprintf(out, size, "%s x %s = %s in flight on %s; %" PRIu32 " stream%s %s each",
		gci_format_rate(f->bps, rate, sizeof(rate)),
		gci_format_time(f->rtt_ns, t, sizeof(t)),
		gci_format_bytes(f->nbytes, all, sizeof(all)), l->name, f->streams,
		f->streams == 1 ? " needs" : "s need",
		gci_format_bytes(f->stream_nbytes, each, sizeof(each)));
}

static void say_reach(struct gct_report *r, struct gct_finding *g, const struct gct_need *l,
	const struct side *s, const struct gci_sockbuf *b)
{
	const struct gci_flight *f = &l->flight;
	char why[300], most[16], rate[16], one[16];

	arithmetic(l, why, sizeof(why));
	gci_format_bytes(b->reach_nbytes, most, sizeof(most));
	gci_format_rate(
		gci_sockbuf_rate(b->reach_nbytes, f->streams, f->rtt_ns), rate, sizeof(rate));
	gci_format_bytes(gci_sockbuf_sysctl(f->nbytes), one, sizeof(one));
	if (g->level == GCT_PROBLEM)
		gct_say(r, &g->why, "%s%s; this allows %s: %s in all", why,
			s->receives ? ", and half of a buffer is window" : "", most, rate);
	else if (b->set_nbytes)
		gct_say(r, &g->why,
			"%s; autotuning does not reach that, but sizes that gridcoll asks for do",
			why);
	else
		gct_say(r, &g->why, "%s (one stream alone would need a buffer of %s)", why, one);
}

static void check_side(const struct gct_facts *f, const struct gct_needs *n, const struct side *s,
	struct gct_report *r)
{
	const struct gct_need *l = largest(n, s);
	struct gci_sockmax max = sockmax(f);
	struct gci_sockbuf b = {0};
	struct gct_finding *g = gct_finding(r, GCT_NOT_KNOWN, s->id, s->what);
	uint64_t least = s->figures[0], first = s->figures[1], most = s->figures[2], want;
	char value[80], text[16];

	if (most == GCT_UNKNOWN) {
		gct_say(r, &g->why, "it could not be read");
		return;
	}
	gct_say(r, &g->is, "up to %s", gci_format_bytes(most, text, sizeof(text)));
	if (!l) {
		gct_say(r, &g->why, "%s",
			!n->has_grid ? "what it must be follows from a grid: give --grid"
			: n->nlinks  ? "the grid tells no rates and delays"
				     : "this host has no link to another cluster");
		return;
	}
	if (s->receives)
		gci_sockbuf_receive(&b, l->flight.stream_nbytes, &max);
	else
		gci_sockbuf_send(&b, l->flight.stream_nbytes, &max);
	g->level = b.reach_nbytes < l->flight.stream_nbytes ? GCT_PROBLEM
		   : b.set_nbytes                           ? GCT_ADVICE
							    : GCT_FINE;
	say_reach(r, g, l, s, &b);
	if (g->level == GCT_FINE)
		return;
	want = gci_sockbuf_sysctl(l->flight.stream_nbytes);
	snprintf(value, sizeof(value), "%" PRIu64 " %" PRIu64 " %" PRIu64, least, first, want);
	gct_say_sysctl(r, g, value);
	gct_say(r, &g->should, "up to %s", gci_format_bytes(want, text, sizeof(text)));
}

/* It matters where autotuning cannot do it: raising tcp_rmem or tcp_wmem is the better cure. */
static void check_max(const struct gct_facts *f, const struct side *s, struct gct_report *r)
{
	uint64_t v = f->sysctl[s->max_sysctl];
	struct gct_finding *g = gct_finding(r, v == GCT_UNKNOWN ? GCT_NOT_KNOWN : GCT_FINE,
		s->max_id, gct_sysctl_name(s->max_sysctl));
	char text[16];

	gct_say(r, &g->why,
		"only bounds sizes that programs ask for; gridcoll asks where autotuning cannot "
		"reach what a link needs");
	if (v != GCT_UNKNOWN)
		gct_say(r, &g->is, "%s", gci_format_bytes(v, text, sizeof(text)));
}

void gct_check_buffers(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	const struct side sides[] = {
		{"tcp_rmem", "net.ipv4.tcp_rmem", "rmem_max", GCT_RMEM_MAX, f->tcp_rmem, 1},
		{"tcp_wmem", "net.ipv4.tcp_wmem", "wmem_max", GCT_WMEM_MAX, f->tcp_wmem, 0}};
	size_t i;

	for (i = 0; i < 2; i++) {
		check_side(f, n, &sides[i], r);
		check_max(f, &sides[i], r);
	}
}
