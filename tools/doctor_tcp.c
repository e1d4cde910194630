/* SPDX-License-Identifier: MIT
 * TCP's own settings. */
#include "base/units.h"
#include "tools/doctor_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
