/* SPDX-License-Identifier: MIT
 * Earliest departure times: when may this packet leave, for its class to keep its rate? fq, below,
 * sees to it. No BTF of the kernel is needed (Linux 5.12 and newer: atomics with a result). */
/* clang-format off */
#include <linux/bpf.h>
/* clang-format on */
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#include "shaping/edt_shared.h"
#include "shaping/trie_shared.h"

#define NS_PER_S 1000000000ull
#define TRIES    32

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gci_edt_about);
} edt_about SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GCI_EDT_MAX_CLASS);
	__type(key, __u32);
	__type(value, struct gci_edt_rate);
} edt_rates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GCI_EDT_MAX_CLASS);
	__type(key, __u32);
	__type(value, struct gci_edt_clock);
} edt_clocks SEC(".maps");

GCI_TRIE_MAP(edt_nets);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GCI_EDT_MAX_HOLDS);
	__type(key, struct gci_edt_hold_key);
	__type(value, struct gci_edt_hold);
} edt_holds SEC(".maps");

/* Where it goes; NULL: to nobody we know. */
static __always_inline __u32 *class_of(struct __sk_buff *skb)
{
	struct gci_trie_key to = {.bits = 128};
	struct gci_trie_value *dest;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		to.ip[10] = to.ip[11] = 0xff;
		if (bpf_skb_load_bytes_relative(skb, 16, to.ip + 12, 4, BPF_HDR_START_NET))
			return NULL;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes_relative(skb, 24, to.ip, 16, BPF_HDR_START_NET))
			return NULL;
	} else {
		return NULL;
	}
	dest = bpf_map_lookup_elem(&edt_nets, &to);
	return dest ? &dest->class : NULL;
}

/* Takes the next `cost_ns` of the class for this packet. Returns when they begin, or 0 when that is
 * beyond the horizon: then nothing was taken. Other CPUs do the same meanwhile. */
static __always_inline __u64 take(
	struct gci_edt_clock *clock, __u64 now, __u64 cost_ns, __u64 horizon_ns)
{
	__u64 next = *(volatile __u64 *)&clock->next_ns, seen, from;
	int i;

	for (i = 0; i < TRIES; i++) {
		from = next > now ? next : now;
		if (from - now > horizon_ns)
			return 0;
		seen = __sync_val_compare_and_swap(&clock->next_ns, next, from + cost_ns);
		if (seen == next)
			return from;
		next = seen;
	}
	/* So often others were first, and each of them left it at the present or later. */
	from = __sync_fetch_and_add(&clock->next_ns, cost_ns);
	return from > now ? from : now;
}

static __always_inline void count_wait(struct gci_edt_clock *clock, __u64 ns)
{
	__u64 most = *(volatile __u64 *)&clock->waited_ns, seen;
	int i;

	for (i = 0; i < TRIES && ns > most; i++) {
		seen = __sync_val_compare_and_swap(&clock->waited_ns, most, ns);
		if (seen == most)
			return;
		most = seen;
	}
}

/* TC_ACT_UNSPEC (TCX_NEXT): other programs of this device have their turn. */
SEC("tc")
int gci_edt(struct __sk_buff *skb)
{
	/* The kernel has counted the headers of all packets that this one will be cut into. */
	__u64 nbytes = skb->wire_len, packets = skb->gso_segs, now, departs, bps;
	__u32 *class = class_of(skb);
	struct gci_edt_clock *clock;
	struct gci_edt_rate *rate;

	if (!class)
		return TC_ACT_UNSPEC;
	rate = bpf_map_lookup_elem(&edt_rates, class);
	clock = bpf_map_lookup_elem(&edt_clocks, class);
	if (!rate || !clock)
		return TC_ACT_UNSPEC;
	packets = packets ? packets : 1;
	bps = rate->bps;
	if (bps) {
		now = bpf_ktime_get_ns();
		departs =
			take(clock, now, (nbytes * 8 * NS_PER_S + bps - 1) / bps, rate->horizon_ns);
		if (!departs) {
			__sync_fetch_and_add(&clock->dropped, packets);
			__sync_fetch_and_add(&clock->dropped_nbytes, nbytes);
			return TC_ACT_SHOT;
		}
		count_wait(clock, departs - now);
		/* TCP's own pacing may want it to leave later still. */
		if (skb->tstamp < departs || skb->tstamp - now > rate->horizon_ns)
			skb->tstamp = departs;
	}
	__sync_fetch_and_add(&clock->nbytes, nbytes);
	__sync_fetch_and_add(&clock->packets, packets);
	return TC_ACT_UNSPEC;
}

char gci_license[] SEC("license") = "Dual MIT/GPL";
