/* SPDX-License-Identifier: MIT
 * A reason is what takes longer here than in the best way, and by enough to matter. */
#include "tools/facts.h"

#include "base/units.h"

#include <inttypes.h>

static double percent(uint64_t part, uint64_t all)
{
	return all ? (double)part * 100 / (double)all : 0;
}

/* ", 1.50 x the message" */
static void put_share(uint64_t nbytes, const struct gct_words *w, struct gci_buf *out)
{
	if (w->nbytes)
		gci_buf_printf(out, ", %.2f x the message", (double)nbytes / (double)w->nbytes);
}

static void say_port(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16];

	gci_buf_printf(out, "rank %d (%s) %s %s", f->port_rank, w->names[f->port_rank],
		f->port_out ? "sends" : "receives", gci_format_bytes(f->port_nbytes, bytes, 16));
	put_share(f->port_nbytes, w, out);
	gci_buf_printf(out, ": its NIC is %.0f %% busy", percent(f->port_ns, f->ns));
}

static void say_link(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16];

	gci_buf_printf(out, "%s cross %s > %s", gci_format_bytes(f->link_nbytes, bytes, 16),
		w->clusters[f->link_from], w->clusters[f->link_to]);
	put_share(f->link_nbytes, w, out);
	gci_buf_printf(out, ": that link is %.0f %% busy", percent(f->link_ns, f->ns));
}

static void say_pair(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16];

	gci_buf_printf(out,
		"rank %d (%s) sends %s to rank %d (%s): its connections are %.0f %% busy",
		f->pair_from, w->names[f->pair_from], gci_format_bytes(f->pair_nbytes, bytes, 16),
		f->pair_to, w->names[f->pair_to], percent(f->pair_ns, f->ns));
}

static void say_delay(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out)
{
	uint64_t n = f->chain_nwan ? f->chain_nwan : f->chain_nmessages;
	char time[16];

	gci_buf_printf(out, "%" PRIu64 " %s%s%s: %s of delay", n,
		f->chain_nwan ? "crossing" : "message", n == 1 ? "" : "s",
		n > 1 ? f->chain_nwan ? " of WANs one after the other" : " one after the other"
		: f->chain_nwan ? " of a WAN"
				: "",
		gci_format_time(f->chain_delay_ns / w->dilation, time, 16));
}

static void say_chain(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out)
{
	char bytes[16], time[16];

	gci_format_bytes(f->chain_nbytes, bytes, 16);
	if (f->chain_nmessages == 1)
		gci_buf_printf(out, "one message of %s takes %s", bytes,
			gci_format_time(f->chain_transfer_ns / w->dilation, time, 16));
	else
		gci_buf_printf(out, "%" PRIu64 " messages one after the other, %s",
			f->chain_nmessages, bytes);
	if (f->chain_nmessages != 1)
		put_share(f->chain_nbytes, w, out);
	if (f->chain_alone_ns && f->chain_transfer_ns / 3 * 2 > f->chain_alone_ns)
		gci_buf_printf(out, ", sharing their way");
}

static void say_compute(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out)
{
	char time[16];

	gci_buf_printf(out, "copying and reducing, which nothing hides, takes %s",
		gci_format_time(f->chain_compute_ns / w->dilation, time, 16));
}

static void say_waiting(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out)
{
	(void)w;
	gci_buf_printf(out,
		"ranks wait for each other: no NIC is more than %.0f %% busy, and %" PRIu64
		" message%s follow%s one another",
		percent(f->port_ns, f->ns), f->chain_nmessages, f->chain_nmessages == 1 ? "" : "s",
		f->chain_nmessages == 1 ? "s" : "");
}

static uint64_t port_ns(const struct gct_facts *f)
{
	return f->port_ns;
}

static uint64_t link_ns(const struct gct_facts *f)
{
	return f->link_ns;
}

static uint64_t pair_ns(const struct gct_facts *f)
{
	return f->pair_ns;
}

static uint64_t delay_ns(const struct gct_facts *f)
{
	return f->chain_delay_ns;
}

static uint64_t chain_ns(const struct gct_facts *f)
{
	return f->chain_transfer_ns;
}

static uint64_t compute_ns(const struct gct_facts *f)
{
	return f->chain_compute_ns;
}

/* What time may go into, that of which one can do least about first. */
static const struct reason {
	uint64_t (*ns)(const struct gct_facts *f);
	void (*say)(const struct gct_facts *f, const struct gct_words *w, struct gci_buf *out);
	uint64_t least_percent; /* of the time: what is less is no reason */
} reasons[] = {{port_ns, say_port, 60}, {link_ns, say_link, 60}, {pair_ns, say_pair, 60},
	{delay_ns, say_delay, 20}, {chain_ns, say_chain, 50}, {compute_ns, say_compute, 20}};

#define NREASONS (sizeof(reasons) / sizeof(*reasons))

static uint64_t over(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void gct_facts_why(const struct gct_facts *f, const struct gct_facts *best,
	const struct gct_words *w, struct gci_buf *out)
{
	static const struct gct_facts nothing;
	uint64_t excess, most = 0;
	const struct reason *why = NULL;
	size_t i;

	if (best && gct_facts_tie(f->ns, best->ns)) {
		gci_buf_printf(out, "as fast, within 2 %%");
		return;
	}
	if (!best)
		best = &nothing;
	/* The first that explains most of the difference, else the one that explains most. */
	for (i = 0; i < NREASONS; i++) {
		excess = over(reasons[i].ns(f), reasons[i].ns(best));
		if (excess <= most || reasons[i].ns(f) < f->ns / 100 * reasons[i].least_percent)
			continue;
		most = excess;
		why = &reasons[i];
		if (most >= (f->ns - best->ns) / 10 * 7)
			break;
	}
	if (why && most >= (f->ns - best->ns) / 10 * 3)
		why->say(f, w, out);
	else
		say_waiting(f, w, out);
}
