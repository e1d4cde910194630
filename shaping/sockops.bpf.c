/* SPDX-License-Identifier: MIT
 * Settings of a job's connections to other clusters, made where the connection is: before its first
 * data, and also for sockets of programs that know nothing of us. Runs for each connection of the
 * cgroup it is attached to (Linux 5.16 and newer: TCP_BPF_RTO_MIN; the other settings 4.13). */
/* clang-format off */
#include <linux/bpf.h>
/* clang-format on */
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <stddef.h>

#include "shaping/sockops_shared.h"
#include "shaping/trie_shared.h"

/* Not in the kernel's headers for programs. */
#define AF_INET            2
#define AF_INET6           10
#define SOL_SOCKET         1
#define SOL_TCP            6
#define SO_MAX_PACING_RATE 47
#define TCP_CONGESTION     13

GCI_TRIE_MAP(sop_nets);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GCI_SOCKOPS_MAX_CLASS);
	__type(key, __u32);
	__type(value, struct gci_sockops_setting);
} sop_wants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GCI_SOCKOPS_MAX_CLASS);
	__type(key, __u32);
	__type(value, struct gci_sockops_count);
} sop_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GCI_SOCKOPS_MAX_CONNS);
	__type(key, __u64);
	__type(value, struct gci_sockops_conn);
} sop_conns SEC(".maps");

/* Four words each; 0 or -1. */
static __always_inline int addresses(struct bpf_sock_ops *s, __u32 *local, __u32 *remote)
{
	if (s->family == AF_INET) {
		local[0] = remote[0] = local[1] = remote[1] = 0;
		local[2] = remote[2] = bpf_htonl(0xffff);
		local[3] = s->local_ip4;
		remote[3] = s->remote_ip4;
		/* Or the compiler makes one load of two branches', with an address that changes,
		 * which the verifier does not take. */
		asm volatile("" ::: "memory");
		return 0;
	}
	if (s->family != AF_INET6)
		return -1;
	local[0] = s->local_ip6[0];
	local[1] = s->local_ip6[1];
	local[2] = s->local_ip6[2];
	local[3] = s->local_ip6[3];
	remote[0] = s->remote_ip6[0];
	remote[1] = s->remote_ip6[1];
	remote[2] = s->remote_ip6[2];
	remote[3] = s->remote_ip6[3];
	return 0;
}

/* Returns what the kernel did not take. */
static __always_inline __u32 tell(struct bpf_sock_ops *s, struct gci_sockops_setting *want)
{
	struct gci_sockops_setting w = *want;
	__u32 refused = 0;

	if (w.congestion[0] &&
		bpf_setsockopt(s, SOL_TCP, TCP_CONGESTION, w.congestion, sizeof(w.congestion)))
		refused |= GCI_SOCKOPS_CONGESTION;
	if (w.initial_window &&
		bpf_setsockopt(s, SOL_TCP, TCP_BPF_IW, &w.initial_window, sizeof(__u32)))
		refused |= GCI_SOCKOPS_WINDOW;
	if (w.rto_min_us &&
		bpf_setsockopt(s, SOL_TCP, TCP_BPF_RTO_MIN, &w.rto_min_us, sizeof(__u32)))
		refused |= GCI_SOCKOPS_RTO;
	if (w.pacing && bpf_setsockopt(s, SOL_SOCKET, SO_MAX_PACING_RATE, &w.pacing, sizeof(__u32)))
		refused |= GCI_SOCKOPS_PACING;
	return refused;
}

static __always_inline void begin(struct bpf_sock_ops *s)
{
	struct gci_sockops_conn conn = {0};
	struct gci_trie_key to = {.bits = 128};
	__u64 cookie = bpf_get_socket_cookie(s);
	__u32 local[4], remote[4];
	struct gci_sockops_setting *want;
	struct gci_sockops_count *count;
	struct gci_trie_value *v;

	if (addresses(s, local, remote))
		return;
	__builtin_memcpy(to.ip, remote, 16);
	v = bpf_map_lookup_elem(&sop_nets, &to);
	if (!v)
		return;
	conn.class = v->class;
	want = bpf_map_lookup_elem(&sop_wants, &conn.class);
	count = bpf_map_lookup_elem(&sop_counts, &conn.class);
	if (!want || !count)
		return;
	conn.refused = tell(s, want);
	__builtin_memcpy(conn.local_ip, local, 16);
	__builtin_memcpy(conn.remote_ip, remote, 16);
	conn.local_port = s->local_port;
	conn.remote_port = bpf_ntohl(s->remote_port);
	bpf_map_update_elem(&sop_conns, &cookie, &conn, BPF_ANY);
	__sync_fetch_and_add(&count->opened, 1);
	if (conn.refused)
		__sync_fetch_and_add(&count->refused, 1);
	bpf_sock_ops_cb_flags_set(s, s->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RETRANS_CB_FLAG |
					     BPF_SOCK_OPS_STATE_CB_FLAG);
}

/* What it sent again, or that it ended. */
static __always_inline void follow(struct bpf_sock_ops *s, __u32 packets, int closed)
{
	__u64 cookie = bpf_get_socket_cookie(s);
	struct gci_sockops_conn *conn = bpf_map_lookup_elem(&sop_conns, &cookie);
	struct gci_sockops_count *count;
	__u32 class;

	if (!conn)
		return;
	class = conn->class;
	count = bpf_map_lookup_elem(&sop_counts, &class);
	if (!count)
		return;
	__sync_fetch_and_add(&conn->retransmitted, packets);
	__sync_fetch_and_add(&count->retransmitted, packets);
	if (closed) {
		conn->closed = 1;
		__sync_fetch_and_add(&count->closed, 1);
	}
}

SEC("sockops")
int gci_sockops(struct bpf_sock_ops *s)
{
	switch (s->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(s);
		break;
	case BPF_SOCK_OPS_RETRANS_CB: /* first sequence number, packets, error */
		if (!s->args[2])
			follow(s, s->args[1], 0);
		break;
	case BPF_SOCK_OPS_STATE_CB: /* old state, new state */
		if (s->args[1] == BPF_TCP_CLOSE)
			follow(s, 0, 1);
		break;
	}
	return 1;
}

char gci_license[] SEC("license") = "Dual MIT/GPL";
