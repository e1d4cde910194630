/* SPDX-License-Identifier: MIT
 * TCP's own settings, and its buffers. */
#include "base/units.h"
#include "tools/doctor/impl.h"
#include "transport/sockbuf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Socket buffers, against what the grid's links have in flight. */

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

/* ---- TCP's own settings */

#define MSS             1448.0
#define FIRST_WINDOW    14480  /* ten packets: RFC 6928 */
#define UNSCALED_WINDOW 65535u /* RFC 7323: without the option */

static const struct simple {
	enum gct_sysctl sysctl;
	const char *id, *should;
	uint64_t least, most; /* what is fine */
	enum gct_level level; /* what anything else is */
	const char *why;
} simple[] = {
	{GCT_SACK, "tcp_sack", "1", 1, UINT64_MAX - 1, GCT_PROBLEM,
		"without selective acknowledgements one lost packet is repaired per round trip"},
	{GCT_TIMESTAMPS, "tcp_timestamps", "1", 1, UINT64_MAX - 1, GCT_ADVICE,
		"without timestamps round trips are measured once per window, and packets from "
		"before the sequence numbers came round (every 34 s at 1 Gbit/s) cannot be told"},
	{GCT_MODERATE_RCVBUF, "tcp_moderate_rcvbuf", "1", 1, 1, GCT_PROBLEM,
		"without it receive buffers do not grow with what a path needs"},
	{GCT_NO_METRICS_SAVE, "tcp_no_metrics_save", "1", 1, 1, GCT_ADVICE,
		"a connection that met losses makes later ones to the same host end their slow "
		"start too early"},
	{GCT_MTU_PROBING, "tcp_mtu_probing", "1", 1, 2, GCT_ADVICE,
		"where a router drops large packets without a word, a connection stops; with 1 "
		"it finds the size that passes"},
};

static void check_simple(const struct gct_facts *f, const struct simple *s, struct gct_report *r)
{
	uint64_t v = f->sysctl[s->sysctl];
	int fine = v >= s->least && v <= s->most;
	struct gct_finding *g = gct_finding(r,
		v == GCT_UNKNOWN ? GCT_NOT_KNOWN
		: fine           ? GCT_FINE
				 : s->level,
		s->id, gct_sysctl_name(s->sysctl));

	gct_say(r, &g->why, "%s", s->why);
	if (v == GCT_UNKNOWN)
		return;
	gct_say(r, &g->is, "%" PRIu64, v);
	if (!fine)
		gct_say_sysctl(r, g, s->should);
}

/* The link with the most in flight on one stream. */
static const struct gct_need *longest(const struct gct_needs *n)
{
	const struct gct_need *best = NULL;
	size_t i;

	for (i = 0; i < n->nlinks; i++)
		if (n->links[i].flight.stream_nbytes &&
			(!best || n->links[i].flight.stream_nbytes > best->flight.stream_nbytes))
			best = &n->links[i];
	return best;
}

/* Round trips of slow start until so many bytes are in flight: it doubles them. */
static unsigned slow_start(uint64_t nbytes)
{
	unsigned n = 0;
	uint64_t window;

	for (window = FIRST_WINDOW; window < nbytes && n < 50; n++)
		window *= 2;
	return n;
}

static void check_idle(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	const struct gct_need *l = longest(n);
	uint64_t v = f->sysctl[GCT_SLOW_START_AFTER_IDLE];
	unsigned trips = l ? slow_start(l->flight.stream_nbytes) : 0;
	struct gct_finding *g = gct_finding(r,
		v == GCT_UNKNOWN ? GCT_NOT_KNOWN
		: !v             ? GCT_FINE
		: trips > 2      ? GCT_PROBLEM
				 : GCT_ADVICE,
		"tcp_slow_start_after_idle", gct_sysctl_name(GCT_SLOW_START_AFTER_IDLE));
	char in_flight[16], t[16], all[16];

	gct_say(r, &g->why, "a connection that was idle begins again with 10 packets in flight");
	if (trips)
		gct_say(r, &g->why,
			"a connection that was idle begins again with 10 packets in flight; the "
			"%s of a stream on %s need %u round trips of %s: %s",
			gci_format_bytes(l->flight.stream_nbytes, in_flight, sizeof(in_flight)),
			l->name, trips, gci_format_time(l->flight.rtt_ns, t, sizeof(t)),
			gci_format_time(trips * l->flight.rtt_ns, all, sizeof(all)));
	if (v == GCT_UNKNOWN)
		return;
	gct_say(r, &g->is, "%" PRIu64, v);
	if (v)
		gct_say_sysctl(r, g, "0");
}

static void check_scaling(
	const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	const struct gct_need *l = longest(n);
	uint64_t v = f->sysctl[GCT_WINDOW_SCALING];
	struct gct_finding *g = gct_finding(r,
		v == GCT_UNKNOWN ? GCT_NOT_KNOWN
		: v              ? GCT_FINE
				 : GCT_PROBLEM,
		"tcp_window_scaling", gct_sysctl_name(GCT_WINDOW_SCALING));
	char rate[16], t[16];

	gct_say(r, &g->why, "without it a connection has no more than 64 KiB in flight");
	if (l && l->flight.rtt_ns)
		gct_say(r, &g->why,
			"without it a connection has no more than 64 KiB in flight: %s at %s",
			gci_format_rate(UNSCALED_WINDOW * 8000000000ull / l->flight.rtt_ns, rate,
				sizeof(rate)),
			gci_format_time(l->flight.rtt_ns, t, sizeof(t)));
	if (v == GCT_UNKNOWN)
		return;
	gct_say(r, &g->is, "%" PRIu64, v);
	if (!v)
		gct_say_sysctl(r, g, "1");
}

/* ---- congestion control */

/* Bits per second that one connection which takes losses for congestion keeps up: windows of
 * packets from Mathis 1997 for reno, RFC 9438 (5.2, figure 5) for cubic, which takes the larger. */
static double lossy_bps(const struct gct_need *l, int cubic)
{
	double p = l->loss_ppm / 1e6, rtt = (double)l->flight.rtt_ns / 1e9;
	double window = sqrt(1.5 / p), x = sqrt(rtt / p), w = 1.054 * x * sqrt(x);

	if (cubic && w > window)
		window = w;
	return window * MSS * 8 / rtt;
}

static const struct gct_need *lossiest(const struct gct_needs *n, int cubic, double *part)
{
	const struct gct_need *worst = NULL;
	size_t i;

	for (i = 0; i < n->nlinks; i++) {
		const struct gct_need *l = &n->links[i];
		double all;

		if (!l->loss_ppm || !l->flight.bps || !l->flight.rtt_ns || !l->sends)
			continue;
		all = lossy_bps(l, cubic) * l->flight.streams / (double)l->flight.bps;
		if (worst && all >= *part)
			continue;
		worst = l;
		*part = all;
	}
	return worst;
}

/* Behind the reason: what the kernel lacks, or the command with the module's. */
static void say_module(const struct gct_facts *f, enum gct_module m, const char *command,
	struct gct_finding *g, struct gct_report *r)
{
	const char *name = gct_module_name(m);

	if (f->module[m]) {
		gct_say(r, &g->command, "%s", command);
		return;
	}
	gct_say(r, &g->why, "%s; it takes a kernel that has %s, which this one lacks", g->why,
		name);
	gct_unsay(&g->command);
	gct_unsay(&g->line);
}

static void check_congestion(
	const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	int cubic = !strcmp(f->congestion, "cubic"), reno = !strcmp(f->congestion, "reno");
	double part = 1;
	const struct gct_need *l = cubic || reno ? lossiest(n, cubic, &part) : NULL;
	struct gct_finding *g = gct_finding(r,
		!*f->congestion             ? GCT_NOT_KNOWN
		: l && part < 0.5           ? GCT_PROBLEM
		: reno || (l && part < 0.9) ? GCT_ADVICE
					    : GCT_FINE,
		"tcp_congestion_control", "net.ipv4.tcp_congestion_control");
	char rate[16];

	gct_say(r, &g->is, "%s", *f->congestion ? f->congestion : "unknown");
	if (g->level == GCT_FINE) {
		gct_say(r, &g->why, "available: %s", f->congestions);
	} else if (l && part < 0.9) {
		gct_say(r, &g->why,
			"%s takes each loss for congestion: at %g %% of packets on %s a stream "
			"keeps up %s, %u of them %.0f %% of the rate",
			f->congestion, l->loss_ppm / 1e4, l->name,
			gci_format_rate((uint64_t)lossy_bps(l, cubic), rate, sizeof(rate)),
			l->flight.streams, part * 100);
		gct_say_sysctl(r, g, "bbr");
		say_module(f, GCT_BBR,
			"modprobe tcp_bbr && sysctl -w net.ipv4.tcp_congestion_control=bbr", g, r);
	} else if (reno) {
		gct_say(r, &g->why,
			"after a loss reno grows by one packet a round trip, which on a long fat "
			"path takes minutes");
		gct_say_sysctl(r, g, "cubic");
	}
}

static void check_qdisc(const struct gct_facts *f, struct gct_report *r)
{
	int fq = !strcmp(f->qdisc, "fq");
	struct gct_finding *g = gct_finding(r,
		!*f->qdisc ? GCT_NOT_KNOWN
		: fq       ? GCT_FINE
			   : GCT_ADVICE,
		"default_qdisc", "net.core.default_qdisc");
	char command[128];

	gct_say(r, &g->is, "%s", *f->qdisc ? f->qdisc : "unknown");
	gct_say(r, &g->why,
		"fq paces packets evenly and gives each connection its turn; without it TCP paces "
		"by timers of its own, at more CPU, and many streams to one host come in bursts");
	if (fq || !*f->qdisc)
		return;
	gct_say_sysctl(r, g, "fq");
	snprintf(command, sizeof(command),
		"sysctl -w net.core.default_qdisc=fq && tc qdisc replace dev %s root fq",
		f->nnics ? f->nics[0].name : "eth0");
	say_module(f, GCT_FQ, command, g, r);
}

void gct_check_tcp(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	size_t i;

	check_idle(f, n, r);
	check_scaling(f, n, r);
	for (i = 0; i < sizeof(simple) / sizeof(*simple); i++)
		check_simple(f, &simple[i], r);
	check_congestion(f, n, r);
	check_qdisc(f, r);
}
